"""Scores of predictions: right where the answer is known, and intervals that cover."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recrawl.assess.prediction_scores import brier, calibration, log_loss, mean_with_interval, spearman

probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=200)


def test_both_scores_are_least_on_average_where_the_probability_is_the_true_one():
    happened = np.arange(1000) < 300
    guesses = np.linspace(0.05, 0.95, 19)
    for score in (log_loss, brier):
        means = [score(np.full(1000, p), happened).mean() for p in guesses]
        assert guesses[int(np.argmin(means))] == pytest.approx(0.3)


@given(probabilities, st.integers(1, 20))
def test_bins_hold_every_prediction_once_in_ascending_order(p, bins):
    p = np.array(p)
    made = calibration(p, p > 0.5, bins)
    assert made.count.sum() == len(p)
    assert (made.count > 0).all()
    assert len(made.count) <= bins
    assert (np.diff(made.predicted) > 0).all()
    assert made.predicted @ made.count == pytest.approx(p.sum())


def test_true_probabilities_are_calibrated_and_exaggerated_ones_are_not():
    rng = np.random.default_rng(3)
    p = rng.uniform(0, 1, 20_000)
    happened = rng.uniform(0, 1, 20_000) < p
    assert calibration(p, happened).error < 0.01
    assert calibration(np.where(p > 0.5, 0.99, 0.01), happened).error > 0.2


def test_no_prediction_gives_no_bins_and_no_error():
    made = calibration(np.empty(0), np.empty(0, np.bool_))
    assert len(made.count) == 0
    assert np.isnan(made.error)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=60))
def test_rank_correlation_is_spearmans_with_ties(pairs):
    a, b = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    ours = spearman(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(stats.spearmanr(a, b).statistic)


def test_intervals_cover_the_true_mean_also_when_values_come_in_groups():
    rng = np.random.default_rng(11)
    groups = np.repeat(np.arange(60), 20)
    covered = 0
    for _ in range(200):
        values = np.repeat(rng.normal(0, 1, 60), 20) + rng.normal(0, 1, 1200)
        interval = mean_with_interval(values, groups, rng, repeats=300)
        covered += interval.low <= 0 <= interval.high
    assert 180 <= covered <= 199
    alone = mean_with_interval(values, np.arange(1200), rng, repeats=300)
    assert alone.high - alone.low < (interval.high - interval.low) / 2


def test_the_interval_is_defined_without_values_and_with_one_group():
    rng = np.random.default_rng(1)
    assert np.isnan(mean_with_interval(np.empty(0), np.empty(0), rng)).all()
    one = mean_with_interval(np.array([1.0, 3.0]), np.zeros(2), rng)
    assert one == (2.0, 2.0, 2.0)
