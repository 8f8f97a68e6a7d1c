"""Collections of pages with known changes, and the visits with verdicts that a schedule of observations would record.

The truth of a page (:class:`PageTruth`) is when it appeared, when it disappeared for good, and when it changed. A
schedule gives the observation times; an observation tells whether the page changed since the one before. So estimators
can be tested on histories whose truth is known.

A :class:`Collection` is made from a change log, such as a repository of a site's sources. What counts as a change is
decided here, once for all experiments (algorithms §7): bulk edits do not count, and changes that follow each other
within an hour are one change, at the first time. A page that existed at the start of the record, or came with a bulk
import, has an unknown age.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from recrawl.assess.truth_scores import PageLifetimes
from recrawl.model import AnyArray, BoolArray, ChangeKind, FloatArray, IntArray, Verdict, Visits
from recrawl.model.arrays import offsets_of, order_by, starts_of_runs
from recrawl.simulate.virtual_web import EventTimes, VirtualWeb
from recrawl.time import DAY, HOUR


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


CHAIN = HOUR
"""Changes closer to the one before than this belong to it, seconds."""


@dataclass(frozen=True, slots=True)
class Collection:
    """The pages of one site and their true histories. The id of a page is its place in ``urls``."""

    name: str
    urls: tuple[str, ...]
    truth: PageLifetimes
    """One row a life, as in :class:`recrawl.assess.truth_scores.PageLifetimes`."""
    born: FloatArray
    """When each page first appeared, seconds since the epoch; NaN if not recorded."""
    start: float
    """When the record starts, seconds since the epoch."""
    end: float
    """When it ends."""
    links: FloatArray = field(default_factory=lambda: np.empty(0))
    """New links of each change of the truth; empty if not counted."""

    def __len__(self) -> int:
        return len(self.urls)

    def watched(self) -> PageTruth:
        """The same as visitors see it who do not know of lives.

        From the first birth to the last death, one row per page.

        Pages that were never there are born at infinity.
        """
        lifetimes = self.truth
        born, died = np.full(len(self), np.inf), np.full(len(self), -np.inf)
        np.minimum.at(born, lifetimes.page, lifetimes.birth)
        np.maximum.at(died, lifetimes.page, lifetimes.death)
        changes = EventTimes(offsets_of(lifetimes.page[lifetimes.row_of_change()], len(self)), lifetimes.times)
        return PageTruth(born, died, changes, self.start, self.end)

    def changes_between(self, page: IntArray, start: FloatArray, end: FloatArray) -> IntArray:
        """How many changes each page had in (start, end]. O((changes + pages) log changes)."""
        changes = EventTimes(offsets_of(self.truth.page[self.truth.row_of_change()], len(self)), self.truth.times)
        return changes.until(page, end) - changes.until(page, start)


@dataclass(frozen=True, slots=True)
class Events:
    """What a change log says, columns of equal length in the order it happened to each page."""

    page: IntArray
    """Place of the page in the list of URLs."""
    time: FloatArray
    """Seconds since the epoch."""
    added: BoolArray
    """The page appeared, for the first time or again."""
    removed: BoolArray
    """The page went away. An event that is neither is a change."""
    bulk: BoolArray
    """One of very many at once: an import, a mechanical edit."""
    links: FloatArray | None = None
    """Links that the page did not have before; ``None`` if not counted."""

    def in_order(self) -> Events:
        """Sorted by page and time; what happened at one moment stays in the given order."""
        order = order_by(self.page, self.time)
        if order is None:
            return self
        return Events(
            self.page[order],
            self.time[order],
            self.added[order],
            self.removed[order],
            self.bulk[order],
            None if self.links is None else self.links[order],
        )


def collect(name: str, urls: tuple[str, ...], events: Events, *, bulk: bool = False) -> Collection:
    """A collection from a change log; with ``bulk`` also bulk edits count as changes.

    A page's first event is its birth, whatever it is called. Pages without events are left in, without a life.
    O(events log events).

    Raises:
        ValueError: there are no events.
    """
    if not len(events.page):
        msg = f"nothing ever happened in {name!r}"
        raise ValueError(msg)
    events = events.in_order()
    page, time = events.page, events.time
    first = starts_of_runs(page)
    birth = events.added | (first & ~events.removed)
    turns = _turns(page, time, birth, events.removed)
    changes = ~(birth | events.removed)
    if not bulk:
        changes &= ~events.bulk
    counted = np.flatnonzero(changes)
    changes[changes] = _heads_of_chains(page[changes], time[changes])
    ids, start = np.arange(len(urls), dtype=np.int64), float(time.min())
    truth = PageLifetimes.from_lifetimes(
        ids,
        time[turns],
        offsets_of(page[turns], len(ids)),
        time[changes],
        offsets_of(page[changes], len(ids)),
    )
    born = np.full(len(ids), np.nan)
    seen = first & birth & ~events.bulk & (time > start)
    born[page[seen]] = time[seen]
    links = np.empty(0)
    if events.links is not None and len(counted):
        heads = np.flatnonzero(changes)
        sums = np.add.reduceat(events.links[counted], np.searchsorted(counted, heads)).astype(np.float64)
        links = _values_at(truth, page[heads], time[heads], sums)
    return Collection(name, urls, truth, born, start, float(time.max()), links)


def _turns(page: IntArray, time: FloatArray, birth: BoolArray, removed: BoolArray) -> BoolArray:
    """Events at which a life starts or ends: births and deaths in turn on each page, each life of some length."""
    turn = np.flatnonzero(birth | removed)
    # Of several births in a row only the first one counts, likewise of deaths; a death without a life does not.
    turn = turn[starts_of_runs(page[turn], birth[turn]) & ~(starts_of_runs(page[turn]) & ~birth[turn])]
    instant = np.zeros(len(turn), dtype=np.bool_)
    instant[:-1] = birth[turn[:-1]] & (page[turn[1:]] == page[turn[:-1]]) & (time[turn[1:]] == time[turn[:-1]])
    instant[1:] |= instant[:-1]
    turns = np.zeros(len(page), dtype=np.bool_)
    turns[turn[~instant]] = True
    return turns


def _heads_of_chains(page: IntArray, time: FloatArray) -> BoolArray:
    """Where a change is not closer than :data:`CHAIN` to the one before it on its page."""
    close = np.zeros(len(page), dtype=np.bool_)
    close[1:] = (page[1:] == page[:-1]) & (np.diff(time) < CHAIN)
    return ~close


def _values_at(truth: PageLifetimes, page: IntArray, time: FloatArray, value: FloatArray) -> FloatArray:
    """The value of each change of the truth, from those given by page and time: all of its changes and maybe more."""
    # complex numbers sort by their real part, then by the other
    wanted = truth.page[truth.row_of_change()] + 1j * truth.times
    return value[np.searchsorted(page + 1j * time, wanted)]
