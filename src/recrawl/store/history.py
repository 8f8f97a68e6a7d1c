"""Visits in the store: rows in segments, with a packed copy of each full segment; and reading them as columns.

Every visit is a row of the table ``visit``. Rows go into an open segment. When it holds ``SEGMENT_VISITS`` it is
sealed: it never changes again, and the columns of histories are stored beside it as one array of bytes (the pack),
sorted by page and time. Millions of visits are then read at the speed of memory, in runs that one merge sort joins, by
the same code in both engines. The pack holds nothing that the rows do not; a page's visits, or all columns, come from
the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from recrawl.model import (
    ANSWERED,
    UNCOUNTED,
    UNMEASURED,
    VISIT_COLUMNS,
    AnyArray,
    BoolArray,
    ChangeKind,
    FloatArray,
    Histories,
    IntArray,
    Verdict,
    Visits,
)
from recrawl.model.arrays import ends_of_runs, order_by
from recrawl.store.engine.database import DatabaseSession
from recrawl.store.store_values import VisitCounts

SEGMENT_VISITS = 65_536
"""Visits of a full segment. More make an append touch more blocks, fewer make a page's visits lie in more places."""

LOOK = np.dtype([(name, VISIT_COLUMNS[name]) for name in ("page", "time", "outcome", "verdict", "kinds")])
"""The columns histories are made of."""
LOOK_NAMES = tuple(LOOK.fields or ())


MISDATED = 64
"""Added to an outcome: the clock was wrong, ahead or behind, so the time of this visit is not when it was made.

Such a visit stays as it was recorded, and no reader takes it for one, but those that ask for it."""
WITHDRAWN = 255
"""In place of an outcome: this visit was taken back."""


def append(session: DatabaseSession, visits: Visits) -> None:
    """Add visits to the open segment, sealing segments as they fill. O(n log n) for the batch alone.

    A visit that the open segment already has (same page, same time) takes the place of the one before; of one in a
    full segment, which never changes, the reader passes over the older.
    """
    done = 0
    while done < len(visits):
        segment, used = _open_segment(session)
        part = _distinct(visits.take(slice(done, done + SEGMENT_VISITS - used)))
        done += SEGMENT_VISITS - used
        columns = (np.full(len(part), segment), *part.columns().values())
        added = session.apply(session.statements.add_visits, *columns)
        if added < len(part):
            session.apply(session.statements.replace_visits, *columns)
        session.run(session.statements.grow_segment, added, segment)
        if added == len(part) == SEGMENT_VISITS:  # it is all that the segment has, and in its order
            _seal(session, segment, _looks_of(part))
        elif used + added >= SEGMENT_VISITS:
            _seal(session, segment, session.table(LOOK, session.statements.observations_of_segment, segment))


def withdraw(session: DatabaseSession, page: IntArray, time: FloatArray) -> None:
    """Take visits back: recorded as withdrawn, they stand no more. Rows of full segments never change."""
    append(session, Visits.of(page, time, outcome=WITHDRAWN))


def mark_misdated(session: DatabaseSession, visits: Visits) -> None:
    """Record visits once more, as misdated. Rows of full segments never change."""
    append(session, replace(visits, outcome=visits.outcome | np.uint8(MISDATED)))


def pack(observations: AnyArray) -> bytes:
    """The columns of observations one after the other, little-endian: 20 bytes per visit."""
    return b"".join(observations[name].astype(_little(name)).tobytes() for name in LOOK_NAMES)


def unpack(data: bytes) -> dict[str, AnyArray]:
    """The columns in a pack, by name, not copied.

    >>> observations = np.array([(7, 1.5, 0, 2, 3), (9, 0.5, 7, 0, 0)], LOOK)
    >>> {name: column.tolist() for name, column in unpack(pack(observations)).items()}["page"]
    [7, 9]
    """
    count, start = len(data) // LOOK.itemsize, 0
    columns: dict[str, AnyArray] = {}
    for name in LOOK_NAMES:
        dtype = _little(name)
        columns[name] = np.frombuffer(data, dtype, count, start)
        start += count * dtype.itemsize
    return columns


def _little(name: str) -> np.dtype[np.generic]:
    return np.dtype(VISIT_COLUMNS[name]).newbyteorder("<")


def _open_segment(session: DatabaseSession) -> tuple[int, int]:
    """A segment with room that no other transaction adds to, and how many visits it has."""
    found = session.rows(session.statements.open_segment)
    if found:
        segment, used = found[0]
        return int(segment), int(used)
    return int(session.rows(session.statements.add_segment)[0][0]), 0


def _distinct(visits: Visits) -> Visits:
    """Sorted by page and time, each visit once: in the order of the key, rows are written side by side."""
    ordered = visits.sorted()
    last = ends_of_runs(ordered.page, ordered.time)
    return ordered if bool(last.all()) else ordered.take(last)


