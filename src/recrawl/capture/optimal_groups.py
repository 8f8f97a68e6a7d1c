"""Pages in groups of like rate and like weight, so that a large site can be planned as a small one."""

from __future__ import annotations

import numpy as np

from recrawl.model import FloatArray, IntArray


def alike(rate: FloatArray, weight: FloatArray, size: int) -> IntArray:
    """An order of the pages in which every ``size`` of them that follow each other are alike. O(n log² n).

    The pages are split in halves, each time by rate or by weight, whichever differs more (in ranks), until a part is a
    group. With equal weights this is the order by falling rate.
    """
    by_rate, by_weight = _ranks(-rate), _ranks(weight)
    order = np.lexsort((by_weight, by_rate))
    parts = [(0, len(rate))]
    while parts:
        start, end = parts.pop()
        inside = order[start:end]
        key = max((by_rate[inside], by_weight[inside]), key=_spread)
        order[start:end] = inside[np.argsort(key, kind="stable")]
        if end - start > size:
            middle = start + (end - start + size) // (2 * size) * size
            parts += [(start, middle), (middle, end)] if start < middle < end else []
    return order


def _ranks(value: FloatArray) -> FloatArray:
    """The share of pages with a lower value."""
    return np.searchsorted(np.sort(value), value) / len(value)


def _spread(rank: FloatArray) -> float:
    return float(rank.max() - rank.min())
