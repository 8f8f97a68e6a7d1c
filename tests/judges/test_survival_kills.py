"""A crawl that is killed a hundred times: nothing acknowledged is lost, nothing else is there, and others can read it.

``recrawl run`` itself is killed, at random moments, its own start included. The server's log is the witness of what was
asked for, warcio and pywb are the judges of what was written.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import apsw
import numpy as np
import pytest
import yaml
from warcio.archiveiterator import ArchiveIterator

from recrawl.model import Outcome, Verdict
from recrawl.store.open import open_store
from recrawl.time import to_timestamp14

resource = pytest.importorskip("resource", reason="processes are forked here, and this system cannot")
STARTER = Path(__file__).parents[1] / "crawl" / "crawl_process.py"
HOSTS, PAGES, CONCURRENCY = 5, 12, 8
ALL = HOSTS * (PAGES + 1)
"""Pages there are: numbered ones, and the home of each host."""
LOOKS = 2
"""Most requests for one page that a process which is killed can cost: a visit, and its second look."""
SETTINGS = {
    "fetch": {"contact": "me@example.org", "allow_networks": "127.0.0.0/8"},
    "politeness": {"factor": 0.0, "min_delay": 0.0, "ip_delay": 0.0},
    "schedule": {"policy": "uniform", "budget": "2000/s"},
    "crawl": {"concurrency": CONCURRENCY, "scope": "host"},
}


PATIENCE = 120


def until(so, said):
    """Wait until it is so; else tell what is ``said``."""
    for _ in range(PATIENCE * 200):
        if so():
            return
        time.sleep(0.005)
    raise AssertionError(f"no progress: {said()}")


class Request(NamedTuple):
    time: float
    url: str


class BusySite(asyncio.Protocol):
    """One connection to a few hosts that answer at once, and whose pages change now and then."""

    log: list[Request]
    open: set[asyncio.BaseTransport]

    def connection_made(self, transport):
        self.open.add(transport)
        self._transport = transport
        self._host = transport.get_extra_info("sockname")
        self._data = b""

    def connection_lost(self, _error):
        self.open.discard(self._transport)

    def data_received(self, data):
        self._data += data
        while b"\r\n\r\n" in self._data:
            head, _, self._data = self._data.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            now = time.time()  # noqa: TID251 - a server of its own, beside the crawler
            if path != "/robots.txt":
                self.log.append(Request(now, f"http://{self._host[0]}:{self._host[1]}{path}"))
            self._transport.write(answer(path, head, now))


def answer(path, head, now):
    if path == "/robots.txt":
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    number = int(path.strip("/") or 0)
    version = int(now / (1.0 + number % 4))
    tag = b'"%d"' % version
    if b"If-None-Match: " + tag in head:
        return b"HTTP/1.1 304 Not Modified\r\nETag: " + tag + b"\r\n\r\n"
    links = "".join(f'<a href="/{(number * 3 + n) % PAGES}">{n}</a> ' for n in range(3))
    prose = " ".join(f"word{(number * 7919 + version * 104_729 + n * n) % 9973}" for n in range(200))
    body = f"<html><body><p>{prose}</p>{links}</body></html>".encode()
    fields = b"Content-Type: text/html\r\nETag: " + tag
    return b"HTTP/1.1 200 OK\r\n%s\r\nContent-Length: %d\r\n\r\n%s" % (fields, len(body), body)


@dataclass
class Site:
    port: int
    log: list[Request]
    open: set[asyncio.BaseTransport]
    """Connections that the server has not seen the end of."""

    @property
    def homes(self):
        return [f"http://127.0.0.{number + 1}:{self.port}/" for number in range(HOSTS)]

    def until_all_is_read(self):
        """Return when the server has read what dead crawlers sent: it may not have come to that yet."""
        for number in range(HOSTS):  # whoever connected before is taken in before
            with socket.create_connection((f"127.0.0.{number + 1}", self.port), PATIENCE) as connection:
                connection.sendall(b"GET /robots.txt HTTP/1.1\r\n\r\n")
                assert connection.recv(1)
        until(lambda: not self.open, lambda: f"connections that do not end: {self.open}")

    def is_quiet(self):
        """Whether nobody asked for anything in the last second."""
        return time.time() - self.log[-1].time > 1.0  # noqa: TID251 - its own log


@pytest.fixture
def site():
    try:
        socket.create_server((f"127.0.0.{HOSTS}", 0)).close()
    except OSError:
        pytest.skip("hosts are addresses of loopback here, and this system has but one")
    log, ready, stop = [], threading.Event(), []
    place = Site(0, log, set())

    async def serve():
        loop = asyncio.get_running_loop()
        made = type("Connection", (BusySite,), {"log": log, "open": place.open})
        servers = [await loop.create_server(made, "127.0.0.1", 0)]
        place.port = servers[0].sockets[0].getsockname()[1]
        servers += [await loop.create_server(made, f"127.0.0.{n + 1}", place.port) for n in range(1, HOSTS)]
        over = asyncio.Event()
        stop.append(lambda: loop.call_soon_threadsafe(over.set))
        ready.set()
        await over.wait()
        for server in servers:
            server.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE)
    yield place
    stop[0]()
    thread.join(PATIENCE)


class Starter:
    """Runs ``recrawl`` in processes of its own, quickly."""

    def __init__(self, process, said):
        self._process, self._said = process, said

    def _ask(self, order):
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def start(self, *arguments):
        return self._ask({"run": [str(argument) for argument in arguments], "said": str(self._said)})

    def end(self, process, number=None):
        """Send it a signal and wait for its end; its exit code."""
        if number is not None:
            os.kill(process, number)
        return self._ask({"wait": process})

    def said(self):
        return self._said.read_text(encoding="utf-8") if self._said.exists() else ""


@contextmanager
def a_starter(folder):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's
    inherited["OPENBLAS_NUM_THREADS"] = "1"
    command = [sys.executable, STARTER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=inherited, **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        yield Starter(process, folder / "said.txt")
        process.stdin.close()


@pytest.fixture(scope="module")
def starter(tmp_path_factory):
    with a_starter(tmp_path_factory.mktemp("starter")) as started:
        yield started


def rows(visits):
    columns = [column.tolist() for column in visits.columns().values()]
    return {(row[0], row[1]): row[2:] for row in zip(*columns, strict=True)}


@dataclass
class Crawl:
    """A workspace whose crawl is killed again and again."""

    folder: Path
    location: str
    site: Site
    starter: Starter
    rng: np.random.Generator
    unacknowledged: int = 0
    """Requests that were made and not acknowledged when a process was killed."""

    def begin(self):
        return self.starter.start("run", "-w", self.folder)

    def kill_some(self, times, workers=1):
        """Kill so many processes, at random moments; what was acknowledged before stays as it was."""
        with open_store(self.location) as store:
            known = rows(store.visits())
            for _ in range(times // workers):
                before = len(self.site.log)
                alive = [self.begin() for _ in range(workers)]
                if self.rng.random() < 0.9:
                    self.until(lambda before=before: len(self.site.log) > before)
                for process in alive:
                    time.sleep(self.rng.random() * 0.15)
                    assert self.starter.end(process, signal.SIGKILL) == -signal.SIGKILL, self.starter.said()
                self.site.until_all_is_read()
                now_known = rows(store.visits())
                assert now_known.items() >= known.items()
                lost = self.lost(store, before, [page for page, _ in now_known.keys() - known.keys()])
                # Whoever begins after another was killed takes over its pages, and is killed with them.
                assert all(0 <= requests <= LOOKS * workers for requests in lost.values()), lost
                self.unacknowledged += lost.total()
                known = now_known

    def lost(self, store, before, acknowledged):
        """By URL, requests since there were so many that are none of these visits."""
        asked = Counter(request.url for request in self.site.log[before:])
        asked.subtract(store.urls(np.array(acknowledged, np.int64)))
        return asked

    def finish(self):
        """Let it run undisturbed for a moment, then ask it to stop, as systemd and docker do."""
        before = len(self.site.log)
        process = self.begin()
        self.until(lambda: len(self.site.log) > before + 100)
        with open_store(self.location) as store:
            self.until(lambda: len(np.unique(store.visits().page)) == ALL)
        assert self.starter.end(process, signal.SIGTERM) == 11, self.starter.said()

    def until(self, so):
        until(so, self.starter.said)


def made(starter, site, folder, location, seed):
    for order in (("init", folder, "--store", location), ("add", "-w", folder, *site.homes)):
        assert starter.end(starter.start(*order)) == 0, starter.said()
    text = yaml.safe_dump(SETTINGS | {"store": {"location": location}})  # without comments it is read in no time
    (folder / "recrawl.yaml").write_text(text, encoding="utf-8")
    place = str(folder / location) if "://" not in location else location
    return Crawl(folder, place, site, starter, np.random.default_rng(seed))


def check(crawl, *, long=True):
    """What is acknowledged is archived, what is archived is acknowledged, and the server saw both.

    In a crawl that was ``long`` some page changed.
    """
    with open_store(crawl.location) as store:
        visits, pages = store.visits(), store.pages()
        url_of = dict(zip(pages.id.tolist(), store.urls(pages.id), strict=True))
        captures = {(row.warc_file, row.warc_offset): row for row in store.captures(pages.id)}
        assert store.counts(time.time()).leased == 0  # noqa: TID251 - as the crawler
    assert len(np.unique(visits.page)) == ALL
    assert set(visits.outcome.tolist()) <= {Outcome.FETCHED, Outcome.NOT_MODIFIED}
    assert (visits.verdict == Verdict.CHANGED).any() or not long
    assert len(crawl.site.log) - len(visits) == crawl.unacknowledged
    asked = Counter(request.url for request in crawl.site.log)
    seen = Counter(url_of[page] for page in visits.page.tolist())
    assert all(asked[url] >= seen[url] for url in asked)

    folder = crawl.folder / "warc"
    assert not list(folder.glob("*.open"))
    assert len(captures) == len(visits)
    found = set()
    for file in folder.glob("*.warc.gz"):
        with file.open("rb") as stream:
            records = ArchiveIterator(stream, check_digests="raise")
            for record in records:
                url = record.rec_headers.get_header("WARC-Target-URI", "")
                if record.rec_type not in {"response", "revisit"} or url.endswith("/robots.txt"):
                    continue
                row = captures[file.name, records.get_record_offset()]
                assert url == url_of[row.page]
                assert record.rec_headers.get_header("WARC-Payload-Digest") == f"sha1:{b32(row.digest)}"
                record.content_stream().read()
                assert records.get_record_length() == row.warc_length
                found.add((row.warc_file, row.warc_offset))
    assert found == set(captures)
    return captures, url_of


def b32(digest):
    return base64.b32encode(digest).decode()


def test_a_hundred_kills_lose_nothing(site, starter, tmp_path, tool, pywb):
    crawl = made(starter, site, tmp_path / "w", "recrawl.db", seed=1)
    crawl.kill_some(90)
    crawl.kill_some(10, workers=2)
    crawl.finish()
    captures, url_of = check(crawl)
    files = sorted((tmp_path / "w" / "warc").glob("*.warc.gz"))
    checked = tool("warcio", "check", *files)
    assert checked.returncode == 0, checked.stdout
    connection = apsw.Connection(str(tmp_path / "w" / "recrawl.db"))
    assert connection.pragma("integrity_check") == "ok"
    connection.close()
    base = pywb(tmp_path / "w" / "warc")
    for row in np.random.default_rng(2).choice(list(captures.values()), 10, replace=False):
        with urllib.request.urlopen(f"{base}/{to_timestamp14(row.time)}id_/{url_of[row.page]}", timeout=30) as reply:
            assert reply.read().startswith(b"<html><body><p>word")


needs_prlimit = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="limits of another process stand in for a full disk"
)


@needs_prlimit
def test_a_full_disk_is_waited_out(site, starter, tmp_path):
    """The system lets no file grow any more; then there is room again."""
    crawl = made(starter, site, tmp_path / "w", "recrawl.db", seed=5)
    process = crawl.begin()
    crawl.until(lambda: len(site.log) > 100)
    [written] = (tmp_path / "w" / "warc").glob("*.open")
    resource.prlimit(process, resource.RLIMIT_FSIZE, (written.stat().st_size, resource.RLIM_INFINITY))
    crawl.until(lambda: "waiting for" in log_of(crawl))
    crawl.until(site.is_quiet)
    stands = len(site.log)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    crawl.until(lambda: len(site.log) > stands + 100)
    assert starter.end(process, signal.SIGTERM) == 11, starter.said()
    assert "going on" in log_of(crawl)
    crawl.finish()
    check(crawl, long=False)


@needs_prlimit
def test_a_disk_that_stays_full_ends_the_run_with_a_code_of_its_own(site, starter, tmp_path):
    crawl = made(starter, site, tmp_path / "w", "recrawl.db", seed=5)
    process = crawl.begin()
    crawl.until(lambda: len(site.log) > 100)
    [written] = (tmp_path / "w" / "warc").glob("*.open")
    resource.prlimit(process, resource.RLIMIT_FSIZE, (written.stat().st_size, resource.RLIM_INFINITY))
    crawl.until(lambda: "waiting for" in log_of(crawl))
    assert starter.end(process, signal.SIGTERM) == 3, starter.said()
    site.until_all_is_read()
    with open_store(crawl.location) as store:
        crawl.unacknowledged = len(site.log) - len(store.visits())
    crawl.finish()
    check(crawl, long=False)


def log_of(crawl):
    return (crawl.folder / "recrawl.log").read_text(encoding="utf-8")


def test_kills_on_postgresql_lose_nothing(site, starter, tmp_path, new_database):
    crawl = made(starter, site, tmp_path / "w", new_database(), seed=3)
    crawl.kill_some(6)
    crawl.kill_some(4, workers=2)
    crawl.finish()
    check(crawl)
