"""Due times: how long after an observation the value of the next visit reaches the price.

The search works for any belief and objective. It also covers conditional requests: an unchanged page costs c₀ (a 304),
a changed one c₁ more (its body).

A visit every t seconds costs (c₀ + c₁(1 − S(t)))/t, so the interval at the price ν solves w·U = ν(c₀ + c₁·C), where C =
1 − S + t·S' is the value of *changes* (algorithms §1). The value divided by this cost still never falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from recrawl.errors import ConfigError
from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import AnyArray, Belief, FloatArray, GammaBelief
from recrawl.model.belief import GridBelief, doubling
from recrawl.model.compiled import can_compile
from recrawl.schedule.objectives import Basics, CapturedChanges, Objective, basics_of
from recrawl.schedule.price.price_roots import DemandExtremes

_TOLERANCE = 1e-10
"""On ln t: a due time is exact to a ten-billionth of its interval."""
_EXACT = 1e-14
"""On ln value: equal up to rounding."""
_MOST_STEPS = 150
_TINY = 1e-300
_MANY = 100
"""From as many pages on compiled code is worth its start."""


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
    usual beliefs go through compiled code, which starts at the longest time where that is the better guess
    (``from_above``).

    >>> from recrawl.estimate.point_evidence import PointBelief
    >>> from recrawl.schedule.objectives import BlurObjective
    >>> two = np.array([0.5, 0.0])
    >>> t = time_to_value(BlurObjective(), PointBelief(two), np.array([25.0, 1.0]), np.full(2, 1e-3), np.full(2, 1e9))
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
        """The value of each page after N seconds."""
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
    """In compiled code, for the beliefs it knows; else nothing."""
    from recrawl.schedule.price import due_kernels as kernels  # numba is slow to import, and may be missing

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


@dataclass(frozen=True, slots=True)
class BelievedCost:
    """A belief about pages, and what visits to them cost without and with a change."""

    belief: Belief
    cost: FloatArray
    transfer: FloatArray

    def take(self, rows: AnyArray | slice) -> BelievedCost:
        """The pages at these positions."""
        return BelievedCost(self.belief.take(rows), self.cost[rows], self.transfer[rows])

    def value(self, objective: Objective, elapsed: FloatArray) -> FloatArray:
        """U/(c₀ + c₁·C) of each page."""
        bodies = self.transfer * CapturedChanges().value(self.belief, elapsed)
        return objective.value(self.belief, elapsed) / (self.cost + bodies)


@dataclass(frozen=True, slots=True)
class ValuePerCost:
    """The value of a visit to each page for what it costs, bodies included."""

    objective: Objective
    pages: BelievedCost

    def __call__(self, elapsed: FloatArray) -> FloatArray:
        """Of each page after N seconds."""
        return self.pages.value(self.objective, elapsed)

    def take(self, rows: AnyArray | slice) -> ValuePerCost:
        """The pages at these positions."""
        return ValuePerCost(self.objective, self.pages.take(rows))


_FOREVER = 1e12
"""Seconds (30,000 years) after which a value that was not reached never is."""
_SLACK = 1e-8
"""Known brackets are widened by this share, so that rounding does not push a root out of them."""


@dataclass(frozen=True, slots=True)
class VisitDemand:
    """The visits that n pages request at a price: everything that determines their intervals except the budget."""

    objective: Objective
    belief: Belief
    importance: FloatArray
    """Weight w of each page, ≥ 0."""
    cost: FloatArray
    """Cost c of a visit to each page, > 0."""
    shortest: FloatArray | float
    """Least seconds between two visits, > 0; one for all, or one a page."""
    longest: FloatArray | float
    """Most seconds between two visits; inf for none, so that hopeless pages are never visited."""
    transfer: FloatArray | None = None
    """What a visit costs on top if the page has changed: the body, where an unchanged page answers 304 for ``cost``."""

    def __post_init__(self) -> None:
        if not bool(np.all(np.greater(self.shortest, 0) & np.less_equal(self.shortest, self.longest))):
            raise ConfigError(
                f"Intervals from {self.shortest} s to {self.longest} s are not possible.",
                "The shortest must be above 0 and not above the longest.",
            )

    def __len__(self) -> int:
        return len(self.belief)

    @property
    def horizon(self) -> FloatArray:
        """The last moment at which a value may reach the price, seconds; read-only."""
        return np.broadcast_to(np.minimum(self.longest, _FOREVER), (len(self),))

    def worth(self, elapsed: FloatArray) -> FloatArray:
        """w·U/c of each page ``elapsed`` seconds after an observation: the price up to which it is worth a visit.

        With a transfer c₁ it is w·U/(c + c₁·U'), U' being the value of *changes* (algorithms §1): the wait for the
        next body is paid for as well.
        """
        if self.transfer is None:
            return self.importance * self.objective.value(self.belief, elapsed) / self.cost
        return self.importance * BelievedCost(self.belief, self.cost, self.transfer).value(self.objective, elapsed)

    def intervals(
        self, price: FloatArray | float, low: FloatArray | None = None, high: FloatArray | None = None
    ) -> FloatArray:
        """Seconds after an observation at which w·U/c reaches ``price`` (or one price a page), at least ``shortest``.

        ``inf`` where it is not reached by ``longest``: that page is hopeless at this price. A caller who knows
        the intervals at a lower and at a higher price gives them as ``low`` and ``high`` and saves steps.
        O(pages · steps); about half a microsecond a page for a grid where numba is installed.
        """
        first, last = np.broadcast_to(np.asarray(self.shortest, np.float64), (len(self),)), self.horizon
        if low is not None:
            first = np.maximum(first, np.minimum(low * (1.0 - _SLACK), last))
        if high is not None:
            last = np.minimum(last, high * (1.0 + _SLACK))
        found = self._search(price, first, last, from_above=low is None and high is not None)
        return found if high is None else np.minimum(found, high)

    def rates(
        self, price: FloatArray | float, low: FloatArray | None = None, high: FloatArray | None = None
    ) -> FloatArray:
        """Visits per second at a price (or one price a page), given those at a lower and a higher one where known."""
        shorter = None if low is None else _inverse(low)
        longer = None if high is None else np.where(high > 1.0 / np.asarray(self.longest), _inverse(high), np.inf)
        return 1.0 / np.minimum(self.intervals(price, shorter, longer), self.longest)

    def spending(self, rates: FloatArray) -> FloatArray:
        """Cost per second of each page at these rates of visits."""
        if self.transfer is None:
            return self.cost * rates
        changed = self.belief.p_change(np.minimum(_inverse(rates), _FOREVER))
        return rates * (self.cost + self.transfer * changed)

    def extremes(self) -> DemandExtremes:
        """Rates at an infinite price and at the price 0, and the worth of each page at its longest interval."""
        limit = self.worth(self.horizon)
        floor = np.broadcast_to(1.0 / np.asarray(self.longest, np.float64), (len(self),)).copy()
        ceiling = np.where(limit > 0, 1.0 / np.asarray(self.shortest), floor)
        wanted = limit[(limit > 0) & np.isfinite(limit)]
        return DemandExtremes(floor, ceiling, limit, float(wanted.max()) if len(wanted) else 1.0)

    def take(self, rows: AnyArray | slice) -> VisitDemand:
        """The demand of the pages at these positions."""
        shortest, longest = (
            bound[rows] if isinstance(bound, np.ndarray) and bound.ndim else bound
            for bound in (self.shortest, self.longest)
        )
        transfer = None if self.transfer is None else self.transfer[rows]
        belief, importance, cost = self.belief.take(rows), self.importance[rows], self.cost[rows]
        return VisitDemand(self.objective, belief, importance, cost, shortest, longest, transfer)

    def _search(
        self, price: FloatArray | float, first: FloatArray, last: FloatArray, *, from_above: bool
    ) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            target = np.where(self.importance > 0, price / self.importance, np.inf)
        if self.transfer is None:
            return time_to_value(self.objective, self.belief, target * self.cost, first, last, from_above=from_above)
        priced = BelievedCost(self.belief, self.cost, self.transfer)
        return search(ValuePerCost(self.objective, priced), target, first, last)


def _inverse(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / values)
