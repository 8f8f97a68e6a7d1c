"""The records of a WARC file one after the other, past damage. fastwarc parses; this finds the way where it cannot.

Rules of this file:
 1. Compression is told by the first bytes, never by the name.
 2. After damage the search goes on at the next bytes that can begin a record: a gzip, zstd or lz4 frame, or a
    version line. What makes no sense there is passed over silently: one damage is told once.
 3. Memory does not depend on what a file claims: lengths are checked against the file, header blocks are bounded,
    and bodies are never held.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Generator, Iterator
from types import ModuleType
from typing import Any, BinaryIO

from recrawl.errors import require
from recrawl.formats.captures import Report
from recrawl.formats.warc_members import GZIP, member_end
from recrawl.formats.warc_payload import MAX_HEADERS

PLAIN = b"WARC/"
_ZSTD, _ZSTD_DICTIONARY, _LZ4 = b"\x28\xb5\x2f\xfd", b"\x5d\x2a\x4d\x18", b"\x04\x22\x4d\x18"
_EXPANSION = {PLAIN: 1 << 20, GZIP: 1_032, _LZ4: 255, _ZSTD: 50_000}
"""How many bytes one stored byte can become at most; a plain record may end early, but not by any factor."""
_VERSION = re.compile(rb"WARC/[01]\.\d{1,2}[ \t]*\r?\n")
_BARE_NEWLINE = re.compile(rb"WARC/\S+[ \t]*\n")
_HEADERS_END = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"\d{1,15}")
_BLOCK = 1 << 20
_OVERLAP = 16


def fastwarc() -> ModuleType:
    """The library. It warns of its own old names while it is imported, which is no user's concern."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Use the new Reader and Writer classes", DeprecationWarning)
        return require("fastwarc", "crawl")


