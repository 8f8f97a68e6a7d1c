r"""The moment estimator (Upadhyay et al. 2020): as many changes as expected.

    X = Σ_k (1 − e^{−λτ_k}),   X clamped to [¼, n − ¼].

The right side rises from 0 to n, so the root is unique, and the clamp keeps it finite and above 0 for pages that were
never or always found changed. It uses all gaps alike, where maximum likelihood weighs them, and needs no fallback;
at short histories it is the better of the two (algorithms §5).

In logarithms, ln(Σ e^{−λτ}/(n − X)) is convex in λ and falls: Newton climbs monotonically from the left. Jensen's
inequality gives the left start −ln(1 − X/n)·n/T, the root itself when all gaps are equal.

The law-of-large-numbers estimator (Avrachenkov, Patil, Thoppe 2020): for visits that come at random.

If visits are a Poisson process of rate p, an observation finds a change with probability λ/(λ + p), whatever the gaps
were. So

    λ = p·X/(n − X + 1),   p = n/T,

the 1 keeping it finite. It needs two counts and a sum, and no logarithm. For gaps that are not exponential (regular
visits above all) it is biased high.
"""

from __future__ import annotations

import numpy as np

from recrawl.estimate.point_evidence import MovingPages, climb, sound
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
    observations = histories.counts()
    out = np.full(len(histories), np.nan)
    some = np.flatnonzero(observations)
    if len(some):
        n = observations[some].astype(np.float64)
        changes = np.clip(histories.changes()[some].astype(np.float64), CLAMP, n - CLAMP)
        start = -np.log1p(-changes / n) * n / histories.observed()[some]
        offsets = np.append(0, np.cumsum(observations[some]))
        out[some] = climb(start, offsets, histories.gaps, _step, changes, n - changes)
    return out


def _step(now: MovingPages) -> FloatArray:
    """Newton's relative step towards ln(Σ e^{−x}/(n − X)) = 0.

    X − Σ (1 − e^{−x}), with 1 − e^{−x} from short gaps, and 1 less e^{−x} from long ones: the 1s are counted apart, so
    that nothing small is lost beside them.
    """
    changes, rest = now.columns
    stay = np.exp(-now.x)
    long = now.x > 1.0
    excess = (changes - now.sum(long.astype(np.float64))) - now.sum(np.where(long, -stay, -np.expm1(-now.x)))
    return np.asarray(np.log1p(excess / rest) * now.sum(stay) / now.sum(now.x * stay))


def rates_lln(histories: Histories) -> FloatArray:
    """λ of each page, per second; NaN for a page without gaps, 0 for one that was never found changed. O(gaps).

    >>> from recrawl.model import Visits
    >>> rates_lln(Histories.from_visits(Visits.of([1, 1, 1], [0.0, 4.0, 10.0], verdict=[0, 2, 1]))).tolist()
    [0.1]
    """
    histories = sound(histories)
    observations, changes, observed = histories.counts(), histories.changes(), histories.observed()
    pace = np.divide(observations, observed, out=np.full(len(histories), np.nan), where=observed > 0)
    return np.asarray(pace * changes / (observations - changes + 1.0))
