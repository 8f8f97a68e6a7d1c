"""Due: how long after a look a page is worth the price of the next one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.errors import ConfigError
from recrawl.model import AnyArray, Belief, FloatArray
from recrawl.schedule.objectives import Objective

_FOREVER = 1e12
"""Seconds (30,000 years) after which a value that was not reached never is."""
_TOLERANCE = 1e-10
"""On ln t: a due time is exact to a ten-billionth of its interval."""
_EXACT = 1e-14
"""On ln value: equal up to rounding."""
_SLACK = 1e-8
"""Known brackets are widened by this share, so that rounding does not push a root out of them."""
_MOST_STEPS = 150
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Demand:
    """What n pages ask for at a price: all that decides their intervals, the budget aside."""

    objective: Objective
    belief: Belief
    importance: FloatArray
    """Weight w of each page, ≥ 0."""
    cost: FloatArray
    """Cost c of a visit to each page, > 0."""
    shortest: float
    """Least seconds between two visits, > 0."""
    longest: float
    """Most seconds between two visits; inf for none, so that hopeless pages are never visited."""

    def __post_init__(self) -> None:
        if not 0 < self.shortest <= self.longest:
            raise ConfigError(
                f"Intervals from {self.shortest} s to {self.longest} s are not possible.",
                "The shortest must be above 0 and not above the longest.",
            )

    def __len__(self) -> int:
        return len(self.belief)

    @property
    def horizon(self) -> float:
        """The last moment at which a value may reach the price, seconds."""
        return min(self.longest, _FOREVER)

    def worth(self, elapsed: FloatArray) -> FloatArray:
        """w·U/c of each page ``elapsed`` seconds after a look: the price up to which it is worth a visit."""
        return self.importance * self.objective.value(self.belief, elapsed) / self.cost

    def intervals(self, price: float, low: FloatArray | None = None, high: FloatArray | None = None) -> FloatArray:
        """Seconds after a look at which w·U/c reaches ``price``, at least ``shortest``; O(pages · steps).

        ``inf`` where it is not reached by ``longest``: that page is hopeless at this price. A caller who knows
        the intervals at a lower and at a higher price gives them as ``low`` and ``high`` and saves steps.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            target = np.where(self.importance > 0, price * self.cost / self.importance, np.inf)
        first, last = np.full(len(self), self.shortest), np.full(len(self), self.horizon)
        if low is not None:
            first = np.maximum(first, np.minimum(low * (1.0 - _SLACK), last))
        if high is not None:
            last = np.minimum(last, high * (1.0 + _SLACK))
        found = time_to_value(self.objective, self.belief, target, first, last)
        return found if high is None else np.minimum(found, high)

    def take(self, rows: AnyArray | slice) -> Demand:
        """The demand of the pages at these positions."""
        return Demand(
            self.objective,
            self.belief.take(rows),
            self.importance[rows],
            self.cost[rows],
            self.shortest,
            self.longest,
        )


def time_to_value(
    objective: Objective, belief: Belief, target: FloatArray, shortest: FloatArray, longest: FloatArray
) -> FloatArray:
    """The elapsed time at which each page's value reaches its ``target``, searched in [shortest, longest].

    ``shortest`` where the target is reached before it; ``inf`` where it is not reached by ``longest``, or no
    value arises at all. Works for every belief and objective, because values never fall: chords and bisection on
    ln value over ln t, which is nearly straight. O(pages · steps), over the pages that still move.

    >>> from recrawl.estimate.point import PointBelief
    >>> from recrawl.schedule.objectives import Blur
    >>> two = np.array([0.5, 0.0])
    >>> t = time_to_value(Blur(), PointBelief(two), np.array([25.0, 1.0]), np.full(2, 1e-3), np.full(2, 1e9))
    >>> t.round(6).tolist()  # λt²/2 = 25; a page that never changes is never due
    [10.0, inf]
    """
    at_longest = objective.value(belief, longest)
    at_once = (objective.value(belief, shortest) >= target) & (at_longest > 0)
    out = np.where(at_once, shortest, np.inf)
    inside = np.flatnonzero(~at_once & (at_longest > 0) & (at_longest >= target) & (shortest < longest))
    if len(inside):
        ends = np.log(shortest[inside]), np.log(longest[inside])
        out[inside] = _roots(objective, belief.take(inside), target[inside], *ends)
    return out


def _roots(objective: Objective, belief: Belief, target: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """e^x with ln value(e^x) = ln target, where it is known that low < x <= high."""
    goal = np.log(np.maximum(target, _TINY))

    def miss(x: FloatArray) -> FloatArray:
        return np.log(np.maximum(objective.value(belief, np.exp(x)), _TINY)) - goal

    out = np.empty_like(target)
    rows = np.arange(len(target))
    bracket = np.stack([low, high, miss(low), miss(high)])
    rose = np.zeros(len(target), dtype=np.int8)
    for step in range(_MOST_STEPS):
        x = _guess(bracket, halve=step % 3 == 0 and step > 0)
        fx = miss(x)
        out[rows] = x
        rose = _narrow(bracket, x, fx, rose)
        live = (bracket[1] - bracket[0] > _TOLERANCE) & (np.abs(fx) > _EXACT)
        if not live.any():
            break
        if live.mean() < 0.7:  # noqa: PLR2004 - dropping the settled pages pays from about 30 % on
            rows, goal, belief, rose, bracket = rows[live], goal[live], belief.take(live), rose[live], bracket[:, live]
    return np.exp(out)


def _guess(bracket: FloatArray, *, halve: bool) -> FloatArray:
    """Where the chord crosses zero, or the middle: taken every third time, so that the width surely shrinks."""
    low, high, f_low, f_high = bracket
    if halve:
        return np.asarray(0.5 * (low + high))
    rise = f_high - f_low
    return np.asarray(np.clip(low - f_low * (high - low) / np.where(rise > 0, rise, 1.0), low, high))


def _narrow(bracket: FloatArray, x: FloatArray, fx: FloatArray, rose: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Move the end of the bracket that ``x`` replaces. An end that stays twice has its value halved (Illinois)."""
    up = fx < 0
    bracket[0], bracket[1] = np.where(up, x, bracket[0]), np.where(up, bracket[1], x)
    stays_low, stays_high = np.where(rose < 0, 0.5, 1.0), np.where(rose > 0, 0.5, 1.0)
    bracket[2], bracket[3] = np.where(up, fx, bracket[2] * stays_low), np.where(up, bracket[3] * stays_high, fx)
    return np.where(up, 1, -1).astype(np.int8)
