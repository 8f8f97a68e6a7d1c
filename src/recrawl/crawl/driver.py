"""The live driver: asks the line what to do, does it, and has settled what came of it.

It decides nothing itself. What is worth a visit is the policy's word, what is allowed the frontier's; the
same two run in the simulator, and a test compares the two logs. On a virtual clock a run repeats itself.
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

from recrawl.crawl.acknowledging import Acknowledging
from recrawl.crawl.announcements import Announcements
from recrawl.crawl.background import in_thread
from recrawl.crawl.clock import SMALL, RealClock
from recrawl.crawl.faults import Fault, Faults, waits_for
from recrawl.crawl.fit_process import FitRecipe
from recrawl.crawl.fitting import Fitting
from recrawl.crawl.hands import Hands
from recrawl.crawl.line import Line
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.loop_lag import LoopLag
from recrawl.crawl.process_fitting import ProcessFitting
from recrawl.crawl.recorder import Recorder
from recrawl.crawl.setback import Setback
from recrawl.crawl.settling import Ended, Settling
from recrawl.crawl.sleeping import Sleep
from recrawl.crawl.steering import Load, Steering, Unsteered
from recrawl.crawl.target import Broken, Hindered, Result, Target, TurnedAway, Visited
from recrawl.crawl.versions import settled
from recrawl.crawl.visitor import Visitor
from recrawl.detect import Known
from recrawl.errors import StoreError
from recrawl.model import IntArray
from recrawl.schedule.agenda import Agenda
from recrawl.schedule.frontier import Frontier
from recrawl.schedule.politeness import Politeness
from recrawl.store.base import Store
from recrawl.store.values import Leased
from recrawl.time import DAY, HOUR, MINUTE, Clock

FEW_PAGES, FEW_VISITS = 2_000, 50_000
"""Up to so many a fit takes no longer than the event loop may stand still."""
_AT_ONCE = 16
"""Requests begun before answers are taken in again. Hosts that are asked together answer together, and would be due
together ever after, faster than we can ask them: so they come apart at the pace at which visits are made."""
_STALE = 20.0
"""Seconds after which a request that did not go out yet must not: the process may have been stopped meanwhile, and
others take a worker for dead that is silent for longer, with all its leases."""
_LOOKS = 8
"""In the longest time that a visit may take."""
_CANCELLED = Fault("visit", "it did not end in time, or was cancelled", "")


_STANDSTILL = 15 * MINUTE
"""Seconds without a turn of the event loop after which leases are no longer kept for it."""
LATE = 30 * MINUTE
"""Seconds after which other workers may still record visits they made."""


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
    lease_time: float = 2 * MINUTE
    """Seconds for which pages are leased; a worker that lives renews its leases when a third of them is over."""
    batch: int = 256
    """Visits acknowledged in one transaction at most."""
    linger: float = 0.25
    """Seconds that a visit waits for others to be acknowledged with, while requests are under way."""
    longest_visit: float = 30 * MINUTE
    """Seconds after which a visit that does not end is given up: robots.txt with all its redirects takes less."""
    poll: float = 60.0
    """Seconds after which an idle worker asks for new pages; infinity if nobody else adds any."""
    finish_within: float = math.inf
    """Seconds for which requests are waited for when a run ends; what is not answered by then is visited again."""


class EndedBy(enum.Enum):
    """What ended a run."""

    IDLE = "nothing more is due that may be visited now"
    TIME = "its time is over"
    BUDGET = "the budget is spent"
    PAUSE = "the crawl is paused"
    STOP = "it was told to stop"


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
        aside: Executor | None = None,
        fits: FitRecipe | None = None,
    ) -> None:
        """``aside`` writes down visits while the crawl goes on; without it the crawl waits for that.

        With ``fits``, fits of more than a few pages are made by a process of their own; without, in the event loop,
        which stands still meanwhile.
        """
        self._clock = clock
        self._store = store
        self._agenda = agenda
        self._politeness = politeness
        self._visitor = visitor
        self._recorder = recorder
        self._log = log
        self._steering = steering or Unsteered(pace.concurrency)
        self._tidy = tidy
        """Called every minute or so: looks after what others left behind."""
        self._tidy_at = -math.inf
        self.faults = self._faults = recorder.faults = Faults(log)
        """Who is told of faults of our own code."""
        self._setback = Setback(log, self._faults)
        self._hands = Hands(worker, store, pace.lease_size, pace.per_host, pace.lease_time, pace.poll)
        self._announcements = Announcements(store, recorder, log, (pace.sitemaps_every, pace.feeds_every))
        self._errands = self._announcements.errands
        self._line = Line(Frontier(politeness), self._hands, self._errands)
        self._fitting = Fitting(store, agenda, recorder, log, late=LATE)
        self._fit_recipe = fits
        self._fits: ProcessFitting | None = None
        """Fits beside the crawl, once there are so many pages that these pay."""
        self._taking_in: Iterator[int] = iter(())
        """Steps in which pages are taken in that lie in the scope by now."""
        self._taken_in = 0
        self._finish_within = pace.finish_within
        self.loop_lag = LoopLag(self._on_stall)
        """How late our own event loop is."""
        self._acknowledging = Acknowledging(
            recorder,
            politeness=politeness,
            hands=self._hands,
            line=self._line,
            announcements=self._announcements,
            log=log,
            faults=self._faults,
            on_visits=on_visits,
            most=pace.batch,
            linger=pace.linger,
            aside=aside,
        )
        self._settling = Settling(
            store=store,
            politeness=politeness,
            line=self._line,
            visitor=visitor,
            recorder=recorder,
            acknowledging=self._acknowledging,
            announcements=self._announcements,
            steering=self._steering,
            log=log,
            faults=self._faults,
        )
        self._running: dict[asyncio.Task[Ended], Target] = {}
        self.has_begun = False
        """Whether a run has come to its first turn: before that nothing was asked for, and it can begin again."""
        self.clock_was_set = False
        """Whether the last run ended because the clock was set by a large step: then another one is to begin."""
        self._doubt = 0.0
        self._turned_at = -math.inf
        """When the event loop last had its turn here, by the seconds that passed."""
        self._not_heeded_before = self._no_fit_before = -math.inf
        self._longest_visit = pace.longest_visit
        self._stuck_at = -math.inf
        """When to look for visits that do not end."""
        self._looks: dict[asyncio.Task[Ended], int] = {}
        """At how many looks each visit was under way."""
        self._stopping = self._is_ready = False
        self.ended_by: EndedBy | None = None
        """What ended the last run; ``None`` while it runs, and after an error."""
        self._asleep: Sleep[set[asyncio.Task[Ended | None]]] = Sleep()

    async def get_ready(self, until: float = math.inf, tell: Callable[[str], None] = lambda _doing: None) -> None:
        """Learn all that is recorded, so that ``run`` can begin at once; ``tell`` is told what it waits for.

        It ends before if ``until`` comes or ``stop`` is called, and ``run`` then ends at once, too.

        Raises:
            StoreError: the store cannot be read, or no schedule can be made.
        """
        if isinstance(self._clock, RealClock):  # virtual time stands still while we work
            self.loop_lag.start()
        try:
            self._hands.start_empty()
            if self._fit_recipe is None or not self._is_large():
                self._fitting.resume(self._clock.now())
            else:
                await self._get_first_fit(self._fit_recipe, until, tell)
        except BaseException:
            await self._end_fits()
            raise
        self._line.join(self._announcements.begin(self._clock.now()))
        self._is_ready = True

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
        forced, self.ended_by = False, None
        self.clock_was_set = False
        try:
            if not self._is_ready:
                await self.get_ready(until)
            begin = partial(self._steering.begin, self._clock.now())
            if self._fit_recipe is None:
                begin()
            else:  # it counts the visits of hours, while nothing else goes on yet
                await in_thread(begin)
            self.has_begun = True
            while (now := self._clock.now()) < until and not (self._stopping or self.clock_was_set):
                try:
                    if await self._turn(now, until, until_idle=until_idle):
                        break
                    self._setback.over(now)
                except Exception as error:  # noqa: BLE001 - only a store that is damaged ends the run
                    await self._sleep((), min(self._setback.met(error, now), until))
                with suppress(StoreError), self._faults.contained():  # the next turn meets it, too
                    progress(self._clock.now())
            await self._wind_up()
            if self.clock_was_set:
                hosts, ready = self._politeness.resting(self._clock.now())
                self._store.set_host(hosts, ready_at=ready)
        except asyncio.CancelledError:
            forced = True
            with suppress(StoreError):
                self._acknowledging.record(self._clock.now())
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
                self._settling.give_up()
                self._acknowledging.give_up()
            with suppress(*((StoreError,) if forced else ())), self._faults.contained():
                self._line.empty()
                self._drop(dropped, self._clock.now())
                self._steering.end(self._clock.now())

    def _drop(self, targets: Sequence[Target], now: float) -> None:
        """Free the leases of requests that were dropped; their hosts rest first.

        Nobody knows how long the answers would have taken, so each host rests as long as a slow one does.
        """
        if not targets:
            return
        hosts = self._store.hosts(np.unique([target.host for target in targets]))
        rest = np.maximum(hosts.delay, self._politeness.rules.longest)
        self._store.set_host(hosts.id, ready_at=np.maximum(hosts.ready_at, now + rest))
        self._hands.start_empty()

    async def _wind_up(self) -> None:
        """Finish what runs, record it, and give the rest back."""
        if self.ended_by is None:
            self.ended_by = EndedBy.STOP if self._stopping else EndedBy.TIME
        await self._finish()
        self._settle(())
        self._settling.ask_again()
        with self._faults.contained():
            self._let_go(self._clock.now())

    async def _turn(self, now: float, until: float, *, until_idle: bool) -> bool:
        """Start what there is to start, and take in what is done first; whether there is nothing left to do."""
        self._turned_at = self._clock.elapsed()
        now = self._set_clock_right(now)
        if self.clock_was_set:
            return False
        if self._setback.is_on:
            self._recover(now)
        self._acknowledging.end(now)
        self._end_stuck(now)
        self._heed(now)
        if now >= self._tidy_at:
            self._tidy_at = now + MINUTE
            with self._faults.contained():
                self._tidy(now)
        self._take(now)
        overdue = self._fit_aside(now) if self._fits else self._fitting.is_overdue(now)
        when = math.inf if overdue else self._set_out(now)
        if overdue or (self._fits is None and now >= self._agenda.fit_at and not self._is_busy()):
            self._fit(now)
            return False
        if until_idle and self._is_idle(now):
            self.ended_by = self.ended_by or EndedBy.IDLE
            return True
        self._settle(await self._wait(min(when, until)))
        return False

    def _set_clock_right(self, now: float) -> float:
        """Look whether the machine's clock was set; the time by now.

        What lasts goes on lasting as long as it would have: pauses of hosts, and our leases. By a large step the run
        ends, since what everybody thought of the time is wrong; whoever began it begins another one.
        """
        moved = self._clock.set_right()
        is_step = abs(moved) > SMALL
        if moved > 0 or is_step:
            self.clock_was_set = is_step
            self._politeness.shift(now, moved)
            with suppress(StoreError):  # then leases may be lost, which is noticed
                self._hands.leap(now, moved, self._on_the_road(), alone=self._steering.share[1] == 1)
        if moved:
            self._log.event("schedule", "the clock of this machine was set", level="warn", details={"seconds": moved})
        self._tell_doubt()
        return self._clock.now()

    def _tell_doubt(self) -> None:
        """Say that the clock was set by so much that it is not believed yet, or that this is over."""
        doubt = self._clock.in_doubt
        if bool(doubt) == bool(self._doubt):
            return
        if doubt:
            message = {"seconds": doubt}
            self._log.event("schedule", "the clock of this machine is in doubt", level="warn", details=message)
        elif not self.clock_was_set:
            self._log.event("schedule", "the clock of this machine is right again", level="warn")
        self._doubt = doubt

    def _recover(self, now: float) -> None:
        """Try again what failed, before anything new starts; leases we may have taken without knowing go back."""
        self._settle({task for task in self._running if task.done()})
        if self._setback.is_our_fault:
            self._let_go(now)  # what is in hand and what is on offer may not agree any more
        self._acknowledging.record(now)
        self._hands.drop_strays(self._on_the_road())

    def _end_stuck(self, now: float) -> None:
        """Cancel visits that were under way at several looks in a row: no clock says how long, since clocks are set.

        O(requests under way), a few times in half an hour.
        """
        if now < self._stuck_at:
            return
        self._stuck_at = now + self._longest_visit / _LOOKS
        self._looks = {task: self._looks.get(task, 0) + 1 for task in self._running}
        for task, looks in self._looks.items():
            if looks > _LOOKS:
                task.cancel()

    def stop(self) -> None:
        """Start nothing more; ``run`` returns once what is running is settled. To be called in the event loop."""
        self._stopping = True
        self._asleep.end()

    # -- deciding -----------------------------------------------------------------------------

    def _is_idle(self, now: float) -> bool:
        """Whether nothing is under way, and nothing is in hand or due in the store that may be visited now."""
        if self._running or self._acknowledging or (self._fits is not None and self._fits.is_pending):
            return False
        if self._steering.is_held(now):
            self.ended_by = EndedBy.PAUSE if self._steering.paused else EndedBy.BUDGET
            return True
        if self._hands:
            return False
        at_once = (errand for errand in self._errands.due(now) if self._politeness.free_at(errand.host) < now + MINUTE)
        if next(at_once, None) is not None:
            return False
        # A host that only rests between two requests is waited for; one that is in trouble or held by others is not.
        return math.isinf(self._store.soon_free(now, self._politeness.rules.longest))

    def _set_out(self, now: float) -> float:
        """Start all requests that there is room for; when the next page may be asked for if nothing is done before."""
        room = self._steering.room(now, len(self._running))
        if room <= 0:
            return self._steering.next_at(now)
        room = self._settling.outage.room(now, len(self._running), room)
        if room <= 0:
            return math.inf if self._running else self._settling.outage.try_at
        at_once = min(room, _AT_ONCE)
        found = self._line.next_many(now, at_once)
        self._steering.began(now, int((found.page >= 0).sum()))
        loop = asyncio.get_running_loop()
        for page, host in zip(found.page.tolist(), found.host.tolist(), strict=True):
            target = self._line.take(page)
            if (page < 0 or target.home is not None) and host in self._steering.resting:
                self._settling.turn_away(TurnedAway(target, now + MINUTE), now)
                continue
            self._running[loop.create_task(self._go(target, self._clock.elapsed() + _STALE))] = target
        if len(found.page) < at_once:
            return found.until
        return now if at_once < room else math.inf

    async def _wait(self, when: float) -> set[asyncio.Task[Ended | None]]:
        """Sleep until there is something to do: a request is done, a page due, a fit or a lease wanted."""
        wake = min(when, self._hands.renew_at, self._acknowledging.due, self._settling.doubts_end, self._heed_at)
        if self._running:
            wake = min(wake, self._stuck_at)
        if self._may_lease():
            wake = min(wake, self._hands.lease_at)
        if self._fits is not None:
            wake = min(wake, max(self._fits.wake_at, self._no_fit_before))
        elif not self._is_busy():
            wake = min(wake, self._agenda.fit_at)
        if self._take_in_some():
            wake = -math.inf
        writing = self._acknowledging.writing
        beside: list[asyncio.Task[Any]] = [writing] if writing else []
        if self._fits is not None:
            beside.append(self._fits.news)
        return await self._sleep([*self._running, *beside] if beside else self._running, wake)

    def _is_busy(self) -> bool:
        """Whether requests are under way, or visits are written: pages may be due at once because of either."""
        return bool(self._running) or self._acknowledging.writing is not None

    def _may_lease(self) -> bool:
        """Whether to ask for pages: not while visits are written, or we would wait for that."""
        return not self._steering.paused and self._acknowledging.writing is None

    async def _sleep(
        self, running: Collection[asyncio.Task[Ended | None]], wake: float
    ) -> set[asyncio.Task[Ended | None]]:
        """Sleep until one of these is done, at the latest until ``wake``; the end if somebody calls ``stop``."""
        done = await self._asleep.through(self._clock.wait(running, wake))
        return {task for task in self._running if task.done()} if done is None else done

    def _heed(self, now: float) -> None:
        """Take over what we are told; pages in hand may have to be given back for it."""
        if now < self._heed_at:
            return
        self._not_heeded_before = now + MINUTE  # if it fails
        with self._faults.contained():
            if self._steering.heed(now, self.load()):
                self._let_go(now)
            self._visitor.share(self._steering.share[1])
            if self._steering.was_silent:
                self._hands.check_soon()
            self._not_heeded_before = -math.inf

    @property
    def _heed_at(self) -> float:
        return max(self._steering.look_at, self._not_heeded_before)

    @property
    def waits_for(self) -> str:
        """What this worker waits for that is wrong with us, the disk or the store; empty if nothing is."""
        return self._setback.reason

    def load(self) -> Load:
        """What this worker is busy with."""
        underway = sum(not target.is_errand for target in self._running.values())
        return Load(underway, len(self._hands), len(self._acknowledging))

    def keep_leases(self) -> None:
        """Let others know that this worker lives, and renew its leases, if the event loop is too busy for that.

        For a thread. A loop that has stood still for ``_STANDSTILL`` seconds counts as dead, and is not helped.
        """
        if self._clock.elapsed() - self._turned_at < _STANDSTILL:
            now = self._clock.now()
            self._steering.keep_alive(now)
            self._hands.keep(now)

    # -- taking -------------------------------------------------------------------------------

    def _take(self, now: float) -> None:
        """Keep the leases we have, and fill our hands with due pages."""
        if now >= self._hands.renew_at and (lost := self._line.renew(now, self._on_the_road())):
            self._log.event("schedule", "leases were lost", level="warn", details={"given_back": lost})
        leased = self._hands.lease(now, self._steering.share) if self._may_lease() else None
        if leased is None:
            return
        try:
            self._hold(leased, now)
        except Exception as error:
            if waits_for(error) is not None:
                raise
            self._hold_one_by_one(leased, now)

    def _hold(self, leased: Leased, now: float) -> None:
        """Take pages in hand that were leased, with what is known of them."""
        self._agenda.add(self._store.pages(np.unique(leased.page)))
        sources = self._store.sources(leased.page)
        self._recorder.move_in(leased, sources)
        self._line.hold(leased, self._recorder.recall(leased, now), sources)

    def _hold_one_by_one(self, leased: Leased, now: float) -> None:
        """The same where our own code fails on one of the pages: that one fails, and harms no other."""
        for row in range(len(leased)):
            one = leased.take(slice(row, row + 1))
            try:
                self._hold(one, now)
            except Exception as error:
                if waits_for(error) is not None:
                    raise
                [last] = one.validators
                known = Known(last, last.gone, last.mime)
                target = Target(int(one.page[0]), int(one.host[0]), one.url[0], float(one.due[0]), known)
                self._line.leave_out(target)
                self._settling.broken(target, error, now)

    def _on_the_road(self) -> list[int]:
        """Pages that are leased and not in hand: being asked for, or waiting to be recorded."""
        made = (visited.target for visited in self._acknowledging.made)
        targets = (*self._running.values(), *made, *self._settling.held())
        return [target.page for target in targets if not target.is_errand]

    def _let_go(self, now: float) -> None:
        """Give back the pages in hand. Of those that wait for a second look the first one is recorded."""
        for target in self._line.take_seen():
            self._acknowledging.add(settled(target), now)
        self._acknowledging.record(now)
        self._line.empty()

    # -- fitting ------------------------------------------------------------------------------

    def _is_large(self) -> bool:
        """Whether there is so much that a fit would hold the loop up."""
        pages, visits = self._store.rough_size()
        return pages > FEW_PAGES or visits > FEW_VISITS

    def _start_fits(self, recipe: FitRecipe) -> ProcessFitting:
        self._taking_in = self._recorder.take_in_steps()
        self._fits = ProcessFitting(
            recipe,
            store=self._store,
            agenda=self._agenda,
            recorder=self._recorder,
            politeness=self._politeness,
            log=self._log,
            underway=lambda: self._acknowledging.underway,
            held=self._held,
        )
        return self._fits

    async def _end_fits(self) -> None:
        fits, self._fits = self._fits, None
        self._taking_in = iter(())
        if fits is not None:
            await fits.close()

    async def _get_first_fit(self, recipe: FitRecipe, until: float, tell: Callable[[str], None]) -> None:
        """Wait for the fit process to learn all that is recorded; take in meanwhile what lies in the scope by now."""
        fits = self._start_fits(recipe)
        while not self._stopping and (now := self._clock.now()) < until:
            try:
                fits.turn(now)
                more = self._take_in_some()
                self._setback.over(now)
                if fits.is_ready:
                    break
            except StoreError as fault:
                await self._sleep((), min(self._setback.met(fault, now), until))
                self._taking_in = self._recorder.take_in_steps()
                continue
            tell(fits.doing)
            news: list[asyncio.Task[Any]] = [fits.news]
            await self._sleep(news, now if more else min(until, fits.wake_at))

    def _take_in_some(self) -> bool:
        """Take in some of the pages that lie in the scope by now; whether there may be more."""
        taken = next(self._taking_in, None)
        self._taken_in += taken or 0
        if taken is None and self._taken_in:  # so many new pages need a schedule
            self._taken_in = 0
            self._agenda.fit_again()
        return taken is not None

    def _fit_aside(self, now: float) -> bool:
        """Go on with fits beside the crawl; never is the crawl to wait for one."""
        assert self._fits is not None  # noqa: S101 - its caller looked
        if now < self._no_fit_before:
            return False
        self._no_fit_before = now + MINUTE  # if it fails
        with self._faults.contained():
            self._fits.turn(now)
            if self._fits.take_moved():  # what is in hand may be due at another time
                self._taking_in = self._recorder.take_in_steps()
                self._line.empty(begun=False)
            self._no_fit_before = -math.inf
        return False

    def _held(self) -> IntArray:
        """Pages that we have leases on."""
        return np.array([*self._hands.pages(), *self._on_the_road()], np.int64)

    async def _finish(self) -> None:
        """Let requests that run come to an end, but not for long: what is not answered by then is asked again."""
        end = self._clock.now() + self._finish_within
        while self._running and self._clock.now() < end:
            done = await self._clock.wait(self._running, min(end, self._stuck_at))
            self._end_stuck(self._clock.now())
            self._settle(done)
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
        self._log.event("schedule", "our own event loop was late", level="warn", details=details)

    def _fit(self, now: float) -> None:
        """Fit the policy. Pages in hand may be due at another time then; what was begun goes on."""
        if self._fit_recipe is not None and self._is_large():  # there are more pages than there were
            self._start_fits(self._fit_recipe)
            return
        self._acknowledging.record(now)
        self._line.empty(begun=False)
        try:
            self._fitting.fit(now)
        except Exception as error:
            if waits_for(error) is not None:
                raise
            self._faults.beside_pages(error)
            self._agenda.put_off_fit(now + HOUR)

    # -- going --------------------------------------------------------------------------------

    async def _go(self, target: Target, not_after: float) -> Ended:
        """Visit, and note when that was over; nothing is asked for after so many seconds that passed.

        A bug of ours becomes a failed visit, so that one poisonous page does not end the crawl.
        """
        began, since = self._clock.now(), self.loop_lag.time()
        result: Result
        try:
            result = await self._visitor.go(target, not_after)
        except Exception as error:  # noqa: BLE001 - whatever our own code raises
            trouble = waits_for(error)
            result = Hindered(target, trouble) if trouble else Broken(target, began, Fault.of(error))
        return Ended(result, self._clock.now(), self.loop_lag.stalled(since))

    def _settle(self, done: Collection[asyncio.Task[Ended | None]]) -> None:
        """Take in finished requests, in the order in which they began; acknowledge visits if it is time."""
        now = self._clock.now()
        finished = [task for task in self._running if task in done] if done else []
        for task in finished:
            target = self._running.pop(task)
            if task.cancelled():  # because it was stuck, or by itself
                self._settling.take(Ended(Broken(target, now, _CANCELLED), now), now)
            else:
                self._settling.take(task.result(), now)
        if now >= self._settling.doubts_end or not (self._running or self._hands):
            self._settling.end_doubts(now)
        self._settling.take_in(now)
        if self._acknowledging.is_due(now) or not self._is_busy():
            self._acknowledging.begin(now)
        elif finished and not self._acknowledging:
            self._hands.look_again()
