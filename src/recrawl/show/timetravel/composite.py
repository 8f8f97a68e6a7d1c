"""What a page is shown with: of each embedded resource the copy that goes with the page best, and what that proves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from recrawl.assess.composite import STATE_WORDS, ChoiceRule, CoherenceState
from recrawl.model import Capture
from recrawl.show.timetravel.captures import Kept
from recrawl.store.base import Store


@dataclass(frozen=True, slots=True)
class ShownPart:
    """An embedded resource of a page."""

    url: str
    """As the page names it first."""
    state: CoherenceState
    """With respect to the capture of the page."""
    kept: Kept | None
    """The copy; ``None`` if there is none."""


@dataclass(frozen=True, slots=True)
class ShownComposite:
    """A page with all it embeds."""

    parts: tuple[ShownPart, ...]
    asked: int
    """How many resources the page embeds, as far as is known; not all are looked up of one that embeds very many."""
    whole: bool
    """Whether all were looked up."""
    damage: float | None
    """Memento damage, 0 to 1; ``None`` if the page has nothing to lose."""

    def counts(self) -> dict[CoherenceState, int]:
        """How many parts are in each state."""
        return {state: sum(part.state is state for part in self.parts) for state in CoherenceState}


class Composer(Protocol):
    """Finds what a page is shown with; given by who wires it."""

    def page(self, store: Store, kept: Kept, capture: Capture, rule: ChoiceRule, most: int) -> ShownComposite | None:
        """A page with at most so many of its parts; ``None`` if what it embeds cannot be read."""
        ...

    def part(self, store: Store, url: str, at: float) -> tuple[Kept, CoherenceState] | None:
        """The copy of one resource that goes best with a page captured at a time; ``None`` if there is none."""
        ...

    def style_sheet(self, capture: Capture) -> str | None:
        """The text of a style sheet; ``None`` if it is something else, or too long."""
        ...


def coherence_words(found: ShownComposite) -> str:
    """Whether the page existed as it is shown, for people."""
    counts = found.counts()
    said = ", ".join(f"{counts[state]} {STATE_WORDS[state]}" for state in CoherenceState if counts[state])
    if counts[CoherenceState.PRIMA_FACIE_VIOLATIVE]:
        return f"no, parts of it are of another time ({said})"
    if found.whole and found.parts and counts[CoherenceState.PRIMA_FACIE_COHERENT] == len(found.parts):
        return "yes, provably"
    return f"not proved ({said})" if said else "not proved"


def coherence_header(found: ShownComposite) -> str:
    """How many parts are in each state, for programs: ``5 prima facie coherent, 1 possibly coherent, …``."""
    return ", ".join(f"{count} {STATE_WORDS[state]}" for state, count in found.counts().items())
