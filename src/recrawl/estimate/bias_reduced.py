r"""The bias-reduced estimator for regular visits (HACS eq. 4, Barbosa eq. 1, after Cho and Garcia-Molina).

    r = −ln((n − X + ½)/(n + ½)),   λ = r·f,   f = n/T

from X changes in n gaps over the time T. Natural logarithm; r is λ/f, so f must be multiplied back (readings 000.1,
002.1). Meant for gaps of equal length: at irregular ones it is biased low (algorithms §5).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recrawl.estimate.point_evidence import sound
from recrawl.model import FloatArray, Histories


def rate(changes: npt.ArrayLike, observations: npt.ArrayLike, observed: npt.ArrayLike) -> FloatArray:
    """λ per unit of ``observed``, from X ``changes`` found in n ``observations``; NaN where nothing was observed.

    >>> rate(3, 9, 170.352).round(9).tolist()
    0.020049114
    """
    x, n, t = (np.asarray(value, dtype=np.float64) for value in (changes, observations, observed))
    with np.errstate(divide="ignore", invalid="ignore"):
        frequency = np.where((n > 0) & (t > 0), n / t, np.nan)
    return np.asarray(np.log((n + 0.5) / (n - x + 0.5)) * frequency)


def rates(histories: Histories) -> FloatArray:
    """λ of each page, per second; NaN for a page without gaps. O(gaps)."""
    histories = sound(histories)
    return rate(histories.changes(), histories.counts(), histories.observed())
