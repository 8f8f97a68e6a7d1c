"""The event loop of a crawl: its start, threads beside it, an interruptible sleep, and its lag.

The loop is libuv's where uvloop is installed; it takes half the time per request.

While the loop is blocked nothing is read, and time-outs of requests expire. That says nothing about a host. So the lag
is measured, and a request that failed while the loop was blocked is repeated.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, as ``asyncio.run`` does, with as many open files as the system allows."""
    from recrawl.fetch.http.http_fetcher import raise_limit  # commands that only read use threads of this module

    raise_limit()
    try:
        import uvloop
    except ImportError:  # not on Windows
        return asyncio.run(main)
    result: T = uvloop.run(main)
    return result


_unfinished: set[threading.Thread] = set()
"""Threads that still run."""


def submit(work: Callable[[], T]) -> Future[T]:
    """Run work in a thread; return the future of its result.

    Unlike the threads of an executor, this one does not delay the exit of the interpreter: see :func:`is_busy`.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            outcome.set_exception(error)
        finally:
            _unfinished.discard(thread)

    outcome.set_running_or_notify_cancel()
    thread = threading.Thread(target=run, daemon=True, name="recrawl-background")
    _unfinished.add(thread)
    thread.start()
    return outcome


async def in_thread(work: Callable[[], T]) -> T:
    """Return what ``work`` returns, or raise what it raises. If the caller is cancelled, the thread goes on."""
    return await asyncio.wrap_future(submit(work))


async def on_large_answer(work: Callable[[], T]) -> T:
    """Do work on a large response in a thread, one at a time, so that copies take bounded memory."""

    def alone() -> T:
        with _one_large:
            return work()

    return await in_thread(alone)


_one_large = threading.Lock()


def is_busy() -> bool:
    """Whether a thread still runs. Then a process exits at once, without cleaning up."""
    return any(thread.is_alive() for thread in list(_unfinished))


class InterruptibleSleep(Generic[T]):
    """A sleep of one task that others may end early.

    Ending the sleep does not cancel the sleeper. If both happen in the same turn of the event loop, as when somebody
    presses Ctrl+C twice, the sleeper is cancelled.
    """

    def __init__(self) -> None:
        """Nothing sleeps yet."""
        self._through: asyncio.Task[T] | None = None

    async def through(self, waiting: Coroutine[Any, Any, T]) -> T | None:
        """Sleep until ``waiting`` is done and return its result; ``None`` if the sleep is ended early."""
        self._through = asyncio.ensure_future(waiting)
        try:
            return await self._through
        except asyncio.CancelledError:
            sleeper = asyncio.current_task()
            if self._through.cancelled() and not (sleeper and sleeper.cancelling()):
                return None
            raise
        finally:
            self._through = None

    def end(self) -> None:
        """Wake the sleeper, if there is one. To be called in the event loop."""
        if self._through is not None:
            self._through.cancel()


LATE = 1.0
"""Seconds of lag from which on failed requests are doubted."""
_TICK = 0.1
"""Seconds between two measurements."""
_KEPT = 64
"""Stalls that are remembered. Requests are shorter than the time that this many span."""


class LoopLag:
    """Measures lag from :meth:`start` to :meth:`stop`, in the loop's own time, which ignores the clock."""

    def __init__(self, on_stall: Callable[[float], None] = lambda _seconds: None) -> None:
        """``on_stall`` receives the seconds of a lag above ``LATE``."""
        self._on_stall = on_stall
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._expected = 0.0
        self._stalls: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        """Start and end of each stall."""
        self.last = 0.0
        """Lag at the last measurement, in seconds."""
        self.longest = 0.0
        """Longest lag since the start, in seconds."""
        self.stalls = 0
        """Number of lags above ``LATE``."""

    def start(self) -> None:
        """Start measuring. Call it in the loop."""
        self.stop()
        self._loop = asyncio.get_running_loop()
        self._expect(self._loop)

    def stop(self) -> None:
        """Stop measuring."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop = None

    @property
    def is_on(self) -> bool:
        """Whether the lag is measured."""
        return self._loop is not None

    def time(self) -> float:
        """The loop's time, for :meth:`stalled`; 0 while nothing is measured."""
        return 0.0 if self._loop is None else self._loop.time()

    def stalled(self, since: float) -> float:
        """Seconds that the loop was blocked after ``since`` (:meth:`time`), counting only lags above ``LATE``.

        The next measurement may be due and not have run yet, so this call makes it.
        """
        if self._loop is None:
            return 0.0
        if self._loop.time() - self._expected > LATE:
            self._measure()
        return sum(end - max(begin, since) for begin, end in self._stalls if end > since)

    def _expect(self, loop: asyncio.AbstractEventLoop) -> None:
        self._expected = loop.time() + _TICK
        self._timer = loop.call_at(self._expected, self._measure)

    def _measure(self) -> None:
        if self._loop is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        now = self._loop.time()
        self.last = max(now - self._expected, 0.0)
        self.longest = max(self.longest, self.last)
        if self.last > LATE:
            self.stalls += 1
            self._stalls.append((self._expected, now))
            self._on_stall(self.last)
        self._expect(self._loop)
