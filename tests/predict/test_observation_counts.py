"""Looks as counts: exact where they are counts, and right on average where they are not."""

import numpy as np
import pytest

from recrawl.model import Histories, Verdict, Visits
from recrawl.predict.feature_extraction import observation_counts
from recrawl.time import DAY


def looked_at(rate, gaps, rng):
    """Pages of these rates, looked at after these gaps."""
    changed = rng.random(gaps.shape) < -np.expm1(-rate[:, None] * gaps)
    time = np.concatenate([np.zeros((len(rate), 1)), np.cumsum(gaps, axis=1)], axis=1)
    verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
    verdict = np.concatenate([np.full((len(rate), 1), Verdict.UNKNOWN), verdict], axis=1)
    page = np.repeat(np.arange(len(rate)), time.shape[1])
    return Histories.from_visits(Visits.of(page, time.ravel(), verdict=verdict.ravel()))


def test_frequent_looks_are_counts():
    rng = np.random.default_rng(1)
    histories = looked_at(np.full(50, 1 / (40 * DAY)), np.full((50, 200), 0.5 * DAY), rng)
    found = observation_counts(histories)
    assert found.count == pytest.approx(histories.changes(), abs=0.2)
    assert found.exposure == pytest.approx(histories.observed(), rel=0.03)


@pytest.mark.parametrize("days", [1.0, 10.0, 40.0])
def test_equal_rates_come_out_right(days):
    rng = np.random.default_rng(2)
    gaps = rng.uniform(0.5, 1.5, (2000, 12)) * days * DAY
    found = observation_counts(looked_at(np.full(2000, 1 / (20 * DAY)), gaps, rng))
    assert found.count.sum() / found.exposure.sum() == pytest.approx(1 / (20 * DAY), rel=0.1)


@pytest.mark.parametrize(("days", "low"), [(1.0, 0.97), (10.0, 0.8), (40.0, 0.6)])
def test_different_rates_are_told_apart_and_their_mean_is_low_where_looks_are_rare(days, low):
    rng = np.random.default_rng(2)
    rate = rng.gamma(2.0, 1 / (40 * DAY), 2000)
    found = observation_counts(looked_at(rate, rng.uniform(0.5, 1.5, (2000, 12)) * days * DAY, rng))
    assert low < found.count.sum() / found.exposure.sum() / rate.mean() < 1.05
    assert np.corrcoef(found.count / found.exposure, rate)[0, 1] > 0.4


def test_pages_without_looks_count_for_nothing():
    histories = Histories.from_visits(Visits.of([1, 2, 2], [0.0, 0.0, DAY], verdict=[0, 0, 1]))
    found = observation_counts(histories)
    assert (found.count[0], found.exposure[0]) == (0.0, 0.0)
    assert found.count[1] == pytest.approx(0.0, abs=1e-9)
    assert found.exposure[1] == pytest.approx(DAY)
