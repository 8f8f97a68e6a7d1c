"""Answers that ended or froze whole crawls, from a real server to a real crawl: every page is visited, none breaks."""

import asyncio
import gzip
import json
from contextlib import suppress

import pytest

from recrawl.crawl.clock import RealClock
from recrawl.crawl.driver import Pace
from recrawl.crawl.live import CrawlSettings, live_crawl
from recrawl.crawl.parse_pool import MIB, ParseLimits
from recrawl.crawl.scope import HostScope
from recrawl.model import Outcome
from recrawl.schedule.fixed_interval import FixedInterval
from recrawl.schedule.politeness import PolitenessRules
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


@pytest.mark.slow
def test_every_page_is_visited_and_nothing_breaks(tmp_path):
    """Each host has one of the answers; on the old code the first two ended the run, the fourth filled the memory."""

    async def crawl():
        server = await asyncio.start_server(answer, "0.0.0.0", 0)
        port = server.sockets[0].getsockname()[1]
        hosts = {f"127.0.1.{number}:{port}": name for number, name in enumerate(ANSWERS, start=1)}
        settings = CrawlSettings(
            1e3,
            "hostile/1 (+mailto:me@example.org)",
            politeness=PolitenessRules(factor=0.0, shortest=0.0, longest=0.0),
            pace=Pace(poll=1.0),
            parsing=ParseLimits(cpu=5.0, memory=128 * MIB),
            durable=False,
        )
        clock = RealClock()
        with open_store(tmp_path / "store.db", create=True, durable=False) as store:
            pages = store.discover([f"http://{host}/{name}" for host, name in hosts.items()], clock.now())
            scope = HostScope(frozenset(hosts))
            async with live_crawl(
                "one", FixedInterval(HOUR), clock=clock, store=store, folder=tmp_path, scope=scope, settings=settings
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
    told = {event["details"]["url"].rpartition("/")[2] for event in events if event["message"] == "answer not read"}
    assert told <= {"colons", "page", "chunks"}
