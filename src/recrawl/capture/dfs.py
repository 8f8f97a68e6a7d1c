"""Depth-first: the links of the page visited last come first (SHARC Table 4.1a)."""

from __future__ import annotations

import numpy as np

from recrawl.capture.strategy import KnownPages
from recrawl.model import FloatArray, IntArray


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
