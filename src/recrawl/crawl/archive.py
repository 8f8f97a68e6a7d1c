"""Where the bytes go."""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from threading import Lock
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np

from recrawl.crawl.target import Visited
from recrawl.detect import media_type
from recrawl.formats.warc import WarcPlace, WarcWriter
from recrawl.formats.warc_records import (
    NOT_MODIFIED,
    CaptureRef,
    Record,
    from_base32,
    is_chunked,
    payload_sha1,
    records_of,
    response_ref,
    written,
)
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
_NOTHING: Mapping[str, str] = MappingProxyType({})
_BASE32 = 32
"""Letters of a SHA-1."""


class Archive(Protocol):
    """Keeps every answer. What it returns is written to the store with the visit.

    For each batch: ``keep`` its visits, ``settle``, have the store acknowledge it, and say so with ``acknowledged``.
    """

    @property
    def written(self) -> int:
        """Bytes written so far."""
        ...

    def keep(self, visits: Sequence[Visited]) -> Iterator[list[CaptureRecord]]:
        """Keep the answers of visits; of each what was kept, as soon as it is: nothing if there was no answer."""
        ...

    def settle(self) -> None:
        """Return once all that was kept will survive as long as what the store acknowledges."""
        ...

    def acknowledged(self, captures: Sequence[CaptureRecord]) -> None:
        """The store knows of these captures now. Until then what was kept does not count."""
        ...

    def give_up(self) -> None:
        """What was kept and is not acknowledged never will be."""
        ...

    def keep_aside(self, capture: Capture, hops: str = "") -> None:
        """Keep an answer that belongs to no page: robots.txt, a sitemap. ``hops`` says what it was asked for (L2)."""
        ...

    def keep_document(self, name: str, when: float, document: bytes) -> None:
        """Keep JSON about what is in the archive, under a URN."""
        ...


class NoArchive:
    """Keeps nothing."""

    written = 0

    def keep(self, visits: Sequence[Visited]) -> Iterator[list[CaptureRecord]]:
        """Nothing."""
        return ([] for _ in visits)

    def settle(self) -> None:
        """Nothing."""

    def acknowledged(self, captures: Sequence[CaptureRecord]) -> None:
        """Nothing."""

    def give_up(self) -> None:
        """Nothing."""

    def keep_aside(self, capture: Capture, hops: str = "") -> None:
        """Nothing."""

    def keep_document(self, name: str, when: float, document: bytes) -> None:
        """Nothing."""


class _Entry(NamedTuple):
    """What is to be written of a visit."""

    page: int
    answer: Capture
    mime: str
    digest: bytes
    records: list[Record]


