r"""Operational time: the clock of a page that runs fast when changes are likely.

The intensity of page i at time t is a product of its own rate and of what it shares with others,

    λ_i · s_c(t) · m(t − born_i) · w_h(hour of the week) · r(t − last detected change),

each factor piecewise constant (algorithms §5, §7). With operational time Λ(a, b) = ∫ₐᵇ s·m·w·r the page is an ordinary
Poisson clock of rate λ_i: wherever a formula says τ, put Λ. Factors that are not switched on are absent, and without
any of them operational time is wall time to the last bit.

The index of a page divides by the speed *now* (algorithms §7): a young page gathers risk fast, but a fresh copy of it
goes stale as fast again. So :meth:`OperationalTime.speed` is part of the bargain.

The factors are tables: steps since an event, hours of the week, bins of the calendar.

Each is piecewise constant, so that time passes exactly: an integral is a difference of running totals, whatever the
length of the gap. Totals are only ever subtracted over whole bins; the ends of a gap are measured from the nearest
edge, so a gap of a microsecond keeps its digits beside a total of years.

Gaps are cut where a step starts: into pieces of time over which age and the time since the last change make no
difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from recrawl.model import AnyArray, FloatArray, Histories, IntArray
from recrawl.model.compiled import can_compile
from recrawl.time import DAY, HOUR, WEEK

HOURS = 168
"""Hours of a week, from Monday 00:00 UTC."""
_MONDAY = 4 * DAY
"""The epoch started on a Thursday: the first Monday came four days later."""


@dataclass(frozen=True, slots=True)
class StepTable:
    """How fast time passes by the time since some event: since the birth of a page, since its last change."""

    edges: FloatArray
    """Ascending seconds since the event. Shape (k,)."""
    factor: FloatArray
    """Before the first edge, between edges, after the last; then that of pages whose event is not known.

    Shape (k + 2,).
    """

    def __post_init__(self) -> None:
        if len(self.factor) != len(self.edges) + 2 or not bool((np.diff(self.edges) > 0).all()):
            msg = "steps need ascending edges and two factors more than edges"
            raise ValueError(msg)

    def step(self, origin: FloatArray, at: FloatArray) -> IntArray:
        """The step each page is on at ``at``; the last one, for good, where the origin is NaN or infinite."""
        known = np.isfinite(origin)
        since = at - np.where(known, origin, at)
        return np.where(known, np.searchsorted(self.edges, since, side="right"), len(self.edges) + 1)

    def next_edge(self, origin: FloatArray, step: IntArray) -> FloatArray:
        """When each page leaves its step; infinity on the last one."""
        return np.where(step < len(self.edges), origin + self.edges[np.minimum(step, len(self.edges) - 1)], np.inf)


@dataclass(frozen=True, slots=True)
class WeekTable:
    """How fast time passes by the hour of the week, for each host; every week takes a week in all."""

    hourly: FloatArray
    """Factors of mean 1. Shape (hosts, 168), from Monday 00:00 UTC."""
    passed: FloatArray = field(init=False)
    """Operational seconds passed since Monday at the start of each hour. Shape (hosts, 169)."""

    def __post_init__(self) -> None:
        if self.hourly.shape[1:] != (HOURS,) or not bool((self.hourly > 0).all()):
            msg = "a week needs 168 factors above 0"
            raise ValueError(msg)
        passed = np.zeros((len(self.hourly), HOURS + 1))
        np.cumsum(self.hourly * HOUR, axis=1, out=passed[:, 1:])
        object.__setattr__(self, "passed", passed)

    def between(self, host: IntArray, start: FloatArray, end: FloatArray) -> FloatArray:
        """Operational seconds from ``start`` to ``end``. O(1) each."""
        week_a, hour_a, rest_a = locate_hour(start)
        week_b, hour_b, rest_b = locate_hour(end)
        first, last = self.hourly[host, hour_a], self.hourly[host, hour_b]
        whole = (week_b - week_a) * self.passed[host, HOURS] + self.passed[host, hour_b] - self.passed[host, hour_a + 1]
        same = (week_a == week_b) & (hour_a == hour_b)
        return np.where(same, first * (end - start), first * (HOUR - rest_a) + whole + last * rest_b)

    def speed(self, host: IntArray, at: FloatArray) -> FloatArray:
        """The factor at ``at``."""
        _, hour, _ = locate_hour(at)
        return self.hourly[host, hour]


def locate_hour(t: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """The number of the week, the hour in it (0 … 167), and the seconds since that hour started."""
    since = t - _MONDAY
    week = np.floor(since / WEEK)
    into = since - week * WEEK
    hour = np.clip((into / HOUR).astype(np.int64), 0, HOURS - 1)
    return week, hour, into - hour * HOUR


@dataclass(frozen=True, slots=True)
class CalendarTable:
    """How fast time passes for each cluster of pages in each bin of the calendar; 1 before and after the bins."""

    begin: float
    """Where the first bin starts, seconds since the epoch."""
    width: float
    """Seconds of a bin."""
    factor: FloatArray
    """Shape (clusters, bins)."""
    passed: FloatArray
    """Operational seconds since ``begin`` at each edge, the rhythm of the week included. Shape (clusters, bins + 1)."""

    @classmethod
    def of(
        cls, begin: float, width: float, factor: FloatArray, host: IntArray, week: WeekTable | None
    ) -> CalendarTable:
        """The table with its running totals; ``host[c]`` is the host of cluster c. O(clusters · bins)."""
        passed = np.zeros((factor.shape[0], factor.shape[1] + 1))
        np.cumsum(factor * bin_lengths(begin, width, factor.shape[1], host, week), axis=1, out=passed[:, 1:])
        return cls(begin, width, factor, passed)

    def between(
        self, cluster: IntArray, host: IntArray, start: FloatArray, end: FloatArray, week: WeekTable | None
    ) -> FloatArray:
        """Operational seconds from ``start`` to ``end``. O(1) each."""
        if week is None and can_compile():
            from recrawl.estimate.operational import (
                operational_kernels as kernels,  # numba is slow to import, and may be missing
            )

            out = np.empty(len(cluster))
            kernels.between(cluster, start, end, self.factor, self.passed, self.begin, self.width, out)
            return out
        first, last = self.bin(start), self.bin(end)
        one = self.factor_of(cluster, first) * length(host, start, np.minimum(end, self.edge(first + 1)), week)
        crossing = np.flatnonzero(first != last)
        if len(crossing):
            c, a, b = cluster[crossing], first[crossing], last[crossing]
            rest = length(host[crossing], self.edge(b), end[crossing], week)
            one[crossing] += self.passed[c, b] - self.passed[c, a + 1] + self.factor_of(c, b) * rest
        return one

    def bin(self, t: FloatArray) -> IntArray:
        """The bin of each time: −1 before the first, the number of bins after the last."""
        place = np.floor((t - self.begin) / self.width)
        return np.clip(place, -1, self.factor.shape[1]).astype(np.int64)

    def edge(self, number: IntArray) -> FloatArray:
        """Where bins start; infinity after the last one that is left by time."""
        return np.where(number > self.factor.shape[1], np.inf, self.begin + number * self.width)

    def factor_of(self, cluster: IntArray, number: IntArray) -> FloatArray:
        """The factor in each bin, 1 outside the table."""
        bins = self.factor.shape[1]
        inside = (number >= 0) & (number < bins)
        if not bins:
            return np.ones(len(number))
        return np.where(inside, self.factor[cluster, np.clip(number, 0, bins - 1)], 1.0)


def bin_lengths(begin: float, width: float, bins: int, host: IntArray, week: WeekTable | None) -> FloatArray:
    """How long each bin takes for each cluster by the rhythm of its host's week. Shape (clusters or 1, bins)."""
    if week is None:
        return np.full((1, bins), width)
    edges = begin + width * np.arange(bins + 1)
    grid = np.broadcast_to(host[:, None], (len(host), bins))
    starts, ends = (np.broadcast_to(part, grid.shape) for part in (edges[:-1], edges[1:]))
    return week.between(grid, starts, ends)


