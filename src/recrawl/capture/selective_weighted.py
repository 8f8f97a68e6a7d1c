"""Giving pages up where they matter differently: those of the highest rate for their weight (past the thesis)."""

from __future__ import annotations

import numpy as np

from recrawl.capture.pyramid import hottest_first
from recrawl.model import BoolArray, FloatArray, IntArray


def valley(rate: FloatArray, weight: FloatArray | None, hopeless: BoolArray) -> IntArray:
    """Pages from the shortest interval to the longest: hopeful ones get colder outwards, then hopeless ones faster.

    Hopeful pages go by rate times weight, which is what they lose a second as long as they lose little. O(n log n).
    """
    hottest = hottest_first(rate, weight)
    fastest = hottest if weight is None else hottest_first(rate)
    return np.concatenate([hottest[~hopeless[hottest]], fastest[hopeless[fastest]][::-1]])


def sacrificed_coherence(
    rate: FloatArray, weight: FloatArray, hopeless: BoolArray, shortest: float, step: float
) -> float:
    """Expected weight of coherent pages in that order, on intervals from ``shortest`` on, each longer by ``step``."""
    order = valley(rate, weight, hopeless)
    length = shortest + step * np.arange(len(rate))
    return float((weight[order] * np.exp(-rate[order] * length)).sum())


def sacrifice_order(rate: FloatArray, weight: FloatArray) -> FloatArray:
    """Rate over weight: who comes first is given up first. A page without weight comes before all."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(weight > 0.0, rate / weight, np.inf)


def best_sacrifice(
    rate: FloatArray, weight: FloatArray, shortest: float, step: float, near: int | None = None
) -> BoolArray:
    """Give up as many of the pages of the highest rate over weight as is best. O(n log² n).

    The number is found by looking around the best of 33, or of 9 and ``near``, in steps that halve; if the coherence
    has several summits it may be a lower one.
    """
    order = np.argsort(-sacrifice_order(rate, weight), kind="stable")

    def given_up(number: int) -> BoolArray:
        hopeless = np.zeros(len(rate), dtype=np.bool_)
        hopeless[order[:number]] = True
        return hopeless

    def coherence(number: int) -> float:
        return sacrificed_coherence(rate, weight, given_up(number), shortest, step)

    most = len(rate)
    starts = np.linspace(0, most, 33 if near is None else 9).astype(int).tolist()
    starts += [] if near is None else [min(near, most)]
    best, number = max((coherence(start), start) for start in starts)
    reach = max(most // 32, 1)
    while reach:
        around = [near for near in (number - reach, number + reach) if 0 <= near <= most]
        found, where = max(((coherence(near), near) for near in around), default=(best, number))
        if found > best:
            best, number = found, where
        else:
            reach //= 2
    return given_up(number)
