"""Estimated rates against true ones: how far off, to which side, and whether the stated doubt is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model import Belief, FloatArray


@dataclass(frozen=True, slots=True)
class RateError:
    """Errors of ln λ. 0.1 is about ten per cent; a factor of two is 0.69."""

    pages: int
    """Pages compared."""
    left_out: int
    """Pages whose estimated or true rate is no number or has no logarithm."""
    rmse_log: float
    bias_log: float
    """Mean of ln estimate − ln truth: above 0 means pages were believed to change more often than they do."""
    median_factor: float
    """Median of the factor by which an estimate is off, in either direction; 1 is exact."""


def rate_error(
    estimate: FloatArray, truth: FloatArray, *, floor: float = 0.0, weight: FloatArray | None = None
) -> RateError:
    """Compare rates on a log scale, page by page. Rates per second, or any one unit. O(n log n).

    Rates below ``floor`` count as the floor, on both sides. Without one, a page estimated at 0 (no change seen)
    is left out and counted so, which flatters estimators that say 0: give a floor to compare those.
    The median takes no account of ``weight``.

    >>> rate_error(np.array([2.0, 0.0]), np.array([1.0, 1.0])).left_out
    1
    """
    guess, true = np.maximum(estimate, floor), np.maximum(truth, floor)
    usable = np.isfinite(guess) & np.isfinite(true) & (guess > 0) & (true > 0)
    w = np.ones(len(true)) if weight is None else weight
    usable &= w > 0
    kept = int(usable.sum())
    if not kept:
        return RateError(0, len(true), float("nan"), float("nan"), float("nan"))
    off = np.log(guess[usable]) - np.log(true[usable])
    share = w[usable] / w[usable].sum()
    return RateError(
        kept,
        len(true) - kept,
        float(np.sqrt(share @ off**2)),
        float(share @ off),
        float(np.exp(np.median(np.abs(off)))),
    )


def coverage(belief: Belief, truth: FloatArray, levels: FloatArray) -> FloatArray:
    """Share of pages whose true rate lies in the central interval of each level; equal to it if calibrated.

    The interval of level q lies between the quantiles (1−q)/2 and (1+q)/2. Two quantiles a level.

    >>> from recrawl.model import GammaBelief
    >>> belief = GammaBelief(np.array([4.0, 4.0]), np.array([4.0, 4.0]))
    >>> coverage(belief, np.array([1.0, 9.0]), np.array([0.9])).tolist()
    [0.5]
    """
    known = np.isfinite(truth)
    if not bool(known.any()):
        return np.full(len(levels), np.nan)
    shares = [
        np.mean(
            (truth >= belief.quantile((1.0 - level) / 2.0))[known]
            & (truth <= belief.quantile((1.0 + level) / 2.0))[known]
        )
        for level in levels.tolist()
    ]
    return np.asarray(shares, dtype=np.float64)
