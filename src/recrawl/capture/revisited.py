"""Any single-visit strategy with revisits, first in first out or last in first out (SHARC 5.6.1)."""

from __future__ import annotations

import enum

import numpy as np

from recrawl.capture.strategy import Strategy
from recrawl.model import FloatArray, IntArray


class RevisitOrder(enum.Enum):
    """In which order pages are seen again."""

    FIFO = "fifo"
    """As they were visited: all visit–revisit intervals have one length."""
    LIFO = "lifo"
    """In reverse: the intervals are nested, the page visited last has the shortest."""


class Revisited:
    """Visits as another strategy says, and then sees every page again."""

    def __init__(self, strategy: Strategy, order: RevisitOrder) -> None:
        self._strategy = strategy
        self._order = order
        self._visited: list[int] = []

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Pass it on."""
        self._strategy.discover(page, rate, weight)

    def next_page(self) -> int | None:
        """As the other strategy says."""
        page = self._strategy.next_page()
        if page is not None:
            self._visited.append(page)
        return page

    def revisits(self) -> IntArray:
        """Every page visited, in the order chosen."""
        visited = np.array(self._visited, dtype=np.int64)
        return visited if self._order is RevisitOrder.FIFO else visited[::-1]
