"""The pyramid: visit–revisit intervals one inside the other, around one moment (SHARC 5.3, 5.5).

Some pyramid has the highest expected coherence among all schedules that visit every page and then see every page
again, whatever the rates (reading 003.27).
"""

from __future__ import annotations

import numpy as np

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
