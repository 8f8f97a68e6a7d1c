"""Run a policy against a virtual web on a virtual clock, through the same frontier as the live crawler."""

from __future__ import annotations

import numpy as np

from recrawl.model import ChangeKind, IntArray, Outcome, Pages, Verdict, Visit, Visits
from recrawl.schedule.frontier.host_frontier import FetchNow, Frontier, WaitUntil
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.simulate.virtual_web import VirtualWeb


class Replay:
    """A policy at work on a web whose every change is known. A page is found the moment it is born.

    One event at a time: O(log pages) and some Python for each visit, O(pages) for each fit.
    """

    def __init__(self, web: VirtualWeb, scheduler: RevisitScheduler, frontier: Frontier) -> None:
        self._web = web
        self._scheduler = scheduler
        self._frontier = frontier
        self._births = np.argsort(web.born, kind="stable")
        self._birth_times = web.born[self._births]
        self._found = 0
        """How many pages, in the order of birth, are known."""
        self._seen = np.full(len(web), _NEVER, dtype=np.int64)
        """The version of each page that was seen last; ``_GONE`` if it was found missing."""

    def run(self, start: float, end: float) -> Visits:
        """Visit from ``start`` to ``end``, seconds since the epoch."""
        log: list[Visit] = []
        unsettled: list[Visit] = []
        now = start
        while now < end:
            self._find(now)
            match self._frontier.next(now):
                case FetchNow(page, host):
                    unsettled.append(self._observation(page, now))
                    self._frontier.done(page, host, now, 0.0)
                case WaitUntil() if unsettled:
                    self._settle(unsettled, now)
                    log += unsettled
                    unsettled = []
                case WaitUntil() if now >= self._scheduler.fit_at:
                    self._scheduler.fit(now)
                    self._offer(np.sort(self._births[: self._found]), now)
                case WaitUntil(until):
                    now = min(until, self._next_birth(), self._scheduler.fit_at, end)
        return Visits.from_rows(log + unsettled)

    def _next_birth(self) -> float:
        return float(self._birth_times[self._found]) if self._found < len(self._births) else np.inf

    def _find(self, now: float) -> None:
        if self._next_birth() > now:
            return
        known = self._found
        self._found = int(np.searchsorted(self._birth_times, now, side="right"))
        page = np.sort(self._births[known : self._found])
        self._scheduler.add(Pages.of(page, host=self._web.host[page], discovered=now))
        self._offer(page, now)

    def _offer(self, page: IntArray, now: float) -> None:
        self._frontier.offer(page, self._web.host[page], self._scheduler.due(page, now))

    def _observation(self, page: int, now: float) -> Visit:
        """What a perfect detector would say of this page now."""
        state = self._web.state(page, now)
        version = state.version if state.alive else _GONE
        before, self._seen[page] = int(self._seen[page]), version
        outcome = Outcome.FETCHED if state.alive else Outcome.GONE
        if before == _NEVER:
            return Visit(page, now, outcome)
        if before == version:
            return Visit(page, now, outcome, Verdict.UNCHANGED)
        kinds = ChangeKind.EXISTENCE if _GONE in (before, version) else ChangeKind.TEXT
        return Visit(page, now, outcome, Verdict.CHANGED, kinds)

    def _settle(self, visits: list[Visit], now: float) -> None:
        told = Visits.from_rows(visits)
        self._scheduler.tell(told)
        self._offer(np.unique(told.page), now)


_NEVER = -1
_GONE = -2
