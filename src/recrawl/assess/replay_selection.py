"""Replay: the copy shown for a requested time, its distance, and what is known about the time between.

A copy is an observation with something to show: a body, a redirect, or a 304 that confirms the copy before. Copies are
chosen by a :class:`SelectionRule` for a whole collection (:func:`shown`), or given by a caller such as a TimeGate
(:func:`sharpness`). Both give for each copy

- the times between which its version is known to be valid, and whether that is proved (:func:`proved_valid`);
- the expected number of changes between the requested time and the copy;
- the probability that the page was as shown (:func:`chance_unchanged`), which is bounded, unlike the expected changes.

A server shows one copy at a time, and most pages have few observations. :func:`sharpness_of_one` avoids arrays, which
take longer to make than ten observations to scan. Tests compare both implementations.
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from recrawl.assess.blur_coherence import ExpectedChanges
from recrawl.assess.observations import NOWHERE, JointValidity, Observations, joint_validity
from recrawl.model import ANSWERED, Belief, BoolArray, ChangeKind, FloatArray, IntArray, Outcome, Verdict, Visits
from recrawl.model.arrays import offsets_of, ragged_search


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
    """Expected changes between the moment and the copy, given all observations; NaN if not known."""
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


def sharpness(  # noqa: PLR0913 - observations, rates, copies and times
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
    it failed or its page has no verdict, is valid at its own time only. ``readable`` says of which copies the bytes
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


NO_OBSERVATION = -1
"""There is no copy."""


class SelectionRule(enum.StrEnum):
    """Which copy answers for a moment."""

    NEAREST = "nearest"
    """The one nearest in time, of two the earlier: what web archives do."""
    BEFORE = "before"
    """The latest one up to the moment, else the first of all: never from the future, if it can be helped."""


@dataclass(frozen=True, slots=True)
class CopyTable:
    """The observations that can be shown: row i has ``observation[offsets[i]:offsets[i+1]]``, by time."""

    offsets: IntArray
    observation: IntArray
    """Positions among the observations."""
    time: FloatArray

    @classmethod
    def of(cls, observations: Observations) -> CopyTable:
        """All observations that brought something. O(m)."""
        observation = np.flatnonzero(~observations.gone)
        return cls(
            offsets_of(observations.row_of_observation()[observation], len(observations)),
            observation,
            observations.time[observation],
        )

    def row_of_copy(self) -> IntArray:
        """The row each copy belongs to."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int64), np.diff(self.offsets))

    def shown(self, row: IntArray, at: FloatArray, rule: SelectionRule) -> IntArray:
        """Position of the copy that each of these rows shows for its time; ``NO_OBSERVATION`` if it has none."""
        low, high = self.offsets[row], self.offsets[row + 1] - 1
        before = ragged_search(self.offsets, self.time, row, at, after_equal=True) - 1
        place = np.clip(before, low, np.maximum(high, low))
        if rule is SelectionRule.NEAREST and len(self.time):
            after = np.clip(before + 1, low, np.maximum(high, low))
            bound = len(self.time) - 1
            here, there = (np.abs(self.time[np.minimum(side, bound)] - at) for side in (place, after))
            place = np.where(there < here, after, place)
        return np.where(high >= low, place, NO_OBSERVATION)


@dataclass(frozen=True, slots=True)
class SelectedCopies:
    """What is shown of each page of a collection for one moment, row by row. NaN where there is nothing."""

    at: FloatArray
    """The moment asked for, seconds since the epoch."""
    observation: IntArray
    """Position among the observations, or ``NO_OBSERVATION``."""
    time: FloatArray
    """When the copy was made."""
    first: FloatArray
    """From when its version is known to have been valid …"""
    last: FloatArray
    """… to when."""
    expected: FloatArray
    """Expected changes between the moment and the copy, given all observations; NaN where the rate is not known
    either."""
    readable: BoolArray
    """Whether the bytes of the copy can be read; false until it is checked (:meth:`with_bytes`)."""

    def there(self) -> BoolArray:
        """Which pages have anything to show."""
        return np.asarray(self.observation != NO_OBSERVATION)

    def away(self) -> FloatArray:
        """Seconds between the moment and the copy."""
        return np.abs(self.at - self.time)

    def proved(self) -> BoolArray:
        """Which pages provably were as shown: see :func:`~recrawl.assess.replay_selection.proved_valid`."""
        return proved_valid(self.first, self.last, self.at, self.readable)

    def covered(self) -> BoolArray:
        """Pages whose shown version was observed before and after the time: a proof if its bytes can be read."""
        return (self.first <= self.at) & (self.at <= self.last)

    def with_bytes(self, readable: BoolArray) -> SelectedCopies:
        """A copy of this, with the pages whose bytes can be read."""
        return replace(self, readable=readable)

    def joint(self, weight: FloatArray | None = None) -> JointValidity:
        """When the versions shown were valid together, or most of them. O(n log n)."""
        return joint_validity(self.first, self.last, weight)


