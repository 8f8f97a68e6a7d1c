r"""The freshness optimum at known rates, in closed form (Cho and Garcia-Molina; algorithms §2.1).

max Σ w·F(λ, f), F = (f/λ)(1 − e^{−λ/f}), subject to Σ c·f ≤ B. At the price ν a page is visited at the rate
f = λ/g⁻¹(νcλ/w), or never if νcλ/w ≥ 1, with g(x) = 1 − (1+x)e^{−x}. What ``price.allocate`` is held against.
"""

from __future__ import annotations

import numpy as np

from recrawl.model import FloatArray

_HALVINGS = 70
"""Of a bracket on ln price: down to neighbouring numbers."""
_SERIES = (1.0, 1 / 3, 1 / 36, -1 / 270, 1 / 4320, 1 / 17010, -139 / 5443200, 1 / 204120)


def g(x: FloatArray) -> FloatArray:
    """1 − (1+x)e^{−x}: the value of a freshness visit in units of 1/λ, after x = λt.

    >>> round(float(g(np.array(1.0))), 15)
    0.264241117657115
    """
    small = x < 0.01  # noqa: PLR2004 - below, the two terms cancel and the series is exact to rounding
    series = x * x * (0.5 - x * (1 / 3 - x * (0.125 - x * (1 / 30 - x / 144))))
    return np.where(small, series, -np.expm1(-x) - x * np.exp(-x))


def inverse_g(y: FloatArray) -> FloatArray:
    """The x with g(x) = y for 0 <= y < 1; inf from 1 on. Relative error below 1e-14.

    With L = −ln(1−y) the equation is x − ln(1+x) = L, which does not cancel: a series in √(2L) or the asymptote
    starts it, two Halley steps finish it.
    """
    inside = y < 1
    log = -np.log1p(-np.where(inside, y, 0.0))
    q = np.sqrt(2.0 * log)
    series = np.zeros_like(q)
    for factor in reversed(_SERIES):
        series = q * (factor + series)
    far = log + np.log1p(log + np.log1p(log + np.log1p(log)))
    x = np.where(q < 1.2, series, far)  # noqa: PLR2004 - where both starts are equally good
    rough = q >= 0.06  # noqa: PLR2004 - below, the series alone is exact
    for _ in range(2):
        x = np.where(rough, _halley(np.where(rough, x, 1.0), log), x)
    return np.where(inside, x, np.inf)


def freshness_rates(rate: FloatArray, weight: FloatArray, cost: FloatArray, budget: float) -> tuple[FloatArray, float]:
    """Visits per unit of time that maximise weighted freshness, and the price. O(pages), 70 bisections.

    Near its limit a page's rate drops to 0 within one step of float64; rates are mixed across such a step.

    >>> five = np.arange(1.0, 6.0)
    >>> freshness_rates(five, np.ones(5), np.ones(5), 5.0)[0].round(2).tolist()  # their Table 2
    [1.15, 1.36, 1.35, 1.14, 0.0]
    """
    alive = (rate > 0) & (weight > 0)
    out = np.zeros_like(rate)
    if not alive.any():
        return out, 0.0
    slow = cost[alive] * rate[alive] / weight[alive]

    def asked(log_price: float) -> tuple[FloatArray, float]:
        rates = np.asarray(rate[alive] / inverse_g(np.exp(log_price) * slow))
        return rates, float((cost[alive] * rates).sum())

    # at the upper end nobody may be left, whatever way the logarithm was rounded
    low, high = float(-np.log(slow.max()) - 60.0), float(-np.log(slow.min())) + 1e-12
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if asked(middle)[1] > budget else (low, middle)
    (more, spent_more), (less, spent_less) = asked(low), asked(high)
    share = (budget - spent_less) / (spent_more - spent_less) if spent_more > spent_less else 1.0
    out[alive] = share * more + (1.0 - share) * less
    return out, float(np.exp(low))


def _halley(x: FloatArray, log: FloatArray) -> FloatArray:
    f = x - np.log1p(x) - log
    slope, bend = x / (1.0 + x), 1.0 / (1.0 + x) ** 2
    return np.asarray(x - 2.0 * f * slope / (2.0 * slope * slope - f * bend))
