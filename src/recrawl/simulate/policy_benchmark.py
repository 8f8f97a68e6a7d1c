"""Policy benchmark: run policies on a field of pages with a virtual clock, and score them.

The score is exact and needs constant memory. Its rules:
 1. A page counts from its first visit to its death or the end of the record, and only after ``scored_from``, because
    policies learn before.
 2. Between two visits a copy is fresh until the first change after the earlier one. Freshness and age are integrals
    over true change times, not samples.
 3. A visit that finds the page changed catches one change, whatever their number; the others are merged into it
    (datamonitor, reading 001.6). The first visit catches nothing.

Metrics are ratios of sums over pages, so that pages can be resampled and differences taken page by page.

A run has one policy and one budget, for all pages at once. Its rules (algorithms §7):
 1. The clock ticks; everything happens at a tick.
 2. A page is found, and first visited, at the first tick at least ``found_after`` after its birth. First visits are the
    same for all policies and cost nothing.
 3. At each tick ``budget`` × existing pages × days visits are made; fractions carry over, but not visits without a
    page. They go to the most urgent pages (``Policy.urgency``), at most ``per_host`` to a host; ties are broken at
    random.
 4. Policies know only what was reported to them: pages when they are found, visits when they are made. A page that is
    gone is not offered and not counted.
 5. A policy is fitted when the time or the number of found pages has grown by a quarter since the last fit, and at
    least every ``fit_every``.

:func:`entry` makes a policy of a given name ready for a field and a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from recrawl.assess.prediction_scores import (
    MeanInterval,
    SelectionScores,
    macro,
    micro,
    ratio_with_interval,
    weighted_precision_at_k,
)
from recrawl.estimate.operational.factor_state import TimeFactor
from recrawl.model import AnyArray, BoolArray, ChangeKind, FloatArray, IntArray, Pages, Verdict, Visits
from recrawl.schedule.policies.policy_registry import EXPLORING, ORACLES, POLICIES, START_FROM_BUDGET, VALUED
from recrawl.schedule.policy import Policy
from recrawl.simulate.benchmark_field import BenchmarkField
from recrawl.simulate.sampling import PageTruth
from recrawl.time import DAY, HOUR


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


_GROWTH = 1.25
_JITTER, _TINY, _MOST = 1e-12, 1e-300, 1e300
"""Ties of urgency are broken by a random relative share, of zeros by a tiny number; inf is a large number."""


@dataclass(frozen=True, slots=True)
class BenchmarkRules:
    """How a contest is held. Every policy has the same."""

    budget: float
    """Visits for each page that is there, a day."""
    tick: float = DAY
    """Seconds from one tick to the next."""
    found_after: float = DAY / 4
    """Seconds after its birth from which a page can be found."""
    per_host: int | None = None
    """Visits to one host at a tick, at most; ``None`` for no limit."""
    fit_every: float = 90 * DAY
    """Seconds between two fits, at most."""
    whenever_due: bool = False
    """Visit every page that is due, as a crawler without a budget does; policies still know the budget."""
    scored_from: float = 0.25
    """Share of the record that is not scored, because policies are learning."""
    ranked_every: float = 28 * DAY
    """Seconds between two ticks at which the order of all urgencies is evaluated, at least."""

    def __post_init__(self) -> None:
        if not self.budget >= 0 or not self.tick > 0 or not self.fit_every > 0 or not 0 <= self.scored_from < 1:
            msg = f"no contest can be held by these rules: {self}"
            raise ValueError(msg)

    @property
    def leave_no_choice(self) -> bool:
        """Whether every page is visited at every tick, whatever the policy."""
        return self.budget * self.tick >= DAY and self.per_host is None and not self.whenever_due


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """What came of a contest."""

    tally: BenchmarkTally
    visits: Visits | None
    """All visits, first ones included, in the order of time; only where they were asked for."""
    evaluations: int
    """How often the urgency of a page was asked."""
    made: int
    """Visits made, first ones included."""


def compete(  # noqa: PLR0913 - what a contest is made of
    field: BenchmarkField,
    policy: Policy,
    rules: BenchmarkRules,
    rng: np.random.Generator,
    *,
    keep_visits: bool = False,
    progress: Callable[[float], None] = lambda _: None,
) -> BenchmarkResult:
    """Let a policy, to which no page was added yet, visit the pages of a field.

    ``progress`` receives the simulated share of the record. O(ticks · pages) for the urgencies and O(1) a visit,
    beside what the policy takes; no Python for single pages.
    """
    contest = _BenchmarkRun(field, policy, rules, rng, keep_visits=keep_visits)
    span = field.truth.end - field.truth.start
    ticks = int(np.floor(span / rules.tick)) + 1
    for number in range(ticks):
        contest.tick(field.truth.start + number * rules.tick)
        progress((number + 1) / ticks)
    return contest.result()


class _BenchmarkRun:
    """The state of a contest between two ticks."""

    def __init__(
        self,
        field: BenchmarkField,
        policy: Policy,
        rules: BenchmarkRules,
        rng: np.random.Generator,
        *,
        keep_visits: bool,
    ) -> None:
        truth = field.truth
        self._field, self._policy, self._rules, self._rng = field, policy, rules, rng
        self._board = BenchmarkScore(truth, truth.start + rules.scored_from * (truth.end - truth.start), field.links)
        self._calendar = _VisitCalendar.of(field)
        self._found = 0
        self._there = np.zeros(len(field), dtype=np.bool_)
        self._rows = np.empty(0, dtype=np.int64)
        """Pages that are found and there, ascending."""
        self._carry = 0.0
        self._rank_at = truth.start
        self._fits = _FitTimes(rules.fit_every, truth.start)
        self._log: list[Visits] | None = [] if keep_visits else None
        self._evaluations = self._made = 0

    def tick(self, now: float) -> None:
        self._calendar.advance(now)
        self._lose(now)
        candidates = self._rows
        self._find(now)
        budget = self._rules.budget * len(self._rows) / DAY
        if len(self._rows) and self._fits.is_time(now, self._found):
            self._policy.fit(budget, now)
        if self._rules.whenever_due:
            self._visit(candidates, candidates[self._policy.urgency(candidates, now) >= 1.0], now)
            return
        self._carry += budget * self._rules.tick
        quota = int(self._carry + 1e-9)
        self._carry -= quota
        if quota and len(candidates):
            self._visit(candidates, self._choose(candidates, quota, now), now)

    def result(self) -> BenchmarkResult:
        tally = replace(self._board.tally(), importance=self._field.importance)
        visits = None if self._log is None else Visits.concatenate(self._log)
        return BenchmarkResult(tally, visits, self._evaluations, self._made)

    def _lose(self, now: float) -> None:
        gone = self._calendar.gone(now)
        if len(gone):
            self._there[gone] = False
            self._rows = np.flatnonzero(self._there)

    def _find(self, now: float) -> None:
        """Pages born long enough ago, unless they are gone already: added, visited, offered from the next tick on."""
        born = self._field.truth.born
        first, self._found = self._found, int(np.searchsorted(born, now - self._rules.found_after, side="right"))
        rows = np.arange(first, self._found)
        rows = rows[self._field.truth.died[rows] > now]
        if not len(rows):
            return
        self._policy.add(
            Pages.of(rows, host=self._field.host[rows], importance=self._field.importance[rows], discovered=now)
        )
        self._board.open(rows, self._calendar.version[rows], now)
        self._tell(Visits.of(rows, now))
        self._there[rows] = True
        self._rows = np.flatnonzero(self._there)

    def _choose(self, rows: IntArray, quota: int, now: float) -> IntArray:
        if quota >= len(rows) and self._rules.per_host is None:
            return rows
        urgency = self._policy.urgency(rows, now)
        self._evaluations += len(rows)
        draw = self._rng.random(len(rows))
        wanted = np.minimum(urgency, _MOST) * (1.0 + _JITTER * draw) + _TINY * draw
        if now >= self._rank_at:
            ranked = rows[np.argsort(-wanted)]
            self._board.rank(ranked, self._calendar.version[ranked], now)
            self._rank_at = now + self._rules.ranked_every
        if self._rules.per_host is None:
            return np.sort(rows[np.argpartition(wanted, len(rows) - quota)[len(rows) - quota :]])
        return rows[_allowed(wanted, self._field.host[rows], quota, self._rules.per_host)]

    def _visit(self, candidates: IntArray, rows: IntArray, now: float) -> None:
        stale = int(np.count_nonzero(self._calendar.version[candidates] > self._board.seen[candidates]))
        changed = self._board.visit(rows, self._calendar.version[rows], now)
        right = int(np.count_nonzero(changed))
        self._board.choose(right=right, chosen=len(rows), stale=stale, pages=len(candidates), now=now)
        verdict = np.where(changed, np.uint8(Verdict.CHANGED), np.uint8(Verdict.UNCHANGED))
        kinds = np.where(changed, np.uint16(ChangeKind.TEXT), np.uint16(ChangeKind.NONE))
        self._tell(Visits.of(rows, now, verdict=verdict, kinds=kinds))

    def _tell(self, visits: Visits) -> None:
        self._policy.tell(visits)
        self._made += len(visits)
        if self._log is not None:
            self._log.append(visits)


class _VisitCalendar:
    """What happens when: the version of every page at the tick that was reached, and who has gone by then."""

    def __init__(self, time: FloatArray, row: IntArray, death: FloatArray, dying: IntArray, pages: int) -> None:
        self._time, self._row = time, row
        self._death, self._dying = death, dying
        self._passed = self._gone = 0
        self.version = np.zeros(pages, dtype=np.int64)
        """Changes of each page so far."""

    @classmethod
    def of(cls, field: BenchmarkField) -> _VisitCalendar:
        changes, died = field.truth.changes, field.truth.died
        order = np.argsort(changes.times, kind="stable")
        dying = np.argsort(died, kind="stable")
        return cls(changes.times[order], changes.row_of_event()[order], died[dying], dying, len(field))

    def advance(self, now: float) -> None:
        """Let the changes up to ``now`` happen. O(changes) over a whole contest."""
        first, self._passed = self._passed, int(np.searchsorted(self._time, now, side="right"))
        np.add.at(self.version, self._row[first : self._passed], 1)

    def gone(self, now: float) -> IntArray:
        """Pages that have gone since this was last asked."""
        first, self._gone = self._gone, int(np.searchsorted(self._death, now, side="right"))
        return self._dying[first : self._gone]


class _FitTimes:
    """When to fit: as time and pages grow by a quarter, and regularly."""

    def __init__(self, every: float, start: float) -> None:
        self._every, self._start = every, start
        self._next, self._pages = start, 0

    def is_time(self, now: float, pages: int) -> bool:
        """Whether to fit now; if so, the next time is counted from now."""
        if now < self._next and pages < self._pages * _GROWTH + 1:
            return False
        self._pages = pages
        self._next = now + min(self._every, (_GROWTH - 1.0) * (now - self._start))
        return True


def _allowed(wanted: FloatArray, host: IntArray, quota: int, per_host: int) -> BoolArray:
    """The ``quota`` most wanted pages of which no host has more than ``per_host``. O(n log n)."""
    order = np.lexsort((-wanted, host))
    ranked = host[order]
    first = np.flatnonzero(np.diff(ranked, prepend=ranked[0] - 1))
    place = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    order = order[place < per_host]
    if len(order) > quota:
        order = order[np.argpartition(wanted[order], len(order) - quota)[len(order) - quota :]]
    chosen = np.zeros(len(wanted), dtype=np.bool_)
    chosen[order] = True
    return chosen


OURS = "valued-archive"
"""The default of recrawl: evaluated by freshness."""
OURS_FOR_CHANGES = "valued-changes"
"""Ours for those who want every version: evaluated by recall."""
BASELINE = "uniform"
OWN_MEASURE: dict[str, str] = {
    OURS: "freshness",
    "valued-freshness": "freshness",
    OURS_FOR_CHANGES: "recall",
    "valued-harmonic": "harmonic",
    "valued-age": "age",
    "valued-blur": "missed",
    "valued-links": "link_delay",
}
"""What each of ours is after, as one of the metrics of a contest."""
PARTS_OFF: dict[str, Mapping[str, object]] = {
    f"{OURS}-without-clusters": {"factors": (TimeFactor.AGE,)},
    f"{OURS}-without-age": {"factors": (TimeFactor.CLUSTERS,)},
    f"{OURS}-in-wall-time": {"factors": ()},
    f"{OURS}-without-jumps": {"jump": None},
}
"""Our default with a part of it switched off, and how: what the part is worth."""
NAMES: tuple[str, ...] = (*POLICIES, *EXPLORING, *PARTS_OFF, *ORACLES)
"""All that can compete, also those that compete only when asked for: explorers, ours without parts, oracles."""
NAMED: tuple[str, ...] = tuple(name for name in POLICIES if name not in VALUED and name != BASELINE)
"""The policies of the papers and of other crawlers."""
SAME_AT_A_BUDGET: dict[str, str] = dict.fromkeys(("brute-force", "week", "fixed-interval"), BASELINE) | {
    "valued-links": "valued-blur"
}
"""Those whose visits are, one by one, the visits of another, where a budget decides how many there are.

