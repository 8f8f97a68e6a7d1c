"""Breadth-first: the page found first is visited first (SHARC Table 4.1b)."""

from __future__ import annotations

from collections import deque

import numpy as np

from recrawl.capture.strategy import KnownPages
from recrawl.model import FloatArray, IntArray


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
