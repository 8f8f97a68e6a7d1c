"""Rates learned in operational time are shown as those of an average day, and of pages that stopped as slow."""

import numpy as np
import pytest

from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.operational.factor_state import TimeFactor
from recrawl.estimate.operational.operational_posterior import OperationalPosterior
from recrawl.model import Histories, Visits
from recrawl.time import DAY

STOPPED = 20
"""Pages of the first cluster: they change daily for 400 days, and then no more for 512."""


@pytest.fixture(scope="module")
def evidence():
    """Looked at every other day for 400 days, then weekly; the other 40 pages change once in 50 days all the time."""
    rng = np.random.default_rng(0)
    page, time, verdict = [], [], []
    for number in range(60):
        at = np.concatenate([np.arange(0.0, 400.0, 2.0), np.arange(400.0, 912.0, 7.0)]) + 0.01 * number
        rate = np.where(at < 400, 1.0, 0.0) if number < STOPPED else np.full(len(at), 0.02)
        changed = rng.random(len(at)) < -np.expm1(-rate * np.diff(at, prepend=0.0))
        page.append(np.full(len(at), number))
        time.append(at * DAY)
        verdict.append(np.where(changed, 2, 1))
    visits = Visits.of(np.concatenate(page), np.concatenate(time), verdict=np.concatenate(verdict))
    return RateEvidence(Histories.from_visits(visits), (np.zeros(60, np.int64), np.arange(60) // 20))


@pytest.mark.parametrize(
    "factors",
    [(TimeFactor.BURSTS,), (TimeFactor.CLUSTERS,), (TimeFactor.CLUSTERS, TimeFactor.BURSTS), (TimeFactor.AGE,), ()],
)
def test_rates_are_those_of_an_average_day_whatever_makes_time_run(evidence, factors):
    """Where bursts were switched on, pages that change every 50 days were once shown as every 8 years."""
    belief = OperationalPosterior().with_factors(evidence, factors)
    shown = belief.quantile(0.5) * DAY
    assert 0.01 < np.median(shown[STOPPED:]) < 0.04
    assert (belief.quantile(0.05) * DAY)[STOPPED:].mean() < 0.02 < (belief.quantile(0.95) * DAY)[STOPPED:].mean()


@pytest.mark.parametrize(
    "factors", [(TimeFactor.BURSTS,), (TimeFactor.CLUSTERS,), (TimeFactor.CLUSTERS, TimeFactor.BURSTS)]
)
def test_pages_that_stopped_512_days_ago_are_believed_slow(evidence, factors):
    belief = OperationalPosterior().with_factors(evidence, factors)
    assert (belief.quantile(0.5)[:STOPPED] * DAY < 1 / 30).all()
    assert (belief.p_change(np.full(60, 10 * DAY))[:STOPPED] < 0.3).all()


def test_in_wall_time_nothing_is_scaled(evidence):
    belief = OperationalPosterior().with_factors(evidence, ())
    assert (belief.usual == 1.0).all()
    np.testing.assert_array_equal(belief.quantile(0.5), belief.learned.belief.quantile(0.5))
