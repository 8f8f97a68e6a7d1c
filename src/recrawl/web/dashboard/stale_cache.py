"""Slow results, cached and refreshed in the background, so that pages do not wait for them.

The first request starts the computation, waits a moment, and gets nothing if it is not done by then. Later requests get
the latest result with its time, and start a new computation if it is too old: the slower a result, the longer it is
cached.

A pool of stores for many threads: each request gets a store for its duration.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from queue import Empty, LifoQueue
from typing import TYPE_CHECKING, Generic, TypeVar

from recrawl.errors import RecrawlError

if TYPE_CHECKING:
    from recrawl.store.base import Store


class StorePool:
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
        """An unshared store; waits while too many are in use.

        A thread that holds a store gets the same one again: waiting for another could deadlock.
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
        """Close unused stores."""
        while True:
            try:
                self._free.get_nowait().close()
            except Empty:
                return


T = TypeVar("T")

PATIENCE = 0.15
"""Seconds from the start of a computation for which a request waits for the first result."""
SHARE = 10.0
"""A result is cached for at least this multiple of its computing time: computing takes at most a tenth of the time."""


@dataclass(frozen=True, slots=True)
class CachedAnswer(Generic[T]):
    """An answer and when it was true; or why there is none."""

    value: T | None
    at: float
    """Seconds since the epoch; NaN if there never was one."""
    error: str = ""
    """Why the last attempt failed, in a sentence."""
    running: bool = False
    """Whether a newer one is being worked out."""


class WorkerPool:
    """Background threads, limited in number. They do not keep the process alive."""

    def __init__(self, most: int = 3) -> None:
        self._room = threading.Semaphore(most)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._at_work: list[Future[None]] = []

    def begin(self, work: Callable[[], None]) -> Future[None]:
        """Do something as soon as a hand is free."""
        done: Future[None] = Future()

        def run() -> None:
            with self._room:
                if not self._over.is_set():
                    work()
            done.set_result(None)

        with self._lock:
            self._at_work = [*(one for one in self._at_work if not one.done()), done]
        threading.Thread(target=run, daemon=True, name="recrawl-behind").start()
        return done

    def end(self, patience: float) -> bool:
        """Start nothing more, and wait a limited number of seconds for running tasks; returns whether they are done.

        An interpreter that ends while a thread computes in a library of C++ may be ended by that library instead.
        """
        self._over.set()
        return not wait(self._at_work, timeout=patience).not_done


class StaleCache(Generic[T]):
    """One slow result. Thread-safe; it is computed once."""

    def __init__(
        self,
        work: Callable[[], T],
        *,
        fresh: float,
        clock: Callable[[], float],
        lease_pool: WorkerPool,
        patience: float = PATIENCE,
    ) -> None:
        self._work = work
        self._fresh = fresh
        self._clock = clock
        self._lease_pool = lease_pool
        self._patience = patience
        self._lock = threading.Lock()
        self._found: CachedAnswer[T] = CachedAnswer(None, float("nan"))
        self._until = float("-inf")
        self._task: Future[None] | None = None
        self._bug: Exception | None = None
        self._began = float("-inf")

    def begin(self) -> Future[None] | None:
        """See to it that an answer is worked out if there is none, or only an old one; the work, if it is under way."""
        with self._lock:
            if self._task is None and self._clock() >= self._until:
                self._began = self._clock()
                self._task = self._lease_pool.begin(self._renew)
            return self._task

    def get(self, patience: float | None = None) -> CachedAnswer[T]:
        """The latest result; waits a moment, or ``patience`` seconds, for the first one. Raises bugs of its task."""
        task = self.begin()
        if self._found.value is None and not self._found.error and task is not None:
            waits = self._patience if patience is None else patience
            wait([task], timeout=max(self._began + waits - self._clock(), 0.0))
        with self._lock:
            bug, self._bug = self._bug, None
            found, running = self._found, self._task is not None
        if bug is not None:
            raise bug
        return replace(found, running=running)

    def _renew(self) -> None:
        began = self._clock()
        found, bug = self._found, None
        try:
            found = CachedAnswer(self._work(), began)
        except RecrawlError as error:
            found = replace(self._found, error=str(error))
        except Exception as error:  # noqa: BLE001 - raised at the next request: in this thread it would be lost
            bug = error
        took = max(self._clock() - began, 0.0)
        with self._lock:
            self._found, self._bug, self._task = found, bug, None
            self._until = began + took + max(self._fresh, SHARE * took)
