"""The best valley: each page, from the hottest on, takes the shortest or the longest interval left (past the thesis).

SHARC-Selective is one valley, found greedily. The best one is found by dynamic programming over the number of pages
that have taken a short interval. It often is the optimum, but need not be: rates 0.5, 1 and 0.01 on the lengths 2, 3
and 4, in this order, beat every valley.
"""

from __future__ import annotations

import numpy as np

from recrawl.capture.visit_revisit.pyramid import hottest_first
from recrawl.model import BoolArray, ByteArray, FloatArray, IntArray
from recrawl.model.compiled import can_compile, compiled

_WORTH_COMPILING = 3_000


def best_valley(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> IntArray:
    """The pages from the shortest interval to the longest. O(n²) time, n²/8 bytes.

    Pages are taken by falling rate, weights or not.

    >>> best_valley(np.array([0.4, 0.35, 0.3, 0.25, 0.2]), 1.0).tolist()
    [0, 2, 4, 3, 1]
    """
    hottest = hottest_first(rate)
    weights = np.ones(len(rate)) if weight is None else weight
    choose = _choose_compiled if can_compile() and len(rate) > _WORTH_COMPILING else _choose
    inside = _followed(choose(rate[hottest], weights[hottest], 2.0 * delay))
    return np.concatenate([hottest[inside], hottest[~inside][::-1]])


def _choose(rate: FloatArray, weight: FloatArray, step: float) -> ByteArray:
    """For each page and number taken inside, as bits: whether it takes the shortest interval left.

    With i pages placed, f of them on the f shortest intervals, page i is worth w·qᶠ inside, where q = e^{−λ·step}, and
    w·qᶠ·q^{n−1−i} outside. ``best[f]`` is what pages i … n − 1 are worth together; the choices are kept as bits.
    """
    pages = len(rate)
    chosen = np.zeros((pages, (pages + 7) // 8), dtype=np.uint8)
    best = np.zeros(pages + 1)
    length = step * np.arange(pages)
    for page in range(pages - 1, -1, -1):
        worth = weight[page] * np.exp(-rate[page] * length[: page + 1])
        inside = worth + best[1 : page + 2]
        outside = worth * np.exp(-rate[page] * length[pages - 1 - page]) + best[: page + 1]
        best[: page + 1] = np.maximum(inside, outside)
        chosen[page, : page // 8 + 1] = np.packbits(inside >= outside, bitorder="little")
    return chosen


def _choose_in_a_loop(rate: FloatArray, weight: FloatArray, step: float) -> ByteArray:
    """As :func:`_choose`, by a multiplication in place of each exponential."""
    pages = len(rate)
    chosen = np.zeros((pages, (pages + 7) // 8), dtype=np.uint8)
    best = np.zeros(pages + 1)
    for page in range(pages - 1, -1, -1):
        worth, factor = weight[page], np.exp(-rate[page] * step)
        farther = np.exp(-rate[page] * step * (pages - 1 - page))
        for taken in range(page + 1):
            inside, outside = worth + best[taken + 1], worth * farther + best[taken]
            if inside >= outside:
                best[taken] = inside
                chosen[page, taken >> 3] |= np.uint8(1 << (taken & 7))
            else:
                best[taken] = outside
            worth *= factor
    return chosen


def _followed(chosen: ByteArray) -> BoolArray:
    """The choices along the way from no page placed."""
    inside = np.zeros(len(chosen), dtype=np.bool_)
    taken = 0
    for page, row in enumerate(chosen):
        inside[page] = row[taken >> 3] >> (taken & 7) & 1
        taken += int(inside[page])
    return inside


_choose_compiled = compiled(_choose_in_a_loop)
