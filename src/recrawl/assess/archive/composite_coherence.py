r"""Composite mementos: did the parts of an archived page, as they are shown together, exist together?

A page is captured at one moment, its images, style sheets and scripts at others. After Ainsworth, Nelson and Van de
Sompel (HT 2015; framework in arXiv:1402.0928), each embedded resource is in one of four states with respect to the
capture time r of its page. Let t be the capture time of the copy that is shown and m its Last-Modified:

    prima facie coherent    it existed in this state at r: captured in the same second; or m <= r < t; or captures
                            before and after r have the same content
    possibly coherent       t <= r, and nothing shows that it was replaced by r
    possibly violative      r < t, and nothing shows that it existed at r. (The framework says "probably violative".)
    prima facie violative   it did not exist in this state at r: r < m <= t; or another content was captured between; or
                            the next capture says that it was modified after t and by r

Rules of this file:
 1. A Last-Modified proves nothing if it is later than its own capture, or earlier than one that had other content.
 2. Equal digests on both sides are proof, as everywhere here: that content changed and changed back is not considered.
 3. That a resource was gone (404, 410) is a version like any other, which cannot be shown. Other failures say nothing.
 4. A copy that an archive lists and whose bytes are not at hand, as after an import from another archive, is not
    missing; how it stands to the page is not known.
 5. A page is as coherent as the worst of the parts that are there. Parts that are missing make it incomplete, not
    incoherent; :mod:`recrawl.assess.archive.composite_pages` weighs them.

Whether there was one instant at which everything shown was valid together, and who breaks it if not.

What is known of a version is an interval [first seen, last seen]: it was the current one at both ends and, as far as
anybody looked, in between. Versions were valid together where their intervals meet. Intervals on a line meet pairwise
if and only if they all meet in one point (Helly), so the instant that lies in most of them is the best common one, and
the pages outside it are the smallest set that must be left out.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import numpy as np

from recrawl.model import BoolArray, ByteArray, FloatArray, IntArray
from recrawl.model.arrays import ragged_search


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


NO_CAPTURE = -1
"""The position of a capture that is not there."""
GONE = -1
"""The version of a resource that is not there."""


class CoherenceState(enum.IntEnum):
    """How an embedded resource stands to the page that embeds it, best first."""

    PRIMA_FACIE_COHERENT = 0
    POSSIBLY_COHERENT = 1
    POSSIBLY_VIOLATIVE = 2
    PRIMA_FACIE_VIOLATIVE = 3
    MISSING = 4
    """There is no copy to show."""
    NOT_KNOWN = 5
    """The archive lists a copy, but its bytes are not at hand: it is archived, and nothing can be said of it."""


STATE_WORDS = {
    CoherenceState.PRIMA_FACIE_COHERENT: "prima facie coherent",
    CoherenceState.POSSIBLY_COHERENT: "possibly coherent",
    CoherenceState.POSSIBLY_VIOLATIVE: "possibly violative",
    CoherenceState.PRIMA_FACIE_VIOLATIVE: "prima facie violative",
    CoherenceState.MISSING: "missing",
    CoherenceState.NOT_KNOWN: "not known",
}


_RANK = np.array([0, 1, 1, 2, 3, 3])
"""By state: proved, in doubt, disproved, missing or not known."""


class ChoiceRule(enum.StrEnum):
    """Which capture of an embedded resource is shown."""

    COHERENT = "coherent"
    """One that is prima facie coherent; else one that is not prima facie violative. Of equal ones the nearest.

    Between copies of which neither is proved nor disproved only nearness counts: a copy of last week is "possibly
    coherent" and one of a minute later "possibly violative", but the latter is far more often the right one."""
    NEAREST = "nearest"
    """The one nearest in time to the page, of two the earlier: what web archives do."""


@dataclass(frozen=True, slots=True)
class ResourceCaptures:
    """m captures of n resources. Resource i has the captures ``offsets[i]:offsets[i+1]``, by time."""

    offsets: IntArray
    time: FloatArray
    """Seconds since the epoch."""
    version: IntArray
    """Equal positive numbers for equal content; 0 where nobody knows, :data:`GONE` where there was no such resource."""
    method: IntArray
    """How contents were compared: numbers of different methods say nothing about each other; 0 where nobody knows."""
    showable: BoolArray
    """Whether there are bytes to show."""
    last_modified: FloatArray
    """As the server said with this capture, seconds since the epoch; NaN where it did not, or nobody looked."""

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True)
class ChosenCaptures:
    """The copy shown of each embedded resource, in the order they were asked for."""

    place: IntArray
    """Position among the captures, or :data:`NO_CAPTURE`."""
    state: ByteArray
    """:class:`CoherenceState`."""


