"""The best clustering of numbers, exactly: what k-means only looks for (Barbosa §3.2, reading 002.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recrawl.model import FloatArray, IntArray


class Clusters(NamedTuple):
    """A clustering of numbers."""

    centres: FloatArray
    """The mean of each cluster, ascending."""
    labels: IntArray
    """The cluster of each number."""
    squares: float
    """Sum of squared distances to the centres: what is least."""


def kmeans_1d(values: npt.ArrayLike, k: int) -> Clusters:
    """The best k-means clustering of numbers, exactly. O(k · distinct · log distinct) and vectorised.

    Clusters of numbers are runs of the sorted numbers. The best first m numbers in j runs follow from the best in j − 1
    runs; where the last run begins never falls as m grows, so halving finds all beginnings of a layer. Fewer than k
    clusters if there are fewer distinct numbers.

    >>> kmeans_1d([1.0, 9.0, 1.2, 9.4], 2).centres.tolist()
    [1.1, 9.2]
    """
    numbers = np.asarray(values, dtype=np.float64)
    if k < 1 or not len(numbers) or not np.isfinite(numbers).all():
        msg = "clusters need at least one number, all finite, and k of 1 or more"
        raise ValueError(msg)
    distinct, label_of, count = np.unique(numbers, return_inverse=True, return_counts=True)
    k = min(k, len(distinct))
    cost = _RunCosts(distinct, count)
    ends = np.arange(len(distinct) + 1)
    best = np.where(ends > 0, cost(np.zeros(len(ends), np.int64), ends), 0.0)
    begins = []
    for layer in range(1, k):
        best, begin = _next_layer(best, cost, layer)
        begins.append(begin)
    cuts = [len(distinct)]
    for begin in reversed(begins):
        cuts.append(int(begin[cuts[-1]]))
    cuts = [0, *reversed(cuts)]
    run = np.searchsorted(cuts[1:], np.arange(len(distinct)), side="right")
    centres = np.bincount(run, count * distinct) / np.bincount(run, count)
    labels = run[label_of]
    return Clusters(centres, labels, float(((numbers - centres[labels]) ** 2).sum()))


class _RunCosts:
    """Sum of squares around their mean of the numbers from ``begin`` to before ``end``; O(1) by running sums."""

    def __init__(self, distinct: FloatArray, count: IntArray) -> None:
        moved = distinct - np.average(distinct, weights=count)  # smaller numbers cancel less
        self._sums = np.zeros((3, len(distinct) + 1))
        np.cumsum(np.stack([count, count * moved, count * moved**2]), axis=1, out=self._sums[:, 1:])

    def __call__(self, begin: IntArray, end: IntArray) -> FloatArray:
        weight, total, squares = self._sums[:, end] - self._sums[:, begin]
        return np.asarray(np.maximum(squares - total**2 / np.maximum(weight, 1.0), 0.0))


def _next_layer(best: FloatArray, cost: _RunCosts, layer: int) -> tuple[FloatArray, IntArray]:
    """Best cost of the first m numbers in one run more, and where the last run begins, for all m at once."""
    n = len(best)
    found, begin = np.full(n, np.inf), np.zeros(n, np.int64)
    low, high = np.array([layer + 1]), np.array([n - 1])  # ends to solve, in pieces
    first, last = np.array([layer]), np.array([n - 2])  # beginnings possible in each piece
    while len(low):
        middle = (low + high) // 2
        top = np.minimum(last, middle - 1)
        width = top - first + 1
        piece = np.repeat(np.arange(len(middle)), width)
        heads = np.cumsum(width) - width
        tried = first[piece] + np.arange(len(piece)) - heads[piece]
        value = best[tried] + cost(tried, middle[piece])
        least = np.minimum.reduceat(value, heads)
        hit = np.flatnonzero(value == least[piece])
        chosen = tried[hit[np.searchsorted(piece[hit], np.arange(len(middle)))]]
        found[middle], begin[middle] = least, chosen
        low, high = np.concatenate([low, middle + 1]), np.concatenate([middle - 1, high])
        first, last = np.concatenate([first, chosen]), np.concatenate([chosen, last])
        some = low <= high
        low, high, first, last = low[some], high[some], first[some], last[some]
    return found, begin
