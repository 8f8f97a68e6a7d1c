"""A crawl request by request: against the real frontier, between its bounds, and in compiled code."""

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import ConfigError
from recrawl.model.compiled import can_compile
from recrawl.plan.crawl_time import HostRequests, bounds, chains, run
from recrawl.schedule.frontier.host_frontier import FetchNow, Frontier
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules

second = st.floats(0.01, 9.0)
host_pages = st.lists(st.tuples(second, second), max_size=8)


def requests_of(hosts, *, apart=False):
    """Hosts take turns: page j of every host before page j + 1 of any."""
    counts = np.array([len(pages) for pages in hosts], dtype=np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    rank = np.array([j + h / len(hosts) for h, pages in enumerate(hosts) for j in range(len(pages))])
    flat = [page for pages in hosts for page in pages]
    seconds, pause = np.array(flat).reshape(-1, 2).T.copy()
    return HostRequests(offsets, rank, seconds, pause, apart)


def crawled_by_the_frontier(hosts, threads, factor):
    """The same crawl through the parts that the live crawler uses. Pages are numbered by turns; rests follow."""
    numbered = sorted((j, h) for h, pages in enumerate(hosts) for j in range(len(pages)))
    page_of = {place: number for number, place in enumerate(numbered)}
    frontier = Frontier(Politeness(PolitenessRules(factor, 0.0, 1e9)))
    frontier.offer(np.array(list(page_of.values())), np.array([h for _, h in page_of]), np.zeros(len(page_of)))
    now, running = 0.0, []
    while len(frontier) or running:
        answer = frontier.next(now) if len(running) < threads else None
        if isinstance(answer, FetchNow):
            j, h = numbered[answer.page]
            heapq.heappush(running, (now + hosts[h][j][0], answer.page, answer.host, hosts[h][j][0]))
            continue
        wake = answer.until if answer is not None else float("inf")
        if running and running[0][0] <= wake:
            now, page, host, took = heapq.heappop(running)
            frontier.done(page, host, now, took)
        else:
            now = wake
    return now


@given(st.lists(st.lists(second, max_size=6), min_size=1, max_size=5), st.integers(1, 4), st.floats(0.1, 6.0))
@settings(deadline=None, max_examples=60)
def test_the_frontier_crawls_in_the_same_time(hosts, threads, factor):
    timed = [[(seconds, factor * seconds) for seconds in pages] for pages in hosts]
    if not any(timed):
        return
    expected = crawled_by_the_frontier(timed, threads, factor)
    assert run(requests_of(timed), threads) == pytest.approx(expected)


@given(st.lists(host_pages, min_size=1, max_size=6), st.integers(1, 5), st.booleans())
@settings(deadline=None)
def test_it_takes_at_least_the_lower_and_at_most_the_upper_bound(hosts, threads, apart):
    if not any(hosts):
        return
    requests = requests_of(hosts, apart=apart)
    limit = bounds(requests, threads)
    took = run(requests, threads)
    assert limit.least <= took * (1 + 1e-12)
    assert took <= limit.most * (1 + 1e-12)
    assert limit.longest == chains(requests)[limit.host]


@given(st.lists(host_pages, min_size=1, max_size=6), st.integers(1, 5), st.booleans(), st.data())
@settings(deadline=None)
def test_bounds_fall_with_threads_and_grow_with_pages_and_rests(hosts, threads, apart, data):
    if not any(hosts):
        return
    before = bounds(requests_of(hosts, apart=apart), threads)
    more_threads = bounds(requests_of(hosts, apart=apart), threads + 1)
    assert more_threads.least <= before.least
    assert more_threads.most <= before.most
    longer = data.draw(st.integers(0, len(hosts) - 1))
    grown = [[*pages, (1.0, 1.0)] if h == longer else pages for h, pages in enumerate(hosts)]
    slower = [[(s, p + 1.0) for s, p in pages] if h == longer else pages for h, pages in enumerate(hosts)]
    for changed in (grown, slower):
        after = bounds(requests_of(changed, apart=apart), threads)
        assert after.least >= before.least * (1 - 1e-12)
        assert after.most >= before.most * (1 - 1e-12)


def test_enough_threads_leave_only_the_longest_host():
    hosts = [[(1.0, 2.0)] * 5, [(2.0, 1.0)] * 3]
    assert run(requests_of(hosts), 2) == 5 * 1.0 + 4 * 2.0
    assert run(requests_of(hosts, apart=True), 9) == 4 * 2.0 + 1.0


def test_one_thread_does_all_the_work_and_uses_the_rests():
    hosts = [[(1.0, 3.0)] * 4] * 4
    assert run(requests_of(hosts), 1) == 16.0
    assert run(requests_of([[(4.0, 1.0)] * 6], apart=True), 2) == 12.0 + 1.0


@pytest.mark.skipif(not can_compile(), reason="numba is not installed")
def test_compiled_code_says_the_same():
    rng = np.random.default_rng(3)
    for apart in (False, True):
        hosts = [[tuple(rng.random(2)) for _ in range(rng.integers(0, 9))] for _ in range(20)]
        requests = requests_of(hosts, apart=apart)
        assert run(requests, 3, many=True) == run(requests, 3)


def test_nothing_to_fetch_and_nobody_to_fetch_it():
    nothing = requests_of([[]])
    assert run(nothing, 3) == 0.0
    assert (bounds(nothing, 3).least, bounds(nothing, 3).host) == (0.0, -1)
    for ask in (run, bounds):
        with pytest.raises(ConfigError, match="a concurrency of 0"):
            ask(nothing, 0)
