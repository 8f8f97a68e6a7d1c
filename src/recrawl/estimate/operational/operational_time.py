r"""Operational time: the clock of a page that runs fast when changes are likely.

The intensity of page i at time t is a product of its own rate and of what it shares with others,

    λ_i · s_c(t) · m(t − born_i) · w_h(hour of the week) · r(t − last detected change),

each factor piecewise constant (algorithms §5, §7). With operational time Λ(a, b) = ∫ₐᵇ s·m·w·r the page is an ordinary
Poisson clock of rate λ_i: wherever a formula says τ, put Λ. Factors that are not switched on are absent, and without
any of them operational time is wall time to the last bit.

The index of a page divides by the speed *now* (algorithms §7): a young page gathers risk fast, but a fresh copy of it
goes stale as fast again. So :meth:`OperationalTime.speed` is part of the bargain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from recrawl.estimate.operational.operational_tables import (
    CalendarTable,
    GapPieces,
    StepEvents,
    StepTable,
    WeekTable,
    cut,
)
from recrawl.model import AnyArray, FloatArray, Histories, IntArray
from recrawl.model.compiled import can_compile

_LONG_AGO = -1e15
"""Time of the last change of a page that was never found changed: long enough ago to have no effect."""
_BLOCK = 1 << 20
"""Gaps stretched at a time: bounds the memory of the steps between."""


@dataclass(frozen=True, slots=True)
class OperationalTime:
    """The clocks of n pages. Rows are positions: row i is row i of the histories it is used with."""

    cluster: IntArray
    """Cluster of each page, 0 … clusters − 1. Shape (n,)."""
    host: IntArray
    """Host of each *cluster*, 0 … hosts − 1. Shape (clusters,)."""
    born: FloatArray
    """When each page appeared; NaN where nobody knows. Shape (n,)."""
    calendar: CalendarTable | None = None
    """Shared intensity of each cluster."""
    age: StepTable | None = None
    week: WeekTable | None = None
    bursts: StepTable | None = None
    """By the time since the last detected change."""

    def __len__(self) -> int:
        return len(self.cluster)

    @classmethod
    def wall(cls, pages: int) -> OperationalTime:
        """Wall time: no factor at all, for n pages in one cluster.

        >>> OperationalTime.wall(2).elapsed(np.array([1]), np.array([5.0]), np.array([7.5])).tolist()
        [2.5]
        """
        return cls(np.zeros(pages, np.int64), np.zeros(1, np.int64), np.full(pages, np.nan))

    def elapsed(
        self, row: IntArray, start: FloatArray, end: FloatArray, last_change: FloatArray | None = None
    ) -> FloatArray:
        """Operational seconds that pass for page ``row[k]`` from ``start[k]`` to ``end[k]`` ≥ start[k].

        ``last_change[k]`` is the last observation *up to start[k]* that found a change, NaN if none did; it is only
        needed where bursts are switched on. Exact, and O(1) a gap, however long: no gap is taken apart into bins.
        """
        if self.week is None and self.bursts is None and can_compile():
            return self._elapsed_compiled(row, start, end)
        pieces = cut(start, end, self.steps(row, last_change))
        passed = self.passed(row[pieces.gap], pieces)
        if len(pieces) == len(row):
            return passed
        return np.bincount(pieces.gap, passed, len(row)).astype(np.float64)

    def _elapsed_compiled(self, row: IntArray, start: FloatArray, end: FloatArray) -> FloatArray:
        from recrawl.estimate.operational import (
            operational_kernels as kernels,  # numba is slow to import, and may be missing
        )

        out = np.empty(len(row))
        kernels.elapsed(row, start, end, self.cluster, self.born, *self.tables(), out)
        return out

    def tables(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float, float]:
        """Edges and factors of the ages, then the calendar, as kernels take them: empty ones where there are none."""
        age, calendar = self.age, self.calendar
        steps = (age.edges, age.factor) if age is not None else (np.empty(0), np.ones(2))
        if calendar is None:
            return *steps, np.empty((len(self.host), 0)), np.zeros((len(self.host), 1)), 0.0, 1.0
        return *steps, calendar.factor, calendar.passed, calendar.begin, calendar.width

    def speed(self, row: IntArray, at: FloatArray, last_change: FloatArray | None = None) -> FloatArray:
        """Operational seconds per second at ``at``: the product of all factors. What the index divides by."""
        cluster = self.cluster[row]
        out = np.ones(len(row))
        if self.calendar is not None:
            out *= self.calendar.factor_of(cluster, self.calendar.bin(at))
        if self.week is not None:
            out *= self.week.speed(self.host[cluster], at)
        for one in self.steps(row, last_change):
            out *= one.table.factor[one.table.step(one.origin, at)]
        return out

    def stretch(self, histories: Histories) -> Histories:
        """The same histories in operational time, for any estimator; row i is page i of both. O(gaps).

        The times of a stretched history are those of the page's own clock, which reads wall time at the first
        observation. Time elapsed since the last observation is therefore ``elapsed`` of the *original* ``last_visit``.
        """
        if len(histories) != len(self):
            msg = f"operational time has {len(self)} rows, the histories have {len(histories)}"
            raise ValueError(msg)
        if self.is_wall():
            return histories
        row, end = histories.row_of_gap(), histories.observation_times()
        before = detected_before(histories, end) if self.bursts is not None else None
        gaps = np.empty(len(row))
        for first in range(0, len(row), _BLOCK):
            block = slice(first, first + _BLOCK)
            known = None if before is None else before[block]
            gaps[block] = self.elapsed(row[block], end[block] - histories.gaps[block], end[block], known)
        return _retell(histories, gaps)

    def is_wall(self) -> bool:
        """Whether no factor is switched on."""
        return self.calendar is None and self.age is None and self.week is None and self.bursts is None

    def take(self, rows: AnyArray | slice) -> OperationalTime:
        """The clocks of the pages at these positions."""
        return replace(self, cluster=self.cluster[rows], born=self.born[rows])

    # -- for those who learn the factors ------------------------------------------------------

    def steps(self, row: IntArray, last_change: FloatArray | None = None) -> list[StepEvents]:
        """The tables that count from an event of the page, with that event: age first, then bursts."""
        found = []
        if self.age is not None:
            found.append(StepEvents(self.age, self.born[row]))
        if self.bursts is not None:
            known = np.full(len(row), np.nan) if last_change is None else last_change
            found.append(StepEvents(self.bursts, np.nan_to_num(known, nan=_LONG_AGO)))
        return found

    def passed(self, row: IntArray, pieces: GapPieces) -> FloatArray:
        """Operational seconds of each piece; ``row[k]`` is the page that piece k belongs to."""
        out = self.shared(row, pieces.start, pieces.end)
        tables = [table for table in (self.age, self.bursts) if table is not None]
        for table, step in zip(tables, pieces.step, strict=True):
            out *= table.factor[step]
        return out

    def shared(self, row: IntArray, start: FloatArray, end: FloatArray) -> FloatArray:
        """Seconds by the factors a page shares with its cluster and host alone."""
        cluster = self.cluster[row]
        if self.calendar is not None:
            return self.calendar.between(cluster, self.host[cluster], start, end, self.week)
        if self.week is not None:
            return self.week.between(self.host[cluster], start, end)
        return end - start


def detected_before(histories: Histories, observation_times: FloatArray) -> FloatArray:
    """For each gap, the last observation up to its start that found a change; NaN if none did. O(gaps)."""
    latest = np.where(histories.changed, observation_times, -np.inf)
    rows = np.flatnonzero(histories.counts())
    heads = histories.offsets[rows]
    # The observation that opens per gap is the one that closed the gap before it: shift by one, and forget at each
    # row's head.
    before = np.concatenate([[-np.inf], latest[:-1]]) if len(latest) else latest
    before[heads] = -np.inf
    place = np.where(np.isfinite(before), np.arange(len(before)), -1)
    place[heads] = np.where(place[heads] < 0, heads, place[heads])
    found = before[np.maximum.accumulate(place)] if len(before) else before
    return np.where(np.isfinite(found), found, np.nan)


def _retell(histories: Histories, gaps: FloatArray) -> Histories:
    """The histories with other gaps; the last observation and the last change follow from them."""
    told = replace(histories, gaps=gaps)
    rows = np.flatnonzero(histories.counts())
    last = histories.first_visit.copy()
    last[rows] += np.add.reduceat(gaps, histories.offsets[rows]) if len(rows) else gaps
    told = replace(told, last_visit=last)
    change = np.full(len(histories), np.nan)
    hit = np.flatnonzero(histories.changed)
    change[histories.row_of_gap()[hit]] = told.observation_times()[hit]
    return replace(told, last_change=change)
