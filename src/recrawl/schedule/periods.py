"""When what was learned in passing is learned properly: at the end of every day, and sooner while a crawl is young.

A web that changes within minutes cannot wait for midnight: until then nobody knows how fast its pages are as a whole,
nor even that rates so high exist. So a period also ends whenever the time since the first look has doubled, from a
minute on, until it is a day. A crawl whose pages rest for a day or more has days alone. Where periods end depends on
the looks, not on the batches in which they are told.
"""

from __future__ import annotations

import numpy as np

from recrawl.model import FloatArray
from recrawl.time import DAY

_FIRST = 60.0
"""Seconds from the first look to the end of the first period."""
_EARLY = np.append(_FIRST * np.exp2(np.arange(int(np.log2(DAY / _FIRST)) + 1)), np.inf)


class Periods:
    """The ends of periods; those of a young crawl are known from the gap between looks that ended first.

    >>> periods = Periods()
    >>> periods.ends(np.array([90.0])).tolist()
    [86400.0]
    >>> periods.begin(start=np.array([0.0, 5.0]), end=np.array([70.0, 20.0]))
    True
    >>> periods.ends(np.array([90.0])).tolist()
    [125.0]
    """

    def __init__(self) -> None:
        self._first = (np.inf, np.inf)
        """End and start of the gap that ended first."""

    def begin(self, *, start: FloatArray, end: FloatArray) -> bool:
        """Hear of gaps between looks, at least one; whether periods end elsewhere now."""
        earliest = float(end.min())
        found = (earliest, float(start[end == earliest].min()))
        if found >= self._first:
            return False
        self._first = found
        return True

    def ends(self, time: FloatArray) -> FloatArray:
        """The end of the period in which each of these times lies. O(times)."""
        midnight = (np.floor(time / DAY) + 1.0) * DAY
        start = self._first[1]
        if not np.isfinite(start):
            return np.asarray(midnight)
        early = start + _EARLY
        return np.minimum(midnight, early[np.searchsorted(early, time, side="right")])

    def end(self, time: float) -> float:
        """The end of the period in which one time lies."""
        return float(self.ends(np.array([time]))[0])
