"""Histories: per page the gaps between observations, and whether each observation found a change. Ragged columns.

Rules of this file:
 1. The first observation of a page opens its history and closes no gap, whatever it says about change.
 2. A visit without a verdict (it failed, or no detector could compare it) closes no gap: the gap widens.
 3. Two visits at the same instant are one visit; the one that says more wins. So every gap is > 0.
 4. Rows are sorted by page id, gaps by time. Every constructor ends in :func:`_assemble`, which keeps this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.model.arrays import AnyArray, BoolArray, FloatArray, IntArray, offsets_of, order_by, starts_of_runs
from recrawl.model.visits import UNCOUNTED, ChangeKind, Verdict, Visits


@dataclass(frozen=True, slots=True)
class Histories:
    """What is known of n pages that were observed m times after their first observation.

    Row i has the gaps ``gaps[offsets[i]:offsets[i+1]]``. Times are NaN where there was no such observation.
    """

    page: IntArray
    """Page ids, ascending, unique. Shape (n,)."""
    offsets: IntArray
    """Shape (n + 1,)."""
    gaps: FloatArray
    """Seconds between consecutive observations, all > 0. Shape (m,)."""
    changed: BoolArray
    """Whether the observation that closes the gap found a change. Shape (m,)."""
    first_visit: FloatArray
    """When the history opens, seconds since the epoch."""
    last_visit: FloatArray
    """The last observation that said something: time elapsed counts from here."""
    last_change: FloatArray
    """The last observation that found a change."""

    def __len__(self) -> int:
        return len(self.page)

    # -- built from ---------------------------------------------------------------------------

    @classmethod
    def from_visits(cls, visits: Visits, kind: ChangeKind | None = None) -> Histories:
        """Histories of all pages in ``visits``, which may be unordered, doubled and failed.

        With a ``kind``, only changes of that kind count, and a change of which nobody determined whether it is of that
        kind says nothing: different digests prove nothing about text or links, equal ones prove that all is as before.
        Nor can what follows such a change be compared with what came before it. So of a page's observations the longest
        run without one counts, if in it somebody read the page; where only digests are known the page counts as seen
        once. Pages that never answered get an empty row. O(n) if sorted by page and time, else O(n log n).

        >>> h = Histories.from_visits(Visits.of([1, 1, 1], [0.0, 9.0, 4.0], verdict=[0, 2, 1]))
        >>> h.gaps.tolist(), h.changed.tolist()
        ([4.0, 5.0], [False, True])
        """
        timeless = ~np.isfinite(visits.time)
        if bool(timeless.any()):
            msg = f"a visit to page {visits.page[timeless][0]} has no finite time"
            raise ValueError(msg)
        page, time = visits.page, visits.time
        says, answered = _what_it_says(visits, kind), visits.answered()
        undetermined = (visits.verdict == Verdict.CHANGED) & (says == Verdict.UNKNOWN)
        read = _is_read(visits, kind)
        order = order_by(page, time)
        if order is not None:
            page, time, says, answered = page[order], time[order], says[order], answered[order]
            undetermined, read = undetermined[order], read[order]
        starts = starts_of_runs(page, time)
        if not bool(starts.all()):
            first = np.flatnonzero(starts)
            page, time = page[first], time[first]
            says, answered = np.maximum.reduceat(says, first), np.logical_or.reduceat(answered, first)
            undetermined = np.logical_or.reduceat(undetermined, first) & (says == Verdict.UNKNOWN)
            read = np.logical_or.reduceat(read, first)
        new_page = starts_of_runs(page)
        ids = page[new_page]
        row = np.cumsum(new_page) - 1
        observations = answered | (says != Verdict.UNKNOWN)
        if bool(undetermined.any()):
            observations &= _in_longest_run(row, undetermined, observations, read)
        return _assemble(ids, row[observations], time[observations], says[observations])

    @classmethod
    def concatenate(cls, parts: Sequence[Histories]) -> Histories:
        """Histories of disjoint sets of pages as one, sorted by page id.

        Parts that share a page cannot be joined here: join their visits instead.
        """
        if not parts:
            return _assemble(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0, np.uint8))
        page = np.concatenate([part.page for part in parts])
        shifts = np.cumsum([0] + [len(part.gaps) for part in parts[:-1]])
        joined = cls(
            page,
            np.concatenate(
                [part.offsets[:-1] + shift for part, shift in zip(parts, shifts, strict=True)]
                + [[sum(len(p.gaps) for p in parts)]]
            ),
            np.concatenate([part.gaps for part in parts]),
            np.concatenate([part.changed for part in parts]),
            np.concatenate([part.first_visit for part in parts]),
            np.concatenate([part.last_visit for part in parts]),
            np.concatenate([part.last_change for part in parts]),
        )
        if bool((page[1:] > page[:-1]).all()):
            return joined
        order = np.argsort(page, kind="stable")
        if bool((page[order][1:] == page[order][:-1]).any()):
            msg = "the parts share a page; concatenate their visits instead"
            raise ValueError(msg)
        return joined._rows(order)

    # -- observed ----------------------------------------------------------------------------

    def counts(self) -> IntArray:
        """Number n of gaps of each page."""
        return np.diff(self.offsets)

    def changes(self) -> IntArray:
        """Number X of gaps of each page that ended in a change."""
        return self._sum(self.changed.astype(np.int64))

    def observed(self) -> FloatArray:
        """Time T over which each page was observed, seconds: the sum of its gaps."""
        return self._sum(self.gaps)

    def row_of_gap(self) -> IntArray:
        """The row each gap belongs to. Shape (m,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.counts())

    def observation_times(self) -> FloatArray:
        """When each gap was closed, seconds since the epoch. Shape (m,).

        One running sum over all rows, restarted at each row. Gaps are exact differences of times, so
        contemporary times come out exact.
        """
        if not len(self.gaps):
            return np.empty(0)
        steps = self.gaps.copy()
        rows = np.flatnonzero(self.counts())
        heads = self.offsets[rows]
        steps[heads] += self.first_visit[rows]
        steps[heads[1:]] -= self.last_visit[rows[:-1]]
        return np.cumsum(steps)

    # -- cut, grouped, chosen -----------------------------------------------------------------

    def window(self, start: float, end: float) -> Histories:
        """Only the observations with start <= time <= end; the first of them opens the history (reading 000.2).

        Pages stay, with an empty row if nothing is left of them. O(m).
        """
        row, time, says = self._observations()
        inside = (time >= start) & (time <= end)
        return _assemble(self.page, row[inside], time[inside], says[inside])

    def group(self, label: IntArray, *, round_length: float = 0.0) -> Histories:
        """Histories of groups of pages: a group changes when any of its pages does.

        ``label[i]`` is the id of the group of row i. The observes the members within one round of
        ``round_length`` seconds (counted from the epoch) are one observation of the group, dated at the last of
        them; 0 joins only simultaneous ones. A member's first observation says nothing about change, so it can
        open the group's history but close no gap of it. O(m log m).
        """
        ids, group = np.unique(label, return_inverse=True)
        row, time, says = self._observations()
        row = group[row]
        order = order_by(row, time)
        if order is not None:
            row, time, says = row[order], time[order], says[order]
        bucket = np.floor(time / round_length) if round_length > 0 else time
        first = np.flatnonzero(starts_of_runs(row, bucket))
        if len(first):
            last = np.append(first[1:], len(row)) - 1
            row, time, says = row[first], time[last], np.maximum.reduceat(says, first)
        return _assemble(ids.astype(np.int64), row, time, says)

    def take(self, rows: AnyArray | slice) -> Histories:
        """The rows at these ascending positions, or where this mask is true."""
        positions = np.arange(len(self))[rows]
        if len(positions) > 1 and bool((np.diff(positions) <= 0).any()):
            msg = "rows must be ascending positions, each at most once"
            raise ValueError(msg)
        return self._rows(positions)

    def latest(self, most: int) -> Histories:
        """Only the last ``most`` gaps of each page; the observation before them opens the history. O(m).

        >>> h = Histories.from_visits(Visits.of([1, 1, 1], [0.0, 4.0, 9.0], verdict=[0, 2, 1]))
        >>> h.latest(1).gaps.tolist(), h.latest(1).first_visit.tolist(), h.latest(0).last_visit.tolist()
        ([5.0], [4.0], [9.0])
        """
        counts = self.counts()
        place = np.arange(len(self.gaps)) - np.repeat(self.offsets[:-1], counts)
        keep = place >= np.repeat(counts - most, counts)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.minimum(counts, most))])
        # The observation that opens is the one before the first gap kept: found from the times, so that it is exact.
        times, cut = self.observation_times(), np.flatnonzero(counts > most)
        first = self.first_visit.copy()
        first[cut] = times[self.offsets[cut + 1] - most - 1]
        change = np.where(self.last_change > first, self.last_change, np.nan)
        return Histories(self.page, offsets, self.gaps[keep], self.changed[keep], first, self.last_visit, change)

    def align(self, page: IntArray) -> Histories:
        """One row for each id of ``page`` (ascending): known pages keep theirs, others get an empty row."""
        place = np.searchsorted(self.page, page)
        place_in_range = np.minimum(place, max(len(self) - 1, 0))
        known = self.page[place_in_range] == page if len(self) else np.zeros(len(page), np.bool_)
        kept = self._rows(place_in_range[known])
        counts = np.zeros(len(page), dtype=np.int64)
        counts[known] = kept.counts()
        times = [_spread(column, known) for column in (kept.first_visit, kept.last_visit, kept.last_change)]
        return Histories(page, np.concatenate([[0], np.cumsum(counts)]), kept.gaps, kept.changed, *times)

    # -- inside -------------------------------------------------------------------------------

    def _sum(self, values: AnyArray) -> AnyArray:
        out = np.zeros(len(self), values.dtype)
        rows = np.flatnonzero(self.counts())
        if len(rows):  # reduceat has no notion of an empty row
            out[rows] = np.add.reduceat(values, self.offsets[rows])
        return out

    def _observations(self) -> tuple[IntArray, FloatArray, AnyArray]:
        """Every observation as (row, time, what it says), by row and time, the opening ones included."""
        opened = np.flatnonzero(~np.isnan(self.first_visit))
        row = np.concatenate([opened, self.row_of_gap()])
        time = np.concatenate([self.first_visit[opened], self.observation_times()])
        says = np.concatenate(
            [
                np.full(len(opened), Verdict.UNKNOWN, np.uint8),
                np.where(self.changed, Verdict.CHANGED, Verdict.UNCHANGED).astype(np.uint8),
            ]
        )
        order = np.argsort(row, kind="stable")
        return row[order], time[order], says[order]

    def _rows(self, positions: AnyArray) -> Histories:
        counts = self.counts()[positions]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        shift = np.repeat(self.offsets[:-1][positions] - offsets[:-1], counts)
        source = np.arange(offsets[-1]) + shift
        return Histories(
            self.page[positions],
            offsets,
            self.gaps[source],
            self.changed[source],
            self.first_visit[positions],
            self.last_visit[positions],
            self.last_change[positions],
        )


