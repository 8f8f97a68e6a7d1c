"""Stores for many threads: each question gets one of its own for as long as it takes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, LifoQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.store.base import Store


class Stores:
    """Opens stores as they are needed and hands them out again. One store answers one question at a time.

    The one that was used last goes first: it has in memory what all questions need.
    """

    def __init__(self, open_one: Callable[[], Store], most: int = 8) -> None:
        self._open = open_one
        self._free: LifoQueue[Store] = LifoQueue()
        self._room = threading.Semaphore(most)
        self._mine = threading.local()

    @contextmanager
    def one(self) -> Iterator[Store]:
        """A store that nobody else uses meanwhile; waits while too many are in use.

        A thread that holds one gets the same again: to wait for another, all of them could wait for each other.
        """
        held: Store | None = getattr(self._mine, "store", None)
        if held is not None:
            yield held
            return
        with self._room:
            try:
                store = self._free.get_nowait()
            except Empty:
                store = self._open()
            self._mine.store = store
            try:
                yield store
            finally:
                self._mine.store = None
                self._free.put(store)

    def close(self) -> None:
        """Close those that nobody uses."""
        while True:
            try:
                self._free.get_nowait().close()
            except Empty:
                return
