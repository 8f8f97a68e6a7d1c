"""When pages changed, as far as looks tell, and how long they stayed as they were in between.

A look tells only that a page changed since the look before: the change is dated at the middle of the gap (HACS II-B,
interpolated updates), and several changes in one gap count as one. So intervals much shorter than the gaps between
looks are never seen, and none is known better than to a gap. A log of changes (``ChangeKind.EXACT``) knows each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model import BoolArray, FloatArray, Histories, IntArray


@dataclass(frozen=True, slots=True)
class Intervals:
    """Times between one change of a page and its next, by row and time."""

    row: IntArray
    """Row of the histories."""
    length: FloatArray
    """Seconds."""

    def __len__(self) -> int:
        return len(self.row)

    def medians(self, rows: int) -> FloatArray:
        """The median interval of each row 0 … rows − 1, in seconds; NaN for a row without any. O(n log n).

        >>> Intervals(np.array([0, 0, 0]), np.array([5.0, 1.0, 2.0])).medians(2).tolist()
        [2.0, nan]
        """
        count = np.bincount(self.row, minlength=rows)
        value = self.length[np.lexsort((self.length, self.row))]
        first = np.cumsum(count) - count
        some = np.flatnonzero(count)
        out = np.full(rows, np.nan)
        low, high = first[some] + (count[some] - 1) // 2, first[some] + count[some] // 2
        out[some] = (value[low] + value[high]) / 2.0
        return out


@dataclass(frozen=True, slots=True)
class Changes:
    """When pages changed, by row and time."""

    row: IntArray
    """Row of the histories."""
    time: FloatArray
    """Seconds since the epoch."""
    opened: IntArray
    """Rows whose log opens with a change, ascending: it begins an interval and is not counted."""
    opened_at: FloatArray

    def __len__(self) -> int:
        return len(self.row)

    def intervals(self) -> Intervals:
        """Times between consecutive changes of a row. O(n)."""
        row = np.concatenate([self.opened, self.row])
        time = np.concatenate([self.opened_at, self.time])
        order = np.argsort(row, kind="stable")  # openings come first in the list, and so in their rows
        row, time = row[order], time[order]
        same = row[1:] == row[:-1]
        return Intervals(row[1:][same], np.diff(time)[same])


def changes_of(histories: Histories, exact: BoolArray | None = None) -> Changes:
    """When each page changed, as far as is known: ``exact[i]`` says that row i is a log of its changes. O(gaps)."""
    known = np.zeros(len(histories), np.bool_) if exact is None else exact
    row = histories.row_of_gap()
    when = histories.look_times() - np.where(known[row], 0.0, histories.gaps / 2.0)
    opened = np.flatnonzero(known & ~np.isnan(histories.first_visit))
    return Changes(row[histories.changed], when[histories.changed], opened, histories.first_visit[opened])


def intervals_of(histories: Histories, exact: BoolArray | None = None) -> Intervals:
    """The intervals between changes of each page. O(gaps).

    A page with X detected changes has X − 1 intervals, from middle to middle of the gaps they lie in; an exact log has
    one more, from its opening to its first change.

    >>> from recrawl.model import Visits
    >>> h = Histories.from_visits(Visits.of([1, 1, 1, 1], [0.0, 10.0, 20.0, 30.0], verdict=[0, 2, 1, 2]))
    >>> intervals_of(h).length.tolist(), intervals_of(h, np.array([True])).length.tolist()
    ([20.0], [10.0, 20.0])
    """
    return changes_of(histories, exact).intervals()
