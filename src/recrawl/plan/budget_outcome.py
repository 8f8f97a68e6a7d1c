"""The outcome of a budget: freshness and recall of optimally visited pages, and the budget for a given outcome.

A page visited every τ seconds is fresh for ∫₀^τ S/τ of the time, and (1 − S(τ))/τ of its visits per second find a
change; S is averaged over the belief. Twice the pages of the same kind with twice the budget have the same freshness:
so a population of N pages like these n, at a budget B, behaves as these n at B·n/N. All rates fall as the price rises,
and with them freshness and recall: so the price that just reaches a goal is found by bisection.

Hosts and the crawler also limit the rates. A host receives one request at a time, each taking ``duration`` seconds and
followed by a pause of ``pause`` seconds (``schedule.politeness``): at most 1/(pause + duration) visits per second. W
workers sustain Σ rate·duration ≤ W.

Slots: which pages go into which hour, so that each hour's crawl ends within the hour (paper 001 §3.2 and §5).

Pages are taken as they fall due. In one slot a host takes as many requests as fit one after the other with their
pauses, and all hosts together as much work as fits. Pages that do not fit move to the next slot, ahead of those that
fall due there. A fetched page falls due again one interval later, in the next slot at the earliest. Slots are filled up
to ``fill`` of their length by expected times, which leaves a margin for slow days.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.schedule.price.budget_price import Allocation, HostAllocation, allocate, allocate_by_host
from recrawl.schedule.price.due_times import VisitDemand


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
    """Visits per second that remain of what is asked when a host gets at most its limit, by any number of workers."""
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
    """The same when each page is visited at this rate, whatever it is worth; there is no price. O(pages)."""
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


@dataclass(frozen=True, slots=True)
class RequestCosts:
    """What one request costs each host. One entry per host, in seconds."""

    seconds: FloatArray
    """Of a thread."""
    turn: FloatArray
    """From one request to the next one to the same host."""


@dataclass(frozen=True, slots=True)
class VisitSlots:
    """Which page is fetched in which slot, a row per visit."""

    page: IntArray
    """Row of the page."""
    slot: IntArray
    """From 0, never falling."""
    unplaced: IntArray
    """Rows of the pages that are due and fit into none."""
    pages: IntArray
    """In each slot."""
    moved: IntArray
    """Of those, how many had to wait for it."""
    full: FloatArray
    """Share of each slot that is filled, by its longest host or by its work, whichever is more."""


def fill_slots(  # noqa: PLR0913 - what is due where, and what fits
    due: FloatArray,
    host: IntArray,
    turns: RequestCosts,
    *,
    start: float,
    length: float,
    count: int,
    concurrency: int,
    fill: float = 0.8,
    interval: FloatArray | float = np.inf,
) -> VisitSlots:
    """Fill ``count`` slots of ``length`` seconds from ``start`` on. ``host`` is a row of ``turns``.

    ``interval`` is how many seconds after a visit each page is due again; a visit is made when the page is due, or when
    its slot starts if it had to wait. O((n + visits) log n + count · pages on hand).

    >>> turns = RequestCosts(np.array([1.0]), np.array([10.0]))
    >>> hour = fill_slots(np.zeros(9), np.zeros(9, int), turns, start=0.0, length=50.0, count=2, concurrency=4,
    ...     fill=1.0)
    >>> hour.slot.tolist(), hour.pages.tolist(), hour.moved.tolist()
    ([0, 0, 0, 0, 0, 1, 1, 1, 1], [5, 4], [0, 4])
    >>> again = fill_slots(np.array([20.0, 70.0]), np.zeros(2, int), turns, start=0.0, length=50.0, count=4,
    ...     concurrency=4, interval=np.array([60.0, 900.0]))
    >>> again.page.tolist(), again.slot.tolist()
    ([0, 1, 0, 0], [0, 1, 1, 2])
    """
    if length <= 0 or count < 1 or concurrency < 1 or not 0 < fill <= 1:
        raise ConfigError("Such slots cannot be filled.", "Give a length, a number of slots and a concurrency above 0.")
    with np.errstate(divide="ignore"):
        room = np.maximum(np.floor(np.where(turns.turn > 0, length * fill / turns.turn, np.inf)), 1.0)
    queue = _Queue(np.array(due, dtype=np.float64), start, length, count)
    every = np.broadcast_to(np.asarray(interval, dtype=np.float64), (len(due),))
    pages, moved, full = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count)
    placed: list[IntArray] = []
    waiting = np.empty(0, dtype=np.int64)
    for number in range(count):
        hand = np.concatenate([waiting, queue.falling_due(number)])
        fits = _place_within(host[hand]) < room[host[hand]]
        work = np.cumsum(np.where(fits, turns.seconds[host[hand]], 0.0))
        fits &= work <= max(concurrency * length * fill, work[0] if len(work) else 0.0)
        taken, waiting = hand[fits], hand[~fits]
        placed.append(taken)
        pages[number], moved[number] = len(taken), int((queue.wished[taken] < number).sum())
        asked = np.bincount(host[taken], minlength=len(room))
        busy = float((asked * turns.seconds).sum()) / concurrency
        full[number] = max(float((asked * turns.turn).max(initial=0.0)), busy) / length
        queue.put_again(taken, every[taken], number)
    return VisitSlots(np.concatenate(placed), np.repeat(np.arange(count), pages), waiting, pages, moved, full)


class _Queue:
    """Pages by the slot in which they fall due."""

    def __init__(self, due: FloatArray, start: float, length: float, count: int) -> None:
        self._due, self._start, self._length = due, start, length
        self._coming: list[list[IntArray]] = [[] for _ in range(count)]
        self.wished = np.full(len(due), -1, dtype=np.int64)
        """The slot in which each page falls due next."""
        self._put(np.arange(len(due)), earliest=0)

    def falling_due(self, number: int) -> IntArray:
        """The pages of this slot as they fall due, once. O(pages of the slot)."""
        rows = np.concatenate([np.empty(0, np.int64), *self._coming[number]])
        self._coming[number] = []
        return rows[np.lexsort((rows, self._due[rows]))]

    def put_again(self, rows: IntArray, interval: FloatArray, number: int) -> None:
        """These pages are visited in this slot, and fall due again."""
        self._due[rows] = np.maximum(self._due[rows], self._start + number * self._length) + interval
        self._put(rows, earliest=number + 1)

    def _put(self, rows: IntArray, earliest: int) -> None:
        count = len(self._coming)
        soon = rows[self._due[rows] < self._start + count * self._length]
        if not len(soon) or earliest >= count:
            return
        slot = np.clip(np.floor((self._due[soon] - self._start) / self._length), earliest, count - 1).astype(np.int64)
        self.wished[soon] = slot
        order = np.argsort(slot, kind="stable")
        numbers, first = np.unique(slot[order], return_index=True)
        for number, part in zip(numbers.tolist(), np.split(soon[order], first[1:]), strict=True):
            self._coming[number].append(part)


def _place_within(host: IntArray) -> IntArray:
    """How many earlier rows have the same host."""
    order = np.argsort(host, kind="stable")
    grouped = host[order]
    first = np.flatnonzero(np.concatenate([np.ones(min(len(host), 1), np.bool_), grouped[1:] != grouped[:-1]]))
    place = np.empty(len(host), dtype=np.int64)
    sizes = np.diff(np.append(first, len(host)))
    place[order] = np.arange(len(host)) - np.repeat(first, sizes)
    return place
