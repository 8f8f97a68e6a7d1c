"""The live driver: asks the frontier what to do, does it, and settles what came of it.

It decides nothing itself. What is worth a visit is the policy's word, what is allowed the frontier's; the
same two run in the simulator, and a test compares the two logs. On a virtual clock a run repeats itself.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.recorder import Recorder
from recrawl.crawl.target import ErrandDone, Result, RulesRead, Target, Visited
from recrawl.crawl.visitor import Visitor
from recrawl.errors import InputError
from recrawl.formats.sitemap import read_sitemap
from recrawl.model import Capture, IntArray
from recrawl.schedule.agenda import Agenda
from recrawl.schedule.frontier import Fetch, Frontier, Wait
from recrawl.schedule.politeness import Politeness
from recrawl.store.base import Store
from recrawl.time import DAY, MINUTE, Clock, from_http_date
from recrawl.urls import host_of

_ASKS_FOR_PATIENCE = (429, 503)
_POLL = 1.0
"""Seconds until the store is asked again although it had nothing: other workers share it."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How much and how often."""

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
    ) -> None:
        self._worker = worker
        self._clock = clock
        self._store = store
        self._agenda = agenda
        self._politeness = politeness
        self._frontier = Frontier(politeness)
        self._visitor = visitor
        self._recorder = recorder
        self._pace = pace
        self._log = log
        self._targets: dict[int, Target] = {}
        self._errands = 0
        self._lease_at = -math.inf
        self._renew_at = math.inf
        self._stopping = False

    async def run(self, until: float, progress: Callable[[float], None] = lambda _now: None) -> None:
        """Come back to pages until ``until`` or ``stop``, then finish what runs and give the rest back.

        What the remote side does never ends a run. A bug or a cancellation does: what was settled is recorded,
        what was running is dropped, and every lease goes back.
        """
        self._resume()
        running: dict[asyncio.Task[Result], Target] = {}
        try:
            while (now := self._clock.now()) < until and not self._stopping:
                self._keep_leases(now)
                self._take_due(now)
                match self._frontier.next(now) if len(running) < self._pace.concurrency else Wait(math.inf):
                    case Fetch(page):
                        target = self._targets.pop(page)
                        running[asyncio.create_task(self._visitor.go(target))] = target
                    case Wait() if not running and now >= self._agenda.fit_at:
                        self._fit(now)
                    case Wait(when):
                        wake = min(when, until, self._renew_at)
                        wake = wake if running else min(wake, self._lease_at, self._agenda.fit_at)
                        done = await self._clock.wait(running, wake)
                        self._settle([task.result() for task in running if task in done])
                        running = {task: target for task, target in running.items() if task not in done}
                        progress(self._clock.now())
            if running:
                await asyncio.wait(running)
                self._settle([task.result() for task in running])
                running = {}
        finally:
            for task in running:
                task.cancel()
            self._give_back([*self._targets.values(), *running.values()])

    def stop(self) -> None:
        """Start nothing more; ``run`` returns once what is running is settled."""
        self._stopping = True

    # -- taking ---------------------------------------------------------------------------------

    def _resume(self) -> None:
        """Learn all that is recorded: state is a fold over visits, so recovery is replay."""
        pages = self._store.pages()
        wanted = pages.importance > 0
        self._agenda.add(pages.take(wanted))
        visits = self._store.visits().sorted()
        self._agenda.tell(visits.take(np.isin(visits.page, pages.id[wanted])))
        self._lease_at = -math.inf

    def _keep_leases(self, now: float) -> None:
        """Renew what we hold before half of its time is over, so that nobody takes a page we are about to visit."""
        if now >= self._renew_at:
            held = self._store.renew(self._worker, now, ttl=self._pace.lease_time)
            self._renew_at = now + self._pace.lease_time / 2 if held else math.inf

    def _take_due(self, now: float) -> None:
        """Lease due pages until our hands are full."""
        if now < self._lease_at or len(self._targets) >= self._pace.lease_size:
            return
        leased = self._store.lease(
            self._worker, now, self._pace.lease_size, per_host=self._pace.per_host, ttl=self._pace.lease_time
        )
        if not len(leased):
            self._lease_at = max(self._store.next_due(), now + _POLL)
            return
        self._renew_at = min(self._renew_at, now + self._pace.lease_time / 2)
        known = self._recorder.recall(leased)
        columns = zip(leased.page.tolist(), leased.host.tolist(), leased.url, leased.due.tolist(), known, strict=True)
        for page, host, url, due, memory in columns:
            self._targets[page] = Target(page, host, url, due, memory)
        self._frontier.offer(leased.page, leased.host, leased.due)

    def _fit(self, now: float) -> None:
        """Fit the policy to all that is known and reschedule every page that is not being visited."""
        self._give_back(self._targets.values())
        self._agenda.fit(now)
        pages = self._store.pages()
        page: IntArray = pages.id[pages.importance > 0]
        self._store.reschedule(page, self._agenda.due(page, now))
        self._lease_at = -math.inf
        self._log.event("schedule", "policy fitted", details={"pages": len(page), "price": self._agenda.policy.price})

    def _give_back(self, targets: Iterable[Target]) -> None:
        """Let go of pages that were not visited; errands stay with us."""
        pages = np.array([target.page for target in targets if not target.is_errand], dtype=np.int64)
        self._frontier.withdraw(pages)
        self._store.acknowledge(self._worker, pages)
        for page in pages.tolist():
            self._targets.pop(page, None)

    # -- settling -------------------------------------------------------------------------------

    def _settle(self, results: Sequence[Result]) -> None:
        """Take in finished requests: pauses begin, visits are acknowledged, what was found is put on the agenda."""
        now = self._clock.now()
        visited: list[Visited] = []
        for result in results:
            target = result.target
            capture = None if isinstance(result, RulesRead) else result.capture
            self._frontier.done(target.page, target.host, now, capture.duration if capture else 0.0)
            if capture is not None:
                self._be_patient(target.host, capture, now)
            match result:
                case Visited():
                    visited.append(result)
                case RulesRead():
                    self._apply(result, now)
                case ErrandDone():
                    self._read_sitemap(result, now)
        free_at = np.array([self._politeness.free_at(result.target.host) for result in visited])
        self._recorder.record(visited, now, free_at)
        self._lease_at = -math.inf

    def _apply(self, read: RulesRead, now: float) -> None:
        target, rules = read.target, read.rules
        self._politeness.set_crawl_delay(target.host, rules.crawl_delay)
        self._offer(target, target.due)
        self._send_for(rules.sitemaps, target, now)
        self._log.event("fetch", "robots.txt read", details={"url": target.url, "reason": rules.reason})

    def _read_sitemap(self, done: ErrandDone, now: float) -> None:
        """Put what a sitemap names on the agenda, and come back to it later."""
        self._recorder.keep_aside(done.capture)
        try:
            sitemap = read_sitemap(done.capture)
        except InputError as unreadable:
            self._log.event("fetch", "sitemap not read", level="warn", details={"reason": str(unreadable)})
        else:
            self._recorder.discover((entry.url for entry in sitemap.entries), now)
            self._send_for([child.url for child in sitemap.children], done.target, now)
        self._offer(done.target, now + self._pace.sitemaps_every)

    def _send_for(self, sitemaps: Sequence[str], sender: Target, now: float) -> None:
        """Fetch the sitemaps that lie on the sender's own host, each only once at a time."""
        waiting = {target.url for target in self._targets.values() if target.is_errand} | {sender.url}
        for url in sitemaps:
            if url not in waiting and host_of(url) == host_of(sender.url):
                self._errands += 1
                self._offer(Target(-self._errands, sender.host, url, now), now)

    def _offer(self, target: Target, due: float) -> None:
        self._targets[target.page] = target
        self._frontier.offer(np.array([target.page]), np.array([target.host]), np.array([due]))

    def _be_patient(self, host: int, capture: Capture, now: float) -> None:
        """Leave a host alone for as long as it asks (Retry-After, in seconds or as a date)."""
        asked = capture.header("retry-after")
        if capture.status in _ASKS_FOR_PATIENCE and asked:
            when = now + float(asked) if asked.isdigit() else from_http_date(asked)
            if when is not None:
                self._politeness.block_until(host, when)
