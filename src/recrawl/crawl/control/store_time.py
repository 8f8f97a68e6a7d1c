"""The time of the store: workers on several machines that share a PostgreSQL server share its clock.

Leases, pauses of hosts and the order of visits compare times that different workers wrote. So all workers use the
server's time of day, and the clocks of their own machines do not matter. Between two measurements steady time passes.
"""

from __future__ import annotations

from recrawl.crawl.clock import RealClock
from recrawl.store.base import Store

APART = 5.0
"""Seconds by which a machine's clock may differ from that of the store before that is logged."""
_QUICK = 1.0
"""Maximum seconds of a response that is precise enough."""


class StoreTime:
    """The time of day by the server of a store."""

    def __init__(self, store: Store, clock: RealClock) -> None:
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


def follow_store(clock: RealClock, store: Store) -> tuple[StoreTime | None, float]:
    """Let a clock follow the time of the store, if it has one; the seconds by which the machine is ahead of it."""
    time = StoreTime(store, clock)
    if not time.is_told:
        return None, 0.0
    ahead = clock.now() - time()
    clock.follow(time)
    return time, ahead


def time_of(store: Store) -> float:
    """The time for read-only commands: that of the store, or else of this machine."""
    told = store.time()
    return RealClock().now() if told is None else told
