r"""What to expect of captures of pages whose changes are whole seconds apart, exactly.

The published SHARC tables were made with gaps max(1, ⌊Exp(λ)⌋) (``laws.WholeGaps``), not with a Poisson process.
These gaps are 1 with probability 1 − q² and j ≥ 2 with (1 − q)q^j, where q = e^{−λ}. The generating function of the
chance u_k of a change at second k is then (1 − qz)/((1 − z)(1 − cz)) with c = q(1 − q), so

.. math:: u_k = a + b\,c^k, \qquad a = \frac{1 - q}{1 - c}, \quad b = 1 - a,

and all sums over changes have closed forms. Seconds are counted from the first request of a capture, where every page
counts as just changed. Everything is O(n).
"""

from __future__ import annotations

import numpy as np

from recrawl.model import FloatArray


def expected_blur(rate: FloatArray, visit: FloatArray, end: float) -> FloatArray:
    """Expected actual blur (SHARC 4.19) of each page over the seconds 0 … ``end``; ``visit`` in whole seconds.

    >>> expected_blur(np.array([1.0, 50.0]), np.array([1.0, 1.0]), 2.0).round(4).tolist()
    [0.4323, 0.5]
    """
    if end <= 0:
        return np.zeros(len(rate))
    q = np.exp(-rate)
    c = q * -np.expm1(-rate)
    a = -np.expm1(-rate) / (1.0 - c)
    steady = visit * (visit + 1.0) / 2.0 + (end - visit) * (end - visit - 1.0) / 2.0
    early, all_of_it = _first_moment(c, visit), _first_moment(c, end)
    later = end * (_mass(c, end) - _mass(c, visit)) - (all_of_it - early)
    return np.asarray((a * steady + (1.0 - a) * (early + later)) / end)


def page_coherence(rate: FloatArray, visit: FloatArray, revisit: FloatArray) -> FloatArray:
    """Probability that a page does not change after ``visit`` and up to ``revisit``, both in whole seconds.

    The last change is at some second k up to the visit, and the next gap reaches beyond the revisit:
    Σ_k u_k q^{revisit − k + 1}.

    >>> page_coherence(np.array([0.1, 0.1]), np.array([5.0, 5.0]), np.array([5.0, 9.0])).round(4).tolist()
    [1.0, 0.6637]
    """
    q = np.exp(-rate)
    p = -np.expm1(-rate)
    a = p / (1.0 - q * p)
    settled = np.exp(-rate * (revisit - visit + 1.0)) * -np.expm1(-rate * (visit + 1.0)) / (1.0 - q * p)
    fresh = (1.0 - a) * np.exp(-rate * revisit) * (1.0 - p ** (visit + 1.0))
    return np.where(revisit > visit, settled + fresh, 1.0)


def _mass(c: FloatArray, last: FloatArray | float) -> FloatArray:
    """Σ c^k for k = 1 … last."""
    return np.asarray(c * (1.0 - c**last) / (1.0 - c))


def _first_moment(c: FloatArray, last: FloatArray | float) -> FloatArray:
    """Σ k c^k for k = 1 … last."""
    return np.asarray(c * (1.0 - (last + 1.0) * c**last + last * c ** (last + 1.0)) / (1.0 - c) ** 2)
