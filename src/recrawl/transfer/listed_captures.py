"""Derives visits from the digests of captures, and the changes to the visits that are stored.

Whatever the order of imports, the visits must become those of importing everything at once. So a page is always
classified with all its captures. A stored visit that is still valid stays, because it may be based on more than
digests.

Pages are processed in portions of a bounded number of captures, since a page may have one capture or a million. An
import keeps one of several downloads within ``CleaningRules.merge_within`` seconds (SHARC 7.2). The others stay in the
index and can be replayed, but are no visits; counts of captures and visits must account for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from recrawl.detect.digest_verdicts import classify_listed, merge_downloads, methods_of, outcomes_of, versions_of
from recrawl.errors import counted
from recrawl.model import (
    ANSWERED,
    VISIT_COLUMNS,
    AnyArray,
    BoolArray,
    ByteArray,
    FloatArray,
    IntArray,
    Outcome,
    Verdict,
    Visits,
)
from recrawl.model.arrays import ends_of_runs, order_by, starts_of_runs
from recrawl.store.base import CaptureIndex, HistoryStore, Store
from recrawl.store.store_values import REVISIT, CaptureColumns, CaptureOrigin
from recrawl.time import format_duration

MERGE_WITHIN = 60.0
"""Seconds within which several downloads of a page are one visit, unless an import says otherwise."""


_VISITS = (CaptureOrigin.OURS, CaptureOrigin.VISITED, CaptureOrigin.RECORDED)


def chunks_of(store: CaptureIndex, pages: IntArray, captures: int, at_most: int) -> Iterator[IntArray]:
    """Pages, in order, in portions with a maximum of captures and pages. A page with more is a portion by itself."""
    for start in range(0, len(pages), at_most):
        some = pages[start : start + at_most]
        total = np.append(0, np.cumsum(store.capture_counts(some)))
        first = 0
        while first < len(some):
            last = max(first + 1, int(np.searchsorted(total, total[first] + captures, "right")) - 1)
            yield some[first:last]
            first = last


def captures_in_pieces(store: CaptureIndex, pages: IntArray, at_once: int) -> Iterator[CaptureColumns]:
    """The captures of one portion, by page and time; those of a page with very many in several pieces."""
    if len(pages) != 1:
        yield store.capture_columns(pages)
        return
    after = -np.inf
    while len(piece := store.captures_of_page(int(pages[0]), after=after, limit=at_once)):
        yield piece
        after = float(piece.time[-1])


@dataclass(frozen=True, slots=True)
class ListedCaptures:
    """Captures without their places: columns by page and time."""

    page: IntArray
    time: FloatArray
    status: IntArray
    mime: list[str]
    repeats: BoolArray
    """The record is a revisit."""
    digest: list[bytes]
    size: IntArray
    ours: BoolArray
    """A visit of our own made it, or one of another crawl by recrawl: it is a visit, however soon after another."""
    beside: BoolArray
    """It is no visit of a page: robots.txt, a sitemap, one of several requests for a page."""
    recorded: BoolArray
    """It was imported after its visit, which stays as it was recorded."""
    types: tuple[list[str], IntArray] | None = None
    """Names of media types and the number of each capture's name among them, in place of ``mime``."""
    versions: tuple[IntArray, IntArray] | None = None
    """A number for each digest and for its algorithm, in place of ``digest``: ``versions_of``, ``methods_of``."""

    def __len__(self) -> int:
        return len(self.page)

    def numbered(self) -> tuple[IntArray, IntArray]:
        """A number for each digest and one for its algorithm."""
        return self.versions or (versions_of(self.digest), methods_of(self.digest))

    def media_types(self) -> tuple[list[str], IntArray]:
        """The names of media types, and the number of each capture's name."""
        if self.types is not None:
            return self.types
        numbers: dict[str, int] = {}
        codes = np.array([numbers.setdefault(name, len(numbers)) for name in self.mime], np.int64)
        return list(numbers), codes

    def part(self, some: slice | IntArray) -> ListedCaptures:
        """Some rows of columns that have numbers in place of texts."""
        told = (self.page, self.time, self.status, self.repeats, self.size)
        arrays: tuple[AnyArray, ...] = (*told, self.ours, self.beside, self.recorded)
        page, time, status, repeats, size, ours, beside, recorded = (column[some] for column in arrays)
        types = None if self.types is None else (self.types[0], self.types[1][some])
        versions = None if self.versions is None else (self.versions[0][some], self.versions[1][some])
        return ListedCaptures(page, time, status, [], repeats, [], size, ours, beside, recorded, types, versions)


