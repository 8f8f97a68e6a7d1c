"""Somebody sets the clock of the machine: pauses are kept, leases last, and no page is seen before it was seen."""

from __future__ import annotations

import asyncio
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.clock import DOUBT, SLOW, SMALL, TOLERANCE, RealClock
from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.visitor import Visitor
from recrawl.crawl.visit.warc_archive import NoArchive
from recrawl.crawl.worker.crawl_worker import CrawlWorker, WorkerPace
from recrawl.crawl.worker.lease_pool import LeasePool
from recrawl.detect import decoded
from recrawl.fetch.http.http_fetcher import HttpFetcher
from recrawl.fetch.robots_cache import RobotsCache
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.simulate.sites import synthetic_web
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, AcceleratedClock, VirtualClock
from recrawl_testweb.virtual_web_server import VirtualWebServer

AGENT = "clock/1.0 (+https://example.org/)"
START, PAUSE = 1.79e9, 30.0


class Machine:
    """A machine whose clock can be set."""

    def __init__(self):
        self.steady, self.wall = 100.0, START

    def clock(self):
        return RealClock(lambda: self.wall, lambda: self.steady)

    def pass_(self, seconds):
        self.steady += seconds
        self.wall += seconds


JUMPS = [3 * DAY, -3 * DAY, 400 * DAY, -400 * DAY]


@pytest.mark.parametrize("jump", [10.0, SMALL, *JUMPS])
def test_a_clock_that_is_set_is_followed_when_somebody_looks_and_it_stays_so(jump):
    machine = Machine()
    clock = machine.clock()
    machine.pass_(10.0)
    machine.wall += jump
    assert clock.now() == START + 10.0
    if abs(jump) > SMALL:
        assert clock.set_right() == 0.0
        assert (clock.uncertain, clock.now()) == (jump, START + 10.0)
        machine.pass_(DOUBT - 1.0)
        assert clock.set_right() == 0.0
        assert clock.now() == START + 9.0 + DOUBT
        machine.pass_(1.0)
    assert clock.set_right() == jump
    assert clock.now() == machine.wall
    assert (clock.set_right(), clock.uncertain) == (0.0, 0.0)


@pytest.mark.parametrize("jump", [*JUMPS, -START])
def test_a_glitch_leaves_no_trace(jump):
    machine = Machine()
    clock = machine.clock()
    machine.wall += jump
    for _ in range(10):
        assert clock.set_right() == 0.0
        machine.pass_(2.0)
        assert clock.uncertain == jump
    machine.wall -= jump
    assert clock.set_right() == clock.uncertain == 0.0
    assert clock.now() == machine.wall
    machine.wall += jump  # and the next one is in doubt anew
    machine.pass_(DOUBT)
    assert clock.set_right() == 0.0


def test_a_clock_that_lost_its_time_is_never_believed():
    """A machine that starts without a battery believes that it is 1970."""
    machine = Machine()
    clock = machine.clock()
    assert clock.is_set
    machine.wall -= START
    for _ in range(100):
        machine.pass_(DOUBT)
        assert clock.set_right() == 0.0
    assert clock.now() == START + 100 * DOUBT
    new = machine.clock()
    assert not new.is_set
    machine.wall += START
    new.set_right()  # but once it is set it is believed at once
    assert new.is_set
    assert new.now() == machine.wall == clock.now()


def test_a_clock_that_is_set_back_a_little_is_met_by_going_slower():
    machine = Machine()
    clock = machine.clock()
    machine.wall -= SMALL
    assert clock.set_right() == -SMALL
    assert clock.now() == START
    machine.pass_(100.0)
    assert clock.now() == pytest.approx(START + 100.0 * SLOW)
    assert clock.set_right() == 0.0
    machine.pass_(SMALL / (1 - SLOW))
    clock.set_right()
    then = clock.now()
    assert then <= machine.wall + TOLERANCE
    machine.pass_(100.0)
    assert clock.now() == pytest.approx(then + 100.0)


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(-1e5, 1e5), st.booleans()), max_size=30))
def test_whatever_is_done_to_the_machine_time_goes_back_only_where_it_is_said(steps):
    machine = Machine()
    clock = machine.clock()
    before = clock.now()
    for passed, moved, observations in steps:
        machine.pass_(passed)
        machine.wall += moved
        told = clock.set_right() if observations else 0.0
        step = told if abs(told) > SMALL or told > 0 else 0.0
        assert clock.now() >= before + passed * SLOW + step - 1e-6
        if observations and not clock.uncertain:
            assert abs(clock.now() - machine.wall) <= SMALL + 1e-6
        before = clock.now()


def test_small_differences_are_nobodys_concern():
    machine = Machine()
    clock = machine.clock()
    for _ in range(10):
        machine.pass_(1.0)
        machine.wall += TOLERANCE / 30
        assert clock.set_right() == 0.0


