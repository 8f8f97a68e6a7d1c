"""Single-visit orders: SHARC-Offline (SHARC 4.3), SHARC-Online (SHARC 4.4), and the baselines (SHARC 4.5.1).

The heat of a page is its rate times its weight: the slope of its blur. The further from the middle of the crawl a page
is visited, the higher its blur penalty. So the hottest pages belong into the middle and the coldest to both ends, like
organ pipes. SHARC-Offline knows all pages beforehand; SHARC-Online approximates the organ pipes with the pages known so
far.

 * Breadth-first: the page found first is visited first (SHARC Table 4.1b).
 * Depth-first: the links of the page visited last come first (SHARC Table 4.1a).
 * Hottest-first and hottest-last: by change rate among the pages found so far (SHARC 4.5.1).
 * Olston–Pandey as the thesis compares it: by utility, with all pages known. The utility of a page is its blur if it
   were visited only at the end of the capture. Its expectation is λ times half the length of the capture, so the order
   is hottest first. The thesis computes it from the true change times, past and future; a caller that has them passes
   that utility in place of the rate. The published figures lie within 2 % of this reading (reading 003.14).
"""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np

from recrawl.capture.online_pages import RankedPages, SiteSize
from recrawl.capture.strategy import CaptureTerms, KnownPages
from recrawl.model import CapturePlan, FloatArray, IntArray


class BreadthFirst:
    """A queue. Rates and weights are ignored; O(1) a page."""

    def __init__(self) -> None:
        self._known = KnownPages()
        self._waiting: deque[int] = deque()

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Put new pages behind the waiting ones."""
        self._waiting.extend(self._known.admit(page, rate, weight).page)

    def next_page(self) -> int | None:
        """The page that waits longest."""
        return self._waiting.popleft() if self._waiting else None

    def revisits(self) -> IntArray:
        """None: a single-visit strategy."""
        return np.empty(0, dtype=np.int64)


class DepthFirst:
    """A stack. Rates and weights are ignored; O(1) a page."""

    def __init__(self) -> None:
        self._known = KnownPages()
        self._waiting: list[int] = []

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Put new pages before the waiting ones, themselves in the order given (reading 003.15)."""
        self._waiting.extend(reversed(self._known.admit(page, rate, weight).page))

    def next_page(self) -> int | None:
        """The first page of the newest batch that has one left."""
        return self._waiting.pop() if self._waiting else None

    def revisits(self) -> IntArray:
        """None: a single-visit strategy."""
        return np.empty(0, dtype=np.int64)


class HottestFirst:
    """Always the hottest page; of equal ones, the one found first. O(log n) a page."""

    _sign = -1.0

    def __init__(self) -> None:
        self._known = KnownPages()
        self._waiting: list[tuple[float, int, int]] = []
        self._found = 0

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Add new pages to the heap."""
        new = self._known.admit(page, rate, weight)
        for one, heat in zip(new.page, new.heat(), strict=True):
            heapq.heappush(self._waiting, (self._sign * heat, self._found, one))
            self._found += 1

    def next_page(self) -> int | None:
        """The page at the top of the heap."""
        return heapq.heappop(self._waiting)[-1] if self._waiting else None

    def revisits(self) -> IntArray:
        """None: a single-visit strategy."""
        return np.empty(0, dtype=np.int64)


class HottestLast(HottestFirst):
    """Always the coldest page; of equal ones, the one found first. O(log n) a page."""

    _sign = 1.0


def by_utility(utility: FloatArray, weight: FloatArray | None = None) -> CapturePlan:
    """The plan that visits the page of the highest utility times weight first. O(n log n).

    >>> by_utility(np.array([0.1, 0.3, 0.2])).visit.tolist()
    [2, 0, 1]
    """
    visit = np.empty(len(utility), dtype=np.int64)
    visit[hottest_first(utility, weight)] = np.arange(len(utility))
    return CapturePlan(visit)


def organ_pipes(rate: FloatArray, weight: FloatArray | None = None) -> CapturePlan:
    """The plan of least blur over the capture's own interval (SHARC 4.7). O(n log n).

    With pages by ascending rate, page i gets slot i/2 if i is even, else n − (i−1)/2, where n is the last slot.
    With weights the weighted blur is least: rate times weight takes the place of the rate.
    Algorithm 1 prints the two sides exchanged (reading 003.5). Pages of equal rate keep their order.

    >>> organ_pipes(np.arange(6.0)).visit.tolist()
    [0, 5, 1, 4, 2, 3]
    """
    rank = np.arange(len(rate))
    slot = np.where(rank % 2 == 0, rank // 2, len(rate) - 1 - rank // 2)
    visit = np.empty(len(rate), dtype=np.int64)
    visit[np.argsort(rate if weight is None else rate * weight, kind="stable")] = slot
    return CapturePlan(visit)


def centred_start(pages: int, delay: float, start: float, end: float) -> float:
    """When to start so that the middle of the crawl is the middle of the observation (SHARC Theorem 4.4).

    Seconds; ``delay`` between two visits. No start that lies whole delays away gives organ pipes a lower blur, if
    the crawl may be moved at all (reading 003.7). A start up to half a delay earlier can: the very least blur puts the
    rate-weighted mean of the visit times in the middle, and the hotter page of each pair is visited after it.

    >>> centred_start(6, 1.0, 10.0, 30.0)
    17.5
    """
    return (start + end - (pages - 1) * delay) / 2.0


def first_visit(terms: CaptureTerms, pages: int) -> float:
    """When to make the first of N visits, in seconds from the earliest start of the capture; 0 without an interval.

    The middle of the visits is then the middle of the observation interval, unless the capture can only start later.

    >>> first_visit(CaptureTerms(delay=10.0, observe=(0.0, 600.0)), 7), first_visit(CaptureTerms(delay=1.0), 7)
    (270.0, 0.0)
    """
    return 0.0 if terms.observe is None else max(centred_start(pages, terms.delay, *terms.observe), 0.0)


class SharcOnline:
    """Coldest first while few pages are known, hottest first past the middle, and between them organ pipes.

    Algorithm 2 as repaired in reading 003.9. With v pages visited, w waiting and N expected: the coldest while
    v + w ≤ N/2; then, until v > N/2, the page of rank v, as if every page so far had left its partner for the way
    down; then the hottest. With everything known at the start this is SHARC-Offline.
    """

    def __init__(self, terms: CaptureTerms) -> None:
        self._known = KnownPages()
        self._waiting = RankedPages()
        self._size = SiteSize(terms.expected)

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Rank new pages by rate times weight among the waiting ones."""
        new = self._known.admit(page, rate, weight)
        self._size.discovered(len(new.page))
        self._waiting.add(new.heat(), new.page)

    def next_page(self) -> int | None:
        """The page that fits the phase of the capture."""
        visited, waiting = self._size.visited, self._size.waiting
        if not waiting:
            return None
        middle = self._size.estimate() / 2.0
        self._size.visit()
        if visited + waiting <= middle:
            return self._waiting.take(0)
        if visited <= middle and visited < waiting:
            return self._waiting.take(visited)
        return self._waiting.take(-1)

    def revisits(self) -> IntArray:
        """None: a single-visit strategy."""
        return np.empty(0, dtype=np.int64)


def heat(rate: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Rate times weight: the expected loss a second as long as little is lost, by which pages are called hot."""
    return rate if weight is None else rate * weight


def hottest_first(rate: FloatArray, weight: FloatArray | None = None) -> IntArray:
    """The pages by falling heat; equally hot ones keep their order. O(n log n)."""
    return np.argsort(-heat(rate, weight), kind="stable")
