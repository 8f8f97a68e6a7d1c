"""The frontier against a model that looks at everything, and the promises it makes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.model.compiled import can_compile
from recrawl.schedule.frontier.host_frontier import FetchNow, Frontier, HeapQueues, WaitUntil
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules

RULES = PolitenessRules(factor=2.0, shortest=1.0, longest=10.0, crawl_delay_cap=20.0)

PAGES, HOSTS = 10, 4
LARGE = [pytest.param(10**9, id="heaps"), pytest.param(1, id="columns"), pytest.param(5, id="moved")]
"""Heaps for ever, columns from the start, and columns after a few pages."""

hosts = st.integers(0, 3)
times = st.integers(0, 60).map(float)


class Model:
    """The frontier beside a dictionary that is searched from end to end at every step."""

    def __init__(self, *, tidy, large):
        self.politeness = Politeness(RULES)
        self.frontier = Frontier(self.politeness, large=large)
        self.tidy = tidy
        self.offers = {}
        self.free = dict.fromkeys(range(HOSTS), -math.inf)
        self.delay = {}
        self.running = {}
        self.now = 0.0
        self.fetched = 0

    def offer(self, rng):
        n = rng.integers(1, 6)
        page, host = rng.integers(0, PAGES, n), rng.integers(0, HOSTS, n)
        due = np.floor(self.now + rng.integers(-6, 7, n))
        if self.tidy and isinstance(self.frontier._queues, HeapQueues):
            self.frontier._queues._pushed = 10_000
        self.frontier.offer(page, host, due)
        self.offers.update(zip(page.tolist(), zip(due.tolist(), host.tolist(), strict=True), strict=True))

    def withdraw(self, rng):
        page = rng.integers(0, PAGES, 2)
        self.frontier.withdraw(page)
        for one in page.tolist():
            self.offers.pop(one, None)

    def block(self, rng):
        host, until = int(rng.integers(0, HOSTS)), self.now + float(rng.integers(0, 9))
        self.politeness.block_until(host, until)
        self.free[host] = max(self.free[host], until)

    def crawl_delay(self, rng):
        host, delay = int(rng.integers(0, HOSTS)), [None, 0.0, 2.0, 5.0, 30.0][rng.integers(0, 5)]
        self.politeness.set_crawl_delay(host, delay)
        self.delay[host] = delay

    def pass_time(self, rng):
        self.now += float(rng.integers(0, 5))

    def ask(self, rng):
        answer = self.frontier.next(self.now)
        idle = {page: (due, host) for page, (due, host) in self.offers.items() if host not in self.running}
        moments = {page: max(due, self.free[host]) for page, (due, host) in idle.items()}
        can = [(due, page, host) for page, (due, host) in idle.items() if moments[page] <= self.now]
        if not can:
            assert answer == WaitUntil(min(moments.values(), default=math.inf))
            return
        _, page, host = min(can)
        assert answer == FetchNow(page, host)
        del self.offers[page]
        self.running[host] = page
        self.fetched += 1

    def finish(self, rng):
        if not self.running:
            return
        host = int(rng.choice(list(self.running)))
        duration = float(rng.integers(0, 4))
        self.frontier.done(self.running.pop(host), host, self.now, duration)
        delay = self.delay.get(host)
        pause = min(max(2.0 * duration, 1.0), 10.0) if delay is None else max(min(delay, 20.0), 1.0)
        self.free[host] = max(self.free[host], self.now + pause)

    def give_back(self, rng):
        if not self.running:
            return
        host = int(rng.choice(list(self.running)))
        page, until, due = self.running.pop(host), self.now + float(rng.integers(0, 4)), self.now - 1.0
        self.frontier.give_back(page, host, due, until)
        self.offers[page] = due, host
        self.free[host] = max(self.free[host], until)


@pytest.mark.slow
@pytest.mark.parametrize("large", LARGE)
@given(seed=st.integers(0, 2**32), tidy=st.booleans())
@settings(deadline=None, max_examples=60)
def test_every_step_is_that_of_a_model_that_looks_at_everything(large, seed, tidy):
    rng = np.random.default_rng(seed)
    model = Model(tidy=tidy, large=large)
    steps = [model.offer, model.withdraw, model.block, model.crawl_delay, model.pass_time, model.ask, model.finish]
    steps.append(model.give_back)
    for step in rng.choice(len(steps), 250, p=[0.12, 0.06, 0.06, 0.04, 0.2, 0.32, 0.15, 0.05]):
        steps[step](rng)
        assert len(model.frontier) == len(model.offers)
    assert model.fetched > 5


@pytest.mark.parametrize("large", LARGE)
@given(
    rows=st.lists(st.tuples(hosts, times), min_size=1, max_size=40),
    duration=st.floats(0.0, 5.0),
)
@settings(deadline=None)
def test_everything_offered_is_fetched_politely_and_in_order(large, rows, duration):
    frontier = Frontier(Politeness(RULES), large=large)
    host = np.array([row[0] for row in rows])
    due = np.array([row[1] for row in rows])
    frontier.offer(np.arange(len(rows)), host, due)
    log, now = [], 0.0
    while True:
        match frontier.next(now):
            case FetchNow(page, asked):
                log.append((now, page, asked))
                assert now >= due[page]
                now += duration
                frontier.done(page, asked, now, duration)
            case WaitUntil(until):
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


@pytest.mark.parametrize("large", LARGE)
def test_never_two_requests_to_one_host(large):
    frontier = Frontier(Politeness(RULES), large=large)
    frontier.offer(np.array([1, 2, 3]), np.array([7, 7, 8]), np.zeros(3))
    assert frontier.next(0.0) == FetchNow(1, 7)
    assert frontier.next(0.0) == FetchNow(3, 8)
    assert frontier.next(1e9) == WaitUntil(math.inf)
    frontier.done(1, 7, 5.0, 0.0)
    assert frontier.next(5.0) == WaitUntil(6.0)
    assert frontier.next(6.0) == FetchNow(2, 7)


def two_ready_hosts(large):
    """Pages 1 and 2 of host 7 and page 3 of host 8, all due; host 8's is taken, so host 7 is known to be ready."""
    frontier = Frontier(Politeness(RULES), large=large)
    frontier.offer(np.array([1, 2, 3]), np.array([7, 7, 8]), np.array([5.0, 6.0, 0.0]))
    assert frontier.next(10.0) == FetchNow(3, 8)
    return frontier


