"""How a run ends: asked to stop, cancelled, or by a bug. Nothing stays leased, nothing settled is lost."""

from __future__ import annotations

import asyncio
import io
import json
import math
from contextlib import asynccontextmanager
from typing import NamedTuple

import numpy as np
import pytest

from recrawl.crawl.clock import RealClock
from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.visitor import Visitor
from recrawl.crawl.visit.warc_archive import NoArchive
from recrawl.crawl.worker.crawl_worker import CrawlWorker, WorkerPace
from recrawl.detect import decoded
from recrawl.fetch.http.http_fetcher import HttpFetcher
from recrawl.fetch.robots_cache import RobotsCache
from recrawl.model import Outcome
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.simulate.sites import synthetic_web, tree_site
from recrawl.simulate.virtual_web import join
from recrawl.store.base import Store
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, VirtualClock
from recrawl.urls import host_of
from recrawl_testweb.virtual_web_server import VirtualWebServer

AGENT = "driver/1.0 (+https://example.org/)"
START = 1.79e9


class Poisoned(Visitor):
    """Breaks at one page, every time."""

    async def go(self, target, _not_after=None):
        if target.url.endswith("market-1/"):
            raise ZeroDivisionError
        return await super().go(target)


class Gathering(Visitor):
    """Nobody goes on until all of them are under way; then they are lost, all of them."""

    all_of_them = 40

    def __init__(self, *parts):
        super().__init__(*parts)
        self._here, self._complete = 0, asyncio.Event()
        self.met = False

    async def go(self, target, _not_after=None):
        self._here += 1
        if self._here == self.all_of_them:
            self._complete.set()
        await asyncio.wait_for(self._complete.wait(), 120)
        self.met = True
        raise ZeroDivisionError


class Scene(NamedTuple):
    driver: CrawlWorker
    store: Store
    clock: VirtualClock
    living: VirtualWebServer
    log: io.StringIO

    def events(self, message):
        return [event for event in map(json.loads, self.log.getvalue().splitlines()) if event["message"] == message]


@asynccontextmanager
async def scene(folder, *, web=None, visitor=Visitor, pause=5.0, pace=None, hosts=None):  # noqa: PLR0913
    clock = VirtualClock(START)
    web = web or synthetic_web(pages=30, start=START, days=5, seed=2)
    log = io.StringIO()
    with VirtualWebServer(web, clock) as living, open_store(str(folder / "store.db"), create=True) as store:
        async with HttpFetcher(clock, AGENT, resolve=dict.fromkeys(living.hosts(), living.ip)) as fetcher:
            scope = HostScope(frozenset(hosts(living) if hosts else living.hosts()))
            driver = driver_of(
                "one", clock, store, fetcher, scope, visitor, pause, pace or WorkerPace(poll=math.inf), log
            )
            store.discover([url for url in living.seeds() if host_of(url) in scope.hosts], START)
            yield Scene(driver, store, clock, living, log)


def driver_of(worker, clock, store, fetcher, scope, visitor=Visitor, pause=5.0, pace=None, log=None, every=6 * HOUR):  # noqa: PLR0913, PLR0917
    scheduler = RevisitScheduler(FixedInterval(every), budget=1.0)
    robots = RobotsCache(fetcher, clock, AGENT, body_of=decoded)
    return CrawlWorker(
        worker,
        clock=clock,
        store=store,
        scheduler=scheduler,
        politeness=Politeness(PolitenessRules(shortest=pause, longest=pause)),
        visitor=visitor(fetcher, robots, clock),
        recorder=Recorder(worker, store, scheduler, scope, NoArchive()),
        pace=pace or WorkerPace(),
        log=JsonLinesLog(log or io.StringIO(), clock),
    )


def many_hosts(hosts, pages, start=START):
    rng = np.random.default_rng(0)
    sites = [tree_site(f"h{n}", np.full(pages, 1e-6), start=start, end=start + 5 * DAY, rng=rng) for n in range(hosts)]
    return join(sites)


