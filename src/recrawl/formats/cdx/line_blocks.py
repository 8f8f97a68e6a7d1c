"""Reads text files of any size as blocks of whole lines, plain or gzipped, with the place of every line.

Columns are cut out of a block at once, so a block is the unit in which indexes are read. Line ends become one byte, and
bytes that are not UTF-8 become ``%XX``, as a browser writes them in a URL. Neither changes the number of lines, so the
place of a line in the file is still known. Positions count the bytes of the text, after gunzipping.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import ReadReport, and_rest

BLOCK = 1 << 22
"""Bytes of text in a block: some 20,000 lines of an index."""
LONGEST_LINE = 1 << 20
"""A longer line is no line of an index; it is reported and passed over without being held."""
NO_CAPTURES = "an index without captures"
"""Why a whole file is passed over."""
_GZIP = b"\x1f\x8b"
_BOM = codecs.BOM_UTF8


@dataclass(frozen=True)
class LineBlock:
    """Some whole lines of a file, each ended by a line feed."""

    text: bytes
    """UTF-8, with ``\\n`` as the only line end."""
    raw: bytes
    """The same lines as the file has them."""
    position: int
    """Where the block begins in the file."""
    source: str
    """The file, as messages name it."""

    def place(self, line: int) -> int:
        """Where the line with this number begins in the file."""
        return self.position + (int(self._ends[line - 1]) + 1 if line else 0)

    def before(self, position: int | None) -> LineBlock | None:
        """The lines before the one that begins at a place of the file; nothing if there are none."""
        size = 0 if position is None else position - self.position
        if not 0 < size <= len(self.raw):
            return None
        return _block(self.raw[:size], self.position, self.source)

    def halves(self) -> list[LineBlock]:
        """The same lines in two blocks; one if there is only one line."""
        middle = self.place(len(self._ends) // 2) - self.position
        parts = ((self.raw[:middle], self.position), (self.raw[middle:], self.position + middle))
        return [_block(raw, position, self.source) for raw, position in parts if raw]

    @cached_property
    def _ends(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(np.frombuffer(self.raw, np.uint8) == ord("\n"))


def read_blocks(
    stream: BinaryIO, source: str, report: ReadReport, *, size: int = BLOCK, longest: int = LONGEST_LINE
) -> Iterator[LineBlock]:
    """The lines of a stream, gunzipped if it is gzip, in blocks of about ``size`` bytes.

    Memory is a few blocks, whatever the length of file or lines. A gzip stream that breaks off or is damaged is
    reported, and all lines before the damage are given.
    """
    yield from blocks_of(pieces_of(stream, source, report, size), source, report, size=size, longest=longest)


def blocks_of(
    pieces: Iterable[bytes], source: str, report: ReadReport, *, size: int = BLOCK, longest: int = LONGEST_LINE
) -> Iterator[LineBlock]:
    """As :func:`read_blocks`, of bytes that are already unpacked."""
    position, rest, first = 0, b"", True
    passing = -1  # where a line began that is too long to hold
    for data in _gathered(pieces, size):
        text = data
        if first:
            first = False
            if text.startswith(_BOM):
                text, position = text[len(_BOM) :], len(_BOM)
        if passing >= 0:
            cut = text.find(b"\n") + 1
            position += cut or len(text)
            if not cut:
                continue
            text, passing = text[cut:], -1
        text = rest + text if rest else text
        cut = text.rfind(b"\n") + 1
        whole, rest = (text, b"") if cut == len(text) else (text[:cut], text[cut:])
        if whole:
            yield from _without_long_lines(_block(whole, position, source), report, longest)
            position += cut
        if len(rest) > longest:
            report.broken(f"a line is longer than {longest:,} bytes", source=source, position=position)
            passing = position
            position += len(rest)
            rest = b""
    if rest:
        yield _block(rest + b"\n", position, source)


def not_empty(blocks: Iterable[LineBlock], report: ReadReport) -> Iterator[LineBlock]:
    """The blocks of an index from the first that is not empty; that there is none is counted."""
    empty = True
    for block in blocks:
        if not empty or block.text.strip():
            empty = False
            yield block
    if empty and not report.bad:
        report.skip(NO_CAPTURES)


def whole_lines(block: LineBlock, convert: Callable[[LineBlock], Any], report: ReadReport) -> Iterator[Any]:
    """A block as the record batch that ``convert`` makes of it, if it has rows.

    A block is read column by column, so its first broken line is not always the first that is found: where ``convert``
    raises, the lines before that one are converted alone, until nothing is broken in them. Where our own code fails,
    the line it fails on is reported with its place, and all others are converted.
    """
    skipped = dict(report.skipped)
    try:
        batch = convert(block)
    except InputError as error:
        report.skipped.clear()
        report.skipped.update(skipped)
        if (before := block.before(error.position)) is not None:
            yield from whole_lines(before, convert, report)
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, one line is the cause
        report.skipped.clear()
        report.skipped.update(skipped)
        if len(halves := block.halves()) == 1:
            report.failed(error, source=block.source, position=block.position)
        else:
            for half in halves:
                yield from whole_lines(half, convert, report)
        return
    if batch.num_rows:
        yield batch


def clean(raw: bytes) -> bytes:
    r"""Lines as UTF-8 that end in ``\n``; bytes that are not UTF-8 are written ``%XX``.

    >>> clean(b"http://a.org/caf\xe9\r\n")
    b'http://a.org/caf%E9\n'
    """
    text = raw.replace(b"\r\n", b"\n") if b"\r" in raw else raw
    if text.isascii():
        return text
    return text.decode("utf-8", errors="recrawl-percent").encode()


def _percent(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(f"%{byte:02X}" for byte in error.object[error.start : error.end]), error.end


codecs.register_error("recrawl-percent", _percent)


def _block(raw: bytes, position: int, source: str) -> LineBlock:
    return LineBlock(clean(raw), raw, position, source)


def _without_long_lines(block: LineBlock, report: ReadReport, longest: int) -> Iterator[LineBlock]:
    """The block, in parts where lines between are too long."""
    half = longest // 2 + 1
    if all(block.raw.find(b"\n", at, at + half) >= 0 for at in range(0, len(block.raw) - half, half)):
        yield block  # no line can be too long where every half of its length has an end
        return
    ends = np.flatnonzero(np.frombuffer(block.raw, np.uint8) == ord("\n")) + 1
    lengths = np.diff(ends, prepend=0)
    begin = 0
    for line in np.flatnonzero(lengths > longest + 1):
        start, end = int(ends[line] - lengths[line]), int(ends[line])
        if start > begin:
            yield _block(block.raw[begin:start], block.position + begin, block.source)
        report.broken(f"a line is longer than {longest:,} bytes", source=block.source, position=block.position + start)
        begin = end
    if begin == 0:
        yield block
    elif begin < len(block.raw):
        yield _block(block.raw[begin:], block.position + begin, block.source)


def _gathered(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Small pieces, as from small gzip members, put together."""
    held: list[bytes] = []
    weight = 0

    def full() -> Iterator[bytes]:
        nonlocal weight
        for piece in pieces:
            held.append(piece)
            weight += len(piece)
            if weight >= size:
                yield b"".join(held)
                held.clear()
                weight = 0

    return and_rest(full(), lambda _damage: [b"".join(held)] if held else [])


