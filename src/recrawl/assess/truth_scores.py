"""Scores against the truth: freshness and age of copies, and recall and precision of detected changes.

The truth is known in simulations and on the test web: when each page appeared, changed and disappeared.

Lifetimes (:class:`PageLifetimes`), ragged columns:
 1. A row is one life of a page, from its birth to its death, exclusive. A page that disappeared and came back has two
    rows. Rows are sorted by page id, then birth; lives of one page do not overlap.
 2. A change at time c is visible to observations at c or later. So an observation at t sees version number
    (changes <= t).
 3. A visit belongs to the last life of its page that had started.

Freshness and age (Cho and Garcia-Molina, for pages that appear and disappear):
 1. A visit with a body (``Outcome.FETCHED``) leaves a copy of the current version. A 304 leaves none: if the server was
    wrong, the old copy stays and is stale.
 2. A page counts from its birth to its death. It is fresh while its last copy is the current version.
 3. A page without a copy is not fresh; its age counts from its birth.
 4. The age of a fresh page is 0, of a stale page the time since its copy was replaced.
 5. A page that is gone does not count; :func:`deletions` measures how long its deletion was not noticed.

Recall and precision of changes:
 1. An observation is a visit with an answer or a verdict during a life of its page. Observations at the same time are
    one, with the most informative verdict. The first observation of a life detects nothing.
 2. An observation with the verdict ``CHANGED`` covers all changes since the last such observation, or since the first
    observation; also those that an observation in between overlooked.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray, Outcome, Verdict, Visits
from recrawl.model.arrays import offsets_of, order_by, ragged_search, starts_of_runs

NO_LIFE = -1
"""The row of a visit to a page that did not exist yet."""


@dataclass(frozen=True, slots=True)
class PageLifetimes:
    """Exact change times of n lives of pages, m changes in all."""

    page: IntArray
    """Page ids, ascending. Shape (n,)."""
    offsets: IntArray
    """Row i changed at ``times[offsets[i]:offsets[i+1]]``. Shape (n + 1,)."""
    times: FloatArray
    """Change times, ascending in a row, seconds since the epoch. Shape (m,)."""
    birth: FloatArray
    """When the life started; finite."""
    death: FloatArray
    """When it ended; infinity for a page that is still there."""

    def __post_init__(self) -> None:
        """Refuse columns that break the rules above: every measure relies on them. O(n + m)."""
        n = len(self.page)
        if not len(self.birth) == len(self.death) == len(self.offsets) - 1 == n:
            msg = "page, birth, death and offsets differ in length"
            raise ValueError(msg)
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.times) or bool((np.diff(self.offsets) < 0).any()):
            msg = "the offsets do not span the change times"
            raise ValueError(msg)
        row = self.row_of_change()
        same_row, same_page = row[1:] == row[:-1], self.page[1:] == self.page[:-1]
        inside = (self.times > self.birth[row]) & (self.times < self.death[row])
        rules = {
            "page ids are not ascending": self.page[1:] >= self.page[:-1],
            "a birth is not finite": np.isfinite(self.birth),
            "a death is not after its birth": self.death > self.birth,
            "lives of one page overlap": ~same_page | (self.birth[1:] >= self.death[:-1]),
            "change times are not ascending": ~same_row | (self.times[1:] >= self.times[:-1]),
            "a change is outside its life": inside,
        }
        for what, holds in rules.items():
            if not bool(holds.all()):
                raise ValueError(what)

    def __len__(self) -> int:
        return len(self.page)

    @classmethod
    def of(
        cls,
        page: npt.ArrayLike,
        offsets: npt.ArrayLike,
        times: npt.ArrayLike,
        *,
        birth: npt.ArrayLike,
        death: npt.ArrayLike = np.inf,
    ) -> PageLifetimes:
        """Columns from anything array-like; a single birth or death fills its column.

        >>> truth = PageLifetimes.of([7, 8], [0, 2, 2], [3.0, 5.0], birth=0.0)
        >>> truth.death.tolist()
        [inf, inf]
        """
        ids = np.asarray(page, dtype=np.int64)
        ends = (np.broadcast_to(np.asarray(value, dtype=np.float64), ids.shape).copy() for value in (birth, death))
        return cls(ids, np.asarray(offsets, dtype=np.int64), np.asarray(times, dtype=np.float64), *ends)

    @classmethod
    def from_lifetimes(
        cls,
        page: IntArray,
        lifetimes: FloatArray,
        lifetime_offsets: IntArray,
        changes: FloatArray,
        changes_offsets: IntArray,
    ) -> PageLifetimes:
        """From births and deaths in turn (born, died, born, ...) and changes, both ragged with one row per page.

        Page ids may come in any order, each once. A change while the page was not there, or at the instant it
        appeared, is no change. O((n + m) log(n + m)).

        >>> born_died_born, changed = np.array([0.0, 4.0, 9.0]), np.array([2.0, 9.0, 10.0])
        >>> ends = np.array([0, 3])
        >>> truth = PageLifetimes.from_lifetimes(np.array([7]), born_died_born, ends, changed, ends)
        >>> truth.page.tolist(), truth.offsets.tolist(), truth.times.tolist()
        ([7, 7], [0, 1, 2], [2.0, 10.0])
        """
        events = np.diff(lifetime_offsets)
        event_page = np.repeat(page, events)
        place = np.arange(len(lifetimes)) - np.repeat(lifetime_offsets[:-1], events)
        last = place == np.repeat(events, events) - 1
        births = place % 2 == 0
        death = np.where(last, np.inf, np.append(lifetimes[1:], np.inf))[births]
        order = np.lexsort((lifetimes[births], event_page[births]))
        bare = cls.of(
            event_page[births][order],
            np.zeros(len(order) + 1),
            [],
            birth=lifetimes[births][order],
            death=death[order],
        )
        row = bare.row_of_visit(np.repeat(page, np.diff(changes_offsets)), changes)
        kept = bare.alive(row, changes) & (changes > np.append(bare.birth, np.inf)[row])
        row, times = row[kept], changes[kept]
        by_row = np.lexsort((times, row))
        return cls(bare.page, offsets_of(row, len(bare)), times[by_row], bare.birth, bare.death)

    def row_of_change(self) -> IntArray:
        """The row each change belongs to. Shape (m,)."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int64), np.diff(self.offsets))

    def row_of_visit(self, page: IntArray, time: FloatArray) -> IntArray:
        """The life each visit belongs to by rule 3, or ``NO_LIFE``. O((n + v) log n) for v visits.

        >>> truth = PageLifetimes.of([7, 7], [0, 0, 0], [], birth=[0.0, 9.0], death=[5.0, 99.0])
        >>> truth.row_of_visit(np.array([7, 7, 7, 3]), np.array([-1.0, 6.0, 9.0, 1.0])).tolist()
        [-1, 0, 1, -1]
        """
        starts = starts_of_runs(self.page)
        ids = self.page[starts]
        if not len(ids):
            return np.full(len(page), NO_LIFE)
        place = np.minimum(np.searchsorted(ids, page), len(ids) - 1)
        lifetimes = offsets_of(np.cumsum(starts) - 1, len(ids))
        row = ragged_search(lifetimes, self.birth, place, time, after_equal=True) - 1
        return np.where((ids[place] == page) & (row >= lifetimes[place]), row, NO_LIFE)

    def next_change(self, row: IntArray, time: FloatArray) -> FloatArray:
        """The first change of the row after each time; infinity if there is none. O((m + v) log m).

        >>> lifetimes = PageLifetimes.of([7], [0, 2], [3.0, 5.0], birth=0.0)
        >>> lifetimes.next_change(np.array([0, 0]), np.array([3.0, 6.0])).tolist()
        [5.0, inf]
        """
        position = ragged_search(self.offsets, self.times, row, time, after_equal=True)
        inside = position < self.offsets[row + 1]
        return np.append(self.times, np.inf)[np.where(inside, position, len(self.times))]

    def alive(self, row: IntArray, time: FloatArray) -> BoolArray:
        """Whether each time lies within its life; false for ``NO_LIFE``."""
        return (row >= 0) & (time < np.append(self.death, -np.inf)[row])