def paths_of_pages(living):
    return [path for path in living.requests().path.tolist() if path != "/robots.txt" and "sitemap" not in path]


def test_asked_to_stop_it_finishes_what_runs(tmp_path):
    async def run():
        async with scene(tmp_path) as (driver, store, clock, living, _):
            await driver.run(START + 5 * DAY, lambda now: driver.stop() if now > START + DAY else None)
            assert START + DAY < clock.now() < START + 2 * DAY
            assert store.counts(clock.now()).leased == 0
            assert len(store.visits()) >= len(paths_of_pages(living)) > 50
            await driver.run(START + 3 * DAY)
            assert clock.now() == START + 3 * DAY

    asyncio.run(run())


@asynccontextmanager
async def idle_run(tmp_path):
    """A driver that has nothing to do, and its run."""
    clock = RealClock()
    with open_store(str(tmp_path / "store.db"), create=True) as store:
        async with HttpFetcher(clock, AGENT) as fetcher:
            driver = driver_of("one", clock, store, fetcher, HostScope(frozenset()))
            task = asyncio.create_task(driver.run(clock.now() + 600.0))
            await asyncio.sleep(0.2)
            assert not task.done()
            yield driver, task


def test_a_run_that_has_nothing_to_do_can_be_stopped(tmp_path):
    async def run():
        async with idle_run(tmp_path) as (driver, task):
            driver.stop()
            await asyncio.wait_for(task, 120)
            assert task.done()
            assert not task.cancelled()

    asyncio.run(run())


def test_told_to_stop_and_cancelled_in_one_breath_it_is_cancelled(tmp_path):
    """As by Ctrl+C twice, before the run noticed the first: nobody then wants to wait for what runs."""

    async def run():
        async with idle_run(tmp_path) as (driver, task):
            driver.stop()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 120)
            assert task.cancelled()

    asyncio.run(run())


def test_as_many_hosts_as_may_be_are_asked_at_once_though_a_few_at_a_time(tmp_path):
    async def run():
        clock, hosts = RealClock(), [f"h{number}.invalid" for number in range(Gathering.all_of_them)]
        with open_store(str(tmp_path / "store.db"), create=True) as store:
            store.discover([f"http://{host}/" for host in hosts], clock.now())
            async with HttpFetcher(clock, AGENT) as fetcher:
                driver = driver_of("one", clock, store, fetcher, HostScope(frozenset(hosts)), Gathering)

                def stop(_now):
                    if len(store.visits()) == len(hosts):
                        driver.stop()

                await driver.run(clock.now() + 300.0, stop)
            assert driver._visitor.met

    asyncio.run(run())


def test_the_pauses_that_many_hosts_ask_for_are_written_down_together(tmp_path, monkeypatch):
    async def run():
        async with scene(tmp_path, web=many_hosts(40, 1)) as (driver, store, *_):
            written = []
            set_host = store.set_host

            def noted(hosts, **values):
                written.append(hosts.tolist())
                set_host(hosts, **values)

            monkeypatch.setattr(store, "set_host", noted)
            await driver.run(START + HOUR)
            assert sorted(host for hosts in written for host in hosts) == store.hosts().id.tolist()
            assert len(written) <= 10
            assert set(store.hosts().delay.tolist()) == {5.0}

    asyncio.run(run())


def test_cancelled_it_gives_everything_back(tmp_path):
    async def run():
        async with scene(tmp_path) as (driver, store, clock, _, _):
            task = asyncio.create_task(driver.run(START + 5 * DAY))
            while len(store.visits()) < 20:  # noqa: ASYNC110 - the driver announces nothing
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert store.counts(clock.now()).leased == 0
            assert len(store.visits()) >= 20

    asyncio.run(run())


