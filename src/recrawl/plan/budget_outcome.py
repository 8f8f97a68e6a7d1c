"""The outcome of a budget: freshness and recall of optimally visited pages, and the budget for a given outcome.

A page visited every τ seconds is fresh for ∫₀^τ S/τ of the time, and (1 − S(τ))/τ of its visits per second find a
change; S is averaged over the belief. Twice the pages of the same kind with twice the budget have the same freshness:
so a population of N pages like these n, at a budget B, behaves as these n at B·n/N. All rates fall as the price rises,
and with them freshness and recall: so the price that just reaches a goal is found by bisection.

Hosts and the crawler also limit the rates. A host receives one request at a time, each taking ``duration`` seconds and
followed by a pause of ``pause`` seconds (``schedule.politeness``): at most 1/(pause + duration) visits per second. W
workers sustain Σ rate·duration ≤ W.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.schedule.price.budget_price import Allocation, allocate
from recrawl.schedule.price.due_times import VisitDemand
from recrawl.schedule.price.host_prices import HostAllocation, allocate_by_host


@dataclass(frozen=True, slots=True)
class HostLimits:
    """Hosts as columns."""

    pages: IntArray
    """Pages to keep up with."""
    pause: FloatArray
    """Seconds of rest after each answer."""
    duration: FloatArray
    """Seconds an answer takes."""
    asked: FloatArray
    """Visits per second that are wanted."""

    def __len__(self) -> int:
        return len(self.pages)


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is possible."""

    round_seconds: float
    """No round of one visit to every page is shorter than this."""
    limit: FloatArray
    """Most visits per second that politeness allows each host."""
    too_slow: BoolArray
    """Hosts that cannot keep up with what is asked of them."""
    served: float
    """Visits per second that remain of what is asked when each host gets at most its limit, workers aside."""
    workers_needed: float
    """Requests in flight, on average, at that rate."""
    largest_budget: float
    """Most visits per second that all hosts and the workers together can bear: no budget above it can be spent."""


def capacity(hosts: HostLimits, workers: int) -> Capacity:
    """Judge what is asked of the hosts. O(hosts log hosts).

    >>> two = HostLimits(np.array([100, 10]), np.array([9.0, 9.0]), np.array([1.0, 1.0]), np.array([0.2, 0.05]))
    >>> found = capacity(two, workers=4)
    >>> found.round_seconds, found.too_slow.tolist(), round(found.served, 3), found.largest_budget
    (991.0, [True, False], 0.15, 0.2)
    """
    if workers < 1:
        raise ConfigError(f"Nothing can be fetched by {workers} workers.", "Give 1 or more.")
    turn = hosts.pause + hosts.duration
    with np.errstate(divide="ignore"):
        limit = np.where(hosts.pages > 0, 1.0 / turn, 0.0)
    slowest = np.where(hosts.pages > 0, hosts.pages * turn - hosts.pause, 0.0).max(initial=0.0)
    work = float((hosts.pages * hosts.duration).sum()) / workers
    served = np.minimum(hosts.asked, limit)
    return Capacity(
        round_seconds=float(max(slowest, work)),
        limit=limit,
        too_slow=hosts.asked > limit,
        served=float(served.sum()),
        workers_needed=float((served * hosts.duration).sum()),
        largest_budget=_most(limit, hosts.duration, workers),
    )


def _most(limit: FloatArray, duration: FloatArray, workers: int) -> float:
    """The largest Σ rate with rate ≤ limit and Σ rate·duration ≤ workers: quick hosts first."""
    order = np.argsort(duration, kind="stable")
    load = limit[order] * duration[order]
    left = workers - (np.cumsum(load) - load)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(load > 0, np.clip(left / load, 0.0, 1.0), 1.0)
    return float((limit[order] * share).sum())


Measure = Literal["freshness", "recall"]
_FOREVER = 1e12
_STEPS = 60


@dataclass(frozen=True, slots=True)
class BudgetOutcome:
    """What visiting pages at some rates brings, each page weighted by its importance. Rates are per second."""

    spending: float
    """Cost per second."""
    price: float
    """What a unit of cost must bring. 0: everything is affordable. inf: not even the longest intervals are."""
    freshness: float
    """Share of pages that are as they were when last seen."""
    found: float
    """Visits that find a change, unweighted."""
    happening: float
    """Changes, unweighted."""
    recall: float
    """Share of changes that are found, each by a visit of its own."""
    hopeless: int
    """Pages never worth a visit at this price: visited at the longest interval only."""
    feasible: bool
    """Whether the budget is kept."""
    delay: float
    """Mean seconds from a change to the next visit, whether others came before it."""

    def measure(self, which: Measure) -> float:
        """Freshness or recall."""
        return self.freshness if which == "freshness" else self.recall


@dataclass(frozen=True, slots=True)
class HostVisitLimits:
    """What politeness lets each host take."""

    host: IntArray
    """Row of each page's host."""
    most: FloatArray
    """Cost per second of each host."""


def keep(
    demand: VisitDemand, budget: float, limits: HostVisitLimits | None = None, changing: FloatArray | None = None
) -> BudgetOutcome:
    """What a budget, in units of cost per second, keeps. O(pages · steps).

    With limits, what a host cannot take is spent elsewhere. ``changing`` are changes per second of each page, NaN where
    that is not known: changes are then counted by it, over the pages of which it is known. Without it they are counted
    by the mean of what is believed, which is all tail where pages changed at every observation.
    """
    if limits is None:
        spent: Allocation | HostAllocation = allocate(demand, budget)
    else:
        spent = allocate_by_host(demand, limits.host, limits.most, budget)
    hopeless = int((spent.hopeless & (demand.importance > 0)).sum())
    return _kept(demand, spent.rate, spent.price, hopeless, feasible=spent.feasible, changing=changing)