def _looks_of(visits: Visits) -> AnyArray:
    """The columns of histories of visits, as a segment's rows would be read."""
    observations = np.empty(len(visits), LOOK)
    for name in LOOK_NAMES:
        observations[name] = getattr(visits, name)
    observations["kinds"] |= np.where(visits.new_internal >= 0, np.uint16(ChangeKind.LINKS_COMPARED), np.uint16(0))
    return observations


def _seal(session: DatabaseSession, segment: int, observations: AnyArray) -> None:
    session.run(
        session.statements.seal_segment,
        len(observations),
        int((observations["verdict"] == Verdict.CHANGED).sum()),
        int(((observations["outcome"] > ANSWERED) & (observations["outcome"] < MISDATED)).sum()),
        float(observations["time"].min()),
        float(observations["time"].max()),
        pack(observations),
        segment,
    )


def count_before(session: DatabaseSession, time: float) -> VisitCounts:
    """Count the visits before a time: those of full segments were counted when they were sealed."""
    [sealed] = session.rows(session.statements.count_sealed_before, time)
    [others] = session.rows(session.statements.count_rows_before, MISDATED, time)
    return VisitCounts(*(int(one) + int(other) for one, other in zip(sealed, others, strict=True)))


PACKS_AT_ONCE = 16
"""Packs (about a megabyte each) that are in memory beside the columns they are copied into."""
SCAN_PER_SEEK = 20
"""Visits that are scanned in the time of one search for a page in a segment, roughly, in both engines."""

FEW_PAGES = 16
"""Pages up to which each is searched for, without an estimate of the cost."""

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
class VisitSelection:
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
    session: DatabaseSession, host: int | None, pages: IntArray | None, since: float | None, until: float | None
) -> VisitSelection:
    """The selection that the arguments of ``Store.visits`` describe."""
    if host is not None:
        of_host = session.table(_ID, session.statements.pages_of_host, host)["id"]
        pages = of_host if pages is None else np.intersect1d(of_host, pages)
    chosen = None if pages is None else np.unique(np.asarray(pages, np.int64))
    return VisitSelection(chosen, -np.inf if since is None else since, np.inf if until is None else until)


def load_histories(session: DatabaseSession, selection: VisitSelection, kind: ChangeKind | None) -> Histories:
    """Histories of the selected visits. One pass; O(n) and a merge of sorted runs."""
    return Histories.from_visits(load_observations(session, selection), kind)


class PageSpans:
    """From which page to which the visits of full segments go: these never change, so each is asked for once.

    Visits that follow from an imported archive are recorded page by page: then those of a page lie in few segments, and
    whoever looks up one page need not look into all the others.
    """

    def __init__(self) -> None:
        self._of: dict[int, tuple[int, int]] = {}

    def __len__(self) -> int:
        """How many full segments it knows."""
        return len(self._of)

    def segments(self, session: DatabaseSession, pages: IntArray) -> IntArray:
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


def observations_of_pages(session: DatabaseSession, pages: IntArray, spans: PageSpans) -> Visits:
    """The visits of these pages, by page and time, each once; columns that histories do not need may say nothing."""
    if not len(pages):
        return load_observations(session, select(session, None, pages, None, None))
    wanted = np.unique(np.asarray(pages, np.int64))
    segments = spans.segments(session, wanted)
    # A search for each page in each segment costs as much as to read some visits of all of them.
    if len(pages) > FEW_PAGES and len(pages) * len(segments) * SCAN_PER_SEEK > SEGMENT_VISITS * len(spans):
        return load_observations(session, select(session, None, pages, None, None))
    return _as_visits(_sought(session, segments, VisitSelection(wanted)))


def load_observations(session: DatabaseSession, selection: VisitSelection) -> Visits:
    """The selected visits, by page and time, each once; columns that histories do not need may say nothing."""
    read = _sought_observations if _worth_seeking(session, selection) else standing_observations
    return _as_visits(read(session, selection))


def _as_visits(observations: dict[str, AnyArray]) -> Visits:
    count = len(observations["page"])
    return Visits(**observations, **{name: np.broadcast_to(one, count) for name, one in _UNTOLD.items()})


def standing_observations(session: DatabaseSession, selection: VisitSelection) -> dict[str, AnyArray]:
    """The columns of histories of the selected visits, by page and time, each once. O(n) and a merge of sorted runs."""
    parts = list(_observations(session, selection))
    observations = {name: np.concatenate([part[name] for part in parts]) for name in LOOK_NAMES}
    del parts
    return _standing(observations)


def _sought_observations(session: DatabaseSession, selection: VisitSelection) -> dict[str, AnyArray]:
    """The same of few pages, through the key."""
    segments = session.table(_ID, session.statements.segments_between, selection.since, selection.until)["id"]
    return _sought(session, segments, selection)


