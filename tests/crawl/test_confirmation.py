"""Second looks in a running crawl: what happens where they come too late, or where the run ends before them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import numpy as np
import pytest

from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.detect.comparison import NEAR
from recrawl.model import Verdict
from recrawl.schedule.policies.fixed_interval import Uniform
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.simulate.sites import synthetic_web
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, VirtualClock
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.virtual_web_server import VirtualWebServer

START = 1_790_000_000.0


@pytest.fixture
def stage(tmp_path, empty_store):
    """``async with stage(quirks) as (driver, store, clock, living)``: a small web that changes often."""

    @asynccontextmanager
    async def open_stage(fault_profile):
        web = synthetic_web(pages=9, start=START, days=2.0, seed=5, hot=0.6)
        clock = VirtualClock(web.start)
        path = tmp_path / "store.db"
        path.write_bytes(empty_store.read_bytes())
        with (
            open_store(path, durable=False) as store,
            VirtualWebServer(web, clock, fault_profile=fault_profile, seed=5) as living,
        ):
            settings = WorkerSettings(
                90 / DAY,
                "twice/1.0 (+https://example.org/)",
                politeness=PolitenessRules(factor=0.0, shortest=5.0),
                durable=False,
                pins=dict.fromkeys(living.hosts(), living.ip),
            )
            scope = HostScope(frozenset(living.hosts()))
            async with live_crawl(
                "w", Uniform(), clock=clock, store=store, folder=tmp_path, scope=scope, settings=settings
            ) as driver:
                store.discover(living.seeds(), clock.now())
                yield driver, store, clock, living

    return open_stage


def page_requests(living):
    log = living.requests()
    return np.sort(log.time[[path != "/robots.txt" and "sitemap" not in path for path in log.path.tolist()]])


def confirm_changes(visits):
    return int(((np.diff(visits.page) == 0) & (np.diff(visits.time) < NEAR)).sum())


def test_pages_are_looked_at_twice_in_the_next_turn_of_their_host(stage):
    async def run():
        async with stage(FaultProfile(odd_noise=1.0)) as (driver, store, _, living):
            await driver.run(START + DAY)
            return store.visits(), page_requests(living), store.captures(store.pages().id)

    visits, asked, captures = asyncio.run(run())
    assert confirm_changes(visits) >= 2
    assert np.sort(visits.time).tolist() == asked.tolist()
    assert len(captures) == len(visits)  # the bytes of both looks are kept


def test_where_a_host_wants_long_pauses_one_look_has_to_do(stage):
    async def run():
        async with stage(FaultProfile(crawl_delay=NEAR + 30.0)) as (driver, store, _, living):
            await driver.run(START + DAY)
            return store.visits(), page_requests(living)

    visits, asked = asyncio.run(run())
    assert confirm_changes(visits) == 0
    assert (visits.verdict == Verdict.CHANGED).sum() > 3
    assert np.sort(visits.time).tolist() == asked.tolist()


def test_a_run_that_ends_before_the_second_look_keeps_the_first(stage):
    async def run():
        async with stage(FaultProfile(odd_noise=1.0)) as (driver, store, clock, living):
            await driver.run(START + 2 * HOUR)
            before = confirm_changes(store.visits())
            for _ in range(40):  # each run ends before the pause of a host does
                until = max(store.next_due(), clock.now()) + 2.0
                await driver.run(until)
                clock.advance_to(until + 60.0)
            return before, store.visits(), page_requests(living), store.counts(clock.now()).leased

    before, visits, asked, leased = asyncio.run(run())
    assert confirm_changes(visits) == before
    assert (visits.verdict[visits.time > START + 2 * HOUR] == Verdict.CHANGED).any()
    assert np.sort(visits.time).tolist() == asked.tolist()
    assert leased == 0


def test_a_fit_leaves_pages_alone_that_wait_for_their_second_look(stage):
    async def run():
        async with stage(FaultProfile(odd_noise=1.0)) as (driver, store, _, living):
            fitted = set()

            def fit_where_it_hurts(now):
                if now not in fitted and any(target.is_begun for target in driver._lease_pool._targets.values()):
                    fitted.add(now)  # once: time does not pass while a fit is made
                    driver._scheduler.fit_again()

            await driver.run(START + DAY, fit_where_it_hurts)
            return driver._scheduler.fits, store.visits(), page_requests(living)

    fits, visits, asked = asyncio.run(run())
    assert fits > 3
    assert confirm_changes(visits) >= 2
    assert np.sort(visits.time).tolist() == asked.tolist()
