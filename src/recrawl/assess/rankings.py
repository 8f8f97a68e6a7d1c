"""How well a ranking of pages agrees with the true one: precision at the top, and rank correlation."""

from __future__ import annotations

import numpy as np

from recrawl.model import FloatArray, IntArray


def weighted_precision_at_k(ranked: IntArray, expected: IntArray) -> float:
    """Mean of |top K of ranked ∩ top K of expected| / K with weights 1/log₂(K+1) (HACS, reading 000.7).

    Both are page ids, best first, each at most once; K runs to the length of ``expected``. NaN if that is 0.
    O(n log n).

    >>> weighted_precision_at_k(np.array([1, 2]), np.array([1, 2]))
    1.0
    """
    n = len(expected)
    if not n:
        return float("nan")
    _, at_ranked, at_expected = np.intersect1d(ranked, expected, assume_unique=True, return_indices=True)
    # A page is in both tops from the K on at which the later of the two has reached it.
    joins = np.maximum(at_ranked, at_expected)
    shared = np.cumsum(np.bincount(joins[joins < n], minlength=n))
    k = np.arange(1, n + 1)
    weight = 1.0 / np.log2(k + 1)
    return float(weight @ (shared / k) / weight.sum())


def precision_at_percent(truth: FloatArray, predicted: FloatArray, percent: float) -> float:
    """Share of the predicted top ``percent`` of pages that are in the true top (LBLA, reading 004.5).

    The top holds m = max(1, ⌊percent·n/100 + ½⌋) pages. Equal values are in random order, on both sides
    independently: this is the exact expectation over those orders. NaN without pages. O(n).

    >>> precision_at_percent(np.array([3.0, 2.0, 1.0, 0.0]), np.array([9.0, 0.0, 5.0, 0.0]), 50)
    0.5
    """
    n = len(truth)
    if not n:
        return float("nan")
    top = min(n, max(1, int(np.floor(percent * n / 100.0 + 0.5))))
    return float(_chance_in_top(truth, top) @ _chance_in_top(predicted, top) / top)


def precision_area(truth: FloatArray, predicted: FloatArray) -> float:
    """Mean of :func:`precision_at_percent` over 1, 2, …, 100 per cent (LBLA). O(100 n)."""
    return float(np.mean([precision_at_percent(truth, predicted, percent) for percent in range(1, 101)]))


def spearman(first: FloatArray, second: FloatArray) -> float:
    """Rank correlation, equal values sharing their average rank; NaN where one side is constant. O(n log n).

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 9.0]))
    1.0
    """
    a, b = (_average_ranks(values) - (len(values) + 1) / 2.0 for values in (first, second))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else float("nan")


def _average_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1, equal values sharing the mean of theirs."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(size) - (size - 1) / 2.0)[group])


def _chance_in_top(values: FloatArray, top: int) -> FloatArray:
    """Probability that each value is among the ``top`` largest when equal ones are in random order."""
    threshold = np.partition(values, len(values) - top)[len(values) - top]
    above, tied = values > threshold, values == threshold
    return np.where(above, 1.0, np.where(tied, (top - above.sum()) / tied.sum(), 0.0))
