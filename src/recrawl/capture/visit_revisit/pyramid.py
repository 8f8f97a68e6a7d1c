"""The pyramid: nested visit–revisit intervals around one moment, and simple orders of revisits (SHARC 5.2–5.6).

Some pyramid has the highest expected coherence among all schedules that visit every page and then revisit every page,
whatever the rates (reading 003.27; SHARC 5.3, 5.5). The module also has:

 * any single-visit strategy with revisits, first in first out or last in first out (SHARC 5.6.1);
 * SHARC-Revisits: visits and revisits in organ-pipe order, for low blur with two versions of each page (SHARC 5.2). All
   intervals have one length, so the expected coherence is that of any first-in-first-out order;
 * the case of a fixed capture and a fixed observation interval: the hottest page next to the middle of the observation
   interval (SHARC 4.3.3).
"""

from __future__ import annotations

import enum

import numpy as np

from recrawl.capture.single_visit.sharc_single_visit import organ_pipes
from recrawl.capture.strategy import Strategy
from recrawl.model import CapturePlan, FloatArray, IntArray


def pyramid(inner_first: IntArray, *, once: bool) -> CapturePlan:
    """The plan whose intervals hold each other, given the pages from the shortest interval to the longest. O(n).

    ``once``: the innermost page is visited once, so lengths are 0, 2, 4, … slots; else 1, 3, 5, … (reading 003.17).

    >>> plan = pyramid(np.array([2, 0, 1]), once=True)
    >>> plan.visit.tolist(), plan.revisit.tolist()
    ([1, 0, 2], [3, 4, 2])
    """
    pages = len(inner_first)
    rank = np.empty(pages, dtype=np.int64)
    rank[inner_first] = np.arange(pages)
    return CapturePlan(pages - 1 - rank, pages - int(once) + rank)


def pyramid_lengths(pages: int, delay: float, *, once: bool) -> FloatArray:
    """Seconds from visit to revisit, from the innermost interval outwards.

    >>> pyramid_lengths(3, 0.5, once=True).tolist(), pyramid_lengths(3, 0.5, once=False).tolist()
    ([0.0, 1.0, 2.0], [0.5, 1.5, 2.5])
    """
    return delay * np.arange(0.0 if once else 1.0, 2 * pages, 2.0)


def heat(rate: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Rate times weight: the expected loss a second as long as little is lost, by which pages are called hot."""
    return rate if weight is None else rate * weight


def hottest_first(rate: FloatArray, weight: FloatArray | None = None) -> IntArray:
    """The pages by falling heat; equally hot ones keep their order. O(n log n)."""
    return np.argsort(-heat(rate, weight), kind="stable")


class RevisitOrder(enum.Enum):
    """In which order pages are seen again."""

    FIFO = "fifo"
    """As they were visited: all visit–revisit intervals have one length."""
    LIFO = "lifo"
    """In reverse: the intervals are nested, the page visited last has the shortest."""


class RevisitedStrategy:
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


def sharc_revisits(rate: FloatArray, weight: FloatArray | None = None) -> CapturePlan:
    """Organ pipes twice, one after the other (SHARC Definition 5.3). O(n log n).

    It is the greedy schedule, hottest page to the least penalty, and not the best: at 5 pages up to 2 % more blur,
    0.3 % in the mean (reading 003.18). With weights, rate times weight takes the place of the rate.

    >>> import numpy as np
    >>> plan = sharc_revisits(np.arange(6.0))
    >>> plan.visit.tolist(), plan.revisit.tolist()
    ([0, 5, 1, 4, 2, 3], [6, 11, 7, 10, 8, 9])
    """
    visit = organ_pipes(rate, weight).visit
    return CapturePlan(visit, visit + len(visit))


def around_middle(
    rate: FloatArray, visit_time: FloatArray, start: float, end: float, weight: FloatArray | None = None
) -> CapturePlan:
    """Which page to visit in which slot, for slots at given times and an observation from ``start`` to ``end``.

    The penalty of a visit grows with its distance from the middle of the observation, on either side alike, so the
    hottest page goes to the nearest slot (reading 003.7); of two equally near, to the later one. No order has less
    blur. O(n log n), times in seconds. With slots centred on the observation these are organ pipes.

    >>> around_middle(np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 2.0]), 0.0, 10.0).visit.tolist()
    [0, 1, 2]
    """
    nearest = np.lexsort((-visit_time, np.abs(visit_time - (start + end) / 2.0)))
    hottest = np.argsort(heat(rate, weight), kind="stable")[::-1]
    visit = np.empty(len(rate), dtype=np.int64)
    visit[hottest] = nearest
    return CapturePlan(visit)
