"""Where the bytes go."""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Protocol

import numpy as np

from recrawl.crawl.target import Visited
from recrawl.formats.warc import WarcWriter
from recrawl.formats.warc_records import NOT_MODIFIED, CaptureRef, from_base32, payload_sha1, response_ref
from recrawl.model import Capture, Outcome, Validators, Verdict
from recrawl.store.base import Store
from recrawl.store.values import CaptureRecord

REVISIT = "warc/revisit"
"""The media type under which indexes list a revisit (conventions X1)."""
_REMEMBERED = 100_000
"""Pages whose last full response is kept in memory; beyond that the store is asked."""
_REMEMBERED_ASIDE = 10_000
"""URLs beside the pages, such as robots.txt, whose last full response is kept in memory."""
_FULL = range(200, 300)
_NEVER = Validators()
"""Of a page that never answered."""
_BASE32 = 32
"""Letters of a SHA-1."""


class Archive(Protocol):
    """Keeps every answer. What it returns is written to the store with the visit.

    For each batch: ``keep`` every visit, ``settle``, have the store acknowledge it, and say so with ``acknowledged``.
    """

    @property
    def written(self) -> int:
        """Bytes written so far."""
        ...

    def keep(self, visited: Visited) -> list[CaptureRecord]:
        """Keep the answer of a visit; nothing if there was none."""
        ...

    def settle(self) -> None:
        """Return once all that was kept will survive as long as what the store acknowledges."""
        ...

    def acknowledged(self, captures: Sequence[CaptureRecord]) -> None:
        """The store knows of these captures now. Until then what was kept does not count."""
        ...

    def keep_aside(self, capture: Capture) -> None:
        """Keep an answer that belongs to no page: robots.txt, a sitemap."""
        ...

    def keep_document(self, name: str, when: float, document: bytes) -> None:
        """Keep JSON about what is in the archive, under a URN."""
        ...


class NoArchive:
    """Keeps nothing."""

    written = 0

    def keep(self, visited: Visited) -> list[CaptureRecord]:  # noqa: ARG002 - nothing is kept
        """Nothing."""
        return []

    def settle(self) -> None:
        """Nothing."""

    def acknowledged(self, captures: Sequence[CaptureRecord]) -> None:
        """Nothing."""

    def keep_aside(self, capture: Capture) -> None:
        """Nothing."""

    def keep_document(self, name: str, when: float, document: bytes) -> None:
        """Nothing."""


class WarcArchive:
    """Keeps answers in a WARC file; one that repeats what is there already becomes a revisit of it.

    While one thread keeps and settles a batch, another may keep answers aside.
    """

    def __init__(self, writer: WarcWriter, store: Store) -> None:
        self._writer = writer
        self._store = store
        self._last: OrderedDict[int, CaptureRef | None] = OrderedDict()
        self._aside: OrderedDict[str, CaptureRef] = OrderedDict()
        self._outstanding = 0
        """Captures that the store does not know of yet."""
        self._one_writes = Lock()

    @property
    def written(self) -> int:
        """Bytes written so far, of all records."""
        return self._writer.written

    def keep(self, visited: Visited) -> list[CaptureRecord]:
        """Write the answer. A 304 to a page we have no copy of repeats nothing and is not kept.

        What was not sent as it is (``Capture.made``) is written whenever it says something new: the answers that it
        was made of are there anyway.
        """
        for answer in visited.aside:
            self.keep_aside(answer)
        capture, page = visited.capture, visited.target.page
        if capture is None or not capture.raw_head or (capture.made and not _is_news(visited)):
            return []
        known = visited.target.known
        answered = known is not None and (known.gone or known.validators != _NEVER)
        original = self._original(page, capture.url, visited.target.url) if answered else None
        if capture.status == NOT_MODIFIED and original is None:
            return []
        about = {"via": visited.via, "hopsFromSeed": visited.hops} if visited.via else {}
        with self._one_writes:
            self._writer.hold()
            place = self._writer.write(capture, revisit_of=original, about=about)
        self._outstanding += 1
        repeats = place.ref == original
        if not repeats and capture.status in _FULL and not capture.made:
            self._remember(page, place.ref)
        digest = _bytes_of(place.ref.payload_digest) if repeats else payload_sha1(capture)
        mime = REVISIT if repeats else visited.judgement.mime
        size = len(capture.raw_body)
        return [
            CaptureRecord(
                page, capture.time, capture.status, mime, digest, size, place.file, place.offset, place.length
            )
        ]

    def settle(self) -> None:
        """Wait for the disk, if the writer is durable."""
        self._writer.sync()

    def acknowledged(self, captures: Sequence[CaptureRecord]) -> None:
        """Let full files have their final names once nothing is outstanding."""
        self._outstanding -= len(captures)
        if not self._outstanding:
            self._writer.release()

    def keep_aside(self, capture: Capture) -> None:
        """Write the answer, if there is one; one that repeats what we wrote of this URL before becomes a revisit."""
        if not capture.raw_head:
            return
        with self._one_writes:
            if capture.status not in _FULL:
                self._writer.write(capture)
                return
            self._aside[capture.url] = self._writer.write(capture, revisit_of=self._aside.get(capture.url)).ref
            self._aside.move_to_end(capture.url)
            if len(self._aside) > _REMEMBERED_ASIDE:
                self._aside.popitem(last=False)

    def keep_document(self, name: str, when: float, document: bytes) -> None:
        """Write it as a metadata record."""
        self._writer.write_document(name, when, document)

    def _original(self, page: int, url: str, page_url: str) -> CaptureRef | None:
        """The last full response of the page, if it was archived under this URL.

        Where the page led to another URL only those are known that were written since we began.
        """
        if url != page_url:
            last = self._last.get(page)
            return last if last and last.url == url else None
        if page not in self._last:
            full = [c for c in self._store.captures(np.array([page])) if c.status in _FULL and c.mime != REVISIT]
            digest = "sha1:" + base64.b32encode(full[-1].digest).decode() if full else ""
            self._remember(page, response_ref(url, full[-1].time, digest) if full else None)
        return self._last[page]

    def _remember(self, page: int, ref: CaptureRef | None) -> None:
        self._last[page] = ref
        self._last.move_to_end(page)
        if len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)


def _is_news(visited: Visited) -> bool:
    """Whether a version that we made is another than the one before."""
    return visited.visit.outcome == Outcome.FETCHED and visited.visit.verdict != Verdict.UNCHANGED


def _bytes_of(payload_digest: str) -> bytes:
    bare = payload_digest.removeprefix("sha1:")
    # What an archive listed as the digest of the original may be anything.
    return from_base32(bare) if len(bare) == _BASE32 and bare[-1] != "=" else base64.b32decode(bare)
