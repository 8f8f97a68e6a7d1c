"""What recrawl promises a webmaster, proved from the server's own log of a crawl in real time.

Hosts lie at several loopback addresses, some of them at the same one. Pauses are short, and lower bounds only: a busy
machine makes them longer, never shorter.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from urllib.parse import urlsplit

import numpy as np
import pytest

from recrawl.crawl.clock import RealClock
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.worker.crawl_assembly import CRAWL_LOG, WorkerSettings, live_crawl
from recrawl.crawl.worker.crawl_worker import WorkerPace
from recrawl.formats.crawl_log import parse_line
from recrawl.model import Outcome
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import IpLimits, PolitenessRules
from recrawl.store.open import open_store
from recrawl.time import to_http_date

AGENT = "polite/1.0 (+https://example.org/)"
PAUSE, IP_PAUSE, CRAWL_DELAY, SECONDS = 0.2, 0.1, 0.7, 5.0
PERIODS = 12
"""How often the crawl goes on for those seconds, at most, until every host was asked a few times."""
SHARED = ("one.test", "two.test", "three.test")
ADDRESS = {
    **dict.fromkeys(SHARED, "127.0.0.1"),
    "alone.test": "127.0.0.2",
    "second.test": "127.0.0.2",
    "patient.test": "127.0.0.3",
    "busy.test": "127.0.0.4",
    "dated.test": "127.0.0.4",
    "closed.test": "127.0.0.5",
    "moved.test": "127.0.0.6",
}


@dataclass(frozen=True)
class Logged:
    """A request as the server saw it. Seconds on the machine's steady clock."""

    host: str
    address: str
    path: str
    began: float
    ended: float
    """Just before the answer was sent."""
    status: int


class Web:
    """All hosts in one server, which keeps its log."""

    def __init__(self):
        self.log = []
        self.busy_until = {}
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65_536

            def do_GET(self):
                began = time.monotonic()  # noqa: TID251 - the server has its own clock
                host = self.headers["Host"].partition(":")[0]
                status, headers, body = web.answer(host, self.path)
                time.sleep(0.03)
                ended = time.monotonic()  # noqa: TID251
                address = self.connection.getsockname()[0]
                web.log.append(Logged(host, address, self.path, began, ended, status))
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)  # all of loopback
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, host, path):
        if path == "/robots.txt":
            return self.rules(host)
        if host == "moved.test" and path == "/rules.txt":
            return 200, {}, b"User-agent: *\nDisallow: /secret\n"
        if path == "/sitemap.xml":
            urls = "".join(f"<url><loc>http://{host}:{self.port}/{name}</loc></url>" for name in "xyz")
            return 200, {}, f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{urls}</urlset>".encode()
        if host in ("busy.test", "dated.test") and host not in self.busy_until:
            wall = time.time()  # noqa: TID251
            until = wall + 1.0 if host == "busy.test" else math.ceil(wall) + 1.0
            self.busy_until[host] = time.monotonic() + until - wall  # noqa: TID251
            return (
                (503, {"Retry-After": "1"}, b"")
                if host == "busy.test"
                else (429, {"Retry-After": to_http_date(until)}, b"")
            )
        links = "".join(f'<a href="/{name}">x</a>' for name in ("a", "b", "c", "secret"))
        return 200, {"Content-Type": "text/html"}, f"<html><p>{path}</p>{links}</html>".encode()

    def rules(self, host):
        match host:
            case "closed.test":
                return 503, {}, b""
            case "moved.test":
                return 301, {"Location": "/rules.txt"}, b""
            case "patient.test":
                return 200, {}, f"User-agent: *\nCrawl-delay: {CRAWL_DELAY}\nDisallow: /secret\n".encode()
            case "one.test":
                sitemap = f"Sitemap: http://one.test:{self.port}/sitemap.xml\n"
                return 200, {}, f"User-agent: *\nDisallow: /secret\n{sitemap}".encode()
            case _:
                return 200, {}, b"User-agent: *\nDisallow: /secret\n"

    def of(self, name, value):
        """The requests with this host or address, in the order in which they began."""
        return sorted((one for one in self.log if getattr(one, name) == value), key=lambda one: one.began)

    def each_often_enough(self):
        """Whether each host was asked for some pages."""
        return all(
            sum(one.status == 200 for one in self.of("host", host)) >= 5 for host in ADDRESS.keys() - {"closed.test"}
        )

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """The server after a crawl of some seconds, how visits ended by host, and the lines of crawl.log."""
    folder, web = tmp_path_factory.mktemp("crawl"), Web()
    try:
        outcomes = asyncio.run(_crawl(folder, web))
    finally:
        web.close()
    return web, outcomes, [parse_line(line) for line in (folder / CRAWL_LOG).read_text().splitlines()]