@dataclass(frozen=True, slots=True)
class FreshnessSeries:
    """Time averages over bins ``[edges[j], edges[j+1])`` and over all of them. NaN where no page existed."""

    edges: FloatArray
    fresh: FloatArray
    """Weighted share of pages whose copy is current, averaged over the bin."""
    age: FloatArray
    """Weighted mean age, averaged over the bin, seconds."""
    mean_fresh: float
    mean_age: float
    """Seconds."""


def freshness(
    truth: PageLifetimes, visits: Visits, edges: FloatArray, weight: FloatArray | None = None
) -> FreshnessSeries:
    """Freshness and age in each bin, as exact integrals, not samples.

    ``weight`` has one value a row of ``truth``. Visits to pages the truth does not know are ignored.
    O((m + v) log(m + v)) for m changes and v visits, whatever the number of bins.

    >>> truth = PageLifetimes.of([1], [0, 1], [6.0], birth=0.0)
    >>> freshness(truth, Visits.of([1], [2.0]), np.array([0.0, 4.0, 8.0])).fresh.tolist()
    [0.5, 0.5]
    """
    if len(edges) < 2 or not bool((np.diff(edges) > 0).all()):  # noqa: PLR2004 - a bin has two ends
        msg = "edges must be at least two ascending times"
        raise ValueError(msg)
    w = np.ones(len(truth)) if weight is None else weight
    row, start, stale, end = _spans(truth, visits)
    current = np.minimum(stale, end)
    alive = _bin_integrals(truth.birth, truth.death, edges, level=w)
    fresh = _bin_integrals(start, current, edges, level=w[row])
    # Age t − stale, as a line in t; where the span never goes stale it is empty.
    origin = np.where(stale < end, stale - edges[0], 0.0)
    aged = _bin_integrals(current, end, edges, level=-w[row] * origin, slope=w[row])
    with np.errstate(invalid="ignore"):
        return FreshnessSeries(
            edges, fresh / alive, aged / alive, float(fresh.sum() / alive.sum()), float(aged.sum() / alive.sum())
        )


