"""Due times against the known forms, prices against golden allocations and the conditions of an optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recrawl.errors import ConfigError
from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import GammaBelief
from recrawl.schedule.objectives import OBJECTIVES, AgeObjective, CapturedChanges, FreshnessObjective, HarmonicObjective
from recrawl.schedule.price.budget_price import allocate
from recrawl.schedule.price.due_times import VisitDemand, time_to_value
from recrawl.schedule.price.known_rates import freshness_rates, inverse_g

FIVE = np.arange(1.0, 6.0)
ONES = np.ones(5)


def demand(objective, belief, *, importance=None, cost=None, shortest=1e-4, longest=np.inf):  # noqa: PLR0913
    n = len(belief)
    weight = np.ones(n) if importance is None else importance
    return VisitDemand(objective, belief, weight, np.ones(n) if cost is None else cost, shortest, longest)


def population(n=200, seed=0):
    rng = np.random.default_rng(seed)
    belief = GammaBelief(rng.gamma(2.0, 1.0, n) + 0.2, np.exp(rng.normal(3.0, 1.5, n)))
    return belief, np.exp(rng.normal(0, 1, n)), np.exp(rng.normal(0, 0.3, n))


# -- due ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
@given(st.lists(st.tuples(st.floats(0.1, 20.0), st.floats(1e-2, 1e6), st.floats(1e-3, 1e3)), min_size=1, max_size=6))
@settings(deadline=None, max_examples=40)
def test_the_value_at_the_due_time_is_the_target(objective, rows):
    a, b, share = np.array(rows).T
    belief = GammaBelief(a, b)
    low, high = np.full(len(a), 1e-9), np.full(len(a), 1e12)
    most = objective.value(belief, high)
    target = np.minimum(objective.value(belief, share * b), most * (1 - 1e-9))  # at a plateau any time will do
    t = time_to_value(objective, belief, target, low, high)
    assert np.isfinite(t).all()
    np.testing.assert_allclose(objective.value(belief, t), target, rtol=1e-8)


def test_due_times_of_the_closed_forms():
    known = PointBelief(np.array([0.5, 2.0]))
    low, high = np.full(2, 1e-6), np.full(2, 1e9)
    y = np.array([0.3, 0.3])
    fresh = time_to_value(FreshnessObjective(), known, y / known.rate, low, high)
    np.testing.assert_allclose(fresh, inverse_g(y) / known.rate, rtol=1e-8)


def test_edges_of_the_search():
    known = PointBelief(np.array([1.0, 1.0, 1.0, 0.0]))
    target = np.array([1e-30, 0.999999, 2.0, 0.0])
    t = time_to_value(CapturedChanges(), known, target, np.full(4, 0.01), np.full(4, 100.0))
    assert t[0] == 0.01
    assert 0.01 < t[1] < 100.0
    assert t[2] == np.inf
    assert t[3] == np.inf


def test_worthless_pages_are_never_due_and_the_rest_at_once_for_nothing():
    some = demand(FreshnessObjective(), PointBelief(np.array([1.0, 1.0, 0.0])), importance=np.array([1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(some.intervals(0.0), [1e-4, np.inf, np.inf])
    np.testing.assert_array_equal(some.intervals(np.inf), [np.inf] * 3)


def test_brackets_give_the_same_intervals():
    belief, importance, cost = population()
    all_pages = demand(HarmonicObjective(), belief, importance=importance, cost=cost)
    low, middle, high = (all_pages.intervals(price) for price in (1.0, 3.0, 9.0))
    np.testing.assert_allclose(all_pages.intervals(3.0, low, high), middle, rtol=1e-9)


def test_impossible_intervals_are_refused():
    with pytest.raises(ConfigError, match="shortest"):
        demand(FreshnessObjective(), PointBelief(ONES), shortest=2.0, longest=1.0)


# -- price ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "rates"),
    [
        (FreshnessObjective(), [1.149892, 1.358412, 1.353835, 1.137860, 0.0]),
        (AgeObjective(), [0.834870, 0.967925, 1.033520, 1.070613, 1.093072]),
        (HarmonicObjective(), [0.716564, 0.920551, 1.044124, 1.128640, 1.190121]),
        (CapturedChanges(), FIVE / 3),
    ],
)
def test_golden_allocations(objective, rates):
    found = allocate(demand(objective, PointBelief(FIVE)), 5.0)
    np.testing.assert_allclose(found.rate, rates, atol=1e-6)
    assert found.rate.sum() == pytest.approx(5.0, rel=1e-9)


def test_golden_freshness():
    rates, price = freshness_rates(FIVE, ONES, ONES, 5.0)
    np.testing.assert_allclose(rates, [1.149892, 1.358412, 1.353835, 1.137860, 0.0], atol=1e-6)
    live = rates > 0
    fresh = (rates[live] / FIVE[live] * -np.expm1(-FIVE[live] / rates[live])).sum() / 5
    assert fresh == pytest.approx(0.3738887, abs=1e-7)
    assert allocate(demand(FreshnessObjective(), PointBelief(FIVE)), 5.0).price == pytest.approx(price, rel=1e-8)


@given(st.integers(0, 10**6), st.integers(2, 60), st.floats(0.01, 2.0))
@example(27817, 2, 0.015625)  # the budget is less than the last page asks for before it asks for nothing
@settings(deadline=None, max_examples=40)
def test_known_rates_agree_with_the_closed_form(seed, n, per_page):
    rng = np.random.default_rng(seed)
    rate, weight, cost = (np.exp(rng.normal(0, 1.5, n)) for _ in range(3))
    budget = per_page * float(cost.sum())
    expected, _ = freshness_rates(rate, weight, cost, budget)
    found = allocate(
        demand(FreshnessObjective(), PointBelief(rate), importance=weight, cost=cost, shortest=1e-9), budget
    )

    def reached(f):
        live = f > 0
        return float((weight[live] * f[live] / rate[live] * -np.expm1(-rate[live] / f[live])).sum())

    assert float((cost * found.rate).sum()) == pytest.approx(budget, rel=1e-9)
    assert reached(found.rate) == pytest.approx(reached(expected), rel=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_the_budget_is_met_and_every_page_is_worth_the_price_when_due(objective):
    belief, importance, cost = population()
    wanted = demand(objective, belief, importance=importance, cost=cost, shortest=0.5, longest=180.0)
    for budget in (2.5, 8.0, 60.0):
        found = allocate(wanted, budget)
        assert found.feasible
        assert float((cost * found.rate).sum()) == pytest.approx(budget, rel=1e-8)
        interval = 1 / found.rate
        worth = importance * objective.value(belief, interval) / cost
        inner = (interval > 0.5 * 1.0001) & (interval < 180 * 0.9999)
        np.testing.assert_allclose(worth[inner], found.price, rtol=1e-5)
        assert (worth[interval <= 0.5 * 1.0001] >= found.price * (1 - 1e-5)).all()
        assert (worth[found.hopeless] <= found.price * (1 + 1e-5)).all()


def test_boundaries():
    belief, importance, cost = population()
    wanted = demand(FreshnessObjective(), belief, importance=importance, cost=cost, shortest=0.5, longest=180.0)
    rich = allocate(wanted, 1e9)
    assert (rich.price, rich.feasible) == (0.0, True)
    np.testing.assert_array_equal(rich.rate, np.full(200, 2.0))
    poor = allocate(wanted, 1e-9)
    assert (poor.price, poor.feasible) == (np.inf, False)
    np.testing.assert_allclose(poor.rate, 1 / 180)
    nobody = allocate(demand(FreshnessObjective(), PointBelief(np.empty(0))), 1.0)
    assert (nobody.price, len(nobody.rate)) == (0.0, 0)
    still = allocate(demand(FreshnessObjective(), PointBelief(np.zeros(3))), 1.0)
    assert (still.price, still.rate.tolist(), still.feasible) == (0.0, [0.0] * 3, True)
    with pytest.raises(ConfigError, match="budget"):
        allocate(wanted, -1.0)


def test_no_longest_interval_and_no_budget():
    nothing = allocate(demand(FreshnessObjective(), PointBelief(FIVE)), 0.0)
    assert nothing.price == np.inf
    assert nothing.rate.tolist() == [0.0] * 5
    assert nothing.feasible


@given(st.floats(1e-3, 1e3))
@settings(deadline=None, max_examples=30)
def test_another_unit_of_time_only_rescales(factor):
    belief, importance, cost = population(30)
    scaled = GammaBelief(belief.a, belief.b * factor)
    one = allocate(demand(HarmonicObjective(), belief, importance=importance, cost=cost), 3.0)
    other = allocate(
        demand(HarmonicObjective(), scaled, importance=importance, cost=cost, shortest=1e-4 * factor), 3.0 / factor
    )
    np.testing.assert_allclose(other.rate * factor, one.rate, rtol=1e-6)
    assert other.price == pytest.approx(one.price * factor, rel=1e-6)


def test_more_importance_is_more_visits():
    belief, importance, cost = population()
    before = allocate(demand(FreshnessObjective(), belief, importance=importance, cost=cost), 8.0).rate
    importance = importance.copy()
    importance[7] *= 2
    assert allocate(demand(FreshnessObjective(), belief, importance=importance, cost=cost), 8.0).rate[7] > before[7]


def test_no_allocation_near_it_is_better():
    """Moving a little budget from any page to any other never gains freshness."""
    rng = np.random.default_rng(8)
    rate = np.exp(rng.normal(0, 1, 12))
    best = allocate(demand(FreshnessObjective(), PointBelief(rate)), 6.0).rate

    def reached(f):
        live = f > 0
        return float((f[live] / rate[live] * -np.expm1(-rate[live] / f[live])).sum())

    top = reached(best)
    for source in np.flatnonzero(best > 0.02):
        for goal in range(12):
            moved = best.copy()
            moved[source] -= 0.01
            moved[goal] += 0.01
            assert reached(moved) <= top + 1e-12