@pytest.mark.parametrize("large", LARGE)
def test_a_host_that_was_ready_can_still_be_blocked(large):
    frontier = two_ready_hosts(large)
    frontier._politeness.block_until(7, 50.0)
    assert frontier.next(10.0) == WaitUntil(50.0)
    assert frontier.next(50.0) == FetchNow(1, 7)


@pytest.mark.parametrize("large", LARGE)
def test_the_first_page_of_a_ready_host_can_still_leave_it(large):
    withdrawn, moved, put_off = (two_ready_hosts(large) for _ in range(3))
    withdrawn.withdraw(np.array([1]))
    assert withdrawn.next(10.0) == FetchNow(2, 7)
    moved.offer(np.array([1]), np.array([9]), np.array([9.0]))
    assert [moved.next(10.0), moved.next(10.0)] == [FetchNow(2, 7), FetchNow(1, 9)]
    put_off.offer(np.array([1]), np.array([7]), np.array([90.0]))
    assert put_off.next(10.0) == FetchNow(2, 7)
    assert len(put_off) == 1


@pytest.mark.parametrize("large", LARGE)
def test_a_page_offered_earlier_than_the_first_of_a_ready_host_goes_first(large):
    frontier = two_ready_hosts(large)
    frontier.offer(np.array([4]), np.array([7]), np.array([1.0]))
    assert frontier.next(10.0) == FetchNow(4, 7)


@pytest.mark.parametrize("large", LARGE)
def test_a_page_that_is_never_due_waits_for_ever(large):
    frontier = Frontier(Politeness(RULES), large=large)
    frontier.offer(np.array([1]), np.array([7]), np.array([math.inf]))
    assert frontier.next(1e12) == WaitUntil(math.inf)
    assert len(frontier) == 1