@dataclass(frozen=True, slots=True)
class Deletions:
    """Pages that went away after we had a copy of them."""

    total: int
    noticed: int
    """Those of which a visit said ``Outcome.GONE`` before the page came back, if it did."""
    mean_delay: float
    """Seconds from the death to that visit, over the noticed ones; NaN if there are none."""


def deletions(truth: PageLifetimes, visits: Visits, end: float) -> Deletions:
    """Which deaths up to ``end`` were noticed by a visit up to ``end``, and how late.

    >>> truth = PageLifetimes.of([1, 2], [0, 0, 0], [], birth=0.0, death=5.0)
    >>> deletions(truth, Visits.of([1, 2, 2], [1.0, 1.0, 7.0], outcome=[0, 0, 3]), end=9.0)
    Deletions(total=2, noticed=1, mean_delay=2.0)
    """
    row = truth.row_of_visit(visits.page, visits.time)
    alive = truth.alive(row, visits.time)
    known = np.zeros(len(truth), dtype=np.bool_)
    known[row[alive & (visits.outcome == Outcome.FETCHED)]] = True
    died = known & (truth.death <= end)
    noticed_at = np.full(len(truth), np.inf)
    tells = (row >= 0) & ~alive & (visits.outcome == Outcome.GONE) & (visits.time <= end)
    np.minimum.at(noticed_at, row[tells], visits.time[tells])
    noticed = died & np.isfinite(noticed_at)
    delay = noticed_at[noticed] - truth.death[noticed]
    return Deletions(int(died.sum()), int(noticed.sum()), float(delay.mean()) if len(delay) else float("nan"))


def _spans(truth: PageLifetimes, visits: Visits) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """The lives cut at every copy: (row, start, when the copy of the span is stale, end).

    One more span a life comes before its first copy and is stale from its start.
    """
    row = truth.row_of_visit(visits.page, visits.time)
    copied = truth.alive(row, visits.time) & (visits.outcome == Outcome.FETCHED)
    row, time = row[copied], visits.time[copied]
    order = order_by(row, time) if len(row) else None
    if order is not None:
        row, time = row[order], time[order]
    opens = starts_of_runs(row)
    until = truth.death[row]
    until[:-1] = np.where(opens[1:], until[:-1], time[1:])
    first_copy = truth.death.copy()
    first_copy[row[opens]] = time[opens]
    return (
        np.concatenate([np.arange(len(truth)), row]),
        np.concatenate([truth.birth, time]),
        np.concatenate([truth.birth, truth.next_change(row, time)]),
        np.concatenate([first_copy, until]),
    )


def _bin_integrals(
    start: FloatArray, end: FloatArray, edges: FloatArray, level: FloatArray, slope: FloatArray | None = None
) -> FloatArray:
    """∫ over each bin of Σ_i (level_i + slope_i·(t − edges[0])) over the spans [start_i, end_i) that hold t.

    The integral up to x of one span is a quadratic in x from its start on, and the same one less from its end
    on: so three running sums over the sorted ends give it at every edge. O(n log n + bins·log n).
    """
    origin, last = edges[0], edges[-1] - edges[0]
    begin, stop = (np.clip(side - origin, 0.0, last) for side in (start, end))
    kept = begin < stop
    lift = np.zeros(len(level)) if slope is None else slope
    point = np.concatenate([begin[kept], stop[kept]])
    constant = np.concatenate([level[kept], -level[kept]])
    linear = np.concatenate([lift[kept], -lift[kept]])
    order = np.argsort(point)
    point, constant, linear = point[order], constant[order], linear[order]
    sums = np.zeros((3, len(point) + 1))
    np.cumsum(constant, out=sums[0, 1:])
    np.cumsum(linear, out=sums[1, 1:])
    np.cumsum(-point * (constant + linear * point / 2.0), out=sums[2, 1:])
    x = edges - origin
    first, second, offset = sums[:, np.searchsorted(point, x, side="right")]
    return np.diff(first * x + second * x * x / 2.0 + offset)


