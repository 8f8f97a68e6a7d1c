"""The machine's time. The one module that reads it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import TypeVar

T = TypeVar("T")


class RealClock:
    """The machine's clock, made steady: it starts at the wall time and never goes back."""

    def __init__(self) -> None:
        self._start = time.time()  # noqa: TID251 - this is the clock
        self._steady_start = time.monotonic()  # noqa: TID251 - this is the clock

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        return self._start + (time.monotonic() - self._steady_start)  # noqa: TID251 - this is the clock

    async def sleep_until(self, when: float) -> None:
        """Sleep until the clock reads ``when``."""
        await asyncio.sleep(max(0.0, when - self.now()))

    async def wait(self, running: Collection[asyncio.Task[T]], until: float) -> set[asyncio.Task[T]]:
        """Return as soon as a task of ``running`` is done, at the latest at ``until``."""
        if not running:
            await self.sleep_until(until)
            return set()
        timeout = None if until == float("inf") else max(0.0, until - self.now())
        done, _ = await asyncio.wait(running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        return done
