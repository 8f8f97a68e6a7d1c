"""The frontier: what to fetch now, or how long to wait. No I/O, no clock: policy × politeness → Fetch | Wait.

Rules of this file:
 1. A page is fetched when it is due *and* its host is free; of all such pages the one due first, by (due, page id).
 2. One request at a time to a host: from ``next`` until ``done`` its other pages wait.
 3. The queues are Python's own heaps while they are small, and columns in compiled code once they are large and numba
    is installed (``frontier_columns``). Both keep the same order; a step is O(log n) amortised.

In the queues of a small frontier each host has a heap of its pages by (due, page id). A host waits in one heap until
its first page is due and politeness allows a request; then it moves to the heap of ready hosts, ordered by its first
page. A page withdrawn or offered again, or a host blocked, leaves a stale entry. It is recognised and dropped, or
corrected, when it reaches the front. After several entries for every page on offer the heaps are rebuilt. So every step
is O(log n) amortised, and memory is O(pages on offer).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from recrawl.model import FloatArray, IntArray, Outcome, Pages, Verdict, Visits
from recrawl.model.compiled import can_compile
from recrawl.schedule.policy import Policy, ReplicablePolicy
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.time import DAY, HOUR


class Fetches(NamedTuple):
    """Pages to fetch now, in this order; their hosts are taken until they are done."""

    page: IntArray
    host: IntArray
    until: float
    """Nothing more may be fetched before this time, seconds since the epoch; the time asked for if not known."""


class Queues(Protocol):
    """Offered pages, by host and due time. ``Frontier`` documents each call."""

    def __len__(self) -> int: ...

    def offer(self, page: IntArray, host: IntArray, due: FloatArray) -> None:
        """Add pages, or give them a new due time and host; of equal ids the last counts."""
        ...

    def withdraw(self, page: IntArray) -> None:
        """Take pages off."""
        ...

    def next_many(self, now: float, most: int) -> Fetches:
        """What may be fetched at ``now``."""
        ...

    def done(self, page: int, host: int, now: float, duration: float) -> None:
        """A fetch has ended."""
        ...

    def done_many(self, page: IntArray, host: IntArray, now: float, duration: FloatArray) -> None:
        """Fetches have ended."""
        ...

    def undone(self, page: int, host: int, until: float) -> None:
        """A fetch did not take place; its host is left alone until then."""
        ...


class HeapQueues:
    """Pages on offer in Python's own heaps: for thousands of pages, at some 100,000 decisions per second."""

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
        self.in_flight: dict[int, int] = {}
        """Hosts that are being asked, and for which page."""
        self._pushed = 0
        """Entries made since the queues were last built."""

    def __len__(self) -> int:
        """Pages on offer."""
        return len(self._offer)

    def offer(self, page: IntArray, host: IntArray, due: FloatArray) -> None:
        """Add pages; one that is on offer already gets the new due time. O(log n) each."""
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

    def next_many(self, now: float, most: int) -> Fetches:
        """Up to ``most`` pages to fetch at ``now``, each taken off, and its host until ``done``. O(log n) each."""
        page: list[int] = []
        host: list[int] = []
        until = now
        self._wake(now)
        while len(page) < most:
            if not self._ready:
                until = self._waiting[0][0] if self._waiting else math.inf
                break
            entry = heapq.heappop(self._ready)
            due, first, asked = entry
            if self._place.get(asked) != entry:
                continue
            if self._head(asked) != (due, first) or self._politeness.free_at(asked) > now:
                self._settle(asked)
                self._wake(now)
                continue
            heapq.heappop(self._queue[asked])
            del self._offer[first]
            self._politeness.begin(asked, now)
            self.in_flight[asked] = first
            del self._place[asked]
            page.append(first)
            host.append(asked)
        return Fetches(np.array(page, np.int64), np.array(host, np.int64), until)

    def done_many(self, page: IntArray, host: IntArray, now: float, duration: FloatArray) -> None:
        """These fetches have ended after N seconds each; their hosts start their pauses. O(log n) each."""
        for one, asked, seconds in zip(page.tolist(), host.tolist(), duration.tolist(), strict=True):
            self.done(one, asked, now, seconds)

    def done(self, page: int, host: int, now: float, duration: float) -> None:
        """This fetch has ended after N seconds; its host starts its pause. O(log n)."""
        if self.in_flight.get(host) != page:
            raise ValueError(f"page {page} of host {host} is not being fetched")
        del self.in_flight[host]
        self._politeness.done(host, now, duration)
        self._settle(host)

    def undone(self, page: int, host: int, until: float) -> None:
        """This fetch did not take place; its host makes no pause, but is left alone until then. O(log n)."""
        if self.in_flight.get(host) != page:
            raise ValueError(f"page {page} of host {host} is not being fetched")
        del self.in_flight[host]
        self._politeness.undone(host)
        self._politeness.block_until(host, until)
        self._settle(host)

    def offers(self) -> tuple[IntArray, IntArray, FloatArray]:
        """All pages on offer: page, host, due."""
        page = np.fromiter(self._offer, np.int64, len(self._offer))
        host = np.fromiter((host for _, host in self._offer.values()), np.int64, len(self._offer))
        return page, host, np.fromiter((due for due, _ in self._offer.values()), np.float64, len(self._offer))

    # -- inside -------------------------------------------------------------------------------

    def _head(self, host: int) -> tuple[float, int] | None:
        """The first standing offer of the host; stale ones before it are dropped."""
        queue = self._queue.get(host)
        if queue is None:
            return None
        while queue:
            due, page = queue[0]
            if self._offer.get(page) == (due, host):
                return queue[0]
            heapq.heappop(queue)
        del self._queue[host]
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
        """Build all queues again once most of their entries must be stale. O(pages), after as many pushes."""
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


_PAGES = 8
_VISITS = 12


def warm_up_schedule(mine: Policy) -> None:
    """Compile kernels before they are needed, by a synthetic crawl of a few pages.

    Ask a policy that knows no pages and is of no other use what the live crawl will ask, and a frontier as well.

    Seconds where kernels have to be compiled, which happens once on a machine; milliseconds elsewhere.
    """
    page = np.arange(1, _PAGES + 1)
    mine.add(Pages.of(page, host=1 + page % 2, discovered=-DAY * page.astype(np.float64)))
    time = HOUR * (1 + np.arange(_VISITS))[None, :] * page[:, None]
    verdict = np.where((np.arange(time.size) % 3 == 0).reshape(time.shape), Verdict.CHANGED, Verdict.UNCHANGED)
    mine.tell(Visits.of(np.repeat(page, _VISITS), time.ravel(), outcome=Outcome.FETCHED, verdict=verdict.ravel()))
    now = 3.0 * DAY
    mine.fit(_PAGES / DAY, now)
    for asked in (mine, mine.replica() if isinstance(mine, ReplicablePolicy) else mine):
        asked.due(page, now)
        asked.urgency(page, now)
        asked.tell(Visits.of(page, np.full(_PAGES, now), outcome=Outcome.FETCHED, verdict=Verdict.UNCHANGED))
        asked.due(page, now)
    frontier = Frontier(Politeness(PolitenessRules()))
    frontier.offer(page, 1 + page % 2, np.zeros(_PAGES))
    found = frontier.next_many(now, 2)
    for number, host in zip(found.page.tolist(), found.host.tolist(), strict=True):
        frontier.done(number, host, now, 0.1)
    frontier.withdraw(page)
