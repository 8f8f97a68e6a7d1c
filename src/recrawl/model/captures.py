"""A capture: what a fetch, or an archive, returned for a URL at a time. It says nothing about change.

Only a detector turns two captures into a verdict, and it can do so again later without fetching.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache

from recrawl.model.values import plain_value


@plain_value
class Capture:
    """One answer, with the bytes as they came over the wire."""

    url: str
    time: float
    """When the request began, seconds since the epoch."""
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
