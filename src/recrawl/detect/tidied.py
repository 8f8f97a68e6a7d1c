"""Pages that need no parser, written as one would write them (``tidy_scan.py``).

To be imported late: numba is loaded with it.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from recrawl.detect.tidy_kinds import KNOWN
from recrawl.detect.tidy_scan import DEEPEST, GROWTH, MARGIN, MOST_ATTRIBUTES, tidy

_LARGEST = 1 << 20
"""Bytes of a page for which room is kept; larger ones are rare, and a parser reads them."""
_COMMON = 1 << 16
_PADDED = bytes(32)
"""Behind a page, so that nobody has to look whether it ends here."""


class _Room:
    """Arrays that the kernels write to, for pages of at most so many bytes. What is not written to takes no memory."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.out = np.empty(GROWTH * size + MARGIN, np.uint8)
        self.stack, self.seen = np.empty((DEEPEST, 4), np.int64), np.empty((MOST_ATTRIBUTES, 2), np.int64)


_rooms: list[_Room] = []
"""Those that nobody uses: as many as there are threads that read pages."""


def tidied(html: str, padding: int = 0) -> bytes | None:
    """The page as a parser would write it, but for what nobody reads; ``None`` if one has to read it. O(length).

    It is written in UTF-8, and has so many bytes of 0 behind it.

    >>> tidied("<!DOCTYPE html><ul><li>One<li>Two &copy;</ul>").decode()
    '<!DOCTYPE html><html><head></head><body><ul><li>One</li><li>Two ©</li></ul></body></html>'
    >>> print(tidied("<b>One<p>two</b>"))
    None
    """
    try:
        written = html.encode()
    except UnicodeEncodeError:  # halves of characters
        return None
    if len(written) > _LARGEST:
        return None
    room = None
    with suppress(IndexError):
        room = _rooms.pop()
    if room is None or room.size < len(written):
        room = _Room(max(2 * len(written), _COMMON))
    data, out = np.frombuffer(written + _PADDED, np.uint8), room.out
    size = tidy(data, len(written), KNOWN, out, room.stack, room.seen)
    page = out[:size].tobytes() + bytes(padding) if size >= 0 else None
    _rooms.append(room)
    return page
