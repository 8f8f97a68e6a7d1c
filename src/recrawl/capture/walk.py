"""Run a strategy over a static link graph, without time, and return the order of its visits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.capture.strategy import Strategy
from recrawl.model import CapturePlan, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """Pages 0..n−1 and their links, as columns."""

    offsets: IntArray
    """Page p links to ``targets[offsets[p]:offsets[p+1]]``. Shape (n + 1,)."""
    targets: IntArray
    """In the order of the links on the page."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def links(self, page: int) -> IntArray:
        """The pages that ``page`` links to."""
        return self.targets[self.offsets[page] : self.offsets[page + 1]]


@dataclass(frozen=True, slots=True)
class StrategyWalk:
    """What a strategy did."""

    visited: IntArray
    """Pages in the order of their visits, one a slot."""
    revisited: IntArray
    """Pages in the order of their revisits, in the slots that follow."""

    def plan(self) -> CapturePlan:
        """The slots of the visited pages, by ascending page number; of all pages, if all were reached.

        A page without a revisit in a capture that has some keeps the slot of its visit.
        """
        by_page = np.argsort(self.visited)
        visit = by_page.astype(np.int64)
        if not len(self.revisited):
            return CapturePlan(visit)
        revisit = visit.copy()
        rows = np.searchsorted(self.visited[by_page], self.revisited)
        revisit[rows] = len(self.visited) + np.arange(len(self.revisited))
        return CapturePlan(visit, revisit)


def walk(
    strategy: Strategy, graph: LinkGraph, seeds: IntArray, rate: FloatArray, weight: FloatArray | None = None
) -> StrategyWalk:
    """Capture what can be reached from ``seeds``: visit, follow the links, visit on; then the revisits.

    ``rate`` and ``weight`` have one value a page of the graph. With all pages as seeds this is the offline case.
    O(pages + links) beside the strategy's own work.

    >>> from recrawl.capture.single_visit.baseline_orders import BreadthFirst
    >>> graph = LinkGraph(np.array([0, 2, 2, 2]), np.array([2, 1]))
    >>> walk(BreadthFirst(), graph, np.array([0]), np.zeros(3)).visited.tolist()
    [0, 2, 1]
    """
    visited: list[int] = []
    strategy.discover(seeds, rate[seeds], None if weight is None else weight[seeds])
    while (page := strategy.next_page()) is not None:
        visited.append(page)
        links = graph.links(page)
        if len(links):
            strategy.discover(links, rate[links], None if weight is None else weight[links])
    return StrategyWalk(np.array(visited, dtype=np.int64), strategy.revisits())
