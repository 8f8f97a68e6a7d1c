"""Newcomers wait in line, so that coming back is never crowded out."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model import Outcome, Pages, Verdict, Visits
from recrawl.schedule.frontier.revisit_scheduler import NewPageQueue, RevisitScheduler
from recrawl.schedule.policies.policy_registry import POLICIES
from recrawl.time import DAY, HOUR

BUDGET = 1_000 / DAY


@given(
    st.floats(0.05, 1.0),
    st.floats(0.0, 5_000.0),
    st.lists(st.tuples(st.floats(0, 900), st.integers(0, 9)), max_size=30),
)
def test_no_more_fall_due_than_their_share_of_the_budget(share, burst, groups):
    line = NewPageQueue(share, burst)
    line.begin(np.empty(0, np.int64), BUDGET, 0.0)
    now, turns = 0.0, []
    for wait, count in groups:
        now += wait
        page = np.arange(len(turns), len(turns) + count)
        line.join(page, now)
        line.join(page, now)  # once more, as a second link to them might
        turn = line.due(page)
        assert (turn >= now).all()
        turns += turn.tolist()
    assert turns == sorted(turns)
    rate = share * BUDGET
    for first in range(len(turns)):
        spans = np.array(turns[first:]) - turns[first]
        assert (np.arange(len(spans)) <= rate * (spans + burst) + 1e-6).all()


def test_nobody_is_due_where_newcomers_get_nothing():
    line = NewPageQueue(0.0, HOUR)
    line.begin(np.array([4]), BUDGET, 0.0)
    line.join(np.array([5]), 0.0)
    assert line.due(np.array([4, 5, 6])).tolist() == [math.inf, math.inf, -math.inf]


def told(pages: int, seen: int, **settings) -> RevisitScheduler:
    scheduler = RevisitScheduler(
        POLICIES["valued-archive"](), budget=BUDGET, new_page_queue=NewPageQueue(0.5, HOUR), **settings
    )
    scheduler.add(Pages.of(np.arange(pages), discovered=np.zeros(pages)))
    scheduler.tell(
        Visits.of(
            np.arange(seen), np.full(seen, 60.0), outcome=[Outcome.FETCHED] * seen, verdict=[Verdict.UNKNOWN] * seen
        )
    )
    return scheduler


def test_a_flood_of_new_pages_leaves_half_of_the_budget_for_coming_back():
    scheduler, now = told(5_000, 500), 2 * DAY
    page = np.arange(5_000)
    scheduler.rebuild_new_page_queue(page, now)
    scheduler.fit(now)
    due = np.maximum(scheduler.due(page, now), now)
    assert np.count_nonzero(due[500:] <= now + DAY) == pytest.approx(0.5 * BUDGET * (DAY + HOUR), abs=2)
    assert (np.diff(due[500:]) >= 0).all()
    assert scheduler.due(np.array([600]), now) == due[600]  # asking is no joining


def test_who_was_seen_leaves_the_line_and_who_is_found_joins_it():
    scheduler, now = told(600, 500), 2 * DAY
    scheduler.rebuild_new_page_queue(np.arange(600), now)
    last = np.array([599])
    assert scheduler.due(last, now) > now
    scheduler.tell(Visits.of(last, np.array([now + 1.0]), outcome=[Outcome.FETCHED], verdict=[Verdict.UNKNOWN]))
    scheduler.fit(now + 2.0)
    plain = scheduler.policy.due(last, now + 2.0)
    assert scheduler.due(last, now + 2.0) == plain
    scheduler.add(Pages.of([600, 601], discovered=[now, now]))
    assert scheduler.enqueue_new_pages(np.array([0, 600, 601]), now).tolist() == [600, 601]
    assert scheduler.due(np.array([601]), now) > scheduler.due(np.array([598]), now)


def test_without_a_line_new_pages_are_due_at_once():
    scheduler = RevisitScheduler(POLICIES["uniform"](), budget=BUDGET)
    scheduler.add(Pages.of([1, 2], discovered=[0.0, 0.0]))
    scheduler.rebuild_new_page_queue(np.array([1, 2]), 5.0)
    assert scheduler.enqueue_new_pages(np.array([1, 2]), 5.0).tolist() == []
    assert scheduler.due(np.array([1, 2]), 5.0).tolist() == [0.0, 0.0]


def test_another_budget_asks_for_a_fit_and_makes_the_line_faster():
    scheduler, now = told(2_000, 0), DAY
    scheduler.rebuild_new_page_queue(np.arange(2_000), now)
    scheduler.fit(now)
    assert scheduler.fit_at > now
    slow = scheduler.due(np.array([1_999]), now)
    scheduler.change_budget(10 * BUDGET, discovery_share=1.0, burst=0.0)
    assert scheduler.fit_at <= now
    scheduler.rebuild_new_page_queue(np.arange(2_000), now)
    scheduler.fit(now)  # all of it goes to newcomers
    assert scheduler.due(np.array([1_999]), now)[0] - now == pytest.approx((slow[0] - now + HOUR) / 20, rel=0.01)
