"""Observations: everything that is known about the pages of a collection, by page and time, and what it proves.

Rules:
 1. An observation is a visit that was answered or has a verdict. Failed visits prove nothing.
 2. Visits of a page at the same time are one observation, with the most informative verdict.
 3. The first observation of a page has no verdict on change. A page that is gone is a version of its own.
 4. Consecutive observations without a change saw one version. It is known to be valid from the first of them to the
    last. That content changed and changed back between two observations is not considered.
 5. In a log of changes every time is exact: a version is valid up to the next change, exclusive.

*Joint validity*: versions were valid together where their intervals of known validity overlap. Intervals on a line
overlap pairwise if and only if they have a common point (Helly). So the instant in most intervals is the best common
one, and the pages outside it are the smallest set to leave out.

*Missed changes* are certain or expected. A change is certainly missed if the site dated it (in a sitemap, a feed or a
header) and a later dated change replaced its version before any observation; changes before the first observation of a
page do not count. Expected are the changes hidden behind others: an observation that finds a page changed after a gap G
counts one change, but at the rate λ there were λG/(1 − e^{−λG}) on average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from recrawl.model import AnyArray, BoolArray, ByteArray, ChangeKind, FloatArray, IntArray, Outcome, Verdict, Visits
from recrawl.model.arrays import ends_of_runs, offsets_of, ragged_search, starts_of_runs

NOWHERE = -1
"""The position of an observation that is not there."""


@dataclass(frozen=True, slots=True)
class Observations:
    """m observations of n pages. Row i has the observations ``offsets[i]:offsets[i+1]``, by time."""

    page: IntArray
    """Page ids, ascending, unique. Shape (n,)."""
    offsets: IntArray
    """Shape (n + 1,)."""
    time: FloatArray
    """Seconds since the epoch, ascending in a row. Shape (m,)."""
    says: ByteArray
    """:class:`~recrawl.model.Verdict` on the time since the observation before."""
    kinds: npt.NDArray[np.uint16]
    """In what respect it changed."""
    gone: BoolArray
    """The observation found that there is no such page: there is nothing to show of it."""

    def __len__(self) -> int:
        return len(self.page)

    @classmethod
    def from_visits(cls, visits: Visits) -> Observations:
        """The observations among visits, which may be unordered and doubled. O(v log v), O(v) if sorted.

        >>> visits = Visits.of([7, 7, 7], [9.0, 0.0, 4.0], outcome=[0, 0, 6], verdict=[1, 0, 0])
        >>> observations = Observations.from_visits(visits)
        >>> observations.time.tolist(), observations.says.tolist()
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

    def row_of_observation(self) -> IntArray:
        """The row each observation belongs to. Shape (m,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.offsets))

    def opens(self) -> BoolArray:
        """Whether an observation is the first of its page."""
        opens = np.zeros(len(self.time) + 1, np.bool_)
        opens[self.offsets[:-1]] = True
        return opens[:-1]

    def exact(self) -> BoolArray:
        """Whether an observation is an entry of a log: the change happened at that very time."""
        return np.asarray((self.says == Verdict.CHANGED) & ((self.kinds & np.uint16(ChangeKind.EXACT)) != 0))

    def is_log(self) -> bool:
        """Whether most observations are entries of a log of changes, not visits."""
        return 2 * int(self.exact().sum()) > len(self.time)

    def validity(self) -> tuple[FloatArray, FloatArray]:
        """From when to when the version that each observation saw is known to have been valid (rules 4 and 5). O(m).

        >>> observations = Observations.from_visits(Visits.of([7, 7, 7], [0.0, 4.0, 9.0], verdict=[0, 1, 2]))
        >>> [side.tolist() for side in observations.validity()]
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
        """Of each observation the first and the last observation in a row that saw the same version (rule 4). O(m)."""
        starts = self.says != Verdict.UNCHANGED
        starts |= self.opens()
        version = np.cumsum(starts) - 1
        first, last = np.flatnonzero(starts), np.flatnonzero(ends_of_runs(version))
        return first[version], last[version]

    def find(self, page: IntArray, time: FloatArray) -> IntArray:
        """The position of the observation of each page at exactly that time, or ``NOWHERE``.

        O((m + k) log m) for k of them.

        >>> observations = Observations.from_visits(Visits.of([7, 7, 9], [0.0, 4.0, 4.0]))
        >>> observations.find(np.array([7, 9, 9, 8]), np.array([4.0, 4.0, 0.0, 4.0])).tolist()
        [1, 2, -1, -1]
        """
        if not len(self):
            return np.full(len(page), NOWHERE)
        row = np.minimum(np.searchsorted(self.page, page), len(self) - 1)
        place = ragged_search(self.offsets, self.time, row, time, after_equal=True) - 1
        met = (self.page[row] == page) & (place >= self.offsets[row]) & (self.time[place] == time)
        return np.where(met, place, NOWHERE)

    def take(self, rows: AnyArray) -> Observations:
        """The pages at these ascending positions, or where this mask is true."""
        wanted = np.zeros(len(self), np.bool_)
        wanted[rows] = True
        kept = np.repeat(wanted, np.diff(self.offsets))
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[wanted])])
        return Observations(
            self.page[wanted], offsets, self.time[kept], self.says[kept], self.kinds[kept], self.gone[kept]
        )


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


