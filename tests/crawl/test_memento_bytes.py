"""Bytes of captures that other archives hold: in which order, how often, and what archives may do that limp or lie."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.crawl.worker.outages import acknowledged_by
from recrawl.detect import decoded
from recrawl.errors import FetchError
from recrawl.fetch import ArchiveClient, HttpFetcher, MementoClient, TransferLimits
from recrawl.fetch.archives.archive_client import ArchivePoliteness, RateLimitedError
from recrawl.fetch.http.dns import AddressPolicy
from recrawl.fetch.robots_cache import RobotsCache
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.timemap import read_timemap
from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Verdict
from recrawl.store.open import open_store
from recrawl.store.store_values import MementoState
from recrawl.time import VirtualClock, to_http_date
from recrawl.transfer.archive_import import Importer
from recrawl.transfer.archive_noise_learning import noise_in
from recrawl.transfer.payload_classifier import PayloadClassifier
from recrawl.transfer.remote_archives import ByteBudget, MementoBytes, MementoList, RemoteArchives, question_number

HEADER = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
AGENT = "RecrawlTest/1.0 (+https://example.org/bot)"


def from_timestamp14(stamp):
    return datetime.strptime(f"{stamp}Z", "%Y%m%d%H%M%S%z").timestamp()


def links(*names):
    return "".join(f'<a href="/{name}">{name}</a>' for name in names).encode()


def sha1(body):
    return base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()


class Archive:
    """A Wayback-like archive: a CDX server, TimeMaps, raw mementos and a robots.txt. It may limp, and it may lie."""

    def __init__(self):
        self.held = {}
        """(14 digits, URL) -> (status, media type, body)."""
        self.listed_digest = {}
        self.answers = {}
        """(14 digits, URL) -> function of the handler, in place of the memento."""
        self.robots = None
        self.map_prefix = "/web/{stamp}/{url}"
        self.more_of_map = []
        """Digits and URI of mementos at other archives."""
        self.asked = []
        self.times = []
        self.clock = None

    def hold(self, stamp, url, body, status=200, mime="text/html"):
        self.held[stamp, url] = status, mime, body

    def listing(self):
        rows = []
        for (stamp, url), (status, mime, body) in sorted(self.held.items()):
            digest = self.listed_digest.get((stamp, url), sha1(body))
            rows.append(["key", stamp, url, mime, str(status), digest, str(len(body))])
        return rows

    def answer(self, handler, base):
        path = handler.path
        if path == "/robots.txt":
            if self.robots is None:
                return send(handler, 404, b"")
            return send(handler, 200, self.robots.encode(), {"Content-Type": "text/plain"})
        if path.startswith("/cdx/search/cdx"):
            assert parse_qs(urlsplit(path).query)["url"]
            return send(handler, 200, json.dumps([HEADER, *self.listing()]).encode())
        if path.startswith("/web/timemap/link/"):
            original = path.removeprefix("/web/timemap/link/")
            mementos = [
                f'<{base}{self.map_prefix.format(stamp=stamp, url=url)}>; rel="memento"; '
                f'datetime="{to_http_date(from_timestamp14(stamp))}"'
                for stamp, url in sorted(self.held)
                if url == original
            ]
            mementos += [
                f'<{uri}>; rel="memento"; datetime="{to_http_date(from_timestamp14(stamp))}"'
                for stamp, uri in self.more_of_map
            ]
            return send(handler, 200, ",\n".join([f'<{original}>; rel="original"', *mementos]).encode())
        stamp, _, url = path.removeprefix("/web/").removeprefix("/m/").partition("/")
        key = stamp.removesuffix("id_"), url
        self.asked.append(key)
        self.times.append(self.clock.now() if self.clock else 0.0)
        if key in self.answers:
            return self.answers[key](handler)
        return self.memento(handler, *key)

    def memento(self, handler, stamp, url, more=()):
        status, mime, body = self.held[stamp, url]
        when = to_http_date(from_timestamp14(stamp))
        headers = {"Memento-Datetime": when, "Link": f'<{url}>; rel="original"', "Content-Type": mime}
        headers |= {"X-Archive-Orig-Server": "Original/1", "X-Archive-Src": "x.warc.gz", **dict(more)}
        send(handler, status, body, headers)


def send(handler, status, body, headers=()):
    handler.send_response(status)
    for name, value in {**dict(headers), "Content-Length": str(len(body))}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def archive():
    made = Archive()
    made.hold("20240101000000", "http://a.example/", links("one"))
    made.hold("20240102000000", "http://a.example/", links("one", "two"))
    made.hold("20240103000000", "http://a.example/", links("one", "two"))
    made.hold("20240104000000", "http://a.example/", links("one"))
    made.hold("20240105000000", "http://a.example/", links("one", "two", "three"))
    made.hold("20240101000000", "http://b.example/", b"<p>b")
    made.hold("20240102000000", "http://b.example/", b"<p>gone", status=404)
    made.hold("20240103000000", "http://b.example/pic.png", b"png", mime="image/png")
    return made


@pytest.fixture
def address(archive):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            archive.answer(self, f"http://{self.headers['Host']}")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store.db", create=True) as opened:
        yield opened


CDX = "/cdx/search/cdx?url=*.example"
MAP = "/web/timemap/link/http://a.example/"


@pytest.fixture
def fetch(archive, address, store, tmp_path):
    """``fetch(path, budget)`` lists and fetches on virtual time, then judges; what came, and what was told."""

    def run(path=CDX, budget=ByteBudget(), *, limits=TransferLimits(total=60.0), reach=None, **treatment):  # noqa: B008 - frozen
        url, told = address + path, []

        async def main():
            clock = archive.clock = VirtualClock(1.8e9)
            async with HttpFetcher(clock, AGENT, limits=limits, reach=reach) as fetcher:
                client = ArchiveClient(fetcher, clock, ArchivePoliteness(**{"tries": 2, **treatment}))
                importer = Importer(store, clock)
                mementos = MementoList(store, importer, url, f"{address}/web/")
                await RemoteArchives(store, importer, client, clock, mementos).bring(url, ReadReport(strict=True))
                remote = MementoClient(
                    client, body_of=decoded, read_map=lambda *data: read_timemap(*data, ReadReport())
                )
                robots = RobotsCache(fetcher, clock, AGENT, body_of=decoded)
                files = ArchivedBytes(tmp_path / "warc", imported_into(store))
                try:
                    with WarcWriter(tmp_path / "warc", clock, durable=False, keeper=acknowledged_by(store)) as writer:
                        bytes_of = MementoBytes(
                            store, remote, client, robots, writer, clock, has_file=files.has, on_bad=told.append
                        )
                        return await bytes_of.fetch(url, budget)
                finally:
                    importer.judge()
                    PayloadClassifier(store, files.read, learns_noise=True).judge(store.unread())

        return asyncio.run(main()), told

    return run


def visits(store, url):
    return store.visits(pages=np.array([store.find(url).id]))


def test_the_newest_of_every_page_comes_first_and_what_is_known_is_spared(fetch, archive):
    found, told = fetch()
    assert archive.asked == [
        ("20240105000000", "http://a.example/"),
        ("20240101000000", "http://b.example/"),
        ("20240101000000", "http://a.example/"),  # the first of this digest, for the one of the 4th, too
        ("20240102000000", "http://a.example/"),  # likewise for the 3rd
    ]
    assert not told
    assert (found.captures, found.spared, found.missing, found.failed, found.waiting) == (4, 4, 0, 0, 0)
    assert found.size == sum(len(archive.held[key][2]) for key in archive.asked)


def test_links_are_known_then(fetch, store):
    before, _ = fetch(budget=ByteBudget(captures=0))
    assert before.waiting == 4
    assert (visits(store, "http://a.example/").new_internal < 0).all()
    fetch()
    found = visits(store, "http://a.example/")
    assert found.new_internal.tolist()[1:] == [1, 0, 0, 1]
    assert found.added_internal.tolist()[1:] == [1, 0, 0, 2]


@pytest.mark.parametrize("most", [None, 14])
def test_captures_that_were_spared_are_evidence_against_noise(fetch, archive, store, most):
    """Pages that never change are fetched once: that they stayed is known from their digests."""
    archive.held.clear()
    news = [f"http://m.example/{number}.html" for number in range(14)]
    for day in range(1, 7):
        for number, url in enumerate(news):
            latest = f"Latest: {'abcdef'[day - 1] * 6} {url}" if number < 5 else f"Latest: nothing on {url}"
            archive.hold(f"202401{day:02}000000", url, f"<h1>Page</h1><p>{'text ' * 50}</p><p>{latest}</p>".encode())
    if most:  # the newest of all pages, then versions of the changing ones alone
        fetch(budget=ByteBudget(captures=most))
    found, _ = fetch()
    assert found.waiting == 0
    verdicts = [visits(store, url).verdict.tolist()[1:] for url in news]
    assert verdicts == [[Verdict.CHANGED] * 5] * 5 + [[Verdict.UNCHANGED] * 5] * 9
    assert noise_in(store, ["m.example"]) == {}


def test_records_have_the_date_the_url_and_the_headers_of_the_capture(fetch, archive, tmp_path):
    fetch()
    records = []
    for path in sorted((tmp_path / "warc").glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                records += [(record.rec_type, record.rec_headers, record.http_headers, record.content_stream().read())]
    responses = [one for one in records if one[0] == "response"]
    assert [
        (head["WARC-Date"][:10].replace("-", ""), head["WARC-Target-URI"], body) for _, head, _, body in responses
    ] == [(stamp[:8], url, archive.held[stamp, url][2]) for stamp, url in archive.asked]
    assert all(http["Server"] == "Original/1" and not http["Memento-Datetime"] for _, _, http, _ in responses)
    assert not [one for one in records if one[0] == "request"]  # nobody here asked the original server
    told = [body.decode() for kind, _, _, body in records if kind == "metadata"]
    assert all("/web/2024" in one and "fetchedFromArchive: " in one for one in told)


def test_the_next_run_goes_on_and_asks_for_nothing_twice(fetch, archive):
    one, _ = fetch(budget=ByteBudget(captures=1))
    assert (one.captures, one.waiting, one.ended_by) == (1, 3, "captures")
    two, _ = fetch(budget=ByteBudget(requests=2))
    assert (two.captures, two.waiting, two.ended_by) == (2, 1, "requests")
    rest, _ = fetch()
    assert (rest.captures, rest.waiting, rest.ended_by) == (1, 0, "")
    nothing, _ = fetch()
    assert (nothing.captures, nothing.requests) == (0, 0)
    assert len(archive.asked) == len(set(archive.asked)) == 4


def test_a_budget_of_bytes_ends_it(fetch):
    found, _ = fetch(budget=ByteBudget(size=10))
    assert (found.captures, found.ended_by) == (1, "bytes")


def test_what_an_archive_lists_later_is_fetched_then(fetch, archive):
    fetch()
    archive.asked.clear()
    archive.hold("20240201000000", "http://a.example/", links("four"))
    found, _ = fetch()
    assert archive.asked == [("20240201000000", "http://a.example/")]
    assert found.captures == 1


def test_a_timemap_is_dereferenced_without_digests(fetch, archive, store):
    found, _ = fetch(MAP)
    assert found.captures == 5
    assert [stamp for stamp, _ in archive.asked] == [f"2024010{day}000000" for day in (5, 4, 3, 2, 1)]
    seen = visits(store, "http://a.example/")
    assert seen.status.tolist() == [200] * 5
    assert seen.new_internal.tolist()[1:] == [1, 0, 0, 1]


def test_pauses_are_those_of_a_crawl_and_of_robots_txt(fetch, archive):
    fetch()
    assert min(np.diff(archive.times)) >= 3.0
    archive.times.clear()
    archive.robots = "User-agent: *\nCrawl-delay: 20\nDisallow: /private\n"
    archive.hold("20240301000000", "http://a.example/", links("x"))
    archive.hold("20240302000000", "http://a.example/", links("y"))
    fetch()
    assert min(np.diff(archive.times)) >= 20.0


def test_what_robots_txt_of_the_archive_forbids_is_not_asked_for(fetch, archive):
    archive.robots = "User-agent: *\nDisallow: /web/\n"
    with pytest.raises(FetchError, match=r"robots\.txt"):
        fetch()
    assert not archive.asked


def test_bytes_with_another_digest_are_kept_and_told(fetch, archive, store, address):
    key = "20240105000000", "http://a.example/"
    archive.listed_digest[key] = sha1(b"something else")
    found, told = fetch()
    assert (found.captures, found.differing) == (4, 1)
    assert ["another digest" in str(one) for one in told] == [True]
    assert store.memento_counts(question_number(address + CDX))[MementoState.DIFFERS] == 1
    assert visits(store, "http://a.example/").new_internal.tolist()[-1] == 1


def another(archive, stamp, url):
    """Answers with this capture, as archives do that cannot show the one asked for."""
    return lambda handler: archive.memento(handler, stamp, url)


@pytest.mark.parametrize("how", ["404", "403", "another time", "another page", "no memento", "rewritten"])
def test_what_an_archive_does_not_give_is_told_and_not_asked_for_again(fetch, archive, how):
    key = "20240105000000", "http://a.example/"
    archive.answers[key] = {
        "404": lambda handler: send(handler, 404, b"not archived"),
        "403": lambda handler: send(handler, 403, b"blocked"),
        "another time": another(archive, "20240101000000", "http://a.example/"),
        "another page": lambda handler: archive.memento(handler, *key, [("Link", "<http://c.example/>; rel=original")]),
        "no memento": lambda handler: send(handler, 200, b"<h1>The archive</h1>"),
        "rewritten": lambda handler: send(
            handler, 302, b"", {"Location": "/web/20240101000000id_/http://a.example/"}
        ),
    }[how]  # fmt: skip
    found, told = fetch()
    assert (found.captures, found.missing) == (3, 1)
    assert len(told) == 1
    archive.asked.clear()
    again, _ = fetch()
    assert not archive.asked
    assert again.waiting == 0


def test_an_archive_that_fails_at_one_capture_is_asked_for_the_others(fetch, archive):
    key = "20240105000000", "http://a.example/"
    archive.answers[key] = lambda handler: send(handler, 500, b"broken record")
    found, told = fetch()
    assert (found.captures, found.failed) == (3, 1)
    assert archive.asked.count(key) == 2  # as often as we try
    assert "500" in str(told[0])


def test_an_archive_that_fails_at_all_ends_it_and_is_asked_again_later(fetch, archive):
    for key in list(archive.held):
        archive.answers[key] = lambda handler: send(handler, 503, b"down")
    with pytest.raises(FetchError, match="503"):
        fetch()
    archive.answers.clear()
    found, _ = fetch()
    assert found.captures >= 2  # the two that it failed at first are given up, as a capture that is broken would be


def test_retry_after_is_waited_for(fetch, archive):
    key = "20240105000000", "http://a.example/"

    def once(handler):
        del archive.answers[key]
        send(handler, 429, b"", {"Retry-After": "600"})

    archive.answers[key] = once
    found, _ = fetch()
    assert found.captures == 4
    assert archive.times[1] - archive.times[0] >= 600.0


def test_an_archive_that_wants_more_patience_than_we_have_ends_it_and_loses_nothing(fetch, archive):
    key = "20240101000000", "http://a.example/"
    archive.answers[key] = lambda handler: send(handler, 429, b"", {"Retry-After": "86400"})
    with pytest.raises(RateLimitedError):
        fetch()
    archive.answers.clear()
    before = archive.asked.copy()
    found, _ = fetch()
    assert found.captures == 2
    assert archive.asked[len(before) :] == [key, ("20240102000000", "http://a.example/")]


def test_a_capture_longer_than_we_keep_is_told(fetch, archive):
    archive.hold("20240301000000", "http://a.example/", b"<p>" + b"long " * 100_000)
    found, told = fetch(limits=TransferLimits(total=60.0, body=100_000))
    assert found.failed == 1
    assert "longer than" in str(told[0])


@pytest.mark.parametrize("says", [True, False])
def test_without_a_raw_form_the_archive_must_say_that_it_sends_the_original(fetch, archive, says):
    """URIs without 14 digits do not tell where the raw memento is; what is sent then may be rewritten."""
    archive.held = {("20240101000000", "http://a.example/"): (200, "text/html", links("one"))}
    archive.map_prefix = "/m/memento-1?of={stamp}"
    more = {"Preference-Applied": "original-content, original-headers"}.items() if says else ()

    def answer(handler):
        assert "original-content" in handler.headers["Prefer"]
        archive.memento(handler, "20240101000000", "http://a.example/", more)

    archive.answers["memento-1?of=20240101000000", ""] = answer
    found, told = fetch(MAP)
    assert (found.captures, found.missing, len(told)) == ((1, 0, 0) if says else (0, 1, 1))


def test_no_answer_of_an_archive_breaks_it(fetch, archive):
    """Heads and bodies that no archive would send."""
    stamp, url = "20240105000000", "http://a.example/"
    when = to_http_date(from_timestamp14(stamp))
    heads = [
        {"Memento-Datetime": "yesterday"},
        {"Memento-Datetime": "Fri, 31 Dec 9999999 23:59:59 GMT"},
        {"Memento-Datetime": when, "Content-Encoding": "gzip"},
        {"Memento-Datetime": when, "Content-Encoding": "x" * 500, "X-Archive-Orig-Content-Encoding": "gzip"},
        {"Memento-Datetime": when, "Link": "<>; rel=original," * 50},
        {"Memento-Datetime": when, "Link": '<not a url>; rel="original"'},
        {"Memento-Datetime": when, "X-Archive-Orig-": "x", "X-Archive-Orig-\xe9": "\xff"},
    ]
    for number, head in enumerate(heads):
        archive.hold(f"2024020{number + 1}000000", url, f"<p>{number}".encode())
        archive.answers[f"2024020{number + 1}000000", url] = lambda handler, head=head: send(
            handler, 200, b"\xff\0", head
        )
    for _ in heads:  # three in a row that cannot be read end a run
        with suppress(FetchError):
            if fetch()[0].waiting == 0:
                break
    else:
        pytest.fail("it does not come to an end")


# -- hostile -----------------------------------------------------------------------------------------------


def endless(handler):
    """An answer without an end, in chunks."""
    handler.send_response(200)
    handler.send_header("Memento-Datetime", to_http_date(from_timestamp14("20240105000000")))
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    with suppress(OSError):
        while True:
            handler.wfile.write(b"10000\r\n" + b"a" * 65_536 + b"\r\n")


def bomb(handler):
    """Half a megabyte that would be 512 MB."""
    body = gzip.compress(bytes(512 << 20), 1)
    head = {"Memento-Datetime": to_http_date(from_timestamp14("20240105000000")), "Content-Encoding": "gzip"}
    send(handler, 200, body, head)


def huge_chunk(handler):
    handler.send_response(200)
    handler.send_header("Memento-Datetime", to_http_date(from_timestamp14("20240105000000")))
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"FFFFFFFFFFFFFFFF\r\nx")


HOSTILE = {
    "endless": endless,
    "bomb": bomb,
    "huge chunk": huge_chunk,
    "private address": lambda handler: send(handler, 302, b"", {"Location": "http://127.77.0.1:1/secret"}),
    "metadata": lambda handler: send(handler, 307, b"", {"Location": "http://169.254.169.254/latest/"}),
    "no http": lambda handler: send(handler, 302, b"", {"Location": "file:///etc/passwd"}),
    "circle": lambda handler: send(handler, 302, b"", {"Location": handler.path}),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_answer_costs_one_capture(fetch, archive, how):
    key = "20240105000000", "http://a.example/"
    archive.answers[key] = HOSTILE[how]
    found, told = fetch(limits=TransferLimits(total=60.0, body=1 << 20), reach=AddressPolicy.of(["127.0.0.1"]))
    assert (found.captures, found.failed + found.missing, found.waiting) == (3, 1, 0)
    assert len(told) == 1
    archive.asked.clear()
    assert fetch()[0].waiting == 0
    assert not archive.asked


def test_a_capture_that_our_own_code_fails_on_costs_no_other(fetch, monkeypatch):
    real = MementoBytes._keep

    def fails(self, listed, capture, *more):
        if b"three" in capture.raw_body:
            raise OverflowError("poison")
        return real(self, listed, capture, *more)

    monkeypatch.setattr(MementoBytes, "_keep", fails)
    found, told = fetch()
    assert (found.captures, found.failed) == (3, 1)
    assert "OverflowError('poison')" in str(told[0])


def test_where_a_redirect_leads_robots_txt_is_obeyed_and_the_rest_is_fetched(fetch, archive, site):
    key = "20240105000000", "http://a.example/"
    archive.answers[key] = lambda handler: send(handler, 302, b"", {"Location": f"{site.home}secret"})
    site.answers["/robots.txt"] = (200, {"Content-Type": "text/plain"}, "User-agent: *\nDisallow: /secret\n")
    found, told = fetch()
    assert (found.captures, found.missing) == (3, 1)
    assert "robots.txt" in str(told[0])
    assert site.paths() == []


def test_a_host_of_a_map_that_forbids_it_costs_no_other_host(fetch, archive, site):
    archive.held = {(f"2024010{day}000000", "http://a.example/"): (200, "text/html", links(f"{day}")) for day in (1, 2)}
    archive.more_of_map = [("20240105000000", f"{site.home}web/20240105000000/http://a.example/")]
    site.answers["/robots.txt"] = (200, {"Content-Type": "text/plain"}, "User-agent: *\nDisallow: /\n")
    found, told = fetch(MAP)
    assert (found.captures, found.waiting) == (2, 1)
    assert ["robots.txt" in str(one) for one in told] == [True]
    assert site.paths() == []


# -- killed ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_after_a_kill_it_goes_on_where_it_was(archive, address, tmp_path):
    """A real command, killed while it waits for a capture; whatever it had got is there, and is not asked for again."""
    held, reached = threading.Event(), threading.Event()
    key = "20240101000000", "http://a.example/"

    def hold(handler):
        reached.set()
        held.wait(300)
        archive.memento(handler, *key)

    archive.answers[key] = hold
    workspace = tmp_path / "ws"
    command = [sys.executable, "-m", "recrawl"]
    quick = ["--set", "politeness.min_delay=0s", "--set", "politeness.factor=0", "--set", "fetch.contact=a@example.org"]
    words = [*command, "import", address + CDX, "--bytes", "-w", str(workspace), "--json", *quick]
    subprocess.run([*command, "init", str(workspace)], check=True, capture_output=True)
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not reached.wait(1.0):
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    held.set()
    del archive.answers[key]
    before = archive.asked.copy()
    assert before[-1] == key
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert archive.asked[len(before) :] == [key, ("20240102000000", "http://a.example/")]
    assert found["bytes"]["captures"] == 2
    assert found["visits_compared_by_content"] >= 5
    with open_store(workspace / "recrawl.db") as store:
        assert visits(store, "http://a.example/").new_internal.tolist()[1:] == [1, 0, 0, 1]
    assert not list((workspace / "warc").glob("*.open"))
