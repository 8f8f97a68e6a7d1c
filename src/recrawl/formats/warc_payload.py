"""The block of an archived record: its HTTP head, its body, its digest. Bodies are streamed where they can be."""

from __future__ import annotations

import hashlib
from base64 import b32encode
from collections.abc import Callable

from recrawl.formats.captures import RecordKind
from recrawl.formats.unchunking import Unchunking
from recrawl.formats.warc_fields import NO_HEAD, Head, head_of, head_up_to

MAX_HEADERS = 256 << 10
"""Bytes of one header block, WARC's or HTTP's; longer ones are damage."""
MAX_BODY = 64 << 20
"""Bytes of a body that are read into memory unless asked for more: as many as a body may unfold to."""
_FIRST = 1024
_PIECE = 1 << 20

Read = Callable[[int], bytes]
"""Gives up to so many bytes of a block, none at its end; raises ``OSError`` where it is damaged."""


def begin(read: Read, size: int) -> tuple[bytes, Head]:
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


def is_legible(kind: RecordKind, head: Head, body: bytes, size: int) -> bool:
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


def digests(read: Read, size: int, first: bytes, head: Head, name: str = "sha1") -> list[str]:
    """Ways to write the digest of a payload, the usual one first; none if the payload is cut or damaged.

    ``first`` is what was read of the block of ``size`` bytes. The payload is the body without transfer-encoding
    (W5); since some tools digest the chunks themselves, that is among the ways. Nothing is held but one piece.
    """
    body = first[head.length :]
    whole, done = hashlib.new(name, body, usedforsecurity=False), len(first)
    plain = Unchunking(hashlib.new(name, usedforsecurity=False)) if head.chunked else None
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
