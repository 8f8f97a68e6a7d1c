"""Checks of visits: what is counted, packed and listed about them follows from their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from recrawl.model import ANSWERED, AnyArray, BoolArray, Outcome, Verdict
from recrawl.model.arrays import ends_of_runs
from recrawl.store import segments
from recrawl.store.base_checks import Fault, Tell
from recrawl.store.database import Database, Session
from recrawl.store.segments import LOOK, MISDATED, SEGMENT_VISITS, WITHDRAWN

EXAMPLES = 5
"""Faults of a kind that are named."""
_BEFORE_ALL = -(2**62)
_FIRST_TIME, _LAST_TIME = 0.0, 4_102_444_800.0
"""1970, where broken clocks begin, and 2100."""
_KEYS = np.dtype([("page", np.int64), ("time", np.float64)])
_VISITS = np.dtype([("page", np.int64), ("time", np.float64), ("segment", np.int64), ("outcome", np.int64)])
_OUTCOMES = np.array([*Outcome, *(outcome | MISDATED for outcome in Outcome), WITHDRAWN])
Span: TypeAlias = tuple[int, int]
"""Ids above the first, up to the second."""


class Tally:
    """Counts faults by kind and keeps a few examples."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._repaired: dict[str, int] = {}
        self._examples: dict[str, list[str]] = {}

    def add(self, kind: str, examples: Sequence[str], count: int | None = None, *, repaired: bool = False) -> None:
        """Take faults in: as many as there are examples, unless their number is given."""
        count = len(examples) if count is None else count
        if count:
            self._counts[kind] = self._counts.get(kind, 0) + count
            self._repaired[kind] = self._repaired.get(kind, 0) + (count if repaired else 0)
            kept = self._examples.setdefault(kind, [])
            kept += examples[: EXAMPLES - len(kept)]

    def faults(self) -> list[Fault]:
        """All of them, by kind."""
        return [
            Fault(kind, count, tuple(self._examples[kind]), self._repaired[kind])
            for kind, count in self._counts.items()
        ]


def check_visits_of_pages(database: Database, span: Span, latest: float, tally: Tally, *, repair: bool) -> None:
    """Each capture of our own belongs to a visit, each failing page has failed, and no visit is dated after ``latest``.

    Visits that were marked as misdated are told apart: their captures are there all the same.
    """

    def work(session: Session) -> tuple[AnyArray, AnyArray, AnyArray]:
        statements = session.statements.checks
        captures = session.table(_KEYS, statements.captures_between, *span)
        failing = session.table(_KEYS, statements.failing_between, *span)
        ids = np.array([segment for segment, _ in session.rows(session.statements.segment_states)], np.int64)
        if not len(ids):
            return captures, failing, np.empty(0, _VISITS)
        return captures, failing, session.table(_VISITS, statements.visits_between, ids, *span)

    captures, failing, recorded = database.read(work)
    visits = recorded[np.lexsort((recorded["segment"], recorded["time"], recorded["page"]))]
    if len(visits):
        visits = visits[ends_of_runs(visits["page"], visits["time"]) & (visits["outcome"] != WITHDRAWN)]
    lost = captures[~_among(captures, visits)]
    tally.add("capture_without_visit", [_named(row) for row in lost[:EXAMPLES]], len(lost))
    outcome = visits["outcome"] % MISDATED
    wrong = failing[~np.isin(failing["page"], visits["page"][outcome > ANSWERED])]
    if len(wrong) and repair:
        pages = np.unique(wrong["page"])
        database.write(lambda session: session.run(session.statements.checks.delete_from["failing"], pages))
    tally.add("failing_wrong", [_named(row) for row in wrong[:EXAMPLES]], len(wrong), repaired=repair)
    misdated = visits[visits["outcome"] >= MISDATED]
    tally.add("visit_misdated", [_named(row) for row in misdated[:EXAMPLES]], len(misdated))
    ahead = visits[(visits["time"] > latest) & (visits["outcome"] < MISDATED)]
    tally.add("visit_ahead", [_named(row) for row in ahead[:EXAMPLES]], len(ahead))


def _among(rows: AnyArray, visits: AnyArray) -> BoolArray:
    """True where a visit with that page and time is there."""
    if not len(rows):
        return np.zeros(0, np.bool_)
    page = np.concatenate([visits["page"], rows["page"]])
    time = np.concatenate([visits["time"], rows["time"]])
    is_row = np.arange(len(page)) >= len(visits)
    order = np.lexsort((is_row, time, page))
    page, time = page[order], time[order]
    starts = np.append(True, (page[1:] != page[:-1]) | (time[1:] != time[:-1]))
    run = np.cumsum(starts) - 1
    has_visit = ~is_row[order][starts]
    there = np.empty(len(page), np.bool_)
    there[order] = has_visit[run]
    return there[len(visits) :]


