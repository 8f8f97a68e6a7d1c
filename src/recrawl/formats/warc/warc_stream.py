"""The records of a WARC file in order, past damage. fastwarc parses; this module finds the next record after damage.

Rules of this file:

1. The first bytes decide the compression, never the name.
2. After damage the search goes on at the next bytes that can start a record: a gzip, zstd or lz4 frame, or a version
   line. Invalid data there is skipped silently: one damage is reported once.
3. Memory does not depend on what a file claims: lengths are checked against the file, header blocks are bounded, and
   bodies are never held.

Records whose headers fastwarc does not understand are parsed line by line (WARC 1.1, 4). Field names and the version
are case-insensitive, a value may continue on lines that start with a blank, and values are UTF-8. fastwarc expects
``Content-Length`` in exactly these letters and on one line, else it reads the record as empty. The slow parser is used
only where fastwarc fails, and then up to the next damage: a tool that writes one such record writes more.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Generator, Iterator
from types import ModuleType
from typing import Any

from recrawl.errors import require
from recrawl.formats.columnar.capture_batches import NO_SIZE, ReadReport
from recrawl.formats.warc.archive_stream import GZIP, DamageError, MemberStream, OpenArchive, pread, size_of
from recrawl.formats.warc.warc_fields import MAX_HEADERS, text_of_bytes

VERSION = re.compile(rb"WARC/[01]\.\d{1,2}[ \t]*\r?\n", re.IGNORECASE)
"""The line that begins a record."""
LENGTH = re.compile(rb"\d{1,15}")
"""What a length may look like."""


class RecordFields:
    """The fields of a record, asked for by their names in any case; of a field that is there twice, the first."""

    def __init__(self, lines: list[bytes]) -> None:
        self._values: dict[bytes, bytes] = {}
        name = b""
        for line in lines:
            if line[:1] in (b" ", b"\t"):
                if name:
                    self._values[name] = (self._values[name] + b" " + line.strip()).strip()
                continue
            written, colon, value = line.partition(b":")
            found = written.strip().lower()
            name = found if colon and found not in self._values else b""
            if name:
                self._values[name] = value.strip()

    def get_bytes(self, name: object, default: bytes | None = None) -> bytes | None:
        """The value of a field. ``name`` is text, bytes or one of fastwarc's names."""
        return self._values.get((name if isinstance(name, bytes) else str(name).encode()).lower(), default)

    def get(self, name: object, default: str | None = None) -> str | None:
        """The value of a field as text."""
        value = self.get_bytes(name)
        return default if value is None else text_of_bytes(value)


class LenientRecord:
    """A record at the place where a source stands, with the parts of fastwarc's records that readers ask for.

    Raises:
        OSError: there is none, or it has no length.
    """

    def __init__(self, source: MemberStream, types: Any) -> None:  # noqa: ANN401 - fastwarc's types of records
        if not VERSION.fullmatch(source.line()):
            raise DamageError("this is no line with a version of WARC")
        self.headers = RecordFields(_header_lines(source))
        given = self.headers.get_bytes(b"Content-Length")
        if given is None:
            raise DamageError("the record has no Content-Length")
        if not LENGTH.fullmatch(given):
            raise DamageError(f"the record cannot have a Content-Length of {given[:40].decode('latin-1')}")
        self.content_length = int(given)
        name = (self.headers.get(b"WARC-Type") or "").lower()
        self.record_type = getattr(types, name if name.isalpha() else "", types.unknown)
        self.reader = source
        source.limit(self.content_length)


def _header_lines(source: MemberStream) -> list[bytes]:
    lines: list[bytes] = []
    size = 0
    while line := source.line().rstrip(b"\r\n"):
        size += len(line)
        if size > MAX_HEADERS:
            raise DamageError("the headers are too long for a WARC record")
        lines.append(line)
    return lines


class UnpackedFrame(MemberStream):
    """One frame of zstd or lz4, unpacked by fastwarc; what is beyond the record in it is not of interest."""

    def __init__(self, file: OpenArchive, stream: Any) -> None:  # noqa: ANN401 - a stream of fastwarc over the open file
        self._stream = stream
        super().__init__(file, 0)

    def _load(self) -> bytes:
        data: bytes = self._stream.read(64 << 10)
        self._position += len(data)
        return data


