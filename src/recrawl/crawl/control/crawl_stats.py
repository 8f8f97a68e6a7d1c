"""Statistics of a crawl at a moment, for displays and metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.control.run_control import StoreRunControl, WorkerLoad
from recrawl.crawl.visit.warc_archive import ResponseArchive
from recrawl.errors import StoreError
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.politeness.host_politeness import Politeness
from recrawl.store.base import Store
from recrawl.store.store_values import DueBacklog
from recrawl.time import Clock

_COUNT_EVERY, _SHARE_OF_TIME = 0.5, 0.02
"""Minimum seconds between two counts of due pages; share of the time that counting may take."""


@dataclass(frozen=True, slots=True)
class CrawlStats:
    """Statistics of a crawl at a moment."""

    now: float
    underway: int
    """Running requests for pages."""
    in_hand: int
    """Pages leased and not requested yet."""
    due: int
    """Pages of the whole store that are due, paused hosts included."""
    held: int
    """Due pages on paused hosts."""
    late: float
    """Seconds since the first of them was due."""
    next_due: float
    """When the next page can be visited, seconds since the epoch; infinity for never."""
    hosts_resting: int
    """Hosts that may not be requested at this moment."""
    workers: int
    """Workers that share the store, this one included."""
    first: bool
    """Whether this worker started before all others."""
    budget: float
    """Visits per second."""
    left: float | None
    """Visits that the budget allows now; ``None`` if any number."""
    price: float | None
    paused: bool
    fits: int
    """Fits of the policy since the run started."""
    archived: int
    """Bytes written to archive files since the run started."""
    events: Mapping[str, int]
    """Events logged since the run started, by level."""
    resting: int = 0
    """Due pages on hosts that may not be requested yet."""
    masked: int = 0
    """Parts of pages that are masked as noise, on the hosts in this worker's memory."""


@dataclass(slots=True)
class StatsCollector:
    """Collects the statistics of a worker. Due pages are counted now and then, the rest is read at once."""

    load: Callable[[], WorkerLoad]
    clock: Clock
    store: Store
    scheduler: RevisitScheduler
    politeness: Politeness
    run_control: StoreRunControl
    log: JsonLinesLog
    archive: ResponseArchive
    masked: Callable[[], int] = lambda: 0
    _backlog: DueBacklog = field(default_factory=lambda: DueBacklog(0, 0, math.inf))
    _next_due: float = math.inf
    _count_at: float = -math.inf

    def take(self, *, restart: bool = False, count: bool = True) -> CrawlStats:
        """The statistics now; with ``restart`` due pages are counted again, however long that takes.

        Without ``count`` the store is not queried, and the last count of due pages is returned.
        """
        now, run_control = self.clock.now(), self.run_control
        if restart or (count and now >= self._count_at):
            with suppress(StoreError):  # the worker knows, and waits; the last count stands
                self._backlog, self._next_due = self.store.backlog(now), self.store.next_due()
            took = self.clock.now() - now
            self._count_at = now + max(_COUNT_EVERY, took / _SHARE_OF_TIME)
        load, backlog = self.load(), self._backlog
        free_at, _ = self.politeness.columns
        return CrawlStats(
            now=now,
            underway=load.underway,
            in_hand=load.in_hand,
            due=backlog.due,
            held=backlog.paused,
            resting=backlog.resting,
            late=max(now - backlog.earliest, 0.0) if backlog.due else 0.0,
            next_due=self._next_due,
            hosts_resting=int((free_at > now).sum()),
            workers=run_control.workers,
            first=run_control.is_first,
            budget=run_control.budget,
            left=run_control.left(now),
            price=self.scheduler.policy.price,
            paused=run_control.paused,
            fits=self.scheduler.fits,
            archived=self.archive.written,
            masked=self.masked(),
            events={str(level): count for level, count in self.log.counts.items()},
        )
