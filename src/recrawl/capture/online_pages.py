"""What online strategies know of a site during its capture: waiting pages by heat, and an estimate of the site's size.

:class:`RankedPages` orders waiting pages by heat; pages are inserted anywhere and removed by rank.

The strategies of the thesis are given the number of pages. Here it may be unknown: then :class:`SiteSize` estimates it
from the growth of the frontier in two ways, and uses the lower value.

 - Branching: if each visit finds g new pages, w waiting pages find w·g, and these w·g², …, so the site has v + w/(1 −
   g) pages, for v visited and w waiting ones. This recognises the end of a tree.
 - Saturation: if links lead anywhere, the growth g falls linearly to zero where all pages are known; the line through
   the last two quarters of the visits shows where.

Growth is counted over the later half of the visits, so that the first pages, which have many links, soon stop counting.
``benchmarks/capture.py --sensitivity`` measures the cost of the estimate compared with knowing the size.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import chain

_BLOCK = 512
Entry = tuple[float, int, int]
"""Heat, when it came, page: equally hot pages rank in the order they came."""


class RankedPages:
    """A sorted list in blocks, with a tree of their sizes (Fenwick 1994) to find a rank. O(√n) a call, mostly in C."""

    def __init__(self) -> None:
        self._blocks: list[list[Entry]] = []
        self._ends: list[Entry] = []
        """No entry of a block lies behind its end, none of the next before it."""
        self._sizes: list[int] = [0]
        self._count = 0
        self._came = 0

    def __len__(self) -> int:
        return self._count

    def add(self, heat: Sequence[float], page: Sequence[int]) -> None:
        """Put pages in their places. A single one costs a search in a block, many at once a sort."""
        new = list(zip(heat, range(self._came, self._came + len(page)), page, strict=True))
        self._came += len(new)
        self._count += len(new)
        if len(new) > _BLOCK and len(new) > self._count // 8:
            everything = sorted(chain(*self._blocks, new))
            self._blocks = [everything[start : start + _BLOCK] for start in range(0, len(everything), _BLOCK)]
            self._ends = [block[-1] for block in self._blocks]
            self._rebuild()
            return
        for entry in new:
            self._insert(entry)

    def take(self, rank: int) -> int:
        """Remove the page that has ``rank`` colder ones; −1 is the hottest.

        >>> ranked = RankedPages()
        >>> ranked.add([0.3, 0.1, 0.2], [7, 8, 9])
        >>> ranked.take(1), ranked.take(-1), ranked.take(0)
        (9, 7, 8)
        """
        number, place = (len(self._blocks) - 1, -1) if rank < 0 else self._find(rank)
        block = self._blocks[number]
        page = block.pop(place)[2]
        self._count -= 1
        if block:
            self._resize(number, -1)
        else:
            del self._blocks[number], self._ends[number]
            self._rebuild()
        return page

    def colder_than(self, heat: float) -> int:
        """How many pages are colder."""
        wanted: Entry = (heat, -1, -1)
        number = bisect_left(self._ends, wanted)
        if number == len(self._blocks):
            return self._count
        before, node = 0, number
        while node:
            before += self._sizes[node]
            node &= node - 1
        return before + bisect_left(self._blocks[number], wanted)

    def _insert(self, entry: Entry) -> None:
        if not self._blocks:
            self._blocks, self._ends = [[entry]], [entry]
            self._rebuild()
            return
        number = bisect_left(self._ends, entry)
        if number == len(self._ends):
            number -= 1
            self._ends[number] = entry
        block = self._blocks[number]
        insort(block, entry)
        if len(block) <= 2 * _BLOCK:
            self._resize(number, 1)
            return
        self._blocks.insert(number + 1, block[_BLOCK:])
        del block[_BLOCK:]
        self._ends.insert(number, block[-1])
        self._rebuild()

    def _find(self, rank: int) -> tuple[int, int]:
        """The block that holds a rank, and the place there."""
        first = self._blocks[0]
        if rank < len(first):
            return 0, rank
        number, step = 0, 1 << (len(self._blocks).bit_length() - 1)
        while step:
            below = number + step
            if below <= len(self._blocks) and self._sizes[below] <= rank:
                number = below
                rank -= self._sizes[below]
            step >>= 1
        return number, rank

    def _resize(self, number: int, by: int) -> None:
        sizes = self._sizes
        node = number + 1
        while node < len(sizes):
            sizes[node] += by
            node += node & -node

    def _rebuild(self) -> None:
        """Node i holds the size of the (i & −i) blocks that end with block i − 1."""
        sizes = [0, *map(len, self._blocks)]
        for node in range(1, len(sizes)):
            above = node + (node & -node)
            if above < len(sizes):
                sizes[above] += sizes[node]
        self._sizes = sizes


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
