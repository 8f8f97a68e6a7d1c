"""Prices of intervals, and the bound on expected coherence that they prove.

Whatever price u each interval has, no assignment of pages to intervals is worth more than

    Σ_intervals u + Σ_pages max over intervals of (w·e^{−λI} − u),

because every page pays the price of its interval to somebody (linear programming duality). At the right prices the two
are equal. Prices are kept at some lengths, knots, and run straight between them: w·e^{−λI} is convex in I, so the
best interval of a page is at a knot. And the best a page can get is convex in λ and in ln w, so that values between
some rates and weights, taken by straight lines, are no lower than the truth.
"""

from __future__ import annotations

import numpy as np

from recrawl.model import FloatArray, IntArray

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


def settled_prices(worth: FloatArray, place: IntArray, price: FloatArray, rounds: int = 200) -> FloatArray:
    """Raise prices until nobody prefers the place of another, for rows at their best places. O(rounds · n²).

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
