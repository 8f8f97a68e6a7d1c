"""Pages and visits: the units of revisiting, and the recorded facts of coming back to them.

Pages are single values and columns. Visits are columns, append-only, one row each. A failed visit is a visit too; it
says nothing about change. A :class:`Visit` is one row, for the edges of the system; all computations work on
:class:`Visits`.

Failures have status numbers below zero, in the column of the HTTP status: those of Heritrix where it has one
(conventions L3).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from recrawl.model.arrays import AnyArray, FloatArray, IntArray, order_by, plain_value


@dataclass(frozen=True, slots=True)
class Page:
    """One page, for the places that handle one at a time."""

    id: int
    host: int
    url: str
    key: str
    """SURT of the URL: the page's identity."""
    importance: float = 1.0
    discovered: float = 0.0


@plain_value
class Validators:
    """What a page last said about its version, for a conditional request and the next verdict. Empty where unknown."""

    etag: str = ""
    last_modified: str = ""
    digest: bytes = b""
    """Of the last body, decoded: SHA-1, 20 bytes."""
    text_digest: bytes = b""
    """Of the last body without noise: what the verdict compares."""
    mime: str = ""
    """Media type of the last body."""
    gone: bool = False
    """The last answer was that there is no such page."""
    links_read_at: float = -math.inf
    """When its links were last read: those seen then are the links of its last version."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages as columns: what a policy needs to know beside their histories. URLs stay in the store."""

    id: IntArray
    host: IntArray
    importance: FloatArray
    """Weight w of the page in every objective; 1 is ordinary."""
    cost: FloatArray
    """Price c of one visit in units of budget; 1 is one request."""
    discovered: FloatArray
    """When the page was first heard of, seconds since the epoch."""

    def __len__(self) -> int:
        return len(self.id)

    @classmethod
    def of(
        cls,
        id: npt.ArrayLike,  # noqa: A002 - the column's name everywhere
        *,
        host: npt.ArrayLike = 0,
        importance: npt.ArrayLike = 1.0,
        cost: npt.ArrayLike = 1.0,
        discovered: npt.ArrayLike = 0.0,
    ) -> Pages:
        """Columns from anything array-like; a single value fills its column.

        >>> Pages.of([10, 11], host=[1, 2]).importance.tolist()
        [1.0, 1.0]
        """
        ids = np.asarray(id, dtype=np.int64)
        columns: list[AnyArray] = [np.asarray(host, dtype=np.int64)]
        columns += [np.asarray(value, dtype=np.float64) for value in (importance, cost, discovered)]
        return cls(ids, *(np.broadcast_to(column, ids.shape).copy() for column in columns))

    def take(self, rows: AnyArray | slice) -> Pages:
        """The pages at these positions, or where this mask is true."""
        return Pages(self.id[rows], self.host[rows], self.importance[rows], self.cost[rows], self.discovered[rows])


NO_NAME = -1
"""DNS says that the host has no address."""
NO_CONNECTION = -2
"""The host refuses connections."""
BROKEN_OFF = -3
"""The connection ended in the middle of the head, or what came is not HTTP."""
TOO_SLOW = -4
"""There was a connection, but no head of an answer in time."""
OUR_FAULT = -5
"""Our own code failed on the page (Heritrix: an unexpected exception). Twice in a row, and the page is quarantined."""
NO_NAME_SERVER = -6
"""DNS does not answer, or not now."""
NO_URL = -7
"""It is no URL that can be fetched."""
NO_TRUST = -21
"""TLS fails: the certificate is not valid, or there is no common protocol. Ours; Heritrix has no number for it."""
NO_ROUTE = -22
"""Nothing came back at all: there is no way to the address, or no connection in time. Ours."""
TOO_LATE = -50
"""The request had a time by which it must be sent, and was not sent by then. No visit has it: the page is requested in
a later turn (Heritrix: waiting for what must come before)."""
NO_ROBOTS = -61
"""robots.txt is unavailable (conventions L3)."""
EMPTY = -404
"""The connection was closed without a byte."""
NOT_ALLOWED = -5001
"""The address is not one that we connect to."""
REFUSED_BY_ROBOTS = -9998
"""robots.txt forbids the request (conventions L3)."""


