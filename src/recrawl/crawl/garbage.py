"""The garbage collector during a crawl: it looks seldom, and only at what is new.

A crawl keeps a million small things, caches above all, and makes thousands a second that go by themselves. To look
through them all again and again takes a tenth of the time and finds next to nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

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
