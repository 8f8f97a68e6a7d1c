r"""The naive estimator (HACS eq. 3): λ = X/T, changes found over the time observed.

It counts at most one change a gap, so it can never exceed the rate of the visits, and more visits at the same pace do
not cure it: for equal gaps its expectation is λ·(1 − e^{−r})/r with r = λ/f, f = n/T. Kept as what others must beat.
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
    changes, observed = histories.changes(), histories.observed()
    return np.asarray(np.divide(changes, observed, out=np.full(len(histories), np.nan), where=observed > 0))
