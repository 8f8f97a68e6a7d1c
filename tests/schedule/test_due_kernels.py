"""Compiled code for due times and sampled prices: the same answers as the plain way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import GammaBelief
from recrawl.model.belief import GridBelief, half_octaves
from recrawl.model.compiled import can_compile
from recrawl.schedule.objectives import OBJECTIVES, BlendedObjective, FreshnessObjective, basics_of
from recrawl.schedule.price import budget_price, due_times
from recrawl.schedule.price.budget_price import allocate
from recrawl.schedule.price.due_times import VisitDemand
from recrawl.time import DAY, HOUR


def beliefs(n, seed=0):
    rng = np.random.default_rng(seed)
    log_rate = np.log(1 / 30 / DAY) + 2.0 * rng.normal(size=n)
    width = rng.uniform(0.2, 2.0, n)
    grid = half_octaves()
    shape = np.exp(rng.normal(0, 1.5, n))
    return {
        "grid": GridBelief.of(grid, np.exp(-0.5 * ((np.log(grid) - log_rate[:, None]) / width[:, None]) ** 2) + 1e-9),
        "gamma": GammaBelief(shape, shape / np.exp(log_rate)),
        "point": PointBelief(np.where(rng.uniform(size=n) < 0.02, 0.0, np.exp(log_rate))),
    }


@pytest.mark.skipif(not can_compile(), reason="numba is not installed")
@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("kind", ["grid", "gamma", "point"])
def test_compiled_code_finds_the_same_due_times(name, kind, monkeypatch):
    belief, objective = beliefs(400)[kind], OBJECTIVES[name]
    rng = np.random.default_rng(1)
    usual = np.median(objective.value(belief, np.full(400, 20 * DAY)))
    target = usual * np.exp(rng.normal(0, 2, 400))
    target[:4] = [0.0, np.inf, 1e-300, 1e300]
    first, last = np.full(400, HOUR), rng.choice([5 * DAY, 180 * DAY, 1e12, HOUR], 400)
    plain = due_times.time_to_value(objective, belief, target, first, last)
    monkeypatch.setattr(due_times, "_MANY", 0)
    for from_above in (False, True):
        found = due_times.time_to_value(objective, belief, target, first, last, from_above=from_above)
        there = np.isfinite(found)
        close = np.abs(objective.value(belief, last) - target) < 1e-7 * target  # at the very end rounding decides
        np.testing.assert_array_equal(there[~close], np.isfinite(plain)[~close])
        inner = there & np.isfinite(plain) & (found > HOUR)
        value = objective.value(belief, np.where(inner, found, DAY))
        np.testing.assert_allclose(value[inner], target[inner], rtol=1e-7)
        np.testing.assert_array_equal(found[there & ~inner], plain[there & ~inner])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_objective_is_the_sum_of_its_basics(name):
    basics = basics_of(OBJECTIVES[name])
    belief, at = beliefs(20)["gamma"], np.full(20, 9 * DAY)
    plain = [OBJECTIVES[one] for one in ("freshness", "changes", "harmonic", "age", "blur")]
    total = sum(share * one.value(belief, at) for share, one in zip(basics, plain, strict=True))
    np.testing.assert_allclose(OBJECTIVES[name].value(belief, at), total)


class Days:
    """An objective of somebody else's: a visit is worth the days passed."""

    name = "days"

    def value(self, belief, elapsed):
        return elapsed / DAY


def test_objectives_without_basics_go_the_plain_way(monkeypatch):
    monkeypatch.setattr(due_times, "_MANY", 0)
    both = BlendedObjective("both", ((1.0, FreshnessObjective()), (1.0, Days())))
    assert basics_of(Days()) is None
    assert basics_of(both) is None
    t = due_times.time_to_value(Days(), beliefs(2)["point"], np.full(2, 3.0), np.full(2, HOUR), np.full(2, 1e9))
    np.testing.assert_allclose(t, 3 * DAY, rtol=1e-8)


