"""Asking archives: again each time, and on from where an asking was cut short."""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from recrawl.errors import FetchError
from recrawl.fetch import ArchiveClient, HttpFetcher, TransferLimits
from recrawl.fetch.archives.archive_client import ArchivePoliteness
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.store.open import open_store
from recrawl.time import VirtualClock
from recrawl.transfer.archive_import import CleaningRules, Importer
from recrawl.transfer.remote_archives import RemoteArchives

HEADER = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
AGENT = "RecrawlTest/1.0 (+https://example.org/bot)"


class Archive:
    """A CDX server with resume keys and TimeMaps, that grows and may fail."""

    def __init__(self) -> None:
        self.days = [1, 2, 3]
        self.at_once = 2
        self.fails_from = 10**9
        """Keys behind which it answers 500."""
        self.asked: list[int] = []

    def answer(self, path: str) -> tuple[int, str]:
        if "/timemap/" in path:
            mementos = [
                f'<http://x/{day}>; rel="memento"; datetime="Mon, 0{day} Jan 2024 00:00:00 GMT"' for day in self.days
            ]
            return 200, ",\n".join(['<http://example.org/>; rel="original"', *mementos])
        begin = int(parse_qs(urlsplit(path).query).get("resumeKey", ["0"])[0])
        self.asked.append(begin)
        if begin >= self.fails_from:
            return 500, ""
        rows: list[list[str]] = [
            ["org,example)/", f"2024010{day}000000", "http://example.org/", "text/html", "200", "A" * 32, "7"]
            for day in self.days[begin : begin + self.at_once]
        ]
        more = [[], [str(begin + self.at_once)]] if begin + self.at_once < len(self.days) else []
        return 200, json.dumps([HEADER, *rows, *more])


@pytest.fixture
def archive():
    return Archive()


@pytest.fixture
def address(archive):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = archive.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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


def ask(store, url, cleaning=None):
    async def main():
        clock, report = VirtualClock(1e9), ReadReport(strict=True)
        async with HttpFetcher(clock, AGENT, limits=TransferLimits(total=60.0)) as fetcher:
            client = ArchiveClient(fetcher, clock, ArchivePoliteness(tries=2))
            taken = await RemoteArchives(store, Importer(store, clock, cleaning), client, clock).bring(url, report)
            return taken, report

    return asyncio.run(main())


@pytest.mark.parametrize("path", ["/cdx/search/cdx?url=example.org/", "/timemap/link/http://example.org/"])
def test_an_archive_that_grew_is_asked_again(store, archive, address, path):
    first, _ = ask(store, address + path)
    assert (first.accepted, first.new) == (3, 3)
    second, report = ask(store, address + path)
    assert (second.accepted, second.new) == (0, 0)
    assert report.skipped == {"imported before": 3}
    archive.days += [4, 5]
    third, _ = ask(store, address + path)
    assert third.new == 2
    assert third.mark.finished


def test_an_asking_that_was_cut_short_goes_on(store, archive, address):
    archive.days = [1, 2, 3, 4, 5]
    archive.fails_from = 4
    url = f"{address}/cdx/search/cdx?url=example.org/"
    with pytest.raises(FetchError):
        ask(store, url)
    archive.fails_from = 10**9
    archive.asked.clear()
    taken, _ = ask(store, url)
    assert archive.asked == [4]
    assert (taken.accepted, taken.mark.accepted) == (1, 5)
    archive.asked.clear()
    ask(store, url)
    assert archive.asked == [0, 2, 4]


def test_another_question_does_not_go_on_with_the_answers_to_this(store, archive, address):
    archive.days = [1, 2, 3, 4, 5]
    archive.fails_from = 4
    url = f"{address}/cdx/search/cdx?url=example.org/"
    with pytest.raises(FetchError):
        ask(store, url, CleaningRules(depth=0))
    archive.fails_from = 10**9
    archive.asked.clear()
    ask(store, url)
    assert archive.asked == [0, 2, 4]
