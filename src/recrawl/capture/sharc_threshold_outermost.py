"""SHARC-Threshold from the outside in: the scan of the thesis' figures, which works online (SHARC 5.3)."""

from __future__ import annotations

import math

import numpy as np

from recrawl.capture.ranked_pages import RankedPages
from recrawl.capture.site_size import SiteSize
from recrawl.capture.strategy import KnownPages, Terms
from recrawl.model import FloatArray, IntArray


class SharcThresholdOutermost:
    """Each interval, the longest first, goes to the hottest known page that can stand it.

    That is one with e^{−λI} > τ; if there is none, the hottest page known is given up. Table 5.1 was made by this scan
    (reading 003.19). It keeps every page just above τ and is far worse than the definition, but needs no
    more than the pages known and the size. Weights have no part in it.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._known = KnownPages()
        self._waiting = RankedPages()
        self._size = SiteSize(terms.expected)
        self._visited: list[int] = []
        self._hopeless: list[int] = []

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Rank new pages by rate among the waiting ones."""
        new = self._known.admit(page, rate, weight)
        self._size.discovered(len(new.page))
        self._waiting.add(new.rate, new.page)

    def next_page(self) -> int | None:
        """The hottest page that is hopeful on the longest interval left, or else the hottest."""
        if not self._waiting:
            return None
        left = self._size.estimate() - self._size.visited
        self._size.visit()
        length = (2 * left - 1) * self._terms.delay
        limit = math.log(1.0 / self._terms.threshold) / length if length else math.inf
        hopeful = self._waiting.colder_than(limit)
        page = self._waiting.take(hopeful - 1)
        self._visited.append(page)
        if not hopeful:
            self._hopeless.append(page)
        return page

    def revisits(self) -> IntArray:
        """Every page, the one visited last first."""
        return np.array(self._visited[::-1], dtype=np.int64)

    def given_up(self) -> IntArray:
        """The pages given up, as they were visited."""
        return np.array(self._hopeless, dtype=np.int64)