@pytest.mark.parametrize("kind", ["grid", "gamma", "point"])
@pytest.mark.parametrize("name", ["archive", "freshness"])
def test_a_sampled_price_is_the_price(kind, name, monkeypatch):
    n = 600
    rng = np.random.default_rng(3)
    cost = np.exp(rng.normal(0, 0.3, n))
    demand = VisitDemand(OBJECTIVES[name], beliefs(n)[kind], np.exp(rng.normal(0, 1, n)), cost, HOUR, 180 * DAY)
    budget = 0.05 / DAY * float(cost.sum())
    exact = allocate(demand, budget)
    monkeypatch.setattr(budget_price, "_SAMPLE", 200)
    monkeypatch.setattr(due_times, "_MANY", 0)
    quick = allocate(demand, budget)
    assert float((cost * quick.rate).sum()) == pytest.approx(budget, rel=1e-12)
    assert quick.price == pytest.approx(exact.price, rel=1e-4)
    assert float((cost * demand.rates(quick.price)).sum()) == pytest.approx(budget, rel=1e-3)
    np.testing.assert_allclose(quick.rate, exact.rate, rtol=0.02)  # a page about to drop out moves most


def test_a_sample_that_misleads_is_put_right(monkeypatch):
    """Hot pages all in one place that the sample hardly sees, so its price is far off."""
    rate = np.full(5_000, 1e-3)
    rate[4_990:] = 50.0
    one = np.ones(5_000)
    demand = VisitDemand(OBJECTIVES["blur"], PointBelief(rate), one, one, 1e-6, np.inf)
    exact = allocate(demand, 100.0)
    monkeypatch.setattr(budget_price, "_SAMPLE", 40)
    quick = allocate(demand, 100.0)
    np.testing.assert_allclose(quick.rate, exact.rate, rtol=1e-4)


# -- conditional requests, bounds by page ----------------------------------------------------------


@given(extra=st.floats(0.0, 20.0), x=st.floats(0.05, 6.0))
@settings(deadline=None, max_examples=60)
def test_the_worth_of_a_conditional_request(extra, x):
    """(w/λ)·g/(c₀ + c₁g) at known rates (algorithms §1)."""
    rate, one = np.array([0.3]), np.ones(1)
    demand = VisitDemand(OBJECTIVES["freshness"], PointBelief(rate), 2 * one, one, 1e-6, np.inf, transfer=extra * one)
    value = 1 - (1 + x) * np.exp(-x)
    expected = 2 / 0.3 * value / (1 + extra * value)
    assert demand.worth(np.array([x / 0.3]))[0] == pytest.approx(expected, rel=1e-6)
    assert demand.intervals(expected)[0] == pytest.approx(x / 0.3, rel=1e-4)


def test_bodies_make_hot_pages_dearer_and_the_budget_is_kept():
    rng = np.random.default_rng(5)
    rate, weight, one = np.exp(rng.normal(0, 1.5, 300)), np.exp(rng.normal(0, 1, 300)), np.ones(300)
    belief = GammaBelief(np.full(300, 3.0), 3.0 / rate)
    light = VisitDemand(OBJECTIVES["archive"], belief, weight, one, 1e-3, 1e3)
    heavy = VisitDemand(OBJECTIVES["archive"], belief, weight, one, 1e-3, 1e3, transfer=4 * one)
    found = allocate(heavy, 60.0)
    assert float(heavy.spending(found.rate).sum()) == pytest.approx(60.0, rel=1e-6)
    same_visits = allocate(light, float(found.rate.sum()))
    hot = rate > np.median(rate)
    assert found.rate[hot].sum() < same_visits.rate[hot].sum()

    def penalty(f):
        """Mean freshness lost, by the same belief, at equal cost."""
        return float((weight * (1 - f * belief.unchanged_time(1 / f))).sum())

    naive = same_visits.rate * 60.0 / float(heavy.spending(same_visits.rate).sum())
    assert penalty(found.rate) < penalty(naive)


def test_bounds_may_differ_by_page():
    rate, one = np.full(4, 1.0), np.ones(4)
    shortest, longest = np.array([1.0, 5.0, 1.0, 1.0]), np.array([9.0, 9.0, 2.0, np.inf])
    demand = VisitDemand(OBJECTIVES["freshness"], PointBelief(rate), one, one, shortest, longest)
    rich, poor = allocate(demand, 100.0), allocate(demand, 0.72222222222222222222)
    np.testing.assert_allclose(rich.rate, 1 / shortest)
    np.testing.assert_allclose(poor.rate, [1 / 9, 1 / 9, 1 / 2, 0.0], atol=1e-9)
    some = allocate(demand.take(np.array([1, 2])), 0.65)
    assert some.rate.sum() == pytest.approx(0.65)
    assert 1 / 9 <= some.rate[0] <= 1 / 5
