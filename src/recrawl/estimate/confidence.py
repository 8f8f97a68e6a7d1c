r"""How sure a point estimate is: intervals for λ, for every history and whichever formula made the estimate.

**Information.** An observation after τ has the Fisher information x²/(eˣ − 1), x = λτ, on ln λ; at most 0.648, at
x = 1.594 (algorithms §5).

**Likelihood ratio.** All λ with 2(ℓ(λ̂) − ℓ(λ)) ≤ z², ℓ(λ) = Σ_changed ln(1 − e^{−λτ}) − λU. Calibrated from three gaps
on. ℓ is concave in λ and in ln λ, so a tangent meets the wanted level outside the interval, and Newton's method
converges from there.

One-sided where the likelihood has no maximum inside, at the same level (95 %: 1 − level = 0.05):
no change in n gaps, [0, −ln(1 − level)/U], the rule of three; nothing but changes, [λ, ∞) with Σ ln(1 − e^{−λτ}) =
ln(1 − level). A page without gaps may have any rate: [0, ∞).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from recrawl.estimate import mle
from recrawl.estimate.point_evidence import MovingPages, bernoulli, climb, sound
from recrawl.model import FloatArray, Histories

_FARTHEST_START = 3.0
"""In ln λ. Where the likelihood is nearly flat, z/√I would start Newton beyond all numbers."""


class RateInterval(NamedTuple):
    """Rates per second; 0 ≤ low ≤ high ≤ ∞, never NaN."""

    low: FloatArray
    high: FloatArray


def information(histories: Histories, rate: FloatArray) -> FloatArray:
    """Expected Fisher information about ln λ of each page, if its rate is ``rate``; 0 without gaps. O(gaps).

    >>> from recrawl.model import Visits
    >>> once = Histories.from_visits(Visits.of([1, 1], [0.0, 1.0], verdict=[0, 2]))
    >>> information(once, np.array([1.594])).round(3).tolist()
    [0.648]
    """
    x = np.repeat(rate, histories.counts()) * histories.gaps
    return _sum(histories, x * bernoulli(np.maximum(x, 1e-300)))


def likelihood_ratio(histories: Histories, level: float = 0.9) -> RateInterval:
    """Intervals of all rates that the likelihood does not rule out at this level. O(gaps · steps).

    >>> from recrawl.model import Visits
    >>> never = Histories.from_visits(Visits.of([1, 1], [0.0, 1.0], verdict=[0, 1]))
    >>> [bound.round(4).tolist() for bound in likelihood_ratio(never, 0.95)]
    [[0.0], [2.9957]]
    """
    histories, z = sound(histories), _z(level)
    low, high, inner = _bounds(histories, level)
    rows = np.flatnonzero(inner)
    if len(rows):
        pages = histories.take(rows)
        offsets, gaps, quiet = mle.split(pages)
        best = mle.rates(pages)
        least = _log_likelihood(pages, best) - z * z / 2.0
        with np.errstate(divide="ignore"):
            start = np.minimum(z / np.sqrt(information(pages, best)), _FARTHEST_START)
        low[rows] = climb(best * np.exp(-start), offsets, gaps, _downwards, quiet, least)
        high[rows] = climb(best * np.exp(start), offsets, gaps, _upwards, quiet, least)
    return RateInterval(low, high)


def _bounds(histories: Histories, level: float) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """The one-sided intervals, and which pages have both changed and unchanged gaps and need another."""
    observations, changes, observed = histories.counts(), histories.changes(), histories.observed()
    low, high = np.zeros(len(histories)), np.full(len(histories), np.inf)
    never, always = (observations > 0) & (changes == 0), np.flatnonzero((observations > 0) & (changes == observations))
    high[never] = -np.log1p(-level) / observed[never]
    if len(always):
        pages, n = histories.take(always), observations[always]
        # the root if all gaps were equal; concavity in τ puts it left of the root else
        start = -np.log(-np.expm1(np.log1p(-level) / n)) * n / observed[always]
        quiet, least = np.zeros(len(always)), np.full(len(always), np.log1p(-level))
        low[always] = climb(start, pages.offsets, pages.gaps, _downwards, quiet, least)
    return low, high, (changes > 0) & (changes < observations)


def _downwards(now: MovingPages) -> FloatArray:
    """Newton in ln λ towards ℓ = least, left of the maximum: there ℓ falls like a multiple of ln λ."""
    excess, slope = _excess_and_slope(now)
    return np.expm1(-excess / slope)


def _upwards(now: MovingPages) -> FloatArray:
    """Newton in λ towards ℓ = least, right of the maximum: there ℓ falls like a multiple of λ."""
    excess, slope = _excess_and_slope(now)
    return -excess / slope


def _excess_and_slope(now: MovingPages) -> tuple[FloatArray, FloatArray]:
    """ℓ − least, and dℓ/d ln λ = Σ B(x) − λU."""
    quiet, least = now.columns
    value = now.sum(np.log(-np.expm1(-now.x))) - now.rate * quiet - least
    return value, now.sum(bernoulli(now.x)) - now.rate * quiet


def _log_likelihood(histories: Histories, rate: FloatArray) -> FloatArray:
    x = np.repeat(rate, histories.counts()) * histories.gaps
    return _sum(histories, np.where(histories.changed, np.log(-np.expm1(-x)), -x))


def _sum(histories: Histories, values: FloatArray) -> FloatArray:
    out = np.zeros(len(histories))
    rows = np.flatnonzero(histories.counts())
    if len(rows):  # reduceat has no notion of an empty row
        out[rows] = np.add.reduceat(values, histories.offsets[rows])
    return out


def _z(level: float) -> float:
    if not 0.0 < level < 1.0:
        msg = f"a level of confidence lies between 0 and 1, {level} does not"
        raise ValueError(msg)
    return float(special.ndtri((1.0 + level) / 2.0))
