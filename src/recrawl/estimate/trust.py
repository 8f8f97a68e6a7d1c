r"""Whether a source that says when pages changed tells the truth: its words against our own looks, counted per host.

A statement (c, L) says at the time c: "the page last changed at L". It is **false** if L lies behind c, if the gap
between looks that contains L was found unchanged, or if a gap between L and c was found changed; else it is **true**,
if a look could have told otherwise. Two shares say whether to believe a group of pages (a host, for one source):

    moved = P(true | the last gap before c, or the one with L, was found changed): does the date move with the page?
    kept  = P(true | that gap was found unchanged): does it stand still with it?
    w = E[moved]·E[kept],   each a Beta(1, 1) that counted its true and false statements.

Both are needed: a date that never moves is right on every quiet page, and one that is always "now" on every lively one.
The weight is 0 (the source is off) if w < 0.7, or if most statements say "this very moment" (within 5 seconds).
Counters of two periods add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.model import BoolArray, FloatArray, Histories, IntArray

BELOW_THIS_OFF = 0.7
"""The least weight with which a source is heard at all."""
INSTANT = 5.0
"""Seconds between L and c within which L is "now"; so far may clocks differ."""

BEFORE_ALL_LOOKS = -1
AFTER_ALL_LOOKS = -2


class Statements(NamedTuple):
    """What one source says: at ``time`` it said that ``page`` last changed at ``changed_at``. Columns, any order.

    For Last-Modified, ``time`` is that of the visit; for a sitemap or feed, when that was fetched. Statements that are
    not finite, or at the epoch or before it (a clock nobody set), say nothing.
    """

    page: IntArray
    time: FloatArray
    changed_at: FloatArray


class Checked(NamedTuple):
    """Statements about pages with a history, each held against the looks."""

    row: IntArray
    """Row of the page in the histories."""
    time: FloatArray
    changed_at: FloatArray
    """Not after ``time``, unless false for that reason."""
    gap: IntArray
    """The gap that contains ``changed_at``, or one of the two constants above."""
    tested: BoolArray
    """Whether a look, or the order of times, could show it false."""
    true: BoolArray
    """Whether nothing did."""
    about_change: BoolArray
    """Whether the gap it was tested by was found changed."""


def check(histories: Histories, statements: Statements) -> Checked:
    """Hold each statement against the looks at its page. O(m + s log looks) for m gaps and s statements."""
    row, known = _rows(histories, statements.page)
    known &= np.isfinite(statements.time) & np.isfinite(statements.changed_at) & (statements.changed_at > 0.0)
    row, said, claimed = row[known], statements.time[known], statements.changed_at[known]
    ahead = claimed > said + INSTANT
    claimed = np.where(ahead, claimed, np.minimum(claimed, said))
    all_looks = _Looks.of(histories)
    looks = np.diff(all_looks.offsets)[row]
    seen = all_looks.before(row, said, including=True)  # looks 0 … seen − 1 came before the statement
    place = all_looks.before(row, claimed, including=False)  # the look that closes the gap of L
    closed = np.maximum(place, seen - 1)  # the last look that can tell
    inside = place < looks
    # changes found by looks 1 … i of a row; looks 0 … i of row r close the gaps offsets[r] … offsets[r] + i − 1
    found = np.concatenate([[0], np.cumsum(histories.changed)])
    head = histories.offsets[row]
    last = np.minimum(closed, np.maximum(looks - 1, 0))
    after = found[head + last] - found[head + np.minimum(place, last)]
    at_gap = np.where(inside & (place > 0), head + place - 1, 0)
    changed = np.append(histories.changed, np.False_)
    contained = (place == 0) | changed[at_gap]
    tested = ahead | (inside & (last > 0))
    about = ahead | changed[np.where(tested & (last > 0), head + last - 1, len(histories.gaps))]
    gap = np.where(inside, np.where(place > 0, at_gap, BEFORE_ALL_LOOKS), AFTER_ALL_LOOKS)
    return Checked(row, said, claimed, gap, tested, ~ahead & (~inside | (contained & (after == 0))), about)


@dataclass(frozen=True, slots=True)
class Trust:
    """Counters of what groups of pages said, for one source. One row a group."""

    group: IntArray
    """Ids, ascending."""
    moved: IntArray
    """Statements (true, false) tested by a changed gap. Shape (n, 2)."""
    kept: IntArray
    """Statements (true, false) tested by an unchanged gap. Shape (n, 2)."""
    instant: IntArray
    """Statements (not "now", "now"). Shape (n, 2)."""

    def __len__(self) -> int:
        return len(self.group)

    def weights(self) -> FloatArray:
        """The weight w of each group, 0 where it is off.

        >>> told_well = np.array([[18, 0]])
        >>> Trust(np.array([1]), told_well, told_well, told_well).weights().round(4).tolist()  # (19/20)²
        [0.9025]
        """
        moved, kept = ((1.0 + counts[:, 0]) / (2.0 + counts.sum(axis=1)) for counts in (self.moved, self.kept))
        weight = moved * kept
        on = (weight >= BELOW_THIS_OFF) & (self.instant[:, 1] <= self.instant[:, 0])
        return np.where(on, weight, 0.0)

    def of(self, group: IntArray) -> FloatArray:
        """The weight of each of these groups; 0 for one that never said anything. O(n log groups)."""
        if not len(self):
            return np.zeros(len(group))
        place = np.minimum(np.searchsorted(self.group, group), len(self) - 1)
        return np.where(self.group[place] == group, self.weights()[place], 0.0)

    def plus(self, other: Trust) -> Trust:
        """The counters of both: of two periods, or of two workers."""
        ids, index = np.unique(np.concatenate([self.group, other.group]), return_inverse=True)
        sums = []
        for mine, theirs in ((self.moved, other.moved), (self.kept, other.kept), (self.instant, other.instant)):
            total = np.zeros((len(ids), 2), dtype=np.int64)
            np.add.at(total, index, np.concatenate([mine, theirs]))
            sums.append(total)
        return Trust(ids, *sums)


def count(checked: Checked, group: IntArray) -> Trust:
    """Counters of the groups that said something; ``group[i]`` is the group of row i of the histories."""
    ids, index = np.unique(group[checked.row], return_inverse=True)
    now = np.abs(checked.time - checked.changed_at) <= INSTANT
    columns = []
    for rows, good in (
        (checked.tested & checked.about_change, checked.true),
        (checked.tested & ~checked.about_change, checked.true),
        (np.ones(len(index), dtype=np.bool_), ~now),
    ):
        both = [np.bincount(index[rows & side], minlength=len(ids)) for side in (good, ~good)]
        columns.append(np.stack(both, axis=1).astype(np.int64).reshape(len(ids), 2))
    return Trust(ids.astype(np.int64), *columns)


def _rows(histories: Histories, page: IntArray) -> tuple[IntArray, BoolArray]:
    """The row of each page, and whether it has one."""
    if not len(histories):
        return np.zeros(len(page), dtype=np.int64), np.zeros(len(page), dtype=np.bool_)
    row = np.minimum(np.searchsorted(histories.page, page), len(histories) - 1)
    return row, np.asarray(histories.page[row] == page)


class _Looks(NamedTuple):
    """The times of all looks, the opening ones included; row i has ``times[offsets[i]:offsets[i+1]]``."""

    offsets: IntArray
    times: FloatArray

    @classmethod
    def of(cls, histories: Histories) -> _Looks:
        opened = ~np.isnan(histories.first_visit)
        offsets = histories.offsets + np.append(0, np.cumsum(opened))
        times = np.empty(offsets[-1])
        opens = np.zeros(len(times), dtype=np.bool_)
        opens[offsets[:-1][opened]] = True
        times[opens], times[~opens] = histories.first_visit[opened], histories.look_times()
        return cls(offsets, times)

    def before(self, row: IntArray, time: FloatArray, *, including: bool) -> IntArray:
        """How many looks at each row came before each time, or at it if ``including``: bisection, all at once."""
        low, high = self.offsets[row], self.offsets[row + 1]
        first = low
        while bool((low < high).any()):
            middle = (low + high) // 2
            look = self.times[np.minimum(middle, len(self.times) - 1)]
            later = (low < high) & ((look <= time) if including else (look < time))
            low, high = np.where(later, middle + 1, low), np.where(later, high, np.minimum(high, middle))
        return np.asarray(low - first)
