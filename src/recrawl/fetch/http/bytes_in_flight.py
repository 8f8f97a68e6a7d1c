"""Bytes in flight: one memory budget for response bodies, from their first byte until nothing refers to them.

A crawl requests many hosts at once, and each may send a body of the maximum length. So the bodies are counted together,
each twice: the bytes received, and what is written to the archive. Small bodies never wait: one per concurrent request
fits in any memory. A body that grows beyond ``FREE`` bytes waits while the budget is full: its connection is not read,
and the host stops sending.

One body at a time may exceed the budget, up to the maximum length. So one always completes, and there is no deadlock.

A body's bytes are returned when its capture is garbage-collected, wherever that happens. No step of a visit has to do
it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress

FREE = 128 * 1024
"""Bytes of each body that need no budget."""
COUNTED = 32 * 1024
"""Bytes from which on a body is counted at all."""
_STEP = 256 * 1024
"""Bytes by which a body grows at a time."""
_COPIES = 2
"""How often the bytes of a body are in memory: as received, and as written."""
_LEAST = 4 * 1024 * 1024
"""Minimum budget, whatever the settings say."""


class Charge:
    """The bytes counted for one body. They are returned with the last reference to it."""

    __slots__ = ("_budget", "size", "waited")

    def __init__(self, budget: BytesInFlight, size: int = 0) -> None:
        self._budget = budget
        self.size = size
        """Bytes of memory."""
        self.waited = 0.0
        """Seconds that the body waited for budget."""

    def __del__(self) -> None:
        self._budget.give_back(self)


class BytesInFlight:
    """One budget for all bodies. For the thread of the event loop, except :meth:`give_back`."""

    def __init__(self, most: int, longest: int) -> None:
        """All bodies together take at most ``most`` bytes of memory; one is at most ``longest`` bytes long."""
        self._room = max(most - _COPIES * longest, _LEAST)
        self._most = max(most, self._room)
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop in which bodies wait."""
        self._held = 0
        self._returned: deque[tuple[int, int]] = deque()
        """Returned and not yet subtracted: bytes, and the charge's :func:`id`. There is no lock: the last reference
        may go at any moment, also while this object works."""
        self._beyond: int | None = None
        """The :func:`id` of the charge that may exceed the budget."""
        self._waiting: OrderedDict[int, tuple[Charge, int, Callable[[], None], float]] = OrderedDict()

    @property
    def held(self) -> int:
        """Bytes counted now."""
        while self._returned:
            size, whose = self._returned.popleft()
            self._held -= size
            if whose == self._beyond:
                self._beyond = None
        if self._held <= self._room:
            self._beyond = None
        return self._held

    @property
    def is_full(self) -> bool:
        """Whether no further request should start."""
        return self.held >= self._most

    @property
    def waiting(self) -> int:
        """Bodies that wait for budget."""
        return len(self._waiting)

    def charge(self, size: int = 0) -> Charge:
        """Count a body that is in memory already; it does not wait."""
        self._held += _COPIES * size
        return Charge(self, _COPIES * size)

    def resize(self, charge: Charge, size: int) -> None:
        """Count another length of a body, now that it is known."""
        self._held += _COPIES * size - charge.size
        charge.size = _COPIES * size
        self._wake()

    def grow(self, charge: Charge, size: int, resume: Callable[[], None]) -> int:
        """Count a body of at least ``size`` bytes; return the length up to which it may grow before the next call.

        If the budget is full that is 0, and ``resume`` is called later.
        """
        wanted = _COPIES * (size + _STEP)
        if self._fits(charge, wanted):
            self._held += wanted - charge.size
            charge.size = wanted
            return size + _STEP
        self._loop = asyncio.get_running_loop()
        self._waiting[id(charge)] = charge, wanted, resume, _elapsed()
        return 0

    def leave(self, charge: Charge) -> None:
        """End a body, whether it waited or not."""
        waited = self._waiting.pop(id(charge), None)
        if waited is not None:
            charge.waited += _elapsed() - waited[3]

    def give_back(self, charge: Charge) -> None:
        """Stop counting a charge. For any thread, at any moment."""
        self._returned.append((charge.size, id(charge)))
        self._wake()

    def _wake(self) -> None:
        if self._waiting and self._loop is not None:
            with suppress(RuntimeError):  # it is closed: nothing waits any more
                self._loop.call_soon_threadsafe(self._admit)

    def _fits(self, charge: Charge, wanted: int) -> bool:
        if self.held + wanted - charge.size <= self._room:
            return True
        if self._beyond is None:
            self._beyond = id(charge)
        return self._beyond == id(charge)

    def _admit(self) -> None:
        """Resume bodies for which there is budget, the longest waiting first."""
        while self._waiting:
            charge, wanted, resume, _ = next(iter(self._waiting.values()))
            if not self._fits(charge, wanted):
                return
            self.leave(charge)
            resume()


def _elapsed() -> float:
    """Steady seconds. They bound how long a connection is not read, which the clock of a crawl does not affect."""
    return time.monotonic()  # noqa: TID251