class ChangeOutcome(enum.IntEnum):
    """What became of a true change."""

    PENDING = 0
    """No observe or after it so far; never, if the page is gone."""
    BEFORE = 1
    """It happened before the first observation: part of what the page was when we came."""
    OVERLOOKED = 2
    """Observed afterwards, and never reported as a change."""
    MERGED = 3
    """Seen together with other changes, as one."""
    ALONE = 4
    """Seen, and as a change of its own."""


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """Counts over one stretch of time. Every true change has one fate."""

    total: int
    """True changes."""
    alone: int
    merged: int
    overlooked: int
    before: int
    pending: int
    lost: int
    """Changes whose version was replaced or deleted before any fetch: lost."""
    detections: int
    """Observations that said ``CHANGED``."""
    true_detections: int
    """Those that had a true change to cover."""
    observations: int
    """Observations after the opening ones: those that could detect something."""
    wasted: int
    """Observations between which and the observation before nothing had changed."""
    failed: int
    """Visits without an answer or a verdict."""
    mean_delay: float
    """Seconds from a change to the observation that covered it, over the changes seen; NaN if none was."""

    @property
    def seen(self) -> float:
        """Share of true changes that some observation covered, merged ones included."""
        return _share(self.alone + self.merged, self.total)

    @property
    def recall(self) -> float:
        """True detections over true changes: changes merged into one count once (datamonitor, reading 001.6)."""
        return _share(self.true_detections, self.total)

    @property
    def precision(self) -> float:
        """Precision: the share of detections that were true."""
        return _share(self.true_detections, self.detections)

    @property
    def hit_rate(self) -> float:
        """True detections per observation: how well visits are placed (the precision of datamonitor, reading 001.6)."""
        return _share(self.true_detections, self.observations)


def assess_changes(truth: PageLifetimes, visits: Visits, start: float, end: float) -> ChangeReport:
    """Compare the changes and observations of ``start <= time <= end`` with each other.

    Observations before ``start`` count as what was known by then, visits after ``end`` do not count.
    O((m + v) log(m + v)) for m changes and v visits.

    >>> truth = PageLifetimes.of([1], [0, 3], [2.0, 4.0, 7.0], birth=0.0)
    >>> visits = Visits.of([1, 1, 1], [1.0, 5.0, 9.0], verdict=[0, 2, 2])
    >>> report = assess_changes(truth, visits, 0.0, 9.0)
    >>> report.alone, report.merged, report.lost, report.recall
    (1, 2, 1, 0.6666666666666666)
    """
    visits = visits.take(visits.time <= end)
    observations = _ObservedTruth.of(truth, visits)
    fate, delay = _change_outcomes(truth, observations)
    counted = (truth.times >= start) & (truth.times <= end)
    counts = np.bincount(fate[counted], minlength=len(ChangeOutcome))
    could = ~observations.opens & (observations.time >= start)
    said = could & (observations.verdict == Verdict.CHANGED)
    return ChangeReport(
        total=int(counted.sum()),
        alone=int(counts[ChangeOutcome.ALONE]),
        merged=int(counts[ChangeOutcome.MERGED]),
        overlooked=int(counts[ChangeOutcome.OVERLOOKED]),
        before=int(counts[ChangeOutcome.BEFORE]),
        pending=int(counts[ChangeOutcome.PENDING]),
        lost=int((counted & _lost(truth, visits, end)).sum()),
        detections=int(said.sum()),
        true_detections=int((said & (observations.covered > 0)).sum()),
        observations=int(could.sum()),
        wasted=int((could & (observations.new == 0)).sum()),
        failed=int(((visits.time >= start) & ~_says(visits)).sum()),
        mean_delay=_mean(delay[counted & np.isfinite(delay)]),
    )


def noticed_at(truth: PageLifetimes, visits: Visits) -> FloatArray:
    """When an observation first covered each change, seconds since the epoch; infinity if none did. Shape (m,).

    >>> truth = PageLifetimes.of([1], [0, 3], [2.0, 4.0, 7.0], birth=0.0)
    >>> noticed_at(truth, Visits.of([1, 1], [1.0, 5.0], verdict=[0, 2])).tolist()
    [5.0, 5.0, inf]
    """
    return truth.times + _change_outcomes(truth, _ObservedTruth.of(truth, visits))[1]


