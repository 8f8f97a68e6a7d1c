"""The seam between a site capture and whoever carries it out: a state machine without I/O.

A driver tells a strategy of pages as it finds them and asks which to visit next; when no page is left, it asks
which to see again. Simulator and live crawler drive the same object. A strategy never learns the time: one visit
takes one slot, and slots follow each other.

Rules every strategy keeps (``tests/conformance/test_strategy.py``):
 1. Each page it was told of is named by ``next_page`` exactly once; no other page ever is.
 2. Being told again of a known page changes nothing, whatever rate comes with it.
 3. ``None`` means "none that I know of": after more discoveries there may be more.
 4. Equal calls give equal answers, and the arrays it is given are neither kept nor altered.
 5. Revisits name visited pages only, each at most once, and only after the last visit.
"""

from __future__ import annotations

from typing import Protocol

from recrawl.model import FloatArray, IntArray


class Strategy(Protocol):
    """Decides the order of a whole-site capture."""

    def discover(self, page: IntArray, rate: FloatArray) -> None:
        """Be told of pages in the order they were found (on one page: in the order of its links).

        ``rate`` is the believed change rate of each, per second. Offline, this is called once with all pages;
        online, first with the seeds and then after each visit with the links of the page visited.
        """
        ...

    def next_page(self) -> int | None:
        """The page to visit now, or ``None`` if every page told of so far has been named."""
        ...

    def revisits(self) -> IntArray:
        """The pages to see a second time, in order. Empty for a single-visit capture."""
        ...


class KnownPages:
    """Which pages a strategy has been told of; keeps rule 2 for all of them."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def admit(self, page: IntArray, rate: FloatArray) -> list[tuple[int, float]]:
        """The pages never seen before with their rates, in order, from now on known. O(len(page)).

        >>> import numpy as np
        >>> known = KnownPages()
        >>> known.admit(np.array([4, 2, 4]), np.array([0.1, 0.2, 0.3]))
        [(4, 0.1), (2, 0.2)]
        """
        new = []
        for one, its_rate in zip(page.tolist(), rate.tolist(), strict=True):
            if one not in self._known:
                self._known.add(one)
                new.append((one, its_rate))
        return new
