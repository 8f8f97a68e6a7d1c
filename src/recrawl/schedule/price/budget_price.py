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

**Hosts**: politeness inside the optimum, one budget for all pages and one limit per host (Kolobov 2019; algorithms
§2.3). A host h may take b_h. Let ν_h be the price at which the demand of its pages alone is b_h. The optimum visits
page i of host h at its rate at the price max(ν, ν_h), and the global price ν solves Σ_h min(b_h, D_h(ν)) = budget,
where D_h(ν) is the demand of the pages of h. So ν needs no host prices: one search over all pages. After it only the
hosts with D_h(ν) > b_h are searched, each from ν upwards and all side by side. Visits that saturated hosts cannot take
go to other hosts, whose price falls; "solve, then clip" leaves them unspent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.schedule.price.due_times import VisitDemand
from recrawl.schedule.price.known_rates import KnownRates, spend_by_bins
from recrawl.schedule.price.price_roots import MET, DemandExtremes, PriceBrackets, PricedDemand, close, enclose

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


_HOST_SAMPLE = 200_000
"""Of more pages, some hosts are solved first."""
_EQUAL = 1e-12
"""Share of a limit below which an excess is rounding."""


@dataclass(frozen=True, slots=True)
class UnmetDemand:
    """A request that cannot be met: the longest intervals ask for more than is possible. In cost per second."""

    host: int | None
    """The host whose limit is too low; ``None`` for the budget of all."""
    asked: float
    possible: float


@dataclass(frozen=True, slots=True)
class HostAllocation:
    """How a budget is spent under the limits of hosts."""

    price: float
    """What a unit of cost must bring on hosts that are not saturated. 0: the hosts take less than the budget."""
    host_price: FloatArray
    """The same on each host: above ``price`` where its limit binds."""
    rate: FloatArray
    """Visits per second of each page. Every host keeps its limit."""
    hopeless: BoolArray
    """Pages whose value never reaches the price of their host: visited at the longest interval only."""
    saturated: BoolArray
    """Hosts whose limit binds."""
    unmet: tuple[UnmetDemand, ...]
    """What cannot be kept; the rates of such a host are its floors, cut to what it can take."""

    @property
    def feasible(self) -> bool:
        """Whether all that was asked for can be had."""
        return not self.unmet


@dataclass(frozen=True, slots=True)
class _Problem:
    asking: PricedDemand
    host: IntArray
    limit: FloatArray
    ends: DemandExtremes
    floor: FloatArray
    """What the pages of each host ask for at an infinite price."""

    def by_host(self, spent: FloatArray) -> FloatArray:
        return _sums(self.host, spent, len(self.limit))

    def kept(self, spent: FloatArray, rows: IntArray | None) -> FloatArray:  # noqa: ARG002 - one group has all rows
        """What can be spent of what the pages ask for."""
        return np.array([np.minimum(self.by_host(spent), self.limit).sum()])


def allocate_by_host(asking: PricedDemand, host: IntArray, limit: FloatArray, budget: float) -> HostAllocation:
    """Spend ``budget`` where it is worth most, with at most ``limit[h]`` on host h. O(pages · steps).

    ``host`` is the row of each page's host in ``limit``. Limits are in units of cost per second: visits per second
    where a visit costs 1. A host asked once every d seconds has the limit 1/d; inf is no limit.
    """
    if not budget >= 0:
        raise ConfigError(f"A budget of {budget} visits per second is not possible.", "Give a number of 0 or more.")
    if not bool((limit >= 0).all()):
        raise ConfigError("A host cannot take less than 0 visits.", "Give limits of 0 or more.")
    ends = asking.extremes()
    spent = _sums(host, asking.spending(ends.least), len(limit))
    problem = _Problem(asking, host, limit, ends, spent)
    unmet = _unmet(problem, budget)
    least = float(np.minimum(spent, limit).sum())
    most = float(np.minimum(problem.by_host(asking.spending(ends.most)), limit).sum())
    if least >= budget:
        rate = _cut(problem, ends.least.copy())
        prices = np.full(len(limit), math.inf)
        everyone = np.ones(len(asking), np.bool_)
        return HostAllocation(math.inf, prices, rate, everyone, spent >= limit, unmet)
    price, rate = (0.0, ends.most.copy()) if most <= budget else _price_of_all(problem, budget)
    host_price, saturated, rate = _saturate(problem, price, rate)
    hopeless = ~(ends.limit > host_price[host])
    return HostAllocation(price, host_price, rate, hopeless, saturated, unmet)


