"""Group commit: visits wait a moment for others, then one transaction acknowledges all of them.

A batch costs one sync of the archive file and one transaction, whatever its size. Waiting for the disk may be left to a
thread; the crawl goes on and collects the next batch. CPU work stays in the event loop: two threads that compete for
the interpreter cost more than the writing.

One batch is written at a time, so the order of writes is fixed. No more visits collect than one batch holds, so a kill
loses a bounded number.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from recrawl.crawl.control.json_log import JsonLinesLog, Level
from recrawl.crawl.visit.fault_isolation import FaultReporter
from recrawl.crawl.visit.recorder import CommitBatch, Recorder
from recrawl.crawl.visit.visit_machine import VisitDone, VisitEvent
from recrawl.crawl.worker.lease_pool import LeasePool, ReadyQueue
from recrawl.crawl.worker.sitemap_feed_poller import SitemapFeedPoller
from recrawl.formats.atomic_files import waits_for
from recrawl.model import ANSWERED, Outcome, Verdict, Visits
from recrawl.schedule.politeness.host_politeness import Politeness

LEASE_LOST = "visit recorded without a verdict, lease lost"
_LONGEST_LINGER = 1.0
"""Seconds that a visit waits for others at most, however many workers there are."""
_HEAVY = 32 * 1024 * 1024
"""Bytes of responses from which on visits are committed at once."""


@dataclass(frozen=True, slots=True)
class _CommitWaiter:
    """A batch, and the step it waits for."""

    group: CommitBatch
    waiting: Future[object]
    over: asyncio.Task[None]
    """Ends when that step does."""
    recorded: bool
    """Whether the store has the batch by then, or only the archive."""


class GroupCommit:
    """Visits that are made and not acknowledged. If a commit fails they stay, and it can be retried."""

    def __init__(  # noqa: PLR0913 - the parts it notifies, and how long visits wait
        self,
        recorder: Recorder,
        *,
        politeness: Politeness,
        lease_pool: LeasePool,
        ready_queue: ReadyQueue,
        sitemap_feed_poller: SitemapFeedPoller,
        log: JsonLinesLog,
        faults: FaultReporter,
        on_visits: Callable[[Sequence[VisitDone]], None],
        most: int,
        linger: float,
        aside: Executor | None = None,
    ) -> None:
        """A visit waits for ``linger`` seconds (longer beside other workers: :meth:`share`), or until ``most`` wait.

        ``aside`` is an executor whose thread waits for the disk while the crawl continues; without it the crawl waits.
        """
        self._recorder = recorder
        self._politeness = politeness
        self._lease_pool = lease_pool
        self._ready_queue = ready_queue
        self._sitemap_feed_poller = sitemap_feed_poller
        self._log = log
        self._faults = faults
        self._on_visits = on_visits
        self._most = most
        self._linger = self._shortest_linger = linger
        self._aside = aside
        self._waiting: list[VisitDone] = []
        """In the order in which they are recorded."""
        self._host_ready: list[float] = []
        """For each of them, when its host may be requested again."""
        self._weight = 0
        """Bytes of their responses."""
        self._due = math.inf
        self._written: _CommitWaiter | None = None
        """The batch that is being written."""

    def __len__(self) -> int:
        """Number of visits not acknowledged yet."""
        return len(self._waiting) + (len(self._written.group.batch) if self._written else 0)

    @property
    def made(self) -> Sequence[VisitDone]:
        """Visits that the store does not have yet. Their leases are still ours."""
        if self._written is None or self._written.recorded:
            return self._waiting
        return [*self._written.group.batch, *self._waiting]

    @property
    def underway(self) -> Visits:
        """Visits of the batch being written: the scheduler has them, the store may not."""
        return Visits.empty() if self._written is None else self._written.group.visits

    @property
    def due(self) -> float:
        """When the waiting visits are to be written, seconds since the epoch; infinity if none can be."""
        return self._due if self._written is None else math.inf

    @property
    def writing(self) -> asyncio.Task[None] | None:
        """A task that ends when the batch being written can go on, or is acknowledged."""
        return self._written.over if self._written else None

    def share(self, workers: int) -> None:
        """Let batches collect for longer beside other workers on the store: each makes a part of the visits.

        So all workers together commit about as often as one alone, and batches stay as large.
        """
        self._linger = min(self._shortest_linger * workers, max(_LONGEST_LINGER, self._shortest_linger))

    def is_due(self, now: float) -> bool:
        """Whether visits have waited long enough, or are numerous enough."""
        return len(self._waiting) >= self._most or now >= self.due

    def add(self, visited: VisitDone, now: float) -> None:
        """Queue a visit to be recorded; if it is a confirmation, the first visit is queued before it."""
        if not self._waiting:
            self._due, self._weight = now + self._linger, 0
        free_at = self._politeness.free_at(visited.target.host)
        for observation in (visited.first, visited) if visited.first else (visited,):
            self._waiting.append(observation if observation is visited else replace(observation, is_first=True))
            self._host_ready.append(free_at if math.isfinite(free_at) else now)  # it may be requested again already
            self._weight += len(observation.capture.raw_body) if observation.capture else 0
        if self._weight >= _HEAVY:
            self._due = now

    def begin(self, now: float) -> None:
        """Acknowledge the waiting visits in one batch: at once, or in the thread.

        If the previous batch is still being written, wait for that one: no more visits may collect.
        """
        if self._aside is None or not self._waiting:
            self.record(now)
            return
        if self._written is not None:
            self._end(now)
            return
        group = self._recorder.prepare(self._waiting, now, np.array(self._host_ready))
        if group.batch:
            self._wait_aside(group, partial(self._recorder.sync, group), recorded=False)
        self._take_out(group, now)

    def _take_out(self, group: CommitBatch, now: float) -> None:
        """Remove the visits of a batch from the queue. If others remain, they have waited long enough."""
        del self._waiting[: group.covers], self._host_ready[: group.covers]
        self._due = now if self._waiting else math.inf

    def _wait_aside(self, group: CommitBatch, wait: Callable[[], object], *, recorded: bool) -> None:
        assert self._aside is not None  # noqa: S101 - nothing is started without it
        waiting = self._aside.submit(wait)
        self._written = _CommitWaiter(group, waiting, asyncio.create_task(_over(waiting)), recorded)

    def end(self, now: float) -> None:
        """Advance the batch being written if its step is done, and finish it if it is acknowledged.

        Raises:
            StoreError: it could not be written, and waits again, before all others.
        """
        if self._written is not None and self._written.waiting.done():
            self._go_on(self._written, now, aside=True)

    def _go_on(self, written: _CommitWaiter, now: float, *, aside: bool) -> None:
        """The step of a batch is over: acknowledge it now or in the thread (``aside``), or put it back if it failed."""
        group, self._written = written.group, None
        try:
            written.waiting.result()
            if not written.recorded:
                _feed(group, VisitEvent.ARCHIVED)
                commit = self._recorder.acknowledge(group)
                if aside:
                    self._wait_aside(group, commit, recorded=True)
                    return
                commit()
        except BaseException as error:  # noqa: BLE001 - what is no internal fault is raised again
            self._put_back(group, error, now)
            return
        self._acknowledged(group, now)

    def _put_back(self, group: CommitBatch, error: BaseException, now: float) -> None:
        """Queue visits that could not be recorded, before all others; a visit that broke our code becomes a failed one.

        Raises:
            StoreError: the disk is full, or the store is unreachable.
        """
        _feed(group, VisitEvent.UNRECORDED)
        batch, ready = list(group.batch), group.host_ready.tolist()
        trouble = waits_for(error)
        if isinstance(error, Exception) and trouble is None:
            batch = self._recorder.not_recorded(group, error, now)
        self._waiting[:0], self._host_ready[:0] = batch, ready[: len(batch)]
        self._due = now if self._waiting else math.inf
        if trouble is not None:
            raise trouble from (None if trouble is error else error)
        if not isinstance(error, Exception):
            raise error

    def record(self, now: float) -> None:
        """Acknowledge all visits, and return when that is done."""
        self._end(now)
        while self._waiting:
            group = self._recorder.prepare(self._waiting, now, np.array(self._host_ready))
            self._take_out(group, now)
            if not group.batch:
                continue
            try:
                self._recorder.sync(group)
                _feed(group, VisitEvent.ARCHIVED)
                self._recorder.acknowledge(group)()
            except BaseException as error:  # noqa: BLE001 - as above
                self._put_back(group, error, now)
            else:
                self._acknowledged(group, now)
        self._lease_pool.lease_soon()

    def _end(self, now: float) -> None:
        """Wait for the batch being written."""
        if self._written is not None:
            self._go_on(self._written, now, aside=False)

    def _acknowledged(self, group: CommitBatch, now: float) -> None:
        """Notify all parts of acknowledged visits. Their leases ended, so there may be pages to lease.

        A part that fails does not stop the others, and a visit that cannot be reported does not stop the other visits.
        """
        _feed(group, VisitEvent.COMMITTED)
        self._lease_pool.lease_soon()
        with ExitStack() as told:
            poller, queue = self._sitemap_feed_poller, self._ready_queue
            told.callback(self._each, lambda some: queue.join(poller.visited(some, now)), group)
            told.callback(self._each, self._note, group)
            told.callback(self._tell, group)
            told.callback(self._finish, group)

    def _finish(self, group: CommitBatch) -> None:
        lost = self._recorder.finish(group)
        if lost:
            with self._faults.contained():
                self._log.events("fetch", LEASE_LOST, [("warn", {"url": url}) for url in lost])

    def _note(self, batch: Sequence[VisitDone]) -> None:
        self._log.events("fetch", "visited", [log_entry(one) for one in batch])

    def _tell(self, group: CommitBatch) -> None:
        with self._faults.contained():
            self._on_visits(group.batch)

    def _each(self, work: Callable[[Sequence[VisitDone]], object], group: CommitBatch) -> None:
        self._faults.each(work, group.batch, lambda visited: visited.target.url)

    def give_up(self) -> None:
        """Drop visits that are not acknowledged: their pages will be visited again."""
        if self._written is not None:
            wait([self._written.waiting])
            _feed(self._written.group, VisitEvent.DROP)
            self._written = None
        for visited in self._waiting:
            if not visited.is_first:
                visited.target.machine.feed(VisitEvent.DROP)
        self._begin_anew()
        self._recorder.give_up()

    def _begin_anew(self) -> None:
        self._waiting, self._host_ready, self._due = [], [], math.inf


def _feed(group: CommitBatch, event: VisitEvent) -> None:
    """Tell the visits of a batch; a first fetch is only a part of its visit."""
    for visited in group.batch:
        if not visited.is_first:
            visited.target.machine.feed(event)


async def _over(writing: Future[object]) -> None:
    """Return when ``writing`` is done, whatever its result."""
    waiting = asyncio.wrap_future(writing)
    await asyncio.wait([waiting])
    waiting.exception()  # the batch raises it again; here it only avoids asyncio's report of an unretrieved exception


_OUTCOMES = {outcome: outcome.name.lower() for outcome in Outcome}
_VERDICTS = {verdict: verdict.name.lower() for verdict in Verdict}


def log_entry(visited: VisitDone) -> tuple[Level, dict[str, object]]:
    """Level and details of a visit in the log."""
    visit = visited.visit
    details: dict[str, object] = {
        "url": visited.target.url,
        "outcome": _OUTCOMES[visit.outcome],
        "verdict": _VERDICTS[visit.verdict],
        "magnitude": round(visit.magnitude, 3),
        "status": visit.status,
        "size": visit.size,
    }
    if reason := visited.reason or (visited.capture.error if visited.capture is not None else ""):
        details["reason"] = reason
    return "info" if visit.outcome <= ANSWERED else "warn", details
