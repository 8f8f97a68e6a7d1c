"""Composite mementos: coherence, completeness and damage of archived pages with their embedded resources.

A page is captured at one time, its images, style sheets and scripts at others. After Ainsworth, Nelson and Van de
Sompel (HT 2015; framework in arXiv:1402.0928), each embedded resource is in one of four states with respect to the
capture time r of its page. Let t be the capture time of the shown copy and m its Last-Modified:

    prima facie coherent    it existed in this state at r: captured in the same second; or m <= r < t; or captures
                            before and after r have the same content
    possibly coherent       t <= r, and nothing shows that it was replaced by r
    possibly violative      r < t, and nothing shows that it existed at r. (The framework says "probably violative".)
    prima facie violative   it did not exist in this state at r: r < m <= t; or another content was captured between; or
                            the next capture says that it was modified after t and by r

Rules:
 1. A Last-Modified proves nothing if it is later than its own capture, or earlier than a capture with other content.
 2. Equal digests on both sides are proof. That content changed and changed back is not considered.
 3. A resource that is gone (404, 410) is a version that cannot be shown. Other failures prove nothing.
 4. A listed copy without available bytes, as after an import from another archive, is not missing. Its state is not
    known.
 5. A page is as coherent as the worst of its archived parts. Missing parts make it incomplete, not incoherent.

*Memento damage* weighs the missing parts (Brunelle et al., JCDL 2014):

    D = actual damage / potential damage

Potential damage is the sum of the importance of all embedded resources, actual damage that of the missing ones. With
the weights published with the authors' tool (memento-damage), the importance of a resource is

    image        .30 · b
    multimedia   .50 · b        b = ½ · share of the viewport + ¼ if it crosses the vertical middle of the viewport
    frame        .30 · b            + ¼ if it crosses the horizontal middle
    stylesheet   .05 · s        s = ½ if its rules apply to the page + ½ for the layout
    script       .05
    text         .10 · words / 1,000, never missing if the page is archived

Assumptions, because pages are not rendered:
 1. The viewport has 1,024 × 768 pixels, the tool's default.
 2. Sizes are those stated by the page (attributes, inline styles). Otherwise they are the CSS defaults of a replaced
    element, 300 × 150 pixels, and 300 × 54 for sound. If one side is stated, the other follows by the ratio 2 : 1.
 3. The position of an element is not known. The term for crossing a middle is multiplied with the probability that an
    element of this size at a uniform random position crosses it: w / (W − w), at most 1.
 4. Whether the rules of a missing style sheet apply is not known. They are assumed to apply if the sheet is for screens
    and the page has classes or ids. The layout term, which the tool measures on a screenshot, counts in full for sheets
    for screens. A sheet that is not for screens has no weight.
 5. Fonts and captions have no weight, as in the published algorithm.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from recrawl.model import AnyArray, BoolArray, ByteArray, FloatArray, IntArray
from recrawl.model.arrays import ragged_search
from recrawl.model.captures import VIEWPORT, EmbedKind

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
    """The archive lists a copy, but its bytes are not available: it is archived, and nothing can be said of it."""


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
    """Equal positive numbers for equal content; 0 if not known, :data:`GONE` if there was no such resource."""
    method: IntArray
    """How contents were compared: numbers of different methods cannot be compared; 0 if not known."""
    showable: BoolArray
    """Whether there are bytes to show."""
    last_modified: FloatArray
    """As the server said with this capture, seconds since the epoch; NaN if it did not, or if not read."""

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
    proves all: reading it means opening an archive file. O(m + k log m) for k pairs of resource and page.
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
    """Where the archive lists a capture that would be shown if its bytes were available. O(m + k log m).

    ``listed`` tells which captures there are, with bytes or without; ``chosen`` is what :func:`choose` found among
    those with bytes. With ``better`` also where something can be shown, but what is not available goes better with the
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


DEFAULT_SIZE = (300.0, 150.0)
"""CSS pixels of an element that states no size (assumption 2)."""
WEIGHTS = {
    EmbedKind.IMAGE: 0.30,
    EmbedKind.STYLESHEET: 0.05,
    EmbedKind.SCRIPT: 0.05,
    EmbedKind.MULTIMEDIA: 0.50,
    EmbedKind.FRAME: 0.30,
    EmbedKind.OTHER: 0.0,
}
TEXT_WEIGHT = 0.10
WORDS_PER_IMAGE = 1000.0
_SIZE, _CENTRALITY = 0.5, 0.5


