"""Ranking: which pages have the highest value of a visit now.

The index of a page is w·U(t)/c, t after its last observation: the highest price at which it would be visited. Taking
the best of all pages at each tick spends any budget optimally, without a price (algorithms §3). For known rates one
pass of a compiled kernel values ten million pages in a fraction of a second; beliefs are valued by
``due_times.VisitDemand.worth``.

After signals of change (algorithms §4, after Busa-Fekete et al. 2025) a page is stale with probability 1 − e^{−ℓ}, ℓ =
αt + κn: the rate α of changes without a signal, n signals of weight κ = ln(γ/b) each, γ the rate of signals, b that of
false ones. All rates are per second, values in seconds.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.model.compiled import can_compile, compiled
from recrawl.schedule.objectives import Objective, basics_of

_SAMPLE = 4_096
"""Pages of the sample that estimates the highest values."""
_MARGIN = 4.0
"""Safety margin of that estimate, in standard deviations."""
_SMALL = 0.02


def index(
    objective: Objective, rate: FloatArray, importance: FloatArray, cost: FloatArray, elapsed: FloatArray
) -> FloatArray:
    """The index of pages with known rates, ``elapsed`` seconds after their last observations. O(pages).

    >>> from recrawl.schedule.objectives import FreshnessObjective
    >>> one = np.ones(1)
    >>> index(FreshnessObjective(), 0.1 * one, 2 * one, one, 10 * one).round(12).tolist()
    [5.284822353142]
    """
    basics = basics_of(objective)
    if can_compile() and basics is not None:
        out = np.empty(len(rate))
        _index_compiled(rate, importance, cost, elapsed, np.array(basics), out)
        return out
    from recrawl.estimate.point_evidence import PointBelief

    return importance * objective.value(PointBelief(rate), elapsed) / cost


def best(values: FloatArray, most: int) -> IntArray:
    """The places of the ``most`` highest values, highest first; of equal ones the first places. O(n + most log most).

    A sample estimates how high they are; only values above the estimate are sorted.

    >>> best(np.array([0.5, 2.0, 1.0, 2.0]), 3).tolist()
    [1, 3, 2]
    """
    n, most = len(values), min(max(most, 0), len(values))
    rows = None
    if most and n > 16 * _SAMPLE:
        share = most / n
        keep = share + _MARGIN * math.sqrt(share / _SAMPLE) + _MARGIN / _SAMPLE
        if keep < 0.5:  # noqa: PLR2004 - else hardly anything is left out
            sample = np.sort(values[:: n // _SAMPLE])
            rows = np.flatnonzero(values >= sample[int((1.0 - keep) * len(sample))])
    if rows is None or len(rows) < most:
        rows = np.arange(n)
    found = values[rows]
    if most < len(rows):
        edge = np.partition(found, len(rows) - most)[len(rows) - most] if most else math.inf
        above, equal = np.flatnonzero(found > edge), np.flatnonzero(found == edge)
        chosen = np.concatenate([above, equal[: most - len(above)]])
        rows, found = rows[chosen], found[chosen]
    return np.asarray(rows[np.lexsort((rows, -found))])


@compiled
def _index_compiled(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    rate: FloatArray,
    importance: FloatArray,
    cost: FloatArray,
    elapsed: FloatArray,
    basics: FloatArray,
    out: FloatArray,
) -> None:
    for i in range(len(rate)):
        x = rate[i] * elapsed[i]
        if not x > 0:
            out[i] = 0.0
            continue
        rest = math.exp(-x)
        if x < _SMALL:
            g = x * x * (0.5 - x * (1 / 3 - x * (0.125 - x * (1 / 30 - x * (1 / 144 - x / 840)))))
            h = x * x * (0.5 - x * (1 / 6 - x * (1 / 24 - x * (1 / 120 - x * (1 / 720 - x / 5040)))))
            aged = x * x * x * (1 / 3 - x * (0.125 - x * (1 / 30 - x * (1 / 144 - x / 840))))
        else:
            h = x - 1.0 + rest
            g = x * (1.0 - rest) - h
            aged = 0.5 * x * x - g
        per_rate = (basics[0] * g + basics[2] * h + basics[3] * aged / rate[i] + basics[4] * 0.5 * x * x) / rate[i]
        out[i] = importance[i] / cost[i] * (per_rate + basics[1] * g)


_LIGHTEST = 0.05
"""κ below which signals are as good as the passing of time."""
_MOST_TERMS = 200


def cheap(stale: FloatArray, rate: FloatArray) -> FloatArray:
    """g(ℓ)/λ: within .001 to .012 of the freshness that the exact value gets."""
    return _g(stale) / rate


def exact(stale: FloatArray, quiet: FloatArray, signals: FloatArray, false: FloatArray) -> FloatArray:
    r"""W − e^{−ℓ}Ψ with Ψ = Σ_{i ≤ ℓ/κ} P(i+1, γs_i)/γ, W = Σ bⁱ(α+γ)^{−i−1} P(i+1, (α+γ)s_i), s_i = (ℓ − iκ)/α.

    P is the regularised lower Γ function. Without signals (γ = 0) it is g(ℓ)/α; with signals that say next to nothing,
    or more than 200 terms, :func:`cheap`. b = 0 is a signal beyond doubt, α = 0 a page that never changes unsaid.
    O(pages · terms).

    >>> one = (np.array([x]) for x in (1.0, 0.08, 0.22, 0.1))
    >>> round(float(exact(*one)[0]), 11)
    1.70558358417
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.log(signals / false)
        terms = np.floor(stale / weight)
        out = cheap(stale, quiet + signals - false)
        out = np.where(signals > 0, out, _g(stale) / quiet)
    summed = np.flatnonzero((signals > 0) & (weight >= _LIGHTEST) & (terms <= _MOST_TERMS))
    if len(summed):
        out[summed] = _series(stale[summed], quiet[summed], signals[summed], false[summed], weight[summed])
    return out


def _series(
    stale: FloatArray, quiet: FloatArray, signals: FloatArray, false: FloatArray, weight: FloatArray
) -> FloatArray:
    from scipy import special

    any_signal, both = np.zeros_like(stale), np.zeros_like(stale)
    rate = quiet + signals
    share = np.ones_like(stale)
    most = int(np.floor(np.max(stale[np.isfinite(weight)] / weight[np.isfinite(weight)], initial=0.0)))
    for i in range(min(most, _MOST_TERMS) + 1):
        with np.errstate(divide="ignore", invalid="ignore"):
            left = stale - (i * weight if i else 0.0)
            seconds = np.where(left > 0, left / quiet, 0.0)
        any_signal += special.gammainc(i + 1, signals * seconds) / signals
        both += share / rate * special.gammainc(i + 1, rate * seconds)
        share = share * false / rate
    return both - np.exp(-stale) * any_signal


def _g(x: FloatArray) -> FloatArray:
    """1 − (1 + x)e^{−x}."""
    from scipy import special

    return np.asarray(special.gammainc(2.0, x))
