"""One price for several units: each unit publishes its demand curve, the merged curve is solved for the price.

A unit knows only its own pages. At the price ν they ask for D(ν) = Σ_h min(b_h, D_h(ν)), in cost per second, where b_h
is the limit of host h (``host_prices``). Hosts belong to one unit each, so the demand of all units is the sum of their
curves, and the price of the whole crawl solves Σ_units D(ν) = budget (algorithms §2.1, §2.3). A fixed share of the
budget per unit instead spends visits where they are worth less: every unit then has a price of its own.

A curve is D at a few dozen prices, so a message has a constant size, however many pages a unit has. Between two prices
ln D is interpolated over ln ν, which is nearly straight. The first exchange uses a wide grid (:func:`wide_prices`),
later ones a narrow grid around the price in force (:func:`prices_around`), where the interpolation is exact to about
1e-6. Units need not use the same grid at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import FloatArray, IntArray
from recrawl.schedule.price.price_roots import PricedDemand

_PRICES = 64
"""Prices of a wide grid."""
_DECADES = 9.0
"""Powers of ten below the highest price at which a page asks for more than its floor."""
_NEAR = 12
"""Prices of a narrow grid on each side of the price in force."""
_FACTOR = 4.0
"""The highest price of a narrow grid, as a multiple of the price in force."""
_STEPS = 200
_TINY = 1e-300
_FARTHEST = 700.0
"""On ln price: the ends of float64."""


@dataclass(frozen=True, slots=True)
class DemandCurve:
    """What the pages of one unit ask for at some prices, in cost per second."""

    price: FloatArray
    """Ascending, > 0."""
    asked: FloatArray
    """Cost per second at each price: it never rises."""
    least: float
    """Cost per second at an infinite price: the floors of all pages."""
    most: float
    """Cost per second at the price 0; inf if there is no bound."""

    def at(self, price: float) -> float:
        """The demand at any price, in cost per second. O(log prices).

        Below the grid the curve goes on as straight as between its first two prices, up to ``most``. Above the grid
        the same holds with its last two, down to ``least``.

        >>> curve = DemandCurve(np.array([1.0, 4.0]), np.array([8.0, 4.0]), least=1.0, most=20.0)
        >>> [round(curve.at(price), 6) for price in (0.0, 0.25, 2.0, 16.0, math.inf)]
        [20.0, 16.0, 5.656854, 2.0, 1.0]
        """
        if price <= 0:
            return self.most
        if math.isinf(price) or not len(self.price):
            return self.least
        x, y = np.log(self.price), np.log(np.maximum(self.asked, _TINY))
        at = math.log(price)
        if len(x) == 1:
            found = float(self.asked[0])
        elif x[0] <= at <= x[-1]:
            found = math.exp(float(np.interp(at, x, y)))
        else:
            first = 0 if at < x[0] else len(x) - 2
            slope = (y[first + 1] - y[first]) / (x[first + 1] - x[first])
            found = math.exp(min(float(y[first] + slope * (at - x[first])), 700.0))
        return min(max(found, self.least), self.most)

    def scaled(self, share: float) -> DemandCurve:
        """The curve of a unit that has not reported for some time: its demand counts by ``share``, 0 to 1."""
        return replace(self, asked=self.asked * share, least=self.least * share, most=self.most * share)


def wide_prices(highest: float) -> FloatArray:
    """Prices of the first exchange: nine powers of ten below ``highest``, from which on pages ask for their floors."""
    return np.asarray(np.geomspace(highest * 10.0**-_DECADES, highest, _PRICES), np.float64)


def prices_around(price: float) -> FloatArray:
    """Prices of later exchanges: the price in force, and others from a quarter to four times of it, denser near it."""
    steps = math.log(_FACTOR) * (np.arange(1, _NEAR + 1) / _NEAR) ** 2
    return np.asarray(price * np.exp(np.concatenate([-steps[::-1], [0.0], steps])))


def demand_curve(asking: PricedDemand, host: IntArray, limit: FloatArray, price: FloatArray) -> DemandCurve:
    """What these pages ask for at these ascending prices. O(pages · prices).

    ``host`` is the row of each page's host in ``limit``, which is in cost per second; inf is no limit.
    """
    if not bool((np.diff(price) > 0).all()) or not bool((price > 0).all()):
        raise ConfigError("Prices of a demand curve must be above 0 and ascending.", "Sort them.")

    def kept(rate: FloatArray) -> float:
        spent = np.bincount(host, asking.spending(rate), len(limit))
        return float(np.minimum(spent, limit).sum())

    ends = asking.extremes()
    asked = np.empty(len(price))
    low: FloatArray | None = None
    for place in range(len(price)):  # from the lowest price on: its rates bound those of all others
        low = asking.rates(float(price[place]), low)
        asked[place] = kept(low)
    return DemandCurve(price, asked, kept(ends.least), kept(ends.most))


def merged_price(curves: Sequence[DemandCurve], budget: float) -> float:
    """The price at which all units together spend ``budget``, in cost per second. O(units · steps).

    0 if the budget covers the demand at the price 0; inf if it does not even cover the floors.

    >>> curve = DemandCurve(np.array([1.0, 4.0]), np.array([8.0, 4.0]), least=1.0, most=20.0)
    >>> round(merged_price([curve, curve], 8.0), 9)
    4.0
    >>> merged_price([curve, curve], 2.0), merged_price([curve], 30.0)
    (inf, 0.0)
    """
    if not budget >= 0:
        raise ConfigError(f"A budget of {budget} visits per second is not possible.", "Give a number of 0 or more.")
    if sum(curve.most for curve in curves) <= budget:
        return 0.0
    if sum(curve.least for curve in curves) >= budget:
        return math.inf
    prices = np.concatenate([curve.price for curve in curves])
    low, high = math.log(float(prices.min())), math.log(float(prices.max()))

    def excess(at: float) -> float:
        return sum(curve.at(math.exp(at)) for curve in curves) - budget

    low, high = _widened(low, excess, -1.0), _widened(high, excess, 1.0)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return math.exp(0.5 * (low + high))


def _widened(at: float, excess: Callable[[float], float], towards: float) -> float:
    """Move an end of the bracket outwards until the price lies inside, at most to the ends of float64."""
    stride = 1.0
    while excess(at) * towards > 0 and abs(at) < _FARTHEST:
        at += towards * stride
        stride *= 2.0
    return min(max(at, -_FARTHEST), _FARTHEST)