def price_hosts(asking: PricedDemand, host: IntArray, limit: FloatArray, price: float) -> HostAllocation:
    """Prices of the hosts whose limit binds, where the price of all others is given. O(pages · steps).

    For a part of a crawl whose price was found over all parts. Arguments as for :func:`allocate_by_host`.
    """
    ends = asking.extremes()
    spent = _sums(host, asking.spending(ends.least), len(limit))
    problem = _Problem(asking, host, limit, ends, spent)
    rate = ends.most.copy() if price <= 0 else ends.least.copy() if math.isinf(price) else asking.rates(price)
    host_price, saturated, rate = _saturate(problem, price, rate)
    unmet = tuple(one for one in _unmet(problem, math.inf) if one.host is not None)
    return HostAllocation(price, host_price, rate, ~(ends.limit > host_price[host]), saturated, unmet)


def _unmet(problem: _Problem, budget: float) -> tuple[UnmetDemand, ...]:
    over = np.flatnonzero(problem.floor > problem.limit * (1 + _EQUAL))
    hosts = [UnmetDemand(int(h), float(problem.floor[h]), float(problem.limit[h])) for h in over]
    least = float(np.minimum(problem.floor, problem.limit).sum())
    return (*hosts, *([UnmetDemand(None, least, budget)] if least > budget * (1 + _EQUAL) else []))


def _price_of_all(problem: _Problem, budget: float) -> tuple[float, FloatArray]:
    """ν and the rates of all pages there, as if no host were limited but what it cannot take were not spent."""
    asking, start, stride, met = problem.asking, math.log(problem.ends.typical), 1.0, MET
    if len(asking) > _HOST_SAMPLE:
        start, stride, met = _rough_price(problem, budget), 0.02, 1e-8
    of, target = one_group(len(asking)), np.array([budget])
    sides = enclose(asking, of, problem.kept, target, np.array([start]), stride=stride)
    sides = close(asking, of, problem.kept, target, sides, met=met)
    share = _share(problem, budget, sides)
    return float(np.exp(sides.nearest[0])), np.asarray(share * sides.rate[0] + (1.0 - share) * sides.rate[1])


def _share(problem: _Problem, budget: float, sides: PriceBrackets) -> float:
    """How much of the rates below the price to mix with those above it, so that hosts take the budget."""
    more, less = (problem.by_host(problem.asking.spending(rate)) for rate in sides.rate)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        short = np.minimum(middle * more + (1.0 - middle) * less, problem.limit).sum() < budget
        low, high = (middle, high) if short else (low, middle)
    return high


