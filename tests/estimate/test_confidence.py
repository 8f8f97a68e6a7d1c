"""Intervals for rates: their definition, their edges, and how often they hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from recrawl.estimate import mle
from recrawl.model import Histories
from recrawl.model.arrays import offsets_of


def ragged(rows):
    """Histories from [(gap, changed), …] of each page."""
    gaps = np.array([gap for row in rows for gap, _ in row], dtype=float)
    flags = np.array([flag for row in rows for _, flag in row], dtype=bool)
    index = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    nothing = np.full(len(rows), np.nan)
    return Histories(np.arange(len(rows)), offsets_of(index, len(rows)), gaps, flags, nothing, nothing, nothing)


def log_likelihood(row, rate):
    return sum(np.log(-np.expm1(-rate * gap)) if changed else -rate * gap for gap, changed in row)


gap = st.floats(1e-6, 1e9)
observation = st.tuples(gap, st.booleans())


@given(st.lists(st.lists(observation, max_size=12), max_size=5), st.sampled_from([0.5, 0.9, 0.99]))
@settings(deadline=None)
def test_the_ends_are_where_the_likelihood_has_fallen_so_far(rows, level):
    histories = ragged(rows)
    low, high = mle.likelihood_ratio(histories, level)
    best = mle.rates(histories)
    fall = special.ndtri((1 + level) / 2) ** 2 / 2
    for i, row in enumerate(rows):
        changes = sum(changed for _, changed in row)
        if not row:
            assert (low[i], high[i]) == (0.0, np.inf)
        elif changes == 0:
            assert low[i] == 0.0
            assert log_likelihood(row, high[i]) == pytest.approx(np.log(1 - level))
        elif changes == len(row):
            assert high[i] == np.inf
            assert log_likelihood(row, low[i]) == pytest.approx(np.log(1 - level), rel=1e-6)
        else:
            assert low[i] < best[i] < high[i]
            at_best = log_likelihood(row, best[i])
            for end in (low[i], high[i]):
                assert at_best - log_likelihood(row, end) == pytest.approx(fall, rel=1e-5, abs=1e-6)


@given(st.lists(st.lists(observation, max_size=12), max_size=5), st.floats(1e-3, 1e3))
@settings(deadline=None)
def test_intervals_are_never_nan_and_scale_with_time(rows, factor):
    histories, scaled = ragged(rows), ragged([[(g * factor, flag) for g, flag in row] for row in rows])
    interval = mle.likelihood_ratio(histories)
    assert not np.isnan(interval.low).any()
    assert not np.isnan(interval.high).any()
    assert (interval.low <= interval.high).all()
    assert (interval.low >= 0).all()
    base, other = mle.likelihood_ratio(histories), mle.likelihood_ratio(scaled)
    np.testing.assert_allclose(other.low * factor, base.low, rtol=1e-6)
    np.testing.assert_allclose(other.high * factor, base.high, rtol=1e-6)


def test_the_rule_of_three_and_its_mirror():
    histories = ragged([[(50.0, False), (50.0, False)], [(10.0, True)], []])
    low, high = mle.likelihood_ratio(histories, 0.95)
    np.testing.assert_allclose(high, [-np.log(0.05) / 100, np.inf, np.inf])
    np.testing.assert_allclose(low, [0.0, -np.log(0.95) / 10, 0.0])


def test_a_wider_level_gives_a_wider_interval():
    histories = ragged([[(1.0, True), (2.0, False), (7.0, True), (3.0, False)]])
    rate = mle.rates(histories)
    narrow, wide = (mle.likelihood_ratio(histories, level) for level in (0.5, 0.95))
    assert wide.low[0] < narrow.low[0] < rate[0] < narrow.high[0] < wide.high[0]


def test_the_most_informative_gap():
    x = np.linspace(0.5, 3.0, 2001)
    says = mle.information(ragged([[(gap, True)] for gap in x]), np.ones(len(x)))
    assert says.max() == pytest.approx(0.648, abs=5e-4)
    assert x[says.argmax()] == pytest.approx(1.594, abs=2e-3)


@pytest.mark.parametrize("observations", [3, 10, 30])
def test_nine_of_ten_intervals_hold_the_truth(observations):
    rng = np.random.default_rng(observations)
    pages = 2000
    rate = np.exp(rng.normal(np.log(0.03), 1.0, pages))
    gaps = np.exp(rng.normal(np.log(10.0), 1.0, (pages, observations)))
    changed = rng.random(gaps.shape) < -np.expm1(-rate[:, None] * gaps)
    nothing = np.full(pages, np.nan)
    offsets = np.arange(pages + 1) * observations
    histories = Histories(np.arange(pages), offsets, gaps.ravel(), changed.ravel(), nothing, nothing, nothing)
    low, high = mle.likelihood_ratio(histories, 0.9)
    held = np.mean((low <= rate) & (rate <= high))
    assert 0.88 < held < 0.97


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, float("nan")])
def test_a_level_that_is_none_is_refused(level):
    with pytest.raises(ValueError, match="level of confidence"):
        mle.likelihood_ratio(ragged([[(1.0, True)]]), level)