def _what_it_says(visits: Visits, kind: ChangeKind | None) -> AnyArray:
    """The verdict of each visit about one kind of change (any, if ``None``)."""
    if kind is None:
        return visits.verdict
    found = visits.verdict == Verdict.CHANGED
    of_kind = (visits.kinds & np.uint16(kind)) != 0
    says = np.where(found & ~of_kind, Verdict.UNCHANGED, visits.verdict)
    return np.where(found & ~of_kind & ~_is_determined(visits, kind), Verdict.UNKNOWN, says).astype(np.uint8)


LINK_KINDS = ChangeKind.LINKS | ChangeKind.NEW_LINKS | ChangeKind.NEW_PUBLICATIONS
"""Kinds of change that are about links."""
_READ_KINDS = ChangeKind.TEXT | ChangeKind.DATA | LINK_KINDS
"""Kinds of change that only somebody finds who has read both versions; digests tell none of them."""


def _is_determined(visits: Visits, kind: ChangeKind) -> BoolArray:
    """Of which changes somebody found out whether they are of this kind.

    Whether a page is there is known of each. A change of the bytes alone is only called one where there was no text to
    compare.
    """
    if kind & _READ_KINDS:
        return np.asarray(_is_read(visits, kind) | ((visits.kinds & np.uint16(ChangeKind.EXISTENCE)) != 0))
    return np.asarray((visits.kinds & ~np.uint16(ChangeKind.LINKS_COMPARED | ChangeKind.EXACT)) != 0)


