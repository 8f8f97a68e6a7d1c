"""Reading visits back as columns: all of them, of some pages, of a span of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from recrawl.model import (
    UNCOUNTED,
    UNMEASURED,
    VISIT_COLUMNS,
    AnyArray,
    BoolArray,
    ChangeKind,
    FloatArray,
    Histories,
    IntArray,
    Visits,
)
from recrawl.model.arrays import ends_of_runs, order_by
from recrawl.store.database import Session
from recrawl.store.segments import LOOK, LOOK_NAMES, MISDATED, WITHDRAWN, unpack

PACKS_AT_ONCE = 16
"""Packs (about a megabyte each) that are in memory beside the columns they are copied into."""
SCAN_PER_SEEK = 20
"""Visits that are scanned in the time of one look into a segment for a page, roughly, in both engines."""

FEW_PAGES = 16
"""Pages up to which nobody asks whether it is worth to look for each."""

_VISIT = np.dtype(list(VISIT_COLUMNS.items()))
_ID = np.dtype([("id", np.int64)])
_NOT_READ = {"magnitude": UNMEASURED} | dict.fromkeys(
    ("new_internal", "new_external", "added_internal", "added_external"), UNCOUNTED
)
_UNTOLD = {
    name: np.full(1, _NOT_READ.get(name, 0), dtype) for name, dtype in VISIT_COLUMNS.items() if name not in LOOK_NAMES
}
"""What stands in columns that histories do not need."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which visits: of these pages (all, if ``None``), with since <= time <= until."""

    pages: IntArray | None = None
    since: float = -np.inf
    until: float = np.inf

    def keep(self, page: IntArray, time: FloatArray) -> BoolArray | None:
        """True where a visit belongs to the selection; ``None`` if all do."""
        if self.pages is None and np.isneginf(self.since) and np.isposinf(self.until):
            return None
        inside = (time >= self.since) & (time <= self.until)
        return inside if self.pages is None else inside & np.isin(page, self.pages)


def select(
    session: Session, host: int | None, pages: IntArray | None, since: float | None, until: float | None
) -> Selection:
    """The selection that the arguments of ``Store.visits`` describe."""
    if host is not None:
        of_host = session.table(_ID, session.statements.pages_of_host, host)["id"]
        pages = of_host if pages is None else np.intersect1d(of_host, pages)
    chosen = None if pages is None else np.unique(np.asarray(pages, np.int64))
    return Selection(chosen, -np.inf if since is None else since, np.inf if until is None else until)


def load_histories(session: Session, selection: Selection, kind: ChangeKind | None) -> Histories:
    """Histories of the selected visits. One pass; O(n) and a merge of sorted runs."""
    return Histories.from_visits(load_looks(session, selection), kind)


class PageSpans:
    """From which page to which the visits of full segments go: these never change, so each is asked for once.

    Visits that follow from an imported archive are recorded page by page: then those of a page lie in few segments, and
    whoever looks up one page need not look into all the others.
    """

    def __init__(self) -> None:
        self._of: dict[int, tuple[int, int]] = {}

    def segments(self, session: Session, pages: IntArray) -> IntArray:
        """The segments that may have visits of these pages (ascending, at least one)."""
        low, high = int(pages[0]), int(pages[-1])
        states = session.rows(session.statements.segment_states)
        new = [segment for segment, full in states if full and segment not in self._of]
        if new:
            told = session.rows(session.statements.segment_spans, np.array(new, np.int64))
            self._of |= {segment: (least, most) for segment, least, most in told}
        everything = (low, high)
        spans = [(segment, self._of[segment] if full else everything) for segment, full in states]
        return np.array([segment for segment, (least, most) in spans if least <= high and low <= most], np.int64)


def looks_of_pages(session: Session, pages: IntArray, spans: PageSpans) -> Visits:
    """The visits of these pages, by page and time, each once; columns that histories do not need may say nothing."""
    if not 0 < len(pages) <= FEW_PAGES:
        return load_looks(session, select(session, None, pages, None, None))
    wanted = np.unique(np.asarray(pages, np.int64))
    segments = spans.segments(session, wanted)
    return _as_visits(_sought(session, segments, Selection(wanted)))


def load_looks(session: Session, selection: Selection) -> Visits:
    """The selected visits, by page and time, each once; columns that histories do not need may say nothing."""
    read = _sought_looks if _worth_seeking(session, selection) else standing_looks
    return _as_visits(read(session, selection))


def _as_visits(looks: dict[str, AnyArray]) -> Visits:
    count = len(looks["page"])
    return Visits(**looks, **{name: np.broadcast_to(one, count) for name, one in _UNTOLD.items()})


def standing_looks(session: Session, selection: Selection) -> dict[str, AnyArray]:
    """The columns of histories of the selected visits, by page and time, each once. O(n) and a merge of sorted runs."""
    parts = list(_looks(session, selection))
    looks = {name: np.concatenate([part[name] for part in parts]) for name in LOOK_NAMES}
    del parts
    return _standing(looks)


