"""Reads ARC files, the predecessor of WARC: one line per record, then its bytes (conventions W10).

``URL IP date type length``, a newline and ``length`` bytes, with or without an HTTP header. There are no digests and no
revisits. The line is parsed here rather than by a library, because its length must be bounded and records after damage
must be found again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from recrawl.errors import InputError, RecrawlError
from recrawl.formats.columnar.capture_batches import NO_SIZE, ReadReport, RecordKind, and_rest
from recrawl.formats.warc.archive_folder import ArchivePath
from recrawl.formats.warc.archive_stream import DamageError, MemberStream, OpenArchive, size_of
from recrawl.formats.warc.warc_fields import (
    EARLIEST,
    LATEST,
    MAX_BODY,
    CaptureRows,
    Row,
    begin,
    digests,
    is_legible,
    parse_date,
    rest,
    target_of,
)
from recrawl.formats.warc.warc_reader import OUT_OF_RANGE, opened
from recrawl.model import Capture

_LINE = re.compile(rb"(\S.*?) (\d{1,3}(?:\.\d{1,3}){3}|[\da-fA-F:]+|-) (\S+) (\S*)(?: .*)?")
"""All but the length, which is cut off first: together with it, a line of blanks takes quadratic time."""
_LENGTH = re.compile(rb"-?\d{1,18}")
_FILE_DESCRIPTION = b"filedesc:"
_MAX_LENGTH = 1 << 50


class ArcHeader(NamedTuple):
    """What the line of a record says."""

    target: bytes
    ip: str
    date: str
    mime: str
    length: int


def index_arc(path: ArchivePath, report: ReadReport) -> Iterator[Any]:
    """Record batches with one row for each record of a file, in its order, but for the description of the file.

    A record with an HTTP head is a response, one without a resource. Digests are computed (W5). Offset and length
    are those of the record as stored, or ``NO_SIZE`` where it cannot be read alone because several share one gzip
    stream; that is told once. Memory does not grow with the file.
    """
    with opened(path) as file:
        rows = CaptureRows(path.name)
        full = (rows.take() for found in _rows(file, str(path), report) if rows.add(*found))
        yield from and_rest(full, rows.rest)


def read_arc_capture(path: ArchivePath, offset: int, *, max_body: int = MAX_BODY) -> Capture:
    """The record at an offset, with its bytes as stored; a body above ``max_body`` bytes is cut.

    Raises:
        InputError: there is no record at the offset, or none of its bytes can be read.
    """
    with opened(path) as file:
        source = MemberStream(file, offset)
        try:
            line = _parsed(source.line()) if source.can_begin else None
            time = parse_date(line.date) if line else None
        except DamageError:
            line = time = None
        if line is None or time is None or not 0 <= line.length <= _MAX_LENGTH:
            raise _no_capture(path, offset)
        source.limit(line.length)
        first, head = begin(source.read, line.length)
        body, more = rest(source.read, first[head.length :], max_body)
        if not is_legible(RecordKind.RESPONSE, head, body, line.length):
            raise _no_capture(path, offset)
        cut = "" if not more and len(body) == line.length - head.length else "length"
        url = target_of(line.target)
        return Capture(url, time, head.status, first[: head.length], body, ip=line.ip, truncated=cut)


def _no_capture(path: ArchivePath, offset: int) -> InputError:
    return InputError("no capture begins here", "Index it again.", source=str(path), position=offset)


def _rows(file: OpenArchive, source_name: str, report: ReadReport) -> Iterator[tuple[Row, int, int]]:
    """Each row with its place, past damage: the search goes on where a line or a gzip member can begin."""
    if not size_of(file):
        report.broken("the file is empty", source=source_name, position=0)
        return
    source = MemberStream(file, 0)
    lost = told_shared = begun = False
    while True:
        try:
            if not source.to_next_line():
                if not begun:
                    report.broken("there are only empty lines in the file", source=source_name, position=0)
                return
            begun = True
            at, alone = source.at, source.alone
            found = _one(source, at, source_name, report)
            lost = False
        except DamageError as damage:
            if not lost:
                report.broken(str(damage), source=source_name, position=source.mark)
            lost = begun = True
            if not source.search():
                return
            continue
        if found is None:
            continue
        if not alone and not told_shared:
            told_shared = True
            what = "records share one compressed stream and cannot be read alone"
            report.broken(what, source=source_name, position=at, remedy="Recompress it record by record.")
        yield found, at if alone else NO_SIZE, source.length_from(at) if alone else NO_SIZE


def _one(source: MemberStream, at: int, name: str, report: ReadReport) -> Row | None:
    """The row of the record that begins here; nothing if it is no capture. Leaves the source behind the record."""
    line = _parsed(source.line())
    if line is None:
        raise DamageError("this is not the line of an ARC record")
    if not 0 <= line.length <= _MAX_LENGTH:
        raise DamageError(f"the record cannot have a length of {line.length}")
    source.limit(line.length)
    row = None
    if line.target.startswith(_FILE_DESCRIPTION):
        report.skip("filedesc")
    elif (time := parse_date(line.date)) is None:
        report.broken(f"the date {line.date[:40]!r} is none", source=name, position=at)
    elif not EARLIEST <= time < LATEST:
        report.skip(OUT_OF_RANGE)
    else:
        try:
            row = _row(line, time, source)
        except (DamageError, RecrawlError):
            raise
        except Exception as error:  # noqa: BLE001 - one record must not end the reading of all others
            report.failed(error, source=name, position=at)
    _leave(source, line, at, name, report)
    return row


def _leave(source: MemberStream, line: ArcHeader, at: int, name: str, report: ReadReport) -> None:
    """Go behind the record; if its length is wrong, to where the next one can begin."""
    missing = source.finish()
    if missing or not source.ends_well():
        have = f"ends after {line.length - missing} of" if missing else "does not end after"
        report.broken(f"the record {have} its {line.length} bytes", source=name, position=at)
        report.overran(line.length - missing, source.size, source=name, position=at)
        source.search()


def _row(line: ArcHeader, time: float, source: MemberStream) -> Row:
    first, head = begin(source.read, line.length)
    written = digests(source.read, line.length, first, head)
    kind = RecordKind.RESPONSE if head.length else RecordKind.RESOURCE
    size, digest = line.length - head.length, written[0] if written else ""
    return target_of(line.target), time, kind, head.status, head.mime or line.mime, digest, size


def _parsed(line: bytes) -> ArcHeader | None:
    fields, _, length = line.rstrip().rpartition(b" ")
    found = _LINE.fullmatch(fields)
    if not found or not _LENGTH.fullmatch(length):
        return None
    target, ip, date, mime = found.groups()
    return ArcHeader(target, ip.decode(), date.decode("latin-1"), mime.lower().decode("latin-1"), int(length))
