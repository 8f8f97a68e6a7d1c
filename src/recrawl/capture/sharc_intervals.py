"""SHARC-Intervals: give each page an interval short enough for it, the pages with the shortest first (SHARC 5.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.capture.decision import Decision
from recrawl.model import BoolArray, CapturePlan, FloatArray, IntArray
from recrawl.model.compiled import compiled

_WORTH_COMPILING = 2_000


@dataclass(frozen=True, slots=True)
class IntervalSchedule:
    """Slots of visit and revisit, and whether that interval is short enough for the page."""

    visit: IntArray
    revisit: IntArray
    hopeful: BoolArray

    def shrunk(self) -> CapturePlan:
        """Hopeful visits moved late and revisits early, in their order; hopeless pages around them (SHARC 5.4.2).

        No hopeful interval gets longer, because its rank from the middle cannot grow. Hopeless ones do, so the
        expected coherence of the whole may fall (reading 003.24). O(n log n).
        """
        pages = len(self.hopeful)
        visit, revisit = np.empty(pages, dtype=np.int64), np.empty(pages, dtype=np.int64)
        visit[np.lexsort((self.visit, self.hopeful))] = np.arange(pages)
        revisit[np.lexsort((self.revisit, ~self.hopeful))] = np.arange(pages - 1, 2 * pages - 1)
        return CapturePlan(visit, revisit)


def confidence_slots(rate: FloatArray, delay: float, threshold: float, longest: int) -> IntArray:
    """Over how many slots each page stays unchanged with probability ``threshold``, ``longest`` at most (SHARC 5.5).

    Rounded down (reading 003.21). O(n).

    >>> confidence_slots(np.array([0.0, 0.01, 1.0]), 1.0, 0.95, 12).tolist()
    [12, 5, 0]
    """
    with np.errstate(divide="ignore", over="ignore"):
        slots = math.log(1.0 / threshold) / (rate * delay)
    return np.floor(np.minimum(slots, longest)).astype(np.int64)


def sharc_intervals(rate: FloatArray, delay: float, threshold: float) -> CapturePlan:
    """The shrunk schedule of the pages' confidence intervals. Weights have no part in it."""
    return place_and_shrink(rate, delay, threshold).plan


def place_and_shrink(rate: FloatArray, delay: float, threshold: float) -> Decision:
    """The plan of :func:`sharc_intervals`, and which pages it gives up."""
    schedule = schedule_intervals(confidence_slots(rate, delay, threshold, 2 * len(rate)))
    return Decision(schedule.shrunk(), ~schedule.hopeful)


@dataclass(frozen=True, slots=True)
class Shrinking:
    """Expected coherent pages of a schedule as placed, and with its intervals moved together (reading 003.24)."""

    before: float
    after: float


def shrinking(rate: FloatArray, delay: float, threshold: float) -> Shrinking:
    """What shrinking does to the expected coherence of SHARC-Intervals: it may lose some.

    Hopeless pages are moved outwards, and here the only other page that is seen twice has nothing to gain:

    >>> some = shrinking(np.array([0.4, 0.2, 0.01, 0.4]), 1.0, 0.9)
    >>> round(some.before, 2), round(some.after, 2)
    (2.84, 2.48)
    """
    schedule = schedule_intervals(confidence_slots(rate, delay, threshold, 2 * len(rate)))
    shrunk = schedule.shrunk()
    after = shrunk.revisit_times(0.0, delay) - shrunk.visit_times(0.0, delay)
    before = delay * (schedule.revisit - schedule.visit)
    return Shrinking(float(np.exp(-rate * before).sum()), float(np.exp(-rate * after).sum()))


def schedule_intervals(slots: IntArray) -> IntervalSchedule:
    """Place intervals of at most the given lengths around the middle (SHARC Algorithm 3).

    The shortest is visited once, in the middle. Then, by rising length, each takes the longest free pair of slots that
    is not too long for it, of equally long ones the pair visited last. Who finds none is hopeless; hopeless pages fill
    what is left, the longest innermost (reading 003.23). A pair is mostly found at once; at worst O(n²).

    >>> schedule_intervals(np.array([4, 12, 9, 5, 7, 1])).revisit.tolist()
    [8, 6, 9, 7, 10, 5]
    """
    by_length = np.argsort(slots, kind="stable")
    place = _place_compiled if len(slots) > _WORTH_COMPILING else _place
    before, after = place(slots[by_length])
    hopeful = before >= 0
    _fill_with_hopeless(before, after)
    page = np.argsort(by_length)
    middle = len(slots) - 1
    return IntervalSchedule((middle - before)[page], (middle + after)[page], hopeful[page])


def _fill_with_hopeless(before: IntArray, after: IntArray) -> None:
    """Free distances from the middle, rising, to the hopeless pages from the longest to the shortest."""
    every = np.arange(len(before))
    hopeless = np.flatnonzero(before < 0)[::-1]
    for distance in (before, after):
        distance[hopeless] = np.setdiff1d(every, distance[distance >= 0], assume_unique=True)


def _place(length: IntArray) -> tuple[IntArray, IntArray]:  # noqa: C901 - one kernel, which can call no other
    """Slots before and after the middle for lengths in rising order; −1 for the hopeless.

    ``up[d]`` leads to the shortest free distance ≥ d before the middle, ``down[d]`` to the longest free one ≤ d after
    it, by paths that get shorter when they are walked. An exact fit lies at a ≥ length − longest; where there is none,
    all free a are tried.
    """
    pages = len(length)
    before = np.full(pages, -1, dtype=np.int64)
    after = np.full(pages, -1, dtype=np.int64)
    before[:1] = after[:1] = 0
    up, down = np.arange(pages + 1), np.arange(pages + 1)
    farthest, longest = pages - 1, pages - 1
    for page in range(1, pages):
        while farthest > 0 and up[farthest] != farthest:
            farthest -= 1
        while down[longest] != longest:
            longest = down[longest]
        best, best_a, best_b = 1, 0, 0
        if farthest + longest <= length[page] and min(farthest, longest) > 0:
            best_a, best_b = farthest, longest
        else:
            first = max(1, length[page] - longest)
            for start in (first, 1):
                a = start
                while best < length[page]:
                    while up[a] != a:
                        up[a] = up[up[a]]
                        a = up[a]
                    if a >= min(pages, length[page]):
                        break
                    b = min(length[page] - a, longest)
                    while down[b] != b:
                        down[b] = down[down[b]]
                        b = down[b]
                    if b > 0 and (a + b > best or (a + b == best and a < best_a)):
                        best, best_a, best_b = a + b, a, b
                    a += 1
        if best_a > 0:
            before[page], after[page] = best_a, best_b
            up[best_a], down[best_b] = best_a + 1, best_b - 1
    return before, after


_place_compiled = compiled(_place)
