"""Captured pages with what they embed: coherence, completeness and damage of each, and of all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from recrawl.assess.composite import STATE_WORDS, CoherenceState
from recrawl.assess.memento_damage import TEXT_WEIGHT, WORDS_PER_IMAGE
from recrawl.model import BoolArray, ByteArray, FloatArray, IntArray

_STATES = len(CoherenceState)


@dataclass(frozen=True, slots=True)
class Composites:
    """n captured pages, row by row."""

    page: IntArray
    """Page ids; a page that was captured several times has several rows."""
    time: FloatArray
    """When the page itself was captured, seconds since the epoch."""
    counts: IntArray
    """Embedded resources by :class:`~recrawl.assess.composite.CoherenceState`. Shape (n, 5)."""
    actual: FloatArray
    """Damage by what is missing."""
    potential: FloatArray
    """Damage if all were missing."""
    cut: BoolArray
    """Whether the page embeds more than was looked at."""

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
        ([[1, 0, 0, 0, 1]], [0.25], [0.5])
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
        """How many of them there are copies of."""
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
        """The worst state of the parts that are there; missing where a page embeds something and none of it is."""
        present = self.counts[:, : CoherenceState.MISSING] > 0
        worst = CoherenceState.PRIMA_FACIE_VIOLATIVE - np.argmax(present[:, ::-1], 1)
        none = np.where(self.embedded() > 0, CoherenceState.MISSING, CoherenceState.PRIMA_FACIE_COHERENT)
        return np.where(present.any(1), worst, none).astype(np.uint8)

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
    """Captured pages that were looked at."""
    embedding: int
    """Those that embed something."""
    resources: dict[CoherenceState, int]
    """Embedded resources, by state."""
    coherent: int
    """Pages all of whose archived parts are prima facie coherent: provably as they were shown."""
    not_violative: int
    """Pages with no part that is possibly or prima facie violative: at most so many were coherent."""
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
    """Pages that embed more than is looked at."""

    def share(self, count: int) -> float | None:
        """Of the pages that embed something."""
        return count / self.embedding if self.embedding else None


def summary_of(found: Composites) -> CompositeSummary:
    """Count. O(n)."""
    embedding = found.take(np.flatnonzero(found.embedded() > 0))
    state, complete = embedding.state(), embedding.complete()
    coherent = state == CoherenceState.PRIMA_FACIE_COHERENT
    not_violative = state <= CoherenceState.POSSIBLY_COHERENT
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
