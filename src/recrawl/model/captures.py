"""A capture: the response of a fetch, or of an archive, for a URL at a time. It has no verdict about change.

Only a detector turns two captures into a verdict. It can do so again later without fetching.

The module also has the other values that fetching produces or needs: the stored copy of a robots.txt, which workers
share and which survives restarts; the embedded resources of a page; and the capture plan, which gives each page of a
site a slot for its visit and, if there is one, for its revisit.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import NamedTuple, Protocol

from recrawl.model.arrays import FloatArray, IntArray, plain_value
from recrawl.urls import Address


@plain_value
class Capture:
    """One answer, with the bytes as they came over the wire."""

    url: str
    time: float
    """When the request started, seconds since the epoch."""
    status: int
    """HTTP status; 0 if no complete head arrived."""
    raw_head: bytes = b""
    """Status line and header block as received, with the empty line."""
    raw_body: bytes = b""
    """Body as received: transfer- and content-encoding untouched."""
    raw_request: bytes = b""
    """The request as sent, with the empty line."""
    ip: str = ""
    duration: float = 0.0
    """Seconds from the request to the last byte."""
    truncated: str = ""
    """Why the body is incomplete (WARC-Truncated: length, time, disconnect), empty if it is not."""
    error: str = ""
    """Why there is no answer, in words, empty if there is one."""
    failure: int = 0
    """The same as Heritrix numbers it (conventions L3), below zero; 0 if there is an answer, or nobody knows."""
    protocol: str = ""
    """``h2`` for HTTP/2, whose head is written as if it were HTTP/1.1; empty for HTTP/1 itself."""
    made: bool = False
    """No server sent these bytes as one answer: they were read from a file, or put together from several answers. The
    head then only names what is known of them, and archives keep the body as a ``resource``."""

    _body_digest: bytes = field(default=b"", init=False, repr=False, compare=False)
    _packed: object = field(default=None, init=False, repr=False, compare=False)
    """The body compressed for the archive, if that was done in advance (``formats.warc.warc_records.pack``)."""
    _charge: object = field(default=None, init=False, repr=False, compare=False)
    """The share of the body in the bytes in flight (``fetch.http.bytes_in_flight``); ends with the capture."""

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """All but what only means something in this process."""
        kept = {one.name: getattr(self, one.name) for one in fields(self)}
        return None, kept | {"_packed": None, "_charge": None}

    def header(self, name: str) -> str:
        r"""The first value of a header, by case-insensitive name; empty text if absent.

        >>> Capture("http://x/", 0.0, 200, b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\n\r\n").header("etag")
        '"a"'
        """
        return _fields(self.raw_head).get(name.lower(), "")

    def body_digest(self) -> bytes:
        """SHA-1 of the body as received, 20 bytes. Several ask for it: it is made once."""
        if not self._body_digest:
            object.__setattr__(self, "_body_digest", hashlib.sha1(self.raw_body, usedforsecurity=False).digest())
        return self._body_digest


@lru_cache(maxsize=64)  # a head is asked for many fields, one after the other
def _fields(head: bytes) -> Mapping[str, str]:
    """The first value of each header by its name in small letters."""
    fields: dict[str, str] = {}
    for line in head.split(b"\n")[1:]:  # some servers end lines without a carriage return
        name, colon, value = line.partition(b":")
        if colon:
            fields.setdefault(name.strip().lower().decode("latin-1"), value.strip().decode("latin-1"))
    return fields


@plain_value
class RobotsCopy:
    """What a host said when its robots.txt was last read. It is stored as sent: each user agent parses it itself."""

    origin: str
    """``scheme://host:port``, the port only if it is not the usual one."""
    fetched_at: float
    """When it was read, seconds since the epoch."""
    expires: float
    """When it must be read again, seconds since the epoch."""
    status: int
    """Of the last answer on the way to it; 0 if it was only asked to be read again."""
    reason: str
    """What came of reading it, in words."""
    available: bool
    """False if the host could not tell its rules, so that nothing is allowed."""
    url: str
    """Where it was found, after redirects."""
    body: bytes
    """Its text, decoded, at most 500 KiB; empty if there are no rules."""
    changed: float = 0.0
    """When it was last found to differ from the copy before, or asked to be read again; 0 if never."""


class RobotsCopies(Protocol):
    """Keeps one copy for each origin. Bounded: a copy that expired a month ago is dropped."""

    def robots_copy(self, origin: str) -> RobotsCopy | None:
        """The copy of an origin, if there is one; it may have expired."""
        ...

    def keep_robots_copies(self, copies: Sequence[RobotsCopy]) -> None:
        """Keep copies in place of those before, and drop those that expired a month ago."""
        ...

    def expire_robots_copies(self, origins: Sequence[str], now: float) -> None:
        """Have these origins' robots.txt read again before anything else of theirs, by every worker."""
        ...

    def changed_robots_copies(self, since: float) -> list[RobotsCopy]:
        """Copies (without their text) that changed, or were asked to be read again, since a time."""
        ...


VIEWPORT = (1024.0, 768.0)
"""Width and height of the window that a page is thought to be shown in, CSS pixels."""


class EmbedKind(enum.IntEnum):
    """What an embedded resource is to the page that embeds it."""

    IMAGE = 0
    STYLESHEET = 1
    SCRIPT = 2
    MULTIMEDIA = 3
    """Sound, video, and what plug-ins show."""
    FRAME = 4
    OTHER = 5
    """Fonts, captions: what changes how a page looks a little."""


class ElementSize(NamedTuple):
    """The size of an element in CSS pixels, as the page states it; NaN where it does not."""

    width: float = float("nan")
    height: float = float("nan")


class EmbeddedResource(NamedTuple):
    """One embedded resource of a page or of a style sheet."""

    alternatives: tuple[Address, ...]
    """Of which a browser loads one: sizes of a image, formats of a video or a font. As the page names them."""
    kind: EmbedKind
    sizes: tuple[ElementSize, ...] = (ElementSize(),)
    """Of every element that shows it."""
    applies: float = 1.0
    """Of a style sheet, how much it may do to the page on a screen: ½ for the layout, ½ if the page has classes or ids
    that its rules can name; 0 for one that is not for screens. 1 for all else."""


class EmbeddedResources(NamedTuple):
    """What one page or style sheet embeds, each resource once, in its order."""

    embeds: tuple[EmbeddedResource, ...] = ()
    words: int = 0
    """Words of text on the page itself; 0 for a style sheet."""
    cut: bool = False
    """Whether there is more than is read of one page."""


class UploadedFile(NamedTuple):
    """An archive file that is in object storage, complete and checked."""

    name: str
    location: str
    """URL of the folder that it is in, with a slash at the end."""
    size: int
    """Bytes."""
    sha256: bytes
    uploaded: float
    """When it was checked there, seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class CapturePlan:
    """Slots of a whole-site capture; slot s happens at ``start + s * delay`` (SHARC ch. 4 and 5)."""

    visit: IntArray
    """Slot of the visit of each page."""
    revisit: IntArray | None = None
    """Slot of the revisit of each page; equal to ``visit`` where a page is visited once."""

    def visit_times(self, start: float, delay: float) -> FloatArray:
        """When each page is visited, in seconds, for a politeness delay in seconds."""
        return start + delay * self.visit.astype(float)

    def revisit_times(self, start: float, delay: float) -> FloatArray:
        """When each page is seen for the last time; the visit itself in a single-visit plan."""
        last = self.visit if self.revisit is None else self.revisit
        return start + delay * last.astype(float)
