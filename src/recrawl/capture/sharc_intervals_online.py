"""SHARC-Intervals online: the longest interval first, as the pages become known (SHARC 5.4.3)."""

from __future__ import annotations

import math
from collections import defaultdict, deque

import numpy as np

from recrawl.capture.integer_set import LARGEST, IntegerSet
from recrawl.capture.site_size import SiteSize
from recrawl.capture.strategy import KnownPages, Terms
from recrawl.model import FloatArray, IntArray


class SharcIntervalsOnline:
    """Visits the page of the longest interval whose end is a free slot behind the middle (SHARC Algorithm 4).

    If there is none, the page of the shortest interval is given up. When all are visited, the ends move together in
    their order, and the pages given up follow in reverse order; the page visited last is its own revisit
    (reading 003.25). The middle is the last visit of the size expected; ends are kept as slots from the beginning, so
    they mean the same when that estimate moves. Weights have no part in it. Three steps for each run of taken ends.
    """

    def __init__(self, terms: Terms) -> None:
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
