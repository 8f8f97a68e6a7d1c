"""The fields and the block of archived records, whichever tool wrote them; and their rows in record batches.

The block is the HTTP header and the body. Bodies are streamed where possible. A chunked body is digested while it
streams: the same bytes as :func:`recrawl.detect.unchunked`, never held in memory.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b32encode
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from recrawl.detect.body import CHUNK_HEAD, CUT_FRAME, MOST_CHUNKS
from recrawl.errors import InputError, require
from recrawl.formats.columnar.capture_batches import NO_SIZE, NO_STATUS, ROLE, CaptureRole, RecordKind, schema
from recrawl.time import epoch_seconds

if TYPE_CHECKING:
    from hashlib import _Hash


EARLIEST, LATEST = 631_152_000.0, 4_102_444_800.0
"""1990 and 2100, seconds since the epoch: there was no web before, and there is none after."""
_PARTIAL = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::(\d\d))?Z?)?)?)?")
_TO_MINUTES = len("2016-09-19T17:20Z")
_DAY_OF_YEAR = re.compile(r"(\d{4})-(\d\d)-(\d{2,3})(T.*)")
_DIGITS = re.compile(r"\d{12}(?:\d\d)?")
_HEAD_END = re.compile(rb"\n\r?\n")  # patterns that begin with plain text are searched for in no time
_MEDIA_TYPE = re.compile(rb"\ncontent-type[ \t]*:[ \t]*([^;\r\n]*)")
_CHUNKED = re.compile(rb"\ntransfer-encoding[ \t]*:[^\r\n]*chunked")
_STATUS = re.compile(rb"http/[\d.]+[ \t]+(\d{3})(?!\d)")


class ResponseHead(NamedTuple):
    """The first part of an HTTP answer."""

    length: int
    """Bytes up to and with the empty line; 0 if it is no HTTP."""
    status: int
    mime: str
    chunked: bool = False


NO_HEAD = ResponseHead(0, NO_STATUS, "")
_made = tuple.__new__  # half the time of a call of Head, and there is a head in every record


def parse_date(text: str) -> float | None:
    """Seconds since the epoch of a WARC-Date of any precision, or of ARC's 12 or 14 digits; nothing if it is none.

    >>> parse_date("2016-09-19T17:20:24.5Z"), parse_date("2016-09"), parse_date("20160919172024"), parse_date("soon")
    (1474305624.5, 1472688000.0, 1474305624.0, None)
    """
    try:
        if text[10:11] == "T" and len(text) > _TO_MINUTES:
            moment = datetime.fromisoformat(text)
        elif _DIGITS.fullmatch(text):
            moment = datetime.strptime(text.ljust(14, "0"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        elif found := _PARTIAL.fullmatch(text):
            year, month, day, hour, minute = (int(part) if part else None for part in found.groups())
            moment = datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0, tzinfo=UTC)
        else:
            moment = _from_day_of_year(text)
        return epoch_seconds(moment)
    except (ValueError, OverflowError):
        return None


def _from_day_of_year(text: str) -> datetime:
    """A date as the ClueWeb collections write it: the day is counted from New Year, though the month is there too."""
    found = _DAY_OF_YEAR.fullmatch(text)
    if not found:
        raise ValueError(text)
    year, month, day, rest = found.groups()
    when = date(int(year), 1, 1) + timedelta(int(day) - 1)
    if when.month != int(month):
        raise ValueError(text)
    return datetime.fromisoformat(f"{when:%Y-%m-%d}{rest}")


def text_of_bytes(value: bytes) -> str:
    r"""A field as text: UTF-8, or else what it meant byte by byte, so that nothing is lost.

    >>> text_of_bytes(b"http://a/\xc3\xa9"), text_of_bytes(b"http://a/\xe9")
    ('http://a/é', 'http://a/é')
    """
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def target_of(value: bytes) -> str:
    """A target URI without the angle brackets that some versions of wget put around it."""
    text = text_of_bytes(value.strip())
    return text[1:-1] if text[:1] == "<" and text[-1:] == ">" else text


def digest_of(value: bytes | None) -> str:
    """A digest as indexes write it: SHA-1, which is the usual one, goes without its name.

    >>> digest_of(b"SHA1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"), digest_of(b"sha256:00ff"), digest_of(None)
    ('3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ', 'sha256:00ff', '')
    """
    if value is None:
        return ""
    value = value.strip()
    return str(value[5:] if value[:5].lower() == b"sha1:" else value, "latin-1")


def mime_of(value: bytes | None) -> str:
    """A media type without its parameters, in small letters."""
    return value.partition(b";")[0].strip().lower().decode("latin-1") if value else ""


def head_of(block: bytes) -> ResponseHead | None:
    r"""What the beginning of a block says, nothing if the end of the head is not in it.

    >>> head_of(b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=x\r\n\r\nhello")
    ResponseHead(length=55, status=200, mime='text/html', chunked=False)
    """
    if not block.startswith(b"HTTP/"):
        return NO_HEAD
    end = _HEAD_END.search(block)
    return head_up_to(block, end.end()) if end else None


def head_up_to(block: bytes, length: int) -> ResponseHead:
    """The head that is the first ``length`` bytes of a block."""
    head = block[:length].lower()
    mime = _MEDIA_TYPE.search(head)
    usual = head.startswith((b"http/1.1 200 ", b"http/1.0 200 "))
    status = None if usual else _STATUS.match(head)
    return _made(
        ResponseHead,
        (
            length,
            200 if usual else int(status[1]) if status else NO_STATUS,
            mime[1].rstrip().decode("latin-1") if mime else "",
            b"\ntransfer-encoding" in head and _CHUNKED.search(head) is not None,
        ),
    )


ROWS = 16_384
_GIVEN = ("url", "time", "kind", "status", "mime", "digest", "size", "offset", "length")
_CHARACTERS = 16 << 20
"""A batch ends early when its URLs are this long together."""


Row = tuple[str, float, RecordKind, int, str, str, int]
"""URL, time, kind, status, media type, digest and size of a capture: as in the schema, but for its place in the file,
which is known only later. A plain tuple, because millions of them are made."""


class CaptureRows:
    """Captures of one file after another, collected into batches."""

    def __init__(self, file: str = "") -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._roles: list[CaptureRole] = []
        self._characters = 0
        self._files = [(file, 0)]
        """The name of each file, and the row at which its captures begin."""

    def begin(self, file: str) -> None:
        """The next rows are of this file."""
        if self._files[-1][1] == len(self._rows):
            del self._files[-1]
        self._files.append((file, len(self._rows)))

    def add(
        self, row: Row, offset: int = NO_SIZE, length: int = NO_SIZE, role: CaptureRole = CaptureRole.UNKNOWN
    ) -> bool:
        """Take a row; whether it is time to take the batch."""
        rows = self._rows
        rows.append((*row, offset, length))
        self._roles.append(role)
        self._characters += len(row[0])
        return len(rows) >= ROWS or self._characters >= _CHARACTERS

    def rest(self, _damage: InputError | None = None) -> Iterator[Any]:
        """What is there, as the last batch."""
        if self._rows:
            yield self.take()

    def take(self) -> Any:  # noqa: ANN401 - a pyarrow.RecordBatch
        """The rows so far as a batch; starts over."""
        pa = require("pyarrow", "columns")
        named, count = schema(), len(self._rows)
        given = dict(zip(_GIVEN, zip(*self._rows, strict=True), strict=True))
        last = self._files[-1][0]
        if len(self._files) > 1:
            ends = [*(start for _, start in self._files[1:]), count]
            given["file"] = tuple(
                chain.from_iterable(
                    repeat(name, end - start) for (name, start), end in zip(self._files, ends, strict=True)
                )
            )
        columns = [
            pa.array(given[field.name], field.type)
            if field.name in given
            else pa.repeat(pa.scalar(last if field.name == "file" else "", field.type), count)
            for field in named
        ]
        batch = pa.record_batch(columns, schema=named)
        if any(self._roles):
            batch = batch.append_column(ROLE, pa.array(self._roles, pa.uint8()))
        self._rows, self._roles, self._characters, self._files = [], [], 0, [(last, 0)]
        return batch


_LONGEST_FRAME = 64 << 10
"""Bytes between two chunks that are waited for; what is longer are no chunks."""


class ChunkedDecoder:
    """Takes a body piece by piece, in O(1) memory, and gives what is in its chunks to a digest.

    What does not look like chunks, from there on, is taken as it is.
    """

    def __init__(self, digest: _Hash) -> None:
        self._digest = digest
        self._frame = b""
        """What was read behind a chunk and cannot be understood yet."""
        self._left = 0
        """Bytes of the chunk that is open."""
        self._behind = False
        """Whether a chunk has just ended, so that a line end may follow."""
        self._any = self._done = self._raw = False
        self._chunks = 0

    def update(self, piece: bytes) -> None:
        """The next bytes of the body, chunks and all."""
        if self._raw:
            self._digest.update(piece)
            return
        data, at = (self._frame + piece if self._frame else piece), 0
        self._frame = b""
        while at < len(data) and not self._done:
            if self._left:
                part = memoryview(data)[at : at + self._left]
                self._digest.update(part)
                self._left -= len(part)
                at += len(part)
                self._behind = not self._left
                continue
            start = at + self._line_end(data, at)
            found = CHUNK_HEAD.match(data, start)
            if found is None:
                self._wait(data[at:])
                return
            self._behind = False
            self._left, at = int(found[1], 16), found.end()
            self._done = not self._left
            self._any |= bool(self._left)
            self._chunks += 1
            if self._chunks > MOST_CHUNKS and not self._done:
                self._raw = True
                self._digest.update(memoryview(data)[start:])
                return

    def finished(self) -> _Hash:
        """The digest, now that the body is at its end."""
        rest = self._frame[self._line_end(self._frame, 0) :]
        if not self._done and not self._raw and not (self._any and CUT_FRAME.fullmatch(rest)):
            self._digest.update(rest)
        return self._digest

    def _line_end(self, data: bytes, at: int) -> int:
        """How long the end of line behind a chunk is."""
        if not self._behind:
            return 0
        return 2 if data.startswith(b"\r\n", at) else int(data.startswith(b"\n", at))

    def _wait(self, frame: bytes) -> None:
        """Keep what may be a frame when more comes; what is too long for one are no chunks any more."""
        self._frame = frame
        if len(frame) > _LONGEST_FRAME:
            self._digest.update(frame[self._line_end(frame, 0) :])
            self._raw = True


MAX_HEADERS = 256 << 10
"""Bytes of one header block, WARC's or HTTP's; longer ones are damage."""
MAX_BODY = 64 << 20
"""Bytes of a body that are read into memory unless asked for more: as many as a body may unfold to."""
_FIRST = 1024
_PIECE = 1 << 20

Read = Callable[[int], bytes]
"""Returns up to N bytes of a block, none at its end; raises ``OSError`` where it is damaged."""


def begin(read: Read, size: int) -> tuple[bytes, ResponseHead]:
    """The first bytes of a block, at least its whole HTTP head, and what the head says."""
    try:
        block = read(_FIRST)
        head = head_of(block)
        while head is None and len(block) < MAX_HEADERS and (piece := read(_PIECE >> 4)):
            block += piece
            head = head_of(block)
    except OSError:
        return b"", NO_HEAD
    if head is None:  # the answer is all head: cut, or without the empty line at its end
        return block, head_up_to(block, len(block)) if len(block) == size else NO_HEAD
    return block, head


def is_legible(kind: RecordKind, head: ResponseHead, body: bytes, size: int) -> bool:
    """Whether enough of a block of ``size`` bytes could be read to judge it: its HTTP head, or bytes without one."""
    if head.length or not size:
        return True
    return body != b"" and (kind is RecordKind.RESOURCE or not body.startswith(b"HTTP/"))


def rest(read: Read, first: bytes, limit: int) -> tuple[bytes, bool]:
    """What was read of a body and what follows, as far as it goes, up to ``limit`` bytes; whether there is more."""
    parts, left = [first[:limit]], limit - len(first)
    try:
        while left > 0 and (piece := read(min(_PIECE, left))):
            parts.append(piece)
            left -= len(piece)
        more = left < 0 or (left == 0 and bool(read(1)))
    except OSError:
        more = False
    return b"".join(parts), more


def digests(read: Read, size: int, first: bytes, head: ResponseHead, name: str = "sha1") -> list[str]:
    """Ways to write the digest of a payload, the usual one first; none if the payload is cut or damaged.

    ``first`` is what was read of the block of ``size`` bytes. The payload is the body without transfer-encoding
    (W5); since some tools digest the chunks themselves, that is among the ways. Nothing is held but one piece.
    """
    body = first[head.length :]
    whole, done = hashlib.new(name, body, usedforsecurity=False), len(first)
    plain = ChunkedDecoder(hashlib.new(name, usedforsecurity=False)) if head.chunked else None
    if plain:
        plain.update(body)
    try:
        while piece := read(_PIECE):
            done += len(piece)
            whole.update(piece)
            if plain:
                plain.update(piece)
    except OSError:
        return []
    if done < size:
        return []
    found = [plain.finished(), whole] if plain else [whole]
    written = [b32encode(digest.digest()).decode().rstrip("=") for digest in found]
    return written + [digest.hexdigest() for digest in found]
