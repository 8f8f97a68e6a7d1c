"""How 1/λ spreads over pages when each page counts with all that is believed of it, not with one guess.

A page seen twice may change every hour or every year; a histogram of middle estimates would put it at one place and
look surer than anybody is. Here it is spread over the quantiles of its belief.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model import Belief, FloatArray

_SHARES = (np.arange(10) + 0.5) / 10


@dataclass(frozen=True, slots=True)
class IntervalSpread:
    """Shares of pages over bins of 1/λ, in seconds."""

    edges: FloatArray
    """Evenly spaced in ln."""
    middle: FloatArray
    """By the middle estimate of each page."""
    believed: FloatArray
    """By all that is believed of each."""


def interval_spread(belief: Belief, bins: int = 30) -> IntervalSpread | None:
    """Both histograms over one set of bins; ``None`` if no page has a rate above 0. O(pages).

    What lies beyond a thousand times the slowest or below a thousandth of the fastest middle estimate is counted in the
    outermost bins.

    >>> from recrawl.model import GammaBelief
    >>> found = interval_spread(GammaBelief(np.full(2, 3.0), np.array([10.0, 1000.0])), bins=4)
    >>> found.middle.tolist(), round(float(found.believed.sum()), 6)
    ([0.5, 0.0, 0.0, 0.5], 1.0)
    """
    middle = _logs(belief.quantile(0.5))
    known = np.isfinite(middle)
    if not bool(known.any()):
        return None
    all_logs = np.concatenate([_logs(belief.quantile(float(q)))[known] for q in _SHARES])
    low, high = float(middle[known].min()), float(middle[known].max())
    reach = np.log(1e3)
    some = all_logs[np.isfinite(all_logs)]
    ends = np.clip(np.quantile(some, [0.01, 0.99]), low - reach, high + reach)
    edges = np.linspace(min(low, float(ends[0])) - 1e-9, max(high, float(ends[1])) + 1e-9, bins + 1)
    return IntervalSpread(np.exp(edges), _shares(middle[known], edges), _shares(all_logs, edges))


def _logs(rate: FloatArray) -> FloatArray:
    """ln(1/λ); infinite for a rate of 0."""
    with np.errstate(divide="ignore"):
        return -np.log(rate)


def _shares(values: FloatArray, edges: FloatArray) -> FloatArray:
    inside = np.clip(values, edges[0], edges[-1])
    return np.asarray(np.histogram(inside, edges)[0] / max(len(values), 1), np.float64)
