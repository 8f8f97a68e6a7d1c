"""The machine's time. The one module that reads it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import TypeVar

from recrawl.time import MINUTE

T = TypeVar("T")

TOLERANCE = 2.0
"""Seconds by which the machine's clock may differ before anybody is told."""
SLOW = 0.9
"""How fast time passes here while the machine's clock is behind: an hour is made good in ten."""


_steady: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic  # noqa: TID251 - this is the clock
)
"""Seconds that passed since some moment, those asleep included where the system counts them."""


class RealClock:
    """The machine's clock, made steady: it starts at the wall time, counts what passes, and never goes back.

    If somebody sets the machine's clock, nothing happens here until :meth:`set_right` is called. Then a clock that was
    set forward is followed at once, one that was set back by going slower until both agree.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,  # noqa: TID251 - this is the clock
        steady: Callable[[], float] = _steady,
    ) -> None:
        """``wall`` and ``steady`` tell the time of day and the time that passed, in seconds."""
        self._wall = wall
        self._steady = steady
        self._line = (steady(), wall(), 1.0)
        """A moment of the steady time, what this clock read then, and how fast it goes since."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        began, shown, rate = self._line
        return shown + (self._steady() - began) * rate

    def elapsed(self) -> float:
        """Seconds that passed since some moment, those asleep included where the system counts them."""
        return self._steady()

    def set_right(self) -> float:
        """Look at the machine's clock: the seconds it was set forward, or back if negative, since the last look."""
        steady, (began, shown, rate) = self._steady(), self._line
        now = shown + (steady - began) * rate
        ahead = now - self._wall()
        if ahead < -TOLERANCE:
            self._line = (steady, now - ahead, 1.0)
            return -ahead
        if rate == 1.0 and ahead > TOLERANCE:
            self._line = (steady, now, SLOW)
            return -ahead
        if rate < 1.0 and ahead <= 0.0:
            self._line = (steady, now, 1.0)
        return 0.0

    async def sleep_until(self, when: float) -> None:
        """Sleep until the clock reads ``when``."""
        while (left := when - self.now()) > 0:  # noqa: ASYNC110 - the clock may go slower than the event loop's
            await asyncio.sleep(min(left, MINUTE))

    async def wait(self, running: Collection[asyncio.Task[T]], until: float) -> set[asyncio.Task[T]]:
        """Return as soon as a task of ``running`` is done, at the latest at ``until`` or after a minute.

        Never longer, so that whoever waits looks at the clock now and then.
        """
        left = min(max(0.0, until - self.now()), MINUTE)
        if not running:
            await asyncio.sleep(left)
            return set()
        tasks, loop = list(running), asyncio.get_running_loop()
        over = loop.create_future()

        def wake(_task: object = None) -> None:
            if not over.done():
                over.set_result(None)

        # As asyncio.wait does, which looks three times at each task.
        timer = loop.call_later(left, wake)
        for task in tasks:
            task.add_done_callback(wake)
        try:
            await over
        finally:
            timer.cancel()
            for task in tasks:
                task.remove_done_callback(wake)
        return {task for task in tasks if task.done()}
