"""One record that our own code fails on is counted, named with file and position, and passed over."""

from __future__ import annotations

import pytest

from recrawl.crawl import payloads
from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into
from recrawl.crawl.importing import Importer
from recrawl.crawl.payloads import PayloadJudge
from recrawl.crawl.sources import Sources
from recrawl.formats import warc_reader
from recrawl.formats.warc import WarcWriter
from recrawl.model import Capture
from recrawl.store.open import open_store
from recrawl.time import VirtualClock

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def poison(real, is_bad):
    def broken(*arguments, **named):
        if is_bad(*arguments):
            raise OverflowError("poison")
        return real(*arguments, **named)

    return broken


@pytest.fixture
def archive(tmp_path):
    """Files with three pages each."""
    for number in range(2):
        with WarcWriter(tmp_path / f"in{number}", VirtualClock(1.7e9)) as writer:
            for name in ("one", "bad", "two"):
                body = f"<a href=/x{name}>{name}</a>".encode()
                writer.write(Capture(f"http://a.example/{name}{number}", 1.7e9 + number, 200, HEAD, body))
    return tmp_path


@pytest.fixture
def import_all(archive):
    """Imports all files; the URLs that were visited, and what was told as broken."""

    def run():
        told = []
        with open_store(archive / "store.db", create=True) as store:
            importer = Importer(store, VirtualClock(1.8e9))
            sources = Sources(store, importer, VirtualClock(1.8e9), archive / "warc", on_bad=told.append)
            brought = [one for number in range(2) for one in sources.bring(archive / f"in{number}")]
            importer.judge()
            read = ArchivedBytes(archive / "warc", imported_into(store)).read
            judged = PayloadJudge(store, read, on_bad=told.append).judge(store.unread())
            visits = store.visits()
            return sorted(store.urls(visits.page)), judged, told, brought

    return run


GOOD = [f"http://a.example/{name}{number}" for name in ("one", "two") for number in range(2)]
BAD = [f"http://a.example/bad{number}" for number in range(2)]


def test_a_record_that_breaks_the_reader_is_passed_over(import_all, monkeypatch):
    def is_bad(_index, record, *_more):
        return "/bad" in record.headers.get("WARC-Target-URI")

    monkeypatch.setattr(warc_reader._Index, "row", poison(warc_reader._Index.row, is_bad))
    urls, _, told, brought = import_all()
    assert urls == sorted(GOOD)
    assert [one.broken for one in brought] == [1, 1]
    assert len(told) == 2
    for error in told:
        assert error.source.endswith(".warc.gz")
        assert error.position > 0
        assert "OverflowError('poison')" in str(error)


def test_a_file_that_breaks_the_reader_is_passed_over(import_all, monkeypatch):
    monkeypatch.setattr(warc_reader, "opened", poison(warc_reader.opened, lambda path: path.parent.name == "in0"))
    urls, _, told, brought = import_all()
    assert [one.broken for one in brought] == [1, 0]
    assert "in0" in told[0].source
    assert [url for url in urls if url.endswith("1")] == sorted(url for url in [*GOOD, *BAD] if url.endswith("1"))


def test_a_page_whose_bytes_break_the_judge_is_judged_by_its_digest(import_all, monkeypatch):
    monkeypatch.setattr(payloads, "judge", poison(payloads.judge, lambda capture, *_: "/bad" in capture.url))
    urls, judged, told, _ = import_all()
    assert urls == sorted([*GOOD, *BAD])
    assert judged == 4
    assert len(told) == 2
    assert all(error.position > 0 for error in told)


def test_a_page_that_cannot_be_recorded_harms_no_other(import_all, monkeypatch):
    def is_bad(_judge, urls, _times):
        return any("/xbad" in url for url in urls)

    monkeypatch.setattr(PayloadJudge, "_pages", poison(PayloadJudge._pages, is_bad))
    urls, judged, told, _ = import_all()
    assert urls == sorted([*GOOD, *BAD])
    assert judged == 4
    assert sorted(error.source for error in told) == BAD
