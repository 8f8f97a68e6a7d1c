"""The value of visits to many pages at once, each with its own clock: one pass over the weights of a grid.

A page that ages at pace m has the rate λ·m: S(t) becomes S(m·t), and everything else follows. So every objective works
unchanged on operational time. After the operational time Λ since the last observation the page is in the state it would
reach after t = Λ/m seconds at its current pace, and U(t) under the paced belief is the index of algorithms §7: for
freshness E[g(λΛ)/(λ·m)], for changes E[g(λΛ)].

With x = λΛ, d = 1 − e^{−x}, h = x − d, g = x·d − h and the pace m, at each rate of the grid

    freshness g/(λm),   changes g,   harmonic h/(λm),   age (x²/2 − g)/(λm)²,   blur x²/(2λm),

and the objective is a sum of these with its basic weights. Two exponentials per page: on half octaves d and h double
along with x, d ← d(2 − d) and h ← 2h + d², without loss however small they are.

The time at which a value reaches its target is searched by evaluations alone; the value never falls, but may jump.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from recrawl.model import AnyArray, Belief, FloatArray, GridBelief, IntArray
from recrawl.model.belief import WeightArray, doubling
from recrawl.model.compiled import can_compile, compiled
from recrawl.schedule.objectives import Basics, Objective, basics_of

_TOLERANCE = 1e-10
"""Of the time, relative."""
_EXACT = 1e-14
"""Of the value, relative: equal up to rounding."""
_MOST_STEPS = 120
_TINY = 1e-300


class RisingFunction(Protocol):
    """A value of some pages, by position, after some seconds; it never falls with them."""

    def __call__(self, rows: IntArray, elapsed: FloatArray, /) -> FloatArray:
        """The values of the pages at these positions.

        ``elapsed[k]`` seconds after the observation of the k-th of them.
        """
        ...


def time_to_reach(value: RisingFunction, target: FloatArray, shortest: FloatArray, longest: FloatArray) -> FloatArray:
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


@dataclass(frozen=True, slots=True)
class PacedBelief:
    """The rates of ``belief`` times ``pace``, page by page.

    >>> from recrawl.estimate.point_evidence import PointBelief
    >>> young = PacedBelief(PointBelief(np.array([0.5])), np.array([4.0]))
    >>> young.mean().tolist(), young.change_density(np.zeros(1)).tolist()
    ([2.0], [2.0])
    """

    belief: Belief
    """Rates per operational second."""
    pace: FloatArray
    """Operational seconds per second, > 0."""

    def __len__(self) -> int:
        return len(self.belief)

    def mean(self) -> FloatArray:
        """E[λ]·m, per second."""
        return self.belief.mean() * self.pace

    def quantile(self, q: float) -> FloatArray:
        """The rate below which λ·m lies with probability q, per second."""
        return self.belief.quantile(q) * self.pace

    def survival(self, t: FloatArray) -> FloatArray:
        """S(m·t)."""
        return self.belief.survival(t * self.pace)

    def p_change(self, t: FloatArray) -> FloatArray:
        """1 − S(m·t)."""
        return self.belief.p_change(t * self.pace)

    def unchanged_time(self, t: FloatArray) -> FloatArray:
        """∫₀ᵗ S(m·s) ds, seconds."""
        return self.belief.unchanged_time(t * self.pace) / self.pace

    def change_density(self, t: FloatArray) -> FloatArray:
        """−m·S'(m·t), per second."""
        return self.belief.change_density(t * self.pace) * self.pace

    def expect(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """E[function(λ·m)]: where paces differ, one question to the belief for each of them."""
        out = np.empty(len(self))
        paces, which = np.unique(self.pace, return_inverse=True)
        for number, pace in enumerate(paces.tolist()):
            rows = np.flatnonzero(which == number)
            out[rows] = self.belief.take(rows).expect(lambda rate, m=pace: function(rate * m))  # type: ignore[misc]
        return out

    def take(self, rows: AnyArray | slice) -> PacedBelief:
        """The belief about the pages at these positions."""
        return PacedBelief(self.belief.take(rows), self.pace[rows])


POWERS = (1, 0, 1, 2, 1)
"""Of the pace that the basic objectives are divided by."""
_TILE = 16
_SMALL = 0.02
"""Below this x the difference x − d would cancel."""


def paced_value(
    objective: Objective, belief: Belief, rows: IntArray, passed: FloatArray, pace: FloatArray
) -> FloatArray:
    """U of visits to rows of a belief when ``passed`` operational seconds have gone by. O(rows · rates)."""
    basics = basics_of(objective)
    if isinstance(belief, GridBelief) and basics is not None and can_compile():
        out = np.empty(len(rows))
        time, speed = (np.ascontiguousarray(column, dtype=np.float64) for column in (passed, pace))
        _grid(
            belief.weights, belief.rates, doubling(belief.rates), rows, time, speed, _parts(basics, belief.rates), out
        )
        return out
    return objective.value(PacedBelief(belief.take(rows), pace), passed / pace)


def _parts(basics: Basics, rates: FloatArray) -> FloatArray:
    """What g, h and x²/2 count for at each rate, by the power of the pace they are divided by. Shape (3, 3, K)."""
    freshness, changes, harmonic, age, blur = basics
    nothing, even = np.zeros_like(rates), np.ones_like(rates)
    return np.stack(
        [
            [changes * even, nothing, nothing],
            [freshness / rates, harmonic / rates, blur / rates],
            [-age / rates**2, nothing, age / rates**2],
        ]
    )


@compiled
def _grid(  # noqa: C901, PLR0912, PLR0913, PLR0917 - a kernel is one loop over plain arrays
    weights: WeightArray,
    rates: FloatArray,
    step: int,
    rows: IntArray,
    passed: FloatArray,
    pace: FloatArray,
    parts: FloatArray,
    out: FloatArray,
) -> None:
    # A tile of pages at a time, because each rate waits for the one before it, but no page for another.
    size = len(rates)
    d, h = np.empty((size, _TILE)), np.empty((size, _TILE))
    held, time, total, value = np.zeros((size, _TILE)), np.zeros(_TILE), np.empty(_TILE), np.empty((3, _TILE))
    for start in range(0, len(rows), _TILE):
        pages = min(_TILE, len(rows) - start)
        for j in range(pages):
            time[j] = passed[start + j]
            for k in range(size):
                held[k, j] = weights[rows[start + j], k]
        total[:] = 0.0
        value[:] = 0.0
        for k in range(size):
            if k < step:
                for j in range(pages):
                    x = rates[k] * time[j]
                    d[k, j] = -math.expm1(-x)
                    small = x * x * (0.5 - x * (1 / 6 - x * (1 / 24 - x / 120)))
                    h[k, j] = small if x < _SMALL else x - d[k, j]
            else:
                for j in range(_TILE):
                    before = d[k - step, j]
                    h[k, j] = 2.0 * h[k - step, j] + before * before
                    d[k, j] = before * (2.0 - before)
            for j in range(_TILE):
                total[j] += held[k, j]
            for power in range(3):
                of_g, of_h, of_square = parts[power, 0, k], parts[power, 1, k], parts[power, 2, k]
                if of_g != 0.0 or of_h != 0.0 or of_square != 0.0:
                    for j in range(_TILE):
                        x = rates[k] * time[j]
                        g = x * d[k, j] - h[k, j]
                        value[power, j] += held[k, j] * (of_g * g + of_h * h[k, j] + of_square * 0.5 * x * x)
        for j in range(pages):
            m = pace[start + j]
            out[start + j] = max(value[0, j] + value[1, j] / m + value[2, j] / (m * m), 0.0) / total[j]
