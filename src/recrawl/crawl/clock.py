"""The machine's clock, which no other module reads, and the time of a store that has its own.

Workers on several machines that share a PostgreSQL server share its clock. Leases, pauses of hosts and the order of
visits compare times that different workers wrote. So all workers use the server's time of day, and the clocks of their
own machines do not matter. Between two measurements steady time passes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from recrawl.time import MINUTE

if TYPE_CHECKING:
    from recrawl.store.base import ScheduleStore

T = TypeVar("T")

TOLERANCE = 2.0
"""Seconds by which the machine's clock may differ before that is reported."""
SMALL = MINUTE
"""Seconds. A correction of the machine's clock up to this size is applied at once."""
DOUBT = MINUTE
"""Seconds. A larger correction is applied once it has lasted this long. A glitch is over by then."""
SLOW = 0.9
"""Speed of this clock while the machine's clock is slightly behind: a minute is caught up in ten."""
NEVER_BEFORE = 1_735_689_600.0
"""2025-01-01, before recrawl existed. A clock that reads less was never set, so it is never believed."""


_steady: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic  # noqa: TID251 - this is the clock
)
"""Seconds since an arbitrary moment. Includes time asleep where the system counts it."""


class RealClock:
    """The machine's clock, made steady: it starts at the wall time and adds the time that passes.

    A change of the machine's clock has no effect here until :meth:`set_right` is called. A small forward correction is
    then applied at once. A small backward correction is applied by running slower until both clocks agree. A large
    correction is ignored for a minute, so a glitch leaves no trace. If it lasts, this clock steps, forward or backward.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,  # noqa: TID251 - this is the clock
        steady: Callable[[], float] = _steady,
    ) -> None:
        """``wall`` returns the time of day and ``steady`` the time that passed, both in seconds."""
        self._wall = wall
        self._steady = steady
        self._segment = (steady(), wall(), 1.0)
        """A moment of the steady time, what this clock read then, and its speed since."""
        self._doubted: tuple[float, float] | None = None
        """When a large correction was first seen (steady time), and its size in seconds."""

    @property
    def is_set(self) -> bool:
        """Whether the time can be right. A machine that starts without a battery reads 1970."""
        return self.now() >= NEVER_BEFORE

    @property
    def uncertain(self) -> float:
        """Seconds of a large correction that is not applied yet; 0 if there is none."""
        return 0.0 if self._doubted is None else self._doubted[1]

    def follow(self, wall: Callable[[], float]) -> None:
        """Read the time of day from ``wall`` from now on, and step to it at once."""
        self._wall = wall
        self._segment, self._doubted = (self._steady(), wall(), 1.0), None

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        began, shown, rate = self._segment
        return shown + (self._steady() - began) * rate

    def elapsed(self) -> float:
        """Seconds since an arbitrary moment. Includes time asleep where the system counts it."""
        return self._steady()

    def set_right(self) -> float:
        """Compare with the machine's clock; return the correction that was applied, in seconds (negative: backward).

        More than ``SMALL`` seconds are a step of this clock. A smaller backward correction only slows it down.
        """
        steady, (began, shown, rate) = self._steady(), self._segment
        now, wall = shown + (steady - began) * rate, self._wall()
        if self._steady() - steady > TOLERANCE:
            return 0.0  # the process was suspended between the two: they cannot be compared
        ahead = now - wall
        if wall < NEVER_BEFORE <= now:  # the machine lost its time
            self._doubted = (steady, -ahead)
            return 0.0
        if abs(ahead) > SMALL and now >= NEVER_BEFORE and not self._has_stood(steady, -ahead):
            return 0.0
        self._doubted = None
        if ahead < -TOLERANCE or ahead > SMALL:
            self._segment = (steady, wall, 1.0)
            return -ahead
        if rate == 1.0 and ahead > TOLERANCE:
            self._segment = (steady, now, SLOW)
            return -ahead
        if rate < 1.0 and ahead <= 0.0:
            self._segment = (steady, now, 1.0)
        return 0.0

    def _has_stood(self, steady: float, seconds: float) -> bool:
        """Whether a correction of this size was first seen long enough ago."""
        if self._doubted is None or abs(self._doubted[1] - seconds) > SMALL:
            self._doubted = (steady, seconds)
        return steady - self._doubted[0] >= DOUBT

    async def sleep_until(self, when: float) -> None:
        """Sleep until the clock reads ``when``."""
        while (left := when - self.now()) > 0:  # noqa: ASYNC110 - the clock may go slower than the event loop's
            await asyncio.sleep(min(left, MINUTE))

    async def wait(self, running: Collection[asyncio.Task[T]], until: float) -> set[asyncio.Task[T]]:
        """Return as soon as a task of ``running`` is done, at the latest at ``until`` or after a minute.

        The limit of a minute lets callers check the clock regularly.
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

        # As asyncio.wait does, but that visits each task three times.
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


APART = 5.0
"""Seconds by which a machine's clock may differ from that of the store before that is logged."""
_QUICK = 1.0
"""Maximum seconds of a response that is precise enough."""


class StoreTime:
    """The time of day by the server of a store."""

    def __init__(self, store: ScheduleStore, clock: RealClock) -> None:
        """Measures at once, however long that takes."""
        self._store = store
        self._clock = clock
        self._offset: float | None = None
        self.measure()

    @property
    def is_told(self) -> bool:
        """Whether the store has its own clock."""
        return self._offset is not None

    def measure(self) -> None:
        """Read the server's clock. A slow response is ignored, except the first one."""
        if self._offset is None and self._store.time() is None:
            return
        asked = self._clock.elapsed()
        told = self._store.time()
        answered = self._clock.elapsed()
        if told is not None and (self._offset is None or answered - asked < _QUICK):
            self._offset = told - (asked + answered) / 2

    def __call__(self) -> float:
        """Seconds since the epoch."""
        assert self._offset is not None  # noqa: S101 - a clock only follows a store that has its own
        return self._clock.elapsed() + self._offset


def follow_store(clock: RealClock, store: ScheduleStore) -> tuple[StoreTime | None, float]:
    """Let a clock follow the time of the store, if it has one; the seconds by which the machine is ahead of it."""
    time = StoreTime(store, clock)
    if not time.is_told:
        return None, 0.0
    ahead = clock.now() - time()
    clock.follow(time)
    return time, ahead


def time_of(store: ScheduleStore) -> float:
    """The time for read-only commands: that of the store, or else of this machine."""
    told = store.time()
    return RealClock().now() if told is None else told
