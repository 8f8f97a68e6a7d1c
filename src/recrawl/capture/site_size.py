"""How many pages a site will turn out to have, guessed while it is captured.

The strategies of the thesis are given the size. Here it may be left open: then it is estimated from how fast new pages
turn up. If each visit finds g new pages, those that wait will have found w·g + w·g² + … by the time nothing is left, so
the site has v + w/(1 − g) pages, for v visited and w waiting ones. Growth is counted over the later half of the visits,
so that the first pages, which are full of links to everything, are soon forgotten.
"""

from __future__ import annotations

MOST_GROWTH = 2.0
"""The estimate is at most this many times the pages known: early on a capture finds more than it visits."""
REFRESHES = 16
"""The estimate is held until the visits have grown by one part in this many, so that it settles."""


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
        (10, 34)
        """
        if self._expected is not None:
            return max(self._expected, self._known)
        if self.visited >= self._next_refresh:
            self._next_refresh = self.visited + max(1, self.visited // REFRESHES)
            self._held = int(
                min(self.visited + self.waiting / max(1.0 - self._growth(), 1e-9), MOST_GROWTH * self._known)
            )
        return max(self._held, self._known)

    def _growth(self) -> float:
        """New pages a visit, over the later half of the visits."""
        if not self.visited:
            return 0.0
        half = self.visited // 2
        return (self._known - self._known_at_visit[half]) / (self.visited - half)
