"""Digest a chunked body as it streams by: the same bytes as :func:`recrawl.detect.unchunked`, never held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recrawl.detect.body import CHUNK_HEAD, CUT_FRAME, MOST_CHUNKS

if TYPE_CHECKING:
    from hashlib import _Hash

_LONGEST_FRAME = 64 << 10
"""Bytes between two chunks that are waited for; what is longer are no chunks."""


class Unchunking:
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
