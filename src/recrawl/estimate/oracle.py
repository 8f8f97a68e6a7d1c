"""Exact change times: the rate is N changes over the time T (SHARC 6.2; git histories, feeds and other complete logs).

The thesis counts changes in slots of Δ and divides by their number; divided by Δ it is N/T (reading 003.37).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recrawl.model import FloatArray


def rate(changes: npt.ArrayLike, observed: npt.ArrayLike) -> FloatArray:
    """N/T per unit of ``observed``; NaN where nothing was observed.

    >>> rate(11, 40.0).tolist()
    0.275
    """
    n, t = np.asarray(changes, dtype=np.float64), np.asarray(observed, dtype=np.float64)
    return np.asarray(np.divide(n, t, out=np.full(np.broadcast(n, t).shape, np.nan), where=t > 0))
