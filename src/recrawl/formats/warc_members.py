"""The gzip members of a file, found without holding them."""

from __future__ import annotations

import os
import zlib
from typing import BinaryIO

GZIP = b"\x1f\x8b\x08"
"""How a member begins."""
_BLOCK = 1 << 20


def whole_end(file: BinaryIO) -> int:
    """Where the last whole gzip member ends, 0 if there is none.

    What is damaged in the middle is passed over: only the tail can be the fault of a kill. Linear in the file
    unless it is damaged, and in constant memory.
    """
    end = position = 0
    while (start := _next_member(file, position)) is not None:
        after = member_end(file.fileno(), start)
        if after is None:
            position = start + 1
        else:
            end = position = after
    return end


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
