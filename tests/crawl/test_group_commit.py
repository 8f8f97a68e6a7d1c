"""A thread waits for the disk while the crawl goes on: nothing is lost, and no more visits gather than may.

Everything is real. Only the disk is slowed down or filled up: what waits for it is replaced.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from recrawl.crawl.clock import RealClock
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import CrawlWorker, WorkerPace
from recrawl.crawl.worker.group_commit import GroupCommit
from recrawl.errors import DiskFullError
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.store.base import Store
from recrawl.store.open import open_store

HOSTS = [f"127.0.0.{number}" for number in range(1, 9)]
PAGES = 40
"""Of each host, all of them in hand at once."""
BATCH, CONCURRENCY, ENOUGH = 4, 8, 3
PATIENCE = 200
"""Seconds: compiled code may have to be made first, on a machine that is busy."""


@dataclass
class Scene:
    driver: CrawlWorker
    store: Store
    folder: Path
    asked: list[str] = field(default_factory=list)
    """Pages that were asked for, one after the other."""

    async def run_until(self, is_enough):
        """Run until it is; a crawl that does not get there fails."""
        clock = RealClock()

        def progress(_now):
            if is_enough():
                self.driver.stop()

        await self.driver.run(clock.now() + PATIENCE, progress)
        assert is_enough()

    def check_nothing_is_lost(self):
        """Every request became a visit with its archive record, once."""
        visits = self.store.visits()
        assert len(visits) == len(self.asked)
        assert len(self.store.captures(self.store.pages().id)) == len(visits)
        assert self.store.counts(RealClock().now()).leased == 0

    def events(self, message):
        lines = map(json.loads, (self.folder / "recrawl.log").read_text(encoding="utf-8").splitlines())
        return [event for event in lines if event["message"] == message]


@asynccontextmanager
async def scene(folder, batch):
    asked: list[str] = []

    async def serve(reader, writer):
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split(b" ", 2)[1].decode()
            if path != "/robots.txt":
                asked.append(path)
            body = f"<p>{len(asked)} times</p>".encode()
            status = b"404 Not Found" if path == "/robots.txt" else b"200 OK"
            writer.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))

    async def answer(reader, writer):
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)

    clock = RealClock()
    server = await asyncio.start_server(answer, HOSTS, 0)
    # Each address has a port of its own.
    places = [listening.getsockname()[:2] for listening in server.sockets]
    settings = WorkerSettings(
        budget=1e6,
        user_agent="aside/1.0 (+https://example.org/)",
        politeness=PolitenessRules(factor=0.0, shortest=0.0, longest=0.0),
        pace=WorkerPace(batch=batch, concurrency=CONCURRENCY, per_host=PAGES, linger=0.01),
    )
    with open_store(folder / "store.db", create=True) as store:
        store.discover([f"http://{host}:{port}/{n}" for host, port in places for n in range(PAGES)], clock.now())
        async with live_crawl(
            "one",
            FixedInterval(0.01),
            clock=clock,
            store=store,
            folder=folder,
            scope=HostScope(frozenset(HOSTS)),
            settings=settings,
        ) as driver:
            yield Scene(driver, store, folder, asked)
        await asyncio.sleep(0.05)  # every connection is closed by now
    server.close()


class Disk:
    """Takes the place of what waits for the disk, and does so after what it is told to do first."""

    def __init__(self, monkeypatch, first):
        sync, self.waits = WarcWriter.sync, 0

        def wait(writer):
            first(self.waits)
            sync(writer)
            self.waits += 1

        monkeypatch.setattr(WarcWriter, "sync", wait)


def test_requests_go_on_while_visits_wait_for_the_disk(tmp_path, monkeypatch):
    meanwhile, handed_over, submit = [], [0], ThreadPoolExecutor.submit

    async def crawl():
        async with scene(tmp_path, batch=64) as here:

            def noted(pool, *work):
                """Visits are handed over: a thread that begins late must not count from there."""
                if pool._thread_name_prefix == "group_commit":
                    handed_over.append(len(here.asked))
                return submit(pool, *work)

            def asked_more(waits):
                """Done once more pages were asked for than were on their way."""
                for _ in range(PATIENCE * 100 if waits < ENOUGH else 0):
                    if len(here.asked) >= handed_over[-1] + CONCURRENCY + BATCH:
                        meanwhile.append(len(here.asked))
                        break
                    time.sleep(0.01)

            monkeypatch.setattr(ThreadPoolExecutor, "submit", noted)
            disk = Disk(monkeypatch, asked_more)
            await here.run_until(lambda: disk.waits >= ENOUGH)
            here.check_nothing_is_lost()

    asyncio.run(crawl())
    assert len(meanwhile) == ENOUGH


def test_no_more_visits_gather_than_a_group_holds(tmp_path, monkeypatch):
    gathered = []

    async def crawl():
        async with scene(tmp_path, batch=BATCH) as here:
            # Those that wait behind the group that is written: once they are enough the crawl stands still, and the
            # group that it waits for is not counted any more.
            made = here.driver._group_commit

            def slowly(waits):
                """Done some time after others have gathered."""
                for _ in range(PATIENCE * 100 if waits < ENOUGH else 0):
                    if len(made._waiting) >= BATCH:
                        break
                    time.sleep(0.01)
                time.sleep(0.05)
                gathered.append(len(made._waiting))

            disk = Disk(monkeypatch, slowly)
            await here.run_until(lambda: disk.waits >= ENOUGH)
            here.check_nothing_is_lost()

    asyncio.run(crawl())
    # Requests that ended in the same moment are taken in together.
    assert max(gathered) <= BATCH + CONCURRENCY
    assert max(gathered) >= BATCH


def test_a_disk_that_is_full_for_a_while(tmp_path, monkeypatch):
    left = [2]

    def full(waits):
        if waits >= ENOUGH and left[0]:
            left[0] -= 1
            raise DiskFullError("The disk is full.", "Make room.")

    async def crawl():
        async with scene(tmp_path, batch=BATCH) as here:
            disk = Disk(monkeypatch, full)
            await here.run_until(lambda: disk.waits >= 2 * ENOUGH)
            here.check_nothing_is_lost()
            assert len(here.events("waiting for disk space")) == 2
            assert len(here.events("storage works again")) == 1

    asyncio.run(crawl())
    assert left == [0]


def test_a_disk_that_fails_after_the_store_was_told(tmp_path, monkeypatch):
    """The group is written once more, and counts once."""
    left, waits, real, forgotten = [2], [0], os.fsync, []

    def failing(file):
        if Path(f"/proc/self/fd/{file}").readlink().name.endswith("-wal"):
            waits[0] += 1
            if waits[0] > ENOUGH and left[0]:
                left[0] -= 1
                raise OSError(errno.EIO, "the disk is tired")
        real(file)

    async def crawl():
        async with scene(tmp_path, batch=BATCH) as here:
            asyncio.get_running_loop().set_exception_handler(lambda _loop, context: forgotten.append(context))
            monkeypatch.setattr("os.fsync", failing)
            await here.run_until(lambda: waits[0] >= 3 * ENOUGH)
            gc.collect()
            here.check_nothing_is_lost()
            assert here.events("waiting for the store")
            assert len(here.events("storage works again")) == 1

    asyncio.run(crawl())
    assert left == [0]
    assert not forgotten  # nobody is told of an exception that somebody else took care of


def test_a_run_that_is_cancelled_waits_for_what_is_written(tmp_path, monkeypatch):
    async def crawl():
        async with scene(tmp_path, batch=BATCH) as here:
            loop, writing = asyncio.get_running_loop(), asyncio.Event()

            def told(waits):
                if waits >= ENOUGH:
                    loop.call_soon_threadsafe(writing.set)
                    time.sleep(0.05)

            Disk(monkeypatch, told)
            run = asyncio.create_task(here.driver.run(RealClock().now() + PATIENCE))
            await writing.wait()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            visits = here.store.visits()
            assert len(visits) >= ENOUGH
            assert len(here.store.captures(here.store.pages().id)) == len(visits)
            assert len(here.asked) - len(visits) <= CONCURRENCY

    asyncio.run(crawl())


def test_beside_other_workers_a_batch_collects_for_longer():
    parts = dict.fromkeys(("lease_pool", "ready_queue", "sitemap_feed_poller", "log", "faults", "on_visits"))
    visited = SimpleNamespace(target=SimpleNamespace(host=1), first=None, capture=None)
    for workers, linger in ((1, 0.25), (3, 0.75), (9, 1.0), (1, 0.25)):
        group = GroupCommit(None, politeness=Politeness(PolitenessRules()), most=BATCH, linger=0.25, **parts)
        group.share(workers)
        group.add(visited, 100.0)
        assert (group.due, group.is_due(100.0)) == (100.0 + linger, False)
