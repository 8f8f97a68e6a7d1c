"""The block of an archived record: its HTTP header, its body, its digest. Bodies are streamed where possible.

A chunked body is digested while it streams: the same bytes as :func:`recrawl.detect.unchunked`, never held in memory.
"""

from __future__ import annotations

import hashlib
from base64 import b32encode
from collections.abc import Callable
from typing import TYPE_CHECKING

from recrawl.detect.body import CHUNK_HEAD, CUT_FRAME, MOST_CHUNKS
from recrawl.formats.columnar.capture_batches import RecordKind
from recrawl.formats.warc.warc_fields import NO_HEAD, ResponseHead, head_of, head_up_to

if TYPE_CHECKING:
    from hashlib import _Hash


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
"""Gives up to so many bytes of a block, none at its end; raises ``OSError`` where it is damaged."""


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
