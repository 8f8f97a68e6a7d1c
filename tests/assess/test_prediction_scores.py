"""Scores of what was predicted, against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.assess.prediction_scores import class_scores, quantity_scores

pairs = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1)
numbers = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1)


@given(pairs)
def test_classes(drawn):
    said, true = (np.array([pair[part] for pair in drawn]) for part in range(2))
    found = class_scores(said, true)
    hits = drawn.count((True, True))
    if true.any():
        assert found.recall == pytest.approx(hits / true.sum())
    else:
        assert np.isnan(found.recall)
    if said.any():
        assert found.precision == pytest.approx(hits / said.sum())
    if hits:
        assert found.f1 == pytest.approx(2 / (1 / found.precision + 1 / found.recall))
    if true.any() and not true.all():
        by_class = [(said == kind)[true == kind].mean() for kind in (True, False)]
        assert found.balanced_accuracy == pytest.approx(np.mean(by_class))


@given(numbers)
def test_quantities(drawn):
    said, true = (np.array([float(pair[part]) for pair in drawn]) for part in range(2))
    found = quantity_scores(said, true)
    assert found.mean_error == pytest.approx(np.mean(np.abs(said - true)))
    assert found.median_error == np.median(np.abs(said - true))
    if true.std() > 0:
        assert found.r2 == pytest.approx(1 - np.mean((said - true) ** 2) / np.var(true))
        assert quantity_scores(true, true).r2 == 1.0
        assert quantity_scores(np.full(len(true), true.mean()), true).r2 == pytest.approx(0.0, abs=1e-12)
    else:
        assert np.isnan(found.r2)


def test_nothing_has_no_scores():
    assert np.isnan(quantity_scores(np.empty(0), np.empty(0)).mean_error)
    assert np.isnan(class_scores(np.empty(0, bool), np.empty(0, bool)).f1)
