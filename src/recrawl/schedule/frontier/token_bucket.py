"""A token bucket: how many visits may start now, so that a budget is never exceeded. Pure state.

The threshold (shadow price) makes the schedule use the budget on average. New pages, and pages that became due during a
pause, ask for more at once. The bucket limits this: it fills with the budget, up to a bound, and every visit takes one
token.

Rules of this file:
 1. Over any span of t seconds at most ``capacity + budget · t`` visits start.
 2. The level is a fold over the visits made, so it survives restarts and counts the visits of other workers. A fold
    starts empty at some past time, so it never overestimates the level.
 3. Visits of other workers may bring the level below zero; the deficit is not carried over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.model import FloatArray


@dataclass(slots=True)
class VisitTokenBucket:
    """Visits that may start, at a moment.

    >>> allowance = VisitTokenBucket(budget=0.5, capacity=10.0, level=0.0, at=0.0)
    >>> allowance.left(6.0), allowance.take(6.0), allowance.left(6.0), allowance.next_at(6.0, 4.0)
    (3.0, True, 2.0, 10.0)
    """

    budget: float
    """Visits per second."""
    capacity: float
    """Visits that can be saved up; at least one, else none could ever start."""
    level: float
    at: float
    """When the level was that, seconds since the epoch."""

    def left(self, now: float) -> float:
        """Visits that may start now. A clock that went back earns nothing."""
        return min(self.level + self.budget * max(now - self.at, 0.0), self.capacity)

    def whole(self, now: float) -> int:
        """The same in whole visits."""
        return math.floor(self.left(now) + _LOST)

    def take(self, now: float, visits: int = 1) -> bool:
        """Let N visits start if they may; whether they may."""
        if visits > self.whole(now):
            return False
        self.level, self.at = self.left(now) - visits, now
        return True

    def give_back(self, visits: int = 1) -> None:
        """Visits that were let start needed no request."""
        self.level = min(self.level + visits, self.capacity)

    def next_at(self, now: float, visits: float = 1.0) -> float:
        """When N visits may start, seconds since the epoch; infinity for never."""
        missing = visits - self.left(now)
        if missing <= 0:
            return now
        return now + missing / self.budget if self.budget > 0 and visits <= self.capacity else math.inf

    def change(self, budget: float, capacity: float, now: float) -> None:
        """Another budget from now on; what was saved up stays, as far as there is room."""
        left = self.left(now)
        self.budget, self.capacity = budget, max(capacity, 1.0)
        self.level, self.at = min(left, self.capacity), now


_LOST = 1e-9
"""Of a visit: what adding up many small times may lose."""


def replayed(budget: float, burst: float, visits: FloatArray, now: float) -> VisitTokenBucket:
    """The allowance after visits at these times, in any order; those before ``now - memory(…)`` need not be told.

    ``burst`` is the time, in seconds, whose budget can be saved up. O(n log n).

    >>> replayed(1.0, 10.0, np.array([]), 100.0).level, replayed(1.0, 10.0, np.full(7, 100.0), 100.0).level
    (10.0, 3.0)
    """
    capacity = max(budget * burst, 1.0)
    since = now - memory(budget, burst)
    times = np.sort(visits[(visits > since) & (visits <= now)])
    level, at = 0.0, since
    for time in times.tolist():
        level = max(min(level + budget * (time - at), capacity) - 1.0, 0.0)
        at = time
    return VisitTokenBucket(budget, capacity, min(level + budget * (now - at), capacity), now)


def memory(budget: float, burst: float) -> float:
    """Seconds for which visits matter: twice as long as an empty allowance takes to fill."""
    return 2.0 * (max(burst, 1.0 / budget) if budget > 0 else burst)
