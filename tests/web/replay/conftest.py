"""A workspace with real archive files, and its server of time travel on a port of its own."""

import gzip
import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
import uvicorn

from recrawl.app.workspace.workspace import make_workspace
from recrawl.formats.warc.warc_records import from_base32
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture, Outcome, Verdict, Visit, Visits
from recrawl.store.store_values import REVISIT, CaptureRecord
from recrawl.time import HOUR, VirtualClock
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.dashboard.stale_cache import StorePool
from recrawl.web.replay.replay_app import time_travel_app
from recrawl.web.replay.workspace_archive import archive_of
from recrawl.web.servers import bound

START = 1_704_067_200.25
"""2024-01-01 00:00:00.25"""
HOME = "http://site.example/"
EVIL = "<script>document.title='evil'</script>\"><img src=x onerror=alert(1)>"


def page(body):
    return (
        f"<html><head><title>{EVIL}</title><link rel=stylesheet href=/style.css><base href='/'></head>"
        f"<body onload='alert(1)'><script>document.title='evil'</script><img src=logo.png><img src=/missing.png>"
        f"<a href=\"javascript:alert(1)\">x</a><a href='/q?a=1&b=2#there'>q</a>{body}</body></html>"
    ).encode()


def head(status, *lines):
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1")


def html(body, *lines):
    packed = gzip.compress(page(body), mtime=0)
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed)
    given = ("Content-Type: text/html; charset=utf-8", "Content-Encoding: gzip", "Transfer-Encoding: chunked")
    return head("200 OK", *given, "Set-Cookie: a=b", f"X-Evil: {EVIL}", *lines), chunked


HTML = "Content-Type: text/html"


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name):
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        return found[0] if len(found) == 1 else found or None

    @property
    def text(self):
        return self.body.decode()


@dataclass
class Server:
    """Asks over a real connection, and follows nothing."""

    port: int
    place: object = None
    stores: object = None
    guard: AccessGuard = None
    captured: list = field(default_factory=list)

    @property
    def base(self):
        return f"http://127.0.0.1:{self.port}/"

    def ask(self, path, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path if path.startswith("/") else f"/{path}", body, given)
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def send(self, path, body, **headers):
        """Send something, as a program does that knows the token."""
        return self.ask(path, "POST", body, Authorization=f"Bearer {self.guard.write_token}", **headers)


class Builder:
    """Visits pages at times and archives them as a crawl does."""

    def __init__(self, place, store):
        self._store = store
        self._writer = WarcWriter(place.warc, VirtualClock(START), durable=False)
        self._refs = {}

    def visit(self, url, after, raw_head, raw_body=b"", verdict=Verdict.UNKNOWN, **more):
        time, status = START + after, int(raw_head.split()[1])
        [number] = self._store.discover([url], START).tolist()
        capture = Capture(url, time, status, raw_head, raw_body, **more)
        known = self._refs.get(url)
        place = self._writer.write(capture, revisit_of=known)
        repeats = known is not None and place.ref == known
        self._refs[url] = place.ref
        digest = from_base32(place.ref.payload_digest.removeprefix("sha1:"))
        outcome = {304: Outcome.NOT_MODIFIED, 301: Outcome.REDIRECTED, 404: Outcome.GONE}.get(status, Outcome.FETCHED)
        mime = REVISIT if repeats else capture.header("content-type").partition(";")[0]
        record = CaptureRecord(
            number, time, status, mime, digest, len(raw_body), place.file, place.offset, place.length
        )
        self._store.record(Visits.from_rows([Visit(number, time, outcome, verdict, status=status)]), captures=[record])

    def close(self):
        self._writer.close()


def build(place):
    with place.open_store() as store:
        made = Builder(place, store)
        made.visit(HOME, 0, *html("first", 'ETag: "1"'))
        made.visit(HOME, 1 * HOUR, head("304 Not Modified", 'ETag: "1"'), verdict=Verdict.UNCHANGED)
        made.visit(HOME, 2 * HOUR, *html("first", 'ETag: "2"'), verdict=Verdict.UNCHANGED)
        made.visit(HOME, 5 * HOUR, *html("second"), verdict=Verdict.CHANGED)
        made.visit(f"{HOME}style.css", 10, head("200 OK", "Content-Type: text/css"), b"body { color: red }")
        made.visit(f"{HOME}style.css", 3 * HOUR, head("200 OK", "Content-Type: text/css"), b"p { color: blue }",
                   verdict=Verdict.CHANGED)  # fmt: skip
        made.visit(f"{HOME}logo.png", 4 * HOUR, head("200 OK", "Content-Type: image/png"), b"\x89PNG\r\n\x1a\n")
        made.visit(f"{HOME}old", 20, head("301 Moved Permanently", "Location: /new?x=1", HTML), b"")
        made.visit(f"{HOME}cut", 30, head("200 OK", "Content-Type: text/plain"), b"only the beg", truncated="length")
        made.visit(f"{HOME}gone", 40, head("404 Not Found", HTML), b"<p>gone</p>")
        made.visit(f"{HOME}q?a=1&b=2", 50, head("200 OK", "Content-Type: text/plain"), b"found")
        made.visit(f"{HOME}dir/one", 60, head("200 OK", "X-No-Type: here"), b"<script>alert(1)</script>")
        made.visit("http://sub.site.example/", 70, head("200 OK", "Content-Type: text/plain"), b"sub")
        made.close()


def serve(app, listening):
    """A server in a thread; returns what ends it."""
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error", ws="none"))
    ready = threading.Event()
    begin = server.startup

    async def startup(sockets=None):
        await begin(sockets=sockets)
        ready.set()

    server.startup = startup
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    assert ready.wait(60)

    def end():
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()

    return end


@pytest.fixture(scope="session")
def make_server(tmp_path_factory):
    """Builds a workspace and serves it; all end with the tests."""
    endings = []

    def make(*, guard=None, filled=True, replay="", settings=None):
        place = make_workspace(tmp_path_factory.mktemp("travel") / "ws", settings or {})
        if filled:
            build(place)
        stores = StorePool(place.open_store)
        listening = bound("127.0.0.1", 0)
        clock = VirtualClock(START + 10 * HOUR)
        guard = guard or AccessGuard()
        app = time_travel_app(archive_of(place, stores.one, clock), guard, replay=replay)
        end = serve(app, listening)
        endings.append(lambda: (end(), stores.close(), listening.close()))
        return Server(listening.getsockname()[1], place, stores, guard)

    yield make
    with ThreadPoolExecutor(max(len(endings), 1)) as together:
        list(together.map(lambda end: end(), endings))


@pytest.fixture(scope="session")
def server(make_server):
    return make_server()


@pytest.fixture(scope="session")
def serve_app():
    """Serves an application on a socket, and gives what ends that."""
    return serve


@pytest.fixture(scope="session")
def make_builder():
    """Gives what visits pages of a workspace, given it and its store."""
    return Builder


@pytest.fixture
def build_visits():
    """Adds visits to a workspace, each so many seconds after the start."""

    def add(place, url, raw_head, raw_body, after=(0,)):
        with place.open_store() as store:
            made = Builder(place, store)
            for seconds in after:
                made.visit(url, seconds, raw_head, raw_body)
            made.close()

    return add
