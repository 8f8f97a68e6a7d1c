"""When a value is reached: the search for due times, over any belief and objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from recrawl.estimate.point import PointBelief
from recrawl.model import AnyArray, Belief, FloatArray, GammaBelief
from recrawl.model.compiled import can_compile
from recrawl.model.grid_belief import GridBelief, doubling
from recrawl.schedule.objectives import Basics, Objective, basics_of

_TOLERANCE = 1e-10
"""On ln t: a due time is exact to a ten-billionth of its interval."""
_EXACT = 1e-14
"""On ln value: equal up to rounding."""
_MOST_STEPS = 150
_TINY = 1e-300
_MANY = 100
"""From as many pages on machine code is worth its start."""


def time_to_value(  # noqa: PLR0913 - what is searched, and where
    objective: Objective,
    belief: Belief,
    target: FloatArray,
    shortest: FloatArray,
    longest: FloatArray,
    *,
    from_above: bool = False,
) -> FloatArray:
    """The elapsed time at which each page's value reaches its ``target``, searched in [shortest, longest].

    ``shortest`` where the target is reached before it; ``inf`` where it is not reached by ``longest``, or no
    value arises at all. Works for every belief and objective, because values never fall: chords and bisection on
    ln value over ln t, which is nearly straight. O(pages · steps), over the pages that still move. Many pages of the
    usual beliefs go through machine code, which begins at the longest time where that is the better guess
    (``from_above``).

    >>> from recrawl.estimate.point import PointBelief
    >>> from recrawl.schedule.objectives import Blur
    >>> two = np.array([0.5, 0.0])
    >>> t = time_to_value(Blur(), PointBelief(two), np.array([25.0, 1.0]), np.full(2, 1e-3), np.full(2, 1e9))
    >>> t.round(6).tolist()  # λt²/2 = 25; a page that never changes is never due
    [10.0, inf]
    """
    basics = basics_of(objective)
    if len(belief) >= _MANY and can_compile() and basics is not None:
        found = _compiled(basics, belief, target, shortest, longest, from_above=from_above)
        if found is not None:
            return found
    return search(_Values(objective, belief), target, shortest, longest)


class RisingValue(Protocol):
    """Pages with a value that never falls with time."""

    def __call__(self, elapsed: FloatArray) -> FloatArray:
        """The value of each page after so many seconds."""
        ...

    def take(self, rows: AnyArray | slice) -> Self:
        """The pages at these positions."""
        ...


@dataclass(frozen=True, slots=True)
class _Values:
    """The value of a visit to each page."""

    objective: Objective
    belief: Belief

    def __call__(self, elapsed: FloatArray) -> FloatArray:
        return self.objective.value(self.belief, elapsed)

    def take(self, rows: AnyArray | slice) -> _Values:
        return _Values(self.objective, self.belief.take(rows))


def search(value: RisingValue, target: FloatArray, shortest: FloatArray, longest: FloatArray) -> FloatArray:
    """As :func:`time_to_value`, for any value that never falls."""
    at_longest = value(longest)
    at_once = (value(shortest) >= target) & (at_longest > 0)
    out = np.where(at_once, shortest, np.inf)
    inside = np.flatnonzero(~at_once & (at_longest > 0) & (at_longest >= target) & (shortest < longest))
    if len(inside):
        ends = np.log(shortest[inside]), np.log(longest[inside])
        out[inside] = _roots(value.take(inside), target[inside], *ends)
    return out


def _roots(value: RisingValue, target: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """e^x with ln value(e^x) = ln target, where it is known that low < x <= high."""
    goal = np.log(np.maximum(target, _TINY))

    def miss(x: FloatArray) -> FloatArray:
        return np.log(np.maximum(value(np.exp(x)), _TINY)) - goal

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
            rows, goal, value, rose, bracket = rows[live], goal[live], value.take(live), rose[live], bracket[:, live]
    return np.exp(out)


def _compiled(  # noqa: PLR0913 - as time_to_value
    basics: Basics,
    belief: Belief,
    target: FloatArray,
    shortest: FloatArray,
    longest: FloatArray,
    *,
    from_above: bool,
) -> FloatArray | None:
    """In machine code, for the beliefs it knows; else nothing."""
    from recrawl.schedule import due_kernels as kernels  # numba is slow to import, and may be missing

    shares = np.array(basics, dtype=np.float64)
    of_all, parts = np.empty(0), np.zeros((3, 0))
    weights: AnyArray
    match belief:
        case GridBelief(rates, weights) if doubling(rates) == 2:  # noqa: PLR2004 - half octaves
            kind, of_all, parts = kernels.GRID, rates, kernels.factors(shares, rates)
        case GammaBelief(shape, of_all):
            kind, weights = kernels.GAMMA, shape[:, None]
        case PointBelief(rate):
            kind, weights = kernels.POINT, rate[:, None]
        case _:
            return None
    out = np.empty(len(belief))
    goal, first, last = (np.ascontiguousarray(column) for column in (target, shortest, longest))
    of_page = np.ascontiguousarray(weights)
    kernels.search(kind, of_page, np.ascontiguousarray(of_all), shares, parts, goal, first, last, from_above, out)
    return out


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
