"""Observations as policies need them: growing columns, and the state that every policy has of its pages.

Interval rules read observations in order, with their outcome and whether visits failed before them.

:class:`~recrawl.model.Histories` defines what counts as an observation. Histories have gaps and verdicts only; the
schedulers of today's crawlers also need to know whether the page was gone, and whether a failure reset its state.

The columns grow: append takes amortised constant time, and they are read as plain arrays.

Every policy knows the columns of its pages, and when each was last observed. Rows are dense and stay in place; ids may
be any integers in any order. Policies that estimate rates from scratch at every fit also store all observations so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recrawl.model import (
    ANSWERED,
    AnyArray,
    BoolArray,
    FloatArray,
    Histories,
    IntArray,
    Outcome,
    Pages,
    Verdict,
    Visits,
)
from recrawl.model.arrays import ends_of_runs, offsets_of, order_by, starts_of_runs


class GrowingColumns:
    """Named columns of equal length with room to grow; the room doubles when it is used up.

    >>> table = GrowingColumns({"id": np.int64})
    >>> table.append(id=np.array([7, 8]))
    >>> table["id"].tolist()
    [7, 8]
    """

    def __init__(self, types: Mapping[str, type[np.generic]]) -> None:
        self._length = 0
        self._arrays = {name: np.empty(0, dtype) for name, dtype in types.items()}

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> AnyArray:
        """A view of the column: writing to it changes the table; it is stale after the next append."""
        return self._arrays[name][: self._length]

    def empty(self) -> GrowingColumns:
        """The same columns without rows."""
        return GrowingColumns({name: column.dtype.type for name, column in self._arrays.items()})

    def append(self, **values: AnyArray) -> None:
        """Add rows, given as all columns."""
        added = {len(value) for value in values.values()}
        if added and (values.keys() != self._arrays.keys() or len(added) != 1):
            msg = f"all of {sorted(self._arrays)} are needed, of equal length"
            raise ValueError(msg)
        end = self._length + added.pop()
        for name, value in values.items():
            if end > len(self._arrays[name]):
                room = np.empty(max(end, 2 * self._length), self._arrays[name].dtype)
                room[: self._length] = self[name]
                self._arrays[name] = room
            self._arrays[name][self._length : end] = value
        self._length = end


_UNKNOWN, _CHANGED = int(Verdict.UNKNOWN), int(Verdict.CHANGED)


class ObservationColumns(NamedTuple):
    """Observations by row and time."""

    row: IntArray
    time: FloatArray
    """Seconds since the epoch."""
    seconds: FloatArray
    """Since the observation before, > 0; NaN for the observation that opens the history of its page."""
    changed: BoolArray
    """Whether it found a change; never for an observation that opens."""
    outcome: npt.NDArray[np.uint8]
    after_failure: BoolArray
    """Whether a visit failed since the observation before."""

    def take(self, which: AnyArray | slice) -> ObservationColumns:
        """The observes these positions, or where this mask is true."""
        return ObservationColumns(
            self.row[which],
            self.time[which],
            self.seconds[which],
            self.changed[which],
            self.outcome[which],
            self.after_failure[which],
        )

    def opens(self) -> BoolArray:
        """Which observations are the first of their page."""
        return np.isnan(self.seconds)


def fold(
    row: IntArray, visits: Visits, last_observed: FloatArray, failed: BoolArray | None = None
) -> ObservationColumns:
    """The observations among ``visits``, which are to the pages in ``row``.

    O(n) if sorted by row and time, else O(n log n).

    ``last_observed`` (NaN for never) and ``failed`` (whether a visit failed since) have one entry per page and are
    moved on **in place**. Visits not after the last observation are ignored. Without ``failed``, nobody asks for
    failures.
    """
    if not np.isfinite(visits.time).all():
        msg = "a visit has no finite time"
        raise ValueError(msg)
    if bool((row[1:] > row[:-1]).all()):
        return _fold_single(row, visits, last_observed, failed)
    news = ~(visits.time <= last_observed[row])
    row, time, says, outcome = row[news], visits.time[news], visits.verdict[news], visits.outcome[news]
    order = order_by(row, time)
    if order is not None:
        row, time, says, outcome = row[order], time[order], says[order], outcome[order]
    starts = np.flatnonzero(starts_of_runs(row, time))
    if len(starts) < len(
        row
    ):  # visits at the same instant are one: the verdict that says more, an answer if there is one
        row, time = row[starts], time[starts]
        says, outcome = np.maximum.reduceat(says, starts), np.minimum.reduceat(outcome, starts)
    answered: BoolArray = outcome <= ANSWERED
    at = _positions(row, says, answered, last_observed)
    first = starts_of_runs(row[at])
    seconds = time[at] - np.where(first, last_observed[row[at]], time[np.roll(at, 1)])
    changed = (says[at] == _CHANGED) & ~np.isnan(seconds)
    after_failure = np.zeros(len(at), np.bool_)
    if failed is not None:
        after_failure = _move_failures(row, ~answered & (says == _UNKNOWN), at, failed)
    last_observed[row[at]] = time[at]  # of equal indices the last assignment stands
    return ObservationColumns(row[at], time[at], seconds, changed, outcome[at], after_failure)


def _fold_single(
    row: IntArray, visits: Visits, last_observed: FloatArray, failed: BoolArray | None
) -> ObservationColumns:
    """As :func:`fold`, of one visit a page, by row: nearly all that a crawler tells are of this kind."""
    before = last_observed[row]
    news, unseen = ~(visits.time <= before), np.isnan(before)
    speaks, answered = visits.verdict != _UNKNOWN, visits.outcome <= ANSWERED
    at = np.flatnonzero(news & (speaks | (answered & unseen)))
    own, time, outcome = row[at], visits.time[at], visits.outcome[at]
    after_failure = np.zeros(len(at), np.bool_) if failed is None else failed[own]
    if failed is not None:
        failed[own] = False
        failed[row[news & ~answered & ~speaks]] = True
    last_observed[own] = time
    changed = (visits.verdict[at] == _CHANGED) & ~unseen[at]
    return ObservationColumns(own, time, time - before[at], changed, outcome, after_failure)


def _move_failures(row: IntArray, fails: BoolArray, at: IntArray, failed: BoolArray) -> BoolArray:
    """Whether a visit failed between each observation (at the positions ``at``) and the one before.

    Moves ``failed`` on.
    """
    count = np.concatenate([np.zeros(1, np.int64), np.cumsum(fails)])
    heads = np.flatnonzero(starts_of_runs(row))
    first = starts_of_runs(row[at])
    since = np.where(first, heads[np.searchsorted(heads, at, side="right") - 1], np.roll(at, 1) + 1)
    found: BoolArray = (count[at] > count[since]) | (first & failed[row[at]])
    failed[row[at]] = False
    behind = heads.copy()
    behind[np.searchsorted(row[heads], row[at])] = at + 1
    failed[row[heads]] |= count[np.append(heads[1:], len(row))[: len(heads)]] > count[behind]
    return found


def rounds(row: IntArray) -> Iterator[IntArray]:
    """Positions of the first entries of all rows, then of the second ones, and so on; ``row`` is sorted. O(n log n).

    >>> [part.tolist() for part in rounds(np.array([3, 3, 3, 5, 8, 8]))]
    [[0, 3, 4], [1, 5], [2]]
    """
    if not len(row):
        return
    starts = np.flatnonzero(starts_of_runs(row))
    if len(starts) == len(row):
        yield starts
        return
    place = np.arange(len(row)) - np.repeat(starts, np.diff(np.append(starts, len(row))))
    yield from np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1])


def _positions(row: IntArray, says: AnyArray, answered: BoolArray, last_observed: FloatArray) -> IntArray:
    """Where the observations are: the first answer to a page never seen, and all that say something about change."""
    speaks: BoolArray = says != _UNKNOWN
    observations: IntArray = np.flatnonzero(answered | speaks)
    opens = starts_of_runs(row[observations]) & np.isnan(last_observed[row[observations]])
    return observations[opens | speaks[observations]]


_PAGE_COLUMNS = ("host", "importance", "cost", "discovered")


class ClosedGapColumns(NamedTuple):
    """Observations that closed a gap, by row and time."""

    row: IntArray
    seconds: FloatArray
    changed: BoolArray
    end: FloatArray
    """When the observation was."""


class PageIndex:
    """The row of each page id. Ids may be any integers in any order; rows count up in the order of :meth:`append`.

    >>> index = PageIndex()
    >>> index.append(np.array([30, 10]))
    >>> index.rows(np.array([10, 30])).tolist()
    [1, 0]
    """

    def __init__(self) -> None:
        self._table = GrowingColumns({"id": np.int64})
        self._by_id: tuple[IntArray, IntArray] | None = None
        """Ids in order and their rows; ``None`` while they came in order, so that the id column serves itself."""

    def __len__(self) -> int:
        return len(self._table)

    @property
    def id(self) -> IntArray:
        """The id of each row. A view."""
        return self._table["id"]

    def new(self, page: IntArray) -> IntArray:
        """Positions of the ids that are not known yet, in their order; of equal ids the first. O(m log m)."""
        unique, first = np.unique(page, return_index=True)
        _, known = self._find(unique)
        return np.sort(first[~known])

    def append(self, page: IntArray) -> None:
        """Add ids that are not known. O(m) amortised for ids in ascending order, else O(n log n)."""
        ids = np.concatenate([self.id[-1:], page])
        in_order = self._by_id is None and bool((np.diff(ids) > 0).all())
        self._table.append(id=page)
        if len(page) and not in_order:
            rows = np.argsort(self.id, kind="stable")
            self._by_id = self.id[rows], rows

    def rows(self, page: IntArray) -> IntArray:
        """The row of each id; :class:`LookupError` if one was never added. O(m), or O(m log n) if ids have gaps."""
        rows, known = self._find(page)
        if not bool(known.all()):
            strangers = page[~known]
            raise LookupError(f"page {strangers[0]} was never added ({len(strangers)} such in this call): add it first")
        return rows

    def _find(self, page: IntArray) -> tuple[IntArray, BoolArray]:
        """Row of each id, and whether it is known; the row means nothing where it is not."""
        ids, rows = self._by_id or (self.id, None)
        if not len(ids):
            return np.zeros(len(page), np.int64), np.zeros(len(page), np.bool_)
        if ids[-1] - ids[0] == len(ids) - 1:  # ids without a gap are found by counting
            place = np.clip(page - ids[0], 0, len(ids) - 1)
        else:
            place = np.minimum(np.searchsorted(ids, page), len(ids) - 1)
        return (place if rows is None else rows[place]), ids[place] == page


class LastVisits:
    """Pages in rows, found by id; the last observation of each. A fold over pages and visits."""

    def __init__(self) -> None:
        real, whole = np.float64, np.int64
        own = {"host": whole, "importance": real, "cost": real, "discovered": real}
        self._table = GrowingColumns({**own, "last_observed": real, "gone_since": real})
        self._index = PageIndex()

    def __len__(self) -> int:
        return len(self._table)

    @property
    def pages(self) -> Pages:
        """All pages, one a row. Views: not to be modified or kept."""
        return Pages(self._index.id, *(self._table[name] for name in _PAGE_COLUMNS))

    @property
    def last_observed(self) -> FloatArray:
        """When each page was last observed with a result, seconds since the epoch; NaN for never. A view."""
        return self._table["last_observed"]

    @property
    def gone_since(self) -> FloatArray:
        """When each page was first found gone and not found again since, seconds since the epoch; else NaN. A view."""
        return self._table["gone_since"]

    def add(self, pages: Pages) -> Pages:
        """Append the pages that are new, and return them. Of equal ids the first counts.

        O(new log n) amortised for ids in ascending order, else O(n log n) a call to keep them findable.
        """
        new = pages.take(self._index.new(pages.id))
        never = np.full(len(new), np.nan)
        known_columns = {name: getattr(new, name) for name in _PAGE_COLUMNS}
        self._index.append(new.id)
        self._table.append(**known_columns, last_observed=never, gone_since=never)
        return new

    def rows(self, page: IntArray) -> IntArray:
        """The row of each id; :class:`LookupError` if one was never added. O(m), or O(m log n) if ids have gaps."""
        return self._index.rows(page)

    def is_among(self, pages: Pages) -> bool:
        """Whether every page is one of these, with the same host, importance and cost. O(n log n)."""
        order = np.argsort(pages.id, kind="stable")
        place = np.searchsorted(pages.id, self._index.id, sorter=order)
        if not len(order):
            return not len(self)
        rows = order[np.minimum(place, len(order) - 1)]
        same: BoolArray = pages.id[rows] == self._index.id
        for name in ("host", "importance", "cost"):
            same &= getattr(pages, name)[rows] == self._table[name]
        return bool(same.all())

    def tell(self, visits: Visits) -> ClosedGapColumns:
        """Update the last observations; return the gaps that these visits closed.

        O(m) if sorted by row and time, else O(m log m).

        :class:`~recrawl.model.Histories` defines which visits are observations. Visits that are not after the last
        observation are ignored. A page that was seen before it was added (its history was imported) was discovered
        when it was first seen: its age and its cluster count from there.
        """
        found = fold(self.rows(visits.page), visits, self.last_observed)
        self._note_gone(found)
        opens = found.opens()
        first, discovered = np.flatnonzero(opens), self._table["discovered"]
        discovered[found.row[first]] = np.minimum(discovered[found.row[first]], found.time[first])
        closed = np.flatnonzero(~opens)
        return ClosedGapColumns(found.row[closed], found.seconds[closed], found.changed[closed], found.time[closed])

    def _note_gone(self, observations: ObservationColumns) -> None:
        """Move on since when pages are gone: the first of the observations, up to the last one, that all found no page.

        O(m).

        Observations are by row and time.
        """
        gone = observations.outcome == Outcome.GONE
        since = self.gone_since
        if not bool(gone.any()):
            since[observations.row] = np.nan
            return
        opens = starts_of_runs(observations.row)
        before = np.where(opens, ~np.isnan(since[observations.row]), np.roll(gone, 1))
        place = np.arange(len(gone))
        # The observation with which the run of equal ones started; one of an earlier call goes on if the first
        # observation does.
        began = np.maximum.accumulate(np.where(opens | (gone != before), place, 0))
        last = np.flatnonzero(ends_of_runs(observations.row))
        start = began[last]
        goes_on = opens[start] & before[start]
        rows = observations.row[last]
        since[rows] = np.where(gone[last], np.where(goes_on, since[rows], observations.time[start]), np.nan)

    def due_after(self, page: IntArray, interval: FloatArray | float) -> FloatArray:
        """``interval`` seconds after the last observation of each page; its discovery if there was none."""
        rows = self.rows(page)
        last = self.last_observed[rows]
        return np.where(np.isnan(last), self.pages.discovered[rows], last + interval)

    def urgency(self, page: IntArray, interval: FloatArray | float, now: float) -> FloatArray:
        """Time since the last observation in units of ``interval`` (seconds, > 0).

        Inf for a page that was never seen.
        """
        last = self.last_observed[self.rows(page)]
        return np.where(np.isnan(last), np.inf, np.maximum(now - last, 0.0) / interval)


class GapLog:
    """The gaps that visits closed, in the order of arrival. 17 bytes per observation, plus reserve for growth."""

    def __init__(self) -> None:
        self._gaps = GrowingColumns({"row": np.int64, "seconds": np.float64, "changed": np.bool_})

    def append(self, row: IntArray, seconds: FloatArray, changed: BoolArray) -> None:
        """Note observations that closed a gap, of each row in the order of time."""
        self._gaps.append(row=row, seconds=seconds, changed=changed)

    def histories(self, last_visits: LastVisits) -> tuple[IntArray, Histories]:
        """The row of each page by ascending id, and the histories in that order. O(observations log observations)."""
        by_id = np.argsort(last_visits.pages.id)
        n = len(by_id)
        rank = np.empty(n, dtype=np.int64)
        rank[by_id] = np.arange(n)
        row = rank[self._gaps["row"]]
        order = np.argsort(row, kind="stable")
        row, seconds, changed = row[order], self._gaps["seconds"][order], self._gaps["changed"][order]
        last = last_visits.last_observed[by_id]
        first = last - np.bincount(row, seconds, n)
        last_change = np.full(n, np.nan)
        found = Histories(last_visits.pages.id[by_id], offsets_of(row, n), seconds, changed, first, last, last_change)
        last_change[row[changed]] = found.observation_times()[changed]
        return by_id, found
