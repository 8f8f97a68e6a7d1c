r"""How far off an estimator is on average, against the number of looks: the curves by which estimators are known.

With equal gaps, one a unit of time, a page of rate r is found changed in X ~ Binomial(n, 1 − e^{−r}) of n looks, and
any estimator is a function of X alone. So its mean over all that may be seen is a sum of n + 1 terms:

    E[λ̂]/λ = Σ_X P(X)·λ̂(X)/r.

For X/T (HACS eq. 3) that is (1 − e^{−r})/r whatever n is: more looks do not help. For eq. 4 it tends to 1, from about
n = 10 on if the page does not change much faster than it is looked at (Cho and Garcia-Molina 2003). For gaps that
differ there is no such sum, and synthetic histories are drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats

from recrawl.model import BoolArray, FloatArray, Histories, IntArray

Formula: TypeAlias = Callable[[Histories], FloatArray]
"""From histories to rates, such as ``recrawl.estimate.mle.rates``."""


class BiasCurve(NamedTuple):
    """Columns, one row a pair of looks and ratio: ready to be plotted or written."""

    looks: IntArray
    """n, gaps a page."""
    ratio: FloatArray
    """r = λ/f: changes expected in a mean gap."""
    mean: FloatArray
    """E[λ̂]/λ: 1 is unbiased."""
    deviation: FloatArray
    """Standard deviation of λ̂/λ."""
    error: FloatArray
    """Standard error of ``mean``; 0 where it is exact."""


def bias_curve(formula: Formula, looks: npt.ArrayLike, ratio: npt.ArrayLike) -> BiasCurve:
    """The exact bias at equal gaps, for every pair of ``looks`` (≥ 1) and ``ratio`` (> 0). O(Σ n²) gaps.

    >>> naive = lambda histories: histories.changes() / histories.observed()
    >>> bias_curve(naive, [1, 50], 1.0).mean.round(6).tolist()  # (1 − 1/e)/1
    [0.632121, 0.632121]
    """
    n, r = _pairs(looks, ratio)
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
    looks: npt.ArrayLike,
    ratio: npt.ArrayLike,
    rng: np.random.Generator,
    *,
    pages: int = 10_000,
    gaps: Literal["equal", "exponential"] = "exponential",
) -> BiasCurve:
    """The same on so many synthetic pages a pair; gaps of mean 1, all equal or as of visits that come at random."""
    n, r = _pairs(looks, ratio)
    moments = np.empty((2, len(n)))
    for row, (count, rate) in enumerate(zip(n.tolist(), r.tolist(), strict=True)):
        drawn = np.ones((pages, count)) if gaps == "equal" else rng.exponential(1.0, (pages, count))
        found = formula(_histories(drawn, rng.random(drawn.shape) < -np.expm1(-rate * drawn))) / rate
        moments[:, row] = found.mean(), found.std()
    return BiasCurve(n, r, moments[0], moments[1], moments[1] / np.sqrt(pages))


def _pairs(looks: npt.ArrayLike, ratio: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
    """Every ratio with every number of looks, by ratio."""
    n, r = np.atleast_1d(np.asarray(looks, dtype=np.int64)), np.atleast_1d(np.asarray(ratio, dtype=np.float64))
    if bool((n < 1).any()) or not bool((r > 0).all()):
        msg = "a curve needs at least one look, and ratios > 0"
        raise ValueError(msg)
    return np.tile(n, len(r)), np.repeat(r, len(n))


def _histories(gaps: FloatArray, changed: BoolArray) -> Histories:
    """One row a page, all with as many gaps, from time 0."""
    pages, looks = gaps.shape
    times, last = np.zeros(pages), gaps.sum(axis=1)
    nothing = np.full(pages, np.nan)
    offsets = np.arange(pages + 1, dtype=np.int64) * looks
    return Histories(np.arange(pages, dtype=np.int64), offsets, gaps.ravel(), changed.ravel(), times, last, nothing)