def pieces_of(stream: BinaryIO, source: str, report: ReadReport, size: int) -> Iterator[bytes]:
    """The bytes of the file, gunzipped, in pieces of at most ``size``."""
    data = stream.read(max(size, len(_GZIP)))
    if data.startswith(_GZIP):
        yield from _gunzipped(data, stream, source, report, size)
        return
    while data:
        yield data
        data = stream.read(size)


def _gunzipped(data: bytes, stream: BinaryIO, source: str, report: ReadReport, size: int) -> Iterator[bytes]:
    """The text of a gzip file of one or many members; positions in reports are those of the file as stored."""
    position, begun = 0, False  # how far the file is read, and whether we are inside of a member
    member = zlib.decompressobj(wbits=31)
    tail, ended = b"", False  # the unfinished line, and whether its member has ended
    trouble = ""
    while data and not trouble:
        if not begun:
            padded = len(data)
            data = data.lstrip(b"\0")  # some writers fill up between members
            position += padded - len(data)
            if not data:
                data = stream.read(size)
                continue
        try:
            text = member.decompress(data, size)
        except zlib.error as error:
            trouble = f"the gzip data are damaged ({error}); what follows is not read"
            continue
        if text:
            if ended and tail and _are_lines(tail, text):
                text = b"\n" + text
            yield text
            cut = text.rfind(b"\n") + 1
            tail, ended = (text[cut:] if cut else (tail + text)[-LONGEST_LINE:]), False
        left = member.unconsumed_tail or member.unused_data
        position += len(data) - len(left)
        begun = not member.eof
        if member.eof:
            member, ended = zlib.decompressobj(wbits=31), True
        data = left or stream.read(size)
    if trouble or begun:
        report.broken(trouble or "the gzip data break off", source=source, position=position)


def _are_lines(tail: bytes, text: bytes) -> bool:
    """Whether one member of an index ended and the next one begins with a whole line.

    Some writers of ZipNum leave out the last line end of a member, others cut members anywhere. Two parts of one line
    cannot both have eight blanks and more, nor both end an object.
    """
    head = text.partition(b"\n")[0]
    blanks = tail.count(b" ")
    return (blanks >= 8 and blanks == head.count(b" ")) or (tail.endswith(b"}") and head.endswith(b"}"))  # noqa: PLR2004
