"""The score of a contest: what each page got out of the visits, exactly, in constant memory.

Rules of this file:
 1. A page counts from its first visit to its death or the end of the record, and only the part of it after
    ``scored_from``: before, policies are learning.
 2. Between two visits a copy is fresh until the first change after the earlier one. Freshness and age are integrals
    over true change times, not samples.
 3. A visit that finds the page changed since the visit before catches one change, however many there were; the others
    are merged into it (datamonitor, reading 001.6). The first visit catches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from recrawl.assess.ratios import ratio_with_interval
from recrawl.assess.scores import Interval
from recrawl.assess.selections import Scores, macro, micro
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray
from recrawl.simulate.sampling import Truth
from recrawl.time import DAY


@dataclass(frozen=True, slots=True)
class Tally:
    """What came of all visits to each page after the time scoring began, one row a page."""

    importance: FloatArray
    watched: FloatArray
    """Seconds the page counts."""
    fresh: FloatArray
    """Seconds its copy was current."""
    aged: FloatArray
    """Integral of the age of its copy, seconds²."""
    changes: IntArray
    """True changes."""
    covered: IntArray
    """Changes that some visit came after: seen alone or merged with others."""
    waited: FloatArray
    """Seconds from each covered change to that visit, summed."""
    visits: IntArray
    """Visits after the first one."""
    caught: IntArray
    """Those that found a change: each copies a version that was not in the archive."""
    choices: IntArray
    """For each tick how many pages were rightly chosen, wrongly chosen, wrongly left and rightly left. Shape (t, 4)."""

    def __len__(self) -> int:
        return len(self.watched)

    def ratio(self, metric: str) -> float:
        """One of :data:`METRICS` over all pages, weighted by importance."""
        above, below = self.parts(metric)
        whole = float(below.sum())
        return float(above.sum()) / whole if whole > 0 else float("nan")

    def parts(self, metric: str) -> tuple[FloatArray, FloatArray]:
        """Numerator and denominator of a metric, page by page, times importance."""
        above, below = METRICS[metric](self)
        return self.importance * above, self.importance * below

    def interval(
        self,
        metric: str,
        groups: AnyArray,
        rng: np.random.Generator,
        *,
        repeats: int = 1_000,
        than: Tally | None = None,
    ) -> Interval:
        """A metric with its bootstrap interval by whole groups; with ``than``, of the difference to another tally.

        The difference needs equal denominators: those of freshness, age, recall and seen are the same for all policies
        on one field.

        Raises:
            ValueError: the denominators differ.
        """
        above, below = self.parts(metric)
        if than is not None:
            other, same = than.parts(metric)
            if not np.array_equal(below, same):
                msg = f"{metric} has other denominators in the two tallies"
                raise ValueError(msg)
            above = above - other
        return ratio_with_interval(above, below, groups, rng, repeats=repeats)

    def plus(self, other: Tally) -> Tally:
        """Two contests on the same pages taken together, for example on two guesses of when they changed."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _ADDED}
        return replace(self, choices=np.concatenate([self.choices, other.choices]), **sums)

    def micro(self) -> Scores:
        """Precision, recall and F1 of the choices, all ticks pooled (HACS)."""
        return micro(self.choices)

    def macro(self) -> Scores:
        """The same, averaged over ticks (HACS)."""
        return macro(self.choices)


_ADDED = ("watched", "fresh", "aged", "changes", "covered", "waited", "visits", "caught")

METRICS: dict[str, Callable[[Tally], tuple[AnyArray, AnyArray]]] = {
    "freshness": lambda tally: (tally.fresh, tally.watched),
    "age": lambda tally: (tally.aged / DAY, tally.watched),
    "recall": lambda tally: (tally.caught, tally.changes),
    "precision": lambda tally: (tally.caught, tally.visits),
    "seen": lambda tally: (tally.covered, tally.changes),
    "delay": lambda tally: (tally.waited / DAY, tally.covered),
    "wasted": lambda tally: (tally.visits - tally.caught, tally.visits),
}
"""Metrics as ratios. Age and delay are in days; recall and precision are those of datamonitor: changes caught over
changes, and over visits. ``recall`` times the number of changes is the number of distinct versions captured."""

HIGHER_IS_BETTER = frozenset({"freshness", "recall", "precision", "seen"})
"""Metrics of which more is better; of the others less is."""


