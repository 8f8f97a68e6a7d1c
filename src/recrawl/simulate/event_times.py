"""Times at which something happened to each of many pages, as one ragged array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.model.arrays import offsets_of, order_by


@dataclass(frozen=True, slots=True)
class EventTimes:
    """Ascending times for every row: row i owns ``times[offsets[i]:offsets[i + 1]]``.

    >>> events = EventTimes.of([1, 0, 1], [5.0, 2.0, 3.0], rows=3)
    >>> events.row(1).tolist(), events.until([0, 1, 2], 4.0).tolist()
    ([3.0, 5.0], [1, 1, 0])
    """

    offsets: IntArray
    times: FloatArray

    @classmethod
    def of(cls, row: npt.ArrayLike, time: npt.ArrayLike, rows: int) -> EventTimes:
        """From events in any order. O(n) if they are sorted by row and time, else O(n log n)."""
        row = np.asarray(row, dtype=np.int64)
        time = np.asarray(time, dtype=np.float64)
        order = order_by(row, time) if len(row) else None
        if order is not None:
            row, time = row[order], time[order]
        return cls(offsets_of(row, rows), time)

    @classmethod
    def concatenate(cls, parts: list[EventTimes]) -> EventTimes:
        """The rows of all parts, one part after the other."""
        counts = np.concatenate([np.zeros(1, np.int64), *(part.counts() for part in parts)])
        return cls(np.cumsum(counts), np.concatenate([np.empty(0), *(part.times for part in parts)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def counts(self) -> IntArray:
        """Number of events of each row."""
        return np.diff(self.offsets)

    def row_of_event(self) -> IntArray:
        """The row of each event."""
        return np.repeat(np.arange(len(self)), self.counts())

    def row(self, row: int) -> FloatArray:
        """The times of one row, not copied."""
        return self.times[self.offsets[row] : self.offsets[row + 1]]

    def where(self, keep: AnyArray) -> EventTimes:
        """Only the events where ``keep`` is true; the rows stay."""
        return EventTimes(offsets_of(self.row_of_event()[keep], len(self)), self.times[keep])

    def take(self, rows: AnyArray) -> EventTimes:
        """The rows at these positions, in this order. O(rows + events taken).

        >>> EventTimes.of([1, 0, 1], [5.0, 2.0, 3.0], rows=2).take(np.array([1])).times.tolist()
        [3.0, 5.0]
        """
        counts = self.counts()[rows]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        source = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][rows] - offsets[:-1], counts)
        return EventTimes(offsets, self.times[source])

    def until(self, row: npt.ArrayLike, t: npt.ArrayLike) -> IntArray:
        """How many events of each ``row`` happened at or before its ``t``.

        A binary search in all rows at once: O(m log k) for m questions and rows of at most k events.
        """
        rows, t = np.broadcast_arrays(np.asarray(row, dtype=np.int64), np.asarray(t, dtype=np.float64))
        first = self.offsets[rows]
        low, high = first.copy(), self.offsets[rows + 1]
        last = max(len(self.times) - 1, 0)
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high) // 2
            before = (low < high) & (self.times[np.minimum(middle, last)] <= t)
            low = np.where(before, middle + 1, low)
            high = np.where(before, high, middle)
        return np.asarray(low - first)

    def last_until(self, row: npt.ArrayLike, t: npt.ArrayLike) -> FloatArray:
        """When the last event of each ``row`` at or before its ``t`` happened; NaN if none did. O(m log k)."""
        count = self.until(row, t)
        found = count > 0
        out = np.full(count.shape, np.nan)
        place = self.offsets[np.broadcast_to(np.asarray(row, dtype=np.int64), count.shape)] + count - 1
        out[found] = self.times[place[found]]
        return out
