"""Learners compared as in Table 1: on equally many pages of each class, with three sets of features."""

from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.predict.static_features import Feature, FeatureGroup, table_of
from recrawl_lab.learners.class_learners import LEARNERS
from recrawl_lab.trials.class_trial import FEATURES, FEWEST, balanced, table_1


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(0, 9))
def test_a_balanced_sample_has_as_many_of_each_class_as_the_smallest(labels, seed):
    label = np.array(labels, dtype=np.int64)
    chosen = balanced(label, np.random.default_rng(seed))
    assert (np.diff(chosen) > 0).all()
    sizes = np.bincount(label)
    least = min((size for size in sizes.tolist() if size), default=0)
    assert np.bincount(label[chosen], minlength=len(sizes)).tolist() == [least if size else 0 for size in sizes]


def pages(label, rng):
    """Images tell the class, with some noise; nothing else does, and nobody knows of tables."""
    size = len(label)
    columns = {
        "images": label + 0.2 * rng.normal(size=size),
        "text_size": rng.random(size),
        "url_digits": rng.random(size),
        "tables": np.full(size, np.nan),
    }
    return table_of(
        np.arange(size), 0.0, [(Feature(name, FeatureGroup.SP), column) for name, column in columns.items()]
    )


def test_the_feature_that_tells_is_chosen_and_learners_see_it():
    rng = np.random.default_rng(4)
    label = np.repeat([0, 1, 2], [200, 60, 90])
    ticks = count()
    found = table_1(pages(label, rng), label, 3, rng, lambda: float(next(ticks)))
    assert (found.taught, len(found.tested)) == (120, 60)
    assert set(found.names[FEATURES[0]]) == {"images", "text_size"}
    assert "tables" not in found.names[FEATURES[1]]
    assert found.names[FEATURES[2]][0] == "images"
    assert [(one.features, one.learner) for one in found.learned] == [(a, b) for a in FEATURES for b in LEARNERS]
    assert all(one.fitting == one.classifying == 1.0 for one in found.learned)
    errors = {(one.features, one.learner): one.wrong.mean() for one in found.learned}
    assert errors["chosen", "tree"] < 0.1
    assert errors["all", "naive Bayes"] < 0.1
    assert errors["all", "1 nearest"] > errors["chosen", "1 nearest"]


def test_too_few_pages_of_a_class_are_not_judged():
    rng = np.random.default_rng(5)
    label = np.repeat([0, 1], [200, FEWEST - 1])
    assert table_1(pages(label, rng), label, 2, rng, lambda: 0.0) is None


@pytest.mark.parametrize("learner", LEARNERS)
def test_what_tells_nothing_is_guessed(learner):
    rng = np.random.default_rng(6)
    label = rng.integers(0, 2, 900)
    table = table_of(np.arange(900), 0.0, [(Feature("text_size", FeatureGroup.SP), rng.random(900))])
    found = table_1(table, label, 2, rng, lambda: 0.0)
    wrong = next(one.wrong for one in found.learned if (one.learner, one.features) == (learner, "all"))
    assert 0.4 < wrong.mean() < 0.6
