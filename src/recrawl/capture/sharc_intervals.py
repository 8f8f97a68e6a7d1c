"""SHARC-Intervals: give each page an interval short enough for it, offline (SHARC 5.4) and online (SHARC 5.4.3).

Offline the pages with the shortest intervals come first. Online the longest interval comes first, as the pages become
known. A set of small integers finds the nearest free slot: bits in three levels of words of 1,024 bits.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import dataclass

import numpy as np

from recrawl.capture.online_pages import SiteSize
from recrawl.capture.strategy import CaptureTerms, KnownPages, PlanDecision
from recrawl.model import BoolArray, CapturePlan, FloatArray, IntArray
from recrawl.model.compiled import compiled

_BITS = 10
_LOW = (1 << _BITS) - 1
LARGEST = (1 << 3 * _BITS) - 1
"""The largest integer a set can hold."""


class IntegerSet:
    """Integers from 0 to :data:`LARGEST`. Three steps a call, however many there are."""

    def __init__(self) -> None:
        self._levels: tuple[dict[int, int], dict[int, int], dict[int, int]] = ({}, {}, {})

    def __bool__(self) -> bool:
        return bool(self._levels[2])

    def add(self, number: int) -> None:
        """Put it in, if it is not."""
        for words in self._levels:
            number, bit = number >> _BITS, number & _LOW
            words[number] = words.get(number, 0) | 1 << bit

    def remove(self, number: int) -> None:
        """Take out one that is in."""
        for words in self._levels:
            number, bit = number >> _BITS, number & _LOW
            words[number] ^= 1 << bit
            if words[number]:
                return
            del words[number]

    def smallest(self) -> int:
        """The smallest one; the set must not be empty."""
        number = 0
        for words in reversed(self._levels):
            word = words[number]
            number = number << _BITS | ((word & -word).bit_length() - 1)
        return number

    def at_most(self, number: int) -> int:
        """The largest one that is not above ``number``, or −1.

        >>> numbers = IntegerSet()
        >>> for number in (5, 7000, 2_000_000):
        ...     numbers.add(number)
        >>> numbers.at_most(1_999_999), numbers.at_most(7000), numbers.at_most(4)
        (7000, 7000, -1)
        """
        number = min(number, LARGEST)
        reach = 2  # the number itself counts, but not the words that hold it
        for level, words in enumerate(self._levels):
            number, bit = number >> _BITS, number & _LOW
            below = words.get(number, 0) & ((reach << bit) - 1)
            if below:
                found = number << _BITS | (below.bit_length() - 1)
                for lower in reversed(self._levels[:level]):
                    found = found << _BITS | (lower[found].bit_length() - 1)
                return found
            reach = 1
        return -1


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


def place_and_shrink(rate: FloatArray, delay: float, threshold: float) -> PlanDecision:
    """The plan of :func:`sharc_intervals`, and which pages it gives up."""
    schedule = schedule_intervals(confidence_slots(rate, delay, threshold, 2 * len(rate)))
    return PlanDecision(schedule.shrunk(), ~schedule.hopeful)


@dataclass(frozen=True, slots=True)
class ShrunkSchedule:
    """Expected coherent pages of a schedule as placed, and with its intervals moved together (reading 003.24)."""

    before: float
    after: float


def shrinking(rate: FloatArray, delay: float, threshold: float) -> ShrunkSchedule:
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
    return ShrunkSchedule(float(np.exp(-rate * before).sum()), float(np.exp(-rate * after).sum()))


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


class SharcIntervalsOnline:
    """Visits the page of the longest interval whose end is a free slot behind the middle (SHARC Algorithm 4).

    If there is none, the page of the shortest interval is given up. When all are visited, the ends move together in
    their order, and the pages given up follow in reverse order; the page visited last is its own revisit
    (reading 003.25). The middle is the last visit of the size expected; ends are kept as slots from the start, so
    they mean the same when that estimate moves. Weights have no part in it. Three steps for each run of taken ends.
    """

    def __init__(self, terms: CaptureTerms) -> None:
        self._delay = terms.delay
        self._bearable = math.log(1.0 / terms.threshold)
        """Expected changes from visit to revisit that a page may have (SHARC 5.5)."""
        self._known = KnownPages()
        self._size = SiteSize(terms.expected)
        self._lengths = IntegerSet()
        self._waiting: defaultdict[int, deque[int]] = defaultdict(deque)
        self._before_taken: dict[int, int] = {}
        self._hopeful: list[tuple[int, int]] = []
        self._hopeless: list[int] = []
        self._last: int | None = None

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Put new pages behind those of the same length."""
        new = self._known.admit(page, rate, weight)
        self._size.discovered(len(new.page))
        for one, its_rate in zip(new.page, new.rate, strict=True):
            in_a_slot = its_rate * self._delay
            length = int(min(self._bearable / in_a_slot, LARGEST)) if in_a_slot else LARGEST
            self._lengths.add(length)
            self._waiting[length].append(one)

    def next_page(self) -> int | None:
        """The page of the longest interval that can be placed now, or else of the shortest."""
        if not self._lengths:
            return None
        slot = self._size.visited
        length = self._longest_placeable(slot, middle=self._size.estimate() - 1)
        self._size.visit()
        if length >= 0:
            page = self._take(length)
            self._hopeful.append((slot + length, page))
            self._before_taken[slot + length] = slot + length - 1
        else:
            page = self._take(self._lengths.smallest())
            self._hopeless.append(page)
        self._last = page
        return page

    def revisits(self) -> IntArray:
        """Hopeful pages in the order of their ends, then those given up, the last of them first."""
        hopeful = [page for _, page in sorted(self._hopeful) if page != self._last]
        return np.concatenate([np.array(hopeful, dtype=np.int64), self.given_up()[::-1]])

    def given_up(self) -> IntArray:
        """The hopeless pages as they were visited; the page visited last is not one of them."""
        return np.array([page for page in self._hopeless if page != self._last], dtype=np.int64)

    def _longest_placeable(self, slot: int, middle: int) -> int:
        """The longest waiting length from ``slot`` to a free slot behind ``middle``, or −1."""
        end = slot + LARGEST
        while end > middle:
            end = slot + self._lengths.at_most(end - slot)
            free = self._free_at_most(end)
            if free == end:
                return end - slot if end > middle else -1
            end = free
        return -1

    def _free_at_most(self, end: int) -> int:
        """The last slot up to ``end`` that is no page's end; paths get shorter when they are walked."""
        taken = self._before_taken
        while end in taken:
            before = taken[end]
            if before in taken:
                taken[end] = taken[before]
            end = before
        return end

    def _take(self, length: int) -> int:
        pages = self._waiting[length]
        page = pages.popleft()
        if not pages:
            del self._waiting[length]
            self._lengths.remove(length)
        return page