def importance(kind: AnyArray, width: FloatArray, height: FloatArray, applies: FloatArray) -> FloatArray:
    """Worth of each embedded resource, by :class:`~recrawl.model.captures.EmbedKind`; NaN: size unknown. O(n).

    ``applies`` is the factor s of a style sheet, as :class:`~recrawl.model.captures.EmbeddedResource` has it.

    >>> importance(np.array([0, 1, 2]), np.array([512.0, np.nan, np.nan]), np.array([384.0, np.nan, np.nan]),
    ...            np.array([1.0, 0.5, 1.0])).round(4).tolist()
    [0.1875, 0.025, 0.05]
    """
    kinds = np.asarray(kind, np.int64)
    weight = np.array([WEIGHTS[one] for one in EmbedKind])[kinds]
    worth = np.ones(len(kinds))
    sheet = kinds == EmbedKind.STYLESHEET
    worth[sheet] = applies[sheet]
    sized = np.isin(kinds, (EmbedKind.IMAGE, EmbedKind.MULTIMEDIA, EmbedKind.FRAME))
    worth[sized] = _block(*_sizes(width[sized], height[sized]))
    return weight * worth


def _sizes(width: FloatArray, height: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sizes with what is not stated filled in, none larger than the viewport (assumption 2)."""
    ratio = DEFAULT_SIZE[0] / DEFAULT_SIZE[1]
    wide = np.where(np.isnan(width), np.where(np.isnan(height), DEFAULT_SIZE[0], height * ratio), width)
    high = np.where(np.isnan(height), np.where(np.isnan(width), DEFAULT_SIZE[1], width / ratio), height)
    return np.clip(wide, 0.0, VIEWPORT[0]), np.clip(high, 0.0, VIEWPORT[1])


def _block(width: FloatArray, height: FloatArray) -> FloatArray:
    """The term b: size, and expected centrality (assumption 3)."""
    share = width * height / (VIEWPORT[0] * VIEWPORT[1])
    across, down = (_crosses(size, whole) for size, whole in ((width, VIEWPORT[0]), (height, VIEWPORT[1])))
    return _SIZE * share + _CENTRALITY / 2 * (across + down)


def _crosses(size: FloatArray, whole: float) -> FloatArray:
    """Probability that a stretch of this size, anywhere in the whole, covers its middle."""
    return np.minimum(1.0, size / np.maximum(whole - size, whole / 2))


_STATES = len(CoherenceState)


@dataclass(frozen=True, slots=True)
class Composites:
    """n captured pages, row by row."""

    page: IntArray
    """Page ids; a page that was captured several times has several rows."""
    time: FloatArray
    """When the page itself was captured, seconds since the epoch."""
    counts: IntArray
    """Embedded resources by :class:`~recrawl.assess.composite_coherence.CoherenceState`. Shape (n, 6)."""
    actual: FloatArray
    """Damage by what is missing."""
    potential: FloatArray
    """Damage if all were missing."""
    cut: BoolArray
    """Whether the page embeds more than was observed."""

    def __len__(self) -> int:
        return len(self.page)

    @classmethod
    def of(  # noqa: PLR0913, PLR0917 - one argument a column
        cls,
        page: IntArray,
        time: FloatArray,
        words: IntArray,
        cut: BoolArray,
        row: IntArray,
        state: ByteArray,
        importance: FloatArray,
    ) -> Composites:
        """From the words of each page and the resources of all: the row of its page, state and importance. O(n + k).

        >>> one = Composites.of(*(np.array(x) for x in ([7], [0.0], [0], [False], [0, 0], [0, 4], [0.3, 0.1])))
        >>> one.counts.tolist(), one.damage().round(3).tolist(), one.completeness().tolist()
        ([[1, 0, 0, 0, 1, 0]], [0.25], [0.5])
        """
        count = len(page)
        states = np.bincount(row * _STATES + state, minlength=count * _STATES).reshape(count, _STATES)
        text = TEXT_WEIGHT * words / WORDS_PER_IMAGE
        missing = state == CoherenceState.MISSING
        actual, potential = (np.zeros(count) for _ in range(2))
        np.add.at(actual, row[missing], importance[missing])
        np.add.at(potential, row, importance)
        return cls(page, time, states.astype(np.int64), actual, potential + text, cut)

    def embedded(self) -> IntArray:
        """How many resources each page embeds."""
        return np.asarray(self.counts.sum(1))

    def archived(self) -> IntArray:
        """How many of them there are copies of, here or in the archive that lists them."""
        return self.embedded() - self.counts[:, CoherenceState.MISSING]

    def completeness(self) -> FloatArray:
        """The share of them; NaN for a page that embeds nothing."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.archived() / self.embedded())

    def damage(self) -> FloatArray:
        """Actual over potential damage, 0 to 1; NaN where a page has nothing to lose."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.actual / self.potential)

    def state(self) -> ByteArray:
        """The worst state of the parts that are there; missing where a page embeds something and none of it is.

        Not known where it depends on parts whose bytes are not available: unless others are prima facie violative.
        """
        present = self.counts[:, : CoherenceState.MISSING] > 0
        worst = CoherenceState.PRIMA_FACIE_VIOLATIVE - np.argmax(present[:, ::-1], 1)
        none = np.where(self.embedded() > 0, CoherenceState.MISSING, CoherenceState.PRIMA_FACIE_COHERENT)
        state = np.where(present.any(1), worst, none)
        open_ = (self.counts[:, CoherenceState.NOT_KNOWN] > 0) & (state != CoherenceState.PRIMA_FACIE_VIOLATIVE)
        return np.where(open_, CoherenceState.NOT_KNOWN, state).astype(np.uint8)

    def may_be_coherent(self) -> BoolArray:
        """Which pages have no part that is possibly or prima facie violative, as far as is known."""
        violative = self.counts[:, CoherenceState.POSSIBLY_VIOLATIVE : CoherenceState.MISSING].any(1)
        return np.asarray(~violative & (self.state() != CoherenceState.MISSING))

    def complete(self) -> BoolArray:
        """Which pages have copies of all they embed."""
        return np.asarray((self.counts[:, CoherenceState.MISSING] == 0) & ~self.cut)

    def worst_first(self) -> IntArray:
        """Rows by falling damage, then by falling number of violative parts, then by time."""
        violative = self.counts[:, CoherenceState.PRIMA_FACIE_VIOLATIVE]
        return np.lexsort((self.time, -violative, -np.nan_to_num(self.damage())))

    @classmethod
    def joined(cls, parts: Sequence[Composites]) -> Composites:
        """All rows of several tables, of which there is at least one."""
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))

    def take(self, rows: IntArray) -> Composites:
        """These rows."""
        return Composites(*(getattr(self, one.name)[rows] for one in fields(self)))


@dataclass(frozen=True, slots=True)
class CompositeSummary:
    """All captured pages together. Shares are of pages that embed something; ``None`` where there is none."""

    pages: int
    """Captured pages that were observed."""
    embedding: int
    """Those that embed something."""
    resources: dict[CoherenceState, int]
    """Embedded resources, by state."""
    coherent: int
    """Pages all of whose archived parts are prima facie coherent: provably as they were shown."""
    not_violative: int
    """Pages with archived parts, none of them possibly or prima facie violative."""
    violative: int
    """Pages with a part that is prima facie violative: provably never so."""
    bare: int
    """Pages without any archived part: nothing is known of them."""
    complete: int
    coherent_complete: int
    not_violative_complete: int
    completeness: float | None
    """Mean share of the embedded resources that are archived."""
    damage: float | None
    """Mean memento damage of pages that embed something."""
    cut: int
    """Pages that embed more than is observed."""

    def share(self, count: int) -> float | None:
        """Of the pages that embed something."""
        return count / self.embedding if self.embedding else None


def summary_of(found: Composites) -> CompositeSummary:
    """Count. O(n)."""
    embedding = found.take(np.flatnonzero(found.embedded() > 0))
    state, complete = embedding.state(), embedding.complete()
    coherent = state == CoherenceState.PRIMA_FACIE_COHERENT
    not_violative = embedding.may_be_coherent()
    damage = embedding.damage()
    known = ~np.isnan(damage)
    return CompositeSummary(
        len(found),
        len(embedding),
        {one: int(found.counts[:, one].sum()) for one in CoherenceState},
        int(coherent.sum()),
        int(not_violative.sum()),
        int((state == CoherenceState.PRIMA_FACIE_VIOLATIVE).sum()),
        int((state == CoherenceState.MISSING).sum()),
        int(complete.sum()),
        int((coherent & complete).sum()),
        int((not_violative & complete).sum()),
        float(embedding.completeness().mean()) if len(embedding) else None,
        float(damage[known].mean()) if bool(known.any()) else None,
        int(found.cut.sum()),
    )


def summary_json(said: CompositeSummary) -> dict[str, Any]:
    """The summary for programs; what is not known is null."""
    return {
        "pages": said.pages,
        "embedding": said.embedding,
        "resources": {STATE_WORDS[state]: count for state, count in said.resources.items()},
        "coherent": said.coherent,
        "coherentShare": said.share(said.coherent),
        "notViolative": said.not_violative,
        "notViolativeShare": said.share(said.not_violative),
        "violative": said.violative,
        "violativeShare": said.share(said.violative),
        "noneArchived": said.bare,
        "complete": said.complete,
        "completeShare": said.share(said.complete),
        "coherentComplete": said.coherent_complete,
        "coherentCompleteShare": said.share(said.coherent_complete),
        "notViolativeComplete": said.not_violative_complete,
        "notViolativeCompleteShare": said.share(said.not_violative_complete),
        "completeness": said.completeness,
        "damage": said.damage,
        "cut": said.cut,
    }
