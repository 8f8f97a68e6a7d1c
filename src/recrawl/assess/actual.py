r"""What a capture was really worth, from the exact times of all changes: actual blur and actual incoherence.

Blur counts, for a moment t asked for, the changes between t and the version shown. A change at h lies in between for
every t before it if the version is later, and for every t after it if the version is earlier. So over an observation
interval [o_s, o_e] it counts h − o_s or o_e − h (SHARC 4.19); with a revisit, up to the middle between the two looks
it is the visit that is shown, and the revisit from there (SHARC 4.20, reading 003.13). The mean over many histories of
a rate is the stochastic blur of ``blur.py``.

Changes are ragged: page i changed at ``times[offsets[i]:offsets[i+1]]``, ascending. A change at the instant of a look
was seen by it. Everything is O(pages + changes), or a logarithm more.
"""

from __future__ import annotations

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.arrays import ragged_search


def actual_blur(  # noqa: PLR0913, PLR0917 - the letters of the formula
    offsets: IntArray,
    times: FloatArray,
    visit: FloatArray,
    start: float,
    end: float,
    revisit: FloatArray | None = None,
) -> FloatArray:
    """Blur of each page over [start, end], start < end. A revisit that is NaN never happened.

    >>> actual_blur(np.array([0, 2]), np.array([1.0, 7.0]), np.array([4.0]), 0.0, 10.0).tolist()
    [0.4]
    """
    row = np.repeat(np.arange(len(visit)), np.diff(offsets))
    if revisit is None:
        return _changes_met(row, times, visit, start, end) / (end - start)
    last = np.where(np.isnan(revisit), visit, revisit)
    middle = np.clip((visit + last) / 2.0, start, end)
    met = _changes_met(row, times, visit, start, middle) + _changes_met(row, times, last, middle, end)
    return met / (end - start)


def changes_between(offsets: IntArray, times: FloatArray, after: FloatArray, until: FloatArray) -> IntArray:
    """How often each page changed in (after, until].

    >>> changes_between(np.array([0, 2]), np.array([1.0, 7.0]), np.array([1.0]), np.array([7.0])).tolist()
    [1]
    """
    row = np.arange(len(after))
    first, behind = (ragged_search(offsets, times, row, at, after_equal=True) for at in (after, until))
    return behind - first


def incoherent(offsets: IntArray, times: FloatArray, visit: FloatArray, revisit: FloatArray) -> BoolArray:
    """Which pages changed between visit and revisit: the truth that a revisit finds (SHARC 5.1).

    >>> incoherent(np.array([0, 1, 2]), np.array([3.0, 3.0]), np.array([1.0, 1.0]), np.array([2.0, 3.0])).tolist()
    [False, True]
    """
    return changes_between(offsets, times, visit, revisit) > 0


def actual_incoherence(
    offsets: IntArray, times: FloatArray, visit: FloatArray, revisit: FloatArray, weight: FloatArray | None = None
) -> float:
    """Number of pages that changed between visit and revisit, each counted by its weight."""
    found = incoherent(offsets, times, visit, revisit)
    return float(found.sum() if weight is None else weight[found].sum())


def _changes_met(
    row: IntArray, times: FloatArray, look: FloatArray, start: FloatArray | float, end: FloatArray | float
) -> FloatArray:
    """∫ over t from start to end of the changes between t and the look, for each page."""
    low, high = (np.broadcast_to(side, look.shape)[row] for side in (start, end))
    inside = np.clip(times, low, high)
    met = np.zeros(len(look))
    np.add.at(met, row, np.where(times <= look[row], inside - low, high - inside))
    return met
