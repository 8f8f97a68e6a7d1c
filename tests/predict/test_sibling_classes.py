"""Chances of classes from directories: counts, shrinkage, and what is known of the unknown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.predict.related_pages import fit_sibling_classes

urls = st.lists(
    st.tuples(st.sampled_from("ab"), st.lists(st.sampled_from("xyz"), max_size=3), st.integers(0, 9)).map(
        lambda parts: f"http://{parts[0]}.test/{''.join(f'{name}/' for name in parts[1])}{parts[2]}"
    ),
    min_size=1,
    max_size=30,
)


def test_a_page_has_the_class_of_most_of_its_siblings():
    pages = [f"http://a.test/news/{n}" for n in range(30)] + [f"http://a.test/docs/{n}" for n in range(30)]
    known = fit_sibling_classes(pages, np.repeat([0, 2], 30), 3)
    assert known.classes(["http://a.test/news/new", "http://a.test/docs/deeper/new"]).tolist() == [0, 2]


def test_few_siblings_count_less_than_many():
    pages = [f"http://a.test/x/{n}" for n in range(100)] + ["http://a.test/y/1"]
    known = fit_sibling_classes(pages, np.array([0] * 100 + [1]), 2)
    one_sibling, many = known.chances(["http://a.test/y/2", "http://a.test/x/2"])
    above = (np.array([100, 1]) + 5 * np.array([101, 2]) / 103) / 106
    assert one_sibling == pytest.approx((np.array([0, 1]) + 5 * above) / 6)
    assert many[0] > 0.99


def test_an_unknown_host_has_the_chances_of_all():
    known = fit_sibling_classes(["http://a.test/1", "http://b.test/1"], np.array([1, 1]), 2)
    assert known.chances(["http://new.test/"])[0] == pytest.approx([1 / 4, 3 / 4])


@given(urls, urls, st.integers(2, 4))
def test_chances_are_probabilities_and_never_nothing(taught, asked, classes):
    label = np.arange(len(taught)) % classes
    chances = fit_sibling_classes(taught, label, classes).chances(asked)
    assert chances.shape == (len(asked), classes)
    assert chances.sum(axis=1) == pytest.approx(1.0)
    assert (chances > 0).all()
