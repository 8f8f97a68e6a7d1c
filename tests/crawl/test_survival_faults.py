"""The store goes away, the network is cut: the crawl waits, loses nothing, bothers nobody, and goes on by itself.

Everything is real but the hours: stores, archive files and HTTP. What breaks is broken and mended at moments of the
virtual clock, through what the driver tells of its progress.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.control.json_log import JsonLinesLog, LogFile
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.warc_archive import NoArchive
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import CrawlWorker, WorkerPace
from recrawl.crawl.worker.inline_fit import InlineFit
from recrawl.crawl.worker.outages import ENOUGH, NetworkOutage
from recrawl.errors import DiskFullError, StoreAwayError, StoreError
from recrawl.fetch.http.http_fetcher import HttpFetcher
from recrawl.model import Capture, Outcome, Visit, Visits
from recrawl.model.visits import NO_NAME, NO_NAME_SERVER, NO_ROUTE
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.simulate.sites import tree_site
from recrawl.simulate.virtual_web import join
from recrawl.store.base import Store
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, MINUTE, VirtualClock
from recrawl_testweb.virtual_web_server import VirtualWebServer

AGENT = "faults/1.0 (+https://example.org/)"
START, PAUSE = 1.79e9, 5.0
BREAK, MEND = START + HOUR, START + HOUR + 300.0


def web(hosts, pages):
    rng = np.random.default_rng(0)
    rates = np.full(pages, 1 / (6 * HOUR))
    return join([tree_site(f"h{n}", rates, start=START, end=START + 5 * DAY, rng=rng) for n in range(hosts)])


@dataclass
class Scene:
    driver: CrawlWorker
    store: Store
    clock: VirtualClock
    living: VirtualWebServer
    folder: Path

    def events(self, message):
        lines = map(json.loads, (self.folder / "recrawl.log").read_text(encoding="utf-8").splitlines())
        return [event for event in lines if event["message"] == message]

    def asked(self):
        """How often each page was asked for."""
        log = self.living.requests()
        return Counter(zip(log.host[log.page >= 0].tolist(), log.path[log.page >= 0].tolist(), strict=True))

    async def run(self, end, *, break_it, mend):
        """Run; break something at one time and mend it at another, told by the time of progress."""
        todo = [(BREAK, break_it), (MEND, mend)]

        def progress(now):
            if todo and now >= todo[0][0]:
                todo.pop(0)[1]()

        await self.driver.run(end, progress)
        assert not todo


@asynccontextmanager
async def scene(folder, location, hosts=3, pages=8, start=START):
    clock = VirtualClock(start)
    with (
        VirtualWebServer(web(hosts, pages), clock) as living,
        open_store(location, create=True, durable=False) as store,
    ):
        names = living.hosts()
        settings = WorkerSettings(
            budget=1.0,
            user_agent=AGENT,
            politeness=PolitenessRules(factor=0.0, shortest=PAUSE, longest=PAUSE),
            pace=WorkerPace(poll=math.inf),
            pins=dict.fromkeys(names, living.ip),
            durable=False,
        )
        store.discover(living.urls(), START)
        scope = HostScope(frozenset(names))
        async with live_crawl(
            "one", FixedInterval(0.5 * HOUR), clock=clock, store=store, folder=folder, scope=scope, settings=settings
        ) as driver:
            yield Scene(driver, store, clock, living, folder)


def check_nothing_is_lost(here, first, end):
    """Every request became a visit, once; pauses were kept; nothing was asked while there was nobody to tell it to."""
    visits = here.store.visits()
    assert sum(here.asked().values()) == len(visits)
    log = here.living.requests()
    for host in set(log.host.tolist()):
        times = log.time[log.host == host]
        assert (np.diff(times) >= PAUSE - 1e-6).all()
    while_broken = (log.time > BREAK + 2 * PAUSE) & (log.time < MEND)
    assert not while_broken.any()
    assert (log.time > MEND).sum() > 20
    assert len(here.store.captures(here.store.pages().id)) == len(visits)
    assert here.store.counts(end).leased == 0
    [begun, *_] = here.events(first)
    assert begun["logLevel"] == "warn"
    assert len(here.events("storage works again")) == 1


def test_a_store_that_another_process_keeps_locked(tmp_path):
    async def crawl():
        async with scene(tmp_path, tmp_path / "store.db") as here:
            here.store._database._connection.set_busy_timeout(10)
            other = apsw.Connection(str(tmp_path / "store.db"))
            end = START + 3 * HOUR
            await here.run(
                end, break_it=lambda: other.execute("BEGIN IMMEDIATE"), mend=lambda: other.execute("ROLLBACK")
            )
            other.close()
            check_nothing_is_lost(here, "waiting for the store", end)

    asyncio.run(crawl())


def test_a_store_whose_file_is_moved_away_and_put_back(tmp_path):
    path, aside = tmp_path / "store.db", tmp_path / "aside.db"

    async def crawl():
        async with scene(tmp_path, path) as here:
            end = START + 3 * HOUR
            await here.run(end, break_it=lambda: path.rename(aside), mend=lambda: aside.rename(path))
            check_nothing_is_lost(here, "waiting for the store", end)

    asyncio.run(crawl())


def test_a_store_that_never_comes_back_ends_the_run_with_its_end(tmp_path):
    path, aside = tmp_path / "store.db", tmp_path / "aside.db"

    async def crawl():
        async with scene(tmp_path, path) as here:
            with pytest.raises(StoreAwayError, match="moved or deleted"):
                await here.run(MEND + 1.0, break_it=lambda: path.rename(aside), mend=lambda: None)
            assert here.clock.now() >= MEND + 1.0

    asyncio.run(crawl())
    aside.rename(path)

    async def go_on():
        async with scene(tmp_path, path, start=MEND + MINUTE) as here:
            before = len(here.store.visits())
            await here.driver.run(MEND + HOUR)
            visits = here.store.visits()
            assert len(visits) > before
            answered = visits.take(visits.answered())  # the hosts of the first scene are gone
            assert len(here.store.captures(here.store.pages().id)) == len(answered)

    asyncio.run(go_on())


def test_a_store_that_is_replaced_ends_the_run_at_once(tmp_path):
    path = tmp_path / "store.db"

    def replace():
        path.rename(tmp_path / "aside.db")
        open_store(path, create=True).close()

    async def crawl():
        async with scene(tmp_path, path) as here:
            with pytest.raises(StoreError, match="replaced"):
                await here.run(START + 3 * HOUR, break_it=replace, mend=lambda: None)
            assert here.clock.now() < MEND

    asyncio.run(crawl())


@pytest.fixture
def postgres(new_postgres):
    with new_postgres() as server:
        yield server


def test_a_postgresql_that_is_stopped_and_started_again(tmp_path, postgres):
    async def crawl():
        async with scene(tmp_path, postgres.get_uri()) as here:
            end = START + 3 * HOUR
            await here.run(end, break_it=postgres.stop, mend=postgres.start)
            check_nothing_is_lost(here, "waiting for the store", end)

    asyncio.run(crawl())


def test_what_a_worker_held_that_dies_beside_us_comes_back_in_a_minute_or_so(tmp_path):
    async def crawl():
        async with scene(tmp_path, tmp_path / "store.db") as here:

            def die():
                held = here.store.lease("other", here.clock.now() + HOUR, 100, ttl=DAY)
                assert len(held)
                (tmp_path / "workers" / "other").touch()  # as of one whose lock is free

            await here.run(START + 2 * HOUR, break_it=die, mend=lambda: None)
            assert len(here.store.held("other")) == 0
            visits = here.store.visits()
            for page in np.unique(visits.page):
                assert np.diff(visits.time[visits.page == page]).max() < HOUR

    asyncio.run(crawl())


FULL_DISK = Path("/dev/full")


@pytest.mark.skipif(not FULL_DISK.exists(), reason="this system has no device that is always full")
def test_a_log_that_finds_no_room_says_so_and_keeps_its_lines(tmp_path):
    path = tmp_path / "log"
    path.symlink_to(FULL_DISK)
    with LogFile(path, VirtualClock(START)) as log:
        log.write("one\n")
        with pytest.raises(DiskFullError, match="Free some space"):
            log.flush()
        path.unlink()
        log._file.close()
        log._file = log._open()  # there is room now
        log.write("two\n")
        log.flush()
    assert path.read_text(encoding="utf-8") == "one\ntwo\n"
    path.unlink()
    path.symlink_to(FULL_DISK)
    with LogFile(path, VirtualClock(START)) as log:
        log.write("lost\n")  # closing a log on a full disk ends no run


@pytest.mark.skipif(not FULL_DISK.exists(), reason="this system has no device that is always full")
def test_visits_are_told_although_one_of_the_logs_finds_no_room(tmp_path):
    (tmp_path / "crawl.log").symlink_to(FULL_DISK)

    async def crawl():
        async with scene(tmp_path, tmp_path / "store.db") as here:
            await here.driver.run(START + HOUR)
            told, visits = here.events("visited"), here.store.visits()
            assert len(told) == len(visits) > 24
            assert here.events("waiting for disk space")

    asyncio.run(crawl())


def test_a_fit_whose_due_times_could_not_be_written_is_made_again(tmp_path, monkeypatch):
    interval, tries = FixedInterval(0.5 * HOUR), []
    with open_store(tmp_path / "store.db", create=True, durable=False) as store:
        page = store.discover(["http://a.example/"], START)
        store.record(Visits.from_rows([Visit(int(page[0]), START, Outcome.FETCHED)]), due=np.array([START + DAY]))
        scheduler = RevisitScheduler(interval, budget=1.0)
        recorder = Recorder("one", store, scheduler, HostScope(frozenset()), NoArchive())
        fitting = InlineFit(store, scheduler, recorder, JsonLinesLog(io.StringIO(), VirtualClock(START)), late=HOUR)
        fitting.resume(START)

        def away(*arguments, **_named):
            tries.append(arguments)
            raise StoreAwayError("gone", "bring it back")

        with monkeypatch.context() as patched:
            patched.setattr(store, "reschedule", away)
            with pytest.raises(StoreAwayError):
                fitting.fit(START)
        assert len(tries) == 1
        assert scheduler.fit_at <= START
        fitting.fit(START)
        assert scheduler.fit_at > START


# -- the network ------------------------------------------------------------------------------------


class Cable(HttpFetcher):
    """A network that can be pulled: then nothing comes back from anywhere."""

    failure = 0
    tries = 0

    async def fetch(self, request):
        if not Cable.failure:
            return await super().fetch(request)
        Cable.tries += 1
        return Capture(request.url, self._clock.now(), 0, error="nothing came back", failure=Cable.failure)


@pytest.fixture
def cable(monkeypatch):
    monkeypatch.setattr("recrawl.fetch.http.http_fetcher.HttpFetcher", Cable)
    Cable.failure = Cable.tries = 0
    yield Cable
    Cable.failure = 0


@pytest.mark.parametrize("failure", [NO_ROUTE, NO_NAME_SERVER])
def test_a_network_that_is_down_makes_no_failed_visits(tmp_path, cable, failure):
    async def crawl():
        async with scene(tmp_path, tmp_path / "store.db", hosts=12, pages=5) as here:
            end = START + 3 * HOUR

            def pull():
                cable.failure = failure

            def plug():
                cable.failure = 0

            await here.run(end, break_it=pull, mend=plug)
            visits = here.store.visits()
            assert set(visits.outcome.tolist()) <= {Outcome.FETCHED, Outcome.NOT_MODIFIED}
            assert sum(here.asked().values()) == len(visits)
            assert ENOUGH <= cable.tries < 30
            assert here.store.counts(end).leased == 0
            assert len(here.events("no host can be reached")) == 1
            assert len(here.events("hosts can be reached again")) == 1
            log = here.living.requests()
            again = log.time[log.time > MEND]
            assert len(again) > 60
            assert again.min() < MEND + 310.0

    asyncio.run(crawl())


def test_a_start_while_the_network_is_down_waits_for_it(tmp_path, cable):
    """No rules are known yet, and no host has ever answered."""
    cable.failure = NO_NAME_SERVER

    async def crawl():
        async with scene(tmp_path, tmp_path / "store.db", hosts=40, pages=2) as here:

            def progress(now):
                if now > START + 600.0:
                    cable.failure = 0

            await here.driver.run(START + HOUR, progress)
            assert cable.tries < 60
            visits = here.store.visits()
            assert set(visits.outcome.tolist()) <= {Outcome.FETCHED, Outcome.NOT_MODIFIED}
            assert len(np.unique(visits.page)) == 80

    asyncio.run(crawl())


def test_hosts_without_a_name_are_their_own_fault(tmp_path, cable):
    cable.failure = NO_NAME

    async def crawl():
        async with scene(tmp_path, tmp_path / "store.db", hosts=12, pages=2) as here:
            await here.driver.run(START + HOUR)
            assert not here.events("no host can be reached")
            assert set(here.store.visits().outcome.tolist()) == {Outcome.UNREACHABLE}

    asyncio.run(crawl())


def test_a_few_hosts_that_are_gone_are_noted_in_time(tmp_path, cable):
    cable.failure = NO_ROUTE

    async def crawl():
        async with scene(tmp_path, tmp_path / "store.db", hosts=2, pages=2) as here:
            await here.driver.run(START + HOUR)
            visits = here.store.visits()
            assert set(visits.outcome.tolist()) == {Outcome.UNREACHABLE}
            assert here.store.counts(START + HOUR).leased == 0

    asyncio.run(crawl())


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["heard", "trusted", "stranger"])), max_size=60))
def test_we_are_cut_off_only_after_enough_silence_and_until_the_first_word(steps):
    outage, silent = NetworkOutage(), {}
    now = 0.0
    for host, what in steps:
        now += 1.0
        if what == "heard":
            assert outage.heard() == (sum(silent.values()) >= ENOUGH)
            silent.clear()
        else:
            outage.silent(host, now, trusted=what == "trusted")
            silent[host] = 1.0 if what == "trusted" else max(0.25, silent.get(host, 0.0))
        assert outage.is_on == (sum(silent.values()) >= ENOUGH)
        if outage.is_on:
            assert now < outage.try_at <= now + 300.0
            assert outage.room(now, 0, 64) == 0
            assert outage.room(outage.try_at, 0, 64) == 1
            assert outage.room(outage.try_at, 1, 64) == 0
        else:
            assert outage.room(now, 3, 64) == 64
