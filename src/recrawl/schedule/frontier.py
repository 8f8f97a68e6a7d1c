"""The frontier: what to fetch now, or how long to wait. No I/O, no clock: policy × politeness → Fetch | Wait.

Rules of this file:
 1. A page is fetched when it is due *and* its host is free; of all such pages the one due first, by (due, page id).
 2. One request at a time to a host: from ``next`` until ``done`` its other pages wait.
 3. Each host has a queue of its pages by (due, page id). A host waits, in the queue of hosts, for the moment when its
    first page is due and it is free; then it is ready, in the queue of ready hosts, by its first page.
 4. What changes behind a queue's back (a page withdrawn or offered again, a host blocked) leaves a stale entry, which
    is recognised and dropped, or put right, when it comes to the front. After several entries for every page on offer
    the queues are built anew. So every step is O(log n) amortised, and memory is O(pages on offer).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.schedule.politeness import Politeness


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch this page now; its host is taken until ``done``."""

    page: int
    host: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing may be fetched before ``until``, unless something is offered or done first."""

    until: float
    """Seconds since the epoch; inf if nothing waits for time to pass."""


class Frontier:
    """Offered pages with due times, hands them out one by one."""

    def __init__(self, politeness: Politeness) -> None:
        self._politeness = politeness
        self._offer: dict[int, tuple[float, int]] = {}
        """The standing offer of each page: due and host."""
        self._queue: dict[int, list[tuple[float, int]]] = {}
        """Per host its pages, a heap of (due, page); offers that no longer stand included."""
        self._waiting: list[tuple[float, int]] = []
        """Hosts by the time when they can serve."""
        self._ready: list[tuple[float, int, int]] = []
        """Hosts that can serve, by their first page: (due, page, host)."""
        self._place: dict[int, tuple[float, int, int] | float] = {}
        """The one entry of a host that counts: a time in ``_waiting``, or a triple in ``_ready``."""
        self._in_flight: dict[int, int] = {}
        """Hosts that are being asked, and for which page."""
        self._pushed = 0
        """Entries made since the queues were last built."""

    def __len__(self) -> int:
        """Pages on offer."""
        return len(self._offer)

    def offer(self, page: IntArray, host: IntArray, due: FloatArray) -> None:
        """Add pages; one that is on offer already gets the new due time. O(log n) each."""
        if bool(np.isnan(due).any()):
            msg = "a page was offered without a due time"
            raise ValueError(msg)
        touched: dict[int, None] = {}
        for page_id, host_id, when in zip(page.tolist(), host.tolist(), due.tolist(), strict=True):
            self._offer[page_id] = when, host_id
            heapq.heappush(self._queue.setdefault(host_id, []), (when, page_id))
            touched[host_id] = None
        self._pushed += len(page)
        for host_id in touched:
            self._settle(host_id)
        self._tidy()

    def withdraw(self, page: IntArray) -> None:
        """Take pages off; those that are not on offer, or are being fetched, are left alone. O(1) each."""
        for page_id in page.tolist():
            self._offer.pop(page_id, None)

    def next(self, now: float) -> Fetch | Wait:
        """What to do at ``now``. A fetch takes the page off and its host until ``done``. O(log n) amortised."""
        while True:
            self._wake(now)
            if not self._ready:
                return Wait(self._waiting[0][0] if self._waiting else math.inf)
            entry = heapq.heappop(self._ready)
            due, page, host = entry
            if self._place.get(host) != entry:
                continue
            if self._head(host) != (due, page) or self._servable(host) > now:
                self._settle(host)
                continue
            heapq.heappop(self._queue[host])
            del self._offer[page]
            self._politeness.begin(host, now)
            self._in_flight[host] = page
            self._settle(host)
            return Fetch(page, host)

    def done(self, page: int, host: int, now: float, duration: float) -> None:
        """The fetch of ``page`` has ended after ``duration`` seconds; its host begins its pause. O(log n)."""
        if self._in_flight.get(host) != page:
            msg = f"page {page} of host {host} is not being fetched"
            raise ValueError(msg)
        del self._in_flight[host]
        self._politeness.done(host, now, duration)
        self._settle(host)

    # -- inside -------------------------------------------------------------------------------

    def _head(self, host: int) -> tuple[float, int] | None:
        """The first standing offer of the host; stale ones before it are dropped."""
        queue = self._queue.get(host, [])
        while queue:
            due, page = queue[0]
            if self._offer.get(page) == (due, host):
                return queue[0]
            heapq.heappop(queue)
        self._queue.pop(host, None)
        return None

    def _servable(self, host: int) -> float:
        """When the host can next serve a page; inf if it has none or is being asked."""
        head = self._head(host)
        return math.inf if head is None else max(head[0], self._politeness.free_at(host))

    def _settle(self, host: int) -> None:
        """Put the host where it belongs: into the queue of waiting hosts, or nowhere."""
        when = self._servable(host)
        if self._place.get(host) == when:
            return
        if when == math.inf:
            self._place.pop(host, None)
        else:
            self._place[host] = when
            heapq.heappush(self._waiting, (when, host))
            self._pushed += 1

    def _wake(self, now: float) -> None:
        """Move hosts whose time has come to the ready ones; afterwards the first waiting entry is a true one."""
        while self._waiting:
            when, host = self._waiting[0]
            if self._place.get(host) != when:
                heapq.heappop(self._waiting)
                continue
            servable = self._servable(host)
            if servable != when:
                heapq.heappop(self._waiting)
                self._settle(host)
            elif when <= now:
                heapq.heappop(self._waiting)
                due, page = self._queue[host][0]
                self._place[host] = due, page, host
                heapq.heappush(self._ready, (due, page, host))
            else:
                return

    def _tidy(self) -> None:
        """Build all queues anew once most of their entries must be stale. O(pages), after as many pushes."""
        if self._pushed <= 4 * len(self._offer) + _SMALL:
            return
        self._queue, self._waiting, self._ready, self._place, self._pushed = {}, [], [], {}, 0
        for page, (due, host) in self._offer.items():
            self._queue.setdefault(host, []).append((due, page))
        for host, queue in self._queue.items():
            heapq.heapify(queue)
            self._settle(host)


_SMALL = 1024
"""Queues up to this size are not worth tidying."""