def keep_at_price(demand: VisitDemand, price: float, changing: FloatArray | None = None) -> BudgetOutcome:
    """The same when a unit of cost must bring ``price``. O(pages · steps)."""
    return _kept(demand, demand.rates(price), price, 0, feasible=True, changing=changing)


def keep_many(
    demand: VisitDemand,
    budget: float,
    pages: float,
    limits: HostVisitLimits | None = None,
    changing: FloatArray | None = None,
) -> BudgetOutcome:
    """What a budget keeps of ``pages`` pages of which these are a sample, on more such hosts, not on larger ones.

    Visits and changes are those of all. ``changing`` are changes per second of each page of the sample, as in
    :func:`keep`.
    """
    scale = pages / len(demand)
    sample = keep(demand, budget / scale, limits, changing)
    return BudgetOutcome(
        sample.spending * scale, sample.price, sample.freshness, sample.found * scale, sample.happening * scale,
        sample.recall, round(sample.hopeless * scale), sample.feasible, sample.delay,
    )  # fmt: skip


def budget_for(
    demand: VisitDemand, goal: float, which: Measure = "freshness", changing: FloatArray | None = None
) -> BudgetOutcome | None:
    """The least to spend for a goal; ``None`` if not even the shortest intervals reach it. O(pages · steps).

    ``changing`` as in :func:`keep`; it must be known of some page.
    """
    if not 0 <= goal <= 1:
        raise ConfigError(f"A {which} of {goal} is not possible.", "Give a share between 0 and 1.")
    ends = demand.extremes()
    best = _kept(demand, ends.most, 0.0, 0, feasible=True, changing=changing)
    if best.measure(which) < goal:
        return None
    idle = _kept(demand, ends.least, math.inf, len(demand), feasible=True, changing=changing)
    if idle.measure(which) >= goal:
        return idle
    low, high = math.log(ends.typical) - 1.0, math.log(ends.typical)
    found = best
    while keep_at_price(demand, math.exp(low), changing).measure(which) < goal:
        low -= 4.0
        if low < -_STEPS:
            return best
    for _ in range(_STEPS):
        if high - low < 1e-6:  # noqa: PLR2004 - a millionth of the price
            break
        middle = 0.5 * (low + high)
        kept = keep_at_price(demand, math.exp(middle), changing)
        if kept.measure(which) >= goal:
            low, found = middle, kept
        else:
            high = middle
    return found


@dataclass(frozen=True, slots=True)
class MachineCount:
    """How far one machine reaches, and how many are needed."""

    visits: float
    """Visits per second that one machine makes."""
    pages: float
    """Pages of this kind that it keeps at the goal."""
    needed: float
    """Machines for as many pages as were asked for, not rounded."""
    spending: float
    """Visits per second that those pages need at the goal."""


def machines_for(  # noqa: PLR0913 - a goal, a machine, and what is known
    demand: VisitDemand, goal: float, which: Measure, visits: float, pages: float, *, changing: FloatArray | None = None
) -> MachineCount | None:
    """How many such pages a machine of ``visits`` visits per second keeps, and how many machines ``pages`` need.

    ``None`` if the goal cannot be reached whatever is spent.
    """
    if not visits > 0:
        raise ConfigError(f"A machine of {visits} visits per second keeps nothing.", "Give it workers, or a budget.")
    kept = budget_for(demand, goal, which, changing)
    if kept is None:
        return None
    each = kept.spending / len(demand)
    return MachineCount(visits, visits / each if each > 0 else math.inf, pages * each / visits, pages * each)


def keep_at_rates(demand: VisitDemand, rate: FloatArray, changing: FloatArray | None = None) -> BudgetOutcome:
    """The same when each page is visited so often, whatever it is worth; there is no price. O(pages)."""
    return _kept(demand, rate, math.nan, 0, feasible=True, changing=changing)


def _kept(  # noqa: PLR0913 - what is spent, on what, and what is known
    demand: VisitDemand,
    rate: FloatArray,
    price: float,
    hopeless: int,
    *,
    feasible: bool,
    changing: FloatArray | None = None,
) -> BudgetOutcome:
    interval = np.minimum(1.0 / np.maximum(rate, 1.0 / _FOREVER), _FOREVER)
    fresh = demand.belief.unchanged_time(interval) / interval
    weight = demand.importance  # what has none is not there: nothing happens to it
    if changing is None:
        found = np.where((rate > 0) & (weight > 0), demand.belief.p_change(interval) / interval, 0.0)
        happening = np.where(weight > 0, demand.belief.mean(), 0.0)
    elif np.isnan(changing).all():
        spending, unknown = float(demand.spending(rate).sum()), math.nan
        return BudgetOutcome(spending, price, unknown, unknown, unknown, unknown, hopeless, feasible, unknown)
    else:
        happening = np.where(weight > 0, np.nan_to_num(changing), 0.0)
        found = np.where(rate > 0, -np.expm1(-happening * interval) / interval, 0.0)
    total = max(float(weight.sum()), 1e-300)
    changes = float((weight * happening).sum())
    return BudgetOutcome(
        float(demand.spending(rate).sum()),
        price,
        float((weight * fresh).sum()) / total,
        float(found.sum()),
        float(happening.sum()),
        float((weight * found).sum()) / changes if changes > 0 else 1.0,
        hopeless,
        feasible,
        float((weight * happening * interval).sum()) / (2.0 * changes) if changes > 0 else 0.0,
    )