class Scoreboard:
    """Counts while visits happen. O(1) a visit, O(pages) in all beside."""

    def __init__(self, truth: Truth, scored_from: float) -> None:
        n = len(truth)
        self._truth = truth
        self._from = scored_from
        self._end = np.minimum(truth.died, truth.end)
        # Times count from the start, so that sums of them stay exact to microseconds.
        self._sums = np.concatenate([[0.0], np.cumsum(truth.changes.times - truth.start)])
        self._before = truth.changes.until(np.arange(n), np.nextafter(scored_from, -np.inf))
        """Changes of each page before scoring began."""
        self._last = np.full(n, np.inf)
        self._seen = np.zeros(n, dtype=np.int64)
        self._opened = np.full(n, np.inf)
        self._opening = np.zeros(n, dtype=np.int64)
        self._fresh, self._aged, self._waited = np.zeros(n), np.zeros(n), np.zeros(n)
        self._covered, self._visits, self._caught = (np.zeros(n, dtype=np.int64) for _ in range(3))
        self._choices: list[tuple[int, int, int, int]] = []

    @property
    def seen(self) -> IntArray:
        """Version of each page that was seen last. A view, not to be modified."""
        return self._seen

    def open(self, rows: IntArray, version: IntArray, now: float) -> None:
        """First visits: the pages count from now on."""
        self._last[rows] = self._opened[rows] = now
        self._seen[rows] = self._opening[rows] = version

    def visit(self, rows: IntArray, version: IntArray, now: float) -> BoolArray:
        """Later visits to distinct pages, all at ``now``, that met these versions; which of them found a change."""
        self._close(rows, np.full(len(rows), now))
        changed = version > self._seen[rows]
        if now >= self._from:
            self._visits[rows] += 1
            self._caught[rows] += changed
            found, low = rows[changed], np.maximum(self._seen[rows], self._before[rows])[changed]
            count = np.maximum(version[changed] - low, 0)
            first = self._truth.changes.offsets[found]
            sums = self._sums[first + version[changed]] - self._sums[first + np.minimum(low, version[changed])]
            self._covered[found] += count
            self._waited[found] += count * (now - self._truth.start) - sums
        self._last[rows] = now
        self._seen[rows] = version
        return np.asarray(changed)

    def choose(self, *, right: int, chosen: int, stale: int, pages: int, now: float) -> None:
        """Note a choice: of so many pages so many were stale, so many chosen, and so many of those rightly."""
        if now >= self._from:
            missed = stale - right
            self._choices.append((right, chosen - right, missed, pages - chosen - missed))

    def tally(self) -> Tally:
        """The score at the end of the record. To be asked once."""
        n, truth = len(self._last), self._truth
        opened = np.flatnonzero(np.isfinite(self._opened))
        self._close(opened, self._end[opened])
        watched = np.maximum(self._end - np.maximum(self._opened, self._from), 0.0)
        until = truth.changes.until(np.arange(n), self._end)
        changes = np.maximum(until - np.maximum(self._opening, self._before), 0)
        changes[~np.isfinite(self._opened)] = 0
        return Tally(
            np.ones(n),
            watched,
            self._fresh,
            self._aged,
            changes,
            self._covered,
            self._waited,
            self._visits,
            self._caught,
            np.array(self._choices, dtype=np.int64).reshape(-1, 4),
        )

    def _close(self, rows: IntArray, until: FloatArray) -> None:
        """Add the time from the last visit of each row to ``until``."""
        last = self._last[rows]
        stale = self._stale_at(rows)
        start = np.maximum(last, self._from)
        self._fresh[rows] += np.maximum(np.minimum(stale, until) - start, 0.0)
        went = np.flatnonzero(stale < until)
        old, end = stale[went], until[went]
        begin = np.maximum(old, self._from)
        aged = np.where(end > begin, (np.square(end - old) - np.square(begin - old)) / 2.0, 0.0)
        self._aged[rows[went]] += aged

    def _stale_at(self, rows: IntArray) -> FloatArray:
        """When the copy of each row ceases to be current; inf if never."""
        offsets, times = self._truth.changes.offsets, self._truth.changes.times
        place = offsets[rows] + self._seen[rows]
        inside = place < offsets[rows + 1]
        return (
            np.where(inside, times[np.minimum(place, len(times) - 1)], np.inf)
            if len(times)
            else np.full(len(rows), np.inf)
        )
