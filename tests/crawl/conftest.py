"""A capture on stage: a real server, a real store and real archive files; only the time is virtual, where it is."""

import io
import json
import shutil
import threading
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.site_capture.site_capture_driver import SiteCaptureDriver
from recrawl.crawl.visit.warc_archive import REVISIT, WarcArchive
from recrawl.detect import decoded
from recrawl.fetch.http.http_fetcher import HttpFetcher
from recrawl.fetch.robots_cache import RobotsCache
from recrawl.formats.warc.warc_records import from_base32
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture, Outcome, Verdict, Visits
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.store.base import Store
from recrawl.store.open import open_store
from recrawl.store.store_values import CaptureRecord
from recrawl.time import Clock, VirtualClock

AGENT = "capture/1.0 (+https://example.org/)"
DELAY = 10.0


@dataclass
class Scene:
    driver: SiteCaptureDriver
    store: Store
    clock: Clock
    log: io.StringIO

    async def capture(self, order, **how):
        """Begin and finish a capture; the report."""
        return await self.driver.run(await self.driver.begin(order), **how)

    def events(self, message):
        return [event for event in map(json.loads, self.log.getvalue().splitlines()) if event["message"] == message]

    def urls(self, pages):
        return self.store.urls(np.asarray(pages, np.int64))


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory):
    """The file of a store without anything in it, to be copied."""
    path = tmp_path_factory.mktemp("store") / "empty.db"
    open_store(path, create=True).close()
    return path


@pytest.fixture
def scene(tmp_path, empty_store):
    """``async with scene(clock=…, hosts=…) as stage``: everything but the server. Opened again, it goes on."""

    @asynccontextmanager
    async def open_scene(clock=None, hosts=(), rates=lambda page: np.full(len(page), 1e-5), rules=None, **how):
        clock = clock or VirtualClock(1.79e9)
        stream = io.StringIO()
        location = tmp_path / "store.db"
        if not location.exists():
            shutil.copy(empty_store, location)
        with ExitStack() as stack:
            store = stack.enter_context(open_store(location, durable=False))
            writer = stack.enter_context(WarcWriter(tmp_path / "warc", clock))
            async with HttpFetcher(clock, AGENT, resolve=dict.fromkeys(hosts, "127.0.0.1")) as fetcher:
                archive = WarcArchive(writer, store)
                robots = RobotsCache(fetcher, clock, AGENT, body_of=decoded, on_capture=archive.write_auxiliary)
                driver = SiteCaptureDriver(
                    clock=clock,
                    store=store,
                    fetcher=fetcher,
                    robots=robots,
                    politeness=Politeness(rules or PolitenessRules(factor=0.0, shortest=DELAY, longest=DELAY)),
                    archive=archive,
                    rates=rates,
                    log=JsonLinesLog(stream, clock),
                    **how,
                )
                yield Scene(driver, store, clock, stream)

    open_scene.forget = (tmp_path / "store.db").unlink
    return open_scene


class Site:
    """A server whose answers are listed: path → (status, headers, body), or a function of how often it was asked."""

    def __init__(self):
        self.answers = {}
        self.asked = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65_536  # head and body in one piece: two pieces wait 40 ms for each other

            def do_GET(self):
                site.asked.append((self.path, dict(self.headers)))
                answer = site.answers.get(self.path, (404, {}, ""))
                if callable(answer):
                    answer = answer(sum(path == self.path for path, _ in site.asked))
                status, headers, body = answer
                data = body.encode()
                self.send_response(status)
                for name, value in {"Content-Type": "text/html", **headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.home = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def paths(self):
        """What was asked for, in order, but for the rules."""
        return [path for path, _ in self.asked if path != "/robots.txt"]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def linked(*paths, text=""):
    """A page with these links."""
    return 200, {}, f"<html><body><p>{text}</p>{''.join(f'<a href={path}>x</a>' for path in paths)}</body></html>"


@pytest.fixture
def site():
    opened = Site()
    yield opened
    opened.close()


@pytest.fixture(name="linked")
def linked_page():
    return linked


NOW = 1.79e9
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
REQUEST = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"


class Maker:
    """A small workspace made directly, without a crawl: pages, visits and records as a crawl writes them."""

    def __init__(self, folder: Path, location: str) -> None:
        self.folder, self.location = folder, location
        (folder / "warc").mkdir(parents=True, exist_ok=True)

    def writer(self, **how) -> WarcWriter:
        return WarcWriter(self.folder / "warc", VirtualClock(NOW), durable=False, **how)

    def capture(self, url, time, body=None):
        body = f"<p>{url} {time}</p>".encode() if body is None else body
        return Capture(url, time, 200, HEAD % len(body), body, raw_request=REQUEST)

    def fill(self, pages=6, times=3):
        """Visit some pages a few times; every second visit finds nothing new, and becomes a revisit."""
        with open_store(self.location) as store, self.writer() as writer:
            ids = store.discover([f"http://h{n % 3}.example/{n}" for n in range(pages)], NOW - 1e6)
            last = {}
            for turn in range(times):
                for page, url in zip(ids.tolist(), store.urls(ids), strict=True):
                    when = NOW - 1e5 + turn * 1e3 + page
                    body = b"<p>%d of %d</p>" % (turn // 2, page)
                    kept = writer.write(self.capture(url, when, body), revisit_of=last.get(page))
                    repeats = last.get(page) == kept.ref
                    last[page] = kept.ref
                    self.record(store, page, when, kept, REVISIT if repeats else "text/html", size=len(body))
            writer.write(self.capture("http://h1.example/robots.txt", NOW - 5.0))
            store.record_links(ids[:-1], ids[1:], np.full(len(ids) - 1, NOW - 9.0))
        return ids

    def record(self, store, page, when, kept, mime="text/html", *, size=9):  # noqa: PLR0913 - a row
        digest = from_base32(kept.ref.payload_digest.removeprefix("sha1:"))
        row = CaptureRecord(page, when, 200, mime, digest, size, kept.file, kept.offset, kept.length)
        visits = Visits.of(np.array([page]), np.array([when]), outcome=Outcome.FETCHED, verdict=Verdict.UNCHANGED)
        store.record(visits, captures=[row], due=np.array([NOW + 9.0 + page]))

    @property
    def files(self):
        return sorted((self.folder / "warc").iterdir())


@pytest.fixture
def sqlite_maker(tmp_path, empty_store):
    """Makes a workspace on SQLite."""
    (tmp_path / "w").mkdir()
    shutil.copy(empty_store, tmp_path / "w" / "recrawl.db")
    return Maker(tmp_path / "w", str(tmp_path / "w" / "recrawl.db"))


@pytest.fixture(params=["sqlite", "postgresql"])
def maker(request, tmp_path):
    """Makes a workspace on either engine."""
    if request.param == "sqlite":
        return request.getfixturevalue("sqlite_maker")
    location = request.getfixturevalue("new_database")()
    open_store(location, create=True).close()
    return Maker(tmp_path / "w", location)
