"""From captures to visits by what their digests say, and what that changes about the visits that are known.

Whatever the order of imports, the visits must become those of importing everything at once. So a page is always judged
with all its captures; what is known already is left as it is where it still stands, because whoever judged it may
have seen more than digests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from recrawl.crawl.importing_chunks import captures_in_pieces
from recrawl.detect.listed import judge_listed, merge_downloads, methods_of, outcomes_of, versions_of
from recrawl.model import ANSWERED, BoolArray, ByteArray, FloatArray, IntArray, Outcome, Verdict, Visits
from recrawl.model.arrays import ends_of_runs, order_by, starts_of_runs
from recrawl.store.base import Store
from recrawl.store.values import REVISIT


@dataclass(frozen=True, slots=True)
class ListedCaptures:
    """Captures without where they lie: columns by page and time."""

    page: IntArray
    time: FloatArray
    status: IntArray
    mime: list[str]
    repeats: BoolArray
    """The record is a revisit."""
    digest: list[bytes]
    size: IntArray
    ours: BoolArray
    """A visit of our own made it."""

    def __len__(self) -> int:
        return len(self.page)


@dataclass(frozen=True, slots=True)
class Differences:
    """What to do to the visits that are known."""

    visits: Visits
    """To record: new ones, and those that say something else now."""
    ours: BoolArray
    """Of these, the ones that were visits of our own."""
    new: int
    """Of these, how many were not known."""
    withdrawn: tuple[IntArray, FloatArray]
    """Page and time of visits that turned out to be part of another one."""


def listed_captures(store: Store, pages: IntArray, at_once: int) -> ListedCaptures:
    """The captures of these pages. A page with very many is read in pieces, of which only these columns stay."""
    digests: list[bytes] = []
    mimes: list[str] = []
    parts = []
    for piece in captures_in_pieces(store, pages, at_once):
        digests += piece.digest
        mimes += piece.mime
        repeats = np.array([mime == REVISIT for mime in piece.mime], np.bool_)
        ours = np.zeros(len(piece), np.bool_) if piece.ours is None else piece.ours
        parts.append((piece.page, piece.time, piece.status, repeats, piece.size, ours))
    if not parts:
        none = np.empty(0, np.int64)
        return ListedCaptures(none, np.empty(0), none, [], none.astype(np.bool_), [], none, none.astype(np.bool_))
    page, time, status, repeats, size, ours = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ListedCaptures(page, time, status, mimes, repeats, digests, size, ours)


def kept(page: IntArray, time: FloatArray, outcome: ByteArray, ours: BoolArray, within: float) -> BoolArray:
    """Which captures are visits: one of each download, and every visit of our own."""
    return merge_downloads(page, time, outcome, within) | ours


def differences(listed: ListedCaptures, known: Visits, merge_within: float) -> Differences:
    """What follows from all captures of some pages, compared with the known visits of these pages.

    Both by page and time. A verdict stays if the capture it is compared with, the last before it that tells a version,
    is the same as when it was given; unless it was open and is not any more. O(n).
    """
    page, time, outcome = listed.page, listed.time, outcomes_of(listed.status)
    version = versions_of(listed.digest)
    keep = kept(page, time, outcome, listed.ours, merge_within)
    rows = np.flatnonzero(keep)
    found = judge_listed(
        page[rows], outcome[rows], listed.repeats[rows], version[rows], methods_of(listed.digest)[rows]
    )
    met = rows_met(page, time, known)
    tells = (outcome <= ANSWERED) & ((version != 0) | (outcome == Outcome.GONE))
    moved = (_last_before(page, tells & (met >= 0)) != _last_before(page, tells & keep))[rows]
    is_new = met[rows] < 0
    before = known.take(np.maximum(met[rows], 0)) if len(known) else None
    if before is None:
        record = is_new
    else:
        differs = (found.verdict != before.verdict) | (found.kinds != before.kinds)
        opened = (before.verdict == Verdict.UNKNOWN) & (found.verdict != Verdict.UNKNOWN)
        record = is_new | opened | (moved & differs)
    some = rows[record]
    back = ~keep & (met >= 0)
    visits = Visits.of(
        page[some],
        time[some],
        outcome=outcome[some],
        verdict=found.verdict[record],
        kinds=found.kinds[record],
        status=listed.status[some],
        size=np.maximum(listed.size[some], 0),
    )
    return Differences(visits, listed.ours[some] & (met[some] >= 0), int(is_new.sum()), (page[back], time[back]))


def gone_after(*visits: Visits) -> tuple[IntArray, BoolArray]:
    """The pages of all these visits, ascending, and whether the last answer of each was that it is gone. O(n log n)."""
    told = Visits.concatenate(visits)
    answers = told.take(told.answered()).sorted()
    last = answers.take(ends_of_runs(answers.page))
    return last.page, np.asarray(last.outcome == Outcome.GONE)


def with_costs(store: Store, visits: Visits, ours: BoolArray) -> Visits:
    """The same visits; where they were our own, with what only we know of them: what they cost and brought."""
    if not bool(ours.any()):
        return visits
    known = store.visits(pages=np.unique(visits.page[ours]))
    met = rows_met(visits.page, visits.time, known)
    mine = np.flatnonzero(ours & (met >= 0))
    columns = {name: column.copy() for name, column in visits.columns().items() if name in ("cost", "size", "status")}
    for name, column in columns.items():
        column[mine] = known.columns()[name][met[mine]]
    return replace(visits, **columns)


def rows_met(page: IntArray, time: FloatArray, known: Visits) -> IntArray:
    """The row of the known visit at the same page and instant; -1 where there is none.

    The known ones are distinct, and sorted by page and time. O(n log n), O(n) for sorted rows.
    """
    met = np.full(len(page), -1)
    if not len(known) or not len(page):
        return met
    pages, times = np.concatenate([known.page, page]), np.concatenate([known.time, time])
    order = order_by(pages, times)
    rows = np.arange(len(pages)) if order is None else order
    second = ~starts_of_runs(pages[rows], times[rows])
    # The sort is stable, so the known visit comes first, before all rows at its page and instant.
    first = rows[np.maximum.accumulate(np.where(second, 0, np.arange(len(rows))))]
    same = second & (first < len(known))
    met[rows[same] - len(known)] = first[same]
    return met


def _last_before(page: IntArray, marked: BoolArray) -> IntArray:
    """The last marked row of the same page before each row; -1 where there is none. Rows sorted by page. O(n)."""
    if not len(page):
        return np.empty(0, np.int64)
    place = np.arange(len(page))
    last = np.append(-1, np.maximum.accumulate(np.where(marked, place, -1))[:-1])
    first = np.maximum.accumulate(np.where(starts_of_runs(page), place, 0))
    return np.where(last >= first, last, -1)
