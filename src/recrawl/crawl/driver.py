"""The live driver: asks the frontier what to do, does it, and settles what came of it.

It decides nothing itself. What is worth a visit is the policy's word, what is allowed the frontier's; the
same two run in the simulator, and a test compares the two logs. On a virtual clock a run repeats itself.
"""

from __future__ import annotations

import asyncio
import math
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from recrawl.crawl.announcements import Announcements
from recrawl.crawl.hands import Hands
from recrawl.crawl.log import JsonLinesLog, Level
from recrawl.crawl.outage import Doubts
from recrawl.crawl.recorder import Recorder
from recrawl.crawl.setback import Setback
from recrawl.crawl.steering import Load, Steering, Unsteered
from recrawl.crawl.target import (
    Broken,
    ErrandDone,
    Hindered,
    Result,
    RulesRead,
    SeenOnce,
    Target,
    TurnedAway,
    Underway,
    Visited,
)
from recrawl.crawl.trouble import is_well
from recrawl.crawl.versions import settled
from recrawl.crawl.visitor import Visitor
from recrawl.errors import StoreError
from recrawl.fetch.patience import asked_patience
from recrawl.model import ANSWERED, Outcome
from recrawl.schedule.agenda import Agenda
from recrawl.schedule.frontier import Frontier
from recrawl.schedule.politeness import Politeness
from recrawl.store.base import Store
from recrawl.time import DAY, HOUR, MINUTE, Clock