PLAIN = b"WARC/"
_ZSTD, _ZSTD_DICTIONARY, _LZ4 = b"\x28\xb5\x2f\xfd", b"\x5d\x2a\x4d\x18", b"\x04\x22\x4d\x18"
_EXPANSION = {PLAIN: 1 << 20, GZIP: 1_032, _LZ4: 255, _ZSTD: 50_000}
"""How many bytes one stored byte can become at most; a plain record may end early, but not by any factor."""
_BARE_NEWLINE = re.compile(rb"WARC/\S+[ \t]*\n")
_HEADERS_END = re.compile(rb"\r?\n\r?\n")
_RECORD_END = re.compile(rb"(?:\r?\n){2}|\Z")
_BLOCK = 1 << 20
_OVERLAP = 16


def fastwarc() -> ModuleType:
    """The library. It warns of its own old names while it is imported, which is no user's concern."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Use the new Reader and Writer classes", DeprecationWarning)
        return require("fastwarc", "crawl")


class ReadWindow:
    """A file that remembers what was read last, so that looking back a little costs no call to the system."""

    def __init__(self, file: OpenArchive) -> None:
        self._file = file
        self._at = 0
        self._start, self._last, self._before = 0, b"", b""

    def read(self, size: int = -1) -> bytes:
        """As of a file."""
        data: bytes = self._file.read(size)
        self._before, self._last, self._start = self._last, data, self._at
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """As of a file."""
        self._at = self._file.seek(offset, whence)
        self._last = self._before = b""
        return self._at

    def tell(self) -> int:
        """As of a file."""
        return self._at

    def pread(self, size: int, at: int) -> bytes:
        """Bytes at a place, whatever was read last."""
        return pread(self._file, size, at)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return size_of(self._file)

    def has(self, magic: bytes, at: int) -> bool:
        """Whether these bytes stand at this place of the file."""
        place = at - self._start
        if place >= 0:
            found = self._last[place : place + len(magic)]
        else:
            found = self._before[place : place + len(magic) or None] if -place <= len(self._before) else b""
        if len(found) < len(magic):
            found = self.pread(len(magic), at)
        return found == magic


def magic_of(file: OpenArchive) -> bytes:
    """How the file is compressed, as the bytes that begin each of its frames."""
    start = pread(file, 4, 0)
    if start == _ZSTD_DICTIONARY:
        return _ZSTD
    return next((magic for magic in (GZIP, _ZSTD, _LZ4) if start.startswith(magic)), PLAIN)


def records(file: OpenArchive, source: str, report: ReadReport) -> Iterator[tuple[Any, int]]:
    """Each record, as fastwarc gives it, with the position of its frame. A record is only good until the next.

    Positions are those of fastwarc: right where each record is a frame of its own, and else anything.
    """
    if not size_of(file):
        report.broken("the file is empty", source=source, position=0)
        return
    walk = _RecordWalk(file, source, report)
    start: int | None = 0
    while start is not None:
        start = yield from walk.run(start)


def record_at(file: OpenArchive, offset: int) -> Any:  # noqa: ANN401 - fastwarc's record
    """The record at an offset, nothing if none begins there. It is good as long as the file is open."""
    walk = _RecordWalk(file, "", ReadReport())
    if pread(file, len(walk.magic), offset).upper() != walk.magic:
        return None
    try:
        record = walk.first(offset)
        if not 0 < record.content_length <= walk.longest and walk.wrong_length(record):
            return None
    except OSError:
        return None
    return record


class _RecordWalk:
    """One pass over a file."""

    def __init__(self, file: OpenArchive, source: str, report: ReadReport) -> None:
        self.file, self.source, self.report = file, source, report
        self.size = size_of(file)
        self.magic = magic_of(file)
        self.longest = self.size * _EXPANSION[self.magic]
        self.lost = False
        """Whether the search for the next record is on, so that its failures need not be told."""

    def run(self, start: int) -> Generator[tuple[Any, int], None, int | None]:
        """The records from ``start`` to the next damage; returns where to start again, nothing at the end."""
        at: int = start
        before, length, begun, count = -1, 0, False, 0
        fault_profile, longest = self.ends_lines_bare(start), self.longest
        careful = self.magic == PLAIN  # a packed record ends with its frame
        try:
            for record in self.iterator(start, fault_profile=fault_profile):
                at, length = record.stream_pos, record.content_length
                if (careful or not length) and not fault_profile and self._is_misread(record, at):
                    return at
                begun, self.lost = True, False
                if not 0 < length <= longest and (wrong := self.wrong_length(record)):
                    self._tell(wrong, at)
                    return self._search(at + 1)
                if not length and _is_length(record):
                    alone = self.magic == PLAIN or (before < at and self._starts(at))
                    return (yield from self._odd(at) if alone else self._odd(start, passed=count))
                before, count = at, count + 1
                yield record, at
                record.consume()
                done = record.reader.tell()
                if done < length:
                    self._tell(f"the record ends after {done} of its {length} bytes", at)
                    self.report.overran(done, self.size, source=self.source, position=at)
                    return self._search(at + 1)
        except OSError as error:
            return (yield from self._past(error, at, length if begun else None))
        if begun:
            self._tell_tail(at, length)
        elif not self.lost:
            self._tell("there is no WARC record", at)
        return None

    def _tell(self, what: str, position: int) -> None:
        if not self.lost:
            self.lost = True
            self.report.broken(what, source=self.source, position=position)

    def iterator(self, start: int, *, fault_profile: bool) -> Any:  # noqa: ANN401 - fastwarc's iterator
        """The records from ``start`` as fastwarc finds them."""
        self.file.seek(start)
        return fastwarc().ArchiveIterator(
            self.file, parse_http=False, quirks_mode=fault_profile, max_header_len=MAX_HEADERS, buffer_size=256 << 10
        )

    def _is_misread(self, record: Any, at: int) -> bool:  # noqa: ANN401 - fastwarc's record
        """A record with bare line ends among others is taken for one long line: it must be read again."""
        return b"\n" in record.headers.get_bytes(b"WARC-Type", b"\n") and self.ends_lines_bare(at)

    def wrong_length(self, record: Any) -> str:  # noqa: ANN401 - fastwarc's record
        """What is wrong with the length that a record says it has; empty if nothing is."""
        given = record.headers.get_bytes(b"Content-Length")
        if given is None:
            return "the record has no Content-Length"
        if record.content_length > self.longest or not LENGTH.fullmatch(given.strip()):
            return f"the record cannot have a Content-Length of {given[:40].decode('latin-1')}"
        return ""

    def ends_lines_bare(self, start: int) -> bool:
        """Whether the record at ``start`` ends its lines without a carriage return, as some tools wrote."""
        return _BARE_NEWLINE.match(self._beginning(start)) is not None

    def _beginning(self, start: int) -> bytes:
        """The first bytes of what begins at ``start``, unpacked; none if they cannot be."""
        try:
            return bytes(self._unpacked(start).read(64))
        except OSError:
            return b""

    def _unpacked(self, start: int) -> Any:  # noqa: ANN401 - the file, or one of fastwarc's streams
        self.file.seek(start)
        reader = {GZIP: "GzipReader", _ZSTD: "ZstdReader", _LZ4: "Lz4Reader"}.get(self.magic)
        return getattr(fastwarc().stream_io, reader)(self.file) if reader else self.file

    def _starts(self, at: int) -> bool:
        """Whether a frame begins there."""
        return pread(self.file, len(self.magic), at).upper() == self.magic

    # -- where fastwarc fails -------------------------------------------------------------------

    def first(self, at: int) -> Any:  # noqa: ANN401 - fastwarc's record, or one of ours
        """The record at a place, whoever can read it; raises ``OSError`` if nobody can."""
        try:
            record = next(self.iterator(at, fault_profile=False), None)
            if record is None or b"\n" in record.headers.get_bytes(b"WARC-Type", b"\n"):
                record = next(self.iterator(at, fault_profile=self.ends_lines_bare(at)), None)
        except OSError:
            record = None
        if record is not None and (record.content_length or self.wrong_length(record) or not _is_length(record)):
            return record
        return LenientRecord(self._source(at), fastwarc().WarcRecordType)

    def _past(self, error: OSError, at: int, length: int | None) -> Generator[tuple[Any, int], None, int | None]:
        """Go on where fastwarc gave up: behind the record at ``at``, or at that place if no ``length`` is known."""
        place = at if length is None else self._next(at, length)
        if place is None and length is not None:
            self.report.overran(min(length, self.size), self.size, source=self.source, position=at)
        begins = self._beginning(place) if place is not None else b""
        if place is not None and VERSION.match(begins) and not begins.startswith(PLAIN):
            return (yield from self._odd(place))
        self._tell(f"this cannot be read as WARC ({error})", at if place is None else place)
        return self._search(at + 1 if place is None or length is None else place)

    def _source(self, at: int) -> MemberStream:
        if self.magic in (PLAIN, GZIP):
            return MemberStream(self.file, at)
        return UnpackedFrame(self.file, self._unpacked(at))

    def _odd(self, start: int, passed: int = 0) -> Generator[tuple[Any, int], None, int | None]:
        """As :meth:`run`, without fastwarc. The first records, as many as ``passed``, are those given before."""
        types, source = fastwarc().WarcRecordType, self._source(start)
        framed, number = isinstance(source, UnpackedFrame), 0
        whole: tuple[int, int] | None = None
        try:
            while source.to_next_line():
                at = start if framed else source.at
                record = LenientRecord(source, types)
                if record.content_length > self.longest:
                    raise DamageError(f"the record cannot have a Content-Length of {record.content_length}")
                self.lost, number = False, number + 1
                if number > passed:
                    yield record, at
                if missing := source.finish():
                    done = record.content_length - missing
                    self.report.overran(done, self.size, source=self.source, position=at)
                    raise DamageError(f"the record ends after {done} of its {record.content_length} bytes")
                whole = at, record.content_length
                if framed:
                    self.lost = True  # a frame has no length: the next is searched, and not all that looks like one is
                    return self._search(start + 1)
        except OSError as damage:
            at = start if framed else source.mark
            if whole is not None and self.magic == PLAIN and self._next(*whole) is None:
                at = whole[0]  # its length is wrong: what it swallowed is to be found
            self._tell(str(damage), at)
            return self._search(at + 1)
        return None

    def _search(self, position: int) -> int | None:
        """Where the next record may begin, from ``position`` on."""
        pattern = VERSION if self.magic == PLAIN else re.compile(re.escape(self.magic))
        while position < self.size:
            block = pread(self.file, _BLOCK + _OVERLAP, position)
            found = pattern.search(block)
            if found:
                return position + found.start()
            position += _BLOCK
        return None

    def _next(self, at: int, length: int) -> int | None:
        """Where the record at ``at`` ends, with the empty lines behind it; nothing if it does not end as it says.

        Of zstd and lz4, whose frames cannot be measured, nothing is known.
        """
        if self.magic == PLAIN:
            headers = _HEADERS_END.search(pread(self.file, MAX_HEADERS + 4, at))
            end = at + headers.end() + length if headers else at
            found = _RECORD_END.match(pread(self.file, 4, end)) if headers else None
            return end + found.end() if found else None
        if self.magic != GZIP or not self._starts(at):
            return None
        source = MemberStream(self.file, at)
        try:
            while source.line().strip():
                pass
            source.limit(length)
            size = NO_SIZE if source.finish() else source.length_from(at)
        except OSError:
            size = NO_SIZE
        return at + size if size != NO_SIZE else None

    def _tell_tail(self, at: int, length: int) -> None:
        """Fastwarc ends in silence where the last header block is cut: look whether something is left."""
        end = self._next(at, length)
        rest = pread(self.file, _BLOCK, end) if end is not None else b""
        if end is not None and rest.strip(b"\r\n\0"):
            self._tell("what follows the last record is cut or no record", end)


def _is_length(record: Any) -> bool:  # noqa: ANN401 - fastwarc's record
    """Whether a record that comes empty says it is not."""
    return int(record.headers.get_bytes(b"Content-Length")) > 0
