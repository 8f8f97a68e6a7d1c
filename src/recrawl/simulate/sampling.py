"""What visits would have seen: exact change times and a schedule of visits in, visits with verdicts out.

The truth of a page is when it appeared, when it went for good, and every moment it changed. A schedule says when to
observation; an observation says whether the page changed since the observation before it, and no more. So any estimator
can be tried on histories of which everything is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from recrawl.model import AnyArray, ChangeKind, FloatArray, IntArray, Verdict, Visits
from recrawl.simulate.event_times import EventTimes
from recrawl.simulate.virtual_web import VirtualWeb
from recrawl.time import DAY


@dataclass(frozen=True, slots=True)
class PageTruth:
    """When n pages were there and when they changed."""

    born: FloatArray
    """When each page appeared, seconds since the epoch."""
    died: FloatArray
    """When it went for good; infinity if it is still there."""
    changes: EventTimes
    """Every change, one row per page."""
    start: float
    """Visits start here ..."""
    end: float
    """... and end here."""

    def __len__(self) -> int:
        return len(self.born)

    @classmethod
    def of_web(cls, web: VirtualWeb) -> PageTruth:
        """The truth of a virtual web."""
        return cls(web.born, web.died, web.changes, web.start, web.end)

    def merged(self, distance: float) -> PageTruth:
        """Chains of changes closer than ``distance`` to the one before count as one, at the time of the last."""
        row, times = self.changes.row_of_event(), self.changes.times
        last = np.ones(len(times), dtype=np.bool_)
        last[:-1] = (row[1:] != row[:-1]) | (times[1:] - times[:-1] >= distance)
        return PageTruth(self.born, self.died, self.changes.where(last), self.start, self.end)

    def take(self, rows: AnyArray) -> PageTruth:
        """The pages at these positions."""
        rows = np.arange(len(self))[rows]
        return PageTruth(self.born[rows], self.died[rows], self.changes.take(rows), self.start, self.end)


class VisitSchedule(Protocol):
    """When to observe pages."""

    def times(self, truth: PageTruth, rng: np.random.Generator) -> EventTimes:
        """Times of the observations of each page, while it is there and the visits last."""
        ...


@dataclass(frozen=True, slots=True)
class RegularVisits:
    """Every page at the same interval, each with its own phase: the observations of one day are at different pages."""

    interval: float = 7 * DAY

    def times(self, truth: PageTruth, rng: np.random.Generator) -> EventTimes:
        """O(observations)."""
        first, last = _span(truth)
        first = first + rng.random(len(truth)) * self.interval
        counts = np.maximum(np.ceil((last - first) / self.interval), 0).astype(np.int64)
        row = np.repeat(np.arange(len(truth)), counts)
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        return EventTimes.of(row, first[row] + place * self.interval, len(truth))


@dataclass(frozen=True, slots=True)
class IrregularVisits:
    """Like an archive's: log-normal gaps, some of hours, some of years."""

    median: float = 10 * DAY
    spread: float = 1.0
    """Standard deviation of the logarithm of a gap."""

    def times(self, truth: PageTruth, rng: np.random.Generator) -> EventTimes:
        """O(observations), in as many rounds as a page has observations."""
        return _walk(truth, lambda row, _: self.median * np.exp(self.spread * rng.standard_normal(len(row))))


@dataclass(frozen=True, slots=True)
class AdaptiveVisits:
    """Sooner after a change, later after none: what most crawlers in use do."""

    first: float = 7 * DAY
    """Interval before anything is known of a page."""
    sooner: float = 0.8
    later: float = 1.4
    shortest: float = DAY
    longest: float = 180 * DAY
    jitter: float = 0.1
    """Standard deviation of the logarithm of how far an observation comes from its due time."""

    def times(self, truth: PageTruth, rng: np.random.Generator) -> EventTimes:
        """O(observations · log changes), in as many rounds as a page has observations."""
        interval = np.full(len(truth), self.first)
        seen = np.full(len(truth), -1, dtype=np.int64)

        def gap(row: IntArray, now: FloatArray) -> FloatArray:
            version = truth.changes.until(row, now)
            known = seen[row] >= 0
            factor = np.where(version > seen[row], self.sooner, self.later)
            adapted = np.clip(interval[row] * factor, self.shortest, self.longest)
            interval[row] = np.where(known, adapted, interval[row])
            seen[row] = version
            return interval[row] * np.exp(self.jitter * rng.standard_normal(len(row)))

        return _walk(truth, gap)


def sample(truth: PageTruth, schedule: VisitSchedule, rng: np.random.Generator) -> Visits:
    """The visits of a schedule, with verdicts; page i of the visits is row i of the truth.

    The first visit to a page says nothing about change; each later one whether there was a change since the one before.
    O(visits · log changes).
    """
    observations = schedule.times(truth, rng)
    row = observations.row_of_event()
    version = truth.changes.until(row, observations.times)
    first = np.diff(row, prepend=-1) != 0
    changed = np.diff(version, prepend=0) > 0
    verdict = np.where(first, Verdict.UNKNOWN, np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED))
    kinds = np.where(changed & ~first, ChangeKind.TEXT, ChangeKind.NONE)
    return Visits.of(row, observations.times, verdict=verdict, kinds=kinds)


class _Gap(Protocol):
    def __call__(self, row: IntArray, now: FloatArray, /) -> FloatArray: ...


def _span(truth: PageTruth) -> tuple[FloatArray, FloatArray]:
    """From when to when each page can be observed."""
    return np.maximum(truth.born, truth.start), np.minimum(truth.died, truth.end)


def _walk(truth: PageTruth, gap: _Gap) -> EventTimes:
    """Observations that follow each other: each page is first seen when it is there, then after the gap it is given."""
    now, last = _span(truth)
    row = np.flatnonzero(now < last)
    now = now[row]
    rows, times = [np.empty(0, np.int64)], [np.empty(0)]
    while len(row):
        rows.append(row)
        times.append(now)
        now = now + gap(row, now)
        there = now < last[row]
        row, now = row[there], now[there]
    return EventTimes.of(np.concatenate(rows), np.concatenate(times), len(truth))
