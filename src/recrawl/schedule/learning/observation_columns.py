"""Observations as interval rules need them, in order, with their outcome and whether visits failed before them.

:class:`~recrawl.model.Histories` defines what counts as an observation. Histories have gaps and verdicts only; the
schedulers of today's crawlers also need to know whether the page was gone, and whether a failure reset its state.

The columns grow: append takes amortised constant time, and they are read as plain arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recrawl.model import ANSWERED, AnyArray, BoolArray, FloatArray, IntArray, Verdict, Visits
from recrawl.model.arrays import order_by, starts_of_runs


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
