"""Replayable randomness: a number from a seed and a key, without the state of a generator.

The state of a policy is a fold over its visits in any batches; a generator would make it depend on their order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recrawl.model import FloatArray, IntArray

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB))
_LAST = np.uint64(31)
_UNUSED = np.uint64(11)
_STEPS = 2.0**-53


def uniform(seed: int, *columns: IntArray | FloatArray) -> FloatArray:
    """A number in (0, 1) for each row of the columns; equal for equal rows and seeds, else as if drawn. O(rows).

    Each column is stirred in with the finisher of SplitMix64 (Steele, Lea and Flood 2014).

    >>> bool((uniform(1, np.arange(5)) == uniform(1, np.arange(5))).all())
    True
    """
    state = np.full(len(columns[0]), np.uint64(seed % 2**64))
    with np.errstate(over="ignore"):
        for column in columns:
            state = _stirred((state ^ np.ascontiguousarray(column).view(np.uint64)) + _ODD)
    return ((state >> _UNUSED).astype(np.float64) + 0.5) * _STEPS


def _stirred(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    for shift, factor in _MIX:
        state = (state ^ (state >> shift)) * factor
    return state ^ (state >> _LAST)
