r"""A prior of the change rate from a sitemap's changefreq (SHARC Definition 6.1).

Categories C₀ … C_n (always, hourly, …, never) have intervals T₀ < … < T_{n−1}; "never" has none. With c = ln(1/τ):

    λ₀ = 1,   λ_i = c·(T_{i−1} + T_i)/(2·T_{i−1}·T_i),   λ_n = c/(2·T_{n−1}),

the mean of the bounds c/T_{i−1} and c/T_i of a category. Two readings (reading 003.36): *literal*, c = ln(1/τ), by
which a page stays unchanged over its interval with probability τ; *corrected*, c = ln(1/(1 − τ)), by which it changes
in it with probability τ, as the text wants, capped at λ₀, since hourly would exceed always. Sites exaggerate, and many
say "daily" of everything, so the prior is a weak one: half a change's worth.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from recrawl.model import FloatArray, GammaBelief, GridBelief, IntArray
from recrawl.time import DAY

Reading = Literal["literal", "corrected"]

CONFIDENCE = 0.95
"""τ of the thesis."""
INTERVALS = (60.0, 3600.0, DAY, 7.0 * DAY, 30.0 * DAY, 365.0 * DAY)
"""Seconds of always (the thesis' delay between two visits, a minute), hourly, daily, weekly, monthly, yearly."""
UNSAID = 0
"""The number of a page without a changefreq; 1 is always, 7 never (``formats.sitemap_feed.ChangeFrequency``)."""


def category_rates(intervals: npt.ArrayLike, tau: float = CONFIDENCE, reading: Reading = "literal") -> FloatArray:
    """λ of each category, one more than there are intervals, per unit of time; λ₀ is 1.

    >>> category_rates([1.0, 60.0], 0.9).round(6).tolist()
    [1.0, 0.053558, 0.000878]
    """
    bound = np.asarray(intervals, dtype=np.float64)
    if not (len(bound) and 0.0 < tau < 1.0 and bound[0] > 0 and (np.diff(bound) > 0).all()):
        msg = f"intervals must be positive and ascend, and 0 < tau < 1; got {bound.tolist()} and {tau}"
        raise ValueError(msg)
    strength = -np.log(tau) if reading == "literal" else -np.log1p(-tau)
    limits = strength / bound
    means = (limits + np.append(limits[1:], 0.0)) / 2.0
    rates = np.concatenate([[1.0], means])
    return rates if reading == "literal" else np.minimum(rates, 1.0)


def rates(changefreq: IntArray, reading: Reading = "literal", tau: float = CONFIDENCE) -> FloatArray:
    """λ of each page, per second, from the category that its sitemap claims; NaN where nothing is said.

    The unit of time of the definition is the interval of "always", so that its λ₀ = 1 is one change in it.

    >>> [round(1 / rate / DAY, 1) for rate in rates(np.array([3, 4])).tolist()]  # daily, weekly
    [1.6, 34.1]
    """
    unit = INTERVALS[0]
    table = np.append(np.nan, category_rates(np.array(INTERVALS) / unit, tau, reading) / unit)
    known = (changefreq >= 0) & (changefreq < len(table))
    return np.asarray(table[np.where(known, changefreq, UNSAID)])


def prior(
    changefreq: IntArray, otherwise: GammaBelief, reading: Reading = "literal", *, strength: float = 0.5
) -> GammaBelief:
    """Gamma(s, s/λ) where a category is claimed, of the mean rate it says.

    ``otherwise`` (one row per page) elsewhere.
    """
    said = rates(changefreq, reading)
    known = np.isfinite(said)
    return GammaBelief(np.where(known, strength, otherwise.a), np.where(known, strength / said, otherwise.b))


def hint(belief: GridBelief, rate: FloatArray) -> GridBelief:
    """The belief under a prior around what is claimed.

    A log-normal with σ = 2, so wide that a few observations outgrow it.

    ``rate[i]`` is what is claimed of page i, per second; NaN or 0 where nothing is. A claim that is off by a factor
    of seven costs no more than half a nat. Memory in bounded blocks.
    """
    weights = belief.weights.copy()
    logs = np.log(belief.rates)
    for start in range(0, len(belief), _BLOCK):
        block = slice(start, start + _BLOCK)
        with np.errstate(invalid="ignore", divide="ignore"):
            claimed = np.log(rate[block])
        rows = np.flatnonzero(np.isfinite(claimed))
        pull = np.exp(-0.5 * np.square((logs - np.clip(claimed[rows, None], logs[0], logs[-1])) / _SPREAD))
        mixed = weights[block][rows] * pull
        weights[start + rows] = (mixed / mixed.sum(axis=1, keepdims=True)).astype(np.float32)
    return GridBelief(belief.rates, weights)


_SPREAD = 2.0
"""Standard deviation of ln λ around a claim."""
_BLOCK = 65_536
