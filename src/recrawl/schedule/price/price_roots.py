"""Many prices at once: for each group of pages the price at which its demand equals what the group may spend.

The demand of a group falls as its price rises, nearly as a power of it, but with bends and small jumps where pages drop
out. So each price is searched on logarithms, with secants and bisection in turn, all groups side by side; the pages of
finished groups are left out. Where the demand jumps over its target the rates of both sides are mixed: each side is
optimal at its own budget, and so is what lies between them (algorithms §2.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, TypeAlias

import numpy as np

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
