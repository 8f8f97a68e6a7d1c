"""Fits the schedule of a frontier beside its clients.

A worker of ours fits in its event loop; a frontier has none, and its clients call it from whatever they run in. So a
thread with a loop of its own does it. Small stores are fitted there within milliseconds, large ones in a subprocess
(``crawl.worker.fit_process``). The scheduler is only touched under the lock of the frontier.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.worker.crawl_worker import FEW_PAGES, FEW_VISITS, LATE
from recrawl.crawl.worker.fit_process import BackgroundFit, FitRecipe
from recrawl.crawl.worker.inline_fit import ScheduleFit, fitted
from recrawl.errors import RecrawlError
from recrawl.model import Visits
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.politeness.host_politeness import Politeness
from recrawl.store.base import Store

_EVERY = 1.0
"""Seconds between two checks whether a fit is due."""
_RETRY = 60.0
"""Seconds after a failed fit until it is tried again."""


@dataclass(slots=True)
class _NothingAtOnce:
    """A frontier has no pages that must be visited whatever the policy says."""

    at_once: frozenset[int] = field(default_factory=frozenset)


class FitThread:
    """Keeps a scheduler fitted. ``start`` and ``close`` are called once."""

    def __init__(  # noqa: PLR0913 - the parts that a fit concerns
        self,
        store: Store,
        scheduler: RevisitScheduler,
        *,
        lock: threading.RLock,
        politeness: Politeness,
        recipe: FitRecipe,
        log: JsonLinesLog,
        now: Callable[[], float],
        update: Callable[[float], None],
    ) -> None:
        """``update`` is called every second, under the lock: it applies changed limits."""
        self._store, self._scheduler, self._lock = store, scheduler, lock
        self._politeness, self._recipe, self._log = politeness, recipe, log
        self._now, self._update = now, update
        self._inline = ScheduleFit(store, scheduler, LATE)
        self._fits: BackgroundFit | None = None
        self._not_before = -np.inf
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="frontier fits", daemon=True)

    def start(self) -> None:
        """Fit a small store at once; begin with the fit of a large one. Then keep it fitted."""
        with self._lock:
            self._scheduler.rebuild_new_page_queue(np.empty(0, np.int64), self._now())
            if self._is_large():
                self._scheduler.await_first_fit()
            else:
                self._fit_inline(self._now())
        self._thread.start()

    def close(self) -> None:
        """End the thread and its subprocess."""
        self._over.set()
        self._thread.join()

    def _is_large(self) -> bool:
        pages, visits = self._store.rough_size()
        return pages > FEW_PAGES or visits > FEW_VISITS

    def _work(self) -> None:
        with suppress(RuntimeError):  # the interpreter ends
            asyncio.run(self._loop())

    async def _loop(self) -> None:
        try:
            while not self._over.is_set():
                self._turn(self._now())
                await asyncio.sleep(_EVERY if self._fits is None or not self._fits.is_pending else _EVERY / 4)
        finally:
            if self._fits is not None:
                await self._fits.close()

    def _turn(self, now: float) -> None:
        """Apply limits, and fit if it is time. A failure is logged, and tried again later."""
        try:
            with self._lock:
                self._update(now)
                if self._fits is not None:
                    self._fits.turn(now)
                elif now >= max(self._scheduler.fit_at, self._not_before):
                    if self._is_large():
                        self._fits = self._background()
                        self._fits.turn(now)
                    else:
                        self._fit_inline(now)
        except Exception as error:  # noqa: BLE001 - the schedule stays as it is
            is_new, self._not_before = now >= self._not_before, now + _RETRY
            if not is_new:  # the store is still away
                return
            words = str(error) if isinstance(error, RecrawlError) else repr(error)
            with suppress(RecrawlError):  # the disk is full
                self._log.event("schedule", "fit failed", level="error", details={"reason": words})

    def _background(self) -> BackgroundFit:
        return BackgroundFit(
            self._recipe,
            store=self._store,
            scheduler=self._scheduler,
            recorder=_NothingAtOnce(),
            politeness=self._politeness,
            log=self._log,
            underway=Visits.empty,
            held=lambda: np.empty(0, np.int64),
        )

    def _fit_inline(self, now: float) -> None:
        wanted = self._inline.catch_up(now)
        due = self._inline.fit(wanted, now)
        for move in self._inline.moved(due, now, (), tolerance=0.0):
            self._store.reschedule(move.page, move.due, before=move.before)
        self._log.event("schedule", "policy fitted", details=fitted(len(wanted), self._scheduler))
