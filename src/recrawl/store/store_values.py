"""Value types of a store, beside those of ``recrawl.model``: captures, claims, leases, site captures, counts."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray, NoiseCounts, Validators
from recrawl.model.arrays import plain_value
from recrawl.time import from_http_date

FITTED = "fitted"
"""The control that names the policy whose due times the store has. An import removes it: its visits change them."""


@dataclass(frozen=True, slots=True)
class SiteCapture:
    """The capture of a whole site: its order, and its result."""

    id: int
    site: str
    """The URL of its start page."""
    terms: str
    """The order, as JSON."""
    delay: float
    """Seconds of one slot."""
    started: float
    finished: float
    """When it was complete; infinity if it is not."""
    statement: str
    """Its quality, as JSON; empty until it is complete."""

    @property
    def is_finished(self) -> bool:
        """False if there is something left to resume."""
        return self.finished < float("inf")


@dataclass(frozen=True, slots=True)
class FoundPages:
    """Pages of a site capture in the order in which they were found, which is their number."""

    page: IntArray
    via: IntArray
    """Number of the page it was found on, -1 if it was known beforehand; -2 - N for a requisite of page N."""
    rate: FloatArray
    """Changes per second, as given to the strategy."""
    weight: FloatArray
    """Weight of the page, as given to the strategy."""

    @property
    def parent(self) -> IntArray:
        """Number of the page that links to each or embeds it, -1 if it was known beforehand."""
        return np.where(self.via < -1, -2 - self.via, self.via)

    def __len__(self) -> int:
        return len(self.page)


@dataclass(frozen=True, slots=True)
class SiteStep:
    """One step of a site capture: a visit or revisit of a page."""

    step: int
    """0, 1, 2, … in the order made."""
    number: int
    """Number of the page, by the order found."""
    revisit: bool
    time: float
    """When the request of the visit started, seconds since the epoch."""
    outcome: int
    """Of the visit (:class:`recrawl.model.Outcome`)."""
    verdict: int
    """Of the visit (:class:`recrawl.model.Verdict`)."""


@dataclass(frozen=True, slots=True)
class SiteCounts:
    """The progress of a site capture."""

    pages: int
    """Pages found so far."""
    visited: int
    """Pages visited."""
    seen_again: int
    """Pages revisited."""
    last: float
    """When the last step was made, seconds since the epoch; -infinity if there was none."""


@dataclass(frozen=True, slots=True)
class SiteProgress:
    """What one step adds to a site capture."""

    capture: int
    step: SiteStep
    found: FoundPages
    """Pages found in this step."""
    known: int
    """How many were found before it: the first of them gets this number."""


@dataclass(frozen=True, slots=True)
class SiteLog:
    """The full record of a site capture: its state is a fold over this."""

    found: FoundPages
    after: IntArray
    """How many steps had been made when each page was found, the one that found it included."""
    steps: list[SiteStep]


REVISIT = "warc/revisit"
"""The media type under which indexes list a revisit (conventions X1)."""

KEY_START_LENGTH = 256
"""Characters of a key by which pages are sorted; longer common prefixes are sorted on reading."""


@plain_value
class CaptureRecord:
    """A capture and its place in the archive."""

    page: int
    time: float
    """When the request started, seconds since the epoch."""
    status: int
    mime: str
    digest: bytes
    """SHA-1 of the payload (WARC-Payload-Digest), 20 bytes."""
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


SAME_TIME = 2e-6
"""Seconds between two times of one capture at most: a WARC file has microseconds, the store has all digits."""


class CaptureOrigin(enum.IntEnum):
    """Where a capture comes from: ``capture.imported``."""

    OURS = 0
    """Made by a visit of our own."""
    LISTED = 1
    """Listed by an archive."""
    LOCATED = 2
    """Read from its file."""
    VISITED = 3
    """Imported, and a visit of its own, however soon after another: read from a file of a crawl by recrawl."""
    AUXILIARY = 4
    """Imported, and no visit: robots.txt, a sitemap, one of several requests for a page."""
    RECORDED = 5
    """Imported after its visit, which stays as it was recorded."""


@dataclass(frozen=True, slots=True)
class CaptureColumns:
    """Many captures as columns: the listing of an archive, and the place of its bytes."""

    page: IntArray
    time: FloatArray
    """When the request started, seconds since the epoch."""
    status: IntArray
    mime: list[str]
    """``warc/revisit`` for a record that repeats an earlier one."""
    digest: list[bytes]
    """Of the payload: SHA-1, 20 bytes, or another as text (``sha256:`` and hexadecimal); empty where unknown."""
    size: IntArray
    """Bytes of payload, -1 where unknown."""
    warc_file: list[str]
    warc_offset: IntArray
    warc_length: IntArray
    ours: BoolArray | None = None
    """True where a visit of our own made the capture; ``None`` if not requested."""
    origin: IntArray | None = None
    """A :class:`CaptureOrigin` for each; ``None`` if not requested. To be added, 0 where the source does not say."""

    def __len__(self) -> int:
        return len(self.page)

    def take(self, rows: IntArray) -> CaptureColumns:
        """These rows, in this order. O(rows)."""
        some = rows.tolist()
        return CaptureColumns(
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
            None if self.origin is None else self.origin[rows],
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
    """A range of captures: of pages by key (SURT), byte by byte, in a span of time; all ends included."""

    start: str
    end: str
    since: float = float("-inf")
    until: float = float("inf")
    backwards: bool = False
    """From the last key and time to the first."""
    beyond: tuple[str, float] | None = None
    """Key and time of the last capture of an earlier result: the range continues after it."""


@dataclass(frozen=True, slots=True)
class KeyedCaptures:
    """Captures of several pages, with the key and URL of the page of each."""

    key: list[str]
    url: list[str]
    captures: CaptureColumns

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True)
class ClaimColumns:
    """Claims of sites about their own changes, as columns. They need not be true."""

    page: IntArray
    time: FloatArray
    """When it was claimed, seconds since the epoch."""
    source: list[str]
    """The sitemap or feed, or ``last-modified`` for the header of the page itself."""
    lastmod: FloatArray
    """The claimed time of the last change; -inf if there is none."""
    changefreq: IntArray
    """0 for none, 1 always, 2 hourly, 3 daily, 4 weekly, 5 monthly, 6 yearly, 7 never."""
    priority: FloatArray
    """0 to 1; -1 if there is none."""

    def __len__(self) -> int:
        return len(self.page)

    def plus(self, others: ClaimColumns) -> ClaimColumns:
        """These and the others, in this order."""
        return ClaimColumns(
            np.concatenate([self.page, others.page]),
            np.concatenate([self.time, others.time]),
            self.source + others.source,
            np.concatenate([self.lastmod, others.lastmod]),
            np.concatenate([self.changefreq, others.changefreq]),
            np.concatenate([self.priority, others.priority]),
        )

    def take(self, rows: IntArray) -> ClaimColumns:
        """These rows, in this order. O(rows)."""
        return ClaimColumns(
            self.page[rows],
            self.time[rows],
            [self.source[row] for row in rows.tolist()],
            self.lastmod[rows],
            self.changefreq[rows],
            self.priority[rows],
        )


class MementoState(enum.IntEnum):
    """The state of a capture of another archive whose bytes are wanted."""

    WAITING = 0
    FETCHED = 1
    SPARED = 2
    """Not requested: bytes with its digest are there, or its bytes would add nothing."""
    DIFFERS = 3
    """Fetched; the bytes have another digest than the archive lists."""
    MISSING = 4
    """The archive does not serve it: it says so, or answers with another capture."""
    FAILED = 5
    """The archive failed, or it is too long."""


@dataclass(frozen=True, slots=True)
class ImportMark:
    """How far a source was imported, so that an interrupted import resumes and a finished one is not repeated."""

    source: str
    fingerprint: str
    """Changes when the source does; a mark with another fingerprint is void."""
    position: int = 0
    """Where to resume: records imported so far."""
    accepted: int = 0
    skipped: int = 0
    broken: int = 0
    finished: bool = False


class HostHold(NamedTuple):
    """The result of reserving a host for a request that is for none of its leased pages."""

    until: float
    """When to try again at the latest, seconds since the epoch; ``-inf`` if the host is reserved."""
    page: int = -1
    """The page of the host whose lease keeps others away until it is returned; -1 if there is none."""


@dataclass(frozen=True, slots=True)
class LeasedPages:
    """Pages leased by one worker, in order of due time."""

    page: IntArray
    host: IntArray
    due: FloatArray
    """When each page was due, seconds since the epoch."""
    url: list[str]
    validators: list[Validators]
    """What to send in a conditional request."""
    token: IntArray
    """The token of the bucket when the page was leased; 0 if it was leased without regard to buckets."""

    def __len__(self) -> int:
        return len(self.page)

    def take(self, some: slice) -> LeasedPages:
        """Some of them."""
        return LeasedPages(
            self.page[some], self.host[some], self.due[some], self.url[some], self.validators[some], self.token[some]
        )


@dataclass(frozen=True, slots=True)
class BucketRows:
    """All buckets as columns; the place is the number of the bucket."""

    owner: list[str | None]
    """The worker that leases pages of its hosts."""
    heir: list[str | None]
    """The worker that gets the bucket once its owner has ended what is under way."""
    token: IntArray
    """How often the bucket changed hands: the fencing token of leases."""
    since: FloatArray
    """When it changed hands or got its heir, seconds since the epoch; 0 if never."""

    def __len__(self) -> int:
        return len(self.owner)


@dataclass(frozen=True, slots=True)
class LinkRows:
    """Links between pages, by source and target."""

    source: IntArray
    target: IntArray
    first_seen: FloatArray
    last_seen: FloatArray

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class HostRows:
    """Hosts as columns, by id."""

    id: IntArray
    name: list[str]
    ready_at: FloatArray
    """Before this time nobody may request the host."""
    delay: FloatArray
    """Seconds between two requests."""
    next_due: FloatArray
    """When the earliest page of the host is due."""
    paused: BoolArray
    """True where no page is leased until the host is resumed."""
    checks: IntArray
    """How often a page was fetched without its validators and had changed: chances to find them unreliable."""
    lies: IntArray
    """How often the validators had not changed then, so that the host would have answered 304."""
    restless: IntArray
    """How often the page had not changed, although the host reports a modification just now."""
    bucket: IntArray
    """The bucket of its registered domain: see :func:`recrawl.urls.bucket_of`."""

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, slots=True)
class ValidatorCounts:
    """Evidence on the validators of hosts, as columns. A host may occur several times."""

    host: IntArray
    checks: IntArray
    """As in :class:`HostRows`, and so the following."""
    lies: IntArray
    restless: IntArray

    def __len__(self) -> int:
        return len(self.host)


@dataclass(frozen=True, slots=True)
class LearnedFacts:
    """What was learned from visits."""

    fingerprints: Sequence[bytes] = ()
    """The fingerprint of the page of each visit, empty where it is unchanged; or none at all."""
    noise: NoiseCounts | None = None
    """Added to the stored counts."""
    validator_trust: ValidatorCounts | None = None
    """Likewise."""


QUARANTINED = 2
"""Faults of our own code in a row, from which on a page is quarantined."""


@dataclass(frozen=True, slots=True)
class FailingPages:
    """Pages whose last visit by us failed, as columns."""

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
    """Step and error of the last one, if it was such a fault."""

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
class DueBacklog:
    """The due pages at a moment."""

    due: int
    """Pages, leased ones included."""
    paused: int
    """Due pages on hosts that are paused."""
    earliest: float
    """When the first of them was due, seconds since the epoch; infinity if none is."""
    resting: int = 0
    """Due pages on hosts that are not paused, but may not be requested yet."""


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """The size of a store."""

    pages: int
    hosts: int
    visits: int
    changed: int
    """Visits that found a change."""
    failed: int
    """Visits that say nothing about the page."""
    links: int
    captures: int
    leased: int
    due: int
    """Pages due at the given time, leased ones included."""


@dataclass(frozen=True, slots=True)
class VisitCounts:
    """How many visits there are before a time."""

    visits: int
    """Until its segment is full, the record that withdraws a visit or marks it as misdated counts as -1."""
    changed: int
    """Visits that found a change."""
    failed: int
    """Visits that say nothing about the page."""


LAST_MODIFIED = "last-modified"
"""Source of a claim in the page's own header of this name."""


def newly_stated(validators: Validators, before: Validators | None) -> float | None:
    """The modification date of the page, if it has one and it differs from the last; seconds since the epoch."""
    stated = validators.last_modified
    if not stated or (before is not None and before.last_modified == stated):
        return None
    return from_http_date(stated)


def last_modified_claims(said: Sequence[tuple[int, float, float]]) -> ClaimColumns:
    """Claims in Last-Modified headers: page, time of the visit, time of the change."""
    page, time, when = (np.array(column) for column in zip(*said, strict=True)) if said else (np.empty(0),) * 3
    nothing = np.zeros(len(said), np.int64)
    return ClaimColumns(
        page.astype(np.int64), time, [LAST_MODIFIED] * len(said), when, nothing, np.full(len(said), -1.0)
    )
