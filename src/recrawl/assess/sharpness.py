"""How sharp one answer of an archive is: how far a copy is from the moment asked for, and what may lie between.

:mod:`recrawl.assess.shown` asks this of a whole collection and chooses the copies itself. Here the copies are given, as
by a TimeGate that has just chosen one; and several of them, such as a page and its pictures, make one answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.assess.expected_changes import ExpectedChanges
from recrawl.assess.joint_validity import joint_validity
from recrawl.assess.looks import NOWHERE, Looks
from recrawl.model import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Sharpness:
    """What is known of each of k copies. Times in seconds since the epoch."""

    at: FloatArray
    """The moment asked for."""
    time: FloatArray
    """When the copy was made."""
    first: FloatArray
    """From when its version is known to have been valid …"""
    last: FloatArray
    """… to when; both are the time of the copy if no other look saw the same version."""
    expected: FloatArray
    """Expected changes between the moment and the copy, given all looks; NaN where nobody can tell."""
    readable: BoolArray
    """Whether the bytes of the copy can be read. A line of an index alone proves nothing: anybody can write one."""

    def away(self) -> FloatArray:
        """Seconds from the moment to the copy, negative where the copy is older."""
        return self.time - self.at

    def proved(self) -> BoolArray:
        """Which copies are provably as the page was.

        Their bytes can be read, and looks before and after the moment saw this one version.
        """
        return self.readable & self.covered()

    def covered(self) -> BoolArray:
        """For which copies looks before and after the moment saw this one version."""
        return (self.first <= self.at) & (self.at <= self.last)


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the copies that make one answer lie apart."""

    earliest: float
    """Seconds since the epoch; NaN if there is no copy."""
    latest: float
    together: bool
    """Whether all can be read, and their versions were provably valid at one instant."""

    @property
    def seconds(self) -> float:
        """Between the earliest and the latest copy."""
        return self.latest - self.earliest


def sharpness(  # noqa: PLR0913 - the looks, and what is asked of which copies
    looks: Looks,
    rate: FloatArray,
    page: IntArray,
    time: FloatArray,
    at: FloatArray | float,
    *,
    readable: BoolArray,
) -> Sharpness:
    """What is known of the copies made of these pages at these times, for the moments asked for. O(m + k log m).

    ``rate`` is that of each row of ``looks``, per second, NaN if unknown. A copy that is no look, since it failed or
    its page was never judged, stands for its own instant only. ``readable`` says of which copies the bytes can be read.

    >>> from recrawl.model import Visits
    >>> looks = Looks.from_visits(Visits.of([7, 7, 7], [0.0, 8.0, 16.0], verdict=[0, 1, 2]))
    >>> page, time, at, both = np.array([7, 7]), np.array([0.0, 16.0]), np.array([4.0, 18.0]), np.array([True, True])
    >>> found = sharpness(looks, np.array([0.5]), page, time, at, readable=both)
    >>> found.proved().tolist(), found.expected.tolist(), found.away().tolist()
    ([True, False], [0.0, 1.0], [-4.0, -2.0])
    """
    moment = np.broadcast_to(np.asarray(at, np.float64), time.shape)
    first, last = time.copy(), time.copy()
    expected = np.full(len(time), np.nan)
    look = looks.find(page, time)
    seen = look != NOWHERE
    since, until = looks.validity()
    first[seen], last[seen] = since[look[seen]], until[look[seen]]
    row = np.searchsorted(looks.page, page)
    known = row < len(looks)
    known[known] = looks.page[row[known]] == page[known]
    count = ExpectedChanges.of(looks, rate)
    rows = row[known]
    then, now = count.count(np.concatenate([rows, rows]), np.concatenate([time[known], moment[known]])).reshape(2, -1)
    expected[known] = np.abs(now - then)
    found = Sharpness(moment, time, first, last, expected, readable)
    unknown = np.ones(len(time), np.bool_)
    unknown[known] = np.isnan(rate[rows])
    expected[unknown & ~found.covered()] = np.nan
    expected[found.covered()] = 0.0
    return found


def spread(copies: Sharpness) -> Spread:
    """How far copies lie apart, and whether they were valid together. O(k log k).

    >>> first, last, nothing = np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.zeros(2)
    >>> copies = Sharpness(nothing, np.array([1.0, 5.0]), first, last, nothing, np.array([True, True]))
    >>> spread(copies).seconds, spread(copies).together
    (4.0, True)
    """
    if not len(copies.time):
        return Spread(np.nan, np.nan, together=True)
    together = bool(copies.readable.all()) and joint_validity(copies.first, copies.last).complete
    return Spread(float(copies.time.min()), float(copies.time.max()), together)