def shown(
    observations: Observations, rate: FloatArray, at: FloatArray | float, rule: SelectionRule = SelectionRule.NEAREST
) -> SelectedCopies:
    """What each page shows for a moment, one for all or one a page; ``rate`` per second, NaN if unknown.

    O(m + n log m) for n pages and m observations.

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([1, 1, 2], [0.0, 9.0, 4.0], verdict=[0, 1, 0]))
    >>> found = shown(observations, np.array([0.5, 0.5]), 6.0)
    >>> found.time.tolist(), found.covered().tolist(), found.expected.tolist()
    ([9.0, 4.0], [True, False], [0.0, 1.0])
    >>> found.proved().tolist(), found.with_bytes(np.array([True, True])).proved().tolist()
    ([False, False], [True, False])
    """
    row = np.arange(len(observations), dtype=np.int64)
    moment = np.broadcast_to(np.asarray(at, np.float64), row.shape)
    copies = CopyTable.of(observations)
    place = copies.shown(row, moment, rule)
    there = place != NO_OBSERVATION
    observation = np.full(len(row), NO_OBSERVATION)
    observation[there] = copies.observation[place[there]]
    columns = [np.full(len(row), np.nan) for _ in range(4)]
    time, first, last, expected = columns
    for column, values in zip(columns, (observations.time, *observations.validity()), strict=False):
        column[there] = values[observation[there]]
    count = ExpectedChanges.of(observations, rate)
    ours = row[there]
    expected[there] = np.abs(count.count(ours, moment[there]) - count.level[observation[there]])
    found = SelectedCopies(moment, observation, time, first, last, expected, np.zeros(len(row), np.bool_))
    expected[np.isnan(rate) & ~found.covered()] = np.nan
    return found


def chance_unchanged(observations: Observations, seen: SelectedCopies, belief: Belief) -> FloatArray:
    """Probability that each page was as it is shown, given all observations; NaN where nothing is shown. O(m).

    It is certain inside the known validity of the version. Beyond it the version lasts d longer with probability S(d),
    without an observation. If an observation found a change G beyond it, it lasts d < G with
    (S(d) − S(G))/(1 − S(G)), and no longer.

    >>> from recrawl.assess.replay_selection import shown
    >>> from recrawl.model import GammaBelief, Visits
    >>> observations = Observations.from_visits(Visits.of([1, 1, 2], [0.0, 8.0, 0.0], verdict=[0, 2, 0]))
    >>> belief = GammaBelief(np.full(2, 1.0), np.full(2, 4.0))
    >>> chance_unchanged(observations, shown(observations, belief.mean(), 4.0), belief).tolist()
    [0.25, 0.5]
    """
    there = seen.there()
    if not bool(there.any()):
        return np.full(len(observations), np.nan)
    late = seen.at > seen.last
    beyond = np.where(late, seen.at - seen.last, np.maximum(seen.first - seen.at, 0.0))
    after, before = (gaps[seen.observation] for gaps in _gaps(observations))
    gap = np.where(there, np.where(late, after, before), np.inf)
    beyond = np.where(there, beyond, 0.0)
    lasts = belief.survival(beyond)
    closed = np.isfinite(gap) & (beyond > 0)
    gap = np.where(closed, gap, 1.0)
    whole = belief.survival(gap)
    turned = 1.0 - whole
    # If the belief excludes a change and there was one, its time is uniform.
    within = np.where(
        turned > 0, (lasts - whole) / np.where(turned > 0, turned, 1.0), 1.0 - beyond / np.maximum(gap, beyond)
    )
    return np.where(there, np.where(closed, np.where(beyond < gap, within, 0.0), lasts), np.nan)


def _gaps(observations: Observations) -> tuple[FloatArray, FloatArray]:
    """Seconds in which the version of each observation ended, and in which it started, as far as observations tell.

    Else infinity.

    It ended between its last observation and the next one, if that found a change; and started likewise.
    """
    first, last = observations.versions()
    _, until = observations.validity()
    opens, changed = observations.opens(), observations.says == Verdict.CHANGED
    following = np.minimum(last + 1, len(opens) - 1)
    ended = (following > last) & ~opens[following] & changed[following]
    after = np.where(ended, observations.time[following] - until, np.inf)
    began = changed[first] & ~opens[first]
    width = np.where(
        observations.exact()[first], 0.0, observations.time[first] - observations.time[np.maximum(first - 1, 0)]
    )
    return after, np.where(began, width, np.inf)
