"""Archived bytes as answers: raw as they came, or as a page that is safe to look at.

Rules of this file:
 1. Archived content never acts on anything. Every answer with archived bytes has a policy that sandboxes it: it runs no
    script, sends no form, and loads nothing but from this archive. It keeps the origin of this server, which is not
    that of the dashboard: with none at all, browsers would not show its links and pictures who is asking, and whoever
    needs a token would see neither. What runs no script can do nothing with an origin.
 2. Raw bytes (``id_``) are the body as the server sent it, without transfer-encoding. Nothing is added.
 3. Headers of the original never become ours, except those without which the body makes no sense; all of them are there
    under ``X-Archive-Orig-``.
 4. A browser is never asked to guess what something is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from recrawl.formats.timemap_write import ArchiveUris
from recrawl.model import Capture
from recrawl.show.timetravel.archive import Archive
from recrawl.show.timetravel.captures import Kept, original
from recrawl.show.timetravel.refusal import RefusalError
from recrawl.store.base import Store
from recrawl.urls import address, surt

POLICY = (
    "sandbox allow-same-origin allow-popups allow-top-navigation-by-user-activation; default-src 'none'; "
    "img-src 'self' data:; media-src 'self' data:; font-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "frame-src 'self'; object-src 'none'; script-src 'none'; form-action 'none'; base-uri 'none'"
)
"""Rule 1."""
SAFETY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Of every answer with archived bytes. Other sites may not show them, nor run them as their own scripts."""
_KEPT = ("content-type", "content-encoding", "content-language", "content-disposition")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_RENAMED = re.compile(r"X-Orig-(?=(?:Transfer-Encoding|Content-Length)\s*$)", re.IGNORECASE)
"""Before the names of headers about chunks that are not stored (conventions W4)."""
_UNWRITABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_MOST_HEADERS = 200
_SAME_TIME = 1.0
"""Seconds by which the time in an index, which may be whole seconds, can differ from that of the record."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""Statuses that lead elsewhere."""
_BODILESS = frozenset({204, 205, 304})
_FRAMES = frozenset({b"transfer-encoding", b"content-encoding", b"content-length"})


class Header(NamedTuple):
    """A header as it came."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Archived:
    """The bytes behind a capture: the head of its own record where it has one, the body of the record it repeats."""

    kept: Kept
    capture: Capture

    @property
    def status(self) -> int:
        """The status of the original; 200 where there is none that could be sent."""
        return self.capture.status if 200 <= self.capture.status <= 599 else 200  # noqa: PLR2004 - HTTP

    def headers(self) -> list[Header]:
        """All headers that can be sent on, in order."""
        found = []
        for line in self.capture.raw_head.split(b"\n")[1:]:
            name, colon, value = line.decode("latin-1").partition(":")
            name = _RENAMED.sub("", name)
            if colon and _TOKEN.fullmatch(name.strip()):
                found.append(Header(name.strip(), _UNWRITABLE.sub(" ", value).strip()))
        return found[:_MOST_HEADERS]


def is_readable(archive: Archive, store: Store, kept: Kept) -> bool:
    """Whether the bytes of a capture are here: its record, and that of the body if it repeats another. Reads heads."""
    return _is_there(archive, kept) and (
        not kept.repeats or ((source := original(store, kept)) is not None and _is_there(archive, source))
    )


def _is_there(archive: Archive, kept: Kept) -> bool:
    """Whether there is a record of this page where the index says."""
    head = archive.bytes_.head(kept.file, kept.offset) if kept.file and kept.offset >= 0 else None
    return head is not None and _is_of(head, kept)


def _is_of(capture: Capture, kept: Kept) -> bool:
    """Whether a record is the one that the index means: a line of an index can name any place of any file."""
    return surt(capture.url) == surt(kept.url) and abs(capture.time - kept.time) <= _SAME_TIME


def archived(archive: Archive, store: Store, kept: Kept) -> Archived:
    """The bytes of a capture, or a refusal that says why there are none."""
    source = original(store, kept) if kept.repeats else kept
    body = archive.bytes_.read(source.file, source.offset) if source and source.file and source.offset >= 0 else None
    if source is None or body is None or not _is_of(body, source):
        raise RefusalError(
            f"{kept.url} was captured at {kept.timestamp}, but the file with its bytes is not in this workspace.", 404
        )
    if not kept.repeats:
        return Archived(kept, body)
    own = archive.bytes_.read(kept.file, kept.offset) if kept.file and kept.offset >= 0 else None
    if own is not None and not _is_of(own, kept):
        own = None
    # A 304 has no head of its own (conventions W7); an identical revisit has (W6).
    if own is not None and own.raw_head and own.status in range(200, 300):
        body = replace(body, raw_head=_head_over(own, body), status=own.status)
    return Archived(kept, body)


def _head_over(own: Capture, body: Capture) -> bytes:
    """The head of a record that repeats another, over the body of that one, which is framed as its own head says."""
    first, *lines = own.raw_head.split(b"\n")
    kept = [line for line in lines if line.partition(b":")[0].strip().lower() not in _FRAMES and line.strip()]
    framed = [f"{name.decode()}: {body.header(name.decode())}\r".encode("latin-1") for name in sorted(_FRAMES)]
    return b"\n".join([first, *kept, *(line for line in framed if not line.endswith(b": \r")), b"\r", b""])


def raw(archive: Archive, found: Archived) -> bytes:
    """The body as it came, without transfer-encoding (rule 2)."""
    return b"" if found.status in _BODILESS else archive.bytes_.payload(found.capture)


def original_headers(found: Archived, uris: ArchiveUris, timestamp: str) -> list[tuple[str, str]]:
    """What an answer says of the original (rule 3). Where it redirects, the way leads into the archive.

    ``timestamp`` is the time there, 14 digits and perhaps a modifier.
    """
    told = [(f"X-Archive-Orig-{name}", value) for name, value in found.headers()]
    seen: set[str] = set()
    for name, value in found.headers():
        low = name.lower()
        if low in _KEPT and low not in seen and value:
            seen.add(low)
            told.append((name, value))
        if low == "location" and found.status in REDIRECTS and low not in seen:
            target = address(value, base=found.kept.url)
            if target is not None:
                seen.add(low)
                told.append(("Location", uris.memento(target.url, timestamp)))
    if "content-type" not in seen:
        told.append(("Content-Type", "application/octet-stream"))
    if found.capture.truncated:
        told.append(("X-Recrawl-Truncated", found.capture.truncated))
    return told
