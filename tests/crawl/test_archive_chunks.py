"""A revisit after a restart: its head suits the form in which the original was stored (conventions W4, W6, W9)."""

from __future__ import annotations

import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.crawl.archive import WarcArchive
from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into
from recrawl.crawl.target import Target, Visited
from recrawl.detect import Judgement, Known
from recrawl.formats import warc_records
from recrawl.formats.warc import WarcWriter
from recrawl.model import Capture, Outcome, Validators, Visit, Visits
from recrawl.store.open import open_store
from recrawl.time import VirtualClock

START = 1_700_000_000.0
URL = "http://a.example/"
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BODY = b"5\r\nhello\r\n0\r\n\r\n"


def keep(folder, store, page, time):
    """Archive an answer in chunks as a process of its own would, and have it acknowledged."""
    known = Known(Validators(etag='"1"'))
    capture = Capture(URL, time, 200, HEAD, BODY)
    visited = Visited(
        Target(page, 1, URL, time, known), Visit(page, time, Outcome.FETCHED), Judgement(Outcome.FETCHED), capture
    )
    with WarcWriter(folder, VirtualClock(time)) as writer:
        archive = WarcArchive(writer, store, read=ArchivedBytes(folder, imported_into(store)).read)
        [kept] = archive.keep([visited])
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
