"""Memory of what runs for days: the garbage collector looks seldom, and only at what is new; what is free goes back.

A crawl keeps a million small things, caches above all, and makes thousands a second that go by themselves. To look
through them all again and again takes a tenth of the time and finds next to nothing.

Now and then it needs large arrays for a moment. The C library learns from the first of them to keep them among the
small things, where what they took stays in pieces, so that a crawl would seem to grow with each that needs a little
more than the one before. Here large arrays for which no piece is free come from the system, and go back to it.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SELDOM = 50_000
"""Things that are made, and not gone, between two looks at the new ones."""
_LARGE = 1 << 20
"""Bytes from which on an array may come from the system: a page is smaller, a column of 131,072 numbers is not."""
_KEPT = 4 << 20
"""Bytes that may be free at the end of the heap."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""What glibc calls the two."""
_NO_SUCH_THING = OSError, TypeError, AttributeError


@contextmanager
def long_running() -> Iterator[None]:
    """Leave out what is there when the block begins, and look for garbage seldom until it ends.

    Large arrays may come from the system from now on, also after it, where the C library can be told (glibc can).
    """
    with suppress(*_NO_SUCH_THING):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT)
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def give_back_memory() -> None:
    """Let the system have what is free. Milliseconds; nothing where the C library has no way to (glibc has)."""
    with suppress(*_NO_SUCH_THING):
        ctypes.CDLL(None).malloc_trim(0)
