"""The price of a visit: the one number at which the demanded visits per second equal the budget (algorithms §2.1).

At a price ν page i is visited every τ_i(ν) seconds (``due_times.VisitDemand``), at most ``longest``; or, where rates
are known, by a closed law (``known_rates.KnownRates``). Σ cost_i/τ_i(ν) falls with ν, and the price solves Σ
cost_i/τ_i(ν) = budget. Boundaries:

 * a budget that suffices for all pages at the shortest interval: the price is 0;
 * a budget below the demand of the longest intervals alone: the price is infinite, the allocation is not feasible, and
   it demands the longest intervals all the same;
 * a page whose value never reaches the price is *hopeless*: visited at the longest interval, never if there is none;
 * where pages drop out the sum can jump past the budget between two neighbouring prices: the rates are then mixed from
   both sides of the jump, each of which is optimal at its own budget.

With more than 200,000 pages a sample first gives the price to about 1 %. Then two or three passes over all pages spend
the budget to a relative error of 1e-5; a common factor on the rates that are not at a bound corrects the rest. The
optimum is flat, so the objective loses the square of that error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.schedule.price.known_rates import KnownRates, spend_by_bins
from recrawl.schedule.price.price_roots import DemandExtremes, PricedDemand, close, enclose

_SAMPLE = 200_000
"""Up to as many pages are solved exactly; of more, half as many are sampled."""
_BINNED = 20_000
"""From as many pages of known rates on, single pages no longer make jumps that matter."""
_NEAR = 1e-5
"""ln of spending over budget at which the search over all of many pages ends."""
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


@dataclass(frozen=True, slots=True)
class Allocation:
    """How a budget is spent."""

    price: float
    """What a unit of cost must bring. 0: all is affordable. inf: not even the longest intervals are."""
    rate: FloatArray
    """Visits per second of each page."""
    hopeless: BoolArray
    """Pages whose value never reaches the price: visited at the longest interval only."""
    feasible: bool
    """Whether the rates keep the budget."""


def allocate(asking: PricedDemand, budget: float) -> Allocation:
    """Spend ``budget``, in units of cost per second, where it is worth most. O(pages · steps)."""
    if not budget >= 0:
        raise ConfigError(f"A budget of {budget} visits per second is not possible.", "Give a number of 0 or more.")
    if isinstance(asking, KnownRates) and len(asking) > _BINNED and asking.unbounded and budget > 0:
        price, rate = spend_by_bins(asking, budget)
        return Allocation(price, rate, rate == 0, feasible=True)
    ends = asking.extremes()
    wanted = ends.limit > 0
    if np.isfinite(ends.most[wanted]).all() and _spent(asking, ends.most) <= budget:
        return Allocation(0.0, ends.most, ~wanted, feasible=True)
    least = _spent(asking, ends.least)
    if least >= budget:
        return Allocation(math.inf, ends.least, np.ones(len(asking), np.bool_), feasible=least <= budget)
    price, rate = _solve(asking, budget, ends)
    return Allocation(price, rate, ~(ends.limit > price), feasible=True)


def one_group(n: int) -> IntArray:
    """All pages in one group; takes no memory."""
    return np.broadcast_to(np.zeros(1, np.int64), (n,))


def spread(n: int, some: int) -> IntArray:
    """``some`` of n places: one of every stretch of n/some, at a place within it that follows no period. Ascending.

    >>> spread(10, 5).tolist()
    [0, 3, 4, 7, 8]
    """
    place = np.arange(some)
    return np.minimum(((place + (place * _GOLDEN) % 1.0) * (n / some)).astype(np.int64), n - 1)


def _solve(asking: PricedDemand, budget: float, ends: DemandExtremes) -> tuple[float, FloatArray]:
    if len(asking) <= _SAMPLE:
        return _exact(asking, budget, ends.typical)
    return _large(asking, budget, ends)


def _exact(asking: PricedDemand, budget: float, typical: float) -> tuple[float, FloatArray]:
    target, of = np.array([budget]), one_group(len(asking))
    sides = close(asking, of, _sum, target, enclose(asking, of, _sum, target, np.log([typical])))
    return float(np.exp(sides.nearest[0])), sides.mixed(asking, of, _sum, target)


def _large(asking: PricedDemand, budget: float, ends: DemandExtremes) -> tuple[float, FloatArray]:
    """The price of a sample, then chords through all pages."""
    some = asking.take(spread(len(asking), _SAMPLE // 2))
    target, of = np.array([budget * len(some) / len(asking)]), one_group(len(some))
    rough = close(some, of, _sum, target, enclose(some, of, _sum, target, np.log([ends.typical])), met=_NEAR)
    slope = _slope(some, float(rough.nearest[0]))
    target, of = np.array([budget]), one_group(len(asking))
    at, rate, low, high = float(rough.nearest[0]), None, None, None
    known: list[tuple[float, float]] = []
    for _ in range(8):
        rate = asking.rates(math.exp(at), low, high)
        excess = math.log(_spent(asking, rate) / budget)
        if abs(excess) <= _NEAR:
            return math.exp(at), _put_right(asking, rate, ends, budget)
        if excess > 0:
            low = rate
        else:
            high = rate
        known.append((at, excess))
        if len(known) > 1 and known[-1][1] != known[-2][1]:
            slope = (known[-1][1] - known[-2][1]) / (known[-1][0] - known[-2][0])
        at -= excess / min(slope, -1e-3)
    sides = enclose(asking, of, _sum, target, np.array([at]))
    sides = close(asking, of, _sum, target, sides)
    return float(np.exp(sides.nearest[0])), sides.mixed(asking, of, _sum, target)


def _slope(asking: PricedDemand, log_price: float) -> float:
    """D ln spending/d ln price."""
    step = 1e-2
    more, less = (_spent(asking, asking.rates(math.exp(log_price + s))) for s in (-step, step))
    return math.log(less / more) / (2 * step) if less > 0 else -1.0


def _put_right(asking: PricedDemand, rate: FloatArray, ends: DemandExtremes, budget: float) -> FloatArray:
    """The rates inside their bounds, times the factor that makes all spend the budget."""
    inside = (rate > ends.least) & (rate < ends.most)
    spent = asking.spending(rate)
    inner = float(spent[inside].sum())
    if inner > 0:
        factor = (budget - float(spent.sum()) + inner) / inner
        rate[inside] = np.clip(rate[inside] * factor, ends.least[inside], ends.most[inside])
    return rate


def _spent(asking: PricedDemand, rate: FloatArray) -> float:
    return float(asking.spending(rate).sum())


def _sum(spent: FloatArray, rows: IntArray | None) -> FloatArray:  # noqa: ARG001 - one group has all rows
    return np.array([spent.sum()])
