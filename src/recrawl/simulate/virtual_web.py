"""Virtual webs: change processes, pages, links and their changes, known exactly at all times.

Change processes draw change times of many pages from their rates, as one ragged array (:class:`EventTimes`). Every
process keeps the mean: a page of rate λ changes λ·T times in a span T on average (``WholeGapProcess``, which
rounds, documents its deviation). They differ in how the changes cluster.

Rules of a virtual web:

- A page exists in one or more intervals [born, died).
- A page *changes* at known times while it exists. Its version at t is the number of changes up to t; a reappearance
  counts as a change, the first birth does not.
- A link is on its page in [added, removed). Links appear and disappear only when their page is born or changes, so a
  version determines the links (``unexplained_links`` counts exceptions).
- Time is an argument; there is no clock.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from recrawl.model import AnyArray, BoolArray, ByteArray, FloatArray, IntArray
from recrawl.model.arrays import offsets_of, order_by
from recrawl.time import DAY, HOUR, WEEK


@dataclass(frozen=True, slots=True)
class EventTimes:
    """Ascending times for every row: row i owns ``times[offsets[i]:offsets[i + 1]]``.

    >>> events = EventTimes.of([1, 0, 1], [5.0, 2.0, 3.0], rows=3)
    >>> events.row(1).tolist(), events.until([0, 1, 2], 4.0).tolist()
    ([3.0, 5.0], [1, 1, 0])
    """

    offsets: IntArray
    times: FloatArray

    @classmethod
    def of(cls, row: npt.ArrayLike, time: npt.ArrayLike, rows: int) -> EventTimes:
        """From events in any order. O(n) if they are sorted by row and time, else O(n log n)."""
        row = np.asarray(row, dtype=np.int64)
        time = np.asarray(time, dtype=np.float64)
        order = order_by(row, time) if len(row) else None
        if order is not None:
            row, time = row[order], time[order]
        return cls(offsets_of(row, rows), time)

    @classmethod
    def concatenate(cls, parts: list[EventTimes]) -> EventTimes:
        """The rows of all parts, one part after the other."""
        counts = np.concatenate([np.zeros(1, np.int64), *(part.counts() for part in parts)])
        return cls(np.cumsum(counts), np.concatenate([np.empty(0), *(part.times for part in parts)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def counts(self) -> IntArray:
        """Number of events of each row."""
        return np.diff(self.offsets)

    def row_of_event(self) -> IntArray:
        """The row of each event."""
        return np.repeat(np.arange(len(self)), self.counts())

    def row(self, row: int) -> FloatArray:
        """The times of one row, not copied."""
        return self.times[self.offsets[row] : self.offsets[row + 1]]

    def where(self, keep: AnyArray) -> EventTimes:
        """Only the events where ``keep`` is true; the rows stay."""
        return EventTimes(offsets_of(self.row_of_event()[keep], len(self)), self.times[keep])

    def take(self, rows: AnyArray) -> EventTimes:
        """The rows at these positions, in this order. O(rows + events taken).

        >>> EventTimes.of([1, 0, 1], [5.0, 2.0, 3.0], rows=2).take(np.array([1])).times.tolist()
        [3.0, 5.0]
        """
        counts = self.counts()[rows]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        source = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][rows] - offsets[:-1], counts)
        return EventTimes(offsets, self.times[source])

    def until(self, row: npt.ArrayLike, t: npt.ArrayLike) -> IntArray:
        """How many events of each ``row`` happened at or before its ``t``.

        A binary search in all rows at once: O(m log k) for m questions and rows of at most k events.
        """
        rows, t = np.broadcast_arrays(np.asarray(row, dtype=np.int64), np.asarray(t, dtype=np.float64))
        first = self.offsets[rows]
        low, high = first.copy(), self.offsets[rows + 1]
        last = max(len(self.times) - 1, 0)
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high) // 2
            before = (low < high) & (self.times[np.minimum(middle, last)] <= t)
            low = np.where(before, middle + 1, low)
            high = np.where(before, high, middle)
        return np.asarray(low - first)

    def last_until(self, row: npt.ArrayLike, t: npt.ArrayLike) -> FloatArray:
        """When the last event of each ``row`` at or before its ``t`` happened; NaN if none did. O(m log k)."""
        count = self.until(row, t)
        found = count > 0
        out = np.full(count.shape, np.nan)
        place = self.offsets[np.broadcast_to(np.asarray(row, dtype=np.int64), count.shape)] + count - 1
        out[found] = self.times[place[found]]
        return out


_MONDAY = 4 * DAY
"""The epoch started on a Thursday: the first Monday came four days later."""
_HOURS_A_WEEK = 168


class ChangeProcess(Protocol):
    """How a page of a given rate changes."""

    def times(self, rate: FloatArray, start: float, end: float, rng: np.random.Generator) -> EventTimes:
        """Change times in (start, end) for each rate (per second)."""
        ...


@dataclass(frozen=True, slots=True)
class PoissonProcess:
    """Changes that know nothing of each other: exponential gaps of mean 1/λ. O(n log n) for n changes."""

    def times(self, rate: FloatArray, start: float, end: float, rng: np.random.Generator) -> EventTimes:
        """Change times in (start, end): a Poisson number of uniform points."""
        counts = rng.poisson(rate * (end - start))
        rows = np.repeat(np.arange(len(rate)), counts)
        return EventTimes.of(rows, rng.uniform(start, end, len(rows)), len(rate))


@dataclass(frozen=True, slots=True)
class RhythmicProcess:
    """A Poisson process in operational time: hours and days of the week run fast or slow, in UTC.

    With intensity λ·m(t), m of period one week and mean 1, the changes are those of a Poisson process of
    rate λ in operational time M(t) = ∫ m, taken back to calendar time. M is piecewise linear, so the
    inverse is exact.
    """

    hourly: tuple[float, ...]
    """Weights m of the 168 hours of a week from Monday 00:00 UTC; only their proportions count."""

    def __post_init__(self) -> None:
        if len(self.hourly) != _HOURS_A_WEEK or min(self.hourly) < 0 or not sum(self.hourly) > 0:
            msg = "a rhythm needs 168 weights, none negative, not all zero"
            raise ValueError(msg)

    @classmethod
    def working_hours(
        cls, *, night: float = 0.1, weekend: float = 0.2, opens: int = 8, closes: int = 18
    ) -> RhythmicProcess:
        """Full speed in working hours; ``night`` and ``weekend`` are the fractions of it left at other times.

        >>> law = RhythmicProcess.working_hours()
        >>> law.hourly[12], law.hourly[2], round(law.hourly[5 * 24 + 12], 3)
        (1.0, 0.1, 0.2)
        """
        hours = np.arange(_HOURS_A_WEEK)
        busy = np.where((hours % 24 >= opens) & (hours % 24 < closes), 1.0, night)
        return cls(tuple((busy * np.where(hours < 5 * 24, 1.0, weekend)).tolist()))

    def operational(self, t: FloatArray | float) -> FloatArray:
        """Operational time M(t), in seconds: it passes a week when the calendar does."""
        since = np.asarray(t, dtype=np.float64) - _MONDAY
        weeks = np.floor(since / WEEK) * WEEK
        return np.asarray(weeks + np.interp(since - weeks, self._hours(), self._passed()))

    def calendar(self, operational: FloatArray | float) -> FloatArray:
        """The time at which ``operational`` time has passed: the inverse of ``operational``."""
        passed = np.asarray(operational, dtype=np.float64)
        weeks = np.floor(passed / WEEK) * WEEK
        return np.asarray(weeks + np.interp(passed - weeks, self._passed(), self._hours()) + _MONDAY)

    def times(self, rate: FloatArray, start: float, end: float, rng: np.random.Generator) -> EventTimes:
        """Change times in (start, end). O(n log n) for n changes."""
        first, last = float(self.operational(start)), float(self.operational(end))
        steady = PoissonProcess().times(rate, first, last, rng)
        return EventTimes(steady.offsets, np.clip(self.calendar(steady.times), start, end))

    def _hours(self) -> FloatArray:
        return np.arange(_HOURS_A_WEEK + 1, dtype=np.float64) * HOUR

    def _passed(self) -> FloatArray:
        passed = np.concatenate([[0.0], np.cumsum(self.hourly)])
        return np.asarray(passed * (WEEK / passed[-1]))


@dataclass(frozen=True, slots=True)
class BurstProcess:
    """Clusters: a first change, then more in quick succession (a Bartlett-Lewis process).

    Clusters start as a Poisson process of rate λ/size, hold a geometric number of changes with mean
    ``size``, and their changes follow each other at exponential distances of mean ``spacing``.
    """

    size: float = 4.0
    spacing: float = HOUR
    """Mean seconds from one change of a burst to the next."""

    def __post_init__(self) -> None:
        if not (self.size >= 1 and self.spacing > 0):
            msg = "a burst holds at least one change, and its spacing is positive"
            raise ValueError(msg)

    def times(self, rate: FloatArray, start: float, end: float, rng: np.random.Generator) -> EventTimes:
        """Change times in (start, end). O(n log n) for n changes.

        Bursts that started earlier reach in: the process runs from 40 mean burst lengths before ``start``.
        """
        early = start - 40 * self.size * self.spacing
        begins = PoissonProcess().times(rate / self.size, early, end, rng)
        members = rng.geometric(1.0 / self.size, len(begins.times))
        burst = np.repeat(np.arange(len(members)), members)
        steps = rng.exponential(self.spacing, len(burst))
        first = np.cumsum(members) - members
        steps[first] = 0.0
        times = begins.times[burst] + _running_sum(steps, first, members)
        inside = (times > start) & (times < end)
        return EventTimes.of(begins.row_of_event()[burst][inside], times[inside], len(rate))


@dataclass(frozen=True, slots=True)
class WholeGapProcess:
    """Whole numbers of seconds between changes: gap = max(1, ⌊Exp(λ)⌋), as SHARC's tables were made.

    The mean gap is (1 − e^{−λ}) + e^{−λ}/(1 − e^{−λ}) seconds, not 1/λ: hot pages change a little more often.
    """

    def times(self, rate: FloatArray, start: float, end: float, rng: np.random.Generator) -> EventTimes:
        """Change times in (start, end). O(n) for n changes, in few rounds of ever fewer pages."""
        rows, times = [np.empty(0, np.int64)], [np.empty(0)]
        active = np.flatnonzero(rate > 0)
        reached = np.full(len(active), start)
        while len(active):
            expected = (end - reached) * np.minimum(rate[active], 1.0)
            count = (expected + 4 * np.sqrt(expected) + 4).astype(np.int64)
            first = np.cumsum(count) - count
            # Beyond a gap that already leaves the span nothing is needed: the bound keeps sums finite.
            scale = np.repeat(1.0 / rate[active], count)
            gaps = np.minimum(np.maximum(np.floor(rng.standard_exponential(len(scale)) * scale), 1.0), end - start + 1)
            at = np.repeat(reached, count) + _running_sum(gaps, first, count)
            inside = at < end
            rows.append(np.repeat(active, count)[inside])
            times.append(at[inside])
            reached = at[first + count - 1]
            active, reached = active[reached < end], reached[reached < end]
        return EventTimes.of(np.concatenate(rows), np.concatenate(times), len(rate))


def _running_sum(values: FloatArray, first: IntArray, count: IntArray) -> FloatArray:
    """Cumulative sums that start over at each index in ``first``."""
    total = np.cumsum(values)
    before = total[first] - values[first] if len(first) else np.empty(0)
    return total - np.repeat(before, count)


class PageKind(enum.IntEnum):
    """What a page serves."""

    HTML = 0
    RDF = 1
    """A thing described in RDF, and in HTML for people."""
    JSON = 2
    CSV = 3


class VirtualPage(NamedTuple):
    """One page at one moment."""

    alive: bool
    born: bool
    """It has been there at some time up to now."""
    version: int
    modified: float
    """When it took its present form: its last change, or its birth."""


@dataclass(frozen=True, slots=True)
class WebLinks:
    """Links of all pages as columns, by source page, then target, then time."""

    source: IntArray
    target: IntArray
    added: FloatArray
    removed: FloatArray
    """Infinity where the link stays."""
    offsets: IntArray
    """Page p owns rows ``offsets[p]:offsets[p + 1]``."""

    @classmethod
    def of(
        cls,
        source: npt.ArrayLike,
        target: npt.ArrayLike,
        added: npt.ArrayLike,
        removed: npt.ArrayLike,
        *,
        pages: int,
    ) -> WebLinks:
        """Columns from rows in any order. O(n log n)."""
        source, target = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
        added, removed = (np.broadcast_to(np.asarray(c, dtype=np.float64), source.shape) for c in (added, removed))
        order = np.lexsort((added, target, source))
        source = source[order]
        offsets = np.searchsorted(source, np.arange(pages + 1))
        return cls(source, target[order], added[order], removed[order], offsets)

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class VirtualWeb:
    """The whole truth about a web, as columns with one row per page. Built by ``sites`` or from recordings."""

    hosts: tuple[str, ...]
    host: IntArray
    """Index into ``hosts`` of each page."""
    path: Sequence[str]
    """Path of each page on its host, beginning with a slash; unique on the host."""
    title: Sequence[str]
    kind: ByteArray
    """A :class:`PageKind` for each page."""
    rate: FloatArray
    """True λ of each page, changes per second; NaN if not known (recorded pages)."""
    lifetimes: EventTimes
    """Births and deaths of each page in turn: born, died, born, ..."""
    changes: EventTimes
    links: WebLinks
    start: float
    """The truth is complete from here, seconds since the epoch ..."""
    end: float
    """... to here. Afterwards the web stands still."""
    born: FloatArray = field(init=False)
    """First birth of each page."""
    died: FloatArray = field(init=False)
    """Last death of each page; infinity while it lives."""

    def __post_init__(self) -> None:
        for name in ("path", "title", "kind", "rate", "lifetimes", "changes"):
            if len(getattr(self, name)) != len(self.host):
                msg = f"column {name!r} has {len(getattr(self, name))} rows, host has {len(self.host)}"
                raise ValueError(msg)
        counts = self.lifetimes.counts()
        if not bool((counts > 0).all()):
            msg = "every page needs a birth"
            raise ValueError(msg)
        object.__setattr__(self, "born", self.lifetimes.times[self.lifetimes.offsets[:-1]])
        ends = self.lifetimes.times[self.lifetimes.offsets[1:] - 1]
        object.__setattr__(self, "died", np.where(counts % 2 == 0, ends, np.inf))

    def __len__(self) -> int:
        return len(self.host)

    # -- many pages at once -------------------------------------------------------------------

    def version(self, page: npt.ArrayLike, t: npt.ArrayLike) -> IntArray:
        """Number of changes of each page up to t. O(m log k) for m questions, k changes per page."""
        return self.changes.until(page, t)

    def alive(self, page: npt.ArrayLike, t: npt.ArrayLike) -> BoolArray:
        """Whether each page is there at t. O(m log l) for l lives."""
        return np.asarray(self.lifetimes.until(page, t) % 2 == 1)

    def last_change(self, page: npt.ArrayLike, t: npt.ArrayLike) -> FloatArray:
        """When each page last changed up to t; NaN if it never did."""
        return self.changes.last_until(page, t)

    def modified(self, page: npt.ArrayLike, t: npt.ArrayLike) -> FloatArray:
        """When each page took the form it has at t: its last change or its birth."""
        change = self.last_change(page, t)
        return np.where(np.isnan(change), self.born[np.asarray(page)], change)

    def changes_between(self, a: npt.ArrayLike, b: npt.ArrayLike) -> IntArray:
        """Number of changes of every page in (a, b]; a and b are times, or a time for each page. O(n log k)."""
        every = np.arange(len(self))
        return self.version(every, b) - self.version(every, a)

    def links_between(self, t: float) -> tuple[IntArray, IntArray]:
        """The link graph at t: source and target of every link on a living page. O(links)."""
        there = (self.links.added <= t) & (t < self.links.removed)
        there &= self.alive(np.arange(len(self)), t)[self.links.source]
        return self.links.source[there], self.links.target[there]

    def unexplained_links(self) -> int:
        """How many link times are neither a birth nor a change of the page that carries the link."""
        links = self.links
        source = np.concatenate([links.source, links.source])
        times = np.concatenate([links.added, links.removed])
        bounded = np.isfinite(times)
        source, times = source[bounded], times[bounded]
        known = self.lifetimes.last_until(source, times) == times
        known |= self.changes.last_until(source, times) == times
        return int((~known).sum())

    # -- one page -----------------------------------------------------------------------------

    def state(self, page: int, t: float) -> VirtualPage:
        """One page at t, for a server that is asked for one at a time. O(log k)."""
        lifetimes = self.lifetimes.row(page)
        lived = int(lifetimes.searchsorted(t, "right"))
        changes = self.changes.row(page)
        version = int(changes.searchsorted(t, "right"))
        modified = float(changes[version - 1]) if version else float(lifetimes[0])
        return VirtualPage(lived % 2 == 1, lived > 0, version, modified)

    def links_at(self, page: int, t: float) -> IntArray:
        """Targets of the links on one page at t, ascending. O(links the page ever had)."""
        rows = slice(self.links.offsets[page], self.links.offsets[page + 1])
        there = (self.links.added[rows] <= t) & (t < self.links.removed[rows])
        return self.links.target[rows][there]

    def url(self, page: int, port: int | None = None) -> str:
        """The http URL of a page, with a port if one is given."""
        suffix = f":{port}" if port else ""
        return f"http://{self.hosts[self.host[page]]}{suffix}{self.path[page]}"


def join(webs: Sequence[VirtualWeb], *, link_homes: bool = True) -> VirtualWeb:
    """Several webs as one, page indices in order; the first page of each links to that of the next.

    The links between home pages are there from the birth of the page that carries them.
    """
    first = np.cumsum([0, *(len(web) for web in webs)])[:-1]
    host_shift = np.cumsum([0, *(len(web.hosts) for web in webs)])[:-1]
    columns = {
        name: [np.asarray(getattr(web.links, name)) for web in webs]
        for name in ("source", "target", "added", "removed")
    }
    for name in ("source", "target"):
        columns[name] = [column + shift for column, shift in zip(columns[name], first, strict=True)]
    if link_homes and len(webs) > 1:
        columns["source"].append(first)
        columns["target"].append(np.roll(first, -1))
        columns["added"].append(np.array([web.born[0] for web in webs]))
        columns["removed"].append(np.full(len(webs), np.inf))
    pages = sum(len(web) for web in webs)
    return VirtualWeb(
        hosts=tuple(name for web in webs for name in web.hosts),
        host=np.concatenate([web.host + shift for web, shift in zip(webs, host_shift, strict=True)]),
        path=[path for web in webs for path in web.path],
        title=[title for web in webs for title in web.title],
        kind=np.concatenate([web.kind for web in webs]),
        rate=np.concatenate([web.rate for web in webs]),
        lifetimes=EventTimes.concatenate([web.lifetimes for web in webs]),
        changes=EventTimes.concatenate([web.changes for web in webs]),
        links=WebLinks.of(*(np.concatenate(column) for column in columns.values()), pages=pages),
        start=min(web.start for web in webs),
        end=max(web.end for web in webs),
    )
