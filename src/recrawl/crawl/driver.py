"""The live driver: asks the frontier what to do, does it, and settles what came of it.

It decides nothing itself. What is worth a visit is the policy's word, what is allowed the frontier's; the
same two run in the simulator, and a test compares the two logs. On a virtual clock a run repeats itself.
"""

from __future__ import annotations

import asyncio
import math
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.crawl.errands import Errands
from recrawl.crawl.hands import Hands
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.recorder import Recorder
from recrawl.crawl.target import Broken, ErrandDone, Result, RulesRead, Target, TurnedAway, Visited
from recrawl.crawl.visitor import Visitor
from recrawl.errors import InputError
from recrawl.fetch.patience import asked_patience
from recrawl.formats.sitemap import read_sitemap
from recrawl.model import ANSWERED, Outcome
from recrawl.schedule.agenda import Agenda
from recrawl.schedule.frontier import Fetch, Frontier, Wait
from recrawl.schedule.politeness import Politeness
from recrawl.store.base import Store
from recrawl.time import DAY, MINUTE, Clock

_FIT_PATIENCE = 60.0
"""Seconds a fit waits for a moment without requests; then no new request starts until it is done."""
_CHUNK = 100_000
"""Pages rescheduled in one transaction, so that other workers get their turn."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How much at once, and how often."""

    sitemaps_every: float = DAY
    """Seconds between two looks at a sitemap."""
    concurrency: int = 64
    """Most requests at once, over all hosts."""
    lease_size: int = 256
    """Pages in hand at once."""
    per_host: int = 16
    """Pages of one host in hand at once."""
    lease_time: float = 15 * MINUTE
    """Seconds until a page goes back if we die."""
    poll: float = 60.0
    """Seconds after which an idle worker asks for new pages; infinity if nobody else adds any."""


