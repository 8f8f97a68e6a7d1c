"""Captures made elsewhere, claims, and marks of imports, in both engines."""

from __future__ import annotations

import math
import uuid

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recrawl.model import Visits
from recrawl.model.captures import UploadedFile
from recrawl.store.store_values import CaptureColumns, CaptureRecord, ClaimColumns, ImportMark, MementoState


def some_captures(page, time, *, status=200, digest=None):
    n = len(page)
    return CaptureColumns(
        np.asarray(page),
        np.asarray(time, dtype=float),
        np.full(n, status),
        ["text/html"] * n,
        [bytes([i]) * 20 for i in range(n)] if digest is None else [digest] * n,
        np.full(n, -1),
        [f"{i}.warc.gz" for i in range(n)],
        np.arange(n),
        np.arange(n) + 7,
    )


def test_captures_are_noted_once_and_come_back_as_columns(store):
    pages = store.discover(["http://a.example/", "http://b.example/"], 0.0)
    captures = some_captures(pages[[1, 0, 1]], [3.0, 1.0, 2.0])
    assert store.add_captures(captures) == (3, 0)
    assert store.add_captures(captures) == (0, 0)
    found = store.capture_columns(pages)
    assert found.time.tolist() == [1.0, 2.0, 3.0]
    assert found.digest == [b"\x01" * 20, b"\x02" * 20, b"\x00" * 20]
    assert found.warc_file == ["1.warc.gz", "2.warc.gz", "0.warc.gz"]
    assert found.warc_length.tolist() == [8, 9, 7]
    assert len(store.capture_columns(pages[:0])) == 0


def test_captures_and_mark_are_one_transaction(store):
    pages = store.discover(["http://a.example/"], 0.0)
    mark = ImportMark("a.cdx", "f1", position=1, accepted=1)
    store.add_captures(some_captures(pages, [1.0]), mark)
    assert store.import_mark("a.cdx") == mark
    with pytest.raises(ValueError, match="page ids"):
        store.add_captures(some_captures([99], [1.0]), ImportMark("a.cdx", "f1", position=2))
    assert store.import_mark("a.cdx") == mark
    done = ImportMark("a.cdx", "f1", position=1, accepted=1, finished=True)
    store.set_import_mark(done)
    assert store.import_mark("a.cdx") == done
    assert store.import_mark("b.cdx") is None


def test_uploads_of_archive_files_are_recorded_by_name(store):
    first = UploadedFile("a.warc.gz", "s3://bucket/one/", 1 << 40, bytes(32), 1.5)
    other = UploadedFile("b.warc.gz", "s3://bucket/one/", 5, b"\xff" * 32, 2.5)
    store.record_upload(other)
    store.record_upload(first)
    assert store.uploaded_file("a.warc.gz") == first
    assert store.uploaded_file("c.warc.gz") is None
    assert store.uploaded_files() == [first, other]
    moved = first._replace(location="s3://other/")
    store.record_upload(moved)
    assert store.uploaded_files() == [moved, other]


def test_claims_are_kept_beside_the_truth(store):
    pages = store.discover(["http://a.example/", "http://b.example/"], 0.0)
    claims = ClaimColumns(
        pages,
        np.array([5.0, 5.0]),
        ["http://a.example/sitemap.xml"] * 2,
        np.array([4.0, -math.inf]),
        np.array([3, 0]),
        np.array([0.5, -1.0]),
    )
    assert store.add_claims(claims) == 2
    assert store.add_claims(claims) == 0
    found = store.claims(pages)
    assert found.lastmod.tolist() == [4.0, -math.inf]
    assert found.changefreq.tolist() == [3, 0]
    assert found.priority.tolist() == [0.5, -1.0]
    assert found.source == claims.source
    assert len(store.visits()) == 0


A, B = b"A" * 20, b"B" * 20


def one(page, *, status=200, mime="text/html", digest=A, size=-1, place=("", -1)):  # noqa: PLR0913 - the columns
    """A list of one capture at time 1."""
    file, offset = place
    return CaptureColumns(
        page, np.ones(1), np.array([status]), [mime], [digest], np.array([size]), [file], *[np.array([offset])] * 2
    )