class Window:
    """A file that remembers what was read last, so that looking back a little costs no call to the system."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._descriptor = file, file.fileno()
        self._at = 0
        self._start, self._last, self._before = 0, b"", b""

    def read(self, size: int = -1) -> bytes:
        """As of a file."""
        data = self._file.read(size)
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

    def fileno(self) -> int:
        """As of a file."""
        return self._descriptor

    def has(self, magic: bytes, at: int) -> bool:
        """Whether these bytes stand at this place of the file."""
        place = at - self._start
        if place >= 0:
            found = self._last[place : place + len(magic)]
        else:
            found = self._before[place : place + len(magic) or None] if -place <= len(self._before) else b""
        if len(found) < len(magic):
            found = os.pread(self._descriptor, len(magic), at)
        return found == magic


def magic_of(file: BinaryIO | Window) -> bytes:
    """How the file is compressed, as the bytes that begin each of its frames."""
    start = os.pread(file.fileno(), 4, 0)
    if start == _ZSTD_DICTIONARY:
        return _ZSTD
    return next((magic for magic in (GZIP, _ZSTD, _LZ4) if start.startswith(magic)), PLAIN)


def records(file: BinaryIO | Window, source: str, report: Report) -> Iterator[tuple[Any, int]]:
    """Each record, as fastwarc gives it, with the position of its frame. A record is only good until the next.

    Positions are those of fastwarc: right where each record is a frame of its own, and else anything.
    """
    if not os.fstat(file.fileno()).st_size:
        report.broken("the file is empty", source=source, position=0)
        return
    walk = _Walk(file, source, report)
    start: int | None = 0
    while start is not None:
        start = yield from walk.run(start)


def record_at(file: BinaryIO | Window, offset: int) -> Any:  # noqa: ANN401 - fastwarc's record
    """The record at an offset, nothing if none begins there. It is good as long as the file is open."""
    walk = _Walk(file, "", Report())
    if os.pread(file.fileno(), len(walk.magic), offset) != walk.magic:
        return None
    try:
        record = next(walk.iterator(offset, quirks=False), None)
        if record is None or b"\n" in record.headers.get_bytes(b"WARC-Type", b"\n"):
            record = next(walk.iterator(offset, quirks=walk.ends_lines_bare(offset)), None)
    except OSError:
        return None
    return record


class _Walk:
    """One pass over a file."""

    def __init__(self, file: BinaryIO | Window, source: str, report: Report) -> None:
        self.file, self.source, self.report = file, source, report
        self.size = os.fstat(file.fileno()).st_size
        self.magic = magic_of(file)
        self.longest = self.size * _EXPANSION[self.magic]
        self.lost = False
        """Whether the search for the next record is on, so that its failures need not be told."""

    def run(self, start: int) -> Generator[tuple[Any, int], None, int | None]:
        """The records from ``start`` to the next damage; returns where to start again, nothing at the end."""
        at: int = start
        length, begun = 0, False
        quirks, longest = self.ends_lines_bare(start), self.longest
        careful = self.magic == PLAIN  # a packed record ends with its frame
        try:
            for record in self.iterator(start, quirks=quirks):
                at, length = record.stream_pos, record.content_length
                if (careful or not length) and not quirks and self._is_misread(record, at):
                    return at
                begun, self.lost = True, False
                if not 0 < length <= longest and (wrong := self._wrong_length(record)):
                    self._tell(wrong, at)
                    return self._search(at, None)
                yield record, at
                if not length and _is_length(record):
                    self._tell("fastwarc does not find the length of this record, so its block is passed over", at)
                    return self._search(at, None)
                record.consume()
                done = record.reader.tell()
                if done < length:
                    self._tell(f"the record ends after {done} of its {length} bytes", at)
                    return self._search(at, None)
        except OSError as error:
            what = "what follows this record" if begun else "this"
            self._tell(f"{what} cannot be read as WARC ({error})", at)
            return self._search(at, length if begun else None)
        if begun:
            self._tell_tail(at, length)
        elif not self.lost:
            self._tell("there is no WARC record", at)
        return None

    def _tell(self, what: str, position: int) -> None:
        if not self.lost:
            self.lost = True
            self.report.broken(what, source=self.source, position=position)

    def iterator(self, start: int, *, quirks: bool) -> Any:  # noqa: ANN401 - fastwarc's iterator
        """The records from ``start`` as fastwarc finds them."""
        self.file.seek(start)
        return fastwarc().ArchiveIterator(
            self.file, parse_http=False, quirks_mode=quirks, max_header_len=MAX_HEADERS, buffer_size=256 << 10
        )

    def _is_misread(self, record: Any, at: int) -> bool:  # noqa: ANN401 - fastwarc's record
        """A record with bare line ends among others is taken for one long line: it must be read again."""
        return b"\n" in record.headers.get_bytes(b"WARC-Type", b"\n") and self.ends_lines_bare(at)

    def _wrong_length(self, record: Any) -> str:  # noqa: ANN401 - fastwarc's record
        given = record.headers.get_bytes(b"Content-Length")
        if given is None:
            return "the record has no Content-Length"
        if record.content_length > self.longest or not _LENGTH.fullmatch(given.strip()):
            return f"the record cannot have a Content-Length of {given[:40].decode('latin-1')}"
        return ""

    def ends_lines_bare(self, start: int) -> bool:
        """Whether the record at ``start`` ends its lines without a carriage return, as some tools wrote."""
        reader = {GZIP: "GzipReader", _ZSTD: "ZstdReader", _LZ4: "Lz4Reader"}.get(self.magic)
        self.file.seek(start)
        try:
            stream = getattr(fastwarc().stream_io, reader)(self.file) if reader else self.file
            return _BARE_NEWLINE.match(stream.read(64)) is not None
        except OSError:
            return False

    def _search(self, at: int, length: int | None) -> int | None:
        """Where the next record may begin after the one at ``at``, whose block has ``length`` bytes if known."""
        position = at + 1
        if self.magic == PLAIN and length is not None:
            position = self._behind(at, length)
        pattern = _VERSION if self.magic == PLAIN else re.compile(re.escape(self.magic))
        while position < self.size:
            block = os.pread(self.file.fileno(), _BLOCK + _OVERLAP, position)
            found = pattern.search(block)
            if found:
                return position + found.start()
            position += _BLOCK
        return None

    def _behind(self, at: int, length: int) -> int:
        """The end of a plain record if it ends where it says, else the end of its headers."""
        headers = os.pread(self.file.fileno(), MAX_HEADERS + 4, at)
        found = _HEADERS_END.search(headers)
        if not found:
            return at + 1
        block = at + found.end()
        ends = os.pread(self.file.fileno(), 4, block + length)
        return block + length if ends.strip(b"\r\n") == b"" else block

    def _tell_tail(self, at: int, length: int) -> None:
        """Fastwarc ends in silence where the last header block is cut: look whether something is left."""
        end: int | None = None
        if self.magic == PLAIN:
            end = self._behind(at, length)
        elif self.magic == GZIP and os.pread(self.file.fileno(), len(GZIP), at) == GZIP:
            end = member_end(self.file.fileno(), at)
        rest = os.pread(self.file.fileno(), _BLOCK, end) if end is not None else b""
        if rest.strip(b"\r\n\0"):
            self._tell("what follows the last record is cut or no record", end or at)


def _is_length(record: Any) -> bool:  # noqa: ANN401 - fastwarc's record
    """Whether a record that comes empty says it is not."""
    return int(record.headers.get_bytes(b"Content-Length")) > 0