def last_change(observations: Observations) -> FloatArray:
    """When each page was last found changed, seconds since the epoch; NaN if never. O(m).

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([1, 1, 1, 2], [0.0, 4.0, 9.0, 9.0], verdict=[0, 2, 1, 0]))
    >>> last_change(observations).tolist(), last_there(observations).tolist(), times_there(observations).tolist()
    ([4.0, nan], [9.0, 9.0], [3, 1])
    """
    return _last(observations, observations.says == Verdict.CHANGED)


def last_there(observations: Observations) -> FloatArray:
    """When an observation last found each page, not that it is gone; NaN if never. O(m)."""
    return _last(observations, ~observations.gone)


def times_there(observations: Observations) -> IntArray:
    """How many observations found each page. O(m)."""
    return np.bincount(observations.row_of_observation()[~observations.gone], minlength=len(observations)).astype(
        np.int64
    )


def _last(observations: Observations, which: BoolArray) -> FloatArray:
    found = np.full(len(observations), np.nan)
    found[observations.row_of_observation()[which]] = observations.time[which]  # by time in a row: the last stands
    return found


def certainly_missed(observations: Observations, page: IntArray, said: FloatArray, dated: FloatArray) -> IntArray:
    """How many changes of each page were dated by its site and replaced before an observation. O((m + k) log(m + k)).

    ``page[i]`` was said at ``said[i]`` to have changed at ``dated[i]``. A date later than when it was said is not true
    and does not count; the same date stated twice is one change.

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([7, 7], [0.0, 9.0], verdict=[0, 2]))
    >>> certainly_missed(observations, np.array([7, 7]), np.array([4.0, 9.0]), np.array([3.0, 6.0])).tolist()
    [1]
    """
    missed = np.zeros(len(observations), np.int64)
    row, dated = _while_watched(observations, page, said, dated)
    replaced = np.append(row[1:] == row[:-1], np.zeros(min(len(row), 1), np.bool_))
    version = np.flatnonzero(replaced)
    before, after = (
        ragged_search(observations.offsets, observations.time, row[version], dated[end], after_equal=False)
        for end in (version, version + 1)
    )
    np.add.at(missed, row[version[after == before]], 1)
    return missed


def dated_changes(observations: Observations, page: IntArray, said: FloatArray, dated: FloatArray) -> IntArray:
    """How many changes of each page its site dated after the first observation of it: those that could be missed.

    Arguments as for :func:`certainly_missed`. O((m + k) log(m + k)).

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([7, 7], [2.0, 9.0], verdict=[0, 2]))
    >>> dated_changes(observations, np.full(4, 7), np.full(4, 8.0), np.array([1.0, 4.0, 4.0, 30.0])).tolist()
    [1]
    """
    row, _ = _while_watched(observations, page, said, dated)
    return np.bincount(row, minlength=len(observations)).astype(np.int64)


