r"""The moment estimator (Upadhyay et al. 2020): as many changes as expected.

    X = Σ_k (1 − e^{−λτ_k}),   X clamped to [¼, n − ¼].

The right side rises from 0 to n, so the root is unique, and the clamp keeps it finite and above 0 for pages that were
never or always found changed. It uses all gaps alike, where maximum likelihood weighs them, and needs no fallback;
at short histories it is the better of the two (algorithms §5).

In logarithms, ln(Σ e^{−λτ}/(n − X)) is convex in λ and falls: Newton climbs monotonically from the left. Jensen's
inequality gives the left start −ln(1 − X/n)·n/T, the root itself when all gaps are equal.
"""

from __future__ import annotations

import numpy as np

from recrawl.estimate.point_evidence import sound
from recrawl.estimate.point_newton import Moving, climb
from recrawl.model import FloatArray, Histories

CLAMP = 0.25
"""How far X stays from 0 and from n."""


def rates(histories: Histories) -> FloatArray:
    """λ of each page, per second, > 0; NaN for a page without gaps. O(gaps · steps).

    >>> from recrawl.model import Visits
    >>> one_of_two = Visits.of([1, 1, 1], [0.0, 5.0, 10.0], verdict=[0, 2, 1])
    >>> rates(Histories.from_visits(one_of_two)).round(9).tolist()  # ln(2)/5
    [0.138629436]
    """
    histories = sound(histories)
    looks = histories.counts()
    out = np.full(len(histories), np.nan)
    some = np.flatnonzero(looks)
    if len(some):
        n = looks[some].astype(np.float64)
        changes = np.clip(histories.changes()[some].astype(np.float64), CLAMP, n - CLAMP)
        start = -np.log1p(-changes / n) * n / histories.observed()[some]
        offsets = np.append(0, np.cumsum(looks[some]))
        out[some] = climb(start, offsets, histories.gaps, _step, changes, n - changes)
    return out


def _step(now: Moving) -> FloatArray:
    """Newton's relative step towards ln(Σ e^{−x}/(n − X)) = 0.

    X − Σ (1 − e^{−x}), with 1 − e^{−x} from short gaps, and 1 less e^{−x} from long ones: the 1s are counted apart, so
    that nothing small is lost beside them.
    """
    changes, rest = now.columns
    stay = np.exp(-now.x)
    long = now.x > 1.0
    excess = (changes - now.sum(long.astype(np.float64))) - now.sum(np.where(long, -stay, -np.expm1(-now.x)))
    return np.asarray(np.log1p(excess / rest) * now.sum(stay) / now.sum(now.x * stay))
