"""What goes into and comes out of a store, beside the nouns of ``recrawl.model``."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.model import FloatArray, IntArray, Validators


@dataclass(frozen=True, slots=True)
class CaptureRecord:
    """Where a capture lies in the archive, and what it is."""

    page: int
    time: float
    """When the request began, seconds since the epoch."""
    status: int
    mime: str
    digest: bytes
    """Of the payload (WARC-Payload-Digest): SHA-1, 20 bytes."""
    size: int
    """Bytes of body received."""
    warc_file: str
    warc_offset: int
    warc_length: int
    """Bytes of the compressed record."""


@dataclass(frozen=True, slots=True)
class Leased:
    """Pages in the hand of one worker, in order of due time."""

    page: IntArray
    host: IntArray
    due: FloatArray
    """When each page was due, seconds since the epoch."""
    url: list[str]
    validators: list[Validators]
    """What to send in a conditional request."""

    def __len__(self) -> int:
        return len(self.page)


@dataclass(frozen=True, slots=True)
class Links:
    """Links between pages, by source and target."""

    source: IntArray
    target: IntArray
    first_seen: FloatArray
    last_seen: FloatArray

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class Hosts:
    """Hosts as columns, by id."""

    id: IntArray
    name: list[str]
    ready_at: FloatArray
    """Before this time nobody asks the host."""
    delay: FloatArray
    """Seconds between two requests."""
    next_due: FloatArray
    """When the earliest page of the host is due."""

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """How much a store holds."""

    pages: int
    hosts: int
    visits: int
    changed: int
    """Visits that found a change."""
    failed: int
    """Visits that told nothing about the page."""
    links: int
    captures: int
    leased: int
    due: int
    """Pages due at the time asked about, leased ones included."""
