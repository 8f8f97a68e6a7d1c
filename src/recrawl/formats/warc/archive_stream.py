"""The bytes of an archive file, plain or gzip, with the places where its records (gzip members) start, streamed."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from recrawl.formats.columnar.capture_batches import NO_SIZE

GZIP = b"\x1f\x8b\x08"
"""How a member begins."""
_BLOCK = 1 << 20


class OpenArchive(Protocol):
    """An open archive file, on this machine or elsewhere. One that is elsewhere has ``pread`` and ``size``."""

    def read(self, size: int = -1, /) -> Any:  # noqa: ANN401 - of a raw file, ``None`` is possible
        """The next bytes."""
        ...

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a place."""
        ...


def pread(file: OpenArchive, size: int, at: int) -> bytes:
    """Up to ``size`` bytes at a place of a file; fewer only at its end."""
    read: Callable[[int, int], bytes] | None = getattr(file, "pread", None)
    return os.pread(file.fileno(), size, at) if read is None else read(size, at)  # type: ignore[attr-defined]


def size_of(file: OpenArchive) -> int:
    """Bytes of a file."""
    size: int | None = getattr(file, "size", None)
    return os.fstat(file.fileno()).st_size if size is None else size  # type: ignore[attr-defined]


def members(file: OpenArchive) -> Iterator[tuple[int, int]]:
    """Where each whole gzip member begins and ends.

    What is damaged is passed over. Linear in the file unless it is damaged; memory does not depend on the members.
    """
    position = 0
    while (start := _next_member(file, position)) is not None:
        after = member_end(file, start)
        if after is None:
            position = start + 1
        else:
            yield start, after
            position = after


def _next_member(file: OpenArchive, position: int) -> int | None:
    """Where the next bytes are that can begin a member."""
    while block := pread(file, _BLOCK, position):
        found = block.find(GZIP)
        if found >= 0:
            return position + found
        if len(block) < len(GZIP):
            return None
        position += len(block) - len(GZIP) + 1
    return None


def member_end(file: OpenArchive, start: int) -> int | None:
    """Where the member that begins at ``start`` ends; nothing if it is cut or damaged."""
    inflater, position, data = zlib.decompressobj(31), start, b""
    try:
        while not inflater.eof:
            data = inflater.unconsumed_tail
            if not data:
                data = pread(file, 64 << 10, position)
                position += len(data)
                if not data:
                    return None
            inflater.decompress(data, _BLOCK)
    except zlib.error:
        return None
    return position - len(inflater.unused_data)


MAX_LINE = 64 << 10
"""Bytes of the line that begins a record; a longer one is damage."""
_STREAM_BLOCK = 64 << 10
_LINE = rb"\S[^\n]{0,4000} \d{1,3}(?:\.\d{1,3}){3} \d{12,14} [^\n]{0,200} \d{1,15}\r?\n"
_NEXT_LINE = re.compile(rb"\n(?=[A-Za-z][\w+.-]*:" + _LINE + rb")")
_USUAL_LINE = re.compile(rb"(?:https?|ftp|gopher|dns|whois|filedesc|metadata):" + _LINE)
"""Some tools put no new line between records: then only a URL that is surely whole marks the next."""
_LONGEST = 8 << 10


class DamageError(OSError):
    """What is here cannot be part of an archive."""


