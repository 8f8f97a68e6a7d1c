"""Memory of a process that runs for days: fewer garbage collections, and free memory returned to the system.

A crawl keeps a million small objects, mostly caches, and creates thousands per second that reference counting frees.
Scanning all of them again and again takes a tenth of the time and finds almost nothing.

Now and then a crawl needs large arrays for a moment. After the first of them glibc allocates large arrays on the heap,
where they leave fragments, and the process seems to grow. Here large arrays are mapped from the system, and unmapped
again.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SELDOM = 50_000
"""New objects between two collections of the youngest generation."""
_LARGE = 1 << 20
"""Bytes from which on an array may be mapped: a page is smaller, a column of 131,072 numbers is not."""
_KEPT = 4 << 20
"""Bytes that may stay free at the end of the heap."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""The names of these parameters in glibc's ``mallopt``."""
_NO_SUCH_THING = OSError, TypeError, AttributeError


_BLOCKS: list[None] = []
"""One entry per open block that freezes objects. Counting frozen objects in the collector would be slow."""


@contextmanager
def left_out() -> Iterator[None]:
    """Exclude the objects that exist now from garbage collection until the block ends.

    A nested block changes nothing, because unfreezing would unfreeze all objects.
    """
    gc.collect()
    if not _BLOCKS:
        gc.freeze()
    _BLOCKS.append(None)
    try:
        yield
    finally:
        _BLOCKS.pop()
        if not _BLOCKS:
            gc.unfreeze()


@contextmanager
def long_running() -> Iterator[None]:
    """Exclude the objects that exist now, and collect garbage seldom until the block ends.

    Large arrays may be mapped from the system from now on, also after the block, where the C library can be configured
    (glibc can).
    """
    with suppress(*_NO_SUCH_THING):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT)
    before = gc.get_threshold()
    with left_out():
        gc.set_threshold(SELDOM, *before[1:])
        try:
            yield
        finally:
            gc.set_threshold(*before)


def give_back_memory() -> None:
    """Return free memory to the system. Takes milliseconds; does nothing where the C library cannot (glibc can)."""
    with suppress(*_NO_SUCH_THING):
        ctypes.CDLL(None).malloc_trim(0)
