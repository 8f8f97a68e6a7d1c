r"""Classes of change (Barbosa §3.2, §4): few intervals instead of a rate for every page.

Classes come from a clustering of the pages' rates (``estimate.exact_kmeans``); a page is moved between them by its
history, either when a window of visits is full (the historic classifier) or by Bayes' rule (the estimator it is
compared with):

    P(class k | look) ∝ P(class k) · (1 − e^{−Δ/I_k} if changed, e^{−Δ/I_k} if not)

after the time Δ, with I_k the interval of class k (reading 002.5). Class 0 is the most dynamic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray
from recrawl.time import DAY


@dataclass(frozen=True, slots=True)
class ChangeClasses:
    """Classes from the most dynamic to the least, one column a property."""

    interval: FloatArray
    """How often pages of the class are visited, seconds, ascending."""
    window: IntArray
    """Visits after which a page is classified again."""
    lowest: FloatArray
    """Share of changes below which a page moves to the next slower class."""
    highest: FloatArray
    """Share of changes above which it moves to the next faster one."""

    @classmethod
    def of(
        cls,
        interval: npt.ArrayLike,
        *,
        window: npt.ArrayLike = 2,
        lowest: npt.ArrayLike = 0.2,
        highest: npt.ArrayLike = 0.8,
    ) -> ChangeClasses:
        """Columns from anything array-like; a single value fills its column."""
        intervals = np.asarray(interval, dtype=np.float64)
        windows = np.broadcast_to(np.asarray(window, dtype=np.int64), intervals.shape)
        shares = (np.broadcast_to(np.asarray(share, dtype=np.float64), intervals.shape) for share in (lowest, highest))
        if not len(intervals) or intervals[0] <= 0 or (np.diff(intervals) <= 0).any() or (windows < 1).any():
            msg = "classes need intervals above 0, ascending, and windows of 1 visit or more"
            raise ValueError(msg)
        return cls(intervals, windows, *shares)

    def __len__(self) -> int:
        return len(self.interval)


TABLE_2 = ChangeClasses.of(np.array([1, 7, 30, 100]) * DAY, window=[10, 8, 6, 2], lowest=0.3, highest=0.7)
"""The example of Barbosa Table 2."""
TABLE_4 = ChangeClasses.of(np.array([1, 3, 31, 96]) * DAY, window=[3, 2, 2, 1])
"""What its experiments used (Barbosa Table 4)."""


def reclassified(classes: ChangeClasses, current: IntArray, changes: AnyArray, visits: AnyArray) -> IntArray:
    """Algorithm 1: the class of each page after ``visits`` to it in its ``current`` class found ``changes``.

    It moves by one class, and only when its window is full; the slowest and the fastest stay where they are
    (reading 002.3).

    >>> reclassified(TABLE_2, np.array([1, 1, 1]), np.array([6, 1, 1]), np.array([8, 8, 7])).tolist()
    [0, 2, 1]
    """
    size = classes.window[current]
    share = changes / size
    slower, faster = share < classes.lowest[current], share > classes.highest[current]
    step = np.where(visits == size, slower.astype(np.int64) - faster, 0)
    return np.clip(current + step, 0, len(classes) - 1)


def log_likelihood(interval: FloatArray, elapsed: FloatArray, changed: BoolArray) -> FloatArray:
    """Logarithm of P(what the look found | class), one row a look, one column a class.

    ``elapsed`` is > 0, in the unit of ``interval``.
    """
    x = elapsed[:, None] / interval
    return np.where(changed[:, None], np.log(-np.expm1(-x)), -x)


def updated(prior: FloatArray, interval: FloatArray, elapsed: float, *, changed: bool) -> FloatArray:
    """The probability of each class after one look.

    >>> updated(np.array([0.9, 0.1]), np.array([7.0, 30.0]), 7.0, changed=False).round(3).tolist()
    [0.807, 0.193]
    """
    log = np.log(prior) + log_likelihood(interval, np.array([elapsed]), np.array([changed]))[0]
    weight = np.exp(log - log.max())
    return np.asarray(weight / weight.sum())