@dataclass(frozen=True, slots=True)
class VisitCorrections:
    """Corrections of the stored visits."""

    visits: Visits
    """To record: new ones, and those with another verdict now."""
    ours: BoolArray
    """Of these, the ones that were visits of our own."""
    new: int
    """Of these, how many were not known."""
    withdrawn: tuple[IntArray, FloatArray]
    """Page and time of visits that turned out to be part of another one."""
    kept: BoolArray
    """Which captures are visits."""


def listed_captures(store: CaptureIndex, pages: IntArray, at_once: int) -> ListedCaptures:
    """The captures of these pages. A page with very many is read in pieces, of which only these columns stay."""
    digests: list[bytes] = []
    mimes: list[str] = []
    parts = []
    for piece in captures_in_pieces(store, pages, at_once):
        digests += piece.digest
        mimes += piece.mime
        repeats = np.array([mime == REVISIT for mime in piece.mime], np.bool_)
        origin = np.full(len(piece), CaptureOrigin.LISTED) if piece.origin is None else piece.origin
        parts.append((piece.page, piece.time, piece.status, repeats, piece.size, origin))
    if not parts:
        none = np.empty(0, np.int64)
        no = none.astype(np.bool_)
        return ListedCaptures(none, np.empty(0), none, [], no, [], none, no, no, no)
    page, time, status, repeats, size, origin = (np.concatenate(column) for column in zip(*parts, strict=True))
    ours = np.isin(origin, _VISITS)
    beside, recorded = origin == CaptureOrigin.AUXILIARY, origin == CaptureOrigin.RECORDED
    return ListedCaptures(page, time, status, mimes, repeats, digests, size, ours, beside, recorded)


def kept(listed: ListedCaptures, outcome: ByteArray, within: float) -> BoolArray:
    """Which captures are visits: one of those within ``within`` seconds, all with 0, and every visit of our own.

    Auxiliary captures are none.
    """
    keep = listed.ours.copy()
    rows = np.flatnonzero(~listed.beside)
    keep[rows] |= merge_downloads(listed.page[rows], listed.time[rows], outcome[rows], within)
    return keep


def kept_captures(store: Store, pages: IntArray, within: float | None, at_once: int) -> BoolArray:
    """The same for the captures of these pages, by page and time.

    With ``None``, those that are visits in the store: what an import merged stays merged, and nothing else is.
    """
    listed = listed_captures(store, pages, at_once)
    if within is None:
        return np.asarray(rows_met(listed.page, listed.time, store.observations(pages)) >= 0)
    return kept(listed, outcomes_of(listed.status), within)


def differences(listed: ListedCaptures, known: Visits, merge_within: float) -> VisitCorrections:
    """The corrections that follow from all captures of some pages, compared with their stored visits.

    Both by page and time. A verdict stays if the capture it was compared with, the last before it with a version, is
    still the same; unless it was open and is not any more. O(n).
    """
    page, time, outcome = listed.page, listed.time, outcomes_of(listed.status)
    version, method = listed.numbered()
    keep = kept(listed, outcome, merge_within)
    rows = np.flatnonzero(keep)
    found = classify_listed(page[rows], outcome[rows], listed.repeats[rows], version[rows], method[rows])
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
        record = is_new | (opened & ~listed.recorded[rows]) | (moved & differs)
    some = rows[record]
    back = ~keep & (met >= 0) & ~listed.recorded
    visits = Visits.of(
        page[some],
        time[some],
        outcome=outcome[some],
        verdict=found.verdict[record],
        kinds=found.kinds[record],
        status=listed.status[some],
        size=np.maximum(listed.size[some], 0),
    )
    return VisitCorrections(
        visits, listed.ours[some] & (met[some] >= 0), int(is_new.sum()), (page[back], time[back]), keep
    )


def gone_after(*visits: Visits) -> tuple[IntArray, BoolArray]:
    """The pages of all these visits, ascending, and whether the last answer of each was that it is gone. O(n log n)."""
    told = Visits.concatenate(visits)
    answers = told.take(told.answered()).sorted()
    last = answers.take(ends_of_runs(answers.page))
    return last.page, np.asarray(last.outcome == Outcome.GONE)


