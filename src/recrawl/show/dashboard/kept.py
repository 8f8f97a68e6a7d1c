"""Answers that take long, kept and renewed behind the scenes: nobody who looks at a page waits for them.

The first to ask starts the work, waits a moment, and gets nothing if it is not done by then. Later ones get what was
found last, with its time, and start the work anew if that is too old: the dearer an answer was, the longer it is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from recrawl.errors import RecrawlError

T = TypeVar("T")

PATIENCE = 0.15
"""Seconds from the beginning of work in which somebody waits for a first answer."""
SHARE = 10.0
"""An answer is kept for at least so many times the seconds that it took: so work takes a tenth of the time at most."""


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """An answer and when it was true; or why there is none."""

    value: T | None
    at: float
    """Seconds since the epoch; NaN if there never was one."""
    error: str = ""
    """Why the last attempt failed, in a sentence."""
    running: bool = False
    """Whether a newer one is being worked out."""


class Hands:
    """Threads behind the scenes, so many at once. They do not keep the process alive: nobody misses what they find."""

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
        """Begin nothing more, and wait so many seconds for what is under way; whether it is over.

        An interpreter that ends while a thread computes in a library of C++ may be ended by that library instead.
        """
        self._over.set()
        return not wait(self._at_work, timeout=patience).not_done


class Kept(Generic[T]):
    """One answer that takes long. May be asked by many threads at once; the work is done once."""

    def __init__(
        self,
        work: Callable[[], T],
        *,
        fresh: float,
        clock: Callable[[], float],
        hands: Hands,
        patience: float = PATIENCE,
    ) -> None:
        self._work = work
        self._fresh = fresh
        self._clock = clock
        self._hands = hands
        self._patience = patience
        self._lock = threading.Lock()
        self._found: Found[T] = Found(None, float("nan"))
        self._until = float("-inf")
        self._task: Future[None] | None = None
        self._bug: Exception | None = None
        self._began = float("-inf")

    def begin(self) -> Future[None] | None:
        """See to it that an answer is worked out if there is none, or only an old one; the work, if it is under way."""
        with self._lock:
            if self._task is None and self._clock() >= self._until:
                self._began = self._clock()
                self._task = self._hands.begin(self._renew)
            return self._task

    def get(self, patience: float | None = None) -> Found[T]:
        """The latest answer; waits a moment, or ``patience``, if there is none yet. Raises a bug of the work."""
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
            found = Found(self._work(), began)
        except RecrawlError as error:
            found = replace(self._found, error=str(error))
        except Exception as error:  # noqa: BLE001 - kept for whoever asks next: in this thread nobody would see it
            bug = error
        took = max(self._clock() - began, 0.0)
        with self._lock:
            self._found, self._bug, self._task = found, bug, None
            self._until = began + took + max(self._fresh, SHARE * took)
