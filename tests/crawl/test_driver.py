"""How a run ends: asked to stop, cancelled, or by a bug. Nothing stays leased, nothing settled is lost."""

from __future__ import annotations

import asyncio
import io
from contextlib import asynccontextmanager

import numpy as np
import pytest

from recrawl.crawl.archive import NoArchive
from recrawl.crawl.driver import Driver, Pace
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.recorder import Recorder
from recrawl.crawl.scope import HostScope
from recrawl.crawl.visitor import Visitor
from recrawl.detect import decoded
from recrawl.fetch.http import HttpFetcher
from recrawl.fetch.robots import RobotsCache
from recrawl.living.web import LivingWeb
from recrawl.schedule.agenda import Agenda
from recrawl.schedule.fixed_interval import FixedInterval
from recrawl.schedule.politeness import Politeness, PolitenessRules
from recrawl.simulate.sites import synthetic_web
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, VirtualClock

AGENT = "driver/1.0 (+https://example.org/)"
START = 1.79e9


class Broken(Visitor):
    """Has a bug that shows at the fortieth target."""

    gone = 0

    async def go(self, target):
        self.gone += 1
        if self.gone == 40:
            raise ZeroDivisionError
        return await super().go(target)


@asynccontextmanager
async def scene(folder, *, visitor=Visitor, pause=5.0, pace=None):
    clock = VirtualClock(START)
    web = synthetic_web(pages=30, start=START, days=5, seed=2)
    agenda = Agenda(FixedInterval(6 * HOUR), budget=1.0)
    with LivingWeb(web, clock) as living, open_store(str(folder / "store.db"), create=True) as store:
        async with HttpFetcher(clock, AGENT, resolve=dict.fromkeys(living.hosts(), living.ip)) as fetcher:
            robots = RobotsCache(fetcher, clock, AGENT, body_of=decoded)
            driver = Driver(
                "one",
                clock=clock,
                store=store,
                agenda=agenda,
                politeness=Politeness(PolitenessRules(shortest=pause, longest=pause)),
                visitor=visitor(fetcher, robots, clock),
                recorder=Recorder("one", store, agenda, HostScope(frozenset(living.hosts())), NoArchive()),
                pace=pace or Pace(),
                log=JsonLinesLog(io.StringIO(), clock),
            )
            store.discover(living.seeds(), START)
            yield driver, store, clock, living


def test_asked_to_stop_it_finishes_what_runs(tmp_path):
    async def run():
        async with scene(tmp_path) as (driver, store, clock, living):
            await driver.run(START + 5 * DAY, lambda now: driver.stop() if now > START + DAY else None)
            assert START + DAY < clock.now() < START + 2 * DAY
            assert store.counts(clock.now()).leased == 0
            pages = [
                path for path in living.requests().path.tolist() if path != "/robots.txt" and "sitemap" not in path
            ]
            assert len(store.visits()) >= len(pages) > 50

    asyncio.run(run())


def test_cancelled_it_gives_everything_back(tmp_path):
    async def run():
        async with scene(tmp_path) as (driver, store, clock, _):
            task = asyncio.create_task(driver.run(START + 5 * DAY))
            while len(store.visits()) < 20:  # noqa: ASYNC110 - the driver announces nothing
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert store.counts(clock.now()).leased == 0
            assert len(store.visits()) >= 20

    asyncio.run(run())


def test_a_bug_is_not_hidden_and_leaves_the_store_clean(tmp_path):
    async def run():
        async with scene(tmp_path, visitor=Broken) as (driver, store, clock, _):
            with pytest.raises(ZeroDivisionError):
                await driver.run(START + 5 * DAY)
            assert store.counts(clock.now()).leased == 0
            assert len(store.visits()) >= 20

    asyncio.run(run())


def test_leases_are_renewed_while_pages_wait_for_their_host(tmp_path):
    """Sixteen pages with long pauses take ten times the time of a lease."""

    async def run():
        async with scene(tmp_path, pause=200.0, pace=Pace(lease_time=300.0)) as (driver, store, _, living):
            expired = []
            store.discover([f"{url}nothing/{n}" for url in living.seeds() for n in range(16)], START)
            await driver.run(START + 3 * HOUR, lambda now: expired.append(store.expire(now)))
            assert len(expired) > 50
            assert sum(expired) == 0
            assert len(store.visits()) > 60

    asyncio.run(run())


def test_a_second_run_goes_on_from_what_is_recorded(tmp_path):
    async def run():
        async with scene(tmp_path) as (driver, store, _, _):
            await driver.run(START + DAY)
            first = store.visits()
            await driver.run(START + 2 * DAY)
            second = store.visits()
            early = second.take(second.time < START + DAY)
            assert early.time.tolist() == first.time.tolist()
            for page in np.unique(second.page):
                assert (np.diff(second.time[second.page == page]) >= 6 * HOUR).all()

    asyncio.run(run())
