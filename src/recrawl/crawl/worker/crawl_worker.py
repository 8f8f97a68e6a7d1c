"""The crawl worker, and the life of a visit.

The worker drives a loop and decides nothing itself. The policy decides what is *worth* a visit (``schedule/policies``),
the frontier decides what is *allowed* (``schedule/frontier``, ``schedule/politeness``). The simulator runs the same
two, and a test compares both logs. On a virtual clock a run is repeatable.

The life of a visit, step by step. ``visit/visit_machine.py`` has its states and what each event leads to; this worker
and the driver of site captures execute what the machine says:

1. **Lease.** ``lease_pool.py`` leases due pages from the store, so that no other worker visits them or their
   hosts. ``ReadyQueue`` keeps them in the frontier until they are due and their host is free.
2. **Robots.** The worker starts a task per turn (``_go``). ``visit/visitor.py`` looks up the rules of the host
   (``fetch/robots_cache.py``). If they are unknown, the turn is used to read robots.txt, and the page goes back to
   the queue. A page that the rules forbid ends here as a refused visit.
3. **Address gate.** The visitor reserves the IP address (``fetch/http/dns.py``), or the page is deferred.
4. **Fetch.** The visitor sends one request (``fetch/http/http_fetcher.py``), with validators unless the host's
   validators were found unreliable. An access method (``fetch/access``) may need several requests; each waits for
   the next turn of the host.
5. **Classify.** ``visit/change_classifier.py`` compares the response with the last version and ignores learned
   noise. ``parse`` does expensive parsing in subprocesses.
6. **Confirm.** If the difference may be noise, nothing is recorded yet: the page goes back to the queue with its
   first capture and is fetched again in the next turn of its host.
7. **Handle.** ``result_handler.py`` starts the pause of the host, holds results back while ``outages.py``
   cannot tell a silent host from a network outage of our own, and passes finished visits on.
8. **Archive and commit.** ``group_commit.py`` collects visits into batches. ``visit/recorder.py`` records discovered
   pages, writes the responses (``visit/warc_archive.py``), syncs the file, then commits visits, links, due
   times and the end of the leases in one transaction. Only then is a visit acknowledged.
9. **Reschedule.** The due time in that transaction comes from the policy
   (``schedule/frontier/revisit_scheduler.py``). ``fit_process.py`` refits the policy from time to time.

Which object holds a page, by the state of its visit:

    ==========================  ===============================  ==============================================
    page                        held by                          state of the visit
    ==========================  ===============================  ==============================================
    due                         the store                        none yet
    leased                      ``ReadyQueue``, ``LeasePool``    WAITING
    in its turn                 ``CrawlWorker._running``         ROBOTS to CLASSIFY
    in doubt (outage)           ``OutageDetector``               a result: DEFERRED to BLOCKED
    believed                    ``ResultHandler``                a result
    made, not acknowledged      ``GroupCommit``                  ARCHIVE, COMMIT
    acknowledged                the store                        RESCHEDULED
    ==========================  ===============================  ==============================================

A crash loses at most what is not acknowledged: those leases expire, the pages are still due, and ``outages.py`` cuts
their records off the archive file at the next start.
"""

from __future__ import annotations

import asyncio
import enum
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from recrawl.crawl.clock import SMALL, RealClock
from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.control.run_control import NoRunControl, RunControl, WorkerLoad
from recrawl.crawl.visit.fault_isolation import FaultReporter, InternalFault
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.visit_machine import (
    InternalFailure,
    Result,
    VisitDone,
    VisitEvent,
    VisitTarget,
    failure_of,
    unconfirmed_visit,
)
from recrawl.crawl.visit.visitor import Visitor
from recrawl.crawl.worker.event_loop import InterruptibleSleep, LoopLag, in_thread
from recrawl.crawl.worker.fit_process import BackgroundFit, FitRecipe, has_due_times_of
from recrawl.crawl.worker.group_commit import GroupCommit
from recrawl.crawl.worker.inline_fit import InlineFit
from recrawl.crawl.worker.lease_pool import LeasePool, ReadyQueue
from recrawl.crawl.worker.outages import StorageBackoff
from recrawl.crawl.worker.result_handler import FinishedRequest, ResultHandler
from recrawl.crawl.worker.sitemap_feed_poller import SitemapFeedPoller
from recrawl.detect import PageState
from recrawl.errors import StoreError
from recrawl.fetch.http.bytes_in_flight import BytesInFlight, Charge
from recrawl.formats.atomic_files import waits_for
from recrawl.model import IntArray
from recrawl.schedule.frontier.host_frontier import Frontier
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.politeness.host_politeness import Politeness
from recrawl.store.base import Store
from recrawl.store.store_values import LeasedPages
from recrawl.time import DAY, HOUR, MINUTE, Clock

