"""The slots of a capture: one request at a time, a delay after the one before at least, and when its host allows it."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np

from recrawl.crawl.sleeping import Sleep
from recrawl.fetch.doors import Doors
from recrawl.fetch.patience import asked_patience
from recrawl.fetch.robots import Rules
from recrawl.model import Capture
from recrawl.schedule.politeness import Politeness
from recrawl.store.base import Store
from recrawl.time import Clock


class Slots:
    """Waits for the next slot, and can be told to wait no more. For one task."""

    def __init__(self, clock: Clock, politeness: Politeness, store: Store, doors: Doors | None = None) -> None:
        self._clock = clock
        self._politeness = politeness
        self._store = store
        self._doors = doors
        self._next = -math.inf
        self._asked: int | None = None
        """The host whose answer is awaited."""
        self._asleep: Sleep[None] = Sleep()
        self.delay = 0.0
        """Seconds from the beginning of one request to that of the next."""
        self.stopping = False
        """No slot begins any more."""

    def stop(self) -> None:
        """Let no slot begin any more. To be called in the event loop."""
        self.stopping = True
        self._asleep.end()

    def after(self, when: float) -> None:
        """Let no slot begin before ``when``, seconds since the epoch."""
        self._next = max(self._next, when)

    async def begin(self, host: int) -> bool:
        """Wait for the next slot at this host and take it; ``False`` if none begins any more."""
        self._politeness.block_until(host, self._others_asked(host))
        while not self.stopping and (wait := max(self._next, self._politeness.free_at(host))) > self._clock.now():
            await self._asleep.through(self._clock.sleep_until(wait))
        if self.stopping:
            return False
        now = self._clock.now()
        self._politeness.begin(host, now)
        self._next = now + self.delay
        self._asked = host
        return True

    def end(self, host: int, capture: Capture | None) -> None:
        """The request is over; its host begins its pause, a longer one if it asks for that."""
        now, self._asked = self._clock.now(), None
        self._politeness.done(host, now, capture.duration if capture else 0.0)
        wait = asked_patience(capture) if capture else None
        if wait is not None:
            self._politeness.block_until(host, now + wait)

    def let_go(self, host: int) -> None:
        """End a request at this host, if one is under way: our own code failed on the way to its end."""
        self._asked = None
        if math.isinf(self._politeness.free_at(host)):
            self._politeness.done(host, self._clock.now(), 0.0)

    def drop(self) -> None:
        """Keep in the store how long hosts rest that were asked and have not answered: as long as slow ones do."""
        if self._asked is not None:
            hosts = self._store.hosts(np.array([self._asked]))
            rest = np.maximum(hosts.delay, self._politeness.rules.longest)
            self._store.set_host(hosts.id, ready_at=np.maximum(hosts.ready_at, self._clock.now() + rest))
            self._asked = None

    def give_back(self, host: int, until: float) -> None:
        """Nothing was asked in the slot: its address serves others. The next one begins at ``until``."""
        self._politeness.undone(host)
        self._next, self._asked = until, None

    @asynccontextmanager
    async def door(self, url: str, host: int) -> AsyncIterator[None]:
        """In a slot that has begun, wait for the turn of the URL's address, and hold it."""
        if self._doors is None:
            yield
            return
        door = await self._doors.wait(url, host)
        try:
            yield
        finally:
            self._doors.leave(door)

    def obey(self, host: int, rules: Rules) -> None:
        """Keep the pause that the host asks for, from now on; leave it alone while it cannot tell its rules."""
        self._politeness.set_crawl_delay(host, rules.crawl_delay)
        self._politeness.block_until(host, self._clock.now() + self.pause(rules))
        if not rules.available:
            self._politeness.block_until(host, rules.expires)

    def pause(self, rules: Rules) -> float:
        """Seconds between two requests under these rules, if answers come at once."""
        return self._politeness.rules.pause(0.0, rules.crawl_delay)

    def free_at(self, host: int) -> float:
        """When the host may be asked again, seconds since the epoch."""
        return self._politeness.free_at(host)

    def _others_asked(self, host: int) -> float:
        """Before which time nobody asks the host: another process may have asked it a moment ago."""
        return float(self._store.hosts(np.array([host])).ready_at[0])
