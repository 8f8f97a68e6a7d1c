"""Answers that ended or froze whole crawls, from a real server to a real crawl: every page is visited, none breaks."""

import asyncio
import gzip
import io
import json
import os
import shutil
import threading
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.app.workspace.settings import Settings
from recrawl.crawl.clock import RealClock
from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.site_capture.site_capture_driver import SiteCaptureDriver
from recrawl.crawl.visit import warc_archive
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.visit_machine import FirstFetch, VisitTarget, seen_once
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.detect import PageState, classify_change, decoded
from recrawl.fetch.http.bytes_in_flight import FREE
from recrawl.fetch.http.http_fetcher import HttpFetcher, TransferLimits
from recrawl.fetch.robots_cache import RobotsCache
from recrawl.formats.warc import warc_records
from recrawl.formats.warc.warc_reader import read_capture
from recrawl.formats.warc.warc_records import WarcRecord, packed_body
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture, Outcome, Validators
from recrawl.parse.parse_pool import _LONG, MIB, ParseLimits
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.store.open import open_store
from recrawl.time import HOUR

OK = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n"
RDF = b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"><r:Description r:about="http://s/">'
LAUGHS = b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10))
ANSWERS = {
    "chunk": OK % b"text/html" + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nhello",
    "date": OK % b"text/html" + b"Last-Modified: Sun, 06 Nov 9999999999999999999999999 08:49:37 GMT\r\n\r\nhello",
    "retry": b"HTTP/1.1 503 No\r\nRetry-After: Sun, 06 Nov 9999999999999999999999999 08:49:37 GMT\r\n\r\n",
    "laughs": OK % b"application/rdf+xml"
    + b'\r\n<!DOCTYPE r [<!ENTITY a0 "lol">'
    + LAUGHS
    + b"]>"
    + RDF
    + b"<e:p>&a9;</e:p>",
    "colons": OK % b"text/plain" + b"\r\n" + b"1:" * 1_000_000,
    "page": OK % b"text/html" + b"\r\n" + b"<p>hello " * 1_000_000,
    "bomb": OK % b"text/html" + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b" " * (64 * MIB - 1)),
    "chunks": OK % b"text/html" + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 500_000 + b"0\r\n\r\n",
    "well": OK % b"text/html" + b"Content-Length: 5\r\n\r\nhello",
}


async def answer(reader, writer):
    head = await reader.readuntil(b"\r\n\r\n")
    name = head.split(b" ", 2)[1].decode().strip("/")
    writer.write(ANSWERS.get(name, b"HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n"))
    with suppress(OSError):
        await writer.drain()
    writer.close()


SETTINGS = WorkerSettings(
    1e3,
    "hostile/1 (+mailto:me@example.org)",
    politeness=PolitenessRules(factor=0.0, shortest=0.0, longest=0.0),
    pace=WorkerPace(poll=1.0),
    parsing=ParseLimits(cpu=5.0, memory=128 * MIB),
    durable=False,
)