def test_a_page_that_breaks_our_code_is_a_failed_visit_and_the_crawl_goes_on(tmp_path):
    async def run():
        async with scene(tmp_path, visitor=Poisoned) as here:
            await here.driver.run(START + DAY)
            page = here.store.find(next(url for url in here.living.urls() if url.endswith("market-1/"))).id
            mine = here.store.visits(pages=np.array([page]))
            assert set(mine.outcome.tolist()) == {Outcome.UNREACHABLE}
            assert (np.diff(mine.time) > 600).all()  # it is tried again, with patience
            assert len(np.unique(here.store.visits().page)) > 20
            broken = here.events("visit failed internally")
            assert "ZeroDivisionError" in broken[0]["details"]["traceback"]
            assert broken[0]["logLevel"] == "error"

    asyncio.run(run())


@pytest.mark.parametrize(("hosts", "pages", "size"), [(20, 20, 256), (3, 10, 4), (5, 4, 1)])
def test_full_hands_are_emptied_and_filled_again(tmp_path, hosts, pages, size):
    async def run():
        pace = WorkerPace(poll=math.inf, lease_size=size)
        async with scene(tmp_path, web=many_hosts(hosts, pages), pace=pace) as here:
            here.store.discover(here.living.urls(), START)
            await here.driver.run(START + 5 * HOUR)
            assert len(np.unique(here.store.visits().page)) == hosts * pages

    asyncio.run(run())


def test_what_is_out_of_scope_is_remembered_and_never_fetched(tmp_path):
    async def run():
        async with scene(tmp_path, hosts=lambda living: living.hosts()[:1]) as here:
            await here.driver.run(START + DAY)
            assert set(here.living.requests().host.tolist()) == {"news.living.test"}
            outside = here.store.pages().importance == 0
            assert outside.any()
            assert here.store.counts(START + DAY).due < len(outside)

    asyncio.run(run())


def test_pages_added_by_others_are_visited_too(tmp_path):
    async def run():
        async with scene(tmp_path, pace=WorkerPace(poll=60.0)) as here:
            added = []

            def add(now):
                if now > START + HOUR and not added:
                    added.extend(here.store.discover([f"{here.living.seeds()[0]}later"], now).tolist())

            await here.driver.run(START + 2 * HOUR, add)
            assert len(here.store.visits(pages=np.array(added))) == 1

    asyncio.run(run())


def test_what_a_dead_predecessor_of_the_same_name_held_is_taken_up_at_once(tmp_path):
    async def run():
        async with scene(tmp_path) as here:
            held = here.store.lease("one", START, 10, per_host=10, ttl=900 * DAY)
            assert len(held) == 3
            await here.driver.run(START + HOUR)
            assert set(held.page.tolist()) <= set(here.store.visits().page.tolist())

    asyncio.run(run())


def test_a_host_that_sends_nonsense_headers_does_no_harm(tmp_path):
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write("HTTP/1.1 503 \xb2\r\nRetry-After: \xb2\xb2\r\nContent-Length: 0\r\n\r\n".encode("latin-1"))
        writer.close()

    async def run():
        clock = VirtualClock(START)
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with open_store(str(tmp_path / "store.db"), create=True) as store:
            async with HttpFetcher(clock, AGENT) as fetcher:
                scope = HostScope(frozenset([f"127.0.0.1:{port}"]))
                store.discover([f"http://127.0.0.1:{port}/"], START)
                await driver_of("one", clock, store, fetcher, scope, pace=WorkerPace(poll=math.inf)).run(
                    START + 6 * HOUR
                )
            assert set(store.visits().outcome.tolist()) == {Outcome.UNREACHABLE}
        server.close()
        await server.wait_closed()

    asyncio.run(run())