def change_outcomes(truth: PageLifetimes, visits: Visits, end: float) -> npt.NDArray[np.uint8]:
    """The :class:`ChangeOutcome` of each change of ``truth.times``, by the visits up to ``end``."""
    return _change_outcomes(truth, _ObservedTruth.of(truth, visits.take(visits.time <= end)))[0]


@dataclass(frozen=True, slots=True)
class _ObservedTruth:
    """Observations as columns, by life and time, with what the truth held for each."""

    row: IntArray
    time: FloatArray
    verdict: AnyArray
    opens: BoolArray
    new: IntArray
    """True changes since the observation before; 0 for an opening observation."""
    covered: IntArray
    """True changes since the last observation that said ``CHANGED``, or since the opening one; 0 for an opening
    observation."""

    @classmethod
    def of(cls, truth: PageLifetimes, visits: Visits) -> _ObservedTruth:
        row = truth.row_of_visit(visits.page, visits.time)
        counts = truth.alive(row, visits.time) & _says(visits)
        row, time, verdict = row[counts], visits.time[counts], visits.verdict[counts]
        order = order_by(row, time) if len(row) else None
        if order is not None:
            row, time, verdict = row[order], time[order], verdict[order]
        first = np.flatnonzero(starts_of_runs(row, time))
        if len(first):
            row, time, verdict = row[first], time[first], np.maximum.reduceat(verdict, first)
        opens = starts_of_runs(row)
        passed = ragged_search(truth.offsets, truth.times, row, time, after_equal=True)
        # Changes passed at the last observation that reset the comparison: running maximum, as `passed` never falls.
        resets = opens | (verdict == Verdict.CHANGED)
        known = np.maximum.accumulate(np.where(resets, passed, 0))
        new, covered = (np.where(opens, 0, passed - np.append(0, earlier)) for earlier in (passed[:-1], known[:-1]))
        return cls(row, time, verdict, opens, new, covered)


def _change_outcomes(truth: PageLifetimes, observations: _ObservedTruth) -> tuple[npt.NDArray[np.uint8], FloatArray]:
    """The fate of each change, and seconds until it was covered (infinity if it was not)."""
    row, n = truth.row_of_change(), len(truth)
    fate = np.full(len(row), ChangeOutcome.PENDING, dtype=np.uint8)
    delay = np.full(len(row), np.inf)
    if not len(row) or not len(observations.row):
        return fate, delay
    all_offsets = offsets_of(observations.row, n)
    looked_at = (
        ragged_search(all_offsets, observations.time, row, truth.times, after_equal=False) < all_offsets[row + 1]
    )
    fate[looked_at] = ChangeOutcome.OVERLOOKED
    said = ~observations.opens & (observations.verdict == Verdict.CHANGED)
    told, covers = observations.time[said], observations.covered[said]
    told_offsets = offsets_of(observations.row[said], n)
    position = ragged_search(told_offsets, told, row, truth.times, after_equal=False)
    seen = position < told_offsets[row + 1]
    fate[seen] = np.where(covers[position[seen]] == 1, ChangeOutcome.ALONE, ChangeOutcome.MERGED)
    delay[seen] = told[position[seen]] - truth.times[seen]
    opened = np.full(n, -np.inf)
    opened[observations.row[observations.opens]] = observations.time[observations.opens]
    before = truth.times <= opened[row]
    fate[before], delay[before] = ChangeOutcome.BEFORE, np.inf
    return fate, delay


def _lost(truth: PageLifetimes, visits: Visits, end: float) -> BoolArray:
    """Changes whose version ended by ``end`` and was never fetched while it was current."""
    row = truth.row_of_visit(visits.page, visits.time)
    copied = truth.alive(row, visits.time) & (visits.outcome == Outcome.FETCHED)
    version = ragged_search(truth.offsets, truth.times, row[copied], visits.time[copied], after_equal=True) - 1
    version = version[version >= truth.offsets[row[copied]]]
    lost = np.ones(len(truth.times), dtype=np.bool_)
    lost[version] = False
    of_change = truth.row_of_change()
    ends = truth.death[of_change]
    ends[:-1] = np.where(of_change[1:] == of_change[:-1], truth.times[1:], ends[:-1])
    return lost & (ends <= end)


def _says(visits: Visits) -> BoolArray:
    return np.asarray(visits.answered() | (visits.verdict != Verdict.UNKNOWN))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else float("nan")
