"""What a store promises to those who bring in what archives hold: captures, claims, and how far sources were read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.store.values import CaptureRecord, Captures, Claims, ImportMark, MementoState


class Archives(Protocol):
    """Part of :class:`recrawl.store.base.Store`, and under its rules."""

    def captures(self, pages: IntArray) -> list[CaptureRecord]:
        """Where the captures of these pages lie, by page and time."""
        ...

    def add_captures(
        self, captures: Captures, mark: ImportMark | None = None, *, located: bool = False, anew: bool = False
    ) -> tuple[int, int]:
        """Note captures that somebody made, and how far their source was read; return how many were new and bettered.

        Of several records of one capture (same page, same time) the best stands, whichever came first: an answer before
        a failure, one with a digest before one without. With ``located`` the bytes lie where the captures say, and
        known captures are found there from now on. The visit of a capture that is told otherwise now is withdrawn.
        What a visit of our own recorded stays as it is.

        Nothing is judged. The pages of captures that are new or bettered, or all of them if ``anew``, are noted in the
        same transaction as waiting to be judged and to be read.
        """
        ...

    def capture_columns(self, pages: IntArray) -> Captures:
        """All captures of these pages, by page and time."""
        ...

    def captures_of_page(self, page: int, *, after: float, limit: int) -> Captures:
        """The first ``limit`` captures of a page with time > after, by time: for pages with very many."""
        ...

    def capture_counts(self, pages: IntArray) -> IntArray:
        """How many captures each of these pages has, in order."""
        ...

    def capture_offsets(self, file: str) -> IntArray:
        """Where the captures in an archive file begin, ascending. Looks at every capture once."""
        ...

    def unjudged(self) -> IntArray:
        """Pages that got captures and whose visits do not follow from their digests yet, ascending."""
        ...

    def set_judged(self, pages: IntArray) -> None:
        """Note that the visits of these pages follow from the digests of their captures."""
        ...

    def unread(self, files: Sequence[str] | None = None) -> IntArray:
        """Pages that got captures and whose visits do not follow from their bytes yet, ascending.

        All of them, or those with a capture in one of these archive files.
        """
        ...

    def unread_files(self) -> list[str]:
        """Archive files that, as far as is told, hold captures of pages that are unread."""
        ...

    def set_read(self, pages: IntArray) -> None:
        """Note that the visits of these pages follow from the bytes of their captures, as far as there are any."""
        ...

    def add_mementos(self, page: IntArray, time: FloatArray, question: int, uri: Sequence[str]) -> None:
        """Let captures of another archive wait for their bytes, which that archive gives under these URIs.

        What was fetched or spared before stays so. What the archive did not give waits again if another one lists it.
        """
        ...

    def mementos(self, question: int, state: MementoState) -> tuple[IntArray, FloatArray]:
        """Page and time of the captures of a question that are in a state, ascending."""
        ...

    def memento_uri(self, page: int, time: float) -> str:
        """Where the archive gives the bytes of a capture; empty if nobody said so."""
        ...

    def set_mementos(self, page: IntArray, time: FloatArray, state: MementoState) -> None:
        """Note what became of captures that waited for their bytes."""
        ...

    def memento_counts(self, question: int) -> dict[MementoState, int]:
        """How many captures of a question are in each state."""
        ...

    def retry_mementos(self, question: int) -> None:
        """Let the captures of a question that an archive did not give wait once more."""
        ...

    def resources(self, pages: IntArray | None = None) -> IntArray:
        """Pages that are only known as resources of imported archives, ascending: all, or those among ``pages``.

        Style sheets, pictures, robots.txt and the like have captures and visits, but are no pages to come back to. One
        that somebody wants, so that its importance is not 0, is a page like any other. O(resources).
        """
        ...

    def set_resources(self, pages: IntArray, are: BoolArray) -> None:
        """Note which of these distinct pages are resources, and which are not. Importance and due times stay."""
        ...

    def add_claims(self, claims: Claims, mark: ImportMark | None = None) -> int:
        """Note what sites say about their own changes; return how many claims were new."""
        ...

    def claims(self, pages: IntArray) -> Claims:
        """What was said about these pages, by page and time."""
        ...

    def set_import_mark(self, mark: ImportMark) -> None:
        """Note how far a source was read, in place of what was noted before."""
        ...

    def import_mark(self, source: str) -> ImportMark | None:
        """How far a source was read; ``None`` if never."""
        ...

    def import_sources(self) -> list[str]:
        """Everything that was ever read, sorted: paths of files, addresses, and what was sent."""
        ...
