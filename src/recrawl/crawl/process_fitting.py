"""Fits beside the crawl: asks a fit process for them in time, and takes over what it found.

The crawl goes on by the state it has. If a fit fails or its process dies, that state stays in force, and another fit is
asked for after a while.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

import numpy as np

from recrawl.crawl.fit_process import (
    FitDone,
    FitFailed,
    FitMessage,
    FitProcess,
    FitProgress,
    FitRecipe,
    FitRequest,
    FittedState,
    read_state,
)
from recrawl.crawl.fitting import fitted
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.recorder import Recorder
from recrawl.errors import StoreError
from recrawl.model import IntArray, Visits
from recrawl.schedule.agenda import Agenda
from recrawl.schedule.politeness import Politeness
from recrawl.schedule.retry import Backoff
from recrawl.store.base import Store
from recrawl.time import MINUTE

_RETRY = Backoff(first=5.0, factor=2.0, longest=5 * MINUTE)
"""Seconds until a fit that failed is tried again."""
_ENOUGH = 3
"""Failures in a row, by what cannot pass, after which a crawl that never had a fit is given up."""


class ProcessFitting:
    """The fits of one crawl, made by a process. Called from the driver's loop; nothing here waits."""

    def __init__(  # noqa: PLR0913 - who is fitted, and who is told
        self,
        recipe: FitRecipe,
        *,
        store: Store,
        agenda: Agenda,
        recorder: Recorder,
        politeness: Politeness,
        log: JsonLinesLog,
        underway: Callable[[], Visits],
        held: Callable[[], IntArray],
    ) -> None:
        """``underway`` are visits that were told to the agenda and may not be recorded; ``held`` pages that we have."""
        self._process = FitProcess(recipe)
        self._store = store
        self._agenda = agenda
        self._recorder = recorder
        self._politeness = politeness
        self._log = log
        self._underway = underway
        self._held = held
        self._next: asyncio.Task[FitMessage] | None = None
        self.is_pending = False
        """Whether a fit is asked for, and all of it has not come yet."""
        self._failures = 0
        self._ask_at = -math.inf
        self._moved = False
        self.doing = "starting"
        """What the process is doing, in words for a person."""
        self.is_ready = False
        """Whether a fit was taken over."""

    @property
    def pid(self) -> int | None:
        """The number of the process, if it runs."""
        return self._process.pid

    @property
    def news(self) -> asyncio.Task[FitMessage]:
        """Ends when there is something for :meth:`turn`."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._process.message())
        return self._next

    @property
    def wake_at(self) -> float:
        """When the next fit is to be asked for, seconds since the epoch; infinity while one is made."""
        return math.inf if self.is_pending else max(self._agenda.fit_at, self._ask_at)

    def turn(self, now: float) -> None:
        """Take in what the process said, and ask for a fit if it is time.

        Raises:
            StoreError: what came could not be taken over, or there never was a fit and will be none.
        """
        while self.news.done():
            message, self._next = self._next.result() if self._next else self.news.result(), None
            self._take(message, now)
        if now >= self.wake_at:
            self._ask(now)

    def take_moved(self) -> bool:
        """Whether due times were written since this was last asked: pages in hand may be due at other times."""
        moved, self._moved = self._moved, False
        return moved

    async def close(self) -> None:
        """End the process."""
        self._agenda.end_journal()
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
            self._next = None
        await self._process.close()

    def _ask(self, now: float) -> None:
        self._agenda.begin_journal(self._underway())
        self.is_pending = True
        self._process.request(
            FitRequest(now, self._agenda.terms, self._politeness.rules, self._recorder.at_once),
        )
        self._log.event("schedule", "fit started")

    def _take(self, message: FitMessage, now: float) -> None:
        match message:
            case FitProgress(doing):
                self.doing = doing
            case FittedState():
                self._take_over(message)
            case FitDone(pages, moved, seconds):
                self.is_pending, self._failures, self._moved = False, 0, moved > 0
                details = fitted(pages, self._agenda, moved=moved, seconds=round(seconds, 3))
                self._log.event("schedule", "policy fitted", details=details)
            case FitFailed():
                self._failed(message, now)

    def _take_over(self, state: FittedState) -> None:
        try:
            replica = read_state(state, self._store)
        except OSError:  # the process died since, and its folder is gone: it will say so
            return
        concerned = np.unique(np.concatenate([self._held(), self._agenda.journal_pages()]))
        self._agenda.take_over(replica, self._store.pages(concerned))
        self.is_ready = True

    def _failed(self, failed: FitFailed, now: float) -> None:
        if not self.is_pending:  # it died between two fits; the next one starts it again
            return
        self._agenda.end_journal()
        self._agenda.fit_again()
        self.is_pending = False
        self._failures += 1
        wait = float(_RETRY.wait(np.array([self._failures]))[0])
        self._ask_at = now + wait
        details: dict[str, object] = {"reason": failed.what, "again_in": wait}
        if failed.trace:
            details["traceback"] = failed.trace
        self._log.event("schedule", "fit failed", level="error", details=details)
        if not self.is_ready and not failed.passing and self._failures >= _ENOUGH:
            raise StoreError(f"The schedule cannot be fitted: {failed.what}", failed.remedy or failed.trace)
