r"""What a visit to a page is worth after signals of change (algorithms §4, after Busa-Fekete et al. 2025).

A page is stale with probability 1 − e^{−ℓ}, ℓ = αt + κn: the rate α of changes that nobody signals, n signals of
weight κ = ln(γ/b) each, γ the rate of signals, b that of false ones. All rates are per second, values in seconds.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from recrawl.model import FloatArray

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
    return np.asarray(special.gammainc(2.0, x))
