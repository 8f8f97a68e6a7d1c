"""Waiting pages in order of their heat: inserted anywhere, removed by rank."""

from __future__ import annotations

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