def test_sleep_lasts_until_the_clock_says_so():
    machine = Machine()
    clock = RealClock()
    began = clock.now()
    asyncio.run(clock.sleep_until(began + 0.05))
    assert clock.now() >= began + 0.05
    assert VirtualClock(5.0).set_right() == 0.0
    fast = AcceleratedClock(machine.clock(), factor=10.0, start=0.0)
    machine.wall += 60.0
    assert fast.set_right() == 600.0
    assert fast.now() == 600.0
    machine.wall += DAY
    assert (fast.set_right(), fast.uncertain, fast.elapsed()) == (0.0, 10 * DAY, 1000.0)


class SetClock(VirtualClock):
    """Is set forward by so many seconds at some moment, while everybody sleeps."""

    def __init__(self, start, at, seconds):
        super().__init__(start)
        self._at, self._seconds = at, seconds

    async def sleep_until(self, when):
        await super().sleep_until(min(when, self._at) if self.now() < self._at else when)

    def set_right(self):
        if self.now() < self._at:
            return 0.0
        moved, self._seconds = self._seconds, 0.0
        self.advance_to(self.now() + moved)
        return moved


def worker(clock, store, fetcher, hosts, log):
    name = "one"
    scheduler = RevisitScheduler(FixedInterval(6 * HOUR), budget=1.0)
    return CrawlWorker(
        name,
        clock=clock,
        store=store,
        scheduler=scheduler,
        politeness=Politeness(PolitenessRules(shortest=PAUSE, longest=PAUSE)),
        visitor=Visitor(fetcher, RobotsCache(fetcher, clock, AGENT, body_of=decoded), clock),
        recorder=Recorder(name, store, scheduler, HostScope(frozenset(hosts)), NoArchive()),
        pace=WorkerPace(poll=math.inf),
        log=JsonLinesLog(log, clock),
    )


@pytest.mark.parametrize("seconds", [60.0, DAY])
def test_a_leap_makes_no_burst(tmp_path, seconds):
    web = synthetic_web(pages=30, start=START, days=5, seed=2)
    leapt = START + 200.0
    clock, log = SetClock(START, leapt, seconds), io.StringIO()

    async def crawl():
        with (
            VirtualWebServer(web, clock) as living,
            open_store(tmp_path / "store.db", create=True, durable=False) as store,
        ):
            store.discover(living.urls(), START)
            pins = dict.fromkeys(living.hosts(), living.ip)
            async with HttpFetcher(clock, AGENT, resolve=pins) as fetcher:
                driver, end = worker(clock, store, fetcher, living.hosts(), log), START + seconds + HOUR
                await driver.run(end)
                assert driver.clock_was_set == (seconds > SMALL)
                if driver.clock_was_set:  # by so much that another run is to begin
                    await driver.run(end)
            return living.requests(), store.visits()

    requests, visits = asyncio.run(crawl())
    for host in set(requests.host.tolist()):
        times = requests.time[requests.host == host]
        elapsed = np.where(times > leapt, times - seconds, times)  # as a clock on the wall that nobody set
        assert (np.diff(elapsed) >= PAUSE - 1e-6).all()
    assert (requests.time > leapt).sum() > 10
    for page in np.unique(visits.page):
        assert (np.diff(visits.time[visits.page == page]) > 0).all()
    [event] = [event for event in map(json.loads, log.getvalue().splitlines()) if "was set" in event["message"]]
    assert event["details"] == {"seconds": seconds}


def test_after_a_leap_nobody_takes_what_others_hold(tmp_path):
    with open_store(tmp_path / "store.db", create=True, durable=False) as store:
        store.discover([f"http://h{number}.example/" for number in range(4)], START)
        one, other = (LeasePool(name, store, 2, 1, 900.0, 60.0) for name in ("one", "other"))
        for lease_pool in (one, other):
            leased = lease_pool.lease(START)
            lease_pool.hold(leased, [None] * len(leased))
        one.shift_clock(START + 10.0, DAY, [])
        now = START + 10.0 + DAY
        one.empty()
        assert one.lease(now) is None  # it would find the leases of the other ended
        assert now < one.lease_at <= now + 600.0
        other.shift_clock(START + 70.0, DAY, [])
        assert set(one.lease(one.lease_at).page.tolist()).isdisjoint(store.held("other").tolist())
        assert len(store.held("other")) == 2


def test_a_page_that_is_looked_at_twice_does_not_look_as_if_somebody_had_taken_one(tmp_path):
    with open_store(tmp_path / "store.db", create=True, durable=False) as store:
        store.discover([f"http://h{number}.example/" for number in range(3)], START)
        lease_pool = LeasePool("one", store, 3, 1, 900.0, 60.0)
        leased = lease_pool.lease(START)
        lease_pool.hold(leased, [None] * len(leased))
        visited = int(leased.page[0])
        lease_pool.take(visited)
        assert len(lease_pool.renew(START + 450.0, [visited, visited])) == 0
        assert len(lease_pool) == 2
        store.acknowledge("one", leased.page[1:2])
        assert len(lease_pool.renew(START + 900.0, [visited])) == 2  # now one is not ours any more
        assert len(lease_pool) == 0
