"""SHARC-Selective online: the hottest hopeless page first, or else the coldest hopeful one (SHARC 5.5, Algorithm 6)."""

from __future__ import annotations

import numpy as np

from recrawl.capture.selective_judgement import Judgement
from recrawl.capture.site_size import SiteSize
from recrawl.capture.strategy import KnownPages, Terms
from recrawl.model import FloatArray, IntArray

PATIENCE = 1.0 / 32.0
"""A judgement stands until so large a part of the waiting pages have come or gone."""
VISITS_A_JUDGEMENT = 2_000
"""And until one part in so many of all visits was made: a small frontier does not make a long capture slow."""


class SharcSelectiveOnline:
    """The pages known compete for the longest intervals left; the one on the very longest is visited now.

    With v pages visited, w waiting and N expected, the lengths left are 0 to 2(N − v − 1) slots, and the waiting pages
    share the w longest of them (reading 003.32). Algorithm 6 judges all of them again before every visit, which is
    quadratic. Here a judgement stands for a while; ``patience`` 0 is the algorithm to the letter on a short capture.
    Memory is linear, and n visits cost O(n log n / patience).
    """

    def __init__(self, terms: Terms, patience: float = PATIENCE) -> None:
        self._step = 2.0 * terms.delay
        self._patience = patience
        self._known = KnownPages()
        self._size = SiteSize(terms.expected)
        self._judgement = Judgement()
        self._changes = 0
        self._visited: list[int] = []
        self._hopeless: list[int] = []

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Add new pages to those that are judged."""
        new = self._known.admit(page, rate, weight)
        self._size.discovered(len(new.page))
        self._changes += len(new.page)
        self._judgement.add(new)

    def next_page(self) -> int | None:
        """The page for the longest interval left."""
        waiting, visited = self._size.waiting, self._size.visited
        if not waiting:
            return None
        if waiting > 1 and self._changes > max(self._patience * waiting, visited / VISITS_A_JUDGEMENT):
            shortest = self._step * (self._size.estimate() - visited - waiting)
            self._judgement = self._judgement.renewed(shortest, self._step)
            self._changes = 0
        self._changes += 1
        self._size.visit()
        given_up = self._judgement.gives_up
        page = self._judgement.take()
        self._visited.append(page)
        if given_up:
            self._hopeless.append(page)
        return page

    def revisits(self) -> IntArray:
        """All but the page visited last, which is its own revisit, in reverse order."""
        return np.array(self._visited[-2::-1], dtype=np.int64)

    def given_up(self) -> IntArray:
        """The pages given up, as they were visited; the page visited last is not one of them."""
        last = self._visited[-1:]
        return np.array([page for page in self._hopeless if page not in last], dtype=np.int64)
