"""The score of a policy in a benchmark, exact and in constant memory, and its metrics.

Rules:
 1. A page counts from its first visit to its death or the end of the record, and only after ``scored_from``, because
    policies learn before.
 2. Between two visits a copy is fresh until the first change after the earlier one. Freshness and age are integrals
    over true change times, not samples.
 3. A visit that finds the page changed catches one change, whatever their number; the others are merged into it
    (datamonitor, reading 001.6). The first visit catches nothing.

Metrics are ratios of sums over pages, so that pages can be resampled and differences taken page by page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from recrawl.assess.prediction_scores import (
    MeanInterval,
    SelectionScores,
    macro,
    micro,
    ratio_with_interval,
    weighted_precision_at_k,
)
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray
from recrawl.simulate.sampling import PageTruth
from recrawl.time import DAY


@dataclass(frozen=True, slots=True)
class BenchmarkTally:
    """What came of all visits to each page after the time scoring started, one row per page."""

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
    missed: FloatArray
    """Integral of the number of changes that the copy lacks, seconds."""
    harmonic: FloatArray
    """Integral of 1 + 1/2 + … + 1/N over the N changes that the copy lacks, seconds."""
    links: FloatArray
    """New links of its changes; 0 if not known."""
    links_waited: FloatArray
    """Seconds from each new link to the visit that found it, or to the end where none did, summed."""
    choices: IntArray
    """For each tick how many pages were rightly chosen, wrongly chosen, wrongly left and rightly left. Shape (t, 4)."""
    rankings: FloatArray
    """Weighted P@K of the order in which the policy wanted pages, at regular times."""

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
        than: BenchmarkTally | None = None,
    ) -> MeanInterval:
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

    def plus(self, other: BenchmarkTally) -> BenchmarkTally:
        """Two contests on the same pages taken together, for example on two guesses of when they changed."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _ADDED}
        return replace(
            self,
            choices=np.concatenate([self.choices, other.choices]),
            rankings=np.concatenate([self.rankings, other.rankings]),
            **sums,
        )

    def micro(self) -> SelectionScores:
        """Precision, recall and F1 of the choices, all ticks pooled (HACS)."""
        return micro(self.choices)

    def macro(self) -> SelectionScores:
        """The same, averaged over ticks (HACS)."""
        return macro(self.choices)

    def summary(self) -> dict[str, float]:
        """Every metric by its name: the ratios, the scores of the choices, and weighted P@K."""
        ratios = {metric: self.ratio(metric) for metric in METRICS}
        choices = {
            f"{kind}_{name}": float(getattr(scores, name))
            for kind, scores in (("micro", self.micro()), ("macro", self.macro()))
            for name in ("precision", "recall", "f1")
        }
        return ratios | choices | {"weighted_p_at_k": self.precision_at_k()}

    def precision_at_k(self) -> float:
        """Mean weighted P@K of the rankings (HACS, reading 000.7); NaN where nothing had to be ranked."""
        return float(self.rankings.mean()) if len(self.rankings) else float("nan")


_ADDED = (
    "watched",
    "fresh",
    "aged",
    "changes",
    "covered",
    "waited",
    "visits",
    "caught",
    "missed",
    "harmonic",
    "links",
    "links_waited",
)

METRICS: dict[str, Callable[[BenchmarkTally], tuple[AnyArray, AnyArray]]] = {
    "freshness": lambda tally: (tally.fresh, tally.watched),
    "age": lambda tally: (tally.aged / DAY, tally.watched),
    "recall": lambda tally: (np.minimum(tally.caught, tally.covered), tally.changes),
    "precision": lambda tally: (tally.caught, tally.visits),
    "seen": lambda tally: (tally.covered, tally.changes),
    "delay": lambda tally: (tally.waited / DAY, tally.covered),
    "wasted": lambda tally: (tally.visits - tally.caught, tally.visits),
    "missed": lambda tally: (tally.missed, tally.watched),
    "harmonic": lambda tally: (tally.harmonic, tally.watched),
    "link_delay": lambda tally: (tally.links_waited / DAY, tally.links),
}
"""Metrics as ratios. Age and delays are in days; recall and precision are those of datamonitor: changes caught over
changes, and over visits. A visit that finds nothing but changes from before scoring started catches none of those that
count, so no page has caught more than were covered. ``recall`` times the number of changes is the number of distinct
versions captured.
``missed`` is how many changes copies lack on average, ``harmonic`` the same with 1/k for the k-th of them;
``link_delay`` is how long a new link waited to be found, or waits at the end."""

HIGHER_IS_BETTER = frozenset({"freshness", "recall", "precision", "seen"})
"""Metrics of which more is better; of the others less is."""


