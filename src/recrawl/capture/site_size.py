"""An estimate of the number of pages of a site, made while it is captured.

The strategies of the thesis are given the size. Here it may be left open: then it is estimated from the growth of the
frontier, in two ways, and the lower of the two counts.

 - Branching: if each visit finds g new pages, w waiting pages find w·g, and these w·g², …, so the site has v + w/(1 −
   g) pages, for v visited and w waiting ones. This sees the end of a tree.
 - Saturation: if links lead anywhere, the growth g falls linearly to zero where all pages are known; the line through
   the last two quarters of the visits shows where.

Growth is counted over the later half of the visits, so that the first pages, which are full of links, soon stop
counting. ``benchmarks/capture.py --sensitivity`` measures the cost of the estimate compared with knowing the size.
"""

from __future__ import annotations

import math

MOST_GROWTH = 4.0
"""The estimate is at most this many times the pages known: early on a capture finds more than it visits."""
REFRESHES = 16
"""The estimate is held until the visits have grown by one part in this many, so that it settles."""
_ENOUGH_VISITS = 8


class SiteSize:
    """The number of pages expected, never below the number known. O(1) a call, one integer a visit."""

    def __init__(self, expected: int | None = None) -> None:
        self._expected = expected
        self._known = 0
        self._known_at_visit: list[int] = []
        self._next_refresh = 0
        self._held = 0

    @property
    def visited(self) -> int:
        """How many pages have been visited."""
        return len(self._known_at_visit)

    @property
    def waiting(self) -> int:
        """How many pages are known and not visited."""
        return self._known - len(self._known_at_visit)

    def discovered(self, pages: int) -> None:
        """Count pages never seen before."""
        self._known += pages

    def visit(self) -> None:
        """Count a visit, before its links are known."""
        self._known_at_visit.append(self._known)

    def estimate(self) -> int:
        """How many pages the site has in all, as far as can be said now.

        >>> size = SiteSize()
        >>> for links in (1, 8, 3, 2, 2, 1, 1, 0, 1):
        ...     size.discovered(links)
        ...     size.visit()
        >>> size.waiting, size.estimate()
        (10, 19)
        """
        if self._expected is not None:
            return max(self._expected, self._known)
        if self.visited >= self._next_refresh:
            self._next_refresh = self.visited + max(1, self.visited // REFRESHES)
            self._held = int(min(self._branching(), self._saturation(), MOST_GROWTH * self._known))
        return max(self._held, self._known)

    def _branching(self) -> float:
        """All pages, if those waiting lead to as many new ones as the later half of the visits did."""
        half = self.visited // 2
        growth = (self._known - self._known_at_visit[half]) / (self.visited - half) if self.visited else 0.0
        return self.visited + self.waiting / (1.0 - growth) if growth < 1.0 else math.inf

    def _saturation(self) -> float:
        """All pages, if the growth goes on to fall as it did from the third quarter of the visits to the last."""
        visited = self.visited
        if visited < _ENOUGH_VISITS:
            return math.inf
        first, second = visited // 2, 3 * visited // 4
        before, between, now = self._known_at_visit[first], self._known_at_visit[second], self._known
        earlier, later = (between - before) / (second - first), (now - between) / (visited - second)
        if later >= earlier:
            return math.inf
        return (between + now) / 2.0 + later * (now - before) / 2.0 / (earlier - later)