def wanted_last_modified(captures: ResourceCaptures, row: IntArray, at: FloatArray) -> IntArray:
    """Positions, ascending, of the captures whose Last-Modified can decide anything for pages captured ``at``.

    They are the first captures after the page, and the first of them with bytes, unless equal content before and after
    proves all: to read it costs a look into an archive file. O(m + k log m) for k pairs of resource and page.
    """
    if not len(captures.time):
        return np.empty(0, np.int64)
    before, after = _neighbours(captures, row, at)
    shown = _showable_sides(captures, row, before, after)[1]
    open_ = ~_bracketed(captures, before, after)
    found = np.unique(np.concatenate([after[open_], shown[open_]]))
    return np.asarray(found[found != NO_CAPTURE])


def choose(captures: ResourceCaptures, row: IntArray, at: FloatArray, rule: ChoiceRule) -> ChosenCaptures:
    """The capture of each resource that is shown with a page captured ``at``, and its state. O(m + k log m).

    >>> captures = ResourceCaptures(*(np.array(one) for one in (
    ...     [0, 2], [0.0, 90.0], [1, 2], [1, 1], [True, True], [np.nan, 40.0])))
    >>> for rule in ChoiceRule:
    ...     found = choose(captures, np.array([0]), np.array([44.0]), rule)
    ...     print(rule, found.place.tolist(), CoherenceState(int(found.state[0])).name)
    coherent [1] PRIMA_FACIE_COHERENT
    nearest [0] PRIMA_FACIE_VIOLATIVE
    """
    if not len(captures.time):
        return ChosenCaptures(np.full(len(row), NO_CAPTURE), np.full(len(row), CoherenceState.MISSING, np.uint8))
    before, after = _neighbours(captures, row, at)
    left, right = _showable_sides(captures, row, before, after)
    states = [state_of(captures, row, place, at) for place in (left, right)]
    away = [np.where(place == NO_CAPTURE, np.inf, np.abs(captures.time[place] - at)) for place in (left, right)]
    nearer = away[1] < away[0]
    ranks = [_RANK[state] for state in states]
    better, equal = ranks[1] < ranks[0], ranks[1] == ranks[0]
    takes_right = nearer if rule is ChoiceRule.NEAREST else better | (equal & nearer)
    return ChosenCaptures(
        np.where(takes_right, right, left), np.where(takes_right, states[1], states[0]).astype(np.uint8)
    )


def missing_resources(  # noqa: PLR0913, PLR0917 - what is chosen from, and what was chosen
    captures: ResourceCaptures,
    listed: BoolArray,
    row: IntArray,
    at: FloatArray,
    rule: ChoiceRule,
    chosen: ChosenCaptures,
    *,
    better: bool,
) -> BoolArray:
    """Where the archive lists a capture that would be shown if its bytes were at hand. O(m + k log m).

    ``listed`` tells which captures there are, with bytes at hand or not; ``chosen`` is what :func:`choose` found among
    those with bytes. With ``better`` also where something can be shown, but what is not at hand goes better with the
    page.

    >>> captures = ResourceCaptures(*(np.array(one) for one in (
    ...     [0, 2], [0.0, 90.0], [1, 2], [1, 1], [False, True], [np.nan, np.nan])))
    >>> asked = np.array([0, 0]), np.array([0.0, 90.0]), ChoiceRule.COHERENT
    >>> missing_resources(captures, np.array([True, True]), *asked, choose(captures, *asked), better=True).tolist()
    [True, False]
    """
    nowhere = chosen.place == NO_CAPTURE
    if not len(captures.time) or bool((captures.showable >= listed).all()):
        return np.zeros(len(row), np.bool_)
    other = choose(replace(captures, showable=captures.showable | listed), row, at, rule)
    lacks = (other.place != NO_CAPTURE) & ~captures.showable[other.place]
    return np.asarray(lacks & (nowhere | (_RANK[other.state] < _RANK[chosen.state]) if better else lacks & nowhere))


