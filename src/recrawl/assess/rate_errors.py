"""Errors of estimated rates and classes, and the bias of estimators.

- Rates against true rates: relative error, bias, and coverage of the intervals.
- Classes of change rate: the error rate of Barbosa et al. (§4, Tables 3 and 5).
- Bias against the number of observations. With equal gaps of one unit of time, a page of rate r is found changed in X ~
  Binomial(n, 1 − e^{−r}) of n observations, and any estimator is a function of X. So its mean is a sum of n + 1 terms:

      E[λ̂]/λ = Σ_X P(X)·λ̂(X)/r.

  For X/T (HACS eq. 3) that is (1 − e^{−r})/r for every n: more observations do not help. For eq. 4 it tends to 1, from
  about n = 10 if the page does not change much faster than it is observed (Cho and Garcia-Molina 2003). For unequal
  gaps there is no such sum, and histories are simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats

from recrawl.model import Belief, BoolArray, FloatArray, Histories, IntArray


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


@dataclass(frozen=True, slots=True)
class ClassError:
    """How assigned classes compare with true ones. NaN without pages."""

    error_rate: float
    """Share of pages in a wrong class, weighted."""
    too_frequent: float
    """Share in a class of more frequent change than the true one: visits in vain."""
    too_rare: float
    """Share in a class of rarer change: stale copies."""
    confusion: FloatArray
    """Weight of the pages by true class (row) and assigned class (column)."""


def class_error(assigned: IntArray, true: IntArray, classes: int, weight: FloatArray | None = None) -> ClassError:
    """Compare classes page by page; class 0 is the most dynamic (reading 002.3). O(n).

    >>> class_error(np.array([0, 1, 1, 2]), np.array([0, 1, 2, 1]), 3).error_rate
    0.5
    """
    w = np.ones(len(true)) if weight is None else weight
    confusion = np.zeros((classes, classes))
    np.add.at(confusion, (true, assigned), w)
    whole = float(confusion.sum())
    if not whole > 0:
        return ClassError(float("nan"), float("nan"), float("nan"), confusion)
    often = float(np.tril(confusion, -1).sum()) / whole
    seldom = float(np.triu(confusion, 1).sum()) / whole
    return ClassError(often + seldom, often, seldom, confusion)


Formula: TypeAlias = Callable[[Histories], FloatArray]
"""From histories to rates, such as ``recrawl.estimate.mle.rates``."""


class BiasCurve(NamedTuple):
    """Columns, one row a pair of observations and ratio: ready to be plotted or written."""

    observations: IntArray
    """n, gaps per page."""
    ratio: FloatArray
    """r = λ/f: changes expected in a mean gap."""
    mean: FloatArray
    """E[λ̂]/λ: 1 is unbiased."""
    deviation: FloatArray
    """Standard deviation of λ̂/λ."""
    error: FloatArray
    """Standard error of ``mean``; 0 where it is exact."""


def bias_curve(formula: Formula, observations: npt.ArrayLike, ratio: npt.ArrayLike) -> BiasCurve:
    """The exact bias at equal gaps, for every pair of ``observations`` (≥ 1) and ``ratio`` (> 0). O(Σ n²) gaps.

    >>> naive = lambda histories: histories.changes() / histories.observed()
    >>> bias_curve(naive, [1, 50], 1.0).mean.round(6).tolist()  # (1 − 1/e)/1
    [0.632121, 0.632121]
    """
    n, r = _pairs(observations, ratio)
    moments = np.empty((2, len(n)))
    for count in np.unique(n).tolist():
        seen = np.arange(count + 1)
        found = formula(_histories(np.ones((count + 1, count)), np.arange(count) < seen[:, None]))
        for row in np.flatnonzero(n == count):
            share = stats.binom.pmf(seen, count, -np.expm1(-r[row]))
            mean = share @ found / r[row]
            moments[:, row] = mean, np.sqrt(share @ (found / r[row] - mean) ** 2)
    return BiasCurve(n, r, moments[0], moments[1], np.zeros(len(n)))


def simulated_bias_curve(  # noqa: PLR0913 - the pairs, and how to draw
    formula: Formula,
    observations: npt.ArrayLike,
    ratio: npt.ArrayLike,
    rng: np.random.Generator,
    *,
    pages: int = 10_000,
    gaps: Literal["equal", "exponential"] = "exponential",
) -> BiasCurve:
    """The same on N synthetic pages a pair; gaps of mean 1, all equal or as of visits that come at random."""
    n, r = _pairs(observations, ratio)
    moments = np.empty((2, len(n)))
    for row, (count, rate) in enumerate(zip(n.tolist(), r.tolist(), strict=True)):
        drawn = np.ones((pages, count)) if gaps == "equal" else rng.exponential(1.0, (pages, count))
        found = formula(_histories(drawn, rng.random(drawn.shape) < -np.expm1(-rate * drawn))) / rate
        moments[:, row] = found.mean(), found.std()
    return BiasCurve(n, r, moments[0], moments[1], moments[1] / np.sqrt(pages))


def _pairs(observations: npt.ArrayLike, ratio: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
    """Every ratio with every number of observations, by ratio."""
    n, r = np.atleast_1d(np.asarray(observations, dtype=np.int64)), np.atleast_1d(np.asarray(ratio, dtype=np.float64))
    if bool((n < 1).any()) or not bool((r > 0).all()):
        msg = "a curve needs at least one observation, and ratios > 0"
        raise ValueError(msg)
    return np.tile(n, len(r)), np.repeat(r, len(n))


def _histories(gaps: FloatArray, changed: BoolArray) -> Histories:
    """One row per page, all with as many gaps, from time 0."""
    pages, observations = gaps.shape
    times, last = np.zeros(pages), gaps.sum(axis=1)
    nothing = np.full(pages, np.nan)
    offsets = np.arange(pages + 1, dtype=np.int64) * observations
    return Histories(np.arange(pages, dtype=np.int64), offsets, gaps.ravel(), changed.ravel(), times, last, nothing)
