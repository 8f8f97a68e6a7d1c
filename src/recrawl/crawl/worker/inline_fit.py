"""Keeps the policy in step with the store: loads what is recorded, and fits in time.

:class:`ScheduleFit` does the fit, and two callers run it. :class:`InlineFit` runs it in the event loop, for virtual
time and for small stores, where it takes milliseconds. ``crawl.worker.fit_process`` runs it in a subprocess everywhere
else.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.control.price_exchange import Partition, PriceExchange
from recrawl.crawl.visit.recorder import Recorder, recall_signals
from recrawl.crawl.worker.gc_tuning import give_back_memory
from recrawl.crawl.worker.schedule_snapshot import LoadedVisits, ScheduleSnapshot
from recrawl.errors import RecrawlError, StoreError
from recrawl.model import BoolArray, FloatArray, IntArray, Pages
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policy import Policy, SnapshotPolicy
from recrawl.store.base import Store
from recrawl.store.coordination import Coordination

_MAX_WAIT = 60.0
"""Seconds a fit waits for a moment without requests; then it is made beside them."""
_FIRST_MAX_WAIT = 1.0
"""The same for the first fit, without which no visit has a value."""
_CHUNK = 100_000
"""Pages rescheduled in one transaction, so that other workers can write in between."""
_DUE_CHUNK = 50_000
"""Pages whose due times are computed at a time."""


class ScheduleFit:
    """Loads what a store holds into a scheduler, fits it, and yields the new due times.

    Policy state is a fold over visits, so recovery is replay, and visits of other workers are loaded the same way.
    Where workers share a store, each loads the pages of its own buckets only. When buckets move, the pages of those
    that were lost are dropped: the scheduler starts over with the others, from its snapshot or by a replay.
    """

    def __init__(
        self,
        store: Store,
        scheduler: RevisitScheduler,
        late: float,
        snapshot: ScheduleSnapshot | None = None,
        coordination: Coordination | None = None,
    ) -> None:
        """Other workers may record visits up to ``late`` seconds after they were made.

        With ``snapshot``, the first load goes on from there if it can, and :meth:`save` replaces it. Partitions find
        one price through ``coordination``, by default that of the store.
        """
        self._store = store
        self._scheduler = scheduler
        self._late = late
        self._snapshot = snapshot
        self._exchange = PriceExchange(coordination or store)
        self._loaded: LoadedVisits | None = None
        self._partition: Partition | None = None
        self._empty: Policy | None = None
        """A copy of the policy before it had pages, once there is a partition."""
        self.visits_read = 0
        """Number of visits that the last load read from the store."""

    def start_over(self) -> None:
        """Load all visits again, not only those since the last time."""
        self._loaded = None

    def catch_up(self, now: float, partition: Partition | None = None, *, adds: bool = False) -> Pages:
        """Load pages, and visits since the last time, also those of other workers; return the pages to be visited.

        All pages, or those of a partition; it must be given from the first call on, or never. If buckets were lost, the
        scheduler starts over. With ``adds`` nobody else adds pages or visits to it: then pages of buckets that were won
        are added. Otherwise it starts over whenever it has a part of the pages, because it may have been told of pages
        of others, or of new visits to a page before the old ones. Known visits are skipped. O(pages + visits since).
        """
        won = self._move_to(partition, adds=adds)
        buckets = None if partition is None or partition.is_whole else partition.buckets
        pages = self._store.pages() if buckets is None else self._store.pages_in(buckets)
        wanted = pages.take(pages.importance > 0)
        if self._loaded is None and self._snapshot is not None:
            self._loaded = self._snapshot.load(self._scheduler, self._store, wanted, buckets)
        self._scheduler.add(wanted)
        # Counted before visits are loaded: one that is recorded in between makes the next start load all of them.
        before, in_all = (self._store.count_before(time) for time in (now - self._late, now))
        since = None if self._loaded is None else self._loaded.complete_until
        self.visits_read = 0
        if len(won) and since is not None:
            new = np.intersect1d(wanted.id, self._store.pages_in(won).id)
            self._replay(new, new, None, now)
        self._replay(wanted.id, None if buckets is None else wanted.id, since, now)
        self._loaded = LoadedVisits(now, now - self._late, before, in_all)
        return wanted

    def _move_to(self, partition: Partition | None, *, adds: bool) -> IntArray:
        """Start over if buckets moved; return those that were won, if their pages are to be added instead."""
        nothing = np.empty(0, np.int64)
        before, self._partition = self._partition, partition
        if partition is None:
            return nothing
        if self._empty is None:
            self._empty = _copy_of(self._scheduler.policy)
        if before is None:
            return nothing
        same = np.array_equal(before.buckets, partition.buckets)
        if same and (adds or partition.is_whole):
            return nothing
        if adds and bool(np.isin(before.buckets, partition.buckets).all()):
            return np.setdiff1d(partition.buckets, before.buckets)
        self._scheduler.start_over(_copy_of(self._empty))
        self._loaded = None
        return nothing

    def _replay(self, known: IntArray, only: IntArray | None, since: float | None, now: float) -> None:
        """Tell the scheduler the visits and signals of known pages; ``only`` these are read, or all.

        Visits dated after the clock are ignored: with them pages would be due too late.
        """
        if only is None:
            visits = self._store.visits(since=since, until=now).sorted()
        else:
            visits = self._store.visits(pages=only, since=since, until=now).sorted()
        self.visits_read += len(visits)
        self._scheduler.tell(visits.take(np.isin(visits.page, known)))
        recall_signals(self._store, self._scheduler, known, since)

    def save(self) -> bool:
        """Store the state, so that the next start goes on from here; return whether it was stored.

        A full disk is no reason to end a crawl: then the state stays as it was.
        """
        if self._snapshot is None or self._loaded is None:
            return False
        with suppress(RecrawlError, OSError):
            buckets = None if self._partition is None or self._partition.is_whole else self._partition.buckets
            return self._snapshot.save(self._scheduler, self._loaded, buckets)
        return False

    def fit(self, wanted: Pages, now: float) -> DueBefore:
        """Fit the policy to everything loaded; return the stored due times, to compare the new ones with.

        A partition is fitted to the budget of all partitions. Pages that another crawler fetches at the moment keep
        their due times (``store.client_pages``).
        """
        flying = self._store.in_flight(now)
        known = wanted.take(~np.isin(wanted.id, flying)) if len(flying) else wanted
        due = DueBefore(known.id, known.host, self._store.due(known.id))
        if self._partition is None:
            self._scheduler.rebuild_new_page_queue(wanted.id, now)
            self._scheduler.fit(now)
        else:
            self._exchange.fit(self._scheduler, wanted.id, self._partition, now)
        return due

    def moved(self, due: DueBefore, now: float, at_once: Collection[int], tolerance: float) -> Iterator[DueMove]:
        """Due times that differ from the stored ones by more than ``tolerance`` of the time left, in chunks."""
        urgent = np.array(sorted(at_once), np.int64)
        for start in range(0, len(due.page), _DUE_CHUNK):
            rows = slice(start, start + _DUE_CHUNK)
            page, before = due.page[rows], due.before[rows]
            after = self._scheduler.due(page, now)
            after[np.isin(page, urgent)] = now
            moves = np.flatnonzero(_differs(before, after, now, tolerance))
            yield DueMove(page, due.host[rows], after, before).take(moves)


class DueBefore(NamedTuple):
    """Due times of pages before a fit."""

    page: IntArray
    host: IntArray
    before: FloatArray


class DueMove(NamedTuple):
    """Due times to write, and those in force when they were computed."""

    page: IntArray
    host: IntArray
    due: FloatArray
    before: FloatArray

    def take(self, rows: IntArray | slice) -> DueMove:
        """Some of the rows."""
        return DueMove(self.page[rows], self.host[rows], self.due[rows], self.before[rows])


def _differs(before: FloatArray, after: FloatArray, now: float, tolerance: float) -> BoolArray:
    """Which due times are worth writing; with a tolerance of 0, all that differ."""
    differs: BoolArray = before != after
    rows = np.flatnonzero(differs & np.isfinite(before) & np.isfinite(after))
    differs[rows] = np.abs(after[rows] - before[rows]) > tolerance * np.abs(after[rows] - now)
    return differs


class InlineFit:
    """Fits in the event loop, which is blocked meanwhile: for virtual time, and for few pages."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts that a fit concerns
        self,
        store: Store,
        scheduler: RevisitScheduler,
        recorder: Recorder,
        log: JsonLinesLog,
        late: float,
        partition: Callable[[float], Partition | None] = lambda _now: None,
    ) -> None:
        """Other workers may record visits up to ``late`` seconds after they were made.

        ``partition`` returns what this worker schedules at a time.
        """
        self._store = store
        self._scheduler = scheduler
        self._recorder = recorder
        self._log = log
        self._fit = ScheduleFit(store, scheduler, late)
        self._partition = partition
        self._wanted_since = math.inf

    def resume(self, now: float) -> None:
        """Load everything that is recorded."""
        self._recorder.schedule_covered()
        self._fit.start_over()
        self._fit.catch_up(now, self._partition(now))
        give_back_memory()

    def is_overdue(self, now: float) -> bool:
        """Whether a fit has waited long enough for a moment without requests: a request may take minutes."""
        if now < self._scheduler.fit_at:
            self._wanted_since = math.inf
            return False
        self._wanted_since = min(self._wanted_since, now)
        first = math.isinf(self._scheduler.fit_at)
        return now >= self._wanted_since + (_FIRST_MAX_WAIT if first else _MAX_WAIT)

    def fit(self, now: float) -> None:
        """Fit the policy to all visits and reschedule every page, except those that others visit meanwhile."""
        self._recorder.schedule_covered()
        wanted = self._fit.catch_up(now, self._partition(now))
        due = self._fit.fit(wanted, now)
        try:
            for move in self._fit.moved(due, now, self._recorder.at_once, tolerance=0.0):
                for some in parts_of(move, _CHUNK):
                    self._store.reschedule(some.page, some.due, before=some.before)
        except StoreError:
            self._scheduler.fit_again()
            raise
        give_back_memory()
        self._log.event("schedule", "policy fitted", details=fitted(len(wanted), self._scheduler))


def _copy_of(policy: Policy) -> Policy:
    """A copy that shares what the policy was given: connections, models, functions."""
    given = policy.given if isinstance(policy, SnapshotPolicy) else ()
    return copy.deepcopy(policy, {id(one): one for one in given})


def parts_of(move: DueMove, most: int) -> Iterator[DueMove]:
    """The same in parts of at most ``most`` pages."""
    for start in range(0, len(move.page), most):
        yield move.take(slice(start, start + most))


def fitted(pages: int, scheduler: RevisitScheduler, **more: object) -> dict[str, object]:
    """The details of a fit for the log."""
    return {"pages": pages, "price": scheduler.policy.price, **more}