class Driver:
    """One worker. ``run`` may be called again; each run begins by replaying the visits in the store."""

    def __init__(  # noqa: PLR0913 - the parts it drives, each replaceable
        self,
        worker: str,
        *,
        clock: Clock,
        store: Store,
        agenda: Agenda,
        politeness: Politeness,
        visitor: Visitor,
        recorder: Recorder,
        pace: Pace,
        log: JsonLinesLog,
        on_visits: Callable[[Sequence[Visited]], None] = lambda _visited: None,
    ) -> None:
        self._clock = clock
        self._store = store
        self._agenda = agenda
        self._politeness = politeness
        self._frontier = Frontier(politeness)
        self._visitor = visitor
        self._recorder = recorder
        self._pace = pace
        self._log = log
        self._on_visits = on_visits
        self._hands = Hands(worker, store, pace.lease_size, pace.per_host, pace.lease_time, pace.poll)
        self._errands = Errands()
        self._told_until = -math.inf
        self._running: dict[asyncio.Task[Result], Target] = {}
        self._stopping = False
        self._waiting: asyncio.Future[set[asyncio.Task[Result]]] | None = None

    async def run(
        self, until: float, progress: Callable[[float], None] = lambda _now: None, *, until_idle: bool = False
    ) -> None:
        """Come back to pages until ``until`` or ``stop``, then finish what runs and give the rest back.

        With ``until_idle`` it also ends as soon as no page is due. ``progress`` is told the time now and then.

        Neither the remote side nor a page that breaks our own code ends a run. A cancellation does: what was
        settled is recorded, what was running is dropped, and every lease goes back.
        """
        self._stopping = False
        self._resume(self._clock.now())
        try:
            while (now := self._clock.now()) < until and not self._stopping:
                self._take(now)
                match self._next(now):
                    case Fetch(page):
                        target = self._errands.take(page) if page < 0 else self._hands.take(page)
                        self._running[asyncio.create_task(self._go(target))] = target
                    case Wait() if not self._running and now >= self._agenda.fit_at:
                        self._fit(now)
                    case Wait() if until_idle and self._is_idle(now):
                        break
                    case Wait(when):
                        self._settle(await self._wait(min(when, until)))
                        progress(self._clock.now())
            if self._running:
                await asyncio.wait(self._running)
                self._settle(set(self._running))
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            self._running = {}
            self._frontier.withdraw(self._hands.empty())

    def stop(self) -> None:
        """Start nothing more; ``run`` returns once what is running is settled. To be called in the event loop."""
        self._stopping = True
        if self._waiting is not None:
            self._waiting.cancel()

    # -- deciding -----------------------------------------------------------------------------

    def _is_idle(self, now: float) -> bool:
        """Whether nothing is under way, in hand, or due in the store."""
        return not (self._running or self._hands) and self._store.next_due() > now

    def _next(self, now: float) -> Fetch | Wait:
        overdue = bool(self._running) and now >= self._agenda.fit_at + _FIT_PATIENCE
        if overdue or len(self._running) >= self._pace.concurrency:
            return Wait(math.inf)
        return self._frontier.next(now)

    async def _wait(self, when: float) -> set[asyncio.Task[Result]]:
        """Sleep until there is something to do: a request is done, a page due, a fit or a lease wanted."""
        wake = min(when, self._hands.renew_at)
        if not self._running:
            wake = min(wake, self._hands.lease_at, self._agenda.fit_at)
        self._waiting = asyncio.ensure_future(self._clock.wait(self._running, wake))
        try:
            return await self._waiting
        except asyncio.CancelledError:
            if self._stopping and self._waiting.cancelled():
                return {task for task in self._running if task.done()}
            raise
        finally:
            self._waiting = None

    # -- taking -------------------------------------------------------------------------------

    def _resume(self, now: float) -> None:
        """Learn all that is recorded: state is a fold over visits, so recovery is replay."""
        self._hands.start_empty()
        self._told_until = -math.inf
        self._catch_up(now)
        pages = self._store.pages()
        self._recorder.recall_signals(pages.id[pages.importance > 0], now)

    def _catch_up(self, now: float) -> None:
        """Learn of pages and visits since the last time, also those of other workers. What is known is passed over."""
        pages = self._store.pages()
        wanted = pages.take(pages.importance > 0)
        self._agenda.add(wanted)
        since = self._told_until - 2 * self._pace.lease_time  # others may have recorded a little late
        visits = self._store.visits(since=None if math.isinf(since) else since).sorted()
        self._agenda.tell(visits.take(np.isin(visits.page, wanted.id)))
        self._told_until = now

    def _take(self, now: float) -> None:
        """Keep the leases we have, and fill our hands with due pages."""
        lost = self._hands.renew(now, [target.page for target in self._running.values() if not target.is_errand])
        self._frontier.withdraw(lost)
        leased = self._hands.lease(now)
        if leased is None:
            return
        self._agenda.add(self._store.pages(np.unique(leased.page)))
        self._hands.hold(leased, self._recorder.recall(leased))
        self._frontier.offer(leased.page, leased.host, leased.due)

    def _fit(self, now: float) -> None:
        """Fit the policy to all that is known and reschedule every page."""
        self._frontier.withdraw(self._hands.empty())
        self._catch_up(now)
        self._agenda.fit(now)
        pages = self._store.pages()
        page = pages.id[pages.importance > 0]
        for start in range(0, len(page), _CHUNK):
            chunk = page[start : start + _CHUNK]
            self._store.reschedule(chunk, self._agenda.due(chunk, now))
        self._log.event("schedule", "policy fitted", details={"pages": len(page), "price": self._agenda.policy.price})

    async def _go(self, target: Target) -> Result:
        """Visit; a bug of ours becomes a failed visit, so that one poisonous page does not end the crawl."""
        began = self._clock.now()
        try:
            return await self._visitor.go(target)
        except Exception as bug:  # noqa: BLE001 - one of the two places for it: the driver's loop
            return Broken(target, began, f"{bug!r}", traceback.format_exc())

    # -- settling -----------------------------------------------------------------------------

    def _settle(self, done: set[asyncio.Task[Result]]) -> None:
        """Take in finished requests: pauses begin, visits are acknowledged, what was found is put on the agenda."""
        if not done:
            return
        now = self._clock.now()
        results = [task.result() for task in self._running if task in done]
        self._running = {task: target for task, target in self._running.items() if task not in done}
        visited: list[Visited] = []
        for result in results:
            if isinstance(result, TurnedAway):
                self._wait_in_line(result)
                continue
            self._release(result, now)
            match result:
                case Visited():
                    visited.append(result)
                case RulesRead():
                    self._apply(result, now)
                case ErrandDone():
                    self._read_sitemap(result, now)
                case Broken():
                    visited += self._broken(result, now)
        self._record(visited, now)
        self._hands.look_again()

    def _release(self, result: Result, now: float) -> None:
        """The request is over: the pause of its host begins, a longer one if it asks for that."""
        target, capture = result.target, result.capture
        self._frontier.done(target.page, target.host, now, capture.duration if capture else 0.0)
        wait = asked_patience(capture) if capture else None
        if wait is not None:
            self._politeness.block_until(target.host, now + wait)

    def _wait_in_line(self, away: TurnedAway) -> None:
        """Nothing was asked, so nothing pauses; the target waits for the turn of its address."""
        target = away.target
        (self._errands if target.is_errand else self._hands).put_back(target)
        self._frontier.give_back(target.page, target.host, target.due, away.until)

    def _record(self, visited: Sequence[Visited], now: float) -> None:
        free_at = np.array([self._politeness.free_at(result.target.host) for result in visited])
        self._recorder.record(visited, now, free_at)
        self._on_visits(visited)
        for result in visited:
            visit = result.visit
            details = {
                "url": result.target.url,
                "outcome": visit.outcome.name.lower(),
                "verdict": visit.verdict.name.lower(),
                "status": visit.status,
                "size": visit.size,
            }
            self._log.event("fetch", "visited", level="info" if visit.outcome <= ANSWERED else "warn", details=details)

    def _apply(self, read: RulesRead, now: float) -> None:
        """Keep the pause a host asks for, send for its sitemaps, and put the page that waited back."""
        target, rules = read.target, read.rules
        self._politeness.set_crawl_delay(target.host, rules.crawl_delay)
        pause = self._politeness.rules.pause(0.0, rules.crawl_delay)
        self._store.set_host(np.array([target.host]), delay=np.array([pause]))
        (self._errands if target.is_errand else self._hands).put_back(target)
        self._offer(target, target.due)
        self._send_for(rules.sitemaps, target, now)
        self._log.event("fetch", "robots.txt read", details={"url": target.url, "reason": rules.reason})

    def _read_sitemap(self, done: ErrandDone, now: float) -> None:
        """Put what a sitemap names on the agenda, and come back to it later."""
        self._recorder.keep_aside(done.capture)
        try:
            sitemap = read_sitemap(done.capture)
        except InputError as unreadable:
            details = {"url": done.target.url, "reason": str(unreadable)}
            self._log.event("fetch", "sitemap not read", level="warn", details=details)
        else:
            self._recorder.hear(sitemap.entries, done.target.url, now)
            self._send_for([child.url for child in sitemap.children], done.target, now)
        self._errands.put_back(done.target)
        self._offer(done.target, now + self._pace.sitemaps_every)

    def _broken(self, broken: Broken, now: float) -> list[Visited]:
        """Keep what our own code could not handle in the log, as a failed visit, and try again later."""
        target = broken.target
        details = {"url": target.url, "error": broken.error, "traceback": broken.trace}
        self._log.event("fetch", "visit broken", level="error", details=details)
        if not target.is_errand:
            return [broken.as_visit(Outcome.UNREACHABLE)]
        self._errands.put_back(target)
        self._offer(target, now + self._pace.sitemaps_every)
        return []

    def _send_for(self, sitemaps: Sequence[str], sender: Target, now: float) -> None:
        for errand in self._errands.new(sitemaps, sender, now):
            self._offer(errand, now)

    def _offer(self, target: Target, due: float) -> None:
        self._frontier.offer(np.array([target.page]), np.array([target.host]), np.array([due]))
