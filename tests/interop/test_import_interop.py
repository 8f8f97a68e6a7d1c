"""``recrawl import URL`` asks a real pywb; what it learns equals what the archive files themselves say."""

from __future__ import annotations

import pytest

from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture
from recrawl.store.open import open_store
from recrawl.time import VirtualClock

START = 1_700_000_000.0
DAY = 86_400.0


def capture(url: str, day: int, text: str, status: int = 200) -> Capture:
    body = f"<html><body><p>{text}</p><a href='/next'>next</a></body></html>".encode()
    head = f"HTTP/1.1 {status} OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return Capture(url, START + day * DAY, status, head, body)


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    folder = tmp_path_factory.mktemp("collection")
    with WarcWriter(folder, VirtualClock(START)) as writer:
        for day in range(6):
            for page in ("", "a", "b/c"):
                writer.write(capture(f"http://example.com/{page}", day, f"{page} version {day // 2}"))
        writer.write(capture("http://example.com/gone", 1, "there"))
        writer.write(capture("http://example.com/gone", 3, "no more", 404))
    return folder


def visits_of(workspace):
    with open_store(str(workspace / "recrawl.db")) as store:
        visits = store.visits()
        columns = (visits.time.tolist(), visits.outcome.tolist(), visits.verdict.tolist(), visits.status.tolist())
        return sorted(zip(store.urls(visits.page), *columns, strict=True))


@pytest.fixture
def workspace(tmp_path, recrawl):
    def make(name):
        recrawl("init", tmp_path / name, "--set", "fetch.contact=judge@example.org")
        return tmp_path / name

    return make


def test_a_cdx_server_tells_what_the_files_hold(workspace, pywb, collection, recrawl):
    asked, read = workspace("asked"), workspace("read")
    url = f"{pywb(collection)}/cdx?url=example.com/*"
    quick = ("--set", "politeness.min_delay=10ms", "--digests-only")
    recrawl("import", url, "-w", asked, *quick)
    recrawl("import", collection, "-w", read, *quick)
    assert visits_of(asked) == visits_of(read)
    assert [row[3] for row in visits_of(asked) if row[0] == "http://example.com/a"] == [0, 1, 2, 1, 2, 1]
    before = visits_of(asked)
    recrawl("import", url, "-w", asked, *quick)
    assert visits_of(asked) == before


def test_a_timemap_tells_when_a_page_was_captured(workspace, pywb, collection, recrawl):
    asked = workspace("asked")
    url = f"{pywb(collection)}/timemap/link/http://example.com/a"
    recrawl("import", url, "-w", asked, "--set", "politeness.min_delay=10ms")
    assert [(row[0], row[1]) for row in visits_of(asked)] == [
        ("http://example.com/a", START + day * DAY) for day in range(6)
    ]
