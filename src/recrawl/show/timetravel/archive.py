"""What time travel needs of a workspace. What other rooms know is given as plain functions by who wires it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from recrawl.model import Capture, FloatArray, Visits
from recrawl.store.base import Store


class Bytes(Protocol):
    """Reads archived bytes, and what is in them."""

    def read(self, file: str, offset: int) -> Capture | None:
        """The record at an offset of an archive file; ``None`` if it cannot be had."""
        ...

    def payload(self, capture: Capture) -> bytes:
        """The body without transfer-encoding, content-encoding untouched."""
        ...

    def page(self, capture: Capture) -> str | None:
        """The text of an HTML page; ``None`` if it is something else or cannot be decoded."""
        ...

    def embeds(self, html: str, url: str) -> Sequence[str]:
        """The URLs of all that a browser loads to show the page."""
        ...


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of lines of an index that somebody sent."""

    added: int
    bad: int
    """Lines that make no sense and were passed over."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A workspace, as far as time travel is concerned."""

    name: str
    """Of the workspace, for people."""
    store: Callable[[], AbstractContextManager[Store]]
    """A store to ask, for as long as it takes."""
    bytes_: Bytes
    rates: Callable[[Visits], FloatArray]
    """Changes per second of each page that is visited here, by ascending id; NaN where nothing is known."""
    clock: Callable[[], float]
    """Now, seconds since the epoch."""
    ingest: Callable[[bytes, bool], Taken] | None = None
    """Take lines of CDX or CDXJ over; true to pass over bad ones. Raises ``InputError`` if a line is bad otherwise."""
    package: Callable[[], Path] | None = None
    """The whole archive as one WACZ file, made anew if something was added. ``InputError`` if there is nothing."""