async def _crawl(folder, web):
    clock = RealClock()
    hosts = frozenset(f"{host}:{web.port}" for host in ADDRESS)
    settings = WorkerSettings(
        10.0,
        AGENT,
        politeness=PolitenessRules(factor=0.0, shortest=PAUSE, longest=PAUSE),
        turns=IpLimits(IP_PAUSE, 1),
        pace=WorkerPace(poll=0.5),
        pins={f"{host}:{web.port}": address for host, address in ADDRESS.items()},
        durable=False,
    )
    with open_store(str(folder / "store.db"), create=True, durable=False) as store:
        crawling = live_crawl(
            "w", FixedInterval(0.5), clock=clock, store=store, folder=folder, scope=HostScope(hosts), settings=settings
        )
        async with crawling as driver:
            seeds = [f"http://{host}/{name}" for host in sorted(hosts) for name in ("", "a", "b", "c")]
            store.discover(seeds, clock.now())
            for _ in range(PERIODS):
                await driver.run(clock.now() + SECONDS)
                if web.each_often_enough():
                    break
        visits, pages = store.visits(), store.pages()
        host_of = dict(zip(pages.id.tolist(), pages.host.tolist(), strict=True))
        names = [url.split("/")[2].partition(":")[0] for url in store.urls(pages.id)]
        name_of = dict(zip(pages.host.tolist(), names, strict=True))
        found = defaultdict(set)
        for page, outcome in zip(visits.page.tolist(), visits.outcome.tolist(), strict=True):
            found[name_of[host_of[page]]].add(Outcome(outcome))
        return found


def gaps(requests):
    """Seconds from the end of each request to the beginning of the next."""
    return np.array([after.began - before.ended for before, after in pairwise(requests)])


def test_every_host_is_crawled_again_and_again(crawled):
    web, *_ = crawled
    for host in ADDRESS.keys() - {"closed.test"}:
        asked = [one for one in web.of("host", host) if one.status == 200 and one.path != "/robots.txt"]
        assert len(asked) >= 2, f"{host} is crawled"


@pytest.mark.parametrize("host", ADDRESS)
def test_a_host_has_its_pause_after_each_answer(crawled, host):
    assert (gaps(crawled[0].of("host", host)) >= PAUSE).all()


@pytest.mark.parametrize("address", sorted(set(ADDRESS.values())))
def test_an_address_has_its_pause_after_each_answer_to_any_of_its_hosts(crawled, address):
    requests = crawled[0].of("address", address)
    assert requests
    assert (gaps(requests) >= IP_PAUSE).all(), "never nearer, and so never two at once"


def test_hosts_at_one_address_take_turns(crawled):
    requests = crawled[0].of("address", "127.0.0.1")
    assert {one.host for one in requests} == set(SHARED)
    counts = [sum(one.host == host for one in requests) for host in SHARED]
    assert min(counts) * 3 >= max(counts)


def test_several_addresses_are_asked_at_once(crawled):
    spans = sorted((one.began, one.ended, one.address) for one in crawled[0].log)
    together = sum(b[0] < a[1] and a[2] != b[2] for a, b in pairwise(spans))
    assert together, "politeness is by host and address, not for all together"


def test_a_crawl_delay_is_kept(crawled):
    requests = crawled[0].of("host", "patient.test")
    assert len(requests) >= 4
    assert requests[0].path == "/robots.txt"
    assert (gaps(requests) >= CRAWL_DELAY).all(), "also between the rules that ask for it and the first page"


@pytest.mark.parametrize("host", ["busy.test", "dated.test"])
def test_a_host_that_asks_for_time_gets_it(crawled, host):
    web, *_ = crawled
    requests = web.of("host", host)
    [asking] = [number for number, one in enumerate(requests) if one.status in (429, 503)]
    assert len(requests) > asking + 1, "and is asked again afterwards"
    assert requests[asking + 1].began >= web.busy_until[host] - 0.002  # of reading two clocks


def test_where_the_rules_cannot_be_had_nothing_else_is_asked_for(crawled):
    web, outcomes, _ = crawled
    assert {one.path for one in web.of("host", "closed.test")} == {"/robots.txt"}
    assert len(web.of("host", "closed.test")) == 1
    assert outcomes["closed.test"] <= {Outcome.UNREACHABLE}


@pytest.mark.parametrize("host", ADDRESS.keys() - {"closed.test"})
def test_rules_are_read_first_and_kept(crawled, host):
    paths = [one.path for one in crawled[0].of("host", host)]
    assert paths[0] == "/robots.txt"
    assert paths.count("/robots.txt") == 1
    assert "/secret" not in paths


def test_rules_that_moved_are_followed_with_the_same_pause(crawled):
    paths = [one.path for one in crawled[0].of("host", "moved.test")]
    assert paths[:2] == ["/robots.txt", "/rules.txt"]


def test_a_sitemap_is_asked_for_like_any_page(crawled):
    paths = [one.path for one in crawled[0].of("host", "one.test")]
    assert "/sitemap.xml" in paths


def test_the_rules_name_what_was_refused(crawled):
    assert Outcome.REFUSED in crawled[1]["alone.test"]


def test_every_request_is_a_line_of_the_crawl_log(crawled):
    web, _, lines = crawled
    told = Counter((urlsplit(line.url).hostname, urlsplit(line.url).path, line.status) for line in lines)
    asked = Counter((one.host, one.path, one.status) for one in web.log)
    assert {attempt: count for attempt, count in told.items() if attempt[2] > 0} == asked
    paths = defaultdict(set)
    for line in lines:
        paths[urlsplit(line.url).path].add(line.hops)
    assert paths["/robots.txt"] == paths["/rules.txt"] == {"P"}
    assert paths["/sitemap.xml"] == {"M"}