class MemberStream:
    """Reads an open file forward, one gzip member at a time, so that it knows at which member a record begins."""

    def __init__(self, file: OpenArchive, start: int) -> None:
        self._file = file
        self._packed = pread(self._file, len(GZIP), 0) == GZIP
        self._begin(start)

    def _begin(self, start: int) -> None:
        self._position = self._frame = self._mark = start  # next byte of the file, current member, current record
        self._input = self._buffer = b""  # packed bytes not yet unpacked; bytes not yet read
        self._inflater: Any = None
        self._passed = 0  # bytes read of the current member
        self._left = 0  # bytes of the current block
        self._last = b""  # byte read

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return size_of(self._file)

    @property
    def at(self) -> int:
        """Where the next byte lies: its own place in a plain file, that of its member in a packed one."""
        return self._frame if self._packed else self._position - len(self._buffer)

    @property
    def mark(self) -> int:
        """Where the current record begins, or what stands in its place."""
        return self._mark

    @property
    def alone(self) -> bool:
        """Whether the next byte can be found again: it is the first of its member, or the file is plain."""
        return not self._packed or self._passed == 0

    @property
    def can_begin(self) -> bool:
        """Whether a record can begin where the source does."""
        if self._packed or self._mark == 0 or pread(self._file, 1, self._mark - 1) == b"\n":
            return True
        return _USUAL_LINE.match(pread(self._file, _LONGEST, self._mark)) is not None

    def length_from(self, at: int) -> int:
        """Stored bytes of the record that began at ``at`` and is read; ``NO_SIZE`` if its member goes on."""
        if not self._packed:
            return self._position - len(self._buffer) - at
        return NO_SIZE if self._inflater or self._buffer else self._position - len(self._input) - at

    def to_next_line(self) -> bool:
        """Go over empty lines; whether anything is left."""
        try:
            while self._buffer or self._fill():
                self._drop_newlines()
                if self._buffer:
                    return True
        finally:
            self._mark = self.at
        if self._inflater is not None and not self._passed:
            raise DamageError("the gzip stream ends before anything was in it")
        return False

    def line(self) -> bytes:
        """The next line, with its end."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > MAX_LINE:
                raise DamageError("a line is too long")
            if not self._fill():
                raise DamageError("the file ends within the line of a record")
        return self._take(end + 1)

    def limit(self, length: int) -> None:
        """A block of N bytes begins here."""
        self._left = length

    def read(self, count: int) -> bytes:
        """Up to N bytes of the block, none at its end; a block never goes beyond its gzip member."""
        if not self._left or (not self._buffer and self._packed and self._inflater is None):
            return b""
        if not self._buffer and not self._fill():
            return b""
        piece = self._take(min(count, self._left))
        self._left -= len(piece)
        return piece

    def finish(self) -> int:
        """Go to the end of the block; how many bytes were missing."""
        while self.read(_STREAM_BLOCK):
            pass
        if self._packed:  # the member may hold no more than the new line: then its end is known
            self._drop_newlines()
            while not self._buffer and self._inflater is not None and self._fill():
                self._drop_newlines()
        return self._left

    def ends_well(self) -> bool:
        """Whether a new line, another record or the end follows the block just read: then its length is right."""
        while not self._packed and len(self._buffer) < _LONGEST and self._fill():
            pass
        if self._packed or self._buffer[:1] in (b"", b"\n", b"\r"):
            return True
        if self._last == b"\n":
            return _NEXT_LINE.match(b"\n" + self._buffer[:_LONGEST]) is not None
        return _USUAL_LINE.match(self._buffer) is not None

    def search(self) -> bool:
        """Go to the next place after the current record where one can begin, or to the end; whether there is one."""
        pattern = re.compile(re.escape(GZIP)) if self._packed else _NEXT_LINE
        start = self._frame + 1 if self._packed else self._mark
        while block := pread(self._file, (1 << 20) + _LONGEST, start):
            found = pattern.search(block)
            if found:
                self._begin(start + (found.start() if self._packed else found.end()))
                return True
            start += 1 << 20
        self._begin(size_of(self._file))
        return False

    def _take(self, count: int) -> bytes:
        piece, self._buffer = self._buffer[:count], self._buffer[count:]
        self._passed += len(piece)
        self._last = piece[-1:] or self._last
        return piece

    def _drop_newlines(self) -> None:
        self._take(len(self._buffer) - len(self._buffer.lstrip(b"\r\n")))

    def _load(self) -> bytes:
        data = pread(self._file, _STREAM_BLOCK, self._position)
        self._position += len(data)
        return data

    def _fill(self) -> bool:
        """Get more bytes to read; whether there are any."""
        if not self._packed:
            data = self._load()
            self._buffer += data
            return bool(data)
        while True:
            self._input = self._input or self._load()
            if not self._input:
                return False
            if self._inflater is None:
                self._begin_member()
            try:
                data = self._inflater.decompress(self._input, _STREAM_BLOCK)
            except zlib.error as error:
                raise DamageError(f"the gzip stream is damaged ({error})") from error
            if self._inflater.eof:
                self._input, self._inflater = self._inflater.unused_data, None
            else:
                self._input = self._inflater.unconsumed_tail
            if data:
                self._buffer += data
                return True

    def _begin_member(self) -> None:
        self._input += self._load() if len(self._input) < len(GZIP) else b""
        self._frame, self._passed = self._position - len(self._input), 0
        if not self._input.startswith(GZIP):
            raise DamageError("this is no gzip stream")
        self._inflater = zlib.decompressobj(31)
