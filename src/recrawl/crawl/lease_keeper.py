"""Keeps the leases of a living worker while its event loop is busy: a thread beside it.

The loop itself says every few seconds that the worker lives, and renews its leases. A fit, a slow store or a busy
machine may keep it from that for longer than others wait. Then this thread does it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from recrawl.errors import StoreError

_LOOK_EVERY = 1.0
"""Seconds between two looks whether the loop is late."""


@contextmanager
def leases_kept(keep: Callable[[], None]) -> Iterator[None]:
    """Within it, a thread calls ``keep`` every second. A store that is away is asked again the next time."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_EVERY):
            with suppress(StoreError):
                keep()

    thread = threading.Thread(target=watch, name="lease keeper", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
