"""A revisit after a restart: its head suits the form in which the original was stored (conventions W4, W6, W9)."""

from __future__ import annotations

import numpy as np
import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.crawl.visit.visit_machine import VisitDone, VisitTarget
from recrawl.crawl.visit.warc_archive import WarcArchive
from recrawl.detect import ChangeResult, PageState
from recrawl.formats.warc import warc_records
from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture, Outcome, Validators, Visit, Visits
from recrawl.store.open import open_store
from recrawl.time import VirtualClock

START = 1_700_000_000.0
URL = "http://a.example/"
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BODY = b"5\r\nhello\r\n0\r\n\r\n"


def keep(folder, store, page, time):
    """Archive an answer in chunks as a process of its own would, and have it acknowledged."""
    known = PageState(Validators(etag='"1"'))
    capture = Capture(URL, time, 200, HEAD, BODY)
    visited = VisitDone(
        VisitTarget(page, 1, URL, time, known),
        Visit(page, time, Outcome.FETCHED),
        ChangeResult(Outcome.FETCHED),
        capture,
    )
    with WarcWriter(folder, VirtualClock(time)) as writer:
        archive = WarcArchive(writer, store, read=ArchivedBytes(folder, imported_into(store)).read)
        [kept] = archive.write([visited])
        store.record(Visits.of([page], [time]), captures=kept)
        archive.acknowledged(kept)


def heads(folder):
    """Names of headers of each record with a head, by type and time."""
    found = []
    for file in sorted(folder.iterdir()):
        with file.open("rb") as stream:
            found += [
                (record.rec_type, [name for name, _ in record.http_headers.headers])
                for record in ArchiveIterator(stream)
                if record.rec_type in {"response", "revisit"}
            ]
    return found


def stored_as_received(capture, date, ref, real=warc_records._response):
    """As recrawl did before, and other crawlers do."""
    return real(capture, date, ref)._replace(block=(capture.raw_head, capture.raw_body))


@pytest.mark.parametrize("as_received", [False, True])
def test_a_revisit_says_that_its_body_is_chunked_only_if_it_is_stored_so(tmp_path, monkeypatch, as_received):
    with open_store(tmp_path / "store.db", create=True) as store:
        [page] = store.discover([URL], START).tolist()
        with monkeypatch.context() as before:
            if as_received:
                before.setattr(warc_records, "_response", stored_as_received)
            keep(tmp_path / "warc", store, page, START)
        keep(tmp_path / "warc", store, page, START + 60)
    name = "Transfer-Encoding" if as_received else "X-Orig-Transfer-Encoding"
    assert heads(tmp_path / "warc") == [("response", [name]), ("revisit", [name])]


def test_a_capture_is_read_out_of_a_file_that_is_still_written(tmp_path):
    """So that explain and list noise show texts while a crawl runs."""
    with open_store(tmp_path / "store.db", create=True) as store, WarcWriter(tmp_path, VirtualClock(START)) as writer:
        [page] = store.discover([URL], START).tolist()
        archived = ArchivedBytes(tmp_path, imported_into(store))
        archive = WarcArchive(writer, store, read=archived.read)
        capture = Capture(URL, START, 200, HEAD, BODY)
        visit = Visit(page, START, Outcome.FETCHED)
        [kept] = archive.write(
            [VisitDone(VisitTarget(page, 1, URL, START, None), visit, ChangeResult(Outcome.FETCHED), capture)]
        )
        store.record(Visits.of([page], [START]), captures=kept)
        captures = store.capture_columns(np.array([page]))
        [open_file] = tmp_path.glob("*.open")
        assert open_file.name == f"{captures.warc_file[0]}.open"
        found = archived.read(captures.warc_file[0], int(captures.warc_offset[0]))
        assert found is not None
        assert found.url == URL
