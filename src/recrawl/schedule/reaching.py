"""When a value that never falls reaches its target: for values that know only how to be asked, jumps included."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from recrawl.model import FloatArray, IntArray

_TOLERANCE = 1e-10
"""Of the time, relative."""
_EXACT = 1e-14
"""Of the value, relative: equal up to rounding."""
_MOST_STEPS = 120
_TINY = 1e-300


class Rising(Protocol):
    """A value of some pages, by position, after some seconds; it never falls with them."""

    def __call__(self, rows: IntArray, elapsed: FloatArray, /) -> FloatArray:
        """The values of the pages at these positions, ``elapsed[k]`` seconds after the look at the k-th of them."""
        ...


def time_to_reach(value: Rising, target: FloatArray, shortest: FloatArray, longest: FloatArray) -> FloatArray:
    """The first moment, to a ten-billionth, at which each value is at its target or above, in [shortest, longest].

    ``shortest`` where it is there already; inf where it is not by ``longest``. Chords on ln value over ln t, with a
    bisection every third step, because values may jump. O(steps) questions about the pages that still move.

    >>> found = time_to_reach(lambda rows, t: np.floor(t), np.array([3.0, 9.0]), np.ones(2), np.full(2, 5.0))
    >>> found.round(9).tolist()
    [3.0, inf]
    """
    everyone = np.arange(len(target))
    at_first, at_last = value(everyone, shortest), value(everyone, longest)
    out = np.where(at_first >= target, shortest, np.where(at_last >= target, longest, np.inf))
    rows = np.flatnonzero((at_first < target) & (at_last >= target))
    low, high = np.log(shortest[rows]), np.log(longest[rows])
    goal = np.log(target[rows])
    f_low, f_high = _log(at_first[rows]) - goal, _log(at_last[rows]) - goal
    was_below = np.zeros(len(rows), dtype=np.int8)
    for step in range(_MOST_STEPS):
        rise = f_high - f_low
        if step % 3 == 2:  # noqa: PLR2004 - every third
            x = 0.5 * (low + high)
        else:
            x = np.clip(low - f_low * (high - low) / np.where(rise > 0, rise, 1.0), low, high)
        fx = _log(value(rows, np.exp(x))) - goal
        below = fx < 0
        # an end that stays twice has its miss halved (Illinois), so that the chord does not hang on to it
        stays_low, stays_high = np.where(was_below < 0, 0.5, 1.0), np.where(was_below > 0, 0.5, 1.0)
        f_low, f_high = np.where(below, fx, f_low * stays_low), np.where(below, f_high * stays_high, fx)
        was_below = np.where(below, 1, -1).astype(np.int8)
        low, high = np.where(below, x, low), np.where(below, high, x)
        out[rows] = np.exp(high)
        out[rows[np.abs(fx) <= _EXACT]] = np.exp(x[np.abs(fx) <= _EXACT])
        live = (high - low > _TOLERANCE) & (np.abs(fx) > _EXACT)
        if not live.any():
            break
        if not live.all():
            rows, goal, low, high = rows[live], goal[live], low[live], high[live]
            f_low, f_high, was_below = f_low[live], f_high[live], was_below[live]
    return out


def _log(value: FloatArray) -> FloatArray:
    return np.log(np.maximum(value, _TINY))
