"""Writes responses to WARC files, through the ``ResponseArchive`` protocol."""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from threading import Lock
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np

from recrawl.crawl.clock import RealClock
from recrawl.crawl.visit.fault_isolation import FaultReporter
from recrawl.crawl.visit.visit_machine import NeedsConfirmation, Result, VisitDone, VisitTarget
from recrawl.crawl.worker.event_loop import on_large_answer
from recrawl.detect import media_type
from recrawl.errors import StoreError
from recrawl.formats.warc.warc_records import (
    NOT_MODIFIED,
    CaptureRef,
    WarcRecord,
    from_base32,
    is_chunked,
    pack,
    packed_body,
    payload_sha1,
    records_of,
    response_ref,
    written,
)
from recrawl.formats.warc.warc_writer import WarcPlace, WarcWriter
from recrawl.model import Capture, Outcome, Validators, Verdict
from recrawl.store.base import CaptureIndex
from recrawl.store.store_values import CaptureRecord
from recrawl.time import Clock

REVISIT = "warc/revisit"
"""The media type under which indexes list a revisit (conventions X1)."""
SMALL = 64 * 1024
"""Bytes of a body up to which the event loop compresses it when it is written, in half a millisecond; a whole batch of
such bodies takes a tenth of a second or two. A thread compresses larger ones before."""
_REMEMBERED = 100_000
"""Pages whose last full response is in memory; beyond that the store is queried."""
_REMEMBERED_ASIDE = 10_000
"""URLs that are not pages, such as robots.txt, whose last full response is in memory."""
_FULL = range(200, 300)
_NEVER = Validators()
"""Of a page that never answered."""
_NOTHING: Mapping[str, str] = MappingProxyType({})
_BASE32 = 32
"""Characters of a SHA-1."""


class ResponseArchive(Protocol):
    """Stores every response. The returned capture records are written to the store with the visit.

    For each batch: ``write`` its visits, ``sync``, commit to the store, then call ``acknowledged``.
    """

    @property
    def written(self) -> int:
        """Bytes written so far."""
        ...

    def ahead(self, result: Result | Capture) -> Callable[[], None] | None:
        """Work that a thread can do before a result is archived; ``None`` if that is not worth a thread.

        A capture alone is one that belongs to no page. The work may be skipped, or fail: then archiving does it.
        """
        ...

    def write(self, visits: Sequence[VisitDone]) -> Iterator[list[CaptureRecord]]:
        """Write the responses of visits; yield the capture records of each when it is written, empty if it had none."""
        ...

    def sync(self) -> None:
        """Return once everything written is as durable as what the store commits."""
        ...

    def acknowledged(self, captures: Sequence[CaptureRecord]) -> None:
        """Record that the store has these captures. Until then they do not count."""
        ...

    def give_up(self) -> None:
        """Discard what was written and not acknowledged."""
        ...

    def write_auxiliary(self, capture: Capture, hops: str = "") -> None:
        """Write a response that belongs to no page: robots.txt, a sitemap. ``hops`` says why it was requested (L2)."""
        ...

    def write_document(self, name: str, when: float, document: bytes) -> None:
        """Write a JSON document about the archive, under a URN."""
        ...


class NoArchive:
    """Stores nothing."""

    written = 0

    def ahead(self, result: Result | Capture) -> None:
        """Do nothing."""

    def write(self, visits: Sequence[VisitDone]) -> Iterator[list[CaptureRecord]]:
        """Do nothing."""
        return ([] for _ in visits)

    def sync(self) -> None:
        """Do nothing."""

    def acknowledged(self, captures: Sequence[CaptureRecord]) -> None:
        """Do nothing."""

    def give_up(self) -> None:
        """Do nothing."""

    def write_auxiliary(self, capture: Capture, hops: str = "") -> None:
        """Do nothing."""

    def write_document(self, name: str, when: float, document: bytes) -> None:
        """Do nothing."""


class _PendingRecord(NamedTuple):
    """A record to be written for a visit."""

    page: int
    answer: Capture
    mime: str
    digest: bytes
    records: list[WarcRecord]