One interval for all pages is even visits. Ours for new links has the formula of blur, with a belief about new links in
place of changes; in a contest, where visits tell changes alone, the two beliefs are one.
"""


def labelled(name: str) -> str:
    """A name as tables show it: an oracle is marked, because it knows the future.

    >>> labelled("nutch"), labelled("gold")
    ('nutch', 'gold (knows the future)')
    """
    return f"{name} (knows the future)" if name in ORACLES else name


def entry(name: str, field: BenchmarkField, *, shortest: float = HOUR, longest: float = 180 * DAY) -> Policy:
    """A new policy of this name, ready for the pages of a field.

    ``shortest`` and ``longest`` are the intervals, in seconds, between which ours stay. Rules that know intervals and
    no budget start at the interval that spends the budget evenly; ours receive the directory of each page;
    oracles receive the true rates, and so know the future.

    Raises:
        KeyError: there is no such policy.
    """
    if name in ORACLES:
        return ORACLES[name](field.rates)
    make = EXPLORING[name] if name in EXPLORING else POLICIES[OURS if name in PARTS_OFF else name]
    if name in START_FROM_BUDGET:
        make = partial(make, start=None)
    elif name in VALUED or name in EXPLORING or name in PARTS_OFF:
        make = partial(
            make,
            **PARTS_OFF.get(name, {}),
            clusters=field.clusters,
            shortest_interval=shortest,
            longest_interval=longest,
        )
    return make()