def length(host: IntArray, start: FloatArray, end: FloatArray, week: WeekTable | None) -> FloatArray:
    """How long it is from start to end: in seconds, or in those of the week of each host."""
    return end - start if week is None else week.between(host, start, end)


class StepEvents(NamedTuple):
    """A table of steps and the event each page counts from; NaN or infinite where nobody knows it."""

    table: StepTable
    origin: FloatArray


@dataclass(frozen=True, slots=True)
class GapPieces:
    """Pieces of gaps, as columns. A gap that crosses no edge is one piece."""

    gap: IntArray
    """Which gap each piece is cut from."""
    start: FloatArray
    end: FloatArray
    step: tuple[IntArray, ...]
    """For each table, the step the piece lies on."""

    def __len__(self) -> int:
        return len(self.gap)


def cut(start: FloatArray, end: FloatArray, steps: Sequence[StepEvents]) -> GapPieces:
    """Cut gaps at the edges of all tables: O(pieces), in at most one round more than there are edges.

    >>> week = StepTable(np.array([7.0]), np.array([2.0, 1.0, 1.0]))
    >>> pieces = cut(np.array([5.0, 8.0]), np.array([9.0, 9.0]), [StepEvents(week, np.array([0.0, 0.0]))])
    >>> pieces.gap.tolist(), pieces.start.tolist(), pieces.step[0].tolist()
    ([0, 1, 0], [5.0, 8.0, 7.0], [0, 1, 1])
    """
    gap = np.arange(len(start))
    on = [one.table.step(one.origin, start) for one in steps]
    done: list[tuple[IntArray, FloatArray, FloatArray, list[IntArray]]] = []
    while True:
        edges = [one.table.next_edge(one.origin[gap], step) for one, step in zip(steps, on, strict=True)]
        stop = end[gap]
        for edge in edges:
            stop = np.minimum(stop, edge)
        stop = np.maximum(stop, start)  # an edge may round to just before the moment it was to follow
        done.append((gap, start, stop, list(on)))
        left = np.flatnonzero(stop < end[gap])
        if not len(left):
            break
        on = [step[left] + (edge[left] <= stop[left]) for step, edge in zip(on, edges, strict=True)]
        gap, start = gap[left], stop[left]
    if len(done) == 1:
        return GapPieces(gap, start, stop, tuple(on))
    whole, starts, stops = (np.concatenate([part[k] for part in done]) for k in range(3))
    step = tuple(np.concatenate([part[3][k] for part in done]) for k in range(len(steps)))
    return GapPieces(whole.astype(np.int64), starts, stops, step)


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
