"""SHARC-Optimal: the visit–revisit schedule of the highest expected coherence, with a proof of how near it comes.

Some pyramid is the best of all schedules that visit every page and then see every page again (reading 003.27). So
the best schedule is the best assignment of pages to the lengths of the pyramid, which a small site can afford. A large
one is planned as a small one of groups of like pages, and prices of the intervals, found on the way, bound what
any schedule could reach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.capture.decision import Decision, Proven
from recrawl.capture.optimal_groups import alike
from recrawl.capture.optimal_prices import (
    coherence_bound,
    improved_prices,
    knots,
    prices_of_order,
    settled_prices,
    share_of_knots,
)
from recrawl.capture.pyramid import pyramid
from recrawl.capture.selective_weighted import valley
from recrawl.capture.sharc_selective import hopeless_pages
from recrawl.model import CapturePlan, FloatArray, IntArray

EXACT_PAGES = 1_000
"""Up to so many pages the assignment is exact; it is O(n³), about a second there."""
GROUPS = 600
"""A larger site is planned as one of so many groups."""
_KNOTS = 300
_CHOICES = 200_000_000


@dataclass(frozen=True, slots=True)
class Optimum:
    """A plan, what it is worth, and what no plan exceeds."""

    plan: CapturePlan
    expected_coherence: float
    """Expected weight of the pages that are the same at visit and revisit."""
    bound: float
    """No schedule has more, by linear programming duality; equal to the value where the plan is exact."""

    @property
    def gap(self) -> float:
        """How far from the optimum the plan can be, as a share of the bound."""
        return (self.bound - self.expected_coherence) / self.bound if self.bound else 0.0


def optimal(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> Optimum:
    """The best plan found, exact up to :data:`EXACT_PAGES` pages. O(n log² n) and a few seconds above.

    On the site of SHARC Example 5.8, where SHARC-Selective has 2.2820:

    >>> best = optimal(np.array([0.4, 0.35, 0.3, 0.25, 0.2]), 1.0)
    >>> round(best.expected_coherence, 4), best.plan.visit.tolist()
    (2.2821, [4, 0, 3, 1, 2])
    """
    site = _Site(rate, np.ones(len(rate)) if weight is None else weight, 2.0 * delay)
    if len(rate) <= EXACT_PAGES:
        order = np.argsort(_best_places(site.worth(np.arange(len(rate))), np.zeros(len(rate))))
        value = site.coherence(order)
        return Optimum(pyramid(order, once=True), value, value)
    greedy = valley(rate, weight, hopeless_pages(rate, delay, weight))
    return _large(site, greedy)


def sharc_optimal(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> CapturePlan:
    """The plan of :func:`optimal`."""
    return optimal(rate, delay, weight).plan


def prove(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> Decision:
    """The plan of :func:`optimal`, and how near it is proven to come."""
    best = optimal(rate, delay, weight)
    return Decision(best.plan, proven=Proven(len(rate), best.expected_coherence, best.bound))


@dataclass(frozen=True, slots=True)
class _Site:
    """Pages, and the intervals 0, step, 2·step, … seconds."""

    rate: FloatArray
    weight: FloatArray
    step: float

    def of(self, page: IntArray) -> _Site:
        return _Site(self.rate[page], self.weight[page], self.step)

    def worth(self, place: FloatArray | IntArray) -> FloatArray:
        """Of each page (rows) at each place from the middle (columns)."""
        return self.weight[:, None] * np.exp(-np.outer(self.rate, self.step * place))

    def slope(self, place: FloatArray) -> FloatArray:
        """What each page loses at its place with every second more: the higher, the farther inside it belongs."""
        return self.weight * self.rate * np.exp(-self.rate * self.step * place)

    def in_order(self, order: IntArray) -> FloatArray:
        """Of the pages from the shortest interval to the longest."""
        return self.weight[order] * np.exp(-self.rate[order] * self.step * np.arange(len(order)))

    def coherence(self, order: IntArray) -> float:
        return float(self.in_order(order).sum())


def _best_places(worth: FloatArray, price: FloatArray) -> IntArray:
    """The place of each page in the best assignment. Prices near the right ones make it faster and change nothing."""
    from scipy.optimize import linear_sum_assignment

    left = worth - price
    place: IntArray = linear_sum_assignment(left - left.max(axis=1, keepdims=True, initial=0.0), maximize=True)[1]
    return place


def _large(site: _Site, greedy: IntArray) -> Optimum:
    """Plan groups of pages on blocks of intervals; then let all pages choose by the prices found."""
    pages = len(greedy)
    size = -(-pages // GROUPS)
    grouped = alike(site.rate, site.weight, size)
    centre = np.minimum(np.arange(0, pages, size) + (size - 1) / 2.0, pages - 1.0)
    groups = site.of(grouped[centre.astype(np.int64)])
    rough = np.interp(centre, np.arange(pages), prices_of_order(*_columns(site.of(greedy))))
    worth = groups.worth(centre)
    place = _best_places(worth, rough)
    price = settled_prices(worth, place, rough)
    block = np.empty(pages, dtype=np.int64)
    block[grouped] = np.repeat(place, size)[:pages]
    orders = [_by_block(site, chosen, centre) for chosen in (block, _favourites(site, centre, price))]
    best = max([greedy, *(_polished(site, order, size) for order in orders)], key=site.coherence)
    bound, knot, price = _best_prices(site, best, grouped, centre, price)
    by_price = _polished(site, _by_block(site, _favourites(site, knot, price), knot), size)
    best = max(best, by_price, key=site.coherence)
    return Optimum(pyramid(best, once=True), site.coherence(best), bound)


def _columns(site: _Site) -> tuple[FloatArray, FloatArray, float]:
    return site.rate, site.weight, site.step


def _by_block(site: _Site, block: IntArray, centre: FloatArray) -> IntArray:
    """Blocks from the inside out, and in each of them the steepest page first."""
    return np.lexsort((-site.slope(centre[block]), block))


def _favourites(site: _Site, centre: FloatArray, price: FloatArray) -> IntArray:
    """The block each page likes best at these prices, among fewer of them if the pages are many."""
    some = np.linspace(0, len(centre) - 1, min(len(centre), max(_CHOICES // len(site.rate), 32))).astype(np.int64)
    found = np.empty(len(site.rate), dtype=np.int64)
    for start in range(0, len(found), 1_000):
        few = site.of(np.arange(start, min(start + 1_000, len(found))))
        found[start : start + 1_000] = (few.worth(centre[some]) - price[some]).argmax(axis=1)
    return some[found]


def _polished(site: _Site, order: IntArray, size: int) -> IntArray:
    """Sort neighbourhoods of some sizes by slope, each where that makes it better."""
    place = np.arange(len(order))
    for width in (4 * size, 2 * size, size):
        for shift in (0, width // 2):
            hood = (place + shift) // width
            middle = np.clip((hood + 0.5) * width - shift, 0.0, len(order) - 1.0)
            sorted_order = order[np.lexsort((-site.of(order).slope(middle), hood))]
            gain = np.bincount(hood, site.in_order(sorted_order) - site.in_order(order))
            order = np.where(gain[hood] > 0.0, sorted_order, order)
    return order


def _best_prices(
    site: _Site, order: IntArray, grouped: IntArray, centre: FloatArray, price: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """The lowest bound of some price lists, with the places and the prices of that list.

    There is the list of the neighbours, that of the groups, and both improved. Inside of the first block, where prices
    are steep, the second follows the first.
    """
    pages = len(order)
    knot = knots(pages, _KNOTS)
    neighbours = prices_of_order(*_columns(site.of(order)))
    of_groups = np.interp(knot, centre, price)
    inner = knot < centre[0]
    of_groups[inner] += neighbours[knot[inner]] - np.interp(centre[0], np.arange(pages), neighbours)
    worth, stand_for = site.of(grouped[knot]).worth(knot), share_of_knots(pages, knot)
    lists = [neighbours[knot], of_groups]
    lists += [improved_prices(worth, stand_for, stand_for, prices) for prices in lists]
    bounds = [coherence_bound(*_columns(site), knot, prices) for prices in lists]
    best = int(np.argmin(bounds))
    return bounds[best], knot.astype(float), lists[best]