def _while_watched(
    observations: Observations, page: IntArray, said: FloatArray, dated: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Rows and dates of changes that may be true and came after the first observation of their page.

    Each once, in order.
    """
    if not len(observations):
        return np.empty(0, np.int64), np.empty(0)
    row = np.minimum(np.searchsorted(observations.page, page), len(observations) - 1)
    true = np.isfinite(dated) & (dated <= said) & (observations.page[row] == page)
    true &= dated > observations.time[observations.offsets[row]]
    row, dated = row[true], dated[true]
    order = np.lexsort((dated, row))
    row, dated = row[order], dated[order]
    once = starts_of_runs(row, dated)
    return row[once], dated[once]


def expected_missed(observations: Observations, rate: FloatArray) -> FloatArray:
    """Changes expected to hide behind each page's detected ones, at its rate per second; 0 without a rate. O(m).

    >>> from recrawl.model import Visits
    >>> observations = Observations.from_visits(Visits.of([7, 7], [0.0, 10.0], verdict=[0, 2]))
    >>> expected_missed(observations, np.array([0.5])).round(3).tolist()
    [4.034]
    """
    row = observations.row_of_observation()
    found = ~observations.opens() & (observations.says == Verdict.CHANGED) & ~observations.exact()
    known = np.where(np.isnan(rate), 0.0, rate)
    passed = known[row[found]] * np.diff(observations.time, prepend=np.nan)[found]
    hidden = 1.0 / special.exprel(-passed) - 1.0
    return np.asarray(np.bincount(row[found], hidden, len(observations)), np.float64)


@dataclass(frozen=True, slots=True)
class JointValidity:
    """The instants at which most was valid together, and what was."""

    start: float
    """Every instant from here … (seconds since the epoch; NaN if there is no interval at all)"""
    end: float
    """… to here lies in every interval that is ``inside``."""
    inside: BoolArray
    """One a given interval: whether it holds these instants."""

    @property
    def complete(self) -> bool:
        """Whether everything was valid together. True of nothing."""
        return bool(self.inside.all())

    @property
    def instant(self) -> float:
        """The middle of the common interval, the instant farthest from both ends. Seconds since the epoch."""
        return self.start + (self.end - self.start) / 2.0


def joint_validity(first: FloatArray, last: FloatArray, weight: FloatArray | None = None) -> JointValidity:
    """The instant in the heaviest set of closed intervals [first, last], as a common interval. O(n log n).

    Without weights it is the instant in most of them. An interval with a NaN end holds no instant. Of several best
    instants it is the earliest.

    >>> found = joint_validity(np.array([0.0, 4.0, 9.0]), np.array([6.0, 8.0, 9.0]))
    >>> found.start, found.end, found.inside.tolist(), found.complete
    (4.0, 6.0, [True, True, False], False)
    """
    known = first <= last
    if not bool(known.any()):
        return JointValidity(float("nan"), float("nan"), known)
    begin, stop = first[known], last[known]
    count = np.ones(len(begin)) if weight is None else weight[known]
    by_begin, by_stop = np.argsort(begin, kind="stable"), np.argsort(stop, kind="stable")
    begin, stop = begin[by_begin], stop[by_stop]
    # The best instant is one at which some interval starts. There hold those that started, less those that ended
    # before.
    began = np.cumsum(count[by_begin])[np.searchsorted(begin, begin, side="right") - 1]
    ended = np.concatenate([[0.0], np.cumsum(count[by_stop])])[np.searchsorted(stop, begin, side="left")]
    instant = begin[np.argmax(began - ended)]
    inside = known & (first <= instant) & (instant <= last)
    return JointValidity(float(first[inside].max()), float(last[inside].min()), inside)
