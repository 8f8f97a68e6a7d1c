"""How much worse than best the blur of a single-visit capture can become when k downloads are misplaced."""

from __future__ import annotations

import numpy as np

from recrawl.assess.blur import penalty
from recrawl.model import FloatArray


def worst_case_increase(rate: FloatArray, misplaced: int, delay: float, weight: FloatArray | None = None) -> float:
    """What the blur of the best order grows by, at worst, if ``misplaced`` pages are out of place. O(n log n).

    At worst the hottest pages take the outermost slots, the hottest first, and the rest keeps the best order in what
    is left (SHARC Theorem 4.5, readings 003.10 and 003.11). The theorem is stated for pairs of equal rates; this is
    the same difference for any rates, times weights. Like in the thesis it is not divided by the length of the capture:
    divide by (n − 1)·delay for blur as ``blur.py`` counts it.

    >>> worst_case_increase(np.array([1.0, 1, 2, 2, 3, 3, 4, 4, 5, 5]), 4, 1.0)
    176.0
    """
    heat = np.sort(rate if weight is None else rate * weight)
    pages = len(heat)
    slot = np.arange(pages, dtype=np.float64) * delay
    # The coldest page has the largest penalty in the best order.
    outermost_first = np.sort(penalty(slot, 0.0, max(pages - 1, 0) * delay))[::-1]
    worst = np.concatenate([heat[pages - misplaced :][::-1], heat[: pages - misplaced]])
    return float((worst - heat) @ outermost_first)
