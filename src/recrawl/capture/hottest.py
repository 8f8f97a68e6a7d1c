"""Hottest-first and hottest-last: by change rate among the pages found so far (SHARC 4.5.1).

The heat of a page is its rate times its weight: the slope of its blur.
"""

from __future__ import annotations

import heapq

import numpy as np

from recrawl.capture.strategy import KnownPages
from recrawl.model import FloatArray, IntArray


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