class Outcome(enum.IntEnum):
    """How a visit ended. Everything up to ``GONE`` is an answer; what follows is a failure."""

    FETCHED = 0
    """A body arrived (2xx)."""
    NOT_MODIFIED = 1
    """The server said 304 to our validators."""
    REDIRECTED = 2
    """A 3xx other than 304."""
    GONE = 3
    """404 or 410: the page is not there."""
    REFUSED = 4
    """Not asked: robots.txt or our own rules forbid it."""
    REJECTED = 5
    """Another 4xx: the server does not want this request."""
    SERVER_ERROR = 6
    """5xx, or 429."""
    UNREACHABLE = 7
    """No complete answer: name, connection, time-out, cut-off body."""


ANSWERED = Outcome.GONE
"""Outcomes up to this one tell what is at the URL; later ones tell nothing about the page."""


class Verdict(enum.IntEnum):
    """What a visit says about change since the visit before it. Ordered by how much it says."""

    UNKNOWN = 0
    UNCHANGED = 1
    CHANGED = 2


class ChangeKind(enum.IntFlag):
    """In what respect a page changed. One visit may find several."""

    NONE = 0
    CONTENT = 1
    """Bytes differ after decoding, noise included."""
    TEXT = 2
    """The visible text differs after noise is removed."""
    LINKS = 4
    """Outlinks were added or removed."""
    NEW_LINKS = 8
    """At least one outlink that this page never had before (HACS l*)."""
    EXISTENCE = 16
    """The page went away or came back."""
    TYPE = 32
    """Its media type changed."""
    DATA = 64
    """RDF, JSON or CSV content differs after canonicalisation."""
    EXACT = 128
    """The visit's time is that of the change itself: somebody kept a log of changes, no visit was needed."""
    LINKS_COMPARED = 256
    """The links of both versions were read: then a change without ``LINKS`` or ``NEW_LINKS`` had none. No kind of
    change itself, and no part of a recorded visit: it follows from the counts of links (:data:`UNCOUNTED`), and stands
    for them where these columns are not read."""
    NEW_PUBLICATIONS = 512
    """At least one of the new outlinks is to a publication: a PDF and the like (HACS §VI)."""


UNCOUNTED = -1
"""A link count that nobody made."""
UNMEASURED = -1.0
"""A magnitude that nobody measured."""


@plain_value
class Visit:
    """One visit, for the places that handle one at a time."""

    page: int
    time: float
    """When the request started, seconds since the epoch."""
    outcome: Outcome
    verdict: Verdict = Verdict.UNKNOWN
    kinds: ChangeKind = ChangeKind.NONE
    status: int = 0
    """HTTP status, 0 if there was none; negative values are Heritrix's (conventions L3)."""
    size: int = 0
    """Bytes of body received."""
    cost: float = 0.0
    """Seconds from the request to the last byte."""
    new_internal: int = UNCOUNTED
    """Links to the same host never seen on this page before (HACS l*)."""
    new_external: int = UNCOUNTED
    added_internal: int = UNCOUNTED
    """Links to the same host that the previous version did not have (LBLA)."""
    added_external: int = UNCOUNTED
    magnitude: float = UNMEASURED
    """How much of the page changed since the visit before: 0 nothing, 1 everything."""


