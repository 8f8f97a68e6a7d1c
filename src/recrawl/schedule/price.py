r"""The price of a visit: the one number at which the visits asked for per second equal the budget (algorithms §2.1).

At a price ν page i is visited every τ_i(ν) seconds (``due.Demand``), at most ``longest``. Σ cost_i/τ_i(ν) falls with ν;
the price solves Σ cost_i/τ_i(ν) = budget. Boundaries:

 * a budget that suffices for all at the shortest interval: the price is 0;
 * a budget below what the longest intervals alone ask for: the price is infinite, the allocation is not feasible, and
   it asks for the longest intervals all the same;
 * a page whose value never reaches the price is *hopeless*: visited at the longest interval, never if there is none;
 * where pages drop out the sum can jump past the budget between two neighbouring prices: the rates are then mixed from
   both sides of the jump, each of which is optimal at its own budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import BoolArray, FloatArray
from recrawl.schedule.due import Demand

_MET = 1e-10
"""Share of the budget by which its spending may differ."""
_NARROWEST = 1e-14
"""On ln price: neighbouring numbers."""
_MOST_STEPS = 200


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


@dataclass(frozen=True, slots=True)
class _Side:
    """One end of the bracket around the price."""

    log_price: float
    interval: FloatArray
    log_ratio: float
    """ln of spending over budget: > 0 below the price, < 0 above it."""


def allocate(demand: Demand, budget: float) -> Allocation:
    """Spend ``budget``, in units of cost per second, where it is worth most. O(pages · steps).

    A price between two others has intervals between theirs, so each step starts from tighter brackets than the
    one before.
    """
    if not budget >= 0:
        raise ConfigError(f"A budget of {budget} visits per second is not possible.", "Give a number of 0 or more.")
    worth = demand.worth(np.full(len(demand), demand.horizon))
    wanted = worth > 0
    floor = np.full(len(demand), np.inf)
    ceiling = np.where(wanted, demand.shortest, np.inf)
    if _spending(demand, ceiling) <= budget:
        return Allocation(0.0, _rates(demand, ceiling), ~wanted, feasible=True)
    least = _spending(demand, floor)
    if least >= budget:
        return Allocation(np.inf, _rates(demand, floor), np.ones(len(demand), np.bool_), feasible=least <= budget)
    top = float(np.log(worth.max()))
    high = _Side(top, floor, _log_ratio(demand, floor, budget))
    low = _lower_side(demand, budget, high)
    return _solve(demand, budget, low, high)


def _lower_side(demand: Demand, budget: float, high: _Side) -> _Side:
    """A price low enough for the pages to ask for more than the budget."""
    step = 1.0
    while True:
        log_price = high.log_price - step
        interval = demand.intervals(float(np.exp(log_price)))
        ratio = _log_ratio(demand, interval, budget)
        if ratio >= 0:
            return _Side(log_price, interval, ratio)
        step *= 2.0


def _solve(demand: Demand, budget: float, low: _Side, high: _Side) -> Allocation:
    """Chords and bisection on ln spending over ln price, until the budget is met or the bracket is two neighbours."""
    for step in range(_MOST_STEPS):
        width = high.log_price - low.log_price
        if min(low.log_ratio, -high.log_ratio) <= _MET or width <= _NARROWEST:
            break
        steep = np.isfinite(high.log_ratio) and (step + 1) % 3
        share = low.log_ratio / (low.log_ratio - high.log_ratio) if steep else 0.5
        log_price = low.log_price + width * float(np.clip(share, 1e-3, 1 - 1e-3))
        interval = demand.intervals(float(np.exp(log_price)), low.interval, high.interval)
        ratio = _log_ratio(demand, interval, budget)
        if ratio >= 0:
            low = _Side(log_price, interval, ratio)
        else:
            high = _Side(log_price, interval, ratio)
    best = low if low.log_ratio <= -high.log_ratio else high
    return Allocation(
        float(np.exp(best.log_price)), _mixed(demand, budget, low, high), np.isinf(best.interval), feasible=True
    )


def _mixed(demand: Demand, budget: float, low: _Side, high: _Side) -> FloatArray:
    """The rates between both sides that spend exactly the budget."""
    more, less = _spending(demand, low.interval), _spending(demand, high.interval)
    share = 1.0 if more <= less else (budget - less) / (more - less)
    return share * _rates(demand, low.interval) + (1.0 - share) * _rates(demand, high.interval)


def _rates(demand: Demand, interval: FloatArray) -> FloatArray:
    return 1.0 / np.minimum(interval, demand.longest)


def _spending(demand: Demand, interval: FloatArray) -> float:
    return float((demand.cost * _rates(demand, interval)).sum())


def _log_ratio(demand: Demand, interval: FloatArray, budget: float) -> float:
    spending = _spending(demand, interval)
    return float(np.log(spending / budget)) if spending > 0 else -np.inf
