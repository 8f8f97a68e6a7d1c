"""Coherence: pages that provably did not change between their visit and their revisit (SHARC 5.1, 5.6)."""

from __future__ import annotations

import numpy as np

from recrawl.assess.blur import total
from recrawl.model import FloatArray


def page_coherence(rate: FloatArray, length: FloatArray) -> FloatArray:
    """Probability e^{−λI} that each page stays unchanged over its visit–revisit interval of ``length``. O(n).

    >>> page_coherence(np.array([0.5, 0.0]), np.array([0.0, 9.0])).tolist()
    [1.0, 1.0]
    """
    return np.exp(-rate * length)


def expected_coherence(rate: FloatArray, length: FloatArray, weight: FloatArray | None = None) -> float:
    """Expected number of coherent pages of a capture (SHARC Definition 5.6), each counted by its weight. O(n).

    >>> round(expected_coherence(np.array([0.4, 0.35, 0.3, 0.25, 0.2]), np.array([0.0, 2.0, 4.0, 6.0, 8.0])), 4)
    2.2228
    """
    return total(page_coherence(rate, length), weight)
