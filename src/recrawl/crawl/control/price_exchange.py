"""The exchange of demand between the partitions of one crawl, from which each finds the same price.

A partition is what one worker schedules: the pages of its buckets. At each fit it publishes what these pages ask for at
prices around the one in force (:class:`~recrawl.store.coordination.Coordination`), and solves the sum of all published
curves for the price at which all partitions together spend the whole budget. So the budget goes where visits are worth
most, in whatever partition that is; a fixed share for each would not.

Rules of this file:

1. Nobody decides for the others, and nobody waits for them. A fit uses what the others published last.
2. A curve counts in full for ``FRESH`` seconds; then its weight halves every ``HALF_LIFE`` seconds.
3. While nothing is known of the others, the last price holds: that of this partition, or the latest of another one. The
   token bucket of the budget caps the visits whatever the price is.
4. Buckets whose owner has not published yet, or that two count while they move, are corrected for by their number.
   A partition that published that it has no pages asks for nothing.
5. Partitions of other units have a name with :data:`FOREIGN` in it: the agent of the unit copies them into its store
   (``crawl.units.unit_demand``). They count as all others do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.partitioned import PricedPolicy, find_price
from recrawl.schedule.policy import Policy
from recrawl.schedule.price.price_roots import DemandCurve, prices_around
from recrawl.store.coordination import Coordination, PartitionDemand
from recrawl.time import DAY
from recrawl.urls import BUCKETS

FRESH = 2 * DAY
"""Seconds for which a published curve counts in full: every worker fits at least once a day."""
HALF_LIFE = DAY
"""Seconds in which the weight of an older curve halves."""
FOREIGN = "/"
"""Between unit and worker in the name of a partition of another unit."""
_BY_BUCKETS = 0.1
"""Part of the budget of all units that is shared by the number of their buckets, whatever they ask for."""
_APART = 0.02
"""Relative difference of two prices from which on a partition fits again."""


class Partition(NamedTuple):
    """What one worker schedules."""

    name: str
    """The name of the worker."""
    buckets: IntArray
    """The buckets whose pages it schedules, ascending."""

    @property
    def is_whole(self) -> bool:
        """Whether it has all pages."""
        return len(self.buckets) == BUCKETS


class PriceExchange:
    """Fits the scheduler of one worker to the budget of all."""

    def __init__(self, coordination: Coordination, worker: str = "") -> None:
        """``worker`` is the partition that :meth:`is_outdated` asks for."""
        self._coordination = coordination
        self._worker = worker
        self._last: float | None = None
        """The last price of this partition."""

    def fit(self, scheduler: RevisitScheduler, pages: IntArray, partition: Partition, now: float) -> None:
        """Fit a scheduler of these pages, and publish their demand.

        Raises:
            StoreError: nothing can be read or published.
        """
        others = [said for said in self._coordination.demands() if said.partition != partition.name]
        if partition.is_whole:  # what others published is of pages that we have
            others = []
        scheduler.rebuild_new_page_queue(pages, now, elsewhere=[said.waiting for said in others])
        elsewhere = Elsewhere(others, len(partition.buckets), self._last, now)
        scheduler.fit(now, None if partition.is_whole else elsewhere)
        self._last = scheduler.policy.price
        curve, known = elsewhere.curve, len(scheduler.policy)
        share = 1.0 if partition.is_whole else elsewhere.share_of(known)
        self._coordination.publish_demand(
            PartitionDemand(
                partition.name,
                now,
                len(partition.buckets),
                known,
                scheduler.waiting,
                _positive(self._last),
                (scheduler.budget * share if known else 0.0) if curve is None else curve.at(self._last or 0.0),
                0.0 if curve is None else curve.least,
                (math.inf if known else 0.0) if curve is None else curve.most,
                np.empty(0) if curve is None else curve.price,
                np.empty(0) if curve is None else curve.asked,
            )
        )

    def is_outdated(self, scheduler: RevisitScheduler) -> bool:
        """Whether another partition found a price since that differs from ours, so that a fit is worth while."""
        price = scheduler.policy.price
        if price is None:
            return False
        return any(
            said.partition != self._worker and said.time > scheduler.fitted_at and _differs(said.price, price)
            for said in self._coordination.demands()
        )

    def share_of_unit(self, buckets: int, new_pages: float, now: float) -> float:
        """The share of one unit, which owns N buckets, of the budget of all units.

        ``new_pages`` is the part of the budget for pages without a visit, in visits per second.
        """
        return share_of_unit(self._coordination.demands(), buckets, new_pages, now)


class Elsewhere:
    """What is known of the other partitions while one is fitted (``SharedFit``)."""

    def __init__(self, others: Sequence[PartitionDemand], buckets: int, last: float | None, now: float) -> None:
        """``buckets`` is the number of our own; ``last`` our last price."""
        self._others = others
        self._buckets = buckets
        self._last = last
        self._now = now
        self.curve: DemandCurve | None = None
        """Our own demand, once :meth:`fit` was called with a policy that has a price."""
        self.waiting = sum(said.waiting for said in others)
        """Pages of other partitions that wait for their first visit."""

    def fit(self, policy: Policy, budget: float, now: float) -> None:
        """Fit a policy to a budget, in cost per second, that all partitions share. A policy without price gets a part.

        If the others published nothing yet, the last price holds; if there is none, they may want as much as we do.
        """
        if not isinstance(policy, PricedPolicy):
            policy.fit(budget * self.share_of(len(policy)), now)
            return
        if not len(policy):
            return
        others = self._curves()
        own: list[DemandCurve] = []

        def curves(price: FloatArray) -> list[DemandCurve]:
            own[:] = [policy.demand_curve(price, now)]
            return [*own, *others]

        last = self._last_price()
        if others or last is None:
            budget *= 1.0 if others else self._buckets / BUCKETS
            price = find_price(curves, budget, last, lambda: policy.highest_value(now))
        else:
            price = last
            curves(prices_around(price))
        self.curve = own[0] if own else None
        policy.set_price(price, now)

    def _curves(self) -> list[DemandCurve]:
        """The curves of the others, by their age and as if they had all buckets but ours."""
        known = [said for said in self._others if len(said.prices) or not said.pages]
        covered = sum(said.buckets for said in known)
        scale = (BUCKETS - self._buckets) / covered if covered else 0.0
        return [
            DemandCurve(said.prices, said.asked, said.least, said.most).scaled(scale * weight_of(self._now - said.time))
            for said in known
        ]

    def _last_price(self) -> float | None:
        """Our own last price, else the latest of the others."""
        if self._last is not None and 0.0 < self._last < math.inf:
            return self._last
        told = [(said.time, said.price) for said in self._others if said.price is not None]
        return max(told)[1] if told else None

    def share_of(self, pages: int) -> float:
        """Our share of all pages; by buckets if nothing is known of the others."""
        if not self._others:
            return self._buckets / BUCKETS
        return pages / max(pages + sum(said.pages for said in self._others), 1)


def share_of_unit(demands: Sequence[PartitionDemand], buckets: int, new_pages: float, now: float) -> float:
    """The share of a unit of the budget of all units: what its partitions ask for, of what all of them ask for.

    Without knowledge of the others, and for a small part of the budget in any case, its share of the buckets counts:
    so a unit whose pages were unknown until now can visit some of them. The shares of all units add up to 1.

    >>> ours, theirs = (
    ...     PartitionDemand(name, 0.0, 512, 9, 0, 1.0, asked, 0.0, 9.0, np.empty(0), np.empty(0))
    ...     for name, asked in (("w", 3.0), ("b/w", 1.0))
    ... )
    >>> share_of_unit([ours], 512, 0.0, 0.0), round(share_of_unit([ours, theirs], 512, 0.0, 0.0), 6)
    (0.5, 0.725)
    """
    by_buckets = max(buckets, 1) / BUCKETS
    others = [said for said in demands if FOREIGN in said.partition]
    own = [said for said in demands if FOREIGN not in said.partition]
    covered = sum(said.buckets for said in others)
    if not own or (not covered and buckets < BUCKETS):
        return by_buckets
    waiting = sum(said.waiting for said in demands)
    taken = min(new_pages, waiting / DAY)

    def wanted(some: Sequence[PartitionDemand]) -> float:
        asked = sum(weight_of(now - said.time) * said.asked_for for said in some)
        return asked + (taken * sum(said.waiting for said in some) / waiting if waiting else 0.0)

    mine, theirs = wanted(own), wanted(others) * ((BUCKETS - buckets) / covered if covered else 0.0)
    if not mine + theirs:
        return by_buckets
    return (1.0 - _BY_BUCKETS) * mine / (mine + theirs) + _BY_BUCKETS * by_buckets


def weight_of(age: float) -> float:
    """How much a curve of this age (seconds) counts.

    >>> [weight_of(days * DAY) for days in (0, 2, 3, 5)]
    [1.0, 1.0, 0.5, 0.125]
    """
    return float(0.5 ** (max(age - FRESH, 0.0) / HALF_LIFE))


def _positive(price: float | None) -> float | None:
    return price if price is not None and 0.0 < price < math.inf else None


def _differs(theirs: float | None, ours: float) -> bool:
    if theirs is None:
        return False
    return not 0.0 < ours < math.inf or abs(math.log(theirs / ours)) > _APART
