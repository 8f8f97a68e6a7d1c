"""Answers that ended or froze whole crawls, from a real server to a real crawl: every page is visited, none breaks."""

import asyncio
import gzip
import json
import os
from contextlib import suppress

import pytest

from recrawl.crawl.clock import RealClock
from recrawl.crawl.visit import warc_archive
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.formats.warc.warc_reader import read_capture
from recrawl.formats.warc.warc_records import LARGE, packed_body
from recrawl.model import Outcome
from recrawl.parse.parse_pool import MIB, ParseLimits
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import PolitenessRules
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
    large = os.urandom(2 * LARGE)
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
