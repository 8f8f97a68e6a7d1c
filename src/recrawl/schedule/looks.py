"""Looks as a rule of thumb needs them: one after the other, with how each ended and whether visits failed before it.

What counts as a look is what :class:`~recrawl.model.Histories` says. Histories keep gaps and verdicts; the schedulers
of today's crawlers also ask whether the page was gone, or whether a failure made them forget it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recrawl.model import ANSWERED, AnyArray, BoolArray, FloatArray, IntArray, Verdict, Visits
from recrawl.model.arrays import order_by, starts_of_runs

_UNKNOWN, _CHANGED = int(Verdict.UNKNOWN), int(Verdict.CHANGED)


class Looks(NamedTuple):
    """Looks by row and time."""

    row: IntArray
    time: FloatArray
    """Seconds since the epoch."""
    seconds: FloatArray
    """Since the look before, > 0; NaN for the look that opens the history of its page."""
    changed: BoolArray
    """Whether it found a change; never for a look that opens."""
    outcome: npt.NDArray[np.uint8]
    after_failure: BoolArray
    """Whether a visit failed since the look before."""

    def take(self, which: AnyArray | slice) -> Looks:
        """The looks at these positions, or where this mask is true."""
        return Looks(
            self.row[which],
            self.time[which],
            self.seconds[which],
            self.changed[which],
            self.outcome[which],
            self.after_failure[which],
        )

    def opens(self) -> BoolArray:
        """Which looks are the first of their page."""
        return np.isnan(self.seconds)


def fold(row: IntArray, visits: Visits, last_look: FloatArray, failed: BoolArray | None = None) -> Looks:
    """The looks among ``visits``, which are to the pages in ``row``. O(n) if sorted by row and time, else O(n log n).

    ``last_look`` (NaN for never) and ``failed`` (whether a visit failed since) have one entry a page and are moved on
    **in place**. Visits not after the last look are ignored. Without ``failed``, nobody asks for failures.
    """
    if not np.isfinite(visits.time).all():
        msg = "a visit has no finite time"
        raise ValueError(msg)
    if bool((row[1:] > row[:-1]).all()):
        return _fold_single(row, visits, last_look, failed)
    news = ~(visits.time <= last_look[row])
    row, time, says, outcome = row[news], visits.time[news], visits.verdict[news], visits.outcome[news]
    order = order_by(row, time)
    if order is not None:
        row, time, says, outcome = row[order], time[order], says[order], outcome[order]
    starts = np.flatnonzero(starts_of_runs(row, time))
    if len(starts) < len(
        row
    ):  # visits at the same instant are one: the verdict that says more, an answer if there is one
        row, time = row[starts], time[starts]
        says, outcome = np.maximum.reduceat(says, starts), np.minimum.reduceat(outcome, starts)
    answered: BoolArray = outcome <= ANSWERED
    at = _positions(row, says, answered, last_look)
    first = starts_of_runs(row[at])
    seconds = time[at] - np.where(first, last_look[row[at]], time[np.roll(at, 1)])
    changed = (says[at] == _CHANGED) & ~np.isnan(seconds)
    after_failure = np.zeros(len(at), np.bool_)
    if failed is not None:
        after_failure = _move_failures(row, ~answered & (says == _UNKNOWN), at, failed)
    last_look[row[at]] = time[at]  # of equal indices the last assignment stands
    return Looks(row[at], time[at], seconds, changed, outcome[at], after_failure)


def _fold_single(row: IntArray, visits: Visits, last_look: FloatArray, failed: BoolArray | None) -> Looks:
    """As :func:`fold`, of one visit a page, by row: nearly all that a crawler tells are of this kind."""
    before = last_look[row]
    news, unseen = ~(visits.time <= before), np.isnan(before)
    speaks, answered = visits.verdict != _UNKNOWN, visits.outcome <= ANSWERED
    at = np.flatnonzero(news & (speaks | (answered & unseen)))
    own, time, outcome = row[at], visits.time[at], visits.outcome[at]
    after_failure = np.zeros(len(at), np.bool_) if failed is None else failed[own]
    if failed is not None:
        failed[own] = False
        failed[row[news & ~answered & ~speaks]] = True
    last_look[own] = time
    changed = (visits.verdict[at] == _CHANGED) & ~unseen[at]
    return Looks(own, time, time - before[at], changed, outcome, after_failure)


def _move_failures(row: IntArray, fails: BoolArray, at: IntArray, failed: BoolArray) -> BoolArray:
    """Whether a visit failed between each look (at the positions ``at``) and the one before; moves ``failed`` on."""
    count = np.concatenate([np.zeros(1, np.int64), np.cumsum(fails)])
    heads = np.flatnonzero(starts_of_runs(row))
    first = starts_of_runs(row[at])
    since = np.where(first, heads[np.searchsorted(heads, at, side="right") - 1], np.roll(at, 1) + 1)
    found: BoolArray = (count[at] > count[since]) | (first & failed[row[at]])
    failed[row[at]] = False
    behind = heads.copy()
    behind[np.searchsorted(row[heads], row[at])] = at + 1
    failed[row[heads]] |= count[np.append(heads[1:], len(row))[: len(heads)]] > count[behind]
    return found


def rounds(row: IntArray) -> Iterator[IntArray]:
    """Positions of the first entries of all rows, then of the second ones, and so on; ``row`` is sorted. O(n log n).

    >>> [part.tolist() for part in rounds(np.array([3, 3, 3, 5, 8, 8]))]
    [[0, 3, 4], [1, 5], [2]]
    """
    if not len(row):
        return
    starts = np.flatnonzero(starts_of_runs(row))
    if len(starts) == len(row):
        yield starts
        return
    place = np.arange(len(row)) - np.repeat(starts, np.diff(np.append(starts, len(row))))
    yield from np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1])


def _positions(row: IntArray, says: AnyArray, answered: BoolArray, last_look: FloatArray) -> IntArray:
    """Where the looks are: the first answer to a page never seen, and all that say something about change."""
    speaks: BoolArray = says != _UNKNOWN
    looks: IntArray = np.flatnonzero(answered | speaks)
    opens = starts_of_runs(row[looks]) & np.isnan(last_look[row[looks]])
    return looks[opens | speaks[looks]]
