"""SHARC-Online: organ pipes as far as the pages are known (SHARC 4.4)."""

from __future__ import annotations

import numpy as np

from recrawl.capture.ranked_pages import RankedPages
from recrawl.capture.site_size import SiteSize
from recrawl.capture.strategy import KnownPages, Terms
from recrawl.model import FloatArray, IntArray


class SharcOnline:
    """Coldest first while few pages are known, hottest first past the middle, and between them organ pipes.

    Algorithm 2 as repaired in reading 003.9. With v pages visited, w waiting and N expected: the coldest while
    v + w ≤ N/2; then, until v > N/2, the page of rank v, as if every page so far had left its partner for the way
    down; then the hottest. With everything known at the start this is SHARC-Offline.
    """

    def __init__(self, terms: Terms) -> None:
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
