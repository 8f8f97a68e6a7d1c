"""The frontier against a model that looks at everything, and the promises it makes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from recrawl.schedule.frontier import Fetch, Frontier, Wait
from recrawl.schedule.politeness import Politeness, PolitenessRules

RULES = PolitenessRules(factor=2.0, shortest=1.0, longest=10.0, crawl_delay_cap=20.0)

pages = st.integers(0, 11)
hosts = st.integers(0, 3)
times = st.integers(0, 60).map(float)


class AgainstModel(RuleBasedStateMachine):
    """Every step is also taken by a dictionary that is searched from end to end."""

    @initialize(tidy=st.booleans())
    def start(self, tidy):
        self.frontier = Frontier(Politeness(RULES))
        self.politeness = self.frontier._politeness
        self.tidy = tidy
        self.offers = {}
        self.free = dict.fromkeys(range(4), -math.inf)
        self.delay = {}
        self.running = {}
        self.now = 0.0

    @rule(batch=st.lists(st.tuples(pages, hosts, times), max_size=6))
    def offer(self, batch):
        if self.tidy:
            self.frontier._pushed = 10_000
        columns = np.array(batch, dtype=float).reshape(-1, 3).T
        self.frontier.offer(columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2])
        self.offers.update({page: (due, host) for page, host, due in batch})

    @rule(chosen=st.lists(pages, max_size=3))
    def withdraw(self, chosen):
        self.frontier.withdraw(np.array(chosen, dtype=np.int64))
        for page in chosen:
            self.offers.pop(page, None)

    @rule(step=st.integers(0, 9).map(float))
    def pass_time(self, step):
        self.now += step

    @rule(host=hosts, until=times)
    def block(self, host, until):
        self.politeness.block_until(host, until)
        self.free[host] = max(self.free[host], until)

    @rule(host=hosts, delay=st.none() | st.integers(0, 30).map(float))
    def crawl_delay(self, host, delay):
        self.politeness.set_crawl_delay(host, delay)
        self.delay[host] = delay

    @rule()
    def step(self):
        answer = self.frontier.next(self.now)
        idle = {page: (due, host) for page, (due, host) in self.offers.items() if host not in self.running}
        moments = {page: max(due, self.free[host]) for page, (due, host) in idle.items()}
        can = [(due, page, host) for page, (due, host) in idle.items() if moments[page] <= self.now]
        if not can:
            assert answer == Wait(min(moments.values(), default=math.inf))
            return
        _, page, host = min(can)
        assert answer == Fetch(page, host)
        del self.offers[page]
        self.running[host] = page

    @precondition(lambda self: self.running)
    @rule(duration=st.integers(0, 8).map(float))
    def finish(self, duration):
        host, page = next(iter(self.running.items()))
        del self.running[host]
        self.frontier.done(page, host, self.now, duration)
        delay = self.delay.get(host)
        pause = min(max(2.0 * duration, 1.0), 10.0) if delay is None else max(min(delay, 20.0), 1.0)
        self.free[host] = max(self.free[host], self.now + pause)

    @invariant()
    def same_size(self):
        assert len(self.frontier) == len(self.offers)


AgainstModel.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestAgainstModel = AgainstModel.TestCase


@given(
    st.lists(st.tuples(hosts, times), min_size=1, max_size=40),
    st.floats(0.0, 5.0),
)
@settings(deadline=None)
def test_everything_offered_is_fetched_politely_and_in_order(rows, duration):
    frontier = Frontier(Politeness(RULES))
    host = np.array([row[0] for row in rows])
    due = np.array([row[1] for row in rows])
    frontier.offer(np.arange(len(rows)), host, due)
    log, now = [], 0.0
    while True:
        match frontier.next(now):
            case Fetch(page, asked):
                log.append((now, page, asked))
                assert now >= due[page]
                now += duration
                frontier.done(page, asked, now, duration)
            case Wait(until):
                if until == math.inf:
                    break
                assert until > now
                now = until
    assert sorted(page for _, page, _ in log) == list(range(len(rows)))
    pause = RULES.pause(duration, None)
    for one in set(host.tolist()):
        mine = [(start, page) for start, page, asked in log if asked == one]
        assert [page for _, page in mine] == sorted((page for _, page in mine), key=lambda page: (due[page], page))
        for (before, _), (after, _) in itertools.pairwise(mine):
            assert after >= before + duration + pause - 1e-9


def test_never_two_requests_to_one_host():
    frontier = Frontier(Politeness(RULES))
    frontier.offer(np.array([1, 2, 3]), np.array([7, 7, 8]), np.zeros(3))
    assert frontier.next(0.0) == Fetch(1, 7)
    assert frontier.next(0.0) == Fetch(3, 8)
    assert frontier.next(1e9) == Wait(math.inf)
    frontier.done(1, 7, 5.0, 0.0)
    assert frontier.next(5.0) == Wait(6.0)
    assert frontier.next(6.0) == Fetch(2, 7)


def test_a_page_that_is_never_due_waits_for_ever():
    frontier = Frontier(Politeness(RULES))
    frontier.offer(np.array([1]), np.array([7]), np.array([math.inf]))
    assert frontier.next(1e12) == Wait(math.inf)
    assert len(frontier) == 1


def test_wrong_calls_are_refused():
    frontier = Frontier(Politeness(RULES))
    with pytest.raises(ValueError, match="without a due time"):
        frontier.offer(np.array([1]), np.array([7]), np.array([math.nan]))
    with pytest.raises(ValueError, match="not being fetched"):
        frontier.done(1, 7, 0.0, 0.0)


def test_memory_does_not_grow_with_repeated_offers():
    frontier = Frontier(Politeness(RULES))
    ids = np.arange(100)
    for round_ in range(500):
        frontier.offer(ids, ids % 5, np.full(100, 1e6 - round_))
    entries = sum(len(queue) for queue in frontier._queue.values()) + len(frontier._waiting)
    assert entries < 5_000
