"""SHARC-Optimal: the visit–revisit schedule of the highest expected coherence, with a bound on its distance from it.

Some pyramid is the best of all schedules that visit every page and then revisit every page (reading 003.27). So the
best schedule is the best assignment of pages to the intervals of the pyramid, which is affordable for a small site. A
large site is planned as a small one: pages of like rate and like weight form groups. Prices of the intervals, a
by-product, bound the coherence of any schedule.

Whatever price u each interval has, no assignment of pages to intervals is worth more than

    Σ_intervals u + Σ_pages max over intervals of (w·e^{−λI} − u)

(linear programming duality). At the optimal prices the two are equal. Prices are stored at some lengths, knots, and
interpolated linearly: w·e^{−λI} is convex in I, so the best interval of a page is at a knot. The best value of a page
is convex in λ and in ln w, so linear interpolation between rates and weights never underestimates it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.capture.pyramid import pyramid
from recrawl.capture.sharc_selective import hopeless_pages, valley
from recrawl.capture.strategy import PlanDecision, ProvenBound
from recrawl.model import CapturePlan, FloatArray, IntArray


def alike(rate: FloatArray, weight: FloatArray, size: int) -> IntArray:
    """An order of the pages in which every ``size`` of them that follow each other are alike. O(n log² n).

    The pages are split in halves, each time by rate or by weight, whichever differs more (in ranks), until a part is a
    group. With equal weights this is the order by falling rate.
    """
    by_rate, by_weight = _ranks(-rate), _ranks(weight)
    order = np.lexsort((by_weight, by_rate))
    parts = [(0, len(rate))]
    while parts:
        start, end = parts.pop()
        inside = order[start:end]
        key = max((by_rate[inside], by_weight[inside]), key=_spread)
        order[start:end] = inside[np.argsort(key, kind="stable")]
        if end - start > size:
            middle = start + (end - start + size) // (2 * size) * size
            parts += [(start, middle), (middle, end)] if start < middle < end else []
    return order


def _ranks(value: FloatArray) -> FloatArray:
    """The share of pages with a lower value."""
    return np.searchsorted(np.sort(value), value) / len(value)


def _spread(rank: FloatArray) -> float:
    return float(rank.max() - rank.min())


_RATES = 600
_WEIGHTS = 96
_AT_ONCE = 64


def knots(count: int, parts: int) -> IntArray:
    """Up to 3·``parts`` of the numbers 0 … count − 1, denser at both ends. O(parts)."""
    even = np.linspace(0, count - 1, parts)
    geometric = np.geomspace(1, count, parts) - 1
    return np.unique(np.concatenate([even, geometric, count - 1 - geometric]).astype(np.int64))


def prices_of_order(rate: FloatArray, weight: FloatArray, step: float) -> FloatArray:
    """Prices at which neighbours would not change places, for pages from the shortest interval to the longest. O(n).

    From one interval to the next the price falls by what its page would lose there, or by what the next page
    would win; in between is taken.
    """
    length = step * np.arange(len(rate) - 1.0)
    loses = -weight[:-1] * np.exp(-rate[:-1] * length) * np.expm1(-rate[:-1] * step)
    wins = -weight[1:] * np.exp(-rate[1:] * length) * np.expm1(-rate[1:] * step)
    return np.append(np.cumsum(((loses + wins) / 2.0)[::-1])[::-1], 0.0)


def converged_prices(worth: FloatArray, place: IntArray, price: FloatArray, rounds: int = 200) -> FloatArray:
    """Raise prices until no page prefers the place of another, for rows at their best places. O(rounds · n²).

    ``worth[i, j]`` is what page i is worth at place j, and ``place[i]`` where it is.
    """
    better = worth - worth[np.arange(len(worth)), place][:, None]
    for _ in range(rounds):
        raised = np.maximum(price, (better + price[place][:, None]).max(axis=0))
        if bool((raised - price).max() < 1e-12 * np.abs(worth).max()):
            break
        price = raised
    return price


def improved_prices(worth: FloatArray, mass: FloatArray, supply: FloatArray, price: FloatArray) -> FloatArray:
    """Set each price in turn so that demand meets supply there, the others as they are. O(rows · columns²).

    ``worth`` is of some pages (rows) at the knots (columns), ``mass`` how many pages each row stands for, ``supply``
    how many intervals each knot stands for. Every step lowers the bound that these rows give, or leaves it.
    """
    price = price.copy()
    left = worth - price
    for knot in range(len(price)):
        left[:, knot] = -np.inf
        offer = worth[:, knot] - left.max(axis=1)
        highest = np.argsort(-offer)
        last = np.searchsorted(np.cumsum(mass[highest]), supply[knot])
        price[knot] = offer[highest[min(last, len(highest) - 1)]]
        left[:, knot] = worth[:, knot] - price[knot]
    return price


def share_of_knots(count: int, knot: IntArray) -> FloatArray:
    """How many of the numbers 0 … count − 1 each knot stands for, those between two knots being shared. O(count)."""
    at = np.interp(np.arange(count), knot, np.arange(len(knot)))
    left = at.astype(np.int64)
    right = np.minimum(left + 1, len(knot) - 1)
    shares = np.bincount(left, 1.0 - at + left, len(knot)) + np.bincount(right, at - left, len(knot))
    return shares.astype(np.float64)


def coherence_bound(rate: FloatArray, weight: FloatArray, step: float, knot: IntArray, price: FloatArray) -> float:
    """What no schedule exceeds: expected weight of coherent pages on intervals 0, step, 2·step, … seconds.

    O(n log n) and one exponential for each of :data:`_RATES` rates, up to :data:`_WEIGHTS` weights, and each knot.
    """
    length = step * knot.astype(np.float64)
    of_intervals = np.interp(np.arange(len(rate)), knot, price).sum()
    some_rates = np.unique(np.sort(rate)[knots(len(rate), _RATES)])
    some_weights = np.unique(weight)
    if len(some_weights) > _WEIGHTS:
        smallest = some_weights[some_weights > 0.0][0]
        some_weights = np.append(0.0, np.geomspace(smallest, some_weights[-1], _WEIGHTS))
        some_weights[1], some_weights[-1] = smallest, weight.max()
    best = np.stack([_best_of_weight(some_rates, one, length, price) for one in some_weights])
    return float(of_intervals + _between(best, some_rates, some_weights, rate, weight).sum())


def _best_of_weight(rate: FloatArray, weight: float, length: FloatArray, price: FloatArray) -> FloatArray:
    """What a page of each rate gets at its best knot."""
    blocks = [rate[start : start + _AT_ONCE] for start in range(0, len(rate), _AT_ONCE)]
    return np.concatenate([(weight * np.exp(-np.outer(block, length)) - price).max(axis=1) for block in blocks])


def _between(
    best: FloatArray, rates: FloatArray, weights: FloatArray, rate: FloatArray, weight: FloatArray
) -> FloatArray:
    """Straight lines between the rates first, then between the logarithms of the weights.

    Below the smallest positive weight there are only pages without any, which have a line of their own.
    """
    if len(weights) == 1:
        return np.asarray(np.interp(rate, rates, best[0]))
    line = np.clip(np.searchsorted(weights, weight, side="right") - 1, 0, len(weights) - 2)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        share = np.log(weight / weights[line]) / np.log(weights[line + 1] / weights[line])
    share = np.where(weights[line] > 0.0, np.clip(share, 0.0, 1.0), (weight > 0.0).astype(float))
    lower, upper = (_on_line(best, line + side, rates, rate) for side in (0, 1))
    best_of_page: FloatArray = (1.0 - share) * lower + share * upper
    return best_of_page


def _on_line(best: FloatArray, line: IntArray, rates: FloatArray, rate: FloatArray) -> FloatArray:
    if len(rates) == 1:
        only: FloatArray = best[line, 0]
        return only
    left = np.clip(np.searchsorted(rates, rate, side="right") - 1, 0, len(rates) - 2)
    share = np.clip((rate - rates[left]) / (rates[left + 1] - rates[left]), 0.0, 1.0)
    on_line: FloatArray = (1.0 - share) * best[line, left] + share * best[line, left + 1]
    return on_line


EXACT_PAGES = 1_000
"""Up to this many pages the assignment is exact; it is O(n³), about a second there."""
GROUPS = 600
"""A larger site is planned as one of this many groups."""
_KNOTS = 300
_CHOICES = 200_000_000


@dataclass(frozen=True, slots=True)
class OptimalPlan:
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


def optimal(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> OptimalPlan:
    """The best plan found, exact up to :data:`EXACT_PAGES` pages. O(n log² n) and a few seconds above.

    On the site of SHARC Example 5.8, where SHARC-Selective has 2.2820:

    >>> best = optimal(np.array([0.4, 0.35, 0.3, 0.25, 0.2]), 1.0)
    >>> round(best.expected_coherence, 4), best.plan.visit.tolist()
    (2.2821, [4, 0, 3, 1, 2])
    """
    site = _SiteRates(rate, np.ones(len(rate)) if weight is None else weight, 2.0 * delay)
    if len(rate) <= EXACT_PAGES:
        order = np.argsort(_best_places(site.worth(np.arange(len(rate))), np.zeros(len(rate))))
        value = site.coherence(order)
        return OptimalPlan(pyramid(order, once=True), value, value)
    greedy = valley(rate, weight, hopeless_pages(rate, delay, weight))
    return _large(site, greedy)


def sharc_optimal(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> CapturePlan:
    """The plan of :func:`optimal`."""
    return optimal(rate, delay, weight).plan


def prove(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> PlanDecision:
    """The plan of :func:`optimal`, and how near it is proven to come."""
    best = optimal(rate, delay, weight)
    return PlanDecision(best.plan, proven=ProvenBound(len(rate), best.expected_coherence, best.bound))


@dataclass(frozen=True, slots=True)
class _SiteRates:
    """Pages, and the intervals 0, step, 2·step, … seconds."""

    rate: FloatArray
    weight: FloatArray
    step: float

    def of(self, page: IntArray) -> _SiteRates:
        return _SiteRates(self.rate[page], self.weight[page], self.step)

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


def _large(site: _SiteRates, greedy: IntArray) -> OptimalPlan:
    """Plan groups of pages on blocks of intervals; then let all pages choose by the prices found."""
    pages = len(greedy)
    size = -(-pages // GROUPS)
    grouped = alike(site.rate, site.weight, size)
    centre = np.minimum(np.arange(0, pages, size) + (size - 1) / 2.0, pages - 1.0)
    groups = site.of(grouped[centre.astype(np.int64)])
    rough = np.interp(centre, np.arange(pages), prices_of_order(*_columns(site.of(greedy))))
    worth = groups.worth(centre)
    place = _best_places(worth, rough)
    price = converged_prices(worth, place, rough)
    block = np.empty(pages, dtype=np.int64)
    block[grouped] = np.repeat(place, size)[:pages]
    orders = [_by_block(site, chosen, centre) for chosen in (block, _favourites(site, centre, price))]
    best = max([greedy, *(_polished(site, order, size) for order in orders)], key=site.coherence)
    bound, knot, price = _best_prices(site, best, grouped, centre, price)
    by_price = _polished(site, _by_block(site, _favourites(site, knot, price), knot), size)
    best = max(best, by_price, key=site.coherence)
    return OptimalPlan(pyramid(best, once=True), site.coherence(best), bound)


def _columns(site: _SiteRates) -> tuple[FloatArray, FloatArray, float]:
    return site.rate, site.weight, site.step


def _by_block(site: _SiteRates, block: IntArray, centre: FloatArray) -> IntArray:
    """Blocks from the inside out, and in each of them the steepest page first."""
    return np.lexsort((-site.slope(centre[block]), block))


def _favourites(site: _SiteRates, centre: FloatArray, price: FloatArray) -> IntArray:
    """The block each page likes best at these prices, among fewer of them if the pages are many."""
    some = np.linspace(0, len(centre) - 1, min(len(centre), max(_CHOICES // len(site.rate), 32))).astype(np.int64)
    found = np.empty(len(site.rate), dtype=np.int64)
    for start in range(0, len(found), 1_000):
        few = site.of(np.arange(start, min(start + 1_000, len(found))))
        found[start : start + 1_000] = (few.worth(centre[some]) - price[some]).argmax(axis=1)
    return some[found]


def _polished(site: _SiteRates, order: IntArray, size: int) -> IntArray:
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
    site: _SiteRates, order: IntArray, grouped: IntArray, centre: FloatArray, price: FloatArray
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
