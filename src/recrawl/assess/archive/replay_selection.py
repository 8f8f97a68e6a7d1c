"""What an archive shows when it is asked for a moment: which version, how far away, and how much may lie between.

A copy is an observation that brought something to show, be it a body, a redirect or the word that nothing changed since
the copy before. Which copy is shown is a :class:`Rule`.

How likely a page was, at the moment asked for, as it is shown.

Expected changes add up without end for a page that may change every minute; this is the bounded question beside it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import numpy as np

from recrawl.assess.archive.composite_coherence import JointValidity, joint_validity
from recrawl.assess.archive.observations import Observations
from recrawl.assess.archive.sharpness import proved_valid
from recrawl.assess.site_capture.blur_coherence import ExpectedChanges
from recrawl.model import Belief, BoolArray, FloatArray, IntArray, Verdict
from recrawl.model.arrays import offsets_of, ragged_search

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
    """The observations that can be shown: row i has ``look[offsets[i]:offsets[i+1]]``, by time."""

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
    """Whether the bytes of the copy can be read; nowhere until somebody looked (:meth:`with_bytes`)."""

    def there(self) -> BoolArray:
        """Which pages have anything to show."""
        return np.asarray(self.observation != NO_OBSERVATION)

    def away(self) -> FloatArray:
        """Seconds between the moment and the copy."""
        return np.abs(self.at - self.time)

    def proved(self) -> BoolArray:
        """Which pages are shown as they provably were: see :func:`~recrawl.assess.archive.sharpness.proved_valid`."""
        return proved_valid(self.first, self.last, self.at, self.readable)

    def covered(self) -> BoolArray:
        """Of which pages looks before and after the moment saw the version shown: proved if its bytes can be read."""
        return (self.first <= self.at) & (self.at <= self.last)

    def with_bytes(self, readable: BoolArray) -> SelectedCopies:
        """The same, told of which pages the bytes of the copy can be read."""
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
    if nobody looked. If an observation found a change G beyond it, it lasts d < G with (S(d) − S(G))/(1 − S(G)), and no
    longer.

    >>> from recrawl.assess.archive.replay_selection import shown
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
    # If no change is thinkable and there was one, it came at any time.
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