@dataclass(frozen=True, slots=True)
class Visits:
    """Visits as columns of equal length, in any order, duplicates allowed. 54 bytes per visit."""

    page: IntArray
    time: FloatArray
    outcome: npt.NDArray[np.uint8]
    verdict: npt.NDArray[np.uint8]
    kinds: npt.NDArray[np.uint16]
    status: npt.NDArray[np.int16]
    size: IntArray
    cost: npt.NDArray[np.float32]
    new_internal: npt.NDArray[np.int32]
    new_external: npt.NDArray[np.int32]
    added_internal: npt.NDArray[np.int32]
    added_external: npt.NDArray[np.int32]
    magnitude: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        for column in fields(self):
            if len(getattr(self, column.name)) != len(self.page):
                msg = f"column {column.name!r} has {len(getattr(self, column.name))} rows, page has {len(self.page)}"
                raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.page)

    @classmethod
    def of(  # noqa: PLR0913 - one argument a column, all optional but the two that make a visit
        cls,
        page: npt.ArrayLike,
        time: npt.ArrayLike,
        *,
        outcome: npt.ArrayLike = Outcome.FETCHED,
        verdict: npt.ArrayLike = Verdict.UNKNOWN,
        kinds: npt.ArrayLike = ChangeKind.NONE,
        status: npt.ArrayLike = 0,
        size: npt.ArrayLike = 0,
        cost: npt.ArrayLike = 0.0,
        new_internal: npt.ArrayLike = UNCOUNTED,
        new_external: npt.ArrayLike = UNCOUNTED,
        added_internal: npt.ArrayLike = UNCOUNTED,
        added_external: npt.ArrayLike = UNCOUNTED,
        magnitude: npt.ArrayLike = UNMEASURED,
    ) -> Visits:
        """Columns from anything array-like; a single value fills its column.

        >>> len(Visits.of([1, 1, 2], [0.0, 5.0, 3.0], verdict=[0, 2, 0]))
        3
        """
        given = (
            page,
            time,
            outcome,
            verdict,
            kinds,
            status,
            size,
            cost,
            new_internal,
            new_external,
            added_internal,
            added_external,
            magnitude,
        )
        length = len(np.atleast_1d(np.asarray(page)))
        columns: list[AnyArray] = []
        for (name, dtype), value in zip(VISIT_COLUMNS.items(), given, strict=True):
            array = np.asarray(value, dtype=dtype)
            columns.append(np.full(length, array, dtype=dtype) if array.ndim == 0 else array)
            if len(columns[-1]) != length:
                msg = f"column {name!r} has {len(columns[-1])} rows, page has {length}"
                raise ValueError(msg)
        return cls(*columns)

    @classmethod
    def from_rows(cls, rows: Iterable[Visit]) -> Visits:
        """Columns from single visits, for the edges. O(n) Python."""
        table = list(rows)
        return cls(
            *(np.array([getattr(row, name) for row in table], dtype=dtype) for name, dtype in VISIT_COLUMNS.items())
        )

    @classmethod
    def empty(cls) -> Visits:
        """No visits."""
        return cls(*(np.empty(0, dtype=dtype) for dtype in VISIT_COLUMNS.values()))

    @classmethod
    def concatenate(cls, parts: Sequence[Visits]) -> Visits:
        """All rows of all parts, in order."""
        if not parts:
            return cls.empty()
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in VISIT_COLUMNS))

    def columns(self) -> dict[str, AnyArray]:
        """The columns by name, in the order of the schema, not copied."""
        return {name: getattr(self, name) for name in VISIT_COLUMNS}

    def take(self, rows: AnyArray | slice) -> Visits:
        """The visits at these positions, or where this mask is true."""
        return Visits(*(column[rows] for column in self.columns().values()))

    def sorted(self) -> Visits:
        """The same visits by page, then time; ``self`` if they already are. O(n) then, else O(n log n)."""
        order = order_by(self.page, self.time)
        return self if order is None else self.take(order)

    def answered(self) -> npt.NDArray[np.bool_]:
        """True where the visit told what is at the URL."""
        return self.outcome <= ANSWERED


VISIT_COLUMNS: dict[str, type[np.generic]] = {
    "page": np.int64,
    "time": np.float64,
    "outcome": np.uint8,
    "verdict": np.uint8,
    "kinds": np.uint16,
    "status": np.int16,
    "size": np.int64,
    "cost": np.float32,
    "new_internal": np.int32,
    "new_external": np.int32,
    "added_internal": np.int32,
    "added_external": np.int32,
    "magnitude": np.float32,
}
"""The schema of a visit, everywhere: in memory, in Arrow and in the store."""
