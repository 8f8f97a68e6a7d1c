"""A policy in parts, one for each partition of the pages, with one price for all of them.

Hosts are assigned to partitions, so everything that pages share (host priors, clusters and their calendars, limits of
hosts) lies in one part. The parts exchange only their demand curves (``schedule.price.price_roots``): the merged
curve gives one price, and the budget goes where visits are worth most, in whatever part that is.

Parts bound the memory and the time of a fit: each is fitted alone, and only its curve is kept.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from recrawl.model import FloatArray, IntArray, Pages, Visits
from recrawl.schedule.learning.observation_columns import GrowingColumns, PageIndex
from recrawl.schedule.policy import Policy, ReplicablePolicy, SignalAware
from recrawl.schedule.price.price_roots import DemandCurve, merged_price, prices_around, wide_prices

_EXCHANGES = 3
"""Exchanges of curves in a fit: the first finds the magnitude of the price, the others its digits."""
_NEAR = 1e-6
"""Relative move of the price at which a fit ends."""

PartOf: TypeAlias = Callable[[IntArray], IntArray]
"""The part of each of these hosts, counted from 0."""


@runtime_checkable
class PricedPolicy(Policy, Protocol):
    """A policy whose demand can be merged with that of others, and that takes its price from outside."""

    def highest_value(self, now: float) -> float:
        """The highest price at which a page asks for more than its floor; 0 without pages."""
        ...

    def demand_curve(self, price: FloatArray, now: float) -> DemandCurve:
        """What the pages ask for at these ascending prices, in cost per second."""
        ...

    def set_price(self, price: float, now: float) -> None:
        """Adapt to a price instead of a budget."""
        ...


def find_price(
    curves: Callable[[FloatArray], Sequence[DemandCurve]],
    budget: float,
    last: float | None,
    highest: Callable[[], float],
) -> float:
    """The price at which all curves together spend ``budget``, in cost per second.

    ``curves`` returns them at ascending prices; those of other processes may be at other prices. The search starts at
    the ``last`` price; without one, below the ``highest`` at which a page asks for more than its floor.
    """
    price = last
    if price is None or not 0.0 < price < np.inf:
        price = merged_price(curves(wide_prices(highest() or 1.0)), budget)
    for _ in range(_EXCHANGES):
        before = price
        if not 0.0 < price < np.inf:
            break
        price = merged_price(curves(prices_around(price)), budget)
        if abs(price - before) <= _NEAR * before:
            break
    return price


class PartitionedPolicy:
    """Policies of the same kind, each for the hosts of one partition. It answers as one policy for all pages."""

    def __init__(self, parts: Sequence[PricedPolicy], part_of: PartOf) -> None:
        """``part_of`` assigns hosts to ``parts``; it never changes its answer."""
        self.parts = list(parts)
        self._part_of = part_of
        self._index = PageIndex()
        self._part = GrowingColumns({"part": np.int16})
        self._price: float | None = None

    @property
    def name(self) -> str:
        """The name of its parts."""
        return self.parts[0].name

    @property
    def price(self) -> float | None:
        """Value a unit of cost must bring, in all parts; ``None`` before a fit that had pages."""
        return self._price

    def __len__(self) -> int:
        """Number of known pages."""
        return len(self._index)

    def add(self, pages: Pages) -> None:
        """Add pages to the parts of their hosts."""
        new = pages.take(self._index.new(pages.id))
        part = self._part_of(new.host)
        self._index.append(new.id)
        self._part.append(part=part)
        for number, rows in _by_part(part):
            self.parts[number].add(new.take(rows))

    def tell(self, visits: Visits) -> None:
        """Hand visits to the parts of their pages."""
        for number, rows in self._parts_of(visits.page):
            self.parts[number].tell(visits.take(rows))

    def signal(self, page: IntArray, time: FloatArray) -> None:
        """Hand signals of change to the parts of their pages that use them."""
        for number, rows in self._parts_of(page):
            part = self.parts[number]
            if isinstance(part, SignalAware):
                part.signal(page[rows], time[rows])

    def fit(self, budget: float, now: float) -> None:
        """Find one price for all parts. O(pages · prices of a grid · exchanges)."""
        if not len(self._index):
            return
        price = find_price(lambda at: self._curves(at, now), budget, self._price, lambda: self.highest_value(now))
        self.set_price(price, now)

    def set_price(self, price: float, now: float) -> None:
        """Adapt all parts to a price."""
        self._price = price
        for part in self.parts:
            part.set_price(price, now)

    def highest_value(self, now: float) -> float:
        """The highest of its parts."""
        return max(part.highest_value(now) for part in self.parts)

    def demand_curve(self, price: FloatArray, now: float) -> DemandCurve:
        """The sum of its parts."""
        curves = self._curves(price, now)
        asked: FloatArray = np.sum([curve.asked for curve in curves], axis=0)
        return DemandCurve(price, asked, sum(curve.least for curve in curves), sum(curve.most for curve in curves))

    def due(self, page: IntArray, now: float) -> FloatArray:
        """Due times from the part of each page."""
        due = np.empty(len(page))
        for number, rows in self._parts_of(page):
            due[rows] = self.parts[number].due(page[rows], now)
        return due

    def urgency(self, page: IntArray, now: float) -> FloatArray:
        """Urgencies from the part of each page: values in units of one price, so they compare across parts."""
        urgency = np.empty(len(page))
        for number, rows in self._parts_of(page):
            urgency[rows] = self.parts[number].urgency(page[rows], now)
        return urgency

    def replica(self) -> Self:
        """A twin of replicas of its parts (``ReplicablePolicy``)."""
        twin = copy.copy(self)
        twin.parts = [_replica_of(part) for part in self.parts]
        return twin

    def _curves(self, price: FloatArray, now: float) -> list[DemandCurve]:
        return [part.demand_curve(price, now) for part in self.parts]

    def _parts_of(self, page: IntArray) -> Iterator[tuple[int, IntArray]]:
        return _by_part(self._part["part"][self._index.rows(page)])


def _by_part(part: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each part that occurs, and the positions where it does, ascending. O(n log n)."""
    if not len(part):
        return
    order = np.argsort(part, kind="stable")
    numbers, heads = np.unique(part[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, heads[1:]), strict=True)


def _replica_of(part: PricedPolicy) -> PricedPolicy:
    if not isinstance(part, ReplicablePolicy):
        return part
    twin = part.replica()
    assert isinstance(twin, PricedPolicy)  # noqa: S101 - a replica answers as the policy does
    return twin
