"""Whether there was one instant at which everything shown was valid together, and who breaks it if not.

What is known of a version is an interval [first seen, last seen]: it was the current one at both ends and, as far as
anybody looked, in between. Versions were valid together where their intervals meet. Intervals on a line meet pairwise
if and only if they all meet in one point (Helly), so the instant that lies in most of them is the best common one, and
the pages outside it are the smallest set that must be left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class JointValidity:
    """The instants at which most was valid together, and what was."""

    start: float
    """Every instant from here … (seconds since the epoch; NaN if there is no interval at all)"""
    end: float
    """… to here lies in every interval that is ``inside``."""
    inside: BoolArray
    """One a given interval: whether it holds these instants."""

    @property
    def complete(self) -> bool:
        """Whether everything was valid together. True of nothing."""
        return bool(self.inside.all())

    @property
    def instant(self) -> float:
        """The middle of the common interval, the instant farthest from both ends. Seconds since the epoch."""
        return self.start + (self.end - self.start) / 2.0


def joint_validity(first: FloatArray, last: FloatArray, weight: FloatArray | None = None) -> JointValidity:
    """The instant in the heaviest set of closed intervals [first, last], as a common interval. O(n log n).

    Without weights it is the instant in most of them. An interval with a NaN end holds no instant. Of several best
    instants it is the earliest.

    >>> found = joint_validity(np.array([0.0, 4.0, 9.0]), np.array([6.0, 8.0, 9.0]))
    >>> found.start, found.end, found.inside.tolist(), found.complete
    (4.0, 6.0, [True, True, False], False)
    """
    known = first <= last
    if not bool(known.any()):
        return JointValidity(float("nan"), float("nan"), known)
    begin, stop = first[known], last[known]
    count = np.ones(len(begin)) if weight is None else weight[known]
    by_begin, by_stop = np.argsort(begin, kind="stable"), np.argsort(stop, kind="stable")
    begin, stop = begin[by_begin], stop[by_stop]
    # The best instant is one at which some interval begins. There hold those that began, less those that ended before.
    began = np.cumsum(count[by_begin])[np.searchsorted(begin, begin, side="right") - 1]
    ended = np.concatenate([[0.0], np.cumsum(count[by_stop])])[np.searchsorted(stop, begin, side="left")]
    instant = begin[np.argmax(began - ended)]
    inside = known & (first <= instant) & (instant <= last)
    return JointValidity(float(first[inside].max()), float(last[inside].min()), inside)