def state_of(captures: ResourceCaptures, row: IntArray, place: IntArray, at: FloatArray) -> ByteArray:
    """The state of each of these captures with respect to a page captured ``at`` (see the head of this file).

    ``place`` is a position among the captures of the resource ``row``, or :data:`NO_CAPTURE`. O(m + k log m).
    """
    time, version = captures.time, captures.version
    if not len(time):
        return np.full(len(place), CoherenceState.MISSING, np.uint8)
    before, after = _neighbours(captures, row, at)
    there = place != NO_CAPTURE
    shown = np.where(there, place, 0)
    modified = _credible_last_modified(captures)
    changes = np.cumsum(_is_other(captures))
    alike = version > 0
    next_modified = np.where(after != NO_CAPTURE, modified[after], np.nan)

    # Captured after the page.
    own = modified[shown]
    same_as_next = (after != NO_CAPTURE) & alike[shown] & (version[shown] == version[after])
    own = np.where(np.isnan(own) & same_as_next, next_modified, own)
    replaced_since = ~same_as_next & (after != NO_CAPTURE) & (changes[shown] > changes[after])
    after_page = np.where(
        own <= at,
        CoherenceState.PRIMA_FACIE_COHERENT,
        np.where((own > at) | replaced_since, CoherenceState.PRIMA_FACIE_VIOLATIVE, CoherenceState.POSSIBLY_VIOLATIVE),
    )
    # Captured before the page.
    same_as_last = (before != NO_CAPTURE) & ((shown == before) | (alike[shown] & (version[shown] == version[before])))
    replaced = ~same_as_last & (before != NO_CAPTURE) & (changes[before] > changes[shown])
    other_next = (after != NO_CAPTURE) & (changes[after] > changes[shown]) & ~same_as_next
    dated = next_modified <= at
    replaced |= dated & (other_next | (next_modified > time[shown]))
    untouched = dated & ~other_next & (next_modified <= time[shown])
    before_page = np.where(
        replaced,
        CoherenceState.PRIMA_FACIE_VIOLATIVE,
        np.where(untouched, CoherenceState.PRIMA_FACIE_COHERENT, CoherenceState.POSSIBLY_COHERENT),
    )
    proved = np.floor(time[shown]) == np.floor(at)
    proved |= _bracketed(captures, before, after) & (version[shown] == version[before])
    state = np.where(time[shown] > at, after_page, before_page)
    state = np.where(proved, CoherenceState.PRIMA_FACIE_COHERENT, state)
    return np.where(there, state, CoherenceState.MISSING).astype(np.uint8)


def _neighbours(captures: ResourceCaptures, row: IntArray, at: FloatArray) -> tuple[IntArray, IntArray]:
    """The last capture up to each time and the first after it, of each row; :data:`NO_CAPTURE` where there is none."""
    after = ragged_search(captures.offsets, captures.time, row, at, after_equal=True)
    before = np.where(after > captures.offsets[row], after - 1, NO_CAPTURE)
    return before, np.where(after < captures.offsets[row + 1], after, NO_CAPTURE)


def _showable_sides(
    captures: ResourceCaptures, row: IntArray, before: IntArray, after: IntArray
) -> tuple[IntArray, IntArray]:
    """The nearest captures with bytes on both sides."""
    index, count = np.arange(len(captures.time)), len(captures.time)
    last = np.maximum.accumulate(np.where(captures.showable, index, NO_CAPTURE))
    following = np.minimum.accumulate(np.where(captures.showable, index, count)[::-1])[::-1]
    left = np.where(before != NO_CAPTURE, last[before], NO_CAPTURE)
    left = np.where(left >= captures.offsets[row], left, NO_CAPTURE)
    right = np.where(after != NO_CAPTURE, following[after], count)
    return left, np.where(right < captures.offsets[row + 1], right, NO_CAPTURE)


def _bracketed(captures: ResourceCaptures, before: IntArray, after: IntArray) -> BoolArray:
    """Where the captures on both sides have one content."""
    version = captures.version
    both = (before != NO_CAPTURE) & (after != NO_CAPTURE)
    return np.asarray(both & (version[before] > 0) & (version[before] == version[after]))


def _is_other(captures: ResourceCaptures) -> BoolArray:
    """Whether a capture is known to have other content than the one before it, of the same resource."""
    version, method = captures.version, captures.method
    other = np.zeros(len(version), np.bool_)
    known = (method[1:] == method[:-1]) & (version[1:] > 0) & (version[:-1] > 0)
    other[1:] = (known & (version[1:] != version[:-1])) | ((version[1:] == GONE) != (version[:-1] == GONE))
    other[captures.offsets[:-1][captures.offsets[:-1] < len(other)]] = False
    return other


def _credible_last_modified(captures: ResourceCaptures) -> FloatArray:
    """The Last-Modified of each capture; NaN where it proves nothing (rule 1)."""
    time, said = captures.time, captures.last_modified
    index = np.arange(len(time))
    # The last capture before this one that is known to have had other content: the one before the latest change.
    changed = np.maximum.accumulate(np.where(_is_other(captures), index, 0))
    since = np.where(changed > np.repeat(captures.offsets[:-1], np.diff(captures.offsets)), time[changed - 1], -np.inf)
    with np.errstate(invalid="ignore"):
        return np.where((said <= time) & (said >= np.floor(since)), said, np.nan)
