"""What goes into and comes out of a store, beside the nouns of ``recrawl.model``."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray, NoiseCounts, Validators
from recrawl.model.values import plain_value

REVISIT = "warc/revisit"
"""The media type under which indexes list a revisit (conventions X1)."""

KEY_START_LENGTH = 256
"""Characters of a key by which pages are sorted; keys that agree in so many are sorted where they are met."""


@plain_value
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


class LinksSeen(NamedTuple):
    """Links of pages, and when each was seen."""

    source: IntArray
    target: IntArray
    time: FloatArray
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Captures:
    """Many captures as columns: what an archive lists, and where its bytes lie."""

    page: IntArray
    time: FloatArray
    """When the request began, seconds since the epoch."""
    status: IntArray
    mime: list[str]
    """``warc/revisit`` for a record that repeats an earlier one."""
    digest: list[bytes]
    """Of the payload: SHA-1, 20 bytes, or another as text (``sha256:`` and hexadecimal); empty where none is known."""
    size: IntArray
    """Bytes of payload, -1 where unknown."""
    warc_file: list[str]
    warc_offset: IntArray
    warc_length: IntArray
    ours: BoolArray | None = None
    """True where a visit of our own made the capture; ``None`` where nobody asked."""

    def __len__(self) -> int:
        return len(self.page)

    def take(self, rows: IntArray) -> Captures:
        """These rows, in this order. O(rows)."""
        some = rows.tolist()
        return Captures(
            self.page[rows],
            self.time[rows],
            self.status[rows],
            [self.mime[row] for row in some],
            [self.digest[row] for row in some],
            self.size[rows],
            [self.warc_file[row] for row in some],
            self.warc_offset[rows],
            self.warc_length[rows],
            None if self.ours is None else self.ours[rows],
        )


@dataclass(frozen=True, slots=True)
class CaptureEnds:
    """The span of a page's captures."""

    first: float
    """When the first one was made, seconds since the epoch."""
    last: float
    count: int


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Which captures are asked for: of pages by key (SURT), byte by byte, in a span of time; all ends included."""

    start: str
    end: str
    since: float = float("-inf")
    until: float = float("inf")
    backwards: bool = False
    """From the last key and time to the first."""
    beyond: tuple[str, float] | None = None
    """Key and time of the capture where an earlier answer ended: what follows it is asked for."""


@dataclass(frozen=True, slots=True)
class KeyedCaptures:
    """Captures of several pages, with the key and URL of the page of each."""

    key: list[str]
    url: list[str]
    captures: Captures

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True)
class Claims:
    """What sites say about their own changes, as columns: claims, not truth."""

    page: IntArray
    time: FloatArray
    """When it was said, seconds since the epoch."""
    source: list[str]
    """Where: the sitemap or feed, or ``last-modified`` for the header of the page itself."""
    lastmod: FloatArray
    """When the page last changed, as claimed; -inf if nothing was said."""
    changefreq: IntArray
    """0 for nothing, 1 always, 2 hourly, 3 daily, 4 weekly, 5 monthly, 6 yearly, 7 never."""
    priority: FloatArray
    """0 to 1; -1 if nothing was said."""

    def __len__(self) -> int:
        return len(self.page)

    def plus(self, others: Claims) -> Claims:
        """These and the others, in this order."""
        return Claims(
            np.concatenate([self.page, others.page]),
            np.concatenate([self.time, others.time]),
            self.source + others.source,
            np.concatenate([self.lastmod, others.lastmod]),
            np.concatenate([self.changefreq, others.changefreq]),
            np.concatenate([self.priority, others.priority]),
        )

    def take(self, rows: IntArray) -> Claims:
        """These rows, in this order. O(rows)."""
        return Claims(
            self.page[rows],
            self.time[rows],
            [self.source[row] for row in rows.tolist()],
            self.lastmod[rows],
            self.changefreq[rows],
            self.priority[rows],
        )


class MementoState(enum.IntEnum):
    """What became of a capture of another archive whose bytes were wanted."""

    WAITING = 0
    FETCHED = 1
    SPARED = 2
    """Not asked for: its digest is that of bytes that are there, or its bytes would tell nothing more."""
    DIFFERS = 3
    """Fetched; the bytes have another digest than the archive lists."""
    MISSING = 4
    """The archive does not give it: it says so, or answers with another capture."""
    FAILED = 5
    """The archive failed at it, or it is too long."""


@dataclass(frozen=True, slots=True)
class ImportMark:
    """How far a source was imported, so that an interrupted import goes on and a finished one is not repeated."""

    source: str
    fingerprint: str
    """Changes when the source does; a mark with another fingerprint says nothing."""
    position: int = 0
    """Where to go on: records taken so far."""
    accepted: int = 0
    skipped: int = 0
    broken: int = 0
    finished: bool = False


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

    def take(self, some: slice) -> Leased:
        """Some of them."""
        return Leased(self.page[some], self.host[some], self.due[some], self.url[some], self.validators[some])


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
    paused: BoolArray
    """True where nobody leases a page until somebody lets it go on."""
    checks: IntArray
    """How often a page was asked for without its validators and had changed: chances to catch the host lying."""
    lies: IntArray
    """How often the validators had not, so that the host would have said that nothing had."""
    restless: IntArray
    """How often it had not changed, though the host says it was modified just now."""

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, slots=True)
class Conduct:
    """What visits showed about how far hosts can be believed, as columns. A host may occur several times."""

    host: IntArray
    checks: IntArray
    """As in :class:`Hosts`, and so what follows."""
    lies: IntArray
    restless: IntArray

    def __len__(self) -> int:
        return len(self.host)


@dataclass(frozen=True, slots=True)
class Lessons:
    """What visits taught beside themselves."""

    fingerprints: Sequence[bytes] = ()
    """What the page of each visit looks like now, empty where that is as known; or none at all."""
    noise: NoiseCounts | None = None
    """Added to what was counted before."""
    conduct: Conduct | None = None
    """Likewise."""


QUARANTINED = 2
"""Faults of our own code in a row, from which on a page is quarantined."""


@dataclass(frozen=True, slots=True)
class Failing:
    """Pages whose last visit of our own told nothing, as columns."""

    page: IntArray
    since: FloatArray
    """When the first of the failures in a row was."""
    time: FloatArray
    """When the last one was."""
    failures: IntArray
    """How many in a row."""
    outcome: IntArray
    """Of the last (:class:`recrawl.model.Outcome`)."""
    status: IntArray
    """Of the last: HTTP status, or a negative number of Heritrix's."""
    faults: IntArray
    """How many of the failures in a row were faults of our own code; from :data:`QUARANTINED` on it is quarantined."""
    reason: Sequence[str]
    """Step and error of the last, if it was such a fault."""

    def __len__(self) -> int:
        return len(self.page)


@dataclass(frozen=True, slots=True)
class DuePages:
    """Pages that are due, as columns, by due time."""

    page: IntArray
    host: IntArray
    due: FloatArray
    """Seconds since the epoch."""

    def __len__(self) -> int:
        return len(self.page)


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much is due at a moment."""

    due: int
    """Pages, leased ones included."""
    paused: int
    """Those of them on hosts that are paused."""
    earliest: float
    """When the first of them was due, seconds since the epoch; infinity if none is."""
    resting: int = 0
    """Those of them on hosts that are not paused, but not to be asked yet."""


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
