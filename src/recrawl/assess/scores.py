"""Scores of predicted probabilities: how good was "this page will have changed by the next look"?

Every score comes as one number a prediction, so that scores of several methods can be compared pair by pair and
averaged with :func:`mean_with_interval`, which says how sure the mean is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray

CLIP = 1e-3
"""No prediction is taken for surer than 1 in 1,000: one certain error would otherwise outweigh everything else."""


def log_loss(p: FloatArray, happened: BoolArray, clip: float = CLIP) -> FloatArray:
    """−ln of the probability given to what happened, a prediction each. Lower is better; ln 2 is a coin's.

    >>> log_loss(np.array([0.5, 0.0]), np.array([True, True])).round(3).tolist()
    [0.693, 6.908]
    """
    bounded = np.clip(p, clip, 1.0 - clip)
    return -np.log(np.where(happened, bounded, 1.0 - bounded))


def brier(p: FloatArray, happened: BoolArray) -> FloatArray:
    """Squared error of the probability, a prediction each. Lower is better; 0.25 is a coin's.

    >>> brier(np.array([0.5, 1.0]), np.array([True, True])).tolist()
    [0.25, 0.0]
    """
    return np.square(p - happened)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Predicted against observed shares, over bins of equally many predictions."""

    predicted: FloatArray
    """Mean probability of the bin."""
    observed: FloatArray
    """Share of its predictions that came true."""
    count: IntArray

    @property
    def error(self) -> float:
        """Mean distance of predicted from observed, over all predictions; NaN without any."""
        total = int(self.count.sum())
        return float(np.abs(self.predicted - self.observed) @ self.count / total) if total else float("nan")

    def interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Between which shares the true one of each bin lies, given its count (Jeffreys' interval).

        >>> [end.round(2).tolist() for end in Calibration(np.ones(1), np.full(1, 0.5), np.full(1, 8)).interval()]
        [[0.24], [0.76]]
        """
        came_true = self.observed * self.count
        ends = (
            special.betaincinv(came_true + 0.5, self.count - came_true + 0.5, q)
            for q in ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
        )
        low, high = ends
        return np.minimum(low, self.observed), np.maximum(high, self.observed)


def calibration(p: FloatArray, happened: BoolArray, bins: int = 10) -> Calibration:
    """Sort the predictions, cut them into bins, compare. Equal predictions stay together. O(n log n).

    >>> calibration(np.array([0.1, 0.1, 0.9, 0.9]), np.array([False, False, True, False]), 2).observed.tolist()
    [0.0, 0.5]
    """
    order = np.argsort(p, kind="stable")
    ranked, came_true = p[order], happened[order]
    marks = (np.arange(1, bins) * len(p)) // bins if len(p) else np.empty(0, dtype=np.int64)
    cuts = np.searchsorted(ranked, ranked[marks])
    edges = np.unique(np.concatenate([[0], cuts, [len(p)]]).astype(np.int64))
    count = np.diff(edges)
    if not len(count):
        return Calibration(np.empty(0), np.empty(0), count)
    starts = edges[:-1]
    return Calibration(
        np.add.reduceat(ranked, starts) / count,
        np.add.reduceat(came_true.astype(np.float64), starts) / count,
        count,
    )


def rank_correlation(a: FloatArray, b: FloatArray) -> float:
    """Spearman's ρ: 1 if both put the pages in the same order. NaN if either says the same of all. O(n log n).

    >>> rank_correlation(np.array([1.0, 2.0, 4.0]), np.array([10.0, 30.0, 20.0]))
    0.5
    """
    ranks = [_average_rank(values) for values in (a, b)]
    spread = [float(rank.std()) for rank in ranks] if len(a) else [0.0]
    if min(spread) == 0.0:
        return float("nan")
    joint = np.mean((ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean()))
    return float(joint / (spread[0] * spread[1]))


def _average_rank(values: FloatArray) -> FloatArray:
    _, index, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2.0)[index]


class Interval(NamedTuple):
    """A mean and what it could as well have been."""

    mean: float
    low: float
    high: float


def mean_with_interval(
    values: FloatArray, groups: AnyArray, rng: np.random.Generator, *, repeats: int = 1_000, level: float = 0.95
) -> Interval:
    """The mean, with a bootstrap interval that resamples whole groups of values.

    Pages edited together are no independent evidence: ``groups[i]`` names the group of value i. NaN throughout
    without values; with one group the interval is the mean.
    O(n log n + repeats · groups).
    """
    if not len(values):
        return Interval(float("nan"), float("nan"), float("nan"))
    _, index = np.unique(groups, return_inverse=True)
    size = np.bincount(index).astype(np.float64)
    total = np.asarray(np.bincount(index, values), dtype=np.float64)
    means = _resampled_means(total, size, rng, repeats)
    low, high = np.quantile(means, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Interval(float(values.mean()), float(low), float(high))


def _resampled_means(total: FloatArray, size: FloatArray, rng: np.random.Generator, repeats: int) -> FloatArray:
    """Means over as many groups as there are, drawn with replacement, in blocks of bounded memory."""
    groups = len(size)
    out = np.empty(repeats)
    block = max(1, _DRAWS // groups)
    for start in range(0, repeats, block):
        stop = min(start + block, repeats)
        drawn = rng.integers(0, groups, (stop - start, groups))
        out[start:stop] = total[drawn].sum(axis=1) / size[drawn].sum(axis=1)
    return out


_DRAWS = 4_000_000
"""Group draws held at a time."""
