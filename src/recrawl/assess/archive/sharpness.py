"""How sharp one answer of an archive is: how far a copy is from the moment asked for, and what may lie between.

:mod:`recrawl.assess.archive.replay_selection` asks this of a whole collection and chooses the copies itself. Here the
copies are given, as by a TimeGate that has just chosen one; and several of them, such as a page and its images, make
one answer.

How sharp one copy of one page is: what :mod:`recrawl.assess.archive.sharpness` says, without arrays.

A server answers for one copy at a time, and most pages have a few observations. To make arrays of ten observations
takes longer than to go through them one by one, so that is done here: the rules are those of
:mod:`recrawl.assess.archive.observations`, the expected changes those of
:mod:`recrawl.assess.site_capture.blur_coherence`, and tests hold both ways against each other.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.assess.archive.composite_coherence import joint_validity
from recrawl.assess.archive.observations import NOWHERE, Observations
from recrawl.assess.site_capture.blur_coherence import ExpectedChanges
from recrawl.model import ANSWERED, BoolArray, ChangeKind, FloatArray, IntArray, Outcome, Verdict, Visits


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
    """… to when; both are the time of the copy if no other observation saw the same version."""
    expected: FloatArray
    """Expected changes between the moment and the copy, given all observations; NaN where nobody can tell."""
    readable: BoolArray
    """Whether the bytes of the copy can be read. A line of an index alone proves nothing: anybody can write one."""

    def away(self) -> FloatArray:
        """Seconds from the moment to the copy, negative where the copy is older."""
        return self.time - self.at

    def proved(self) -> BoolArray:
        """Which copies are provably as the page was.

        Their bytes can be read, and observations before and after the moment saw this one version.
        """
        return proved_valid(self.first, self.last, self.at, self.readable)

    def covered(self) -> BoolArray:
        """For which copies observations before and after the moment saw this one version."""
        return (self.first <= self.at) & (self.at <= self.last)


def proved_valid(first: FloatArray, last: FloatArray, at: FloatArray, readable: BoolArray) -> BoolArray:
    """Which copies are provably as the page was: the one rule for an answer of a server and for a whole collection.

    Observations before and after the moment saw this one version (``first`` to ``last``), and the bytes of the copy can
    be read. Without bytes there is only what an index says, and anybody can write a line of an index.

    >>> moment = np.array([4.0, 4.0, 9.0])
    >>> proved_valid(np.zeros(3), np.full(3, 8.0), moment, np.array([True, False, True])).tolist()
    [True, False, False]
    """
    return readable & (first <= at) & (at <= last)


@dataclass(frozen=True, slots=True)
class CopySpread:
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
    observations: Observations,
    rate: FloatArray,
    page: IntArray,
    time: FloatArray,
    at: FloatArray | float,
    *,
    readable: BoolArray,
) -> Sharpness:
    """What is known of the copies made of these pages at these times, for the moments asked for. O(m + k log m).

    ``rate`` is that of each row of ``observations``, per second, NaN if unknown. A copy that is no observation, since
    it failed or its page was never judged, stands for its own instant only. ``readable`` says of which copies the bytes
    can be read.

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([7, 7, 7], [0.0, 8.0, 16.0], verdict=[0, 1, 2]))
    >>> page, time, at, both = np.array([7, 7]), np.array([0.0, 16.0]), np.array([4.0, 18.0]), np.array([True, True])
    >>> found = sharpness(observations, np.array([0.5]), page, time, at, readable=both)
    >>> found.proved().tolist(), found.expected.tolist(), found.away().tolist()
    ([True, False], [0.0, 1.0], [-4.0, -2.0])
    """
    moment = np.broadcast_to(np.asarray(at, np.float64), time.shape)
    first, last = time.copy(), time.copy()
    expected = np.full(len(time), np.nan)
    observation = observations.find(page, time)
    seen = observation != NOWHERE
    since, until = observations.validity()
    first[seen], last[seen] = since[observation[seen]], until[observation[seen]]
    row = np.searchsorted(observations.page, page)
    known = row < len(observations)
    known[known] = observations.page[row[known]] == page[known]
    count = ExpectedChanges.of(observations, rate)
    rows = row[known]
    then, now = count.count(np.concatenate([rows, rows]), np.concatenate([time[known], moment[known]])).reshape(2, -1)
    expected[known] = np.abs(now - then)
    found = Sharpness(moment, time, first, last, expected, readable)
    unknown = np.ones(len(time), np.bool_)
    unknown[known] = np.isnan(rate[rows])
    expected[unknown & ~found.covered()] = np.nan
    expected[found.covered()] = 0.0
    return found


def spread(copies: Sharpness) -> CopySpread:
    """How far copies lie apart, and whether they were valid together. O(k log k).

    >>> first, last, nothing = np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.zeros(2)
    >>> copies = Sharpness(nothing, np.array([1.0, 5.0]), first, last, nothing, np.array([True, True]))
    >>> spread(copies).seconds, spread(copies).together
    (4.0, True)
    """
    if not len(copies.time):
        return CopySpread(np.nan, np.nan, together=True)
    together = bool(copies.readable.all()) and joint_validity(copies.first, copies.last).complete
    return CopySpread(float(copies.time.min()), float(copies.time.max()), together)


_EXACT, _GONE = int(ChangeKind.EXACT), int(Outcome.GONE)
_UNKNOWN, _UNCHANGED, _CHANGED = int(Verdict.UNKNOWN), int(Verdict.UNCHANGED), int(Verdict.CHANGED)

FEW_OBSERVATIONS = 200
"""Up to this many observations of a page it takes less time to go through them one by one."""


class PageObservations(NamedTuple):
    """The observes one page, by time."""

    time: list[float]
    """Seconds since the epoch."""
    says: list[int]
    """:class:`~recrawl.model.Verdict` on the time since the observation before."""
    exact: list[bool]
    """Whether the change happened at that very time."""
    gone: bool
    """Whether there was no such page at the last observation."""


def observations_of_one(visits: Visits) -> PageObservations:
    """The observations among the visits of one page, which come by time, each once. O(v)."""
    times: list[float] = []
    says: list[int] = []
    exact: list[bool] = []
    gone = False
    columns = (visits.time, visits.outcome, visits.verdict, visits.kinds)
    for time, outcome, verdict, kinds in zip(*(column.tolist() for column in columns), strict=True):
        if outcome > ANSWERED and verdict == _UNKNOWN:
            continue
        away = outcome == _GONE
        said = verdict if away == gone else _CHANGED
        times.append(time)
        says.append(said if len(times) > 1 else _UNKNOWN)
        exact.append(says[-1] == _CHANGED and kinds & _EXACT != 0)
        gone = away
    return PageObservations(times, says, exact, gone)


def sharpness_of_one(
    observations: PageObservations, rate: float, time: float, at: float, *, readable: bool
) -> Sharpness:
    """What is known of the copy that was made at a time, for the moment asked for. O(m).

    ``rate`` is that of the page, per second, NaN if unknown; ``readable`` whether the bytes of the copy can be read.

    >>> observations = observations_of_one(Visits.of([7, 7, 7], [0.0, 8.0, 16.0], verdict=[0, 1, 2]))
    >>> found = sharpness_of_one(observations, 0.5, 16.0, 18.0, readable=True)
    >>> found.proved().tolist(), found.expected.tolist(), found.away().tolist()
    ([False], [1.0], [-2.0])
    """
    first, last = _validity(observations, time)
    if first <= at <= last:
        expected = 0.0
    elif math.isnan(rate) or not observations.time:
        expected = math.nan
    else:
        expected = abs(_expected(observations, rate, at) - _expected(observations, rate, time))
    columns = [np.array([value]) for value in (at, time, first, last, expected)]
    return Sharpness(columns[0], columns[1], columns[2], columns[3], columns[4], np.array([readable]))


def _validity(observations: PageObservations, time: float) -> tuple[float, float]:
    """From when to when the version of the copy is known to have been valid.

    Its own instant if it is no observation.
    """
    first = last = bisect_left(observations.time, time)
    if first == len(observations.time) or observations.time[first] != time:
        return time, time
    while observations.says[first] == _UNCHANGED:
        first -= 1
    while last + 1 < len(observations.time) and observations.says[last + 1] == _UNCHANGED:
        last += 1
    if last + 1 < len(observations.time) and observations.exact[last + 1]:
        return observations.time[first], math.nextafter(observations.time[last + 1], -math.inf)
    return observations.time[first], observations.time[last]


def _expected(observations: PageObservations, rate: float, until: float) -> float:
    """N at a time: the changes expected since the first observation; negative before it."""
    before, level = observations.time[0], 0.0
    if until < before:
        return rate * (until - before)
    for time, said, exact in zip(observations.time[1:], observations.says[1:], observations.exact[1:], strict=True):
        gap = time - before
        if said == _UNCHANGED or exact:
            pace = 0.0
        elif said == _CHANGED:
            share = -math.expm1(-rate * gap)  # 1 − e^{−λG}
            pace = rate / share if share > 0.0 else 1.0 / gap
        else:
            pace = rate
        if until < time:
            return level + pace * (until - before)
        level += pace * gap + exact
        before = time
    return level + (0.0 if observations.gone else rate) * (until - before)