def _rough_price(problem: _Problem, budget: float) -> float:
    """The log of the price of some hosts, with their share of the budget."""
    hosts = len(problem.limit)
    some = np.zeros(hosts, np.bool_)
    some[spread(hosts, max(1, min(hosts, hosts * _HOST_SAMPLE // (2 * len(problem.asking)))))] = True
    rows = np.flatnonzero(some[problem.host])
    if not len(rows):
        return math.log(problem.ends.typical)
    place = np.cumsum(some) - 1
    part = _Problem(
        problem.asking.take(rows), place[problem.host[rows]], problem.limit[some], problem.ends, problem.floor[some]
    )
    ends = part.asking.extremes()
    low, high = (float(part.kept(part.asking.spending(rate), None)[0]) for rate in (ends.least, ends.most))
    share = budget * len(rows) / len(problem.asking)
    if not low < share < high or not (ends.limit > 0).any():
        return math.log(problem.ends.typical)
    of, target = one_group(len(rows)), np.array([share])
    sides = enclose(part.asking, of, part.kept, target, np.array([math.log(ends.typical)]))
    return float(close(part.asking, of, part.kept, target, sides, met=1e-4).nearest[0])


def _saturate(problem: _Problem, price: float, rate: FloatArray) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Raise the prices of the hosts that are asked for more than they can take. Rates are changed in place."""
    asking, host, limit = problem.asking, problem.host, problem.limit
    host_price = np.full(len(limit), price)
    saturated = problem.by_host(asking.spending(rate)) > limit * (1 + _EQUAL)
    at_floor = saturated & (problem.floor >= limit)
    host_price[at_floor] = math.inf
    rate[at_floor[host]] = problem.ends.least[at_floor[host]]
    searched = saturated & ~at_floor
    if searched.any():
        rows = np.flatnonzero(searched[host])
        place = np.cumsum(searched) - 1
        of, target = place[host[rows]], limit[searched]
        some = asking.take(rows)

        def total(spent: FloatArray, of_rows: IntArray | None) -> FloatArray:
            return _sums(of if of_rows is None else of[of_rows], spent, len(target))

        start = math.log(price if price > 0 else problem.ends.typical)
        sides = enclose(some, of, total, target, np.full(len(target), start))
        sides = close(some, of, total, target, sides, met=1e-9)
        host_price[searched] = np.exp(sides.nearest)
        rate[rows] = sides.mixed(some, of, total, target)
    return host_price, saturated, _cut(problem, rate)


def _cut(problem: _Problem, rate: FloatArray) -> FloatArray:
    """The same rates, cut by a common factor on hosts that would be asked for more than they can take."""
    spent = problem.by_host(problem.asking.spending(rate))
    over = spent > problem.limit
    if over.any():
        factor = np.where(over, problem.limit / np.where(over, spent, 1.0), 1.0)
        rate *= factor[problem.host]
    return rate


def _sums(group: IntArray, values: FloatArray, groups: int) -> FloatArray:
    return np.asarray(np.bincount(group, values, groups), dtype=np.float64)


HostLimits: TypeAlias = Callable[[IntArray], FloatArray]
"""What each of these hosts takes at most, in units of cost per second: 1/d for a host that is asked every d seconds
where a visit costs 1. inf is no limit."""


@dataclass(frozen=True, slots=True)
class PagePrices:
    """What a unit of cost must bring, by host."""

    everywhere: float
    """On all hosts that are not named."""
    host: IntArray
    """Hosts whose limit binds, ascending."""
    on_host: FloatArray
    """Their prices: above that of the others."""

    def of(self, host: IntArray) -> FloatArray:
        """The price on each of these hosts. O(n log hosts).

        >>> PagePrices(2.0, np.array([7]), np.array([5.0])).of(np.array([3, 7, 9])).tolist()
        [2.0, 5.0, 2.0]
        """
        prices = np.full(len(host), self.everywhere)
        if len(self.host):
            place = np.minimum(np.searchsorted(self.host, host), len(self.host) - 1)
            binds = self.host[place] == host
            prices[binds] = self.on_host[place[binds]]
        return prices


def spend_at(
    demand: VisitDemand, price: float, host: IntArray, limits: HostLimits | None
) -> tuple[Allocation, PagePrices]:
    """As :func:`spend`, at a given price instead of a budget: rates, and the prices of hosts whose limit binds."""
    hosts, of = np.unique(host, return_inverse=True)
    limit = np.full(len(hosts), np.inf) if limits is None else limits(hosts)
    found = price_hosts(demand, of, limit, price)
    binds = found.host_price > price
    return (
        Allocation(price, found.rate, found.hopeless, found.feasible),
        PagePrices(price, hosts[binds], found.host_price[binds]),
    )


def spend(
    demand: VisitDemand, budget: float, host: IntArray, limits: HostLimits | None
) -> tuple[Allocation, PagePrices]:
    """Spend a budget, in units of cost per second, on pages of these hosts, within their limits. O(pages · steps).

    Hosts are priced one by one only if some would be asked for more than they take.
    """
    found = allocate(demand, budget)
    nobody = np.empty(0, np.int64), np.empty(0)
    if limits is None:
        return found, PagePrices(found.price, *nobody)
    hosts, of = np.unique(host, return_inverse=True)
    limit = limits(hosts)
    if bool((np.bincount(of, demand.spending(found.rate), len(hosts)) <= limit).all()):
        return found, PagePrices(found.price, *nobody)
    polite = allocate_by_host(demand, of, limit, budget)
    binds = polite.host_price > polite.price
    return (
        Allocation(polite.price, polite.rate, polite.hopeless, polite.feasible),
        PagePrices(polite.price, hosts[binds], polite.host_price[binds]),
    )
