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
SMALL = MINUTE
"""Seconds up to which a clock that is set is believed at once."""
DOUBT = MINUTE
"""Seconds for which a clock that is set by more must stay so before it is believed: a glitch is over by then."""
SLOW = 0.9
"""How fast time passes here while the machine's clock is behind by a little: a minute is made good in ten."""
NEVER_BEFORE = 1_735_689_600.0
"""2025-01-01, before there was a recrawl: a clock that reads less was not set yet, and is never believed."""


_steady: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic  # noqa: TID251 - this is the clock
)
"""Seconds that passed since some moment, those asleep included where the system counts them."""


class RealClock:
    """The machine's clock, made steady: it starts at the wall time and counts what passes.

    If somebody sets the machine's clock, nothing happens here until :meth:`set_right` is called. Small corrections are
    then followed: forward at once, back by going slower until both agree. Large ones are in doubt for a minute, in
    which time here goes on as if nothing had happened; so a glitch that is over by then leaves no trace. What stands
    longer is followed by a step, also back.
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
        self._doubted: tuple[float, float] | None = None
        """When a large correction was first seen, by the steady time, and its seconds."""

    @property
    def is_set(self) -> bool:
        """Whether the time can be right: a machine that starts without a battery believes that it is 1970."""
        return self.now() >= NEVER_BEFORE

    @property
    def in_doubt(self) -> float:
        """Seconds by which the machine's clock was set and is not believed yet; 0 if there is no doubt."""
        return 0.0 if self._doubted is None else self._doubted[1]

    def follow(self, wall: Callable[[], float]) -> None:
        """Take the time of day from elsewhere from now on, and take it over at once."""
        self._wall = wall
        self._line, self._doubted = (self._steady(), wall(), 1.0), None

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        began, shown, rate = self._line
        return shown + (self._steady() - began) * rate

    def elapsed(self) -> float:
        """Seconds that passed since some moment, those asleep included where the system counts them."""
        return self._steady()

    def set_right(self) -> float:
        """Look at the machine's clock: the seconds it was set forward, or back if negative, as far as it is believed.

        More than ``SMALL`` seconds are a step of this clock, less back is made good by going slower.
        """
        steady, (began, shown, rate) = self._steady(), self._line
        now, wall = shown + (steady - began) * rate, self._wall()
        ahead = now - wall
        if wall < NEVER_BEFORE <= now:  # it lost its time
            self._doubted = (steady, -ahead)
            return 0.0
        if abs(ahead) > SMALL and now >= NEVER_BEFORE and not self._has_stood(steady, -ahead):
            return 0.0
        self._doubted = None
        if ahead < -TOLERANCE or ahead > SMALL:
            self._line = (steady, wall, 1.0)
            return -ahead
        if rate == 1.0 and ahead > TOLERANCE:
            self._line = (steady, now, SLOW)
            return -ahead
        if rate < 1.0 and ahead <= 0.0:
            self._line = (steady, now, 1.0)
        return 0.0

    def _has_stood(self, steady: float, seconds: float) -> bool:
        """Whether a correction by so many seconds was first seen long enough ago."""
        if self._doubted is None or abs(self._doubted[1] - seconds) > SMALL:
            self._doubted = (steady, seconds)
        return steady - self._doubted[0] >= DOUBT

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
