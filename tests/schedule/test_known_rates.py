"""Prices of known rates: against brute force and a general convex solver, the conditions of an optimum, and edges."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from recrawl.errors import ConfigError
from recrawl.schedule.price import known_rates
from recrawl.schedule.price.budget_price import allocate, spread
from recrawl.schedule.price.known_rates import LAWS, KnownRates, freshness_rates, spend_by_bins

PENALISED = [name for name in LAWS if name != "lambda-complete"]


def population(n, seed=0, spread_of_rates=1.5):
    rng = np.random.default_rng(seed)
    return (np.exp(rng.normal(0, s, n)) for s in (spread_of_rates, 1.0, 0.5))


def solved_generally(law, rate, weight, cost, budget):
    """The least penalty that a solver for any smooth problem finds, started from uniform visits."""

    def penalty(f):
        return law.reached(rate, weight, np.maximum(f, 1e-9))

    start = np.full(len(rate), budget / cost.sum())
    return optimize.minimize(
        penalty,
        start,
        method="SLSQP",
        bounds=[(1e-9, None)] * len(rate),
        constraints={"type": "ineq", "fun": lambda f: budget - (cost * f).sum()},
        options={"maxiter": 500, "ftol": 1e-13},
    ).fun


@pytest.mark.parametrize("name", PENALISED)
@pytest.mark.parametrize("seed", range(3))
def test_no_worse_than_a_general_solver(name, seed):
    rate, weight, cost = population(6, seed, 1.0)
    budget = float(cost.sum()) * (0.3, 1.0, 4.0)[seed]
    found = allocate(KnownRates(LAWS[name], rate, weight, cost), budget)
    reached = LAWS[name].reached(rate, weight, np.maximum(found.rate, 1e-9))
    assert float((cost * found.rate).sum()) == pytest.approx(budget, rel=1e-9)
    assert reached <= solved_generally(LAWS[name], rate, weight, cost, budget) + 1e-7


@pytest.mark.parametrize("name", ["freshness", "changes", "archive", "age"])
def test_no_worse_than_brute_force(name):
    """All ways to give three pages whole hundredths of the budget."""
    law, rate, weight, one = LAWS[name], np.array([0.3, 1.0, 5.0]), np.array([1.0, 2.0, 1.0]), np.ones(3)
    shares = np.array([(a, b, 100 - a - b) for a, b in itertools.product(range(101), repeat=2) if a + b <= 100]) / 100
    for budget in (0.2, 1.0, 5.0):
        best = min(law.reached(rate, weight, np.maximum(budget * share, 1e-9)) for share in shares)
        found = allocate(KnownRates(law, rate, weight, one), budget).rate
        assert law.reached(rate, weight, np.maximum(found, 1e-9)) <= best + 1e-9


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("n", [50, 30_000])
def test_the_conditions_of_an_optimum_hold_at_the_price(name, n):
    law = LAWS[name]
    rate, weight, cost = population(n)
    budget = 0.3 * float(cost.sum() if name != "lambda-complete" else (cost * rate).sum())
    known = KnownRates(law, rate, weight, cost)
    found = allocate(known, budget)
    assert float((cost * found.rate).sum()) == pytest.approx(budget, rel=1e-9)
    live = found.rate > 0
    pace = known.pace
    with np.errstate(divide="ignore"):
        x = rate / found.rate
    inner = live & (x > law.soonest * 1.0001) & (x < 30)  # beyond, one step of float64 is many of x
    np.testing.assert_allclose(law.value(x[inner]) / pace[inner], found.price, rtol=3e-5)
    assert (pace[~live] * found.price >= 1 - 1e-5).all()
    np.testing.assert_array_equal(found.hopeless[~live], True)
    assert found.hopeless.any() == law.drops


@pytest.mark.parametrize("name", PENALISED)
def test_bins_are_as_good_as_a_full_solve(name):
    rate, weight, cost = population(30_000)
    budget = 0.1 * float((cost * rate).sum())
    known = KnownRates(LAWS[name], rate, weight, cost)
    price, rates = spend_by_bins(known, budget)
    full = allocate(KnownRates(LAWS[name], rate, weight, cost, most=1e12), budget)  # a ceiling: every page is asked
    assert price == pytest.approx(full.price, rel=1e-5)
    penalty = [LAWS[name].reached(rate, weight, np.maximum(f, 1e-12)) for f in (rates, full.rate)]
    assert penalty[0] <= penalty[1] * (1 + 1e-9)


def test_without_compiled_code_the_numbers_are_the_same(monkeypatch):
    rate, weight, cost = population(30_000)
    rate[:7], weight[7:9] = 0.0, 0.0
    for name in ("freshness", "harmonic", "lambda-complete"):
        known = KnownRates(LAWS[name], rate, weight, cost)
        budget = 0.1 * float((cost * rate).sum())
        fast = allocate(known, budget)
        with monkeypatch.context() as without:
            without.setattr(known_rates, "can_compile", lambda: False)
            slow = allocate(known, budget)
        assert slow.price == pytest.approx(fast.price, rel=1e-10)
        np.testing.assert_allclose(slow.rate, fast.rate, rtol=1e-8, atol=1e-12)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), per_page=st.floats(0.01, 3.0))
@settings(deadline=None, max_examples=40)
def test_small_instances_meet_the_budget_and_the_full_precision_solve(seed, n, per_page):
    rate, weight, cost = population(n, seed)
    budget = per_page * float(cost.sum())
    expected, _ = freshness_rates(rate, weight, cost, budget)
    found = allocate(KnownRates(LAWS["freshness"], rate, weight, cost), budget)
    law = LAWS["freshness"]
    assert float((cost * found.rate).sum()) == pytest.approx(budget, rel=1e-9)
    assert law.reached(rate, weight, found.rate) <= law.reached(rate, weight, expected) + 1e-9


@given(seed=st.integers(0, 10**6), name=st.sampled_from(PENALISED), more=st.floats(1.0, 3.0))
@settings(deadline=None, max_examples=40)
def test_more_budget_is_never_worse(seed, name, more):
    rate, weight, cost = population(20, seed)
    known, law = KnownRates(LAWS[name], rate, weight, cost), LAWS[name]
    less, richer = (allocate(known, budget) for budget in (4.0, 4.0 * more))
    assert richer.price <= less.price * (1 + 1e-9)
    reached = [law.reached(rate, weight, np.maximum(one.rate, 1e-9)) for one in (less, richer)]
    assert reached[1] <= reached[0] + 1e-9


@given(seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=30)
def test_hotter_is_never_later_under_age(seed):
    rng = np.random.default_rng(seed)
    rate = np.sort(np.exp(rng.normal(0, 2, 30)))
    found = allocate(KnownRates(LAWS["age"], rate, np.ones(30), np.ones(30)), 10.0).rate
    assert (np.diff(found) >= -1e-9 * found[1:]).all()


@pytest.mark.parametrize("name", LAWS)
@given(factor=st.floats(1e-6, 1e6))
@settings(deadline=None, max_examples=15)
def test_another_unit_of_time_only_rescales(name, factor):
    rate, weight, cost = population(30)
    one = allocate(KnownRates(LAWS[name], rate, weight, cost), 3.0)
    other = allocate(KnownRates(LAWS[name], rate * factor, weight, cost), 3.0 * factor)
    np.testing.assert_allclose(other.rate / factor, one.rate, rtol=1e-6, atol=1e-9)
    assert other.price * factor ** LAWS[name].power == pytest.approx(one.price, rel=1e-6)


def test_the_order_of_pages_does_not_matter():
    rate, weight, cost = population(25_000)
    mixed = np.random.default_rng(3).permutation(25_000)
    one = allocate(KnownRates(LAWS["archive"], rate, weight, cost), 900.0)
    other = allocate(KnownRates(LAWS["archive"], rate[mixed], weight[mixed], cost[mixed]), 900.0)
    np.testing.assert_allclose(other.rate, one.rate[mixed], rtol=1e-6)


@pytest.mark.parametrize("name", LAWS)
def test_degenerate_populations(name):
    law, one = LAWS[name], np.ones(4)
    equal = allocate(KnownRates(law, 2 * one, one, one), 4.0)
    np.testing.assert_allclose(equal.rate, 1.0, rtol=1e-6)
    single = allocate(KnownRates(law, np.array([3.0]), np.ones(1), np.ones(1)), 0.5)
    np.testing.assert_allclose(single.rate, 0.5, rtol=1e-9)
    still = allocate(KnownRates(law, np.array([0.0, 1.0]), np.ones(2), np.ones(2)), 0.5)
    np.testing.assert_allclose(still.rate, [0.0, 0.5], rtol=1e-9)
    nobody = allocate(KnownRates(law, 0 * one, one, one), 1.0)
    assert (nobody.price, nobody.rate.tolist(), nobody.feasible) == (0.0, [0.0] * 4, True)
    worthless = allocate(KnownRates(law, one, 0 * one, one), 1.0)
    assert worthless.rate.tolist() == [0.0] * 4
    broke = allocate(KnownRates(law, one, one, one), 0.0)
    assert (broke.price, broke.rate.tolist(), broke.feasible) == (np.inf, [0.0] * 4, True)
    huge = allocate(KnownRates(law, np.array([1e-12, 1.0, 1e12]), np.ones(3), np.ones(3)), 1.0)
    assert huge.rate.sum() == pytest.approx(1.0, rel=1e-9)
    assert len(allocate(KnownRates(law, np.empty(0), np.empty(0), np.empty(0)), 1.0).rate) == 0


def test_floors_and_ceilings_are_inside_the_sum():
    rate, weight, cost = population(400)
    known = KnownRates(LAWS["freshness"], rate, weight, cost, least=0.05, most=0.8)
    budget = 0.3 * float(cost.sum())
    found = allocate(known, budget)
    assert float((cost * found.rate).sum()) == pytest.approx(budget, rel=1e-9)
    assert ((found.rate >= 0.05) & (found.rate <= 0.8)).all()
    x = rate / found.rate
    inner = (found.rate > 0.0501) & (found.rate < 0.799)
    worth = LAWS["freshness"].value(x) / known.pace
    np.testing.assert_allclose(worth[inner], found.price, rtol=1e-6)
    assert (worth[found.rate >= 0.799] >= found.price * (1 - 1e-6)).all()
    assert (worth[found.rate <= 0.0501] <= found.price * (1 + 1e-6)).all()
    rich = allocate(known, 1e9)
    assert (rich.price, set(rich.rate.tolist())) == (0.0, {0.8})
    poor = allocate(known, 1e-9)
    assert (poor.price, poor.feasible, set(poor.rate.tolist())) == (np.inf, False, {0.05})


def test_one_table_serves_all_laws_of_a_kind():
    assert known_rates.table(LAWS["freshness"]) is known_rates.table(LAWS["freshness"])


def test_wrong_calls_are_refused():
    one = np.ones(1)
    with pytest.raises(ConfigError, match="least"):
        KnownRates(LAWS["age"], one, one, one, least=2.0, most=1.0)
    with pytest.raises(ConfigError, match="budget"):
        allocate(KnownRates(LAWS["age"], one, one, one), -1.0)


@given(st.integers(1, 10**7), st.floats(0.0, 1.0))
def test_a_spread_is_ascending_and_inside(n, share):
    places = spread(n, max(1, min(int(n * share), 1000)))
    assert (np.diff(places) >= 0).all()
    assert places[0] >= 0
    assert places[-1] < n
