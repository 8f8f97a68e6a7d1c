"""What time travel needs of a workspace. What other rooms know is given as plain functions by who wires it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from recrawl.model import Capture, FloatArray, Visits
from recrawl.show.timetravel.composite import Composer
from recrawl.store.base import Store


class Bytes(Protocol):
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
        """A style sheet with other addresses: ``inside`` is told each as written, and whether a sheet is imported."""
        ...


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of lines of an index that somebody sent."""

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
class Archive:
    """A workspace, as far as time travel is concerned."""

    name: str
    """Of the workspace, for people."""
    store: Callable[[], AbstractContextManager[Store]]
    """A store to ask, for as long as it takes."""
    bytes_: Bytes
    rates: Callable[[Store, Visits], FloatArray]
    """Changes per second of each page observed in these visits, by ascending id; NaN where that is not known."""
    composer: Composer
    """Finds what a page is shown with."""
    clock: Callable[[], float]
    """Now, seconds since the epoch."""
    ingest: Callable[[bytes, IngestOptions], Taken] | None = None
    """Take lines of CDX or CDXJ over. Raises ``InputError`` if a line is bad that is not to be passed over."""
    package: Callable[[], Path] | None = None
    """The whole archive as one WACZ file, made anew if something was added. ``InputError`` if there is nothing."""
