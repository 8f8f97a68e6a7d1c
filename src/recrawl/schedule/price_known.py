r"""Known rates: the price and the rates of ten million pages in about a second (algorithms §2.1).

At the price ν a page asks for f = λ/x(νρ) (``closed_forms``). So what all ask for, Σ cλ/x(νρ), depends on a page only
through its pace ρ and its share cλ. One pass sorts the pages into bins of ρ that are a thousandth wide, by the bits of
the number itself: exponent and ten bits of the mantissa. The price is found over the bins, each standing at its mean
pace; one more pass, or two, gives the rates and puts the price right by the slope of the demand. The last
hundred-thousandth of the budget is met by a common factor. The optimum is flat, so the objective loses about the square
of that.

Floors and ceilings make a page depend on more than ρ; then the general solver does it (``price.allocate``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.model.compiled import can_compile, compiled
from recrawl.schedule.closed_forms import STEP, Law, table
from recrawl.schedule.price_roots import Extremes

_KEPT_BITS = 42
"""Bits of a number's end that a bin does not look at: ten of 52 stay."""
_NEAR, _MOST_PASSES = 3e-5, 4
"""ln of spending over budget below which no further pass is made: one does for millions of pages, two for fewer."""
_BLOCK = 65_536
_HALF = 0.5
_TWO = 2.0


