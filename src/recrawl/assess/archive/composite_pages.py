r"""Captured pages with what they embed: coherence, completeness and damage of each, and of all of them together.

Memento damage: how much the resources that are missing hurt a page (Brunelle et al., JCDL 2014).

    D = actual damage / potential damage

Potential damage is the sum of the importance of all embedded resources, actual damage that of the missing ones. With
the weights that the authors' tool (memento-damage) publishes, the importance of a resource is

    image        .30 · b
    multimedia   .50 · b        b = ½ · share of the viewport + ¼ if it crosses the vertical middle of the viewport
    frame        .30 · b            + ¼ if it crosses the horizontal middle
    stylesheet   .05 · s        s = ½ if its rules apply to the page + ½ for the layout
    script       .05
    text         .10 · words / 1,000, never missing where the page is there

Assumptions, since nothing is rendered here:
 1. The viewport has 1,024 × 768 pixels, the tool's default.
 2. Sizes are those that the page states (attributes, inline styles). Where it states none, they are those that CSS
    gives to a replaced element without a size, 300 × 150 pixels, and 300 × 54 for sound. If one side is stated, the
    other follows by the ratio 2 : 1.
 3. Where an element stands is not known. The term for crossing a middle is multiplied with the probability that an
    element of this size, placed anywhere in the viewport with equal probability, crosses it: w / (W − w), at most 1.
 4. Whether the rules of a missing style sheet apply cannot be known: they are taken to apply if the sheet is for
    screens and the page has classes or ids for it to name. The layout term, which the tool measures on a screenshot,
    counts in full for sheets for screens. A sheet that is not for screens weighs nothing.
 5. Fonts and captions weigh nothing: the published algorithm does not have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from recrawl.assess.archive.composite_coherence import STATE_WORDS, CoherenceState
from recrawl.model import AnyArray, BoolArray, ByteArray, FloatArray, IntArray
from recrawl.model.captures import VIEWPORT, EmbedKind

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
    """Embedded resources by :class:`~recrawl.assess.archive.composite_coherence.CoherenceState`. Shape (n, 6)."""
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

        Not known where it depends on parts whose bytes are not at hand: unless others are prima facie violative.
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
    """Pages with no part that is possibly or prima facie violative: at most this many were coherent."""
    violative: int
    """Pages with a part that is prima facie violative: provably never so."""
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
