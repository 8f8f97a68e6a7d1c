"""Captures by time and by key: what those ask who travel in time."""

from __future__ import annotations

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.store import segments
from recrawl.store.archives import columns_of
from recrawl.store.database import Session
from recrawl.store.values import KEY_START_LENGTH, CaptureEnds, Captures, KeyedCaptures, KeyRange

_NOBODY = ("", 0.0)
"""No key is empty, so nothing is left out."""


def captures_between(  # noqa: PLR0913 - as the store's own call
    session: Session, page: int, since: float, until: float, limit: int, *, backwards: bool
) -> Captures:
    """Captures of a page in a span of time, from one end. O(limit + log n)."""
    return columns_of(session.rows(session.statements.look_ups.captures_between[backwards], page, since, until, limit))


def capture_ends(session: Session, page: int) -> CaptureEnds | None:
    """First, last and number of the captures of a page."""
    [(first, last, count)] = session.rows(session.statements.look_ups.capture_ends, page)
    return CaptureEnds(first, last, count) if count else None


def captures_by_key(session: Session, keys: KeyRange, limit: int, skip: int = 0) -> KeyedCaptures:
    """Captures of the pages in a range of keys, by key and time, from one end. O(limit + log n), plus pages without."""
    passed, time = keys.beyond or _NOBODY
    start, end = (keys.start, passed or keys.end) if keys.backwards else (passed or keys.start, keys.end)
    rows = session.rows(
        session.statements.look_ups.captures_by_key[keys.backwards],
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


def count_by_key(session: Session, keys: KeyRange) -> int:
    """How many captures there are in a range of keys. O(n)."""
    bounds = keys.start[:KEY_START_LENGTH], keys.end[:KEY_START_LENGTH], keys.start, keys.end
    [(count,)] = session.rows(session.statements.look_ups.count_by_key, *bounds, keys.since, keys.until)
    return int(count)


def drop_captures(session: Session, page: IntArray, time: FloatArray) -> int:
    """Forget captures that were imported, and take back the visits that followed from them."""
    gone = [
        row
        for one, when in zip(page.tolist(), time.tolist(), strict=True)
        for row in session.rows(session.statements.look_ups.drop_captures, one, when)
    ]
    if gone:
        pages, times = (np.array(column) for column in zip(*gone, strict=True))
        segments.withdraw(session, pages.astype(np.int64), times.astype(np.float64))
        waiting = np.unique(pages).astype(np.int64)
        session.apply(session.statements.add_unjudged, waiting)
        session.apply(session.statements.add_unread, waiting)
    return len(gone)
