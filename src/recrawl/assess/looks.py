"""Looks: all that was ever found out about a collection's pages, by page and time, and what each look proves.

Rules of this file:
 1. A look is a visit that was answered or that says something about change. Failed visits prove nothing.
 2. Visits of a page at one instant are one look; the verdict that says most stands.
 3. The first look at a page says nothing about change. A page that is gone is another version than one that is there.
 4. Looks in a row that found no change saw one version. It is known to be valid from the first of them to the last.
    (That it changed twice in between, back and forth, is not thinkable here; nothing but a log of changes could tell.)
 5. Of a log of changes every time is exact: a version is valid up to the next change, not including it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.model import AnyArray, BoolArray, ByteArray, ChangeKind, FloatArray, IntArray, Outcome, Verdict, Visits
from recrawl.model.arrays import ends_of_runs, offsets_of, ragged_search, starts_of_runs

NOWHERE = -1
"""The position of a look that is not there."""


@dataclass(frozen=True, slots=True)
class Looks:
    """m looks at n pages. Row i has the looks ``offsets[i]:offsets[i+1]``, by time."""

    page: IntArray
    """Page ids, ascending, unique. Shape (n,)."""
    offsets: IntArray
    """Shape (n + 1,)."""
    time: FloatArray
    """Seconds since the epoch, ascending in a row. Shape (m,)."""
    says: ByteArray
    """:class:`~recrawl.model.Verdict` on the time since the look before."""
    kinds: npt.NDArray[np.uint16]
    """In what respect it changed."""
    gone: BoolArray
    """The look found that there is no such page: there is nothing to show of it."""

    def __len__(self) -> int:
        return len(self.page)

    @classmethod
    def from_visits(cls, visits: Visits) -> Looks:
        """The looks among visits, which may be unordered and doubled. O(v log v), O(v) if sorted.

        >>> looks = Looks.from_visits(Visits.of([7, 7, 7], [9.0, 0.0, 4.0], outcome=[0, 0, 6], verdict=[1, 0, 0]))
        >>> looks.time.tolist(), looks.says.tolist()
        ([0.0, 9.0], [0, 1])
        """
        seen = visits.take(visits.answered() | (visits.verdict != Verdict.UNKNOWN)).sorted()
        first = np.flatnonzero(starts_of_runs(seen.page, seen.time))
        if not len(first):
            return cls(*_nothing())
        page, time = seen.page[first], seen.time[first]
        says = np.maximum.reduceat(seen.verdict, first)
        kinds = np.bitwise_or.reduceat(seen.kinds, first)
        gone = np.logical_and.reduceat(seen.outcome == Outcome.GONE, first)
        opens = starts_of_runs(page)
        turned = ~opens & np.append(False, gone[1:] != gone[:-1])
        says = np.where(opens, Verdict.UNKNOWN, np.where(turned, Verdict.CHANGED, says)).astype(np.uint8)
        kinds = np.where(turned, kinds | np.uint16(ChangeKind.EXISTENCE), kinds)
        return cls(page[opens], offsets_of(np.cumsum(opens) - 1, int(opens.sum())), time, says, kinds, gone)

    def row_of_look(self) -> IntArray:
        """The row each look belongs to. Shape (m,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.offsets))

    def opens(self) -> BoolArray:
        """Whether a look is the first of its page."""
        opens = np.zeros(len(self.time) + 1, np.bool_)
        opens[self.offsets[:-1]] = True
        return opens[:-1]

    def exact(self) -> BoolArray:
        """Whether a look is an entry of a log: the change happened at that very time."""
        return np.asarray((self.says == Verdict.CHANGED) & ((self.kinds & np.uint16(ChangeKind.EXACT)) != 0))

    def is_log(self) -> bool:
        """Whether most looks are entries of a log: nobody looked, somebody kept a record."""
        return 2 * int(self.exact().sum()) > len(self.time)

    def validity(self) -> tuple[FloatArray, FloatArray]:
        """From when to when the version that each look saw is known to have been valid (rules 4 and 5). O(m).

        >>> looks = Looks.from_visits(Visits.of([7, 7, 7], [0.0, 4.0, 9.0], verdict=[0, 1, 2]))
        >>> [side.tolist() for side in looks.validity()]
        [[0.0, 0.0, 9.0], [4.0, 4.0, 9.0]]
        """
        if not len(self.time):
            return np.empty(0), np.empty(0)
        first, last = self.versions()
        until = self.time[last].copy()
        following = np.minimum(last + 1, len(self.time) - 1)
        dated = self.exact()[following] & (following > last) & ~self.opens()[following]
        until[dated] = np.nextafter(self.time[following[dated]], -np.inf)
        return self.time[first], until

    def versions(self) -> tuple[IntArray, IntArray]:
        """Of each look the first and the last look in a row that saw the same version (rule 4). O(m)."""
        starts = self.says != Verdict.UNCHANGED
        starts |= self.opens()
        version = np.cumsum(starts) - 1
        first, last = np.flatnonzero(starts), np.flatnonzero(ends_of_runs(version))
        return first[version], last[version]

    def find(self, page: IntArray, time: FloatArray) -> IntArray:
        """The position of the look at each page at exactly that time, or ``NOWHERE``. O((m + k) log m) for k of them.

        >>> looks = Looks.from_visits(Visits.of([7, 7, 9], [0.0, 4.0, 4.0]))
        >>> looks.find(np.array([7, 9, 9, 8]), np.array([4.0, 4.0, 0.0, 4.0])).tolist()
        [1, 2, -1, -1]
        """
        if not len(self):
            return np.full(len(page), NOWHERE)
        row = np.minimum(np.searchsorted(self.page, page), len(self) - 1)
        place = ragged_search(self.offsets, self.time, row, time, after_equal=True) - 1
        met = (self.page[row] == page) & (place >= self.offsets[row]) & (self.time[place] == time)
        return np.where(met, place, NOWHERE)

    def take(self, rows: AnyArray) -> Looks:
        """The pages at these ascending positions, or where this mask is true."""
        wanted = np.zeros(len(self), np.bool_)
        wanted[rows] = True
        kept = np.repeat(wanted, np.diff(self.offsets))
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[wanted])])
        return Looks(self.page[wanted], offsets, self.time[kept], self.says[kept], self.kinds[kept], self.gone[kept])


def _nothing() -> tuple[IntArray, IntArray, FloatArray, ByteArray, npt.NDArray[np.uint16], BoolArray]:
    none = np.empty(0, np.int64)
    return (
        none,
        np.zeros(1, np.int64),
        np.empty(0),
        np.empty(0, np.uint8),
        np.empty(0, np.uint16),
        np.empty(0, np.bool_),
    )
