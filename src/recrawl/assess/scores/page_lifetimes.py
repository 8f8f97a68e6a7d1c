"""The truth about pages: when each appeared, changed and disappeared, exactly. Ragged columns.

Rules of this file:
 1. A row is one life of a page, from its birth up to, not including, its death. A page that went away and came
    back has two rows. Rows are sorted by page id, then birth; lives of one page do not overlap.
 2. A change at time c is visible to anyone who observes c or later. The version an observation at t meets is therefore
    the number of changes <= t.
 3. A visit belongs to the last life of its page that had started; a page not yet born has none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.arrays import offsets_of, ragged_search, starts_of_runs

NO_LIFE = -1
"""The row of a visit to a page that did not exist yet."""


@dataclass(frozen=True, slots=True)
class PageLifetimes:
    """Exact change times of n lives of pages, m changes in all."""

    page: IntArray
    """Page ids, ascending. Shape (n,)."""
    offsets: IntArray
    """Row i changed at ``times[offsets[i]:offsets[i+1]]``. Shape (n + 1,)."""
    times: FloatArray
    """Change times, ascending in a row, seconds since the epoch. Shape (m,)."""
    birth: FloatArray
    """When the life started; finite."""
    death: FloatArray
    """When it ended; infinity for a page that is still there."""

    def __post_init__(self) -> None:
        """Refuse columns that break the rules above: every measure relies on them. O(n + m)."""
        n = len(self.page)
        if not len(self.birth) == len(self.death) == len(self.offsets) - 1 == n:
            msg = "page, birth, death and offsets differ in length"
            raise ValueError(msg)
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.times) or bool((np.diff(self.offsets) < 0).any()):
            msg = "the offsets do not span the change times"
            raise ValueError(msg)
        row = self.row_of_change()
        same_row, same_page = row[1:] == row[:-1], self.page[1:] == self.page[:-1]
        inside = (self.times > self.birth[row]) & (self.times < self.death[row])
        rules = {
            "page ids are not ascending": self.page[1:] >= self.page[:-1],
            "a birth is not finite": np.isfinite(self.birth),
            "a death is not after its birth": self.death > self.birth,
            "lives of one page overlap": ~same_page | (self.birth[1:] >= self.death[:-1]),
            "change times are not ascending": ~same_row | (self.times[1:] >= self.times[:-1]),
            "a change is outside its life": inside,
        }
        for what, holds in rules.items():
            if not bool(holds.all()):
                raise ValueError(what)

    def __len__(self) -> int:
        return len(self.page)

    @classmethod
    def of(
        cls,
        page: npt.ArrayLike,
        offsets: npt.ArrayLike,
        times: npt.ArrayLike,
        *,
        birth: npt.ArrayLike,
        death: npt.ArrayLike = np.inf,
    ) -> PageLifetimes:
        """Columns from anything array-like; a single birth or death fills its column.

        >>> truth = PageLifetimes.of([7, 8], [0, 2, 2], [3.0, 5.0], birth=0.0)
        >>> truth.death.tolist()
        [inf, inf]
        """
        ids = np.asarray(page, dtype=np.int64)
        ends = (np.broadcast_to(np.asarray(value, dtype=np.float64), ids.shape).copy() for value in (birth, death))
        return cls(ids, np.asarray(offsets, dtype=np.int64), np.asarray(times, dtype=np.float64), *ends)

    @classmethod
    def from_lifetimes(
        cls,
        page: IntArray,
        lifetimes: FloatArray,
        lifetime_offsets: IntArray,
        changes: FloatArray,
        changes_offsets: IntArray,
    ) -> PageLifetimes:
        """From births and deaths in turn (born, died, born, ...) and changes, both ragged with one row per page.

        Page ids may come in any order, each once. A change while the page was not there, or at the instant it
        appeared, is no change. O((n + m) log(n + m)).

        >>> born_died_born, changed = np.array([0.0, 4.0, 9.0]), np.array([2.0, 9.0, 10.0])
        >>> ends = np.array([0, 3])
        >>> truth = PageLifetimes.from_lifetimes(np.array([7]), born_died_born, ends, changed, ends)
        >>> truth.page.tolist(), truth.offsets.tolist(), truth.times.tolist()
        ([7, 7], [0, 1, 2], [2.0, 10.0])
        """
        events = np.diff(lifetime_offsets)
        event_page = np.repeat(page, events)
        place = np.arange(len(lifetimes)) - np.repeat(lifetime_offsets[:-1], events)
        last = place == np.repeat(events, events) - 1
        births = place % 2 == 0
        death = np.where(last, np.inf, np.append(lifetimes[1:], np.inf))[births]
        order = np.lexsort((lifetimes[births], event_page[births]))
        bare = cls.of(
            event_page[births][order],
            np.zeros(len(order) + 1),
            [],
            birth=lifetimes[births][order],
            death=death[order],
        )
        row = bare.row_of_visit(np.repeat(page, np.diff(changes_offsets)), changes)
        kept = bare.alive(row, changes) & (changes > np.append(bare.birth, np.inf)[row])
        row, times = row[kept], changes[kept]
        by_row = np.lexsort((times, row))
        return cls(bare.page, offsets_of(row, len(bare)), times[by_row], bare.birth, bare.death)

    def row_of_change(self) -> IntArray:
        """The row each change belongs to. Shape (m,)."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int64), np.diff(self.offsets))

    def row_of_visit(self, page: IntArray, time: FloatArray) -> IntArray:
        """The life each visit belongs to by rule 3, or ``NO_LIFE``. O((n + v) log n) for v visits.

        >>> truth = PageLifetimes.of([7, 7], [0, 0, 0], [], birth=[0.0, 9.0], death=[5.0, 99.0])
        >>> truth.row_of_visit(np.array([7, 7, 7, 3]), np.array([-1.0, 6.0, 9.0, 1.0])).tolist()
        [-1, 0, 1, -1]
        """
        starts = starts_of_runs(self.page)
        ids = self.page[starts]
        if not len(ids):
            return np.full(len(page), NO_LIFE)
        place = np.minimum(np.searchsorted(ids, page), len(ids) - 1)
        lifetimes = offsets_of(np.cumsum(starts) - 1, len(ids))
        row = ragged_search(lifetimes, self.birth, place, time, after_equal=True) - 1
        return np.where((ids[place] == page) & (row >= lifetimes[place]), row, NO_LIFE)

    def next_change(self, row: IntArray, time: FloatArray) -> FloatArray:
        """The first change of the row after each time; infinity if there is none. O((m + v) log m).

        >>> lifetimes = PageLifetimes.of([7], [0, 2], [3.0, 5.0], birth=0.0)
        >>> lifetimes.next_change(np.array([0, 0]), np.array([3.0, 6.0])).tolist()
        [5.0, inf]
        """
        position = ragged_search(self.offsets, self.times, row, time, after_equal=True)
        inside = position < self.offsets[row + 1]
        return np.append(self.times, np.inf)[np.where(inside, position, len(self.times))]

    def alive(self, row: IntArray, time: FloatArray) -> BoolArray:
        """Whether each time lies within its life; false for ``NO_LIFE``."""
        return (row >= 0) & (time < np.append(self.death, -np.inf)[row])
