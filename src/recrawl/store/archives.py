"""Imported captures, claims about change and import marks; look-ups of captures by time and by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.arrays import order_by, starts_of_runs, times_known
from recrawl.model.captures import UploadedFile
from recrawl.store import history
from recrawl.store.engine.database import Column, DatabaseSession
from recrawl.store.engine.statements import LISTED, LOCATED, NO_STATUS, OURS, RANKS, SHA1_BYTES
from recrawl.store.recording import check_known
from recrawl.store.store_values import (
    KEY_START_LENGTH,
    REVISIT,
    SAME_TIME,
    CaptureColumns,
    CaptureEnds,
    CaptureOrigin,
    ClaimColumns,
    ImportMark,
    KeyedCaptures,
    KeyRange,
    MementoState,
)

_PAGE = np.dtype([("page", np.int64)])
_CAPTURE = np.dtype([("page", np.int64), ("time", np.float64)])


def add_captures(
    session: DatabaseSession, captures: CaptureColumns, mark: ImportMark | None, *, located: bool, restart: bool
) -> tuple[int, int]:
    """Add captures that are new, improve the others; return how many were added and improved."""
    check_known(session, captures.page)
    added = bettered = 0
    if len(captures):
        some = distinct(_at_known_times(session, captures) if located else captures)
        pages = np.unique(some.page)
        met = session.table(_PAGE, session.statements.captured_pages, pages)["page"]
        known = np.isin(some.page, met)
        # Most captures of a first import belong to pages without any: these need no comparison.
        added, waiting = _add(session, some.take(np.flatnonzero(~known)) if len(met) else some, located=located)
        if len(met):
            more, bettered, again = _merge(session, some.take(np.flatnonzero(known)), located=located)
            added, waiting = added + more, np.concatenate([waiting, again])
        waiting = pages if restart else np.unique(waiting)
        if len(waiting):
            session.apply(session.statements.add_unjudged, waiting)
            session.apply(session.statements.add_unread, waiting)
    if mark is not None:
        set_mark(session, mark)
    return added, bettered


def _at_known_times(session: DatabaseSession, captures: CaptureColumns) -> CaptureColumns:
    """The same captures; those of known captures and visits at their exact times.

    A file tells microseconds at best, a visit has all digits. A capture whose visit is known, and that was not known
    itself, is marked: its visit was recorded, not derived from captures, and stays as it is. Whole seconds are not the
    times of visits: they come from archives that keep no more, and are left as they are.
    """
    if not bool((captures.time % 1.0 != 0.0).any()):
        return captures
    pages = np.unique(captures.page)
    since, until = float(captures.time.min()) - SAME_TIME, float(captures.time.max()) + SAME_TIME
    held = session.table(_CAPTURE, session.statements.capture_times, pages, since, until)
    time, is_held = times_known(captures.page, captures.time, held["page"], held["time"], SAME_TIME)
    seen = history.load_observations(session, history.select(session, None, pages, since, until))
    time, is_seen = times_known(captures.page, time, seen.page, seen.time, SAME_TIME)
    origin = np.zeros(len(captures), np.int64) if captures.origin is None else captures.origin
    recorded = is_seen & ~is_held & (origin != CaptureOrigin.AUXILIARY)
    return replace(captures, time=time, origin=np.where(recorded, CaptureOrigin.RECORDED, origin))


def _add(session: DatabaseSession, captures: CaptureColumns, *, located: bool) -> tuple[int, IntArray]:
    """Add captures of pages that have none; return how many, and which pages have some now."""
    if not len(captures):
        return 0, captures.page
    added = session.add_counted("capture", session.statements.add_listed, *_rows(captures, located=located))
    return added, captures.page


def _merge(session: DatabaseSession, captures: CaptureColumns, *, located: bool) -> tuple[int, int, IntArray]:
    """Add new captures, improve the rest; return how many of each, and the pages of both."""
    columns = _rows(captures, located=located)
    statements = session.statements
    added, bettered, placed = (
        np.array(session.touched(statement, *columns), _CAPTURE)
        for statement in (
            statements.import_captures,
            statements.better_captures[located],
            statements.place_captures[located],
        )
    )
    # What was derived from the worse record is withdrawn.
    history.withdraw(session, *(np.ascontiguousarray(bettered[name]) for name in ("page", "time")))
    touched = np.concatenate([part["page"] for part in (added, bettered, placed)])
    return len(added), len(bettered) + len(placed), touched


def _rows(captures: CaptureColumns, *, located: bool) -> tuple[Column, ...]:
    return (
        captures.page,
        captures.time,
        captures.status,
        captures.mime,
        captures.digest,
        captures.size,
        captures.warc_file,
        captures.warc_offset,
        captures.warc_length,
        _origins(captures, LOCATED if located else LISTED),
    )


def _origins(captures: CaptureColumns, usual: int) -> IntArray:
    """Where each capture comes from; ``usual`` where its source does not say."""
    if captures.origin is None:
        return np.full(len(captures), usual)
    return np.where(captures.origin == 0, usual, captures.origin)


def distinct(captures: CaptureColumns) -> CaptureColumns:
    """Captures by page and time, each once: of several records the best. O(n log n)."""
    order = order_by(captures.page, captures.time)
    ordered = captures if order is None else captures.take(order)
    starts = starts_of_runs(ordered.page, ordered.time)
    if bool(starts.all()):
        return ordered
    first = np.flatnonzero(starts)
    best = first.copy()
    ends = np.append(first[1:], len(ordered))
    for run in np.flatnonzero(ends - first > 1).tolist():
        best[run] = min(range(int(first[run]), int(ends[run])), key=lambda row: rank(ordered, row))
    return ordered.take(best)


def rank(captures: CaptureColumns, row: int) -> tuple[int, int, int, bytes, int, int]:
    """The order of records of one capture, the best first: a response, its digest, its bytes, its size."""
    status, digest, mime = int(captures.status[row]), captures.digest[row], captures.mime[row]
    if status == NO_STATUS:
        answer = len(RANKS) + 1
    else:
        answer = next((place for place, (low, high) in enumerate(RANKS) if low <= status <= high), len(RANKS))
    return (
        answer,
        status,
        {SHA1_BYTES: 0, 0: 2}.get(len(digest), 1),
        digest,
        {REVISIT: 2, "": 1}.get(mime, 0),
        -int(captures.size[row]),
    )


def capture_columns(session: DatabaseSession, pages: IntArray) -> CaptureColumns:
    """Captures of these pages, by page and time."""
    return columns_of(session.rows(session.statements.capture_columns, pages) if len(pages) else [])


def captures_of_page(session: DatabaseSession, page: int, after: float, limit: int) -> CaptureColumns:
    """The first captures of a page after a time."""
    return columns_of(session.rows(session.statements.captures_of_page, page, after, limit))


def columns_of(rows: list[tuple[Any, ...]]) -> CaptureColumns:
    """Rows of the table as columns."""
    columns = zip(*rows, strict=True) if rows else ((),) * 10
    page, time, status, mime, digest, size, file, offset, length, imported = columns
    return CaptureColumns(
        np.array(page, np.int64),
        np.array(time, np.float64),
        np.array(status, np.int64),
        list(mime),
        [bytes(value) for value in digest],
        np.array(size, np.int64),
        list(file),
        np.array(offset, np.int64),
        np.array(length, np.int64),
        np.array(imported, np.int64) == OURS,
        np.array(imported, np.int64),
    )


def capture_counts(session: DatabaseSession, pages: IntArray) -> IntArray:
    """The number of captures of each of these pages."""
    found = dict(session.rows(session.statements.capture_counts, np.unique(pages))) if len(pages) else {}
    return np.array([found.get(page, 0) for page in pages.tolist()], np.int64)


def unread_in(session: DatabaseSession, files: Sequence[str]) -> IntArray:
    """Pages whose archived bytes wait to be read, and that have a capture in one of these files."""
    if not files:
        return np.empty(0, np.int64)
    return np.ascontiguousarray(session.table(_PAGE, session.statements.unread_in, list(files))["page"])


def waiting(session: DatabaseSession, statement: str) -> IntArray:
    """Pages that wait for something."""
    return np.ascontiguousarray(session.table(_PAGE, statement)["page"])


def wait_no_more(session: DatabaseSession, statement: str, pages: IntArray) -> None:
    """Mark these pages as done."""
    if len(pages):
        session.run(statement, pages)


def resources(session: DatabaseSession, pages: IntArray | None) -> IntArray:
    """Pages that are resources and have no importance of their own."""
    if pages is None:
        return waiting(session, session.statements.resources)
    if not len(pages):
        return np.empty(0, np.int64)
    return np.ascontiguousarray(session.table(_PAGE, session.statements.resources_some, pages)["page"])


def set_resources(session: DatabaseSession, pages: IntArray, are: BoolArray) -> None:
    """Set which pages are resources."""
    check_known(session, pages)
    if bool(are.any()):
        session.apply(session.statements.add_resources, pages[are])
    wait_no_more(session, session.statements.drop_resources, pages[~are])


def add_claims(session: DatabaseSession, claims: ClaimColumns, mark: ImportMark | None) -> int:
    """Add claims that are new; return how many."""
    check_known(session, claims.page)
    added = 0
    if len(claims):
        added = session.apply(
            session.statements.add_claims,
            claims.page,
            claims.time,
            claims.source,
            claims.lastmod,
            claims.changefreq,
            claims.priority,
        )
    if mark is not None:
        set_mark(session, mark)
    return added


def claims_of(session: DatabaseSession, pages: IntArray) -> ClaimColumns:
    """Claims about these pages, by page and time."""
    rows = session.rows(session.statements.claims_of, pages) if len(pages) else []
    page, time, source, lastmod, changefreq, priority = zip(*rows, strict=True) if rows else ((),) * 6
    return ClaimColumns(
        np.array(page, np.int64),
        np.array(time, np.float64),
        list(source),
        np.array(lastmod, np.float64),
        np.array(changefreq, np.int64),
        np.array(priority, np.float64),
    )


def add_mementos(session: DatabaseSession, page: IntArray, time: FloatArray, question: int, uri: Sequence[str]) -> None:
    """Queue captures for their bytes, unless they have a state already."""
    check_known(session, page)
    if len(page):
        several = [np.full(len(page), number) for number in (question, MementoState.WAITING)]
        session.apply(session.statements.add_mementos, page, time, several[0], list(uri), several[1])


def set_mementos(session: DatabaseSession, page: IntArray, time: FloatArray, state: MementoState) -> None:
    """Set the state of captures that waited."""
    if len(page):
        zeros = np.zeros(len(page), np.int64)
        session.apply(session.statements.set_mementos, page, time, zeros, [""] * len(page), zeros + int(state))


def mementos(session: DatabaseSession, question: int, state: MementoState) -> tuple[IntArray, FloatArray]:
    """Page and time of the captures of a query in a state."""
    found = session.table(_CAPTURE, session.statements.mementos, question, int(state))
    return np.ascontiguousarray(found["page"]), np.ascontiguousarray(found["time"])


def set_mark(session: DatabaseSession, mark: ImportMark) -> None:
    """Set how far a source was read."""
    numbers = (np.array([number]) for number in (mark.position, mark.accepted, mark.skipped, mark.broken))
    session.apply(
        session.statements.set_mark, [mark.source], [mark.fingerprint], *numbers, np.array([int(mark.finished)])
    )


def mark_of(session: DatabaseSession, source: str) -> ImportMark | None:
    """How far a source was read."""
    rows = session.rows(session.statements.mark, source)
    if not rows:
        return None
    source, fingerprint, position, accepted, skipped, broken, finished = rows[0]
    return ImportMark(source, fingerprint, position, accepted, skipped, broken, bool(finished))


def record_upload(session: DatabaseSession, file: UploadedFile) -> None:
    """Record that an archive file is in object storage."""
    numbers = np.array([file.size]), np.array([file.uploaded])
    session.apply(session.statements.set_upload, [file.name], [file.location], numbers[0], [file.sha256], numbers[1])


_NOBODY = ("", 0.0)
"""No key is empty, so nothing is left out."""


def captures_between(  # noqa: PLR0913 - as the store's own call
    session: DatabaseSession, page: int, since: float, until: float, limit: int, *, backwards: bool
) -> CaptureColumns:
    """Captures of a page in a span of time, from one end. O(limit + log n)."""
    return columns_of(
        session.rows(session.statements.capture_index.captures_between[backwards], page, since, until, limit)
    )


def capture_ends(session: DatabaseSession, page: int) -> CaptureEnds | None:
    """First, last and number of the captures of a page."""
    [(first, last, count)] = session.rows(session.statements.capture_index.capture_ends, page)
    return CaptureEnds(first, last, count) if count else None


def captures_by_key(session: DatabaseSession, keys: KeyRange, limit: int, skip: int = 0) -> KeyedCaptures:
    """Captures of the pages in a range of keys, by key and time, from one end. O(limit + log n), plus pages without."""
    passed, time = keys.beyond or _NOBODY
    start, end = (keys.start, passed or keys.end) if keys.backwards else (passed or keys.start, keys.end)
    rows = session.rows(
        session.statements.capture_index.captures_by_key[keys.backwards],
        start[:KEY_START_LENGTH],
        end[:KEY_START_LENGTH],
        start,
        end,
        keys.since,
        keys.until,
        passed,
        time,
        limit,
        skip,
    )
    return KeyedCaptures([row[0] for row in rows], [row[1] for row in rows], columns_of([row[2:] for row in rows]))


def count_by_key(session: DatabaseSession, keys: KeyRange) -> int:
    """The number of captures in a range of keys. O(n)."""
    bounds = keys.start[:KEY_START_LENGTH], keys.end[:KEY_START_LENGTH], keys.start, keys.end
    [(count,)] = session.rows(session.statements.capture_index.count_by_key, *bounds, keys.since, keys.until)
    return int(count)


def drop_captures(session: DatabaseSession, page: IntArray, time: FloatArray) -> int:
    """Delete imported captures, and withdraw the visits derived from them."""
    gone = [
        row
        for one, when in zip(page.tolist(), time.tolist(), strict=True)
        for row in session.rows(session.statements.capture_index.drop_captures, one, when)
    ]
    if gone:
        pages, times = (np.array(column) for column in zip(*gone, strict=True))
        history.withdraw(session, pages.astype(np.int64), times.astype(np.float64))
        waiting = np.unique(pages).astype(np.int64)
        session.apply(session.statements.add_unjudged, waiting)
        session.apply(session.statements.add_unread, waiting)
    return len(gone)