@dataclass(frozen=True, slots=True)
class KnownRates:
    """What n pages of known change rates ask for at a price."""

    law: Law
    rate: FloatArray
    """λ of each page, ≥ 0, in changes per unit of time (seconds, usually)."""
    importance: FloatArray
    """w ≥ 0."""
    cost: FloatArray
    """c > 0 of a visit."""
    least: float = 0.0
    """Floor: visits per unit of time that every page gets, whatever it is worth."""
    most: float = math.inf
    """Ceiling: visits per unit of time of any page."""

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most:
            raise ConfigError(
                f"Rates from {self.least} to {self.most} visits are not possible.",
                "The least must be 0 or more and not above the most.",
            )

    def __len__(self) -> int:
        return len(self.rate)

    @property
    def pace(self) -> FloatArray:
        """ρ = cλ^k/w; inf where no visit is ever worth anything."""
        return self.law.pace(self.rate, self.importance, self.cost)

    @property
    def bounded(self) -> bool:
        """Whether there is a floor or a ceiling."""
        return self.least > 0 or self.most < math.inf

    @property
    def unbounded(self) -> bool:
        """Whether any budget can be spent: there is neither floor nor ceiling, and a page that wants visits."""
        wants = bool(((self.rate > 0) & (self.importance > 0)).any())
        return wants and not self.bounded and self.law.soonest == 0

    def extremes(self) -> Extremes:
        """Rates at an infinite price and at the price 0, and the price at which each page comes down to its floor."""
        pace = self.pace
        wanted = np.isfinite(pace)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            soonest = self.rate / self.law.soonest if self.law.soonest > 0 else np.full(len(self), math.inf)
            most = np.where(wanted, np.clip(soonest, self.least, self.most), self.least)
            at_floor = self.law.value(self.rate / self.least) if self.least > 0 else np.full(len(self), math.inf)
            limit = np.where(wanted, np.minimum(at_floor, 1.0 if self.law.drops else math.inf) / pace, 0.0)
        typical = 1.0 / float(np.median(pace[wanted][:: 1 + len(self) // _BLOCK])) if wanted.any() else 1.0
        return Extremes(np.full(len(self), self.least), most, limit, typical)

    def rates(
        self,
        price: FloatArray | float,
        low: FloatArray | None = None,  # noqa: ARG002 - nothing is searched
        high: FloatArray | None = None,  # noqa: ARG002
    ) -> FloatArray:
        """Visits per unit of time at a price, or at one price a page. O(pages)."""
        out = np.empty(len(self))
        _rates_at(self.law, self.rate, self.pace, np.asarray(price, dtype=np.float64), out)
        return np.clip(out, self.least, self.most) if self.bounded else out

    def spending(self, rates: FloatArray) -> FloatArray:
        """Cost per unit of time of each page when visited so often."""
        return self.cost * rates

    def take(self, rows: AnyArray | slice) -> KnownRates:
        """What the pages at these positions ask for."""
        return KnownRates(self.law, self.rate[rows], self.importance[rows], self.cost[rows], self.least, self.most)


def spend_by_bins(known: KnownRates, budget: float) -> tuple[float, FloatArray]:
    """The price and rates that spend ``budget``, without floor or ceiling; the rates sum to it up to rounding.

    O(pages + bins · steps). For pages that are ``unbounded``, and a budget above 0.
    """
    rate, cost, law = known.rate, known.cost, known.law
    pace = known.pace
    share, mean = _bins(pace, cost, rate)
    log_price, elasticity = _price_of_bins(law, share, mean, budget)
    out = np.empty(len(rate))
    for _ in range(_MOST_PASSES):
        spent = _rates_at(law, rate, pace, np.asarray(math.exp(log_price)), out, cost)
        excess = math.log(spent / budget)
        log_price += excess / elasticity
        if abs(excess) < _NEAR:
            break
    out *= budget / spent
    return math.exp(log_price), out


def _price_of_bins(law: Law, share: FloatArray, mean: FloatArray, budget: float) -> tuple[float, float]:
    """The log of the price, and −d ln demand/d ln price there. Chords and halving on ln demand over ln price."""
    goal = math.log(budget)

    def excess(log_price: float) -> float:
        out = np.empty_like(share)
        spent = _rates_at(law, share, mean, np.asarray(math.exp(log_price)), out, None)
        return math.log(spent) - goal if spent > 0 else -math.inf

    high = -math.log(mean.min()) + (0.0 if law.drops else 1.0)
    low = high - 1.0
    above, below = excess(high), excess(low)
    while above > 0:
        low, below, high = high, above, high + 2.0 * (high - low)
        above = excess(high)
    while below < 0:
        high, above, low = low, below, low - 2.0 * (high - low)
        below = excess(low)
    stayed = 0
    for step in range(200):
        width = high - low
        chord = math.isfinite(above) and step % 3 < 2  # noqa: PLR2004 - every third step halves
        middle = low + width * (min(max(below / (below - above), 1e-3), 1 - 1e-3) if chord else _HALF)
        found = excess(middle)
        if abs(found) < 1e-12 or width < 1e-14 * max(1.0, abs(middle)):  # noqa: PLR2004 - rounding
            low = middle
            break
        if found > 0:
            low, below, above, stayed = middle, found, above * (_HALF if stayed > 0 else 1.0), 1
        else:
            high, above, below, stayed = middle, found, below * (_HALF if stayed < 0 else 1.0), -1
    nearby = 1e-2
    rise = excess(low - nearby) - excess(low + nearby)
    return low, (rise / (_TWO * nearby) if math.isfinite(rise) and rise > 0 else 1.0)


def _bins(pace: FloatArray, cost: FloatArray, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ cλ and the mean pace of each bin that has pages."""
    bits = pace.view(np.int64)
    finite = pace[np.isfinite(pace)]
    first, last = (int(np.array([end]).view(np.int64)[0]) >> _KEPT_BITS for end in (finite.min(), finite.max()))
    share, moment = np.zeros(last - first + 1), np.zeros(last - first + 1)
    if can_compile():
        _bin_compiled(bits, pace, cost, rate, first, share, moment)
    else:
        for start in range(0, len(pace), _BLOCK):
            block = slice(start, start + _BLOCK)
            there = np.isfinite(pace[block])
            cell = (bits[block][there] >> _KEPT_BITS) - first
            weight = (cost[block] * rate[block])[there]
            share += np.bincount(cell, weight, len(share))
            moment += np.bincount(cell, weight * pace[block][there], len(share))
    used = share > 0
    return share[used], moment[used] / share[used]


@compiled
def _bin_compiled(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    bits: IntArray,
    pace: FloatArray,
    cost: FloatArray,
    rate: FloatArray,
    first: int,
    share: FloatArray,
    moment: FloatArray,
) -> None:
    for i in range(len(pace)):
        if pace[i] < math.inf:
            cell = (bits[i] >> _KEPT_BITS) - first
            weight = cost[i] * rate[i]
            share[cell] += weight
            moment[cell] += weight * pace[i]


def _rates_at(  # noqa: PLR0913, PLR0917 - columns
    law: Law, rate: FloatArray, pace: FloatArray, price: FloatArray, out: FloatArray, cost: FloatArray | None = None
) -> float:
    """Fill ``out`` with λ/x(νρ), and return Σ c·out (Σ out without costs)."""
    if can_compile():
        start, pieces = table(law)
        return _rates_compiled(
            rate, pace, np.broadcast_to(price, pace.shape) if price.ndim else price.reshape(1), start, pieces,
            law.drops, law.soonest, out, np.ones(1) if cost is None else cost,
        )  # fmt: skip
    total = 0.0
    for start_row in range(0, len(rate), _BLOCK):
        block = slice(start_row, start_row + _BLOCK)
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.where(np.isfinite(pace[block]), pace[block] * (price[block] if price.ndim else price), np.inf)
            out[block] = rate[block] / law.changes_between(y)
        out[block][np.isnan(out[block])] = 0.0
        total += float((out[block] if cost is None else cost[block] * out[block]).sum())
    return total


@compiled
def _rates_compiled(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    rate: FloatArray,
    pace: FloatArray,
    price: FloatArray,
    start: float,
    pieces: FloatArray,
    drops: bool,
    soonest: float,
    out: FloatArray,
    cost: FloatArray,
) -> float:
    total, last = 0.0, len(pieces) - 1
    for i in range(len(rate)):
        y = pace[i] * price[i % len(price)] if pace[i] < math.inf else math.inf
        if y >= (1.0 if drops else math.inf):
            out[i] = 0.0
            continue
        if y > 0:
            there = (math.log(-math.log1p(-y) if drops else y) - start) / STEP
            cell = int(min(max(there, 0.0), last))
            part = there - cell
            c = pieces[cell]
            x = max(math.exp(c[0] + part * (c[1] + part * (c[2] + part * c[3]))), soonest)
        else:
            x = soonest
        out[i] = rate[i] / x if x > 0 else math.inf
        total += out[i] * cost[i % len(cost)]
    return total