FEW_PAGES, FEW_VISITS = 2_000, 50_000
"""Up to these sizes a fit blocks the event loop no longer than is acceptable."""
_AT_ONCE = 16
"""Requests started before results are handled again. Hosts that are requested together answer together, and would be
due together ever after, faster than they can be requested. Handling results in between spreads them."""
_STALE = 15.0
"""Seconds after the start of a turn of the loop within which its requests must be sent. The process may have been
suspended since, also in the middle of the turn. Other workers consider a worker dead that is silent for longer, and
take its leases; the next turn notices that before it starts a request."""
_STUCK_CHECKS = 8
"""Checks for stuck visits within the longest time that a visit may take."""
_CANCELLED = InternalFault("visit", "it did not end in time, or was cancelled", "")


_STANDSTILL = 15 * MINUTE
"""Seconds without a turn of the event loop after which its leases are no longer renewed by the thread."""
LATE = 30 * MINUTE
"""Seconds for which other workers may still record visits that they made."""


@dataclass(frozen=True, slots=True)
class WorkerPace:
    """Sizes and intervals of a worker."""

    sitemaps_every: float = DAY
    """Seconds between two fetches of a sitemap."""
    feeds_every: float = HOUR
    """Seconds between two fetches of a feed."""
    concurrency: int = 64
    """Maximum concurrent requests, over all hosts."""
    lease_size: int = 4_096
    """Maximum leased pages. Thousands of hosts need some pages each, or they are idle."""
    per_host: int = 16
    """Maximum leased pages of one host."""
    lease_time: float = 2 * MINUTE
    """Seconds for which pages are leased. A live worker renews its leases after a third of that."""
    batch: int = 256
    """Maximum visits per transaction."""
    linger: float = 0.25
    """Seconds that a visit waits for others to be committed with, while requests are under way. Times the number of
    workers on the store, up to a second."""
    longest_visit: float = 30 * MINUTE
    """Seconds after which a visit is cancelled. Reading robots.txt with all its redirects takes less."""
    poll: float = 60.0
    """Seconds after which an idle worker checks for new pages; infinity if nobody else adds any."""
    finish_within: float = math.inf
    """Seconds to wait for running requests when a run stops. Pages not answered by then are visited again."""


class StopReason(enum.Enum):
    """Why a run stopped."""

    IDLE = "nothing more is due that may be visited now"
    TIME = "its time is over"
    BUDGET = "the budget is spent"
    PAUSE = "the crawl is paused"
    STOP = "it was told to stop"