def _is_read(visits: Visits, kind: ChangeKind | None) -> BoolArray:
    """Of which visits somebody read both versions for this kind of change; of none for kinds that nobody need read."""
    if kind is None or not kind & _READ_KINDS:
        return np.zeros(len(visits), np.bool_)
    compared = (visits.kinds & np.uint16(ChangeKind.LINKS_COMPARED)) != 0
    if kind & LINK_KINDS:
        found = (visits.kinds & np.uint16(LINK_KINDS)) != 0
        return np.asarray(found | compared | (visits.new_internal != UNCOUNTED))
    return np.asarray((visits.kinds & np.uint16(_READ_KINDS)) != 0)


def _in_longest_run(row: IntArray, undetermined: BoolArray, observations: BoolArray, read: BoolArray) -> BoolArray:
    """Which visits lie in the longest run of their page that no undetermined change divides; of equal ones the latest.

    An undetermined change opens the run after it. Only runs count in which somebody read the page. If a page is divided
    and has no such run, its last undetermined change is left, which tells no rate: runs between changes that nobody
    read have no changes because of how they were cut. ``row`` numbers the pages, ascending.
    """
    divided = np.bincount(row, weights=undetermined) > 0
    run = np.cumsum(undetermined | starts_of_runs(row)) - 1
    page_of_run = row[np.flatnonzero(starts_of_runs(run))]
    counts = (np.bincount(run, weights=read) > 0) | ~divided[page_of_run]
    length = np.where(counts, np.bincount(run, weights=observations), 0)
    ranked = np.lexsort((length, page_of_run))  # stable: of equal lengths the latest comes last
    longest = ranked[np.append(np.diff(page_of_run[ranked]) != 0, True)]
    inside = np.isin(run, longest)
    return np.asarray(inside & (counts[run] | undetermined))


def _assemble(page: IntArray, row: IntArray, time: FloatArray, says: AnyArray) -> Histories:
    """Histories from observations sorted by row and time: the first of a row opens it, the silent rest is dropped."""
    opens = starts_of_runs(row)
    keep = opens | (says != Verdict.UNKNOWN)
    if not bool(keep.all()):
        row, time, says, opens = row[keep], time[keep], says[keep], opens[keep]
    n = len(page)
    first, last, change = (np.full(n, np.nan) for _ in range(3))
    first[row[opens]] = time[opens]
    last[row] = time  # of equal indices the last assignment stands
    closes = ~opens
    gap_row = row[closes]
    gaps = np.diff(time, prepend=np.nan)[closes]
    changed = says[closes] == Verdict.CHANGED
    change[gap_row[changed]] = time[closes][changed]
    return Histories(page, offsets_of(gap_row, n), gaps, changed, first, last, change)


def _spread(values: FloatArray, where: BoolArray) -> FloatArray:
    out = np.full(len(where), np.nan)
    out[where] = values
    return out