@pytest.mark.parametrize("breaks", [False, True])
def test_large_answers_are_compressed_before_they_are_recorded(tmp_path, monkeypatch, breaks):
    """What takes long is done in a thread; if our own code fails at that, it is done when the answer is written."""
    large = os.urandom(2 * warc_archive.SMALL)
    answers = {"large": large, "small": b"hello"}
    ahead = []

    async def answer(reader, writer):
        name = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode().strip("/")
        writer.write(
            OK % b"image/x" + b"Content-Length: %d\r\n\r\n" % len(answers.get(name, b"")) + answers.get(name, b"")
        )
        with suppress(OSError):
            await writer.drain()
        writer.close()

    def tell(batch):
        ahead.extend((visited.target.url[-5:], packed_body(visited.capture) is not None) for visited in batch)

    if breaks:
        monkeypatch.setattr(warc_archive, "pack", lambda *_: 1 // 0)

    async def crawl():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        clock = RealClock()
        with open_store(tmp_path / "store.db", create=True, durable=False) as store:
            pages = store.discover([f"http://{host}/{name}" for name in answers], clock.now())
            async with live_crawl(
                "one",
                FixedInterval(HOUR),
                clock=clock,
                store=store,
                folder=tmp_path,
                scope=HostScope(frozenset({host})),
                settings=SETTINGS,
                on_visits=tell,
            ) as driver:
                await driver.run(clock.now() + HOUR, until_idle=True)
            server.close()
            return store.captures(pages)

    kept = asyncio.run(crawl())
    assert sorted(ahead) == [("large", not breaks), ("small", False)]
    bodies = [read_capture(tmp_path / "warc" / one.warc_file, one.warc_offset).raw_body for one in kept]
    assert sorted(bodies, key=len) == [b"hello", large]


def compressions(monkeypatch):
    """Where bodies are compressed: the thread of each that is packed ahead, and the bytes of each other block."""
    packed, inline = [], []
    pack, member = warc_records.pack, WarcRecord.member

    def packing(capture, repeats=""):
        pack(capture, repeats)
        packed.append((capture.url.rpartition("/")[2], threading.get_ident(), packed_body(capture).size))

    def making(record, *rest):
        if record.packed is None:
            inline.append(sum(map(len, record.block)))
        return member(record, *rest)

    monkeypatch.setattr(warc_archive, "pack", packing)
    monkeypatch.setattr(WarcRecord, "member", making)
    return packed, inline


def incompressible(sizes):
    """Answers of so many random bytes, by name; each name has a new answer at each request."""

    async def answer(reader, writer):
        name = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode().strip("/")
        size = sizes.get(name, 0)
        kind = b"text/plain" if name.endswith("txt") else b"application/xml" if name.endswith("xml") else b"image/x"
        writer.write(OK % kind + b"Content-Length: %d\r\n\r\n" % size + os.urandom(size))
        with suppress(OSError):
            await writer.drain()
        writer.close()

    return answer


def check_files(folder):
    """Every record of the WARC files can be read, with digests that hold."""
    found = 0
    for path in sorted(folder.iterdir()):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                record.content_stream().read()
                found += 1
    return found


def test_no_large_answer_is_compressed_in_the_event_loop(tmp_path, monkeypatch):
    """Pages and robots.txt: the event loop compresses no block larger than the limit for small ones."""
    packed, inline = compressions(monkeypatch)
    sizes = {"robots.txt": 400_000, "large": 16 * MIB, "middle": 100_000, "small": 1_000}

    async def crawl():
        server = await asyncio.start_server(incompressible(sizes), "127.0.0.1", 0)
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        clock = RealClock()
        with open_store(tmp_path / "store.db", create=True, durable=False) as store:
            pages = store.discover([f"http://{host}/{name}" for name in sizes if "." not in name], clock.now())
            async with live_crawl(
                "one",
                FixedInterval(HOUR),
                clock=clock,
                store=store,
                folder=tmp_path,
                scope=HostScope(frozenset({host})),
                settings=SETTINGS,
            ) as driver:
                await driver.run(clock.now() + HOUR, until_idle=True)
            server.close()
            return threading.get_ident(), store.captures(pages)

    loop, kept = asyncio.run(crawl())
    assert {(name, size) for name, _, size in packed} == {item for item in sizes.items() if item[0] != "small"}
    assert loop not in {thread for _, thread, _ in packed}
    assert max(inline) <= warc_archive.SMALL
    assert sorted(one.size for one in kept) == sorted(size for name, size in sizes.items() if "." not in name)
    assert check_files(tmp_path / "warc") >= 2 * len(sizes)


def test_a_site_capture_compresses_no_large_sitemap_in_the_event_loop(tmp_path, monkeypatch, empty_store):
    packed, inline = compressions(monkeypatch)
    sizes = {"robots.txt": 0, "sitemap.xml": 300_000, "": 200_000}

    async def capture():
        server = await asyncio.start_server(incompressible(sizes), "127.0.0.1", 0)
        clock, rules = RealClock(), PolitenessRules(factor=0.0, shortest=0.0, longest=0.0)
        shutil.copy(empty_store, tmp_path / "store.db")
        with (
            open_store(tmp_path / "store.db", durable=False) as store,
            WarcWriter(tmp_path / "warc", clock, durable=False) as writer,
        ):
            archive = warc_archive.WarcArchive(writer, store)
            async with HttpFetcher(clock, SETTINGS.user_agent) as fetcher:
                driver = SiteCaptureDriver(
                    clock=clock,
                    store=store,
                    fetcher=fetcher,
                    robots=RobotsCache(fetcher, clock, SETTINGS.user_agent, body_of=decoded),
                    politeness=Politeness(rules),
                    archive=archive,
                    rates=lambda page: np.full(len(page), 1e-5),
                    log=JsonLinesLog(io.StringIO(), clock),
                )
                home = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
                order = CaptureOrder(site=home, strategy="bfs", from_sitemap=True, delay=0.0)
                await driver.run(await driver.begin(order))
        server.close()
        return threading.get_ident()

    loop = asyncio.run(capture())
    assert {(name, size) for name, _, size in packed} >= {("sitemap.xml", 300_000), ("", 200_000)}
    assert loop not in {thread for _, thread, _ in packed}
    assert max(inline) <= warc_archive.SMALL


def test_a_confirmation_that_returns_to_the_old_version_is_compressed_ahead(tmp_path, empty_store):
    """The first fetch found B, the second A again: A is not a revisit, because B was archived in between."""
    url, head = "http://a.example/", b"HTTP/1.1 200 OK\r\nContent-Type: image/x\r\n\r\n"
    old, new = (os.urandom(warc_archive.SMALL + 1) for _ in range(2))
    clock = RealClock()
    shutil.copy(empty_store, tmp_path / "store.db")
    with (
        open_store(tmp_path / "store.db", durable=False) as store,
        WarcWriter(tmp_path / "warc", clock, durable=False) as writer,
    ):
        archive = warc_archive.WarcArchive(writer, store)
        [page] = store.discover([url], 1.0).tolist()
        visited = []
        for time, body in enumerate([old, new, old], start=1):
            known = PageState(Validators(digest=b"1")) if visited else None
            target = VisitTarget(page, 1, url, 0.0, known)
            capture = Capture(url, float(time), 200, head, body)
            visited.append(seen_once(target, FirstFetch(capture, classify_change(capture, known), conditional=False)))
        first, again, back = visited
        list(archive.write([first]))
        archive.ahead(replace(back, first=again))()
        assert all(packed_body(one.capture).deflated for one in (again, back))
        list(archive.write([again, back]))
    assert check_files(tmp_path / "warc") == 4


@pytest.mark.slow
def test_every_page_is_visited_and_nothing_breaks(tmp_path):
    """Each host has one of the answers; on the old code the first two ended the run, the fourth filled the memory."""

    async def crawl():
        server = await asyncio.start_server(answer, "0.0.0.0", 0)
        port = server.sockets[0].getsockname()[1]
        hosts = {f"127.0.1.{number}:{port}": name for number, name in enumerate(ANSWERS, start=1)}
        clock = RealClock()
        with open_store(tmp_path / "store.db", create=True, durable=False) as store:
            pages = store.discover([f"http://{host}/{name}" for host, name in hosts.items()], clock.now())
            scope = HostScope(frozenset(hosts))
            async with live_crawl(
                "one", FixedInterval(HOUR), clock=clock, store=store, folder=tmp_path, scope=scope, settings=SETTINGS
            ) as driver:
                await driver.run(clock.now() + HOUR, until_idle=True)
            visits = store.visits()
            found = dict(zip(visits.page.tolist(), visits.outcome.tolist(), strict=True))
            outcomes = {name: Outcome(found[page]) for page, name in zip(pages.tolist(), ANSWERS, strict=True)}
        server.close()
        return outcomes

    outcomes = asyncio.run(crawl())
    events = [json.loads(line) for line in (tmp_path / "recrawl.log").read_text().splitlines()]
    assert [event for event in events if event["logLevel"] == "error"] == []
    failed = {"chunk": Outcome.UNREACHABLE, "retry": Outcome.SERVER_ERROR}
    assert outcomes == {name: failed.get(name, Outcome.FETCHED) for name in ANSWERS}
    told = {event["details"]["url"].rpartition("/")[2] for event in events if event["message"] == "response not parsed"}
    assert told <= {"colons", "page", "chunks"}


def test_the_default_limits_add_up_to_less_than_a_gigabyte():
    """The sum of ``docs/explanation/politeness.md``, with margin: what was measured may differ between machines."""
    limits, crawl, most = ParseLimits(), WorkerSettings(1.0, "a"), TransferLimits().body
    measured = 144_000_000 + 98_000_000
    first_parts = 2 * FREE * crawl.pace.concurrency
    copies = most + most + _LONG
    assert measured + crawl.in_flight + first_parts + copies + limits.workers * limits.memory < 950_000_000
    said = Settings()
    assert (said.fetch.max_in_flight, said.fetch.max_size) == (crawl.in_flight, most)
    assert (said.detect.parse_limits().memory, said.crawl.concurrency) == (limits.memory, crawl.pace.concurrency)
