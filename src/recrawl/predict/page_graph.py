"""The links between pages in time, and the graph they form at a moment.

A link is there from the look that first saw it to the look that first missed it. What is not known before a moment is
not in its graph: neither links seen later nor that a link was to go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class TimedLinks:
    """Links from page to page with the time they were seen, in any order."""

    source: IntArray
    """Page ids."""
    target: IntArray
    added: FloatArray
    """When the link was first seen, seconds since the epoch."""
    removed: FloatArray
    """When it was first missed; inf or NaN while it is there."""
    internal: BoolArray
    """Whether it stays on its site."""

    def __len__(self) -> int:
        return len(self.source)

    def before(self, time: float) -> TimedLinks:
        """What may be known before this time: later links are unknown, later removals have not happened. O(links)."""
        known = self.added < time
        removed = np.where(self.removed < time, self.removed, np.inf)
        return TimedLinks(
            self.source[known], self.target[known], self.added[known], removed[known], self.internal[known]
        )

    def graphs_at(self, times: Iterable[float], page: IntArray) -> Iterator[PageGraph]:
        """The graphs of these ascending page ids just before each time. Links from or to other pages are left out.

        O(links · log pages), and O(links) a time.
        """
        (source, known_source), (target, known_target) = _rows(self.source, page), _rows(self.target, page)
        among = known_source & known_target & (source != target)
        for time in times:
            there = among & (self.added < time) & ~(self.removed < time)
            yield PageGraph(len(page), source[there], target[there], self.internal[there])


@dataclass(frozen=True, slots=True)
class PageGraph:
    """A graph of ``pages`` pages, which links name by row. No page links to itself."""

    pages: int
    source: IntArray
    target: IntArray
    internal: BoolArray

    def inlinks(self, *, internal: bool) -> IntArray:
        """How many links within the site, or from outside it, lead to each page. O(links)."""
        return np.bincount(self.target[self.internal == internal], minlength=self.pages)


def _rows(ids: IntArray, page: IntArray) -> tuple[AnyArray, BoolArray]:
    """The row of each id among ``page``, and whether it is there at all."""
    row = np.searchsorted(page, ids)
    if not len(page):
        return row, np.zeros(len(ids), np.bool_)
    row = np.minimum(row, len(page) - 1)
    return row, page[row] == ids
