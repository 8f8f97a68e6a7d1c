"""Counts shrunken towards related pages: the formula, what is learned, and odd data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from recrawl.predict.static_features import Feature, FeatureGroup, PredictionTarget, table_of
from recrawl_lab.learners.link_learners import Learner, LearnerSettings, ShrunkenCounts, fit, learn_shrinkage

NAMES = ("new_internal_1", "new_internal_2", "new_internal_mean", "near_internal_link_change_rate")


def drawn(rng, strength, pages=8_000, periods=6):
    """Pages whose rates are Gamma around what their related pages let expect: the law that the learner assumes."""
    near = rng.choice([0.05, 0.2, 0.7], pages)
    rate = rng.gamma(strength * near * 2.0, 1.0 / strength)
    counts = rng.poisson(rate[:, None], (pages, periods + 1)).astype(float)
    names = [f"new_external_{lag + 1}" for lag in range(periods)]
    return np.column_stack([counts[:, :-1], near]), [*names, "near_external_link_change_rate"], counts[:, -1]


def test_the_formula():
    found = ShrunkenCounts(strength=2.0, overall=0.25, at_once=2.0, own=(0, 1), around=3, presence=False)
    near = 0.25
    rows = np.array([[1, 3, 2, near], [1, np.nan, 1, near], [np.nan, np.nan, np.nan, near], [0, 0, 0, np.nan]])
    assert found.expected(rows) == pytest.approx([5 / 4, 2 / 3, 1 / 2, 1 / 4])
    law = stats.nbinom(5.0, 4.0 / 5.0)  # of Gamma(5, 4) and one period
    assert found.likelihood(rows[:1], np.array([2.0])) == pytest.approx(law.logpmf(2))


@pytest.mark.parametrize("strength", [0.5, 4.0])
def test_the_strength_of_a_known_law_is_found(strength):
    rows, names, number = drawn(np.random.default_rng(1), strength)
    found = learn_shrinkage(rows, names, number)
    assert 0.5 < found.strength / strength < 2.0
    assert found.expected(rows).mean() == pytest.approx(number.mean(), rel=0.1)


def test_presence_counts_periods_and_looks_at_rates():
    rng = np.random.default_rng(2)
    near = rng.choice([0.1, 0.6], 5_000)
    chance = rng.beta(3.0 * near, 3.0 * (1.0 - near))
    happened = (rng.random((5_000, 3)) < chance[:, None]) * 7.0
    rows = np.column_stack([happened[:, :2], happened[:, :2].mean(axis=1), near])
    found = learn_shrinkage(rows, NAMES, (happened[:, 2] > 0).astype(float), presence=True)
    assert 1.5 < found.strength < 6.0
    said = found.expected(rows)
    assert ((said > 0) & (said < 1)).all()
    assert said.mean() == pytest.approx(chance.mean(), abs=0.03)


def test_a_page_without_a_past_is_as_its_related_pages():
    rows, names, number = drawn(np.random.default_rng(3), 1.0)
    found = learn_shrinkage(rows, names, number)
    new = np.full((2, rows.shape[1]), np.nan)
    new[:, -1] = [0.1, 0.8]
    assert found.expected(new) == pytest.approx(found.at_once * np.array([0.1, 0.8]), rel=0.1)


@given(arrays(np.float64, (7, 4), elements=st.one_of(st.just(np.nan), st.integers(0, 1000).map(float))))
def test_what_is_foretold_is_a_number_whatever_is_known(rows):
    values = rows.copy()
    values[:, 3] = np.minimum(values[:, 3], 1.0)
    truth = np.arange(7.0) % 2
    for presence in (False, True):
        found = learn_shrinkage(values, NAMES, truth, presence=presence)
        said = found.expected(values)
        assert (said > 0).all()
        assert np.isfinite(found.likelihood(values, truth)).all()


def test_the_order_of_pages_does_not_matter():
    rows, names, number = drawn(np.random.default_rng(4), 1.0, pages=300)
    order = np.random.default_rng(5).permutation(300)
    one, other = learn_shrinkage(rows, names, number), learn_shrinkage(rows[order], names, number[order])
    assert one.expected(rows) == pytest.approx(other.expected(rows))


def test_features_of_both_kinds_or_of_none_are_refused():
    rows = np.ones((3, 2))
    for names in (("new_internal_1", "new_external_1"), ("near_internal_link_change_rate", "images")):
        with pytest.raises(ValueError, match="choose the features LBLA"):
            learn_shrinkage(rows, names, np.ones(3))
    assert learn_shrinkage(rows, ("new_internal_1", "images"), np.ones(3)).around is None


def test_it_does_not_foretell_the_link_change_rate():
    table = table_of(np.arange(3), 0.0, [(Feature("new_internal_1", FeatureGroup.DP), [0, 1, 2])])
    settings = LearnerSettings(learner=Learner.SHRUNKEN_COUNTS)
    with pytest.raises(ValueError, match="own past"):
        fit(table, PredictionTarget.LCR, np.array([0.0, 0.5, 1.0]), np.random.default_rng(1), settings)
