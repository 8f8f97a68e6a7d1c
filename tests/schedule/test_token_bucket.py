"""The allowance: a budget is never exceeded, over restarts and beside others."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.schedule.frontier.token_bucket import VisitTokenBucket, memory, replayed
from recrawl.time import DAY, HOUR

gaps = st.lists(st.floats(0.0, 50.0), min_size=1, max_size=80)
budgets = st.floats(0.01, 3.0)
bursts = st.floats(0.0, 100.0)


@given(budgets, bursts, gaps)
def test_no_span_holds_more_visits_than_the_budget_and_what_was_saved_up(budget, burst, waits):
    allowance = replayed(budget, burst, np.empty(0), 0.0)
    began, now = [], 0.0
    for wait in waits:
        now += wait
        while allowance.take(now):
            began.append(now)
    times, capacity = np.array(began), max(budget * burst, 1.0)
    for first in range(len(times)):
        spans = times[first:] - times[first]
        assert (np.arange(1, len(spans) + 1) <= capacity + budget * spans + 1e-6).all()


@given(budgets, bursts, gaps, st.integers(0, 80))
def test_a_restart_neither_earns_nor_loses_once_the_allowance_was_full(budget, burst, waits, at):
    """Replaying the visits gives the level that was there: the fold begins empty, long enough before."""
    allowance = replayed(budget, burst, np.empty(0), 0.0)
    assert math.isclose(allowance.left(0.0), allowance.capacity)
    began, now = [], 0.0
    for wait in waits[: at + 1]:
        now += wait
        if allowance.take(now):
            began.append(now)
    again = replayed(budget, burst, np.array(began), now)
    assert again.left(now) <= allowance.left(now) + 1e-6
    if now < memory(budget, burst) / 2:
        assert math.isclose(again.left(now), allowance.left(now), abs_tol=1e-6)


def test_what_is_missing_is_told_and_waited_for():
    allowance = VisitTokenBucket(budget=10 / HOUR, capacity=10.0, level=0.0, at=0.0)
    assert not allowance.take(0.0)
    assert allowance.next_at(0.0) == 360.0
    assert allowance.next_at(0.0, 11.0) == math.inf
    assert allowance.take(360.0)
    allowance.give_back()
    assert allowance.take(360.0)
    assert not allowance.take(360.0)


def test_visits_of_others_count_but_leave_no_debt():
    crowd = np.sort(np.random.default_rng(1).uniform(0.0, HOUR, 5_000))
    assert replayed(1_000 / DAY, HOUR, crowd, HOUR).left(HOUR) < 1.0
    assert replayed(1_000 / DAY, HOUR, crowd, HOUR + 120.0).take(HOUR + 120.0)


def test_another_budget_holds_at_once_and_a_clock_that_went_back_earns_nothing():
    allowance = replayed(100 / HOUR, HOUR, np.empty(0), 1e6)
    allowance.change(10 / HOUR, 10.0, 1e6)
    assert allowance.left(1e6) == 10.0
    assert allowance.left(1e6 - HOUR) == 10.0
    allowance.change(0.0, 0.0, 1e6)
    assert allowance.take(1e6)
    assert not allowance.take(1e6 + DAY)
    assert allowance.next_at(1e6) == math.inf
