"""Recall and precision of changes: which true changes were seen, alone or merged, and which visits were in vain.

Rules of this file:
 1. An observation is a visit that was answered or judged, while its page was there. Observations at the same instant
    are one; the one that says more wins. The first observation of a life has nothing to compare with: it opens, and
    detects nothing.
 2. An observation that says ``CHANGED`` covers every change since the observation before it that said so (or since the
    opening observation), also those that an observation in between overlooked.
 3. What a visit finds after a page's death is a matter of :func:`recrawl.assess.scores.freshness.deletions`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.assess.scores.page_lifetimes import PageLifetimes
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray, Outcome, Verdict, Visits
from recrawl.model.arrays import offsets_of, order_by, ragged_search, starts_of_runs


class ChangeOutcome(enum.IntEnum):
    """What became of a true change."""

    PENDING = 0
    """No observe or after it so far; never, if the page is gone."""
    BEFORE = 1
    """It happened before the first observation: part of what the page was when we came."""
    OVERLOOKED = 2
    """Looked at afterwards, and never called a change."""
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
    """Changes whose version was replaced or deleted before anybody fetched it: certainly missed, for ever."""
    detections: int
    """Observations that said ``CHANGED``."""
    true_detections: int
    """Those that had a true change to cover."""
    observations: int
    """Observations after the opening ones: those that could detect something."""
    wasted: int
    """Observations between which and the observation before nothing had changed."""
    failed: int
    """Visits that were neither answered nor judged."""
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
        """Share of detections that were true: how well changes are told from noise."""
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
    """The :class:`ChangeOutcome` of each change of ``truth.times``, judged by the visits up to ``end``."""
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