@pytest.mark.parametrize("large", LARGE)
def test_wrong_calls_are_refused(large):
    frontier = Frontier(Politeness(RULES), large=large)
    with pytest.raises(ValueError, match="without a due time"):
        frontier.offer(np.array([1]), np.array([7]), np.array([math.nan]))
    with pytest.raises(ValueError, match="not being fetched"):
        frontier.done(1, 7, 0.0, 0.0)


def test_memory_does_not_grow_with_repeated_offers():
    heaps, columns = Frontier(Politeness(RULES)), Frontier(Politeness(RULES), large=1)
    ids = np.arange(100)
    for round_ in range(500):
        heaps.offer(ids, ids % 5, np.full(100, 1e6 - round_))
        columns.offer(ids, ids % 5, np.full(100, 1e6 - round_))
    queues = heaps._queues
    assert sum(len(queue) for queue in queues._queue.values()) + len(queues._waiting) < 5_000
    if can_compile():
        assert columns._queues.nbytes < 60_000


@pytest.mark.parametrize("large", LARGE)
@given(seed=st.integers(0, 2**32), most=st.integers(0, 40))
@settings(deadline=None, max_examples=30)
def test_many_at_once_are_those_that_come_one_by_one(large, seed, most):
    rng = np.random.default_rng(seed)
    page, host, due = rng.integers(-(2**62), 2**62, 300), rng.integers(0, 30, 300), rng.integers(0, 50, 300) * 1.0
    one_by_one, at_once = Frontier(Politeness(RULES)), Frontier(Politeness(RULES), large=large)
    for frontier in (one_by_one, at_once):
        frontier.offer(page, host, due)
    for now in (20.0, 21.0, 40.0, 90.0):
        batch = at_once.next_many(now, most)
        for expected in zip(batch.page.tolist(), batch.host.tolist(), strict=True):
            assert one_by_one.next(now) == FetchNow(*expected)
        if len(batch.page) < most:
            assert one_by_one.next(now) == WaitUntil(batch.until)
        duration = rng.uniform(0, 3, len(batch.page))
        at_once.done_many(batch.page, batch.host, now, duration)
        for fetched, asked, seconds in zip(*batch[:2], duration, strict=True):
            one_by_one.done(int(fetched), int(asked), now, float(seconds))
        assert len(at_once) == len(one_by_one)


def test_a_fetch_cannot_be_done_twice():
    for large in (10**9, 1):
        frontier = Frontier(Politeness(RULES), large=large)
        frontier.offer(np.array([1, 2]), np.array([7, 8]), np.zeros(2))
        batch = frontier.next_many(0.0, 5)
        twice = [np.repeat(column, 2) for column in batch[:2]]
        with pytest.raises(ValueError, match="not being fetched"):
            frontier.done_many(*twice, 1.0, np.zeros(4))


def test_a_large_frontier_grows_as_pages_and_hosts_come():
    rng = np.random.default_rng(0)
    politeness = Politeness(RULES)
    frontier = Frontier(politeness, large=1)
    expected = {}
    for _ in range(12):
        page, host, due = rng.integers(0, 9_000, 2_500), rng.integers(0, 400, 2_500), rng.uniform(0, 100, 2_500)
        politeness.block_until(int(rng.integers(400, 500)), 5.0)
        frontier.offer(page, host, due)
        expected.update(zip(page.tolist(), due.tolist(), strict=True))
        gone = rng.integers(0, 9_000, 500)
        frontier.withdraw(gone)
        for one in gone.tolist():
            expected.pop(one, None)
        assert len(frontier) == len(expected)
    now, seen = 100.0, []
    while len(frontier):
        batch = frontier.next_many(now, 150)
        seen += batch.page.tolist()
        frontier.done_many(batch.page, batch.host, now, np.zeros(len(batch.page)))
        now += 1.0
    assert sorted(seen) == sorted(expected)
