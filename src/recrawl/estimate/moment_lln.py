r"""The law-of-large-numbers estimator (Avrachenkov, Patil, Thoppe 2020): for visits that come at random.

If visits are a Poisson process of rate p, a look finds a change with probability λ/(λ + p), whatever the gaps were. So

    λ = p·X/(n − X + 1),   p = n/T,

the 1 keeping it finite. It needs two counts and a sum, and no logarithm. For gaps that are not exponential (regular
visits above all) it is biased high.
"""

from __future__ import annotations

import numpy as np

from recrawl.estimate.point_evidence import sound
from recrawl.model import FloatArray, Histories


def rates(histories: Histories) -> FloatArray:
    """λ of each page, per second; NaN for a page without gaps, 0 for one that was never found changed. O(gaps).

    >>> from recrawl.model import Visits
    >>> rates(Histories.from_visits(Visits.of([1, 1, 1], [0.0, 4.0, 10.0], verdict=[0, 2, 1]))).tolist()
    [0.1]
    """
    histories = sound(histories)
    looks, changes, observed = histories.counts(), histories.changes(), histories.observed()
    pace = np.divide(looks, observed, out=np.full(len(histories), np.nan), where=observed > 0)
    return np.asarray(pace * changes / (looks - changes + 1.0))