def _sought_looks(session: Session, selection: Selection) -> dict[str, AnyArray]:
    """The same of few pages, through the key."""
    segments = session.table(_ID, session.statements.segments_between, selection.since, selection.until)["id"]
    return _sought(session, segments, selection)


def _sought(session: Session, segments: IntArray, selection: Selection) -> dict[str, AnyArray]:
    if selection.pages is None or not len(selection.pages) or not len(segments):
        return {name: np.empty(0, VISIT_COLUMNS[name]) for name in LOOK_NAMES}
    rows = session.table(LOOK, session.statements.looks_of_pages, segments, selection.pages)
    looks = {name: np.ascontiguousarray(rows[name]) for name in LOOK_NAMES}
    inside = (looks["time"] >= selection.since) & (looks["time"] <= selection.until)
    return _standing(looks if bool(inside.all()) else {name: column[inside] for name, column in looks.items()})


def _standing(looks: dict[str, AnyArray]) -> dict[str, AnyArray]:
    """Looks that come in runs by page, in the order of recording: by page and time, each once, as last recorded."""
    # Each run is sorted by page, and runs follow each other in the order of recording. So a stable sort by page
    # is a merge, and leaves the times of a page ascending unless somebody recorded old visits late.
    order = np.argsort(looks["page"], kind="stable")
    looks = {name: column[order] for name, column in looks.items()}
    by_time = order_by(looks["page"], looks["time"])
    if by_time is not None:
        looks = {name: column[by_time] for name, column in looks.items()}
    stands = ends_of_runs(looks["page"], looks["time"])
    stands &= looks["outcome"] < MISDATED
    return looks if bool(stands.all()) else {name: column[stands] for name, column in looks.items()}


def load_visits(session: Session, selection: Selection) -> Visits:
    """The selected visits with all columns, by page and time, each once: of doubles the one recorded last."""
    return standing(_seek(session, selection) if _worth_seeking(session, selection) else _scan(session, selection))


def standing(recorded: Visits) -> Visits:
    """By page and time; of visits recorded twice the later record, since a second judgement replaces the first.

    Visits whose last record takes them back, or says that they are misdated, are not there.
    """
    visits = recorded.sorted()
    stands = ends_of_runs(visits.page, visits.time) & (visits.outcome < MISDATED)
    return visits if bool(stands.all()) else visits.take(stands)


def load_misdated(session: Session, selection: Selection) -> Visits:
    """Of the selected visits those that are misdated, with the outcomes they had, by page and time."""
    recorded = _seek(session, selection) if _worth_seeking(session, selection) else _scan(session, selection)
    visits = recorded.sorted()
    last = ends_of_runs(visits.page, visits.time)
    found = visits.take(last & (visits.outcome >= MISDATED) & (visits.outcome != WITHDRAWN))
    return replace(found, outcome=found.outcome - np.uint8(MISDATED))


def _worth_seeking(session: Session, selection: Selection) -> bool:
    if selection.pages is None:
        return False
    [(segments, visits)] = session.rows(session.statements.segments)
    return len(selection.pages) * int(segments) * SCAN_PER_SEEK <= int(visits)


def _seek(session: Session, selection: Selection) -> Visits:
    """Visits of few pages, through the key."""
    segments = session.table(_ID, session.statements.segments_between, selection.since, selection.until)["id"]
    if selection.pages is None or not len(selection.pages) or not len(segments):
        return Visits.empty()
    return _visits(session.table(_VISIT, session.statements.visits_of_pages, segments, selection.pages), selection)


def _scan(session: Session, selection: Selection) -> Visits:
    """Visits of many pages, segment after segment."""
    segments = session.table(_ID, session.statements.segments_between, selection.since, selection.until)["id"]
    return Visits.concatenate(
        [
            _visits(session.table(_VISIT, session.statements.visits_of_segment, segment), selection)
            for segment in segments.tolist()
        ]
    )


def _visits(rows: AnyArray, selection: Selection) -> Visits:
    keep = selection.keep(rows["page"], rows["time"])
    chosen = rows if keep is None else rows[keep]
    return Visits(*(np.ascontiguousarray(chosen[name]) for name in VISIT_COLUMNS))


def _looks(session: Session, selection: Selection) -> Iterator[dict[str, AnyArray]]:
    """The columns of histories, run by run: full segments from their packs, open ones from their rows."""
    last = 0
    while packs := session.rows(
        session.statements.packs_between, selection.since, selection.until, last, PACKS_AT_ONCE
    ):
        for _, data in packs:
            yield _chosen(unpack(data), selection)
        last = packs[-1][0]
    rows = session.table(LOOK, session.statements.looks_of_open)
    yield _chosen({name: rows[name] for name in LOOK_NAMES}, selection)


def _chosen(looks: dict[str, AnyArray], selection: Selection) -> dict[str, AnyArray]:
    keep = selection.keep(looks["page"], looks["time"])
    return looks if keep is None else {name: column[keep] for name, column in looks.items()}
