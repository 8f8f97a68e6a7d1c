"""Prices at which demand equals a budget: of many groups side by side, and of several units by their curves.

**Groups**: for each group of pages the price at which its demand equals what the group may spend. The demand of a group
falls as its price rises, nearly as a power of it, but with bends and small jumps where pages drop out. So each price is
searched on logarithms, with secants and bisection in turn, all groups side by side; the pages of finished groups are
left out. Where the demand jumps over its target the rates of both sides are mixed: each side is optimal at its own
budget, and so is what lies between them (algorithms §2.1).

**Units**: each unit publishes its demand curve, and the merged curve is solved for one price. A unit knows only its own
pages. At the price ν they ask for D(ν) = Σ_h min(b_h, D_h(ν)), in cost per second, where b_h is the limit of host h
(``budget_price``). Hosts belong to one unit each, so the demand of all units is the sum of their curves, and the price
of the whole crawl solves Σ_units D(ν) = budget (algorithms §2.1, §2.3). A fixed share of the budget per unit instead
spends visits where they are worth less: every unit then has a price of its own.

A curve is D at a few dozen prices, so a message has a constant size, however many pages a unit has. Between two prices
ln D is interpolated over ln ν, which is nearly straight. The first exchange uses a wide grid (:func:`wide_prices`),
later ones a narrow grid around the price in force (:func:`prices_around`), where the interpolation is exact to about
1e-6. Units need not use the same grid at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self, TypeAlias

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray

MET = 1e-10
"""Share of a target by which the spending may differ."""
_NARROWEST = 1e-14
"""On ln price: neighbouring numbers."""
_MOST_STEPS = 200
_FARTHEST = 700.0
"""On ln price: the ends of float64."""


class DemandExtremes(NamedTuple):
    """What pages ask for where the price does not matter."""

    least: FloatArray
    """Visits per second at an infinite price: the floors."""
    most: FloatArray
    """Visits per second at the price 0; inf if there is no bound."""
    limit: FloatArray
    """The price from which on each page gets no more than its floor; 0 where no visit is worth anything."""
    typical: float
    """Any price of the right magnitude, > 0."""


class PricedDemand(Protocol):
    """Pages that ask for visits at a price. The higher the price, the fewer."""

    @property
    def cost(self) -> FloatArray:
        """Of a visit to each page."""
        ...

    def __len__(self) -> int: ...

    def extremes(self) -> DemandExtremes:
        """Rates at the price 0 and at an infinite one, and where they are reached."""
        ...

    def rates(
        self, price: FloatArray | float, low: FloatArray | None = None, high: FloatArray | None = None
    ) -> FloatArray:
        """Visits per second at a price, or at one price a page; a fresh array.

        A caller who knows the rates at a lower and at a higher price gives them as ``low`` and ``high``.
        """
        ...

    def spending(self, rates: FloatArray) -> FloatArray:
        """Cost per second of each page at these rates of visits."""
        ...

    def take(self, rows: AnyArray | slice) -> Self:
        """What the pages at these positions ask for."""
        ...


Total: TypeAlias = Callable[[FloatArray, IntArray | None], FloatArray]
"""Sums the spending of pages (of some rows, or of all) to that of each group."""


@dataclass(slots=True)
class PriceBrackets:
    """Brackets around the prices of G groups, and the rates of their n pages at both ends: [0] below, [1] above."""

    log_price: FloatArray
    """Shape (2, G)."""
    excess: FloatArray
    """ln of spending over target, shape (2, G): ≥ 0 below the price, ≤ 0 above it."""
    rate: FloatArray
    """Shape (2, n)."""

    def mixed(self, asking: PricedDemand, of: IntArray, total: Total, target: FloatArray) -> FloatArray:
        """The rates between both sides that spend the targets."""
        more, less = (total(asking.spending(rate), None) for rate in self.rate)
        gap = more - less
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(gap > 0, np.clip((target - less) / gap, 0.0, 1.0), 1.0)[of]
        return np.asarray(share * self.rate[0] + (1.0 - share) * self.rate[1])

    @property
    def nearest(self) -> FloatArray:
        """The log of the price at the side that is nearer to its target."""
        return np.asarray(np.where(self.excess[0] <= -self.excess[1], self.log_price[0], self.log_price[1]))


def enclose(  # noqa: PLR0913 - what is searched, and from where
    asking: PricedDemand, of: IntArray, total: Total, target: FloatArray, start: FloatArray, *, stride: float = 1.0
) -> PriceBrackets:
    """Brackets, from one ln price a group on, by steps that double and start with ``stride``.

    Every target must lie strictly between what its pages ask for at the price 0 and at an infinite one.
    """
    at = start.copy()
    rate = asking.rates(_per_page(at, of))
    excess = _excess(total(asking.spending(rate), None), target)
    sides = PriceBrackets(np.stack([at, at]), np.stack([excess, excess]), np.stack([rate, rate]))
    towards = np.where(excess >= 0, 1.0, -1.0)
    missing = np.ones(len(at), np.bool_)
    while missing.any():
        at = np.where(missing, np.clip(at + towards * stride, -_FARTHEST, _FARTHEST), at)
        rows = _rows(missing, of)
        part = asking if rows is None else asking.take(rows)
        group = of if rows is None else of[rows]
        rate = part.rates(_per_page(at, group))
        excess = _excess(total(part.spending(rate), rows), target)
        far = np.where(towards > 0, 1, 0)
        for side in (0, 1):
            moves = missing & ((far == side) | (np.sign(excess) * towards > 0))
            _set(sides, side, moves, (at, excess, rate), of, rows)
        missing &= (excess * towards > 0) & (np.abs(at) < _FARTHEST)
        stride *= 2.0
    return sides


def close(  # noqa: PLR0913, PLR0917 - what is searched, and how well
    asking: PricedDemand, of: IntArray, total: Total, target: FloatArray, sides: PriceBrackets, met: float = MET
) -> PriceBrackets:
    """Narrow the brackets until each target is met at one end, or both ends are neighbours. O(pages · steps)."""
    chord = sides.excess.copy()
    stayed = np.zeros(len(target), np.int8)
    rows: IntArray | None = None
    part, group = asking, of
    for step in range(_MOST_STEPS):
        low, high = sides.log_price
        live = (np.minimum(sides.excess[0], -sides.excess[1]) > met) & (high - low > _NARROWEST * np.abs(high) + 1e-300)
        if not live.any():
            break
        if not live.all() and live[group].mean() < 0.7:  # noqa: PLR2004 - dropping the settled pays from 30 % on
            rows = np.flatnonzero(live[of])
            part, group = asking.take(rows), of[rows]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = chord[0] / (chord[0] - chord[1])
        straight = np.isfinite(chord[1]) & np.isfinite(share) & bool((step + 1) % 3)
        at = low + (high - low) * np.where(straight, np.clip(share, 1e-3, 1 - 1e-3), 0.5)
        known = sides.rate if rows is None else sides.rate[:, rows]
        rate = part.rates(_per_page(at, group), known[0], known[1])
        excess = _excess(total(part.spending(rate), rows), target)
        up = live & (excess >= 0)
        down = live & ~up
        chord[1] = np.where(up & (stayed > 0), chord[1] / 2, chord[1])
        chord[0] = np.where(down & (stayed < 0), chord[0] / 2, chord[0])
        stayed = np.where(up, 1, -1).astype(np.int8)
        _set(sides, 0, up, (at, excess, rate), of, rows)
        _set(sides, 1, down, (at, excess, rate), of, rows)
        chord[0], chord[1] = np.where(up, excess, chord[0]), np.where(down, excess, chord[1])
    return sides


def _set(  # noqa: PLR0913, PLR0917 - one side of a bracket is three columns
    sides: PriceBrackets,
    side: int,
    moves: BoolArray,
    found: tuple[FloatArray, FloatArray, FloatArray],
    of: IntArray,
    rows: IntArray | None,
) -> None:
    at, excess, rate = found
    sides.log_price[side][moves] = at[moves]
    sides.excess[side][moves] = excess[moves]
    if rows is None:
        moved = moves[of]
        sides.rate[side][moved] = rate[moved]
    else:
        moved = moves[of[rows]]
        sides.rate[side][rows[moved]] = rate[moved]


def _rows(groups: BoolArray, of: IntArray) -> IntArray | None:
    return None if groups.all() else np.flatnonzero(groups[of])


def _per_page(log_price: FloatArray, of: IntArray) -> FloatArray | float:
    return float(np.exp(log_price[0])) if len(log_price) == 1 else np.exp(log_price)[of]


def _excess(spent: FloatArray, target: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(spent / target))


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
