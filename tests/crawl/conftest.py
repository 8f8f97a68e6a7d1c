"""A capture on stage: a real server, a real store and real archive files; only the time is virtual, where it is."""

import io
import json
import shutil
import threading
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from recrawl.crawl.archive import WarcArchive
from recrawl.crawl.capture import SiteDriver
from recrawl.crawl.log import JsonLinesLog
from recrawl.detect import decoded
from recrawl.fetch.http import HttpFetcher
from recrawl.fetch.robots import RobotsCache
from recrawl.formats.warc import WarcWriter
from recrawl.schedule.politeness import Politeness, PolitenessRules
from recrawl.store.base import Store
from recrawl.store.open import open_store
from recrawl.time import Clock, VirtualClock

AGENT = "capture/1.0 (+https://example.org/)"
DELAY = 10.0


@dataclass
class Scene:
    driver: SiteDriver
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
                robots = RobotsCache(fetcher, clock, AGENT, body_of=decoded, on_capture=archive.keep_aside)
                driver = SiteDriver(
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

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.home = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def paths(self):
        """What was asked for, in order, but for the rules."""
        return [path for path, _ in self.asked if path != "/robots.txt"]

    def close(self):
        self._server.shutdown()
        self._server.server_close()


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