class CrawlWorker:
    """One worker. ``run`` may be called again; each run starts by replaying the visits in the store."""

    def __init__(  # noqa: PLR0913, PLR0915 - the parts it drives, each replaceable
        self,
        worker: str,
        *,
        clock: Clock,
        store: Store,
        scheduler: RevisitScheduler,
        politeness: Politeness,
        visitor: Visitor,
        recorder: Recorder,
        pace: WorkerPace,
        log: JsonLinesLog,
        run_control: RunControl | None = None,
        tidy: Callable[[float], object] = lambda _now: None,
        on_visits: Callable[[Sequence[VisitDone]], None] = lambda _visited: None,
        aside: Executor | None = None,
        fits: FitRecipe | None = None,
        in_flight: BytesInFlight | None = None,
    ) -> None:
        """``aside`` is an executor that writes visits while the crawl continues; without it the crawl waits.

        With ``fits``, a subprocess makes every fit of more than a few pages; without, the event loop does and is
        blocked meanwhile. ``in_flight`` counts the bytes of responses in memory: while it is full no request starts.
        """
        self._clock = clock
        self._in_flight = in_flight
        self._is_real = isinstance(clock, RealClock)
        """Virtual time does not advance while code runs, so nothing may run beside it."""
        self._store = store
        self._scheduler = scheduler
        self._politeness = politeness
        self._visitor = visitor
        self._recorder = recorder
        self._log = log
        self._run_control = run_control or NoRunControl(pace.concurrency)
        self._tidy = tidy
        """Called once a minute: cleans up what dead workers left."""
        self._cleanup_at = -math.inf
        self.faults = self._faults = recorder.faults = FaultReporter(log)
        """Reports exceptions of our own code."""
        self._storage_backoff = StorageBackoff(log, self._faults)
        self._lease_pool = LeasePool(worker, store, pace.lease_size, pace.per_host, pace.lease_time, pace.poll)
        self._sitemap_feed_poller = SitemapFeedPoller(store, recorder, log, (pace.sitemaps_every, pace.feeds_every))
        self._auxiliary_fetches = self._sitemap_feed_poller.auxiliary_fetches
        self._ready_queue = ReadyQueue(Frontier(politeness), self._lease_pool, self._auxiliary_fetches)
        self._fitting = InlineFit(store, scheduler, recorder, log, LATE, self._run_control.partition)
        self._fit_recipe = fits
        self._fits: BackgroundFit | None = None
        """The fit subprocess, once there are enough pages to need it."""
        self._covered_steps: Iterator[int] = iter(())
        """Steps that add known pages which the scope covers by now."""
        self._newly_scheduled = 0
        self._finish_within = pace.finish_within
        self.loop_lag = LoopLag(self._on_stall)
        """Measures how late the event loop is."""
        self._group_commit = GroupCommit(
            recorder,
            politeness=politeness,
            lease_pool=self._lease_pool,
            ready_queue=self._ready_queue,
            sitemap_feed_poller=self._sitemap_feed_poller,
            log=log,
            faults=self._faults,
            on_visits=on_visits,
            most=pace.batch,
            linger=pace.linger,
            aside=aside,
        )
        self._result_handler = ResultHandler(
            store=store,
            politeness=politeness,
            ready_queue=self._ready_queue,
            visitor=visitor,
            recorder=recorder,
            group_commit=self._group_commit,
            sitemap_feed_poller=self._sitemap_feed_poller,
            run_control=self._run_control,
            log=log,
            faults=self._faults,
        )
        self._running: dict[asyncio.Task[FinishedRequest], VisitTarget] = {}
        self.has_begun = False
        """Whether a run made its first turn. Before that nothing was requested, so the run can be restarted."""
        self.clock_was_set = False
        """Whether the last run stopped because the clock stepped. The caller then starts another run."""
        self._doubt = 0.0
        self._turned_at = -math.inf
        """When the event loop last made a turn (elapsed seconds)."""
        self._no_controls_before = self._no_fit_before = -math.inf
        self._longest_visit = pace.longest_visit
        self._stuck_at = -math.inf
        """When to check for stuck visits."""
        self._stuck_checks: dict[asyncio.Task[FinishedRequest], int] = {}
        """For each running visit, how many checks have found it running."""
        self._stopping = self._is_ready = False
        self.ended_by: StopReason | None = None
        """Why the last run stopped; ``None`` while it runs, and after an error."""
        self._asleep: InterruptibleSleep[set[asyncio.Task[FinishedRequest | None]]] = InterruptibleSleep()

    async def get_ready(self, until: float = math.inf, tell: Callable[[str], None] = lambda _doing: None) -> None:
        """Load the pages and fit the policy, so that ``run`` can start at once; ``tell`` receives the progress.

        A small store is loaded here. For a large one a subprocess loads it: if an earlier fit wrote due times, the
        crawl starts with these meanwhile, whatever the size of the store; otherwise it waits for the first fit.

        It returns early at ``until`` or on ``stop``; ``run`` then returns at once, too.

        Raises:
            StoreError: the store cannot be read, or no schedule can be made.
        """
        if self._is_real:
            self.loop_lag.start()
        try:
            self._lease_pool.start_empty()
            if self._fit_recipe is None or not self._is_large():
                self._fitting.resume(self._clock.now())
            elif has_due_times_of(self._store, self._scheduler.policy.name):
                self._scheduler.await_first_fit()
                self._start_fits(self._fit_recipe)
            else:
                await self._get_first_fit(self._fit_recipe, until, tell)
        except BaseException:
            await self._end_fits()
            raise
        self._ready_queue.join(self._sitemap_feed_poller.begin(self._clock.now()))
        self._is_ready = True

    async def run(
        self, until: float, progress: Callable[[float], None] = lambda _now: None, *, until_idle: bool = False
    ) -> None:
        """Visit due pages until ``until`` or ``stop``, then finish running requests and return the other leases.

        With ``until_idle`` it also stops as soon as no page is due, or no due page may be visited now because the
        budget is spent or the crawl is paused. ``progress`` receives the time now and then.

        Remote failures and pages that break our own code do not stop a run. A full disk or an unreachable store do not
        either: nothing starts until they work again. A cancellation stops it: finished visits are recorded, running
        requests are dropped, and every lease is returned.

        Raises:
            StoreError: the store is damaged, or the disk or the store still failed when the run had to stop. Visits
                made since are not acknowledged, and their pages will be visited again.
        """
        forced, self.ended_by = False, None
        self.clock_was_set = False
        try:
            if not self._is_ready:
                await self.get_ready(until)
            begin = partial(self._run_control.begin, self._clock.now())
            if self._fit_recipe is None:
                begin()
            else:  # it counts the visits of hours, and nothing else runs yet
                await in_thread(begin)
            self.has_begun = self._clock.now() < until and not self._stopping
            while (now := self._clock.now()) < until and not (self._stopping or self.clock_was_set):
                try:
                    if await self._turn(now, until, until_idle=until_idle):
                        break
                    self._storage_backoff.over(now)
                except Exception as error:  # noqa: BLE001 - only a damaged store stops the run
                    await self._sleep((), min(self._storage_backoff.met(error, now), until))
                with suppress(StoreError), self._faults.contained():  # the next turn meets the same failure
                    progress(self._clock.now())
            await self._wind_up()
            if self.clock_was_set:
                hosts, ready = self._politeness.resting(self._clock.now())
                self._store.set_host(hosts, ready_at=ready)
        except asyncio.CancelledError:
            forced = True
            with suppress(StoreError):
                self._group_commit.record(self._clock.now())
            raise
        finally:
            dropped = [*self._running.values()]
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            self._running = {}
            self._stopping = self._is_ready = False
            await self._end_fits()
            with suppress(StoreError), self._faults.contained():
                self._end_measuring()
            with self._faults.contained():
                self._result_handler.give_up()
                self._group_commit.give_up()
            with suppress(*((StoreError,) if forced else ())), self._faults.contained():
                self._ready_queue.empty()
                self._drop(dropped, self._clock.now())
                self._run_control.end(self._clock.now())

    def _drop(self, targets: Sequence[VisitTarget], now: float) -> None:
        """Free the leases of dropped requests, after a pause of their hosts.

        The response times are unknown, so each host pauses as long as the slowest one does.
        """
        if not targets:
            return
        for target in targets:
            target.machine.feed(VisitEvent.DROP)
        hosts = self._store.hosts(np.unique([target.host for target in targets]))
        rest = np.maximum(hosts.delay, self._politeness.rules.longest)
        self._store.set_host(hosts.id, ready_at=np.maximum(hosts.ready_at, now + rest))
        self._lease_pool.start_empty()

    async def _wind_up(self) -> None:
        """Finish running requests, record the visits, and return the other leases."""
        if self.ended_by is None:
            self.ended_by = StopReason.STOP if self._stopping else StopReason.TIME
        await self._finish()
        self._handle_finished(())
        self._result_handler.requeue_doubtful()
        with self._faults.contained():
            self._return_pages(self._clock.now())

    async def _turn(self, now: float, until: float, *, until_idle: bool) -> bool:
        """Start what can start, then handle what finishes first; return whether nothing is left to do."""
        self._turned_at = self._clock.elapsed()
        now = self._set_clock_right(now)
        if self.clock_was_set:
            return False
        if self._storage_backoff.is_on:
            self._recover(now)
        self._group_commit.end(now)
        self._end_stuck(now)
        self._apply_controls(now)
        if now >= self._cleanup_at:
            self._cleanup_at = now + MINUTE
            with self._faults.contained():
                self._tidy(now)
        self._take(now)
        overdue = self._advance_fits(now) if self._fits else self._fitting.is_overdue(now)
        when = math.inf if overdue else self._start_requests(now)
        if overdue or (self._fits is None and now >= self._scheduler.fit_at and not self._is_busy()):
            self._fit(now)
            return False
        if until_idle and self._is_idle(now):
            self.ended_by = self.ended_by or StopReason.IDLE
            return True
        self._handle_finished(await self._wait(min(when, until)))
        return False

    def _set_clock_right(self, now: float) -> float:
        """Apply corrections of the machine's clock; return the time now.

        Durations stay what they were: pauses of hosts, and our leases. A large step stops the run, because every stored
        time may be wrong; the caller starts another run.
        """
        moved = self._clock.set_right()
        is_step = abs(moved) > SMALL
        if moved > 0 or is_step:
            self.clock_was_set = is_step
            self._politeness.shift(now, moved)
            with suppress(StoreError):  # leases may be lost then, which is noticed at renewal
                self._lease_pool.shift_clock(now, moved, self._pages_underway(), alone=self._run_control.workers == 1)
        if moved:
            self._log.event("schedule", "clock was set", level="warn", details={"seconds": moved})
        self._log_clock_doubt()
        return self._clock.now()

    def _log_clock_doubt(self) -> None:
        """Log that a large clock correction is not applied yet, or that it is over."""
        doubt = self._clock.uncertain
        if bool(doubt) == bool(self._doubt):
            return
        if doubt:
            message = {"seconds": doubt}
            self._log.event("schedule", "clock jump ignored for now", level="warn", details=message)
        elif not self.clock_was_set:
            self._log.event("schedule", "clock jump reverted", level="warn")
        self._doubt = doubt

    def _recover(self, now: float) -> None:
        """Retry what failed before anything new starts, and return leases that a failed call may have taken.

        While the store was away, others may have considered this worker dead. So nothing is requested before it has
        reported again, and knows which leases are still its own.
        """
        self._no_controls_before = -math.inf
        self._lease_pool.check_soon()
        self._handle_finished({task for task in self._running if task.done()})
        if self._storage_backoff.is_our_fault:
            self._return_pages(now)  # the lease pool and the frontier may disagree
        self._group_commit.record(now)
        self._lease_pool.drop_strays(self._pages_underway())

    def _end_stuck(self, now: float) -> None:
        """Cancel visits that several checks in a row found running. Elapsed time is no measure, since clocks are set.

        O(running requests), a few times in half an hour.
        """
        if now < self._stuck_at:
            return
        self._stuck_at = now + self._longest_visit / _STUCK_CHECKS
        self._stuck_checks = {task: self._stuck_checks.get(task, 0) + 1 for task in self._running}
        for task, checks in self._stuck_checks.items():
            if checks > _STUCK_CHECKS:
                task.cancel()

    def stop(self) -> None:
        """Start nothing more; ``run`` returns once running requests are handled. Call it in the event loop."""
        self._stopping = True
        self._asleep.end()

    # -- deciding -----------------------------------------------------------------------------

    def _is_idle(self, now: float) -> bool:
        """Whether nothing is under way, and no page, leased or due in the store, may be visited now."""
        if self._running or self._group_commit or (self._fits is not None and self._fits.is_pending):
            return False
        if self._run_control.is_held(now):
            self.ended_by = StopReason.PAUSE if self._run_control.paused else StopReason.BUDGET
            return True
        if self._lease_pool:
            return False
        at_once = (
            auxiliary
            for auxiliary in self._auxiliary_fetches.due(now)
            if self._politeness.free_at(auxiliary.host) < now + MINUTE
        )
        if next(at_once, None) is not None:
            return False
        # Wait for a host that only pauses between requests; do not wait for one that fails or that others hold.
        return math.isinf(self._store.soon_free(now, self._politeness.rules.longest))

    def _start_requests(self, now: float) -> float:
        """Start all allowed requests; return when the next page may be requested if nothing finishes before."""
        if self._in_flight is not None and self._in_flight.is_full:
            self._record_unconfirmed(now)  # they would wait for each other
            if self._running or self._group_commit:  # their bytes are freed soon
                return math.inf
        room = self._run_control.room(now, len(self._running))
        if room <= 0:
            return self._run_control.next_at(now)
        room = self._result_handler.outage.room(now, len(self._running), room)
        if room <= 0:
            return math.inf if self._running else self._result_handler.outage.try_at
        at_once = min(room, _AT_ONCE)
        found = self._ready_queue.next_many(now, at_once)
        self._run_control.began(now, int((found.page >= 0).sum()))
        failed: Exception | None = None
        for page, host in zip(found.page.tolist(), found.host.tolist(), strict=True):
            try:
                self._start(page, host, now)
            except Exception as error:  # noqa: BLE001 - the others are started first: their hosts are taken by now
                failed = failed or error
        if failed is not None:
            raise failed
        if len(found.page) < at_once:
            return found.until
        return now if at_once < room else math.inf

    def _start(self, page: int, host: int, now: float) -> None:
        """Request a page or an auxiliary fetch that the frontier chose, unless it must wait.

        The frontier keeps the host for it, so whatever fails, the host is freed. If our own code fails on the target,
        that is a failed visit.

        Raises:
            Exception: the disk is full, the store is unreachable, or the target is not in the queue. Unless the target
                is in the queue by then, its lease is returned before anything else is leased.
        """
        target: VisitTarget | None = None
        try:
            target = self._ready_queue.take(page)
            if self._result_handler.may_start(target, now):
                visit = self._go(target, self._turned_at + _STALE)
                self._running[asyncio.get_running_loop().create_task(visit)] = target
        except Exception as error:
            self._ready_queue.free(page, host)
            if target is None:
                self._lease_pool.forget(page)
                raise
            if waits_for(error) is None:
                self._result_handler.broken(target, error, now)
                return
            if target.is_auxiliary:
                self._ready_queue.put_back(target)
            elif page not in self._lease_pool:
                target.machine.feed(VisitEvent.DROP)
            raise

    async def _wait(self, when: float) -> set[asyncio.Task[FinishedRequest | None]]:
        """Sleep until there is work: a request is done, a page is due, a fit or a lease is wanted."""
        wake = min(
            when, self._lease_pool.renew_at, self._group_commit.due, self._result_handler.doubt_ends, self._controls_at
        )
        if self._running:
            wake = min(wake, self._stuck_at)
        if self._may_lease():
            wake = min(wake, self._lease_pool.lease_at)
        if self._fits is not None:
            wake = min(wake, max(self._fits.wake_at, self._no_fit_before))
        elif not self._is_busy():
            wake = min(wake, self._scheduler.fit_at)
        if self._schedule_some():
            wake = -math.inf
        writing = self._group_commit.writing
        beside: list[asyncio.Task[Any]] = [writing] if writing else []
        if self._fits is not None:
            beside.append(self._fits.news)
        return await self._sleep([*self._running, *beside] if beside else self._running, wake)

    def _is_busy(self) -> bool:
        """Whether requests run or visits are being written. Either may make pages due at once."""
        return bool(self._running) or self._group_commit.writing is not None

    def _may_lease(self) -> bool:
        """Whether to lease pages. Not while visits are written, because leasing would wait for that."""
        return not self._run_control.paused and self._group_commit.writing is None

    async def _sleep(
        self, running: Collection[asyncio.Task[FinishedRequest | None]], wake: float
    ) -> set[asyncio.Task[FinishedRequest | None]]:
        """Sleep until one of these is done, at the latest until ``wake``; wake at once on ``stop``."""
        done = await self._asleep.through(self._clock.wait(running, wake))
        return {task for task in self._running if task.done()} if done is None else done

    def _apply_controls(self, now: float) -> None:
        """Apply the controls in the store; leased pages may have to be returned for it."""
        if now < self._controls_at:
            return
        self._no_controls_before = now + MINUTE  # if it fails
        with self._faults.contained():
            if self._run_control.update(now, self.load()):
                self._return_pages(now)
            self._visitor.share(self._run_control.workers)
            self._group_commit.share(self._run_control.workers)
            if self._run_control.was_silent:
                self._lease_pool.check_soon()
            self._no_controls_before = -math.inf

    @property
    def _controls_at(self) -> float:
        return max(self._run_control.update_at, self._no_controls_before)

    @property
    def waits_for(self) -> str:
        """The failure of the disk, the store or our own code that this worker waits for; empty if there is none."""
        return self._storage_backoff.reason

    def load(self) -> WorkerLoad:
        """Pages requested, leased and not yet acknowledged."""
        underway = sum(not target.is_auxiliary for target in self._running.values())
        return WorkerLoad(underway, len(self._lease_pool), len(self._group_commit))

    def keep_leases(self) -> None:
        """Report that this worker lives and renew its leases, if the event loop is too busy to.

        A thread calls this. A loop blocked for ``_STANDSTILL`` seconds counts as dead, and its leases may expire.
        """
        if self._clock.elapsed() - self._turned_at < _STANDSTILL:
            now = self._clock.now()
            self._run_control.keep_alive(now)
            self._lease_pool.keep(now)

    # -- taking -------------------------------------------------------------------------------

    def _take(self, now: float) -> None:
        """Renew our leases, and lease more due pages."""
        if now >= self._lease_pool.renew_at and (lost := self._ready_queue.renew(now, self._pages_underway())):
            self._log.event("schedule", "leases were lost", level="warn", details={"given_back": lost})
        self._ready_queue.drop_lost()
        if not self._may_lease():
            return
        leased = self._lease_pool.lease(now, self._run_control.workers, owned=self._run_control.owns_buckets)
        if leased is None:
            return
        try:
            self._hold(leased, now)
        except Exception as error:
            if waits_for(error) is not None:
                raise
            self._hold_one_by_one(leased, now)

    def _hold(self, leased: LeasedPages, now: float) -> None:
        """Queue leased pages with what is known of them."""
        self._scheduler.add(self._store.pages(np.unique(leased.page)))
        sources = self._store.sources(leased.page)
        self._recorder.widen_scope(leased, sources)
        self._ready_queue.hold(leased, self._recorder.recall(leased, now), sources)

    def _hold_one_by_one(self, leased: LeasedPages, now: float) -> None:
        """Queue pages one by one after our own code failed on one of them: only that page fails."""
        for row in range(len(leased)):
            one = leased.take(slice(row, row + 1))
            try:
                self._hold(one, now)
            except Exception as error:
                if waits_for(error) is not None:
                    raise
                [last] = one.validators
                known = PageState(last, last.gone, last.mime)
                target = VisitTarget(int(one.page[0]), int(one.host[0]), one.url[0], float(one.due[0]), known)
                self._ready_queue.leave_out(target)
                self._result_handler.broken(target, error, now)

    def _pages_underway(self) -> list[int]:
        """Leased pages that are not queued: under way, or waiting to be recorded."""
        made = (visited.target for visited in self._group_commit.made)
        targets = (*self._running.values(), *made, *self._result_handler.held())
        return [target.page for target in targets if not target.is_auxiliary]

    def _return_pages(self, now: float) -> None:
        """Return the queued pages. A first fetch that waits for its confirmation is recorded as it is."""
        self._record_unconfirmed(now)
        self._group_commit.record(now)
        self._ready_queue.empty()

    def _record_unconfirmed(self, now: float) -> None:
        """Record first fetches that wait for a confirmation as they are."""
        for target in self._ready_queue.take_unconfirmed():
            target.machine.feed(VisitEvent.EXPIRED)
            self._group_commit.add(unconfirmed_visit(target), now)

    # -- fitting ------------------------------------------------------------------------------

    def _is_large(self) -> bool:
        """Whether a fit would block the event loop for too long."""
        pages, visits = self._store.rough_size()
        return pages > FEW_PAGES or visits > FEW_VISITS

    def _start_fits(self, recipe: FitRecipe) -> BackgroundFit:
        self._covered_steps = self._recorder.schedule_covered_steps()
        self._fits = BackgroundFit(
            recipe,
            store=self._store,
            scheduler=self._scheduler,
            recorder=self._recorder,
            politeness=self._politeness,
            log=self._log,
            underway=lambda: self._group_commit.underway,
            held=self._held,
            partition=self._run_control.partition,
        )
        return self._fits

    async def _end_fits(self) -> None:
        fits, self._fits = self._fits, None
        self._covered_steps = iter(())
        if fits is not None:
            await fits.close()

    async def _get_first_fit(self, recipe: FitRecipe, until: float, tell: Callable[[str], None]) -> None:
        """Wait until the fit subprocess has loaded the history; meanwhile add pages that the scope covers by now."""
        fits = self._start_fits(recipe)
        while not self._stopping and (now := self._clock.now()) < until:
            try:
                fits.turn(now)
                more = self._schedule_some()
                self._storage_backoff.over(now)
                if fits.is_ready:
                    break
            except StoreError as fault:
                await self._sleep((), min(self._storage_backoff.met(fault, now), until))
                self._covered_steps = self._recorder.schedule_covered_steps()
                continue
            tell(fits.doing)
            news: list[asyncio.Task[Any]] = [fits.news]
            await self._sleep(news, now if more else min(until, fits.wake_at))

    def _schedule_some(self) -> bool:
        """Add some of the pages that the scope covers by now; return whether there may be more."""
        taken = next(self._covered_steps, None)
        self._newly_scheduled += taken or 0
        if taken is None and self._newly_scheduled:  # new pages need a schedule
            self._newly_scheduled = 0
            self._scheduler.fit_again()
        return taken is not None

    def _advance_fits(self, now: float) -> bool:
        """Advance the fit subprocess. The crawl never waits for it."""
        assert self._fits is not None  # noqa: S101 - its caller checked
        if now < self._no_fit_before:
            return False
        self._no_fit_before = now + MINUTE  # if it fails
        with self._faults.contained():
            self._fits.turn(now)
            if self._fits.take_moved():  # queued pages may be due at another time
                self._covered_steps = self._recorder.schedule_covered_steps()
                self._ready_queue.empty(begun=False)
            self._no_fit_before = -math.inf
        return False

    def _held(self) -> IntArray:
        """Pages that we hold leases on."""
        return np.array([*self._lease_pool.pages(), *self._pages_underway()], np.int64)

    async def _finish(self) -> None:
        """Wait for running requests, for a limited time. Pages not answered by then are visited again."""
        end = self._clock.now() + self._finish_within
        while self._running and self._clock.now() < end:
            done = await self._clock.wait(self._running, min(end, self._stuck_at))
            self._end_stuck(self._clock.now())
            self._handle_finished(done)
        if self._running:
            details = {"requests": len(self._running), "seconds": self._finish_within}
            self._log.event("fetch", "requests dropped at the end", level="warn", details=details)

    def _end_measuring(self) -> None:
        if self.loop_lag.is_on:
            lag = self.loop_lag
            self._log.event(
                "schedule", "event loop", details={"longest_lag": round(lag.longest, 3), "stalls": lag.stalls}
            )
            lag.stop()

    def _on_stall(self, seconds: float) -> None:
        details = {"seconds": round(seconds, 3), "requests": len(self._running)}
        self._log.event("schedule", "event loop stalled", level="warn", details=details)

    def _fit(self, now: float) -> None:
        """Fit the policy. Queued pages may be due at another time afterwards; exchanges under way go on."""
        if self._fit_recipe is not None and self._is_large():  # there are more pages than before
            self._start_fits(self._fit_recipe)
            return
        self._group_commit.record(now)
        self._ready_queue.empty(begun=False)
        try:
            self._fitting.fit(now)
        except Exception as error:
            if waits_for(error) is not None:
                raise
            self._faults.beside_pages(error)
            self._scheduler.put_off_fit(now + HOUR)

    # -- going --------------------------------------------------------------------------------

    async def _go(self, target: VisitTarget, not_after: float) -> FinishedRequest:
        """Make one turn of a visit, and note when it ended; send nothing after ``not_after`` (elapsed seconds)."""
        since = self.loop_lag.time()
        result = await self._visitor.visit(target, not_after)
        stalled, lasted = self.loop_lag.stalled(since) + _waited(result), self.loop_lag.time() - since
        if result.capture is not None:
            await self._recorder.pack_ahead(result, self._clock)
        return FinishedRequest(result, self._clock.now(), stalled, lasted)

    def _handle_finished(self, done: Collection[asyncio.Task[FinishedRequest | None]]) -> None:
        """Handle finished requests in the order in which they started; commit visits if it is time."""
        now = self._clock.now()
        finished = [task for task in self._running if task in done] if done else []
        for task in finished:
            target = self._running.pop(task)
            self._stuck_checks.pop(task, None)  # it would keep the response in memory
            self._result_handler.take(_ended(task, target, now), now)
        if now >= self._result_handler.doubt_ends or not (self._running or self._lease_pool):
            self._result_handler.believe_doubtful(now)
        self._result_handler.handle_believed(now)
        if self._group_commit.is_due(now) or not self._is_busy():
            self._group_commit.begin(now)
        elif finished and not self._group_commit:
            self._lease_pool.lease_soon()


def _ended(task: asyncio.Task[FinishedRequest], target: VisitTarget, now: float) -> FinishedRequest:
    """The finished request of a task; a failure of our own code if it was stuck, cancelled itself or raised."""
    if task.cancelled():
        target.machine.feed(VisitEvent.FAULT)
        return FinishedRequest(InternalFailure(target, now, _CANCELLED), now)
    try:
        return task.result()
    except Exception as error:  # noqa: BLE001 - whatever our own code raises
        return FinishedRequest(failure_of(target, error, now), now)


def _waited(result: Result) -> float:
    """Seconds for which a response was not read because the memory for responses was full."""
    charge = None if result.capture is None else result.capture._charge  # noqa: SLF001 - made for this
    return charge.waited if isinstance(charge, Charge) else 0.0