def test_a_capture_that_was_only_listed_is_found_where_its_bytes_are(store):
    page = store.discover(["http://a.example/"], 0.0)
    store.add_captures(one(page, place=("a.warc.gz", 5)))
    store.set_judged(page)
    store.set_read(page)
    assert store.add_captures(one(page, place=("/here/a.warc.gz", 9)), located=True) == (0, 1)
    found = store.capture_columns(page)
    assert (found.warc_file, found.warc_offset.tolist()) == (["/here/a.warc.gz"], [9])
    assert store.unjudged().tolist() == store.unread().tolist() == page.tolist()


def test_a_listed_place_does_not_replace_one_that_was_seen(store):
    page = store.discover(["http://a.example/"], 0.0)
    store.add_captures(one(page, place=("/here/a.warc.gz", 9)), located=True)
    store.set_judged(page)
    store.set_read(page)
    assert store.add_captures(one(page, place=("a.warc.gz", 5))) == (0, 0)
    assert store.capture_columns(page).warc_file == ["/here/a.warc.gz"]
    assert len(store.unjudged()) == len(store.unread()) == 0
    # Another file name for the same bytes: the archive moved.
    assert store.add_captures(one(page, place=("/there/a.warc.gz", 9)), located=True) == (0, 1)
    assert store.capture_columns(page).warc_file == ["/there/a.warc.gz"]
    # The digest in another algorithm, by a source that has no bytes: the place stays.
    store.add_captures(one(page, digest=b"sha256:00", place=("a.warc.gz", 5)))
    assert store.capture_columns(page).warc_file == ["/there/a.warc.gz"]


