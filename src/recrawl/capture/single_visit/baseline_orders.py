"""Baseline orders: breadth-first, depth-first, hottest-first, hottest-last and Olston–Pandey (SHARC 4.5.1).

The heat of a page is its rate times its weight: the slope of its blur.

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

from recrawl.capture.strategy import KnownPages
from recrawl.capture.visit_revisit.pyramid import hottest_first
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