def with_costs(store: HistoryStore, visits: Visits, ours: BoolArray) -> Visits:
    """The same visits; our own ones with their stored cost and size."""
    return as_stored(store, visits, ours, ("cost", "size", "status"))


def as_stored(store: HistoryStore, visits: Visits, some: BoolArray, names: Collection[str] = VISIT_COLUMNS) -> Visits:
    """The same visits; those that are stored among ``some`` with these columns as they are stored."""
    if not bool(some.any()):
        return visits
    known = store.visits(pages=np.unique(visits.page[some]))
    met = rows_met(visits.page, visits.time, known)
    mine = np.flatnonzero(some & (met >= 0))
    columns = {name: column.copy() for name, column in visits.columns().items() if name in names}
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


_CAPTURES_AT_ONCE, _PAGES_AT_ONCE = 100_000, 20_000
_NAMED, _LISTED = 3, 10
"""Pages that a sentence names, and that JSON lists."""


@dataclass(frozen=True, slots=True)
class MergedCaptures:
    """How many captures were merged into others, and of which pages."""

    captures: int = 0
    """Captures that are no visits of their own."""
    pages: int = 0
    """Pages that have any."""
    most: list[tuple[str, int]] = field(default_factory=list)
    """URLs of the pages with most of them, and how many they have; ten at most."""

    def words(self, within: float | None) -> str:
        """A sentence, empty if nothing was merged; ``within`` is in seconds, ``None`` if not known.

        >>> MergedCaptures(3, 2, [("http://a.org/", 2), ("http://a.org/b", 1)]).words(60.0).partition("visit:")[2]
        ' http://a.org/ (2), http://a.org/b (1). Read with --merge-within 0s, all count.'
        """
        if not self.captures:
            return ""
        time = "in quick succession" if within is None else f"within {format_duration(within)}"
        named = ", ".join(f"{url} ({count:,})" for url, count in self.most[:_NAMED])
        more = f" and {self.pages - _NAMED:,} more" if self.pages > _NAMED else ""
        again = f"{'Imported' if within is None else 'Read'} with --merge-within 0s, all count."
        return (
            f"Merged: {counted(self.captures, 'capture')} of {counted(self.pages, 'page')}, since downloads of a page "
            f"{time} count as one visit: {named}{more}. {again}"
        )

    def as_json(self) -> dict[str, object]:
        """The same as plain values."""
        pages = [{"url": url, "captures": count} for url, count in self.most]
        return {"captures": self.captures, "pages": self.pages, "most": pages}


def merged_captures(
    store: Store, pages: IntArray, counted_before: tuple[IntArray, IntArray] | None = None
) -> MergedCaptures:
    """The captures of these pages that are no visits. O(captures) of the pages that have several; little memory.

    ``counted_before`` are other pages, and how many such captures each has. Only imported captures are merged, so
    without imports nothing is read.
    """
    if not store.import_sources():
        return MergedCaptures()
    several = pages[store.capture_counts(pages) > 1] if len(pages) else pages
    none = np.empty(0, np.int64)
    told, counts = counted_before or (none, none)
    number, with_any = int(counts.sum()), len(told)
    first = np.lexsort((told, -counts))[:_LISTED]
    most: list[tuple[int, int]] = list(zip(told[first].tolist(), counts[first].tolist(), strict=True))
    for some in chunks_of(store, several, _CAPTURES_AT_ONCE, _PAGES_AT_ONCE):
        listed = listed_captures(store, some, _CAPTURES_AT_ONCE)
        merged = (rows_met(listed.page, listed.time, store.observations(some)) < 0) & ~listed.ours & ~listed.beside
        page, count = np.unique(listed.page[merged], return_counts=True)
        number, with_any = number + int(merged.sum()), with_any + len(page)
        found = [*most, *zip(page.tolist(), count.tolist(), strict=True)]
        most = sorted(found, key=lambda one: (-one[1], one[0]))[:_LISTED]
    urls = store.urls(np.array([page for page, _ in most], np.int64))
    return MergedCaptures(number, with_any, [(url, count) for url, (_, count) in zip(urls, most, strict=True)])