_FIT_PATIENCE = 60.0
"""Seconds a fit waits for a moment without requests; then no new request starts until it is done."""
_FIRST_FIT_PATIENCE = 1.0
"""The same for the first fit, without which no visit has a value."""
_LONG_REST = MINUTE
"""Seconds of rest from which on pages of a host are better off in the store."""
_HEAVY = 32 * 1024 * 1024
"""Bytes of answers that are not kept waiting."""
_CHUNK = 100_000
"""Pages rescheduled in one transaction, so that other workers get their turn."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How much at once, and how often."""

    sitemaps_every: float = DAY
    """Seconds between two looks at a sitemap."""
    feeds_every: float = HOUR
    """Seconds between two looks at a feed."""
    concurrency: int = 64
    """Most requests at once, over all hosts."""
    lease_size: int = 4_096
    """Pages in hand at once: some for each of thousands of hosts, or they wait for us."""
    per_host: int = 16
    """Pages of one host in hand at once."""
    lease_time: float = 15 * MINUTE
    """Seconds until a page goes back if we die."""
    batch: int = 128
    """Visits acknowledged in one transaction at most."""
    linger: float = 0.1
    """Seconds that a visit waits for others to be acknowledged with, while requests are under way."""
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
        steering: Steering | None = None,
        tidy: Callable[[float], object] = lambda _now: None,
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
        self._steering = steering or Unsteered(pace.concurrency)
        self._tidy = tidy
        """Called every minute or so: looks after what others left behind."""
        self._tidy_at = -math.inf
        self._on_visits = on_visits
        self._hands = Hands(worker, store, pace.lease_size, pace.per_host, pace.lease_time, pace.poll)
        self._announcements = Announcements(store, recorder, log, (pace.sitemaps_every, pace.feeds_every))
        self._errands = self._announcements.errands
        self._told_until = -math.inf
        self._setback = Setback(log)
        self._running: dict[asyncio.Task[Result], Target] = {}
        self._doubts = Doubts(log)
        self._answered: deque[Result] = deque()
        """What came back and is not taken in yet."""
        self._fit_since = math.inf
        """Since when a fit is wanted."""
        self._ended: dict[int, float] = {}
        """When requests ended that are not settled yet, by page."""
        self._unrecorded: list[Visited] = []
        """Visits made that are not acknowledged yet."""
        self._host_ready: list[float] = []
        """When the host of each of them may be asked again."""
        self._record_at = math.inf
        self._weight = 0
        """Bytes of the answers among them."""
        self._stopping = False
        self._waiting: asyncio.Future[set[asyncio.Task[Result]]] | None = None

    async def run(
        self, until: float, progress: Callable[[float], None] = lambda _now: None, *, until_idle: bool = False
    ) -> None:
        """Come back to pages until ``until`` or ``stop``, then finish what runs and give the rest back.

        With ``until_idle`` it also ends as soon as no page is due, or none that is due may be visited now: the budget
        is spent, or the crawl paused. ``progress`` is told the time now and then.

        Neither the remote side nor a page that breaks our own code ends a run, nor a disk that is full or a store that
        is away for a while: then nothing starts until it works again. A cancellation does: what was settled is
        recorded, what was running is dropped, and every lease goes back.

        Raises:
            StoreError: the store is damaged, or there was still no room or no store when the run was to end. What was
                made since is not acknowledged, and will be visited again.
        """
        forced = False
        self._stopping = False
        self._resume(self._clock.now())
        self._steering.begin(self._clock.now())
        try:
            while (now := self._clock.now()) < until and not self._stopping:
                try:
                    if await self._turn(now, until, until_idle=until_idle):
                        break
                    self._setback.over(now)
                except StoreError as fault:
                    await self._sleep((), min(self._setback.met(fault, now), until))
                progress(self._clock.now())
            if self._running:
                await asyncio.wait(self._running)
            self._settle(set(self._running))
            self._ask_again(self._doubts.take())
            self._let_go(self._clock.now())
        except asyncio.CancelledError:
            forced = True
            with suppress(StoreError):
                self._record(self._clock.now())
            raise
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            self._running, self._unrecorded, self._host_ready, self._record_at = {}, [], [], math.inf
            self._ended.clear()
            self._answered.clear()
            self._doubts.take()
            self._recorder.give_up()
            with suppress(*((StoreError,) if forced else ())):
                self._frontier.withdraw(self._hands.empty())
                self._steering.end(self._clock.now())

    async def _turn(self, now: float, until: float, *, until_idle: bool) -> bool:
        """Start what there is to start, and take in what is done first; whether there is nothing left to do."""
        now = self._set_clock_right(now)
        if self._setback.is_on:
            self._recover(now)
        self._heed(now)
        if now >= self._tidy_at:
            self._tidy(now)
            self._tidy_at = now + MINUTE
        self._take(now)
        when = math.inf if self._fit_is_overdue(now) else self._set_out(now)
        if not self._running and now >= self._agenda.fit_at:
            self._fit(now)
            return False
        if until_idle and self._is_idle(now):
            return True
        self._settle(await self._wait(min(when, until)))
        return False

    def _set_clock_right(self, now: float) -> float:
        """Look whether the machine's clock was set; the time by now.

        What lasts goes on lasting as long as it would have: pauses of hosts, and our leases.
        """
        moved = self._clock.set_right()
        if moved > 0:
            self._politeness.shift(now, moved)
            self._hands.leap(now, moved, self._on_the_road())
        if moved:
            self._log.event("schedule", "the clock of this machine was set", level="warn", details={"seconds": moved})
        return self._clock.now()

    def _recover(self, now: float) -> None:
        """Try again what failed, before anything new starts; leases we may have taken without knowing go back."""
        self._settle({task for task in self._running if task.done()})
        self._record(now)
        self._hands.drop_strays(self._on_the_road())

    def stop(self) -> None:
        """Start nothing more; ``run`` returns once what is running is settled. To be called in the event loop."""
        self._stopping = True
        if self._waiting is not None:
            self._waiting.cancel()

    # -- deciding -----------------------------------------------------------------------------

    def _is_idle(self, now: float) -> bool:
        """Whether nothing is under way, and nothing is in hand or due in the store that may be visited now."""
        if self._running or self._unrecorded:
            return False
        if self._steering.is_held(now):
            return True
        at_once = (errand for errand in self._errands.due(now) if self._politeness.free_at(errand.host) < now + MINUTE)
        return not self._hands and self._store.next_due() > now and next(at_once, None) is None

    def _fit_is_overdue(self, now: float) -> bool:
        """Whether a fit has waited long enough for a moment without requests: then nothing starts before it."""
        if now < self._agenda.fit_at:
            self._fit_since = math.inf
            return False
        self._fit_since = min(self._fit_since, now)
        first = math.isinf(self._agenda.fit_at)
        return now >= self._fit_since + (_FIRST_FIT_PATIENCE if first else _FIT_PATIENCE)

    def _set_out(self, now: float) -> float:
        """Start all requests that there is room for; when the next page may be asked for if nothing is done before."""
        room = self._steering.room(now, len(self._running))
        if room <= 0:
            return self._steering.next_at(now)
        room = self._doubts.outage.room(now, len(self._running), room)
        if room <= 0:
            return math.inf if self._running else self._doubts.outage.try_at
        found = self._frontier.next_many(now, room)
        self._steering.began(now, int((found.page >= 0).sum()))
        for page, host in zip(found.page.tolist(), found.host.tolist(), strict=True):
            target = self._errands.take(page) if page < 0 else self._hands.take(page)
            if page < 0 and host in self._steering.resting:
                self._wait_in_line(TurnedAway(target, now + MINUTE))
                continue
            self._running[asyncio.create_task(self._go(target))] = target
        return found.until if len(found.page) < room else math.inf

    async def _wait(self, when: float) -> set[asyncio.Task[Result]]:
        """Sleep until there is something to do: a request is done, a page due, a fit or a lease wanted."""
        wake = min(when, self._hands.renew_at, self._record_at, self._doubts.ends, self._steering.look_at)
        if not self._steering.paused:
            wake = min(wake, self._hands.lease_at)
        if not self._running:
            wake = min(wake, self._agenda.fit_at)
        return await self._sleep(self._running, wake)

    async def _sleep(self, running: Collection[asyncio.Task[Result]], wake: float) -> set[asyncio.Task[Result]]:
        """Sleep until one of these is done, at the latest until ``wake``; the end if somebody calls ``stop``."""
        self._waiting = asyncio.ensure_future(self._clock.wait(running, wake))
        try:
            return await self._waiting
        except asyncio.CancelledError:
            if self._stopping and self._waiting.cancelled():
                return {task for task in self._running if task.done()}
            raise
        finally:
            self._waiting = None

    def _heed(self, now: float) -> None:
        """Take over what we are told; pages in hand may have to be given back for it."""
        if now < self._steering.look_at:
            return
        if self._steering.heed(now, self.load()):
            self._let_go(now)
        self._visitor.share(self._steering.share[1])

    def load(self) -> Load:
        """What this worker is busy with."""
        return Load(sum(not target.is_errand for target in self._running.values()), len(self._hands))

    # -- taking -------------------------------------------------------------------------------

    def _resume(self, now: float) -> None:
        """Learn all that is recorded: state is a fold over visits, so recovery is replay."""
        self._hands.start_empty()
        self._told_until = -math.inf
        self._catch_up(now)
        pages = self._store.pages()
        self._recorder.recall_signals(pages.id[pages.importance > 0], now)
        self._offer_all(self._announcements.begin(now))

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
        if now >= self._hands.renew_at:
            self._frontier.withdraw(self._hands.renew(now, self._on_the_road()))
        leased = None if self._steering.paused else self._hands.lease(now, self._steering.share)
        if leased is None:
            return
        self._agenda.add(self._store.pages(np.unique(leased.page)))
        self._hands.hold(leased, self._recorder.recall(leased, now), self._store.sources(leased.page))
        self._frontier.offer(leased.page, leased.host, leased.due)

    def _on_the_road(self) -> list[int]:
        """Pages that are leased and not in hand: being asked for, or waiting to be recorded."""
        results = (result.target for result in (*self._unrecorded, *self._doubts.held, *self._answered))
        return [target.page for target in (*self._running.values(), *results) if not target.is_errand]

    def _fit(self, now: float) -> None:
        """Fit the policy to all that is known and reschedule every page, but those that others visit meanwhile."""
        self._let_go(now)
        pages = self._store.pages()
        page = pages.id[pages.importance > 0]
        before = self._store.due(page)
        self._catch_up(now)
        self._agenda.line_up(page, now)
        self._agenda.fit(now)
        for start in range(0, len(page), _CHUNK):
            rows = slice(start, start + _CHUNK)
            self._store.reschedule(page[rows], self._agenda.due(page[rows], now), before=before[rows])
        self._log.event("schedule", "policy fitted", details={"pages": len(page), "price": self._agenda.policy.price})

    def _let_go(self, now: float) -> None:
        """Give back the pages in hand. Of those that wait for a second look the first one is recorded."""
        seen = self._hands.take_seen()
        self._frontier.withdraw(np.array([target.page for target in seen], np.int64))
        for target in seen:
            self._visited(settled(target), now)
        self._record(now)
        self._frontier.withdraw(self._hands.empty())

    async def _go(self, target: Target) -> Result:
        """Visit; a bug of ours becomes a failed visit, so that one poisonous page does not end the crawl."""
        began = self._clock.now()
        try:
            return await self._visitor.go(target)
        except StoreError as fault:
            return Hindered(target, fault)
        except Exception as bug:  # noqa: BLE001 - one of the two places for it: the driver's loop
            return Broken(target, began, f"{bug!r}", traceback.format_exc())
        finally:
            self._ended[target.page] = self._clock.now()

    # -- settling -----------------------------------------------------------------------------

    def _settle(self, done: set[asyncio.Task[Result]]) -> None:
        """Take in finished requests: pauses begin, visits wait to be recorded, what was found is put on the agenda."""
        now = self._clock.now()
        finished = [task for task in self._running if task in done] if done else []
        for task in finished:
            del self._running[task]
            result = task.result()
            if not result.target.is_errand and not _cost_a_visit(result):
                self._steering.spared(1)
            if isinstance(result, TurnedAway):
                self._ended.pop(result.target.page, None)
                self._wait_in_line(result)
                continue
            self._release(result, now)
            believed, unheard = self._doubts.weigh(result, now)
            self._ask_again(unheard)
            self._believe(believed, now)
        if now >= self._doubts.ends or not (self._running or self._hands):
            self._believe(self._doubts.take(), now)
        while self._answered:
            self._take_in(self._answered[0], now)
            self._answered.popleft()
        if not self._running or len(self._unrecorded) >= self._pace.batch or now >= self._record_at:
            self._record(now)
        elif finished and not self._unrecorded:
            self._hands.look_again()

    def _take_in(self, result: Result, now: float) -> None:
        """Do what follows from a result. It can be done again if the store or the disk failed on the way."""
        match result:
            case Visited():
                self._visited(result, now)
            case Underway():
                self._go_on(result)
            case SeenOnce(target):
                self._hands.put_back(target)
                self._offer(target, target.due)
            case RulesRead():
                self._apply(result, now)
            case ErrandDone():
                self._offer_all(self._announcements.done(result, now))
            case Broken():
                self._broken(result, now)
            case Hindered(target, fault):
                (self._errands if target.is_errand else self._hands).put_back(target)
                self._offer(target, target.due)
                self._answered.popleft()
                raise fault

    def _release(self, result: Result, now: float) -> None:
        """The request is over: the pause of its host begins, a longer one if it asks for that."""
        target, capture = result.target, result.capture
        # From its own end on: hosts whose pauses began together would be asked together ever after.
        ended = self._ended.pop(target.page, now)
        self._frontier.done(target.page, target.host, ended, capture.duration if capture else 0.0)
        wait = asked_patience(capture) if capture else None
        if wait is not None:
            self._politeness.block_until(target.host, now + wait)

    def _believe(self, results: Sequence[Result], now: float) -> None:
        """Take results for what they are; those of hosts that could not be reached may have been in doubt."""
        self._answered.extend(results)
        for result in results:
            self._mind(result, now)

    def _ask_again(self, results: Sequence[Result]) -> None:
        """Put back what we could not reach, as if it had not been asked for: its hosts have their turn after others."""
        for result in results:
            target = result.target
            self._politeness.block_until(target.host, self._doubts.outage.try_at + 1.0)
            self._visitor.forget_rules(target)
            (self._errands if target.is_errand else self._hands).put_back(target)
            self._offer(target, target.due)
            if not target.is_errand and _cost_a_visit(result):
                self._steering.spared(1)

    def _mind(self, result: Result, now: float) -> None:
        """Leave a host alone that does not answer, whichever page is asked for."""
        target, well = result.target, is_well(result)
        if well:
            self._politeness.answered(target.host)
        elif well is False:
            if result.capture is None or asked_patience(result.capture) is None:  # it did not say when it will be well
                self._politeness.failed(target.host, now)
            self._let_rest(target.host, now)

    def _wait_in_line(self, away: TurnedAway) -> None:
        """Nothing was asked, so nothing pauses; the target waits for the turn of its address."""
        target = away.target
        (self._errands if target.is_errand else self._hands).put_back(target)
        self._frontier.give_back(target.page, target.host, target.due, away.until)
        self._let_rest(target.host, self._clock.now())

    def _let_rest(self, host: int, now: float) -> None:
        """Give back the pages of a host that rests for long: in our hands they would take the place of others."""
        ready = self._politeness.free_at(host)
        if ready > now + _LONG_REST:
            self._frontier.withdraw(self._hands.give_back(host))
            self._store.set_host(np.array([host]), ready_at=np.array([ready]))

    def _go_on(self, underway: Underway) -> None:
        """Keep what came so far, and let the target wait for the next turn of its host."""
        self._recorder.keep_aside(underway.capture)
        self._hands.put_back(underway.target)
        self._offer(underway.target, underway.target.due)

    def _visited(self, visited: Visited, now: float) -> None:
        """Let a visit wait to be recorded together with others, and before it the first look, if it was the second."""
        if not self._unrecorded:
            self._record_at, self._weight = now + self._pace.linger, 0
        free_at = self._politeness.free_at(visited.target.host)
        for look in (visited.first, visited) if visited.first else (visited,):
            self._unrecorded.append(look)
            self._host_ready.append(free_at if math.isfinite(free_at) else now)  # it may be asked again already
            self._weight += len(look.capture.raw_body) if look.capture else 0
        if self._weight >= _HEAVY:
            self._record_at = now

    def _record(self, now: float) -> None:
        """Acknowledge the visits that wait for it, in one batch; their leases end, so there may be pages for us."""
        visited, ready = self._unrecorded, np.array(self._host_ready)
        self._recorder.record(visited, now, ready)
        self._unrecorded, self._host_ready, self._record_at = [], [], math.inf
        self._hands.look_again()
        if not visited:
            return
        self._on_visits(visited)
        self._log.events("fetch", "visited", [_told(one) for one in visited])
        self._offer_all(self._announcements.visited(visited, now))

    def _apply(self, read: RulesRead, now: float) -> None:
        """Keep the pause a host asks for, send for its sitemaps, and put the page that waited back."""
        target, rules = read.target, read.rules
        self._politeness.set_crawl_delay(target.host, rules.crawl_delay)
        pause = self._politeness.rules.pause(0.0, rules.crawl_delay)
        self._store.set_host(np.array([target.host]), delay=np.array([pause]))
        (self._errands if target.is_errand else self._hands).put_back(target)
        self._offer(target, target.due)
        self._offer_all(self._announcements.rules_read(read, now))
        self._log.event("fetch", "robots.txt read", details={"url": target.url, "reason": rules.reason})

    def _broken(self, broken: Broken, now: float) -> None:
        """Keep what our own code could not handle in the log, as a failed visit, and try again later."""
        target = broken.target
        details = {"url": target.url, "error": broken.error, "traceback": broken.trace}
        self._log.event("fetch", "visit broken", level="error", details=details)
        if target.seen is not None:
            self._visited(settled(target), now)
        if not target.is_errand:
            self._visited(broken.as_visit(Outcome.UNREACHABLE), now)
            return
        self._offer_all([self._errands.again(target, now)])

    def _offer_all(self, errands: Iterable[Target]) -> None:
        for errand in errands:
            self._offer(errand, errand.due)

    def _offer(self, target: Target, due: float) -> None:
        self._frontier.offer(np.array([target.page]), np.array([target.host]), np.array([due]))


def _cost_a_visit(result: Result) -> bool:
    """Whether a page was asked for, and need not be asked for again."""
    return isinstance(result, Broken | SeenOnce) or (isinstance(result, Visited) and result.capture is not None)


def _told(visited: Visited) -> tuple[Level, dict[str, object]]:
    """A visit as the log tells it."""
    visit = visited.visit
    details: dict[str, object] = {
        "url": visited.target.url,
        "outcome": visit.outcome.name.lower(),
        "verdict": visit.verdict.name.lower(),
        "magnitude": round(visit.magnitude, 3),
        "status": visit.status,
        "size": visit.size,
    }
    if visited.capture is not None and visited.capture.error:
        details["reason"] = visited.capture.error
    return "info" if visit.outcome <= ANSWERED else "warn", details
