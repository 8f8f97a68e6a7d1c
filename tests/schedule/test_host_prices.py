"""Limits of hosts inside the optimum: against a general solver, against solve-then-clip, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from recrawl.errors import ConfigError
from recrawl.model import GammaBelief
from recrawl.schedule.objectives import OBJECTIVES
from recrawl.schedule.price import budget_price
from recrawl.schedule.price.budget_price import UnmetDemand, allocate, allocate_by_host
from recrawl.schedule.price.due_times import VisitDemand
from recrawl.schedule.price.known_rates import LAWS, KnownRates

FRESH = LAWS["freshness"]


def instance(seed, n=40, hosts=6):
    rng = np.random.default_rng(seed)
    rate, weight = np.exp(rng.normal(0, 1.2, n)), np.exp(rng.normal(0, 1, n))
    host = rng.integers(0, hosts, n)
    limit = np.exp(rng.normal(0.5, 1.0, hosts))
    return rate, weight, host, limit


def fresh(rate, weight, visits):
    return 1 - FRESH.reached(rate, weight, np.maximum(visits, 1e-12))


@pytest.mark.parametrize("seed", range(6))
def test_no_worse_than_a_general_solver(seed):
    rate, weight, host, limit = instance(seed, 8, 3)
    budget = 0.7 * float(limit.sum())
    found = allocate_by_host(KnownRates(FRESH, rate, weight, np.ones(8)), host, limit, budget)
    of = [host == h for h in range(3)]
    limits = [{"type": "ineq", "fun": lambda f, m=m, b=b: b - f[m].sum()} for m, b in zip(of, limit, strict=True)]
    general = optimize.minimize(
        lambda f: -fresh(rate, weight, f),
        np.full(8, 0.5 * min(limit.min(), budget) / 8),
        method="SLSQP",
        bounds=[(1e-9, None)] * 8,
        constraints=[{"type": "ineq", "fun": lambda f: budget - f.sum()}, *limits],
        options={"maxiter": 800, "ftol": 1e-13},
    )
    assert fresh(rate, weight, found.rate) >= -general.fun - 1e-7
    assert (np.bincount(host, found.rate, 3) <= limit * (1 + 1e-12)).all()


@given(seed=st.integers(0, 10**6), share=st.floats(0.05, 1.5))
@settings(deadline=None, max_examples=40)
def test_never_below_solving_first_and_clipping_then(seed, share):
    rate, weight, host, limit = instance(seed)
    budget = share * float(limit.sum())
    known = KnownRates(FRESH, rate, weight, np.ones(40))
    found = allocate_by_host(known, host, limit, budget)
    free = allocate(known, budget).rate
    asked = np.bincount(host, free, 6)
    clipped = free * np.minimum(1.0, limit / np.maximum(asked, 1e-300))[host]
    assert fresh(rate, weight, found.rate) >= fresh(rate, weight, clipped) - 1e-9
    spent = np.bincount(host, found.rate, 6)
    assert (spent <= limit * (1 + 1e-12)).all()
    some = np.bincount(host, minlength=6) > 0
    assert spent.sum() == pytest.approx(min(budget, limit[some].sum()), rel=1e-8)


@pytest.mark.parametrize("name", ["freshness", "archive", "age", "changes", "blur"])
def test_the_conditions_of_an_optimum_hold_for_known_rates_and_for_beliefs(name):
    rate, weight, host, limit = instance(3, 300, 12)
    cost = np.exp(np.random.default_rng(4).normal(0, 0.3, 300))
    belief = GammaBelief(np.full(300, 2.0), 2.0 / rate)
    limit = limit * 3
    budget = 0.5 * float(limit.sum())
    demand = VisitDemand(OBJECTIVES[name], belief, weight, cost, 1e-3, 1e4)
    for asking in (KnownRates(LAWS[name], rate, weight, cost), demand):
        found = allocate_by_host(asking, host, limit, budget)
        spent = np.bincount(host, cost * found.rate, 12)
        assert spent.sum() == pytest.approx(budget, rel=1e-8)
        assert 0 < found.saturated.sum() < 12
        np.testing.assert_allclose(spent[found.saturated], limit[found.saturated], rtol=1e-8)
        assert (found.host_price[found.saturated] > found.price).all()
        np.testing.assert_array_equal(found.host_price[~found.saturated], found.price)
        again = asking.rates(found.host_price[host])
        lasting = np.maximum(again, found.rate) > rate / 12  # less is about to drop out, and mixed from two prices
        np.testing.assert_allclose(found.rate[lasting], again[lasting], rtol=1e-4)
        assert found.feasible
        assert (found.rate[found.hopeless] <= 1e-4 + 1e-9).all()


def test_one_host_without_a_limit_is_the_plain_optimum():
    rate, weight, host, _ = instance(5)
    known = KnownRates(FRESH, rate, weight, np.ones(40))
    found = allocate_by_host(known, host, np.full(6, np.inf), 9.0)
    plain = allocate(known, 9.0)
    np.testing.assert_allclose(found.rate, plain.rate, rtol=1e-8)
    assert found.price == pytest.approx(plain.price, rel=1e-8)
    assert not found.saturated.any()


def test_hosts_that_take_less_than_the_budget_are_all_saturated_at_the_price_0():
    rate, weight, host, limit = instance(6)
    found = allocate_by_host(KnownRates(FRESH, rate, weight, np.ones(40)), host, limit, 1e6)
    assert found.price == 0.0
    assert found.saturated.all()
    np.testing.assert_allclose(np.bincount(host, found.rate, 6), limit, rtol=1e-9)
    some = VisitDemand(OBJECTIVES["age"], GammaBelief(np.full(40, 2.0), 2 / rate), weight, np.ones(40), 1.0, 100.0)
    relaxed = allocate_by_host(some, host, np.full(6, 1e3), 1e6)
    assert (relaxed.price, set(relaxed.rate.tolist())) == (0.0, {1.0})


def test_requests_that_cannot_be_met_are_named():
    """Three pages every 10 s of a host that answers once a minute; a host that may not be asked at all."""
    one = np.ones(5)
    belief = GammaBelief(2 * one, 100 * one)
    demand = VisitDemand(OBJECTIVES["archive"], belief, one, one, 1.0, 10.0)
    host = np.array([0, 0, 0, 1, 2])
    limit = np.array([1 / 60, 50.0, 0.0])
    found = allocate_by_host(demand, host, limit, 1.0)
    assert [unmet.host for unmet in found.unmet] == [0, 2]
    assert found.unmet[0] == UnmetDemand(0, pytest.approx(0.3), pytest.approx(1 / 60))
    assert not found.feasible
    np.testing.assert_allclose(np.bincount(host, found.rate, 3), [1 / 60, 1 - 1 / 60, 0.0])
    assert found.host_price[[0, 2]].tolist() == [np.inf, np.inf]
    poor = allocate_by_host(demand, host, limit, 0.01)
    assert poor.unmet[-1] == UnmetDemand(None, pytest.approx(1 / 60 + 0.1), 0.01)
    assert poor.price == np.inf


def test_a_closed_host_of_pages_without_floors_is_no_failure():
    rate, weight, host, limit = instance(7)
    limit[2] = 0.0
    found = allocate_by_host(KnownRates(FRESH, rate, weight, np.ones(40)), host, limit, 2.0)
    assert found.feasible
    assert (found.rate[host == 2] == 0).all()
    assert found.rate.sum() == pytest.approx(2.0, rel=1e-9)
    nothing = allocate_by_host(KnownRates(FRESH, rate, weight, np.ones(40)), host, limit, 0.0)
    assert (nothing.price, nothing.rate.sum(), nothing.feasible) == (np.inf, 0.0, True)


def test_many_pages_begin_with_some_hosts(monkeypatch):
    rate, weight, host, limit = instance(8, 4_000, 200)
    budget = 0.3 * float(limit.sum())
    known = KnownRates(FRESH, rate, weight, np.ones(4_000))
    exact = allocate_by_host(known, host, limit, budget)
    monkeypatch.setattr(budget_price, "_HOST_SAMPLE", 500)
    quick = allocate_by_host(known, host, limit, budget)
    assert quick.price == pytest.approx(exact.price, rel=1e-6)
    assert quick.rate.sum() == pytest.approx(budget, rel=1e-9)
    assert fresh(rate, weight, quick.rate) == pytest.approx(fresh(rate, weight, exact.rate), rel=1e-9)


def test_nonsense_is_refused():
    rate, weight, host, limit = instance(9)
    known = KnownRates(FRESH, rate, weight, np.ones(40))
    with pytest.raises(ConfigError, match="budget"):
        allocate_by_host(known, host, limit, -1.0)
    with pytest.raises(ConfigError, match="limits"):
        allocate_by_host(known, host, -limit, 1.0)
