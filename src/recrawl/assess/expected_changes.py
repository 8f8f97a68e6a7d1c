r"""How many changes of a page are expected up to any time, given its rate and what the looks at it found.

Between two looks G apart the page changed at a constant pace, in expectation: not at all if the later look found no
change; if it found one, there was at least one, and the pace is λ/(1 − e^{−λG}) (1/G if λ = 0); and λ where nobody
can tell, before the first look and after the last. A page that was gone at the last look changes no more. A log of
changes has a step at each change instead. So the
expected count N(t) is piecewise linear and never falls, and every measure of a collection follows from N and its
integral: the changes between a moment and the version shown are |N(t) − N(version)|.

Without ``evidence`` the pace is λ everywhere: what was to be expected before anybody looked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from recrawl.assess.looks import Looks
from recrawl.model import BoolArray, FloatArray, IntArray, Verdict
from recrawl.model.arrays import ends_of_runs, ragged_search


@dataclass(frozen=True, slots=True)
class ExpectedChanges:
    """N(t) of every page, counted from its first look. Times in seconds since the epoch."""

    looks: Looks
    rate: FloatArray
    """λ of each page, per second; 0 where it is not known."""
    level: FloatArray
    """N at each look."""
    pace: FloatArray
    """Expected changes per second from each look to the next of its page."""
    area: FloatArray
    """∫ N from the first look of the page to each look, in seconds."""

    @classmethod
    def of(cls, looks: Looks, rate: FloatArray, *, evidence: bool = True) -> ExpectedChanges:
        """N from rates, one a page. O(m)."""
        rate = np.where(np.isnan(rate), 0.0, rate)
        row = looks.row_of_look()
        pace, step = rate[row], np.zeros(len(row))
        opens, gap = looks.opens(), np.full(len(row), np.nan)
        np.subtract(looks.time[1:], looks.time[:-1], out=gap[1:])
        if evidence and len(row):
            found = ~opens & (looks.says == Verdict.CHANGED)
            exact = found & looks.exact()
            paced = pace.copy()  # of the gap that ends at each look
            paced[~opens & (looks.says == Verdict.UNCHANGED)] = 0.0
            seen = found & ~exact
            paced[seen] = 1.0 / (gap[seen] * special.exprel(-pace[seen] * gap[seen]))
            paced[exact], step[exact] = 0.0, 1.0
            pace[:-1] = np.where(opens[1:], pace[:-1], paced[1:])
            pace[ends_of_runs(row) & looks.gone] = 0.0
        before = np.where(opens, 0.0, np.append(0.0, pace[:-1]))  # pace of the gap that ends here
        gap = np.where(opens, 0.0, gap)
        level = _running(before * gap + step, looks)
        start = np.where(opens, 0.0, np.append(0.0, level[:-1]))
        return cls(looks, rate, level, pace, _running((start + before * gap / 2.0) * gap, looks))

    def count(self, row: IntArray, time: FloatArray) -> FloatArray:
        """N of these pages (rows that have a look) at these times; negative before the first look. O(k log m)."""
        look, since, first = self._place(row, time)
        return np.where(first, self.rate[row] * since, self.level[look] + self.pace[look] * since)

    def integral(self, row: IntArray, time: FloatArray) -> FloatArray:
        """∫ N from the first look of the page to these times, in seconds. O(k log m)."""
        look, since, first = self._place(row, time)
        inside = self.area[look] + (self.level[look] + self.pace[look] * since / 2.0) * since
        return np.where(first, self.rate[row] * since * since / 2.0, inside)

    def _place(self, row: IntArray, time: FloatArray) -> tuple[IntArray, FloatArray, BoolArray]:
        """The last look up to each time, the seconds since it, and where there is none (then it is the first)."""
        look = ragged_search(self.looks.offsets, self.looks.time, row, time, after_equal=True) - 1
        first = look < self.looks.offsets[row]
        look = np.where(first, self.looks.offsets[row], look)
        return look, time - self.looks.time[look], first


def _running(values: FloatArray, looks: Looks) -> FloatArray:
    """Running sums of the values of each page. O(m)."""
    total = np.cumsum(values)
    if len(looks) == 1:
        return total
    before = np.concatenate([[0.0], total])[looks.offsets[:-1]]
    return np.asarray(total - np.repeat(before, np.diff(looks.offsets)))
