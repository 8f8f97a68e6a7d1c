"""The gzip members of a file, found without holding them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import BinaryIO

GZIP = b"\x1f\x8b\x08"
"""How a member begins."""
_BLOCK = 1 << 20


def members(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Where each whole gzip member begins and ends.

    What is damaged is passed over. Linear in the file unless it is damaged; memory does not depend on the members.
    """
    position = 0
    while (start := _next_member(file, position)) is not None:
        after = member_end(file.fileno(), start)
        if after is None:
            position = start + 1
        else:
            yield start, after
            position = after


def _next_member(file: BinaryIO, position: int) -> int | None:
    """Where the next bytes are that can begin a member."""
    while block := os.pread(file.fileno(), _BLOCK, position):
        found = block.find(GZIP)
        if found >= 0:
            return position + found
        if len(block) < len(GZIP):
            return None
        position += len(block) - len(GZIP) + 1
    return None


def member_end(descriptor: int, start: int) -> int | None:
    """Where the member that begins at ``start`` ends; nothing if it is cut or damaged."""
    inflater, position, data = zlib.decompressobj(31), start, b""
    try:
        while not inflater.eof:
            data = inflater.unconsumed_tail
            if not data:
                data = os.pread(descriptor, 64 << 10, position)
                position += len(data)
                if not data:
                    return None
            inflater.decompress(data, _BLOCK)
    except zlib.error:
        return None
    return position - len(inflater.unused_data)