class WarcArchive:
    """Writes responses to a WARC file; a response that repeats an archived one becomes a revisit record.

    While one thread writes and syncs a batch, another may write responses that belong to no page.
    """

    def __init__(
        self,
        writer: WarcWriter,
        store: CaptureIndex,
        on_auxiliary: Callable[[Capture, str], None] = lambda _capture, _hops: None,
        read: Callable[[str, int], Capture | None] = lambda _file, _offset: None,
    ) -> None:
        """``on_auxiliary`` receives every fetch that belongs to no page, with or without a response, and its hops.

        ``read`` reads a capture back by file and offset, if it can be read.
        """
        self._writer = writer
        self._store = store
        self._on_auxiliary = on_auxiliary
        self._read = read
        self._last: OrderedDict[int, CaptureRef | None] = OrderedDict()
        self._aside: OrderedDict[str, CaptureRef] = OrderedDict()
        self._outstanding = 0
        """Captures that the store does not have yet."""
        self._aside_of: set[tuple[int, float]] = set()
        """Unacknowledged visits whose extra responses are written, by page and time."""
        self._one_writes = Lock()

    @property
    def written(self) -> int:
        """Bytes written so far, over all records."""
        return self._writer.written

    def ahead(self, result: Result | Capture) -> Callable[[], None] | None:
        """Compress responses of more than ``SMALL`` bytes. Neither the event loop nor the writer waits for it."""
        if isinstance(result, Capture):
            return self._pack([], [result])
        if result.capture is None:
            return None
        if isinstance(result, VisitDone):
            first = result.first.capture if result.first else None
            return self._pack([*([first] if first else []), result.capture], result.aside, result.target)
        if isinstance(result, NeedsConfirmation):
            return self._pack([result.capture], [], result.target)
        return self._pack([], [result.capture])

    def _pack(
        self, of_page: Sequence[Capture], beside: Sequence[Capture], target: VisitTarget | None = None
    ) -> Callable[[], None] | None:
        """Work on the responses of a page, in the order in which they will be written, and on others."""
        large: list[tuple[Capture, str | Capture]] = []
        before: Capture | None = None
        """A response of the page that will be the last archived one when the next is written."""
        for capture in of_page:
            if target is not None and _is_large(capture):
                large.append((capture, before or self._repeats(target, capture)))
            if capture.status in _FULL and not capture.made:
                before = capture
        for capture in filter(_is_large, beside):
            known = self._aside.get(capture.url)
            large.append((capture, known.payload_digest if known else ""))
        return partial(_pack_all, large) if large else None

    def _repeats(self, target: VisitTarget, answer: Capture) -> str:
        """The digest of the response that a response of a page may repeat."""
        known = target.known
        answered = known is not None and (known.gone or known.validators != _NEVER)
        original = self._original(target.page, answer.url, target.url) if answered else None
        return original.payload_digest if original else ""

    def write(self, visits: Sequence[VisitDone]) -> Iterator[list[CaptureRecord]]:
        """Write the responses in one go. A 304 to a page without an archived copy repeats nothing and is not written.

        A response that was not sent as it is (``Capture.made``) is written if it is new: the responses it was made of
        are archived anyway.
        """
        for visited in visits:
            key = visited.visit.page, visited.visit.time
            if visited.aside and key not in self._aside_of:  # the same visits may be tried again
                for aside in visited.aside:
                    self.write_auxiliary(aside)
                self._aside_of.add(key)
        answers = [_answer(visited) for visited in visits]
        digests = [
            b"" if answer is None else payload_digest(visited, answer)
            for visited, answer in zip(visits, answers, strict=True)
        ]
        texts = iter(written([digest for digest in digests if digest]))
        entries: list[_PendingRecord | None] = []
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

    def _entry(self, visited: VisitDone, answer: Capture, digest: bytes, text: str) -> _PendingRecord | None:
        """The record to write for a response with this payload digest."""
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
            return _PendingRecord(page, answer, REVISIT, _bytes_of(ref.payload_digest), records)
        if answer.status in _FULL and not answer.made:
            self._remember(page, ref)
        mime = _stated_type(answer) if visited.is_our_fault else visited.judgement.mime
        return _PendingRecord(page, answer, mime, digest, records)

    def _write(self, entries: Sequence[_PendingRecord | None]) -> Iterator[list[CaptureRecord]]:
        """Append records; yield the capture records of each visit when they are written."""
        places = self._places([entry.records for entry in entries if entry is not None])
        for entry in entries:
            if entry is None:
                yield []
                continue
            place, answer = next(places), entry.answer
            self._outstanding += 1
            size = len(answer.raw_body)
            yield [CaptureRecord(entry.page, answer.time, answer.status, entry.mime, entry.digest, size, *place)]

    def _places(self, captures: Sequence[Sequence[WarcRecord]]) -> Iterator[WarcPlace]:
        """Append records; yield the place of the first record of each capture."""
        gone = self._writer.append(captures)
        while captures:
            with self._one_writes:
                self._writer.hold()
                places = next(gone, None)
            if places is None:
                return
            yield from places

    def sync(self) -> None:
        """Sync the file to disk, if the writer is durable."""
        self._writer.sync()

    def acknowledged(self, captures: Sequence[CaptureRecord]) -> None:
        """Give full files their final names once nothing is outstanding."""
        self._outstanding -= len(captures)
        self._aside_of.clear()
        if not self._outstanding:
            self._writer.release()

    def give_up(self) -> None:
        """Leave a file with unacknowledged records to recovery, which cuts them off; start another file."""
        self._aside_of.clear()
        if self._outstanding:
            self._writer.abandon()
            self._outstanding = 0
            self._last.clear()

    def write_auxiliary(self, capture: Capture, hops: str = "") -> None:
        """Write the response, if there is one; one that repeats an earlier one of this URL becomes a revisit record.

        A 304 has no content to write.
        """
        if capture.raw_head and capture.status != HTTPStatus.NOT_MODIFIED:
            self._write_aside(capture)
        self._on_auxiliary(capture, hops)  # after it is written: if writing fails, it is repeated

    def _write_aside(self, capture: Capture) -> None:
        with self._one_writes:
            if capture.status not in _FULL:
                self._writer.write(capture, auxiliary=True)
                return
            original = self._aside.get(capture.url)
            self._aside[capture.url] = self._writer.write(capture, revisit_of=original, auxiliary=True).ref
            self._aside.move_to_end(capture.url)
            if len(self._aside) > _REMEMBERED_ASIDE:
                self._aside.popitem(last=False)

    def write_document(self, name: str, when: float, document: bytes) -> None:
        """Write it as a metadata record."""
        self._writer.write_document(name, when, document)

    def _original(self, page: int, url: str, page_url: str) -> CaptureRef | None:
        """The last full response of the page, if it was archived under this URL.

        If the page redirected to another URL, only responses written by this process are known.
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
        """Whether the last full response of the page was written with chunked encoding, as other crawlers do.

        A file that is missing is either not closed yet, so ours, or known only from an index.
        """
        full = self._full_responses(page)
        found = self._read(full[-1].warc_file, full[-1].warc_offset) if full else None
        return found is not None and is_chunked(found)

    def _remember(self, page: int, ref: CaptureRef | None) -> None:
        self._last[page] = ref
        self._last.move_to_end(page)
        if len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)


async def pack_ahead(archive: ResponseArchive, result: Result | Capture, clock: Clock, faults: FaultReporter) -> None:
    """Do in a thread what takes long before a result can be archived; if it fails, archiving does it.

    Virtual time does not advance while a thread runs, so nothing is done ahead on it.
    """
    if not isinstance(clock, RealClock):
        return
    with suppress(StoreError), faults.contained():  # recording meets the same failure
        if (work := archive.ahead(result)) is not None:
            await on_large_answer(work)


def _is_large(capture: Capture) -> bool:
    """Whether preparing the records of a response needs a thread."""
    return len(capture.raw_body) > SMALL and bool(capture.raw_head) and packed_body(capture) is None


def _pack_all(large: Sequence[tuple[Capture, str | Capture]]) -> None:
    """Compress responses, each with the digest of the one that it may repeat, or that response itself."""
    for capture, repeats in large:
        pack(capture, repeats if isinstance(repeats, str) else written([payload_sha1(repeats)])[0])


def _answer(visited: VisitDone) -> Capture | None:
    """The response of a visit, if it is to be archived."""
    capture = visited.capture
    if capture is None or not capture.raw_head or (capture.made and not _is_news(visited)):
        return None
    return capture


def payload_digest(visited: VisitDone, answer: Capture) -> bytes:
    """The SHA-1 of a response's payload; of the raw bytes if our own code failed on them."""
    return answer.body_digest() if visited.is_our_fault else payload_sha1(answer)


def _stated_type(answer: Capture) -> str:
    """The media type in a header, if it can be read."""
    try:
        return media_type(answer)
    except Exception:  # noqa: BLE001 - our own code failed on this response before
        return ""


def _is_news(visited: VisitDone) -> bool:
    """Whether a version that we made differs from the one before."""
    return visited.visit.outcome == Outcome.FETCHED and visited.visit.verdict != Verdict.UNCHANGED


def _bytes_of(payload_digest: str) -> bytes:
    bare = payload_digest.removeprefix("sha1:")
    # An archive may list anything as the digest of the original.
    return from_base32(bare) if len(bare) == _BASE32 and bare[-1] != "=" else base64.b32decode(bare)
