"""The port of the replay server: what it needs from a workspace, given as plain functions.

Composites: for each page requisite the copy that is most coherent with the page, and what that proves.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from recrawl.assess.composite_coherence import STATE_WORDS, ChoiceRule, CoherenceState
from recrawl.formats.warc.archive_folder import ArchivePath
from recrawl.model import Capture, FloatArray, Visits
from recrawl.store.archived_copies import Kept
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
    """A page with its page requisites."""

    parts: tuple[ShownPart, ...]
    asked: int
    """The number of page requisites, as far as known; of very many not all are looked up."""
    whole: bool
    """Whether all were looked up."""
    damage: float | None
    """Memento damage, 0 to 1; ``None`` if the page has nothing to lose."""

    def counts(self) -> dict[CoherenceState, int]:
        """How many parts are in each state."""
        return {state: sum(part.state is state for part in self.parts) for state in CoherenceState}


class CompositeSelector(Protocol):
    """Finds what a page is shown with; given by who wires it."""

    def page(self, store: Store, kept: Kept, capture: Capture, rule: ChoiceRule, most: int) -> ShownComposite | None:
        """A page with a limited number of requisites; ``None`` if its markup cannot be read."""
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
        return f"no, parts are from another time ({said})"
    if found.whole and found.parts and counts[CoherenceState.PRIMA_FACIE_COHERENT] == len(found.parts):
        return "yes, provably"
    return f"not proved ({said})" if said else "not proved"


def coherence_header(found: ShownComposite) -> str:
    """How many parts are in each state, for programs: ``5 prima facie coherent, 1 possibly coherent, …``."""
    return ", ".join(f"{count} {STATE_WORDS[state]}" for state, count in found.counts().items())


class ByteSource(Protocol):
    """Reads archived bytes, and what is in them."""

    def read(self, file: str, offset: int) -> Capture | None:
        """The record at an offset of an archive file; ``None`` if it cannot be had."""
        ...

    def head(self, file: str, offset: int) -> Capture | None:
        """The same with none of its body: whether it is there, and of which page and time."""
        ...

    def payload(self, capture: Capture) -> bytes:
        """The body without transfer-encoding, content-encoding untouched."""
        ...

    def page(self, capture: Capture) -> str | None:
        """The text of an HTML page; ``None`` if it is something else or cannot be decoded."""
        ...

    def rewrite_css(self, text: str, inside: Callable[[str, bool], str | None]) -> str:
        """A style sheet with rewritten URLs: ``inside`` receives each as written, and whether it imports a sheet."""
        ...


@dataclass(frozen=True, slots=True)
class IngestedLines:
    """The result of received index lines."""

    added: int
    bad: int
    """Lines that make no sense and were passed over."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How lines of an index are taken over."""

    skip_bad: bool = False
    """Pass over lines that make no sense; else one spoils all."""
    schedule: bool = False
    """Visit the pages they name from now on; else they are only known."""


@dataclass(frozen=True, slots=True)
class ReplayPort:
    """A workspace, as far as time travel is concerned."""

    name: str
    """Of the workspace, for people."""
    store: Callable[[], AbstractContextManager[Store]]
    """A store for the duration of a request."""
    bytes_: ByteSource
    rates: Callable[[Store, Visits], FloatArray]
    """Changes per second of each page observed in these visits, by ascending id; NaN where that is not known."""
    composer: CompositeSelector
    """Finds what a page is shown with."""
    clock: Callable[[], float]
    """Now, seconds since the epoch."""
    ingest: Callable[[bytes, IngestOptions], IngestedLines] | None = None
    """Take lines of CDX or CDXJ over. Raises ``InputError`` if a line is bad that is not to be passed over."""
    file: Callable[[str], ArchivePath | None] | None = None
    """An archive file of this workspace by name, for other workers; ``None`` if it has none of that name."""
    package: Callable[[], Path] | None = None
    """The whole archive as one WACZ file, made again after additions. ``InputError`` if it is empty."""
