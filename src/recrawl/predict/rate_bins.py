"""Classes of rates with equally many pages each, for learners that tell classes apart (SHARC 6.3)."""

from __future__ import annotations

import numpy as np

from recrawl.model import FloatArray, IntArray


def equal_frequency_bins(values: FloatArray, bins: int) -> IntArray:
    """The bin of each value, 0 for the least: ⌊first rank · bins / n⌋, so that equal values share one (reading 003.38).

    Where many values are equal, bins are uneven, and some may be empty. O(n log n).

    >>> equal_frequency_bins(np.array([5.0, 1.0, 1.0, 9.0]), 2).tolist()
    [1, 0, 0, 1]
    """
    first_rank = np.searchsorted(np.sort(values), values, side="left")
    return (first_rank * bins // max(len(values), 1)).astype(np.int64)
