"""Reads WARC files of all versions and compressions: their captures, and single records (conventions W10)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from io import FileIO
from typing import Any

from recrawl.errors import InputError, RecrawlError
from recrawl.formats.columnar.capture_batches import NO_SIZE, CaptureRole, ReadReport, RecordKind, and_rest
from recrawl.formats.warc.archive_folder import ArchivePath, RangeFile
from recrawl.formats.warc.warc_fields import (
    EARLIEST,
    LATEST,
    MAX_BODY,
    NO_HEAD,
    CaptureRows,
    ResponseHead,
    Row,
    begin,
    digest_of,
    digests,
    is_legible,
    mime_of,
    parse_date,
    rest,
    target_of,
)
from recrawl.formats.warc.warc_records import AUXILIARY, VISITS_FIELD, VISITS_VALUE
from recrawl.formats.warc.warc_stream import PLAIN, ReadWindow, fastwarc, magic_of, record_at, records
from recrawl.model import Capture

OUT_OF_RANGE = "dated before 1990 or after 2100"
_NOT_MODIFIED = 304
_TYPES = {"response": RecordKind.RESPONSE, "revisit": RecordKind.REVISIT_IDENTICAL, "resource": RecordKind.RESOURCE}


def index_warc(
    path: ArchivePath, report: ReadReport, *, verify: bool = False, rows: CaptureRows | None = None
) -> Iterator[Any]:
    """Record batches with one row for each response, revisit and resource of a file, in its order.

    All else is counted as skipped by its type. A payload digest that is missing is computed, as W5 says; with
    ``verify`` those given are computed too and wrong ones told. Offset and length are those of the record as
    stored, or ``NO_SIZE`` where it cannot be read alone because several share one gzip stream; that is told once.
    Memory does not grow with the file. ``rows`` of several files may be collected together: then full batches come
    from here, and the last rows from :meth:`CaptureRows.rest`.
    """
    with opened(path) as file:
        window = ReadWindow(file)
        index = _RowBuilder(window, path, report, rows, verify=verify)
        yield from and_rest(_batches(index, records(window, str(path), report)), index.rest)


def _batches(index: _RowBuilder, found: Iterator[tuple[Any, int]]) -> Iterator[Any]:
    for record, at in found:
        if index.waiting is not None and index.pending(at):
            yield index.rows.take()
        index.see(record, at)


def read_capture(path: ArchivePath, offset: int, *, max_body: int = MAX_BODY) -> Capture:
    """The response, revisit or resource at an offset, with its bytes as stored; a revisit has no body.

    A body above ``max_body`` bytes, or one that the file does not hold to its end, is cut and ``truncated`` says so.

    Raises:
        InputError: there is no such record at the offset, or none of its bytes can be read: damage is no empty page.
    """
    report = ReadReport(strict=True)
    with opened(path) as file:
        window = ReadWindow(file)
        record = record_at(window, offset)
        row = (
            _RowBuilder(window, path, report, None, verify=False).row(record, offset, digest=False) if record else None
        )
        capture = _capture(record, row, max_body) if record is not None and row is not None else None
        if capture is None:
            raise InputError("no capture begins here", "Index the file again.", source=str(path), position=offset)
        return capture


def opened(path: ArchivePath) -> RangeFile | FileIO:
    """The file, or an error with its name."""
    try:
        return path.open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", "Check the path.", source=str(path)) from error


def _capture(record: Any, row: tuple[Row, bytes, ResponseHead], max_body: int) -> Capture | None:  # noqa: ANN401 - a record
    """The record that a row was made of, with what is left of its bytes; nothing if not even its head is."""
    (url, time, kind, status, *_), first, head = row
    body, more = rest(record.reader.read, first[head.length :], max_body)
    if not is_legible(kind, head, body, record.content_length):
        return None
    cut = "" if not more and len(body) == record.content_length - head.length else "length"
    given = record.headers.get("WARC-Truncated") or ""
    is_revisit = kind in (RecordKind.REVISIT_IDENTICAL, RecordKind.REVISIT_NOT_MODIFIED)
    made = kind == RecordKind.RESOURCE
    return Capture(
        url,
        time,
        200 if made else status,
        _named(record) if made else first[: head.length],
        b"" if is_revisit else body,
        ip=record.headers.get("WARC-IP-Address") or "",
        truncated="" if is_revisit else cut or given,
        protocol="h2" if record.headers.get("WARC-Protocol") == "h2" else "",
        made=made,
    )


def _named(record: Any) -> bytes:  # noqa: ANN401 - fastwarc's record
    """A head for a resource, which has none: its media type, as the record names it."""
    media_type = record.headers.get("Content-Type") or "application/octet-stream"
    return f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n\r\n".encode()


class _RowBuilder:
    """Turns records into rows. A row waits for the record behind it, which tells how long it is."""

    def __init__(
        self, file: ReadWindow, path: ArchivePath, report: ReadReport, rows: CaptureRows | None, *, verify: bool
    ) -> None:
        self.rows = CaptureRows() if rows is None else rows
        self.rows.begin(path.name)
        self._alone = rows is None
        self._report, self._source, self._verify = report, str(path), verify
        self._file, self._magic, self._size = file, magic_of(file), file.size
        self.waiting: Row | None = None
        """The row of the last record, if it is a capture."""
        self._role = CaptureRole.UNKNOWN
        """Of the row that waits."""
        self._tells_visits = False
        """Whether the last ``warcinfo`` says that captures are visits, unless they are marked."""
        self._at = self._before = NO_SIZE
        self._told = False
        library = fastwarc()
        self._kinds = {int(getattr(library.WarcRecordType, name)): kind for name, kind in _TYPES.items()}
        self._names = {int(getattr(library.WarcRecordType, name)): name for name in _SKIPPED}
        self._response = library.WarcRecordType.response
        names = library.WarcHeader  # asking by these is five times as quick as by text
        self._fields = names.WARC_TARGET_URI, names.WARC_DATE, names.CONTENT_TYPE, names.WARC_PAYLOAD_DIGEST

    def see(self, record: Any, at: int) -> None:  # noqa: ANN401 - fastwarc's record
        """Take a record; the row it makes waits."""
        self._before, self._at = self._at, at
        what = record.record_type
        name = None if what is self._response else self._names.get(int(what))
        if name is None:
            try:
                found = self.row(record, at)
            except RecrawlError:
                raise
            except Exception as error:  # noqa: BLE001 - one record must not end the reading of all others
                self._report.failed(error, source=self._source, position=at)
                found = None
            self.waiting = found[0] if found else None
            if self._tells_visits:
                self._role = CaptureRole.AUXILIARY if record.headers.get(AUXILIARY) else CaptureRole.VISIT
        else:
            if name == "warcinfo":
                self._tells_visits = _VISITS in record.reader.read(_LONGEST_INFO)
                self._role = CaptureRole.UNKNOWN
            skipped = self._report.skipped
            skipped[name] = skipped.get(name, 0) + 1

    def pending(self, following: int | None) -> bool:
        """Place the row that waits, now that the position of the record behind it is known; whether a batch is full."""
        row = self.waiting
        if row is None:
            return False
        self.waiting, at = None, self._at
        end = self._size if following is None else following
        alone = self._before < at < end and self._file.has(self._magic, at)
        if alone or self._magic == PLAIN:
            return self.rows.add(row, at, end - at, self._role)
        if not self._told:
            self._told = True
            what = "records share one compressed stream and cannot be read alone"
            self._report.broken(
                what, source=self._source, position=max(self._before, 0), remedy="Recompress it record by record."
            )
        return self.rows.add(row, role=self._role)

    def rest(self, damage: InputError | None) -> Iterator[Any]:
        """The last rows. Where reading ends with damage, one that waits is whole if that lies behind it."""
        end = None if damage is None else damage.position or 0
        if end is None or end > self._at:
            self.pending(end)
        if self._alone:
            yield from self.rows.rest()

    def row(self, record: Any, at: int, *, digest: bool = True) -> tuple[Row, bytes, ResponseHead] | None:  # noqa: ANN401
        """The row of a record, the bytes of its block read so far and its HTTP head; nothing if it is no capture."""
        kind = RecordKind.RESPONSE if record.record_type is self._response else self._kind(record, at)
        if kind is None:
            return None
        headers, (named_target, named_date, named_type, named_digest) = record.headers, self._fields
        target, date = headers.get_bytes(named_target), headers.get(named_date)
        if not target:
            self._broken("the record has no WARC-Target-URI", at)
            return None
        time = parse_date(date.strip()) if date else None
        if time is None:
            self._broken(f"the WARC-Date {(date or '')[:40]!r} is no date", at)
            return None
        if not EARLIEST <= time < LATEST:
            self._report.skip(OUT_OF_RANGE)
            return None
        first, head = (
            begin(record.reader.read, record.content_length) if kind is not RecordKind.RESOURCE else (b"", NO_HEAD)
        )
        status, mime, size = head.status, head.mime, record.content_length - head.length
        if not head.length:
            content_type = mime_of(headers.get_bytes(named_type))
            mime = "" if content_type == "application/http" else content_type
        given = digest_of(headers.get_bytes(named_digest))
        if kind is RecordKind.REVISIT_IDENTICAL:
            size = NO_SIZE
            if _says_not_modified(headers.get("WARC-Profile"), status):
                kind, status = RecordKind.REVISIT_NOT_MODIFIED, status or _NOT_MODIFIED
        elif digest and (not given or self._verify):
            given = self._digest(record, first, head, given, at)
        return (target_of(target), time, kind, status, mime, given, size), first, head

    def _kind(self, record: Any, at: int) -> RecordKind | None:  # noqa: ANN401 - fastwarc's record
        """What kind of capture it is; what is none is counted."""
        kind = self._kinds.get(int(record.record_type))
        if kind is not None:
            return kind
        name = (record.headers.get("WARC-Type") or "").strip().lower()  # fastwarc knows the types in small letters only
        if not name:
            self._broken("the record has no WARC-Type", at)
        elif name not in _TYPES:
            self._report.skip(name if name in _SKIPPED else "a record of no known type")
        return _TYPES.get(name)

    def _digest(self, record: Any, first: bytes, head: ResponseHead, given: str, at: int) -> str:  # noqa: ANN401
        """The payload digest, computed; one that was given stays, and is told if it is another."""
        name, _, value = given.rpartition(":")
        if name and name not in hashlib.algorithms_available:
            return given
        found = digests(record.reader.read, record.content_length, first, head, name or "sha1")
        if not given:
            return found[0] if found else ""
        if found and value.upper().rstrip("=") not in {text.upper() for text in found}:
            self._broken(f"the payload digest is {found[0]}, the record says {value[:80]}", at)
        return given

    def _broken(self, what: str, at: int) -> None:
        self._report.broken(what, source=self._source, position=at)


_VISITS = f"{VISITS_FIELD}: {VISITS_VALUE}\r\n".encode()
_LONGEST_INFO = 64 << 10
"""Bytes of a ``warcinfo`` record that are read."""
_SKIPPED = ("warcinfo", "request", "metadata", "conversion", "continuation")


def _says_not_modified(profile: str | None, status: int) -> bool:
    """Versions 1.0 and 1.1 have different addresses for the profile; both end alike."""
    if profile is None:
        return status == _NOT_MODIFIED
    return profile.strip().rstrip("/").lower().endswith("server-not-modified")
