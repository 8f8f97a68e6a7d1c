"""What a budget keeps, and the questions the other way round; slots that fit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import ConfigError
from recrawl.model import GammaBelief
from recrawl.plan.budget_outcome import (
    HostVisitLimits,
    RequestCosts,
    budget_for,
    fill_slots,
    keep,
    keep_at_rates,
    keep_many,
    machines_for,
)
from recrawl.schedule.objectives import OBJECTIVES
from recrawl.schedule.price.due_times import VisitDemand
from recrawl.time import DAY, HOUR


def demand_of(n=60, seed=0, objective="archive", longest=180 * DAY, importance=None):
    rng = np.random.default_rng(seed)
    rate = rng.lognormal(np.log(0.1), 1.5, n) / DAY
    shape = rng.uniform(2.0, 40.0, n)
    weight = np.ones(n) if importance is None else importance
    return VisitDemand(OBJECTIVES[objective], GammaBelief(shape, shape / rate), weight, np.ones(n), HOUR, longest)


def repeated(demand, times):
    return demand.take(np.tile(np.arange(len(demand)), times))


@pytest.mark.parametrize("objective", ["archive", "freshness", "changes", "age"])
def test_more_budget_keeps_more(objective):
    demand = demand_of(objective=objective)
    kept = [keep(demand, n / DAY) for n in (2.0, 5.0, 20.0, 100.0)]
    assert all(one.spending == pytest.approx(n / DAY, rel=1e-3) for one, n in zip(kept, (2, 5, 20, 100), strict=True))
    assert [one.freshness for one in kept] == sorted(one.freshness for one in kept)
    assert [one.found for one in kept] == sorted(one.found for one in kept)
    assert all(0 <= one.recall <= 1 and one.found <= one.happening for one in kept)


def test_links_wait_half_an_interval_and_less_where_visits_go_to_where_they_come():
    demand = demand_of(objective="links", longest=math.inf)
    even = keep_at_rates(demand, np.full(len(demand), 0.5 / DAY))
    assert even.delay == pytest.approx(DAY)
    # The square-root law: w·ν·τ² is the same for all pages.
    best = keep(demand, len(demand) * 0.5 / DAY)
    rate = demand.belief.mean()
    assert best.delay == pytest.approx(DAY * np.sqrt(rate).sum() ** 2 / (len(demand) * rate.sum()), rel=1e-3)
    assert best.delay < 0.8 * even.delay


def test_the_best_rates_keep_more_than_equal_ones():
    demand = demand_of(objective="freshness", longest=math.inf)
    even = keep_at_rates(demand, np.full(len(demand), 10 / DAY / len(demand)))
    assert keep(demand, 10 / DAY).freshness > even.freshness
    changes = demand_of(objective="changes", longest=math.inf)
    assert keep(changes, 10 / DAY).found > even.found


def test_freshness_is_that_of_a_known_rate():
    """A page of rate λ visited every τ is current (1 − e^{−λτ})/(λτ) of the time (Cho and Garcia-Molina)."""
    sharp = GammaBelief(np.full(3, 1e7), np.full(3, 1e7 * DAY))
    demand = VisitDemand(OBJECTIVES["freshness"], sharp, np.ones(3), np.ones(3), HOUR, 180 * DAY)
    kept = keep_at_rates(demand, np.full(3, 0.5 / DAY))
    assert kept.freshness == pytest.approx((1 - math.exp(-2)) / 2, rel=1e-5)
    assert kept.recall == pytest.approx((1 - math.exp(-2)) / 2, rel=1e-5)
    assert kept.happening * DAY == pytest.approx(3.0)


@given(st.integers(0, 200), st.floats(0.3, 0.97), st.sampled_from(["freshness", "recall"]))
@settings(deadline=None, max_examples=25)
def test_the_budget_for_a_goal_reaches_it_and_hardly_less_does(seed, goal, which):
    demand = demand_of(30, seed)
    found = budget_for(demand, goal, which)
    if found is None:
        best = keep_at_rates(demand, np.full(len(demand), 1 / HOUR))
        assert best.measure(which) < goal
        return
    assert found.measure(which) >= goal
    assert keep(demand, found.spending).measure(which) == pytest.approx(found.measure(which), abs=2e-3)
    if found.price < math.inf:
        assert keep(demand, found.spending * 0.97).measure(which) < goal + 1e-3


def test_many_pages_of_a_kind_are_these_scaled():
    demand = demand_of(40)
    thrice = keep(repeated(demand, 3), 30 / DAY)
    scaled = keep_many(demand, 30 / DAY, 120)
    for part in ("spending", "price", "freshness", "found", "happening", "recall", "hopeless"):
        assert getattr(scaled, part) == pytest.approx(getattr(thrice, part), rel=1e-3)


def test_what_a_host_cannot_take_is_spent_elsewhere():
    demand, host = demand_of(60), np.repeat([0, 1], 30)
    free = HostVisitLimits(host, np.array([math.inf, math.inf]))
    assert keep(demand, 20 / DAY, free).freshness == pytest.approx(keep(demand, 20 / DAY).freshness, rel=1e-4)
    tight = keep(demand, 20 / DAY, HostVisitLimits(host, np.array([2 / DAY, math.inf])))
    assert tight.freshness < keep(demand, 20 / DAY).freshness
    assert tight.spending == pytest.approx(20 / DAY, rel=1e-3)
    assert tight.price < keep(demand, 20 / DAY).price


def test_machines_follow_from_the_goal():
    demand = demand_of(40)
    one = machines_for(demand, 0.9, "freshness", 50 / DAY, 1_000)
    assert keep_many(demand, 50 / DAY, one.pages).freshness == pytest.approx(0.9, abs=2e-3)
    assert one.needed == pytest.approx(1_000 / one.pages)
    assert one.spending == pytest.approx(one.needed * 50 / DAY)
    assert machines_for(demand, 1.0, "freshness", 50 / DAY, 1_000) is None
    with pytest.raises(ConfigError, match="keeps nothing"):
        machines_for(demand, 0.9, "freshness", 0.0, 1_000)


def test_goals_are_shares():
    with pytest.raises(ConfigError, match="not possible"):
        budget_for(demand_of(), 1.5)
    assert budget_for(demand_of(), 0.0).price == math.inf


def test_important_pages_weigh_more():
    weight = np.ones(60)
    weight[:30] = 20.0
    demand = demand_of(importance=weight)
    plain = demand_of()
    assert keep(demand, 5 / DAY).freshness != pytest.approx(keep(plain, 5 / DAY).freshness, rel=1e-3)


# -- slots -------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.floats(-500, 6_000), st.integers(0, 3)), max_size=120),
    st.integers(1, 6),
    st.integers(1, 4),
    st.floats(0.3, 1.0),
)
@settings(deadline=None)
def test_every_slot_fits_and_nothing_is_fetched_early_or_lost(pages, count, threads, fill):
    due = np.array([when for when, _ in pages], dtype=float)
    host = np.array([h for _, h in pages], dtype=np.int64)
    turns = RequestCosts(np.array([1.0, 2.0, 5.0, 40.0]), np.array([20.0, 10.0, 100.0, 1_500.0]))
    slots = fill_slots(due, host, turns, start=0.0, length=1_000.0, count=count, concurrency=threads, fill=fill)
    assert ((slots.slot + 1) * 1_000.0 >= due[slots.page]).all()
    everything = np.sort(np.concatenate([slots.page, slots.unplaced]))
    assert everything.tolist() == np.flatnonzero(due < count * 1_000.0).tolist()
    assert slots.pages.tolist() == np.bincount(slots.slot, minlength=count).tolist()
    for number in range(count):
        taken = host[slots.page[slots.slot == number]]
        asked = np.bincount(taken, minlength=4)
        # A host that takes longer than the slot for one request gets one all the same.
        assert ((asked * turns.turn <= 1_000.0 * fill + 1e-9) | (asked <= 1)).all()
        work = turns.seconds[taken].sum()
        assert work <= max(threads * 1_000.0 * fill, turns.seconds.max()) + 1e-9


def test_what_waits_goes_before_what_falls_due_later():
    turns = RequestCosts(np.array([1.0]), np.array([10.0]))
    due = np.array([5.0, 0.0, 40.0, 120.0, 130.0])
    slots = fill_slots(due, np.zeros(5, np.int64), turns, start=0.0, length=100.0, count=3, concurrency=1, fill=0.2)
    assert slots.page.tolist() == [1, 0, 2, 3, 4]
    assert slots.slot.tolist() == [0, 0, 1, 1, 2]
    assert slots.moved.tolist() == [0, 1, 1]
    assert slots.full.tolist() == [0.2, 0.2, 0.1]


@given(st.lists(st.tuples(st.floats(-500, 3_000), st.floats(50, 4_000)), min_size=1, max_size=20), st.integers(1, 9))
@settings(deadline=None, max_examples=30)
def test_pages_come_again_an_interval_after_each_visit(pages, count):
    due, every = np.array(pages).T
    turns = RequestCosts(np.array([1.0]), np.array([1.0]))
    slots = fill_slots(due, np.zeros(len(due), np.int64), turns, start=0.0, length=1_000.0, count=count, concurrency=9,
                       interval=every)  # fmt: skip
    assert not slots.moved.any()
    for page, (first, interval) in enumerate(pages):
        expected, at = [], max(first, 0.0)
        while at < count * 1_000.0:
            expected.append(int(at // 1_000.0))
            at = max(at + interval, (expected[-1] + 1) * 1_000.0)
        assert slots.slot[slots.page == page].tolist() == expected


def test_a_page_that_had_to_wait_is_due_again_after_it_was_fetched():
    turns = RequestCosts(np.array([1.0]), np.array([10.0]))
    slots = fill_slots(np.zeros(2), np.zeros(2, np.int64), turns, start=0.0, length=10.0, count=6, concurrency=1,
                       fill=1.0, interval=25.0)  # fmt: skip
    assert slots.page.tolist() == [0, 1, 0, 1, 0]
    assert slots.slot.tolist() == [0, 1, 2, 3, 5]
    assert slots.unplaced.tolist() == []


def test_slots_without_pages_or_sense():
    turns = RequestCosts(np.ones(1), np.ones(1))
    nothing = fill_slots(np.empty(0), np.empty(0, np.int64), turns, start=0.0, length=1.0, count=2, concurrency=1)
    assert nothing.pages.tolist() == [0, 0]
    with pytest.raises(ConfigError, match="slots"):
        fill_slots(np.empty(0), np.empty(0, np.int64), turns, start=0.0, length=0.0, count=2, concurrency=1)
