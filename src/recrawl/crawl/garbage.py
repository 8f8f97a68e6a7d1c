"""Memory during a crawl: the garbage collector looks seldom, and only at what is new; what is free goes back.

A crawl keeps a million small things, caches above all, and makes thousands a second that go by themselves. To look
through them all again and again takes a tenth of the time and finds next to nothing.

A fit needs large arrays for a moment. The C library keeps what they took, in pieces between others, so that a crawl
would seem to grow with every fit that needs a little more.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SELDOM = 50_000
"""Things that are made, and not gone, between two looks at the new ones."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Leave out what is there when the block begins, and look for garbage seldom until it ends."""
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
    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