@pytest.mark.slow
def test_two_workers_share_a_store_without_meeting(tmp_path):
    """On the machine's clock: each host sees one request at a time, each page its interval, whoever asks."""
    interval, pause = 0.25, 0.004

    async def run():
        clock = RealClock()
        web = many_hosts(6, 12, start=clock.now())
        with VirtualWebServer(web, clock) as living, open_store(str(tmp_path / "store.db"), create=True) as store:
            pins = dict.fromkeys(living.hosts(), living.ip)
            store.discover(living.urls(), clock.now())
            async with HttpFetcher(clock, AGENT, resolve=pins) as one, HttpFetcher(clock, AGENT, resolve=pins) as two:
                logs = {"one": io.StringIO(), "two": io.StringIO()}
                pace = WorkerPace(poll=0.05, per_host=3)
                drivers = [
                    driver_of(
                        name, clock, store, fetcher, HostScope(frozenset(pins)), Visitor, pause, pace, log, interval
                    )
                    for (name, log), fetcher in zip(logs.items(), (one, two), strict=True)
                ]

                def stop_when_enough(_now):
                    page = store.visits().page
                    is_shared = all('"visited"' in log.getvalue() for log in logs.values())
                    if is_shared and len(page) > 200 and len(np.unique(page)) == 72:
                        for driver in drivers:
                            driver.stop()

                end = clock.now() + 240.0  # on a busy machine; a second is enough on a quiet one
                await asyncio.gather(*(driver.run(end, stop_when_enough) for driver in drivers))
            visits, requests = store.visits(), living.requests()
            assert store.counts(clock.now()).leased == 0
        assert all('"visited"' in log.getvalue() for log in logs.values())
        assert len(np.unique(visits.page)) == 72
        for page in np.unique(visits.page):
            assert (np.diff(visits.time[visits.page == page]) >= interval).all()
        for host in set(requests.host.tolist()):
            times = np.sort(requests.time[requests.host == host])
            assert np.diff(times).min() >= pause

    asyncio.run(run())


class Stuck(Visitor):
    """Waits for ever at one host."""

    async def go(self, target, _not_after=None):
        if host_of(target.url).startswith("h0"):
            await asyncio.Event().wait()
        return await super().go(target)


def test_one_host_that_is_slow_holds_up_no_other_when_it_is_time_to_fit(tmp_path):
    async def run():
        clock, log, seen = RealClock(), io.StringIO(), []
        web = many_hosts(4, 12, start=clock.now())
        with VirtualWebServer(web, clock) as living, open_store(str(tmp_path / "store.db"), create=True) as store:
            pins = dict.fromkeys(living.hosts(), living.ip)
            store.discover(living.urls(), clock.now())
            async with HttpFetcher(clock, AGENT, resolve=pins) as fetcher:
                driver = driver_of(
                    "one",
                    clock,
                    store,
                    fetcher,
                    HostScope(frozenset(pins)),
                    Stuck,
                    0.004,
                    WorkerPace(poll=0.05),
                    log,
                    0.25,
                )

                def stop_when_enough(_now):
                    if "policy fitted" in log.getvalue():
                        seen.append(log.getvalue().count('"visited"'))
                        if seen[-1] > seen[0] + 50:
                            task.cancel()

                task = asyncio.create_task(driver.run(clock.now() + 200.0, stop_when_enough))
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.wait_for(task, 240)
            assert seen[-1] > seen[0] + 50

    asyncio.run(run())


def test_leases_are_renewed_while_pages_wait_for_their_host(tmp_path):
    """Sixteen pages with long pauses take ten times the time of a lease."""

    async def run():
        async with scene(tmp_path, pause=200.0, pace=WorkerPace(lease_time=300.0)) as (driver, store, _, living, _):
            expired = []
            store.discover([f"{url}nothing/{n}" for url in living.seeds() for n in range(16)], START)
            await driver.run(START + 3 * HOUR, lambda now: expired.append(store.expire(now)))
            assert len(expired) > 50
            assert sum(expired) == 0
            assert len(store.visits()) > 60

    asyncio.run(run())


def test_a_second_run_goes_on_from_what_is_recorded(tmp_path):
    async def run():
        async with scene(tmp_path) as (driver, store, _, _, _):
            await driver.run(START + DAY)
            first = store.visits()
            await driver.run(START + 2 * DAY)
            second = store.visits()
            early = second.take(second.time < START + DAY)
            assert early.time.tolist() == first.time.tolist()
            for page in np.unique(second.page):
                assert (np.diff(second.time[second.page == page]) >= 6 * HOUR).all()

    asyncio.run(run())
