"""The frontier: what to fetch now, or how long to wait. No I/O, no clock: policy × politeness → Fetch | Wait.

Rules of this file:
 1. A page is fetched when it is due *and* its host is free; of all such pages the one due first, by (due, page id).
 2. One request at a time to a host: from ``next`` until ``done`` its other pages wait.
 3. The queues are Python's own heaps while they are small, and columns in compiled code once they are large and numba
 is
    installed. Both keep the same order; a step is O(log n) amortised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.model.compiled import can_compile
from recrawl.schedule.frontier.frontier_heaps import Fetches, HeapQueues, Queues
from recrawl.schedule.politeness.host_politeness import Politeness

LARGE = 300_000
"""Pages on offer from which on compiled code is worth its start."""


@dataclass(frozen=True, slots=True)
class FetchNow:
    """Fetch this page now; its host is taken until ``done``."""

    page: int
    host: int


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Nothing may be fetched before ``until``, unless something is offered or done first."""

    until: float
    """Seconds since the epoch; inf if nothing waits for time to pass."""


class Frontier:
    """Returns offered pages, one or many at a time, once they are due and their host is free."""

    def __init__(self, politeness: Politeness, *, large: int = LARGE) -> None:
        """From ``large`` pages on offer on the queues are columns, where numba is installed."""
        self._politeness = politeness
        self._large = large
        self._queues: Queues = HeapQueues(politeness)

    def __len__(self) -> int:
        """Pages on offer."""
        return len(self._queues)

    def offer(self, page: IntArray, host: IntArray, due: FloatArray) -> None:
        """Add pages; one that is on offer already gets the new due time. O(log n) each."""
        if bool(np.isnan(due).any()):
            msg = "a page was offered without a due time"
            raise ValueError(msg)
        if isinstance(self._queues, HeapQueues) and len(self) + len(page) >= self._large and can_compile():
            self._queues = _as_columns(self._queues, self._politeness)
        self._queues.offer(page, host, due)

    def withdraw(self, page: IntArray) -> None:
        """Take pages off; those that are not on offer, or are being fetched, are left alone. O(log n) each."""
        self._queues.withdraw(page)

    def next(self, now: float) -> FetchNow | WaitUntil:
        """What to do at ``now``. A fetch takes the page off and its host until ``done``. O(log n) amortised."""
        found = self._queues.next_many(now, 1)
        return FetchNow(int(found.page[0]), int(found.host[0])) if len(found.page) else WaitUntil(found.until)

    def next_many(self, now: float, most: int) -> Fetches:
        """Up to ``most`` pages to fetch at ``now``: those that as many calls of ``next`` would give, in their order."""
        return self._queues.next_many(now, most)

    def done(self, page: int, host: int, now: float, duration: float) -> None:
        """The fetch of ``page`` has ended after ``duration`` seconds; its host starts its pause. O(log n)."""
        self._queues.done(page, host, now, duration)

    def done_many(self, page: IntArray, host: IntArray, now: float, duration: FloatArray) -> None:
        """Several fetches have ended; as ``done`` for each."""
        self._queues.done_many(page, host, now, duration)

    def spared(self, page: int, host: int) -> None:
        """The fetch of ``page`` turned out not to be needed: nothing was sent, so there is no pause. O(log n)."""
        self._queues.undone(page, host, -math.inf)

    def give_back(self, page: int, host: int, due: float, until: float) -> None:
        """The fetch of ``page`` did not take place: it is on offer again, and its host is left alone until ``until``.

        Nothing was sent, so there is no pause. O(log n).
        """
        self._queues.undone(page, host, until)
        self.offer(np.array([page]), np.array([host]), np.array([due]))


def _as_columns(heaps: HeapQueues, politeness: Politeness) -> Queues:
    from recrawl.schedule.frontier.frontier_columns import ColumnQueues  # numba is slow to import, and may be missing

    columns = ColumnQueues(politeness)
    columns.offer(*heaps.offers())
    columns.adopt(heaps.in_flight)
    return columns