def _named(row: Any) -> str:  # noqa: ANN401 - a row of a structured array
    return f"page {row['page']} at {row['time']:.6f}"


class _Segment(NamedTuple):
    """A segment as it is noted, and as its visits say."""

    looks: AnyArray
    noted: tuple[Any, ...] | None
    """Visits, changed, failed, first and last time, pack; ``None`` if the segment is not listed at all."""

    def is_right(self) -> bool:
        if self.noted is None:
            return not len(self.looks)
        visits, changed, failed, first, last, pack = self.noted
        if pack is None:
            return bool(visits == len(self.looks) and last is None)
        if not len(self.looks):
            return False
        return (visits, changed, failed, first, last, bytes(pack)) == _summary(self.looks)


def _summary(looks: AnyArray) -> tuple[int, int, int, float, float, bytes]:
    """What is written beside a full segment: as :func:`segments.append` does."""
    return (
        len(looks),
        int((looks["verdict"] == Verdict.CHANGED).sum()),
        int(((looks["outcome"] > ANSWERED) & (looks["outcome"] < MISDATED)).sum()),
        float(looks["time"].min()),
        float(looks["time"].max()),
        segments.pack(looks),
    )


def check_segments(database: Database, tally: Tally, tell: Tell, *, repair: bool) -> None:
    """Each segment has as many visits as is noted, and a full one a packed copy that says what its rows do."""
    ids = database.read(_segment_ids)
    for done, segment in enumerate(ids):
        tell("segments of visits", done, len(ids))
        found = database.read(lambda session, segment=segment: _segment(session, segment))  # type: ignore[misc]
        if not found.is_right():
            if repair:
                database.write(lambda session, segment=segment: _repair_segment(session, segment))  # type: ignore[misc]
            tally.add("segment", [f"segment {segment}"], repaired=repair)
        _check_looks(database, segment, found.looks, tally)
    tell("segments of visits", 1, 1)


def _segment_ids(session: Session) -> list[int]:
    """Segments that are listed, and those that only visits name."""
    ids = {segment for segment, _ in session.rows(session.statements.segment_states)}
    last = _BEFORE_ALL
    while True:
        [(segment,)] = session.rows("SELECT min(segment) FROM visit WHERE segment > $1", last)
        if segment is None:
            return sorted(ids)
        ids.add(segment)
        last = segment


def _segment(session: Session, segment: int) -> _Segment:
    looks = session.table(LOOK, session.statements.looks_of_segment, segment)
    rows = session.rows(
        "SELECT visits, changed, failed, first_time, last_time, pack FROM visit_segment WHERE id = $1", segment
    )
    return _Segment(looks, rows[0] if rows else None)


def _repair_segment(session: Session, segment: int) -> None:
    session.rows(session.statements.checks.lock_segment, segment)
    found = _segment(session, segment)
    if found.is_right():
        return
    if found.noted is None:
        session.run("INSERT INTO visit_segment (id, visits) VALUES ($1, $2)", segment, len(found.looks))
    if not len(found.looks):  # a segment that is noted as full, and has no visits
        session.run(
            "UPDATE visit_segment SET visits = 0, changed = NULL, failed = NULL, first_time = NULL, last_time = NULL, "
            "pack = NULL WHERE id = $1",
            segment,
        )
    elif len(found.looks) >= SEGMENT_VISITS or (found.noted is not None and found.noted[-1] is not None):
        session.run(session.statements.seal_segment, *_summary(found.looks), segment)
    else:
        session.run(
            "UPDATE visit_segment SET visits = $1, first_time = NULL, last_time = NULL WHERE id = $2",
            len(found.looks),
            segment,
        )


def _check_looks(database: Database, segment: int, looks: AnyArray, tally: Tally) -> None:
    odd = ~np.isin(looks["outcome"], _OUTCOMES) | ~(looks["time"] >= _FIRST_TIME) | ~(looks["time"] < _LAST_TIME)
    tally.add("visit_invalid", [_named(row) for row in looks[odd][:EXAMPLES]], int(odd.sum()))
    lost = database.read(
        lambda session: session.rows(
            "SELECT DISTINCT page FROM visit WHERE segment = $1 "
            "AND NOT EXISTS (SELECT 1 FROM page WHERE page.id = visit.page)",
            segment,
        )
    )
    tally.add("visit_page_missing", [f"page {page}" for (page,) in lost])
