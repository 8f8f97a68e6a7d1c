"""What an archive shows when it is asked for a moment: which version, how far away, and how much may lie between.

A copy is a look that brought something to show, be it a body, a redirect or the word that nothing changed since the
copy before. Which copy is shown is a :class:`Rule`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from recrawl.assess.expected_changes import ExpectedChanges
from recrawl.assess.joint_validity import JointValidity, joint_validity
from recrawl.assess.looks import Looks
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.arrays import offsets_of, ragged_search

NO_LOOK = -1
"""There is no copy."""


class Rule(enum.StrEnum):
    """Which copy answers for a moment."""

    NEAREST = "nearest"
    """The one nearest in time, of two the earlier: what web archives do."""
    BEFORE = "before"
    """The latest one up to the moment, else the first of all: never from the future, if it can be helped."""


@dataclass(frozen=True, slots=True)
class Copies:
    """The looks that can be shown: row i has ``look[offsets[i]:offsets[i+1]]``, by time."""

    offsets: IntArray
    look: IntArray
    """Positions among the looks."""
    time: FloatArray

    @classmethod
    def of(cls, looks: Looks) -> Copies:
        """All looks that brought something. O(m)."""
        look = np.flatnonzero(~looks.gone)
        return cls(offsets_of(looks.row_of_look()[look], len(looks)), look, looks.time[look])

    def row_of_copy(self) -> IntArray:
        """The row each copy belongs to."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int64), np.diff(self.offsets))

    def shown(self, row: IntArray, at: FloatArray, rule: Rule) -> IntArray:
        """Position among the copies of what each of these rows shows for its time; ``NO_LOOK`` if it has none."""
        low, high = self.offsets[row], self.offsets[row + 1] - 1
        before = ragged_search(self.offsets, self.time, row, at, after_equal=True) - 1
        place = np.clip(before, low, np.maximum(high, low))
        if rule is Rule.NEAREST and len(self.time):
            after = np.clip(before + 1, low, np.maximum(high, low))
            bound = len(self.time) - 1
            here, there = (np.abs(self.time[np.minimum(side, bound)] - at) for side in (place, after))
            place = np.where(there < here, after, place)
        return np.where(high >= low, place, NO_LOOK)


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of each page of a collection for one moment, row by row. NaN where there is nothing."""

    at: FloatArray
    """The moment asked for, seconds since the epoch."""
    look: IntArray
    """Position among the looks, or ``NO_LOOK``."""
    time: FloatArray
    """When the copy was made."""
    first: FloatArray
    """From when its version is known to have been valid …"""
    last: FloatArray
    """… to when."""
    expected: FloatArray
    """Expected changes between the moment and the copy, given all looks; NaN where the rate is not known either."""

    def there(self) -> BoolArray:
        """Which pages have anything to show."""
        return np.asarray(self.look != NO_LOOK)

    def away(self) -> FloatArray:
        """Seconds between the moment and the copy."""
        return np.abs(self.at - self.time)

    def proved(self) -> BoolArray:
        """Which pages are shown as they provably were: looks before and after the moment saw this one version."""
        return (self.first <= self.at) & (self.at <= self.last)

    def joint(self, weight: FloatArray | None = None) -> JointValidity:
        """When the versions shown were valid together, or most of them. O(n log n)."""
        return joint_validity(self.first, self.last, weight)


def shown(looks: Looks, rate: FloatArray, at: FloatArray | float, rule: Rule = Rule.NEAREST) -> Shown:
    """What each page shows for a moment, one for all or one a page; ``rate`` per second, NaN if unknown.

    O(m + n log m) for n pages and m looks.

    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of([1, 1, 2], [0.0, 9.0, 4.0], verdict=[0, 1, 0]))
    >>> found = shown(looks, np.array([0.5, 0.5]), 6.0)
    >>> found.time.tolist(), found.proved().tolist(), found.expected.tolist()
    ([9.0, 4.0], [True, False], [0.0, 1.0])
    """
    row = np.arange(len(looks), dtype=np.int64)
    moment = np.broadcast_to(np.asarray(at, np.float64), row.shape)
    copies = Copies.of(looks)
    place = copies.shown(row, moment, rule)
    there = place != NO_LOOK
    look = np.full(len(row), NO_LOOK)
    look[there] = copies.look[place[there]]
    columns = [np.full(len(row), np.nan) for _ in range(4)]
    time, first, last, expected = columns
    for column, values in zip(columns, (looks.time, *looks.validity()), strict=False):
        column[there] = values[look[there]]
    count = ExpectedChanges.of(looks, rate)
    ours = row[there]
    expected[there] = np.abs(count.count(ours, moment[there]) - count.level[look[there]])
    found = Shown(moment, look, time, first, last, expected)
    expected[np.isnan(rate) & ~found.proved()] = np.nan
    return found
