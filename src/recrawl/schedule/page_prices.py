"""Prices of visits when hosts can take only so much: one for all pages, and a higher one where a limit binds.

What a slow host cannot take is spent elsewhere, so that the price of the others falls (``schedule.host_prices``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.schedule.due import Demand
from recrawl.schedule.host_prices import allocate_by_host
from recrawl.schedule.price import Allocation, allocate

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


def spend(demand: Demand, budget: float, host: IntArray, limits: HostLimits | None) -> tuple[Allocation, PagePrices]:
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
