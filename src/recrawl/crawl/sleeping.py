"""A sleep that somebody else may end before its time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Sleep(Generic[T]):
    """What one task sleeps through at a time, and others may end.

    Ending it is not cancelling the sleeper. Both may come in the same turn of the event loop, as when somebody presses
    Ctrl+C twice, and then the sleeper is cancelled.
    """

    def __init__(self) -> None:
        """Nobody sleeps yet."""
        self._through: asyncio.Task[T] | None = None

    async def through(self, waiting: Coroutine[Any, Any, T]) -> T | None:
        """Sleep until ``waiting`` is over, and give what it gave; ``None`` if the sleep is ended before."""
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
