"""Due: how long after a look a page is worth the price of the next one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import AnyArray, Belief, FloatArray
from recrawl.schedule.due_search import search, time_to_value
from recrawl.schedule.due_transfer import BelievedCost, ValuePerCost
from recrawl.schedule.objectives import Objective
from recrawl.schedule.price_roots import Extremes

_FOREVER = 1e12
"""Seconds (30,000 years) after which a value that was not reached never is."""
_SLACK = 1e-8
"""Known brackets are widened by this share, so that rounding does not push a root out of them."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What n pages ask for at a price: all that decides their intervals, the budget aside."""

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
        """w·U/c of each page ``elapsed`` seconds after a look: the price up to which it is worth a visit.

        With a transfer c₁ it is w·U/(c + c₁·U'), U' being the value of *changes* (algorithms §1): the wait for the
        next body is paid for as well.
        """
        if self.transfer is None:
            return self.importance * self.objective.value(self.belief, elapsed) / self.cost
        return self.importance * BelievedCost(self.belief, self.cost, self.transfer).value(self.objective, elapsed)

    def intervals(
        self, price: FloatArray | float, low: FloatArray | None = None, high: FloatArray | None = None
    ) -> FloatArray:
        """Seconds after a look at which w·U/c reaches ``price`` (or one price a page), at least ``shortest``.

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
        """Cost per second of each page when it is visited so often."""
        if self.transfer is None:
            return self.cost * rates
        changed = self.belief.p_change(np.minimum(_inverse(rates), _FOREVER))
        return rates * (self.cost + self.transfer * changed)

    def extremes(self) -> Extremes:
        """Rates at an infinite price and at the price 0, and the worth of each page at its longest interval."""
        limit = self.worth(self.horizon)
        floor = np.broadcast_to(1.0 / np.asarray(self.longest, np.float64), (len(self),)).copy()
        ceiling = np.where(limit > 0, 1.0 / np.asarray(self.shortest), floor)
        wanted = limit[(limit > 0) & np.isfinite(limit)]
        return Extremes(floor, ceiling, limit, float(wanted.max()) if len(wanted) else 1.0)

    def take(self, rows: AnyArray | slice) -> Demand:
        """The demand of the pages at these positions."""
        shortest, longest = (
            bound[rows] if isinstance(bound, np.ndarray) and bound.ndim else bound
            for bound in (self.shortest, self.longest)
        )
        transfer = None if self.transfer is None else self.transfer[rows]
        belief, importance, cost = self.belief.take(rows), self.importance[rows], self.cost[rows]
        return Demand(self.objective, belief, importance, cost, shortest, longest, transfer)

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