class BenchmarkScore:
    """Counts while visits happen. O(1) a visit, O(pages + changes) in all beside."""

    def __init__(self, truth: PageTruth, scored_from: float, links: FloatArray) -> None:
        """``links`` are the new links of each change, or empty if not known."""
        n = len(truth)
        self._truth = truth
        self._from = scored_from
        self._links = links if len(links) else np.zeros(len(truth.changes.times))
        self._end = np.minimum(truth.died, truth.end)
        self._before = truth.changes.until(np.arange(n), np.nextafter(scored_from, -np.inf))
        """Changes of each page before scoring started."""
        self._last = np.full(n, np.inf)
        self._seen = np.zeros(n, dtype=np.int64)
        self._opened = np.full(n, np.inf)
        self._opening = np.zeros(n, dtype=np.int64)
        self._fresh, self._aged, self._waited, self._missed, self._harmonic, self._links_waited = np.zeros((6, n))
        self._covered, self._visits, self._caught = np.zeros((3, n), dtype=np.int64)
        self._choices: list[tuple[int, int, int, int]] = []
        self._rankings: list[float] = []

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
        changed = version > self._seen[rows]
        scored = now >= self._from
        self._close(rows, np.full(len(rows), now), version, found=scored)
        if scored:
            self._visits[rows] += 1
            self._caught[rows] += changed
        self._last[rows] = now
        self._seen[rows] = version
        return np.asarray(changed)

    def choose(self, *, right: int, chosen: int, stale: int, pages: int, now: float) -> None:
        """Record a choice: the numbers of pages, of stale pages, of chosen pages and of chosen stale pages."""
        if now >= self._from:
            missed = stale - right
            self._choices.append((right, chosen - right, missed, pages - chosen - missed))

    def rank(self, rows: IntArray, version: IntArray, now: float) -> None:
        """Note the order in which pages, now at these versions, were wanted, to be evaluated by who changes next."""
        if now >= self._from:
            change = self._change_after(rows, version)
            order = np.argsort(change, kind="stable")
            expected = rows[order[: int(np.isfinite(change).sum())]]
            if len(expected):
                self._rankings.append(weighted_precision_at_k(rows, expected))

    def tally(self) -> BenchmarkTally:
        """The score at the end of the record. To be asked once."""
        n, truth = len(self._last), self._truth
        opened = np.flatnonzero(np.isfinite(self._opened))
        until = truth.changes.until(np.arange(n), self._end)
        self._close(opened, self._end[opened], np.maximum(until, self._seen)[opened], found=False)
        watched = np.maximum(self._end - np.maximum(self._opened, self._from), 0.0)
        first = np.minimum(np.maximum(self._opening, self._before), until)
        first[~np.isfinite(self._opened)] = until[~np.isfinite(self._opened)]
        links = np.concatenate([[0.0], np.cumsum(self._links)])
        place = truth.changes.offsets[:-1]
        return BenchmarkTally(
            importance=np.ones(n),
            watched=watched,
            fresh=self._fresh,
            aged=self._aged,
            changes=until - first,
            covered=self._covered,
            waited=self._waited,
            visits=self._visits,
            caught=self._caught,
            missed=self._missed,
            harmonic=self._harmonic,
            links=links[place + until] - links[place + first],
            links_waited=self._links_waited,
            choices=np.array(self._choices, dtype=np.int64).reshape(-1, 4),
            rankings=np.array(self._rankings, dtype=np.float64),
        )

    def _close(self, rows: IntArray, until: FloatArray, version: IntArray, *, found: bool) -> None:
        """Add the time from the last visit of each row to ``until``, when it was at this version.

        ``found`` tells whether a visit ends it, so that the changes since the last one are covered.
        """
        last = self._last[rows]
        stale = self._change_after(rows, self._seen[rows])
        start = np.maximum(last, self._from)
        self._fresh[rows] += np.maximum(np.minimum(stale, until) - start, 0.0)
        lacking = np.flatnonzero(version > self._seen[rows])
        if not len(lacking):
            return
        rows, old, end = rows[lacking], stale[lacking], until[lacking]
        begin = np.maximum(old, self._from)
        self._aged[rows] += np.where(end > begin, (np.square(end - old) - np.square(begin - old)) / 2.0, 0.0)
        self._count_changes(rows, end, version[lacking] - self._seen[rows], found=found)

    def _count_changes(self, rows: IntArray, until: FloatArray, count: IntArray, *, found: bool) -> None:
        """Add what the next ``count`` changes after the version seen last of each row did until ``until``."""
        own = np.repeat(np.arange(len(rows)), count)
        place = np.arange(len(own)) - np.repeat(np.cumsum(count) - count, count)
        change = (self._truth.changes.offsets[rows] + self._seen[rows])[own] + place
        time, end = self._truth.changes.times[change], until[own]
        lacking = np.maximum(end - np.maximum(time, self._from), 0.0)
        scored = time >= self._from
        waited = np.where(scored, end - time, 0.0)

        def of_rows(amount: FloatArray) -> FloatArray:
            return np.bincount(own, amount, len(rows)).astype(np.float64)

        self._missed[rows] += of_rows(lacking)
        self._harmonic[rows] += of_rows(lacking / (place + 1.0))
        self._links_waited[rows] += of_rows(waited * self._links[change])
        if found:
            self._covered[rows] += np.bincount(own[scored], minlength=len(rows))
            self._waited[rows] += of_rows(waited)

    def _change_after(self, rows: IntArray, version: IntArray) -> FloatArray:
        """When each row ceases to be at a version; inf if never."""
        offsets, times = self._truth.changes.offsets, self._truth.changes.times
        place = offsets[rows] + version
        inside = place < offsets[rows + 1]
        if not len(times):
            return np.full(len(rows), np.inf)
        return np.where(inside, times[np.minimum(place, len(times) - 1)], np.inf)
