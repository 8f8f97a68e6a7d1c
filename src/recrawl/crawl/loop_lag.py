"""How late the event loop is: what it was asked to do at a time, and when it did it.

While the loop stands still nothing is read, and time-outs of requests pass. That is our own fault, and says nothing
about a host. So the loop is measured, and a request that was under way meanwhile is asked again if it failed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

LATE = 1.0
"""Seconds by which the loop must be late for requests to be in doubt."""
_TICK = 0.1
"""Seconds between two measurements."""
_KEPT = 64
"""Stalls that are remembered: requests are shorter than what lies between so many."""


class LoopLag:
    """Measures from :meth:`start` to :meth:`stop`, in the loop's own time, which no setting of clocks moves."""

    def __init__(self, on_stall: Callable[[float], None] = lambda _seconds: None) -> None:
        """``on_stall`` is told by how many seconds the loop was late, if that is much."""
        self._on_stall = on_stall
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._expected = 0.0
        self._stalls: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        """From when to when the loop stood still."""
        self.last = 0.0
        """Seconds by which the loop was late when it was last measured."""
        self.longest = 0.0
        """The most since the start, seconds."""
        self.stalls = 0
        """How often it was late by more than ``LATE``."""

    def start(self) -> None:
        """Measure from now on. To be called in the loop."""
        self.stop()
        self._loop = asyncio.get_running_loop()
        self._expect(self._loop)

    def stop(self) -> None:
        """Measure no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop = None

    @property
    def is_on(self) -> bool:
        """Whether it is measured."""
        return self._loop is not None

    def time(self) -> float:
        """The loop's time, for :meth:`stalled`; 0 while nothing is measured."""
        return 0.0 if self._loop is None else self._loop.time()

    def stalled(self, since: float) -> float:
        """Seconds that the loop stood still after ``since`` (:meth:`time`), counting only stalls by more than ``LATE``.

        The measurement that is due may not have had its turn yet; so it is made here.
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