records = st.fixed_dictionaries(
    {
        "status": st.sampled_from([0, 200, 206, 301, 304, 404, 410, 403, 503, -2]),
        "mime": st.sampled_from(["text/html", "", "warc/revisit"]),
        "digest": st.sampled_from([A, B, b"", b"sha256:00", b"md5:11"]),
        "size": st.sampled_from([-1, 5, 9]),
    }
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(several=st.lists(records, min_size=2, max_size=5), at_once=st.lists(st.booleans(), min_size=5, max_size=5))
def test_the_best_record_of_a_capture_stands_whichever_came_first(store, several, at_once):
    pages = store.discover([f"http://{uuid.uuid4().hex}.example/" for _ in range(2)], 0.0)
    for record in several:
        store.add_captures(one(pages[:1], **record))
    batch = []
    for record, ends in zip(reversed(several), at_once, strict=False):
        batch.append(one(pages[1:], **record))
        if ends:
            store.add_captures(joined(batch))
            batch = []
    store.add_captures(joined(batch))
    found = store.capture_columns(pages)
    told = [(found.status[row], found.digest[row], found.size[row], found.mime[row]) for row in range(2)]
    assert told[0] == told[1]


def joined(parts):
    """Lists of one capture as one list."""
    return CaptureColumns(
        np.array([part.page[0] for part in parts], np.int64),
        np.ones(len(parts)),
        np.array([part.status[0] for part in parts], np.int64),
        [part.mime[0] for part in parts],
        [part.digest[0] for part in parts],
        np.array([part.size[0] for part in parts], np.int64),
        [""] * len(parts),
        *[np.full(len(parts), -1)] * 2,
    )


def test_what_a_visit_of_our_own_recorded_stays(store):
    page = store.discover(["http://a.example/"], 0.0)
    ours = CaptureRecord(int(page[0]), 1.0, 503, "text/html", B, 7, "mine.warc.gz", 3, 4)
    store.record(Visits.of(page, 1.0), captures=[ours])
    assert store.add_captures(one(page, place=("/here/a.warc.gz", 9)), located=True) == (0, 0)
    assert store.captures(page) == [ours]
    assert store.capture_columns(page).ours.tolist() == [True]
    assert len(store.unjudged()) == 0


def test_pages_wait_only_for_what_is_new_or_asked_for_anew(store):
    pages = store.discover(["http://a.example/", "http://b.example/"], 0.0)
    store.add_captures(some_captures(pages[:1], [1.0], digest=A))
    store.set_judged(pages)
    assert store.unread().tolist() == pages[:1].tolist()
    both = some_captures(pages, [1.0, 1.0], digest=A)
    store.add_captures(both)
    assert store.unjudged().tolist() == pages[1:].tolist()
    store.add_captures(both, restart=True)
    assert store.unjudged().tolist() == pages.tolist()
    store.set_read(pages)
    assert len(store.unread()) == 0


def test_very_many_captures_of_a_page_come_in_pieces(store):
    pages = store.discover(["http://a.example/", "http://b.example/", "http://c.example/"], 0.0)
    store.add_captures(some_captures(np.repeat(pages[:2], [5, 2]), [1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0]))
    assert store.capture_counts(pages).tolist() == [5, 2, 0]
    times, after = [], -math.inf
    while len(piece := store.captures_of_page(int(pages[0]), after=after, limit=2)):
        assert len(piece) <= 2
        times += piece.time.tolist()
        after = times[-1]
    assert times == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_which_files_have_what_is_to_be_read(store):
    pages = store.discover(["http://a.example/", "http://b.example/", "http://c.example/"], 0.0)
    store.add_captures(some_captures(pages, [1.0, 1.0, 1.0]))
    store.set_read(pages[2:])
    assert sorted(store.unread_files()) == ["0.warc.gz", "1.warc.gz"]
    assert store.unread(["1.warc.gz", "2.warc.gz", "other"]).tolist() == pages[1:2].tolist()
    assert len(store.unread([])) == 0


def test_captures_of_other_archives_wait_for_their_bytes(store):
    a, b = store.discover(["http://a.example/", "http://b.example/"], 0.0).tolist()
    pages, times = np.array([a, a, b]), np.array([1.0, 2.0, 1.0])
    store.add_mementos(pages, times, 7, ["u1", "u2", "u3"])
    assert [column.tolist() for column in store.mementos(7, MementoState.WAITING)] == [[a, a, b], [1.0, 2.0, 1.0]]
    store.set_mementos(pages[:2], times[:2], MementoState.FETCHED)
    store.set_mementos(pages[2:], times[2:], MementoState.MISSING)
    assert store.memento_counts(7) == {MementoState.FETCHED: 2, MementoState.MISSING: 1}
    store.add_mementos(pages, times, 7, ["u1", "u2", "u3"])  # listed again: nothing is asked for twice
    assert not len(store.mementos(7, MementoState.WAITING)[0])
    store.add_mementos(pages, times, 8, ["v1", "v2", "v3"])  # another archive may give what this one did not
    assert [column.tolist() for column in store.mementos(8, MementoState.WAITING)] == [[b], [1.0]]
    assert store.memento_uri(b, 1.0) == "v3"
    assert store.memento_uri(b, 9.0) == ""
    store.set_mementos(pages[2:], times[2:], MementoState.FAILED)
    store.retry_mementos(8)
    assert store.memento_counts(8) == {MementoState.WAITING: 1}
    with pytest.raises(ValueError, match="page ids"):
        store.add_mementos(np.array([99]), np.array([1.0]), 7, ["u"])


def test_resources_are_told_from_pages_until_somebody_wants_them(store):
    pages = store.discover([f"http://a.org/{name}" for name in ("x", "y.png", "z.css")], 1.0, importance=0.0)
    assert len(store.resources()) == 0
    store.set_resources(pages[1:], np.array([True, True]))
    store.set_resources(pages[1:], np.array([True, True]))  # twice is once
    assert store.resources().tolist() == pages[1:].tolist()
    assert store.resources(pages[:2]).tolist() == [pages[1]]
    assert store.resources(pages[:0]).tolist() == []
    store.set_importance(pages[1:2], np.array([1.0]))
    assert store.resources().tolist() == [pages[2]]
    store.set_resources(pages[1:], np.array([True, False]))
    assert store.resources().tolist() == []
    store.set_importance(pages[1:2], np.array([0.0]))
    assert store.resources().tolist() == [pages[1]]