def _sought(session: DatabaseSession, segments: IntArray, selection: VisitSelection) -> dict[str, AnyArray]:
    if selection.pages is None or not len(selection.pages) or not len(segments):
        return {name: np.empty(0, VISIT_COLUMNS[name]) for name in LOOK_NAMES}
    rows = session.table(LOOK, session.statements.observations_of_pages, segments, selection.pages)
    observations = {name: np.ascontiguousarray(rows[name]) for name in LOOK_NAMES}
    inside = (observations["time"] >= selection.since) & (observations["time"] <= selection.until)
    return _standing(
        observations if bool(inside.all()) else {name: column[inside] for name, column in observations.items()}
    )


def _standing(observations: dict[str, AnyArray]) -> dict[str, AnyArray]:
    """Looks that come in runs by page, in the order of recording: by page and time, each once, as last recorded."""
    # Each run is sorted by page, and runs follow each other in the order of recording. So a stable sort by page
    # is a merge, and leaves the times of a page ascending unless somebody recorded old visits late.
    order = np.argsort(observations["page"], kind="stable")
    observations = {name: column[order] for name, column in observations.items()}
    by_time = order_by(observations["page"], observations["time"])
    if by_time is not None:
        observations = {name: column[by_time] for name, column in observations.items()}
    stands = ends_of_runs(observations["page"], observations["time"])
    stands &= observations["outcome"] < MISDATED
    return observations if bool(stands.all()) else {name: column[stands] for name, column in observations.items()}


def load_visits(session: DatabaseSession, selection: VisitSelection) -> Visits:
    """The selected visits with all columns, by page and time, each once: of doubles the one recorded last."""
    return standing(_seek(session, selection) if _worth_seeking(session, selection) else _scan(session, selection))


def standing(recorded: Visits) -> Visits:
    """By page and time; of visits recorded twice the later record, since a second judgement replaces the first.

    Visits whose last record takes them back, or says that they are misdated, are not there.
    """
    visits = recorded.sorted()
    stands = ends_of_runs(visits.page, visits.time) & (visits.outcome < MISDATED)
    return visits if bool(stands.all()) else visits.take(stands)


def load_misdated(session: DatabaseSession, selection: VisitSelection) -> Visits:
    """Of the selected visits those that are misdated, with the outcomes they had, by page and time."""
    recorded = _seek(session, selection) if _worth_seeking(session, selection) else _scan(session, selection)
    visits = recorded.sorted()
    last = ends_of_runs(visits.page, visits.time)
    found = visits.take(last & (visits.outcome >= MISDATED) & (visits.outcome != WITHDRAWN))
    return replace(found, outcome=found.outcome - np.uint8(MISDATED))


def _worth_seeking(session: DatabaseSession, selection: VisitSelection) -> bool:
    if selection.pages is None:
        return False
    [(segments, visits)] = session.rows(session.statements.segments)
    return len(selection.pages) * int(segments) * SCAN_PER_SEEK <= int(visits)


def _seek(session: DatabaseSession, selection: VisitSelection) -> Visits:
    """Visits of few pages, through the key."""
    segments = session.table(_ID, session.statements.segments_between, selection.since, selection.until)["id"]
    if selection.pages is None or not len(selection.pages) or not len(segments):
        return Visits.empty()
    return _visits(session.table(_VISIT, session.statements.visits_of_pages, segments, selection.pages), selection)


def _scan(session: DatabaseSession, selection: VisitSelection) -> Visits:
    """Visits of many pages, segment after segment."""
    segments = session.table(_ID, session.statements.segments_between, selection.since, selection.until)["id"]
    return Visits.concatenate(
        [
            _visits(session.table(_VISIT, session.statements.visits_of_segment, segment), selection)
            for segment in segments.tolist()
        ]
    )


def _visits(rows: AnyArray, selection: VisitSelection) -> Visits:
    keep = selection.keep(rows["page"], rows["time"])
    chosen = rows if keep is None else rows[keep]
    return Visits(*(np.ascontiguousarray(chosen[name]) for name in VISIT_COLUMNS))


def _observations(session: DatabaseSession, selection: VisitSelection) -> Iterator[dict[str, AnyArray]]:
    """The columns of histories, run by run: full segments from their packs, open ones from their rows."""
    last = 0
    while packs := session.rows(
        session.statements.packs_between, selection.since, selection.until, last, PACKS_AT_ONCE
    ):
        for _, data in packs:
            yield _chosen(unpack(data), selection)
        last = packs[-1][0]
    rows = session.table(LOOK, session.statements.observations_of_open)
    yield _chosen({name: rows[name] for name in LOOK_NAMES}, selection)


def _chosen(observations: dict[str, AnyArray], selection: VisitSelection) -> dict[str, AnyArray]:
    keep = selection.keep(observations["page"], observations["time"])
    return observations if keep is None else {name: column[keep] for name, column in observations.items()}