class WarcArchive:
    """Keeps answers in a WARC file; one that repeats what is there already becomes a revisit of it.

    While one thread keeps and settles a batch, another may keep answers aside.
    """

    def __init__(
        self,
        writer: WarcWriter,
        store: Store,
        on_aside: Callable[[Capture, str], None] = lambda _capture, _hops: None,
        read: Callable[[str, int], Capture | None] = lambda _file, _offset: None,
    ) -> None:
        """``on_aside`` is told of all that comes aside, be there an answer or none, and what it was asked for.

        ``read`` reads a capture back by file and offset, if it can be read.
        """
        self._writer = writer
        self._store = store
        self._on_aside = on_aside
        self._read = read
        self._last: OrderedDict[int, CaptureRef | None] = OrderedDict()
        self._aside: OrderedDict[str, CaptureRef] = OrderedDict()
        self._outstanding = 0
        """Captures that the store does not know of yet."""
        self._aside_of: set[tuple[int, float]] = set()
        """Visits that are not acknowledged and whose answers aside are written, by page and time."""
        self._one_writes = Lock()

    @property
    def written(self) -> int:
        """Bytes written so far, of all records."""
        return self._writer.written

    def keep(self, visits: Sequence[Visited]) -> Iterator[list[CaptureRecord]]:
        """Write the answers, many in one go. A 304 to a page we have no copy of repeats nothing and is not kept.

        What was not sent as it is (``Capture.made``) is written whenever it says something new: the answers that it
        was made of are there anyway.
        """
        for visited in visits:
            key = visited.visit.page, visited.visit.time
            if visited.aside and key not in self._aside_of:  # the same visits may be tried again
                for aside in visited.aside:
                    self.keep_aside(aside)
                self._aside_of.add(key)
        answers = [_answer(visited) for visited in visits]
        digests = [
            b"" if answer is None else payload_digest(visited, answer)
            for visited, answer in zip(visits, answers, strict=True)
        ]
        texts = iter(written([digest for digest in digests if digest]))
        entries: list[_Entry | None] = []
        done = 0
        try:
            for visited, answer, digest in zip(visits, answers, digests, strict=True):
                entries.append(None if answer is None else self._entry(visited, answer, digest, next(texts)))
            for kept in self._write(entries):
                done += 1
                yield kept
        finally:
            for entry in entries[done:]:
                if entry is not None:  # it was not written: nothing may repeat it
                    self._last.pop(entry.page, None)

    def _entry(self, visited: Visited, answer: Capture, digest: bytes, text: str) -> _Entry | None:
        """What is to be written of an answer with this payload digest."""
        page, known = visited.target.page, visited.target.known
        answered = known is not None and (known.gone or known.validators != _NEVER)
        original = self._original(page, answer.url, visited.target.url) if answered else None
        if answer.status == NOT_MODIFIED and original is None:
            return None
        if original is not None and original.chunked is None and original.payload_digest == text and is_chunked(answer):
            original = original._replace(chunked=self._is_stored_in_chunks(page))
            self._remember(page, original)
        about = {"via": visited.via, "hopsFromSeed": visited.hops} if visited.via else _NOTHING
        ref, records = records_of(answer, text, original, about)
        if ref == original:
            return _Entry(page, answer, REVISIT, _bytes_of(ref.payload_digest), records)
        if answer.status in _FULL and not answer.made:
            self._remember(page, ref)
        mime = _stated_type(answer) if visited.is_our_fault else visited.judgement.mime
        return _Entry(page, answer, mime, digest, records)

    def _write(self, entries: Sequence[_Entry | None]) -> Iterator[list[CaptureRecord]]:
        """Append what there is to be written; of each what was, as soon as it is."""
        places = self._places([entry.records for entry in entries if entry is not None])
        for entry in entries:
            if entry is None:
                yield []
                continue
            place, answer = next(places), entry.answer
            self._outstanding += 1
            size = len(answer.raw_body)
            yield [CaptureRecord(entry.page, answer.time, answer.status, entry.mime, entry.digest, size, *place)]

    def _places(self, captures: Sequence[Sequence[Record]]) -> Iterator[WarcPlace]:
        """Append records; where the first of each capture is."""
        gone = self._writer.append(captures)
        while captures:
            with self._one_writes:
                self._writer.hold()
                places = next(gone, None)
            if places is None:
                return
            yield from places

    def settle(self) -> None:
        """Wait for the disk, if the writer is durable."""
        self._writer.sync()

    def acknowledged(self, captures: Sequence[CaptureRecord]) -> None:
        """Let full files have their final names once nothing is outstanding."""
        self._outstanding -= len(captures)
        self._aside_of.clear()
        if not self._outstanding:
            self._writer.release()

    def give_up(self) -> None:
        """Leave a file with answers that do not count to the next start, which cuts them off; begin another."""
        self._aside_of.clear()
        if self._outstanding:
            self._writer.abandon()
            self._outstanding = 0
            self._last.clear()

    def keep_aside(self, capture: Capture, hops: str = "") -> None:
        """Write the answer, if there is one; one that repeats what we wrote of this URL before becomes a revisit.

        That it says nothing new (a 304) is no content to keep.
        """
        if capture.raw_head and capture.status != HTTPStatus.NOT_MODIFIED:
            self._write_aside(capture)
        self._on_aside(capture, hops)  # once it is kept: if that fails it is tried again

    def _write_aside(self, capture: Capture) -> None:
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
            full = self._full_responses(page)
            digest = "sha1:" + base64.b32encode(full[-1].digest).decode() if full else ""
            self._remember(page, response_ref(url, full[-1].time, digest) if full else None)
        return self._last[page]

    def _full_responses(self, page: int) -> list[CaptureRecord]:
        return [c for c in self._store.captures(np.array([page])) if c.status in _FULL and c.mime != REVISIT]

    def _is_stored_in_chunks(self, page: int) -> bool:
        """Whether the last full response of the page was written with its chunks: by another crawler, or long ago.

        One that is not there is not closed yet, so it is of our days, or only an index told of it.
        """
        full = self._full_responses(page)
        found = self._read(full[-1].warc_file, full[-1].warc_offset) if full else None
        return found is not None and is_chunked(found)

    def _remember(self, page: int, ref: CaptureRef | None) -> None:
        self._last[page] = ref
        self._last.move_to_end(page)
        if len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)


def _answer(visited: Visited) -> Capture | None:
    """What came, if it is to be kept."""
    capture = visited.capture
    if capture is None or not capture.raw_head or (capture.made and not _is_news(visited)):
        return None
    return capture


def payload_digest(visited: Visited, answer: Capture) -> bytes:
    """The SHA-1 of an answer's payload; of its bytes as they came if our own code failed on them."""
    return answer.body_digest() if visited.is_our_fault else payload_sha1(answer)


def _stated_type(answer: Capture) -> str:
    """The media type that a head states, if it can be read."""
    try:
        return media_type(answer)
    except Exception:  # noqa: BLE001 - our own code failed on this answer before
        return ""


def _is_news(visited: Visited) -> bool:
    """Whether a version that we made is another than the one before."""
    return visited.visit.outcome == Outcome.FETCHED and visited.visit.verdict != Verdict.UNCHANGED


def _bytes_of(payload_digest: str) -> bytes:
    bare = payload_digest.removeprefix("sha1:")
    # What an archive listed as the digest of the original may be anything.
    return from_base32(bare) if len(bare) == _BASE32 and bare[-1] != "=" else base64.b32decode(bare)
