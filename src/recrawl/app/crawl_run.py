"""One run of a crawl in a workspace, as ``recrawl run`` and the Python API make it.

A run starts when the store is reachable and the clock is set, and restarts after a step of the clock. It prints nothing
and handles no signals: a :class:`RunDisplay` shows what happens, and :meth:`CrawlRun.stop` ends it.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from recrawl.app.display import command_in, seconds_of
from recrawl.crawl.clock import APART, StoreTime, follow_store
from recrawl.crawl.control.json_log import LEVELS, JsonLinesLog, LogFile
from recrawl.crawl.control.worker_registry import registered_workers
from recrawl.crawl.visit.fault_isolation import FaultReporter
from recrawl.crawl.worker.crawl_assembly import LOG
from recrawl.crawl.worker.crawl_worker import StopReason
from recrawl.crawl.worker.event_loop import in_thread
from recrawl.crawl.worker.lease_pool import GRACE
from recrawl.crawl.worker.outages import StorageBackoff
from recrawl.errors import DiskFullError, RecrawlError, StoreError, counted, require
from recrawl.model import ANSWERED, Verdict
from recrawl.model.visits import NOT_ALLOWED
from recrawl.time import MINUTE, format_duration, to_iso

if TYPE_CHECKING:
    from recrawl.app.monitoring import Monitoring
    from recrawl.app.predict.model_use import LiveModel
    from recrawl.app.workspace.settings import Settings
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.control.metrics import CrawlStats, StatsCollector
    from recrawl.crawl.maintenance.archive_upload import UploadThread
    from recrawl.crawl.visit.scope import WorkspaceScope
    from recrawl.crawl.visit.visit_machine import VisitDone
    from recrawl.crawl.worker.crawl_worker import CrawlWorker
    from recrawl.store.base import ScheduleStore, Store
    from recrawl.store.recording import AheadOfClock


FINISH_WITHIN = 4.0
"""Seconds that running requests get when a run stops: the user waits at most five."""
_FOREVER = 1e6
"""Seconds: longer than any start takes."""
_COUNT_WITHIN = 2.0
"""Time limit in seconds for counting due pages, for the last line of a run that ends before its first visit."""


_TWO = 2
"""The number of samples for the rate."""


class RunTerm(NamedTuple):
    """The duration of a run; the earlier limit counts."""

    seconds: float
    """Seconds from now on, less the time since the process started."""
    until: float
    """Seconds since the epoch."""


def run_term(now: float, for_: str | None, until: str | None) -> RunTerm:
    """The term that options name; infinity for ever.

    Raises:
        ConfigError: it is over.
    """
    from recrawl.app.rates.rates_table import moment

    seconds = seconds_of("--for", for_) if for_ is not None else math.inf
    return check_term(RunTerm(seconds, moment(until, math.inf)), now)


def check_term(term: RunTerm, now: float) -> RunTerm:
    """The term.

    Raises:
        ConfigError: it is over.
    """
    from recrawl.errors import ConfigError

    if term.seconds <= 0 or term.until <= now:
        raise ConfigError("The time to stop is in the past.", "Give a later --until or a longer --for.")
    return term


@dataclass(slots=True)
class RunCounts:
    """Counts of visits so far."""

    visits: int = 0
    changed: int = 0
    failed: int = 0
    out_of_reach: int = 0
    """Failed visits whose address the address policy forbids."""
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, visited: Sequence[VisitDone]) -> None:
        """Count these visits."""
        self.visits += len(visited)
        self.changed += sum(one.visit.verdict == Verdict.CHANGED for one in visited)
        self.failed += sum(one.visit.outcome > ANSWERED for one in visited)
        self.out_of_reach += sum(one.visit.status == NOT_ALLOWED for one in visited)

    def rate(self, now: float) -> float:
        """Visits per second over the last minute, or since the last call if that is longer ago."""
        self._recent.append((now, self.visits))
        while len(self._recent) > _TWO and now - self._recent[1][0] >= MINUTE:
            self._recent.popleft()
        since, before = self._recent[0]
        return (self.visits - before) / (now - since) if now > since else 0.0

    def words(self) -> str:
        """The summary for the end of a run.

        >>> RunCounts(1200, 31, 2).words()
        '1,200 visits: 31 found a change, 2 failed.'
        """
        words = f"{counted(self.visits, 'visit')}: {self.changed:,} found a change, {self.failed:,} failed."
        if not self.out_of_reach:
            return words
        return f"{words}\n{self.out_of_reach:,} at addresses of private networks. Allow them with fetch.allow_networks."


@dataclass(frozen=True, slots=True)
class GettingReady:
    """A status line that shows what a start waits for."""

    tell: Callable[[str], None]
    """Show the current step."""
    stop: Callable[[], None]
    """Remove the line: the start is finished."""


class RunDisplay(Protocol):
    """Shows a run to people."""

    def say(self, text: str) -> None:
        """Show a sentence about something that happened."""
        ...

    def getting_ready(self) -> AbstractContextManager[GettingReady]:
        """Show what a start waits for, within the block."""
        ...

    def progress(
        self, tally: RunCounts, until: float, stats: Callable[[], CrawlStats]
    ) -> AbstractContextManager[Callable[[float], None]]:
        """Show how the run goes, within the block; the function is told the time now and then."""
        ...


class SilentDisplay:
    """Shows nothing."""

    def say(self, text: str) -> None:
        """See :class:`RunDisplay`."""

    @contextmanager
    def getting_ready(self) -> Iterator[GettingReady]:
        """See :class:`RunDisplay`."""
        yield GettingReady(lambda _doing: None, lambda: None)

    @contextmanager
    def progress(
        self,
        tally: RunCounts,  # noqa: ARG002 - nothing is shown
        until: float,  # noqa: ARG002
        stats: Callable[[], CrawlStats],  # noqa: ARG002
    ) -> Iterator[Callable[[float], None]]:
        """See :class:`RunDisplay`."""
        yield lambda _now: None


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run did, and why it ended."""

    counts: RunCounts
    ended_by: StopReason | None
    """``None`` after an error."""
    has_begun: bool
    """Whether it came to its first visit."""
    stopped: bool = False
    """Whether :meth:`CrawlRun.stop` was called."""
    forced: bool = False
    """Whether requests under way were dropped."""
    last: CrawlStats | None = None
    """The crawl at the end; ``None`` if the run did not come to its first visit."""
    due: int | None = None
    """Pages that are due; ``None`` if that is not known."""
    quarantined: int = 0
    """Pages in quarantine."""
    misdated: int = 0
    """Visits that were marked as misdated, since the clock was wrong."""
    fault: StoreError | None = None
    """Why the pages that are due could not be counted."""


class CrawlRun:
    """One run. :meth:`run` may be called once."""

    def __init__(
        self, place: Workspace, clock: RealClock, term: RunTerm, *, once: bool = False, show: RunDisplay | None = None
    ) -> None:
        """With ``once`` the run also ends when nothing more is due or may be visited now."""
        self._place, self._clock, self._term, self._once = place, clock, term, once
        self._show: RunDisplay = show or SilentDisplay()
        self._drivers: list[CrawlWorker] = []
        self._stopped = False
        self._running: asyncio.Task[object] | None = None
        self._worker = worker_name()
        self._uploads: UploadThread | None = None
        self._tally = RunCounts()
        self._start = RunStart(place, clock, term, self._worker, self._show.say)

    def stop(self) -> None:
        """Let running requests finish, and end. To be called in the event loop of the run."""
        self._stopped = True
        self._end()

    def _end(self) -> None:
        if self._drivers:
            self._drivers[0].stop()
        elif self._running is not None:
            self._running.cancel()

    def _expire(self) -> None:
        if not self._drivers:
            self._end()

    async def run(self) -> RunOutcome:
        """Crawl until the time is over, or :meth:`stop` is called; a cancellation drops running requests.

        Until there is a driver, no request is running, so a stop or the end of the time cancels the start.

        Raises:
            StoreError: the store is damaged, or was still away when the term ended.
            InputError: there are no pages to visit.
        """
        self._running = asyncio.current_task()
        seconds = min(self._term.until - self._clock.now(), self._term.seconds, _FOREVER)
        timer = asyncio.get_running_loop().call_later(seconds, self._expire)
        if self._stopped:
            self._end()
        try:
            return await self._crawl_on()
        except asyncio.CancelledError:
            if self._drivers:
                raise
            why = StopReason.STOP if self._stopped else StopReason.TIME
            due, fault = await _counted_due(self._place, self._clock)
            return RunOutcome(self._tally, why, has_begun=False, stopped=self._stopped, due=due, fault=fault)
        finally:
            timer.cancel()

    async def _crawl_on(self) -> RunOutcome:
        """Crawl, and restart after a step of the clock, or if the store became unreachable before the first step."""
        from recrawl.app.monitoring import Monitoring

        drivers, start = self._drivers, self._start
        with (
            Monitoring(self._place, self._worker, self._clock, self._show.say) as monitoring,
            _uploads(self._place, self._clock, self._show.say) as self._uploads,
        ):
            while True:
                drivers.clear()
                monitoring.starting()
                try:
                    with await in_thread(self._place.open_store) as store:
                        await start.with_the_right_time(store)
                        outcome = await self._crawl(store, monitoring)
                except StoreError as fault:
                    began = bool(drivers) and drivers[0].has_begun and not drivers[0].clock_was_set
                    if began or self._stopped or not fault.passing:
                        raise
                    drivers.clear()
                    try:
                        await start.wait(fault)
                    except StoreError:
                        self._tell_error_before()
                        raise
                    continue
                except asyncio.CancelledError:
                    if drivers or self._stopped or start.waits_for is None:
                        raise
                    self._tell_error_before()
                    raise start.waits_for from None
                if self._stopped or not drivers[0].clock_was_set:
                    return outcome

    async def _crawl(self, store: Store, monitoring: Monitoring) -> RunOutcome:
        """Prepare the driver, put it into the list, and run it."""
        from recrawl.app.predict.model_use import first_classes, live_model
        from recrawl.app.workspace.page_additions import check_methods
        from recrawl.app.workspace.policy_parameters import ignored_settings
        from recrawl.app.workspace.workspace_wiring import (
            LiveSettings,
            WorkspaceFits,
            crawl_settings_of,
            host_limits_of,
            policy_of,
            unit_terms,
        )
        from recrawl.crawl.units.unit_agent import UnitThread
        from recrawl.crawl.worker.crawl_assembly import live_crawl
        from recrawl.crawl.worker.kernel_compilation import kernels_ready

        place, clock, start, tally = self._place, self._clock, self._start, self._tally
        await in_thread(partial(check_methods, store))
        for sentence in ignored_settings(place.configuration):
            self._show.say(sentence)
        said, live = place.configuration.settings, LiveSettings(place)
        model = await in_thread(partial(live_model, place, store))
        classes = await in_thread(partial(first_classes, place, store))
        settings = crawl_settings_of(said, part_of=place.folder.resolve().name)
        settings = replace(settings, pace=replace(settings.pace, finish_within=FINISH_WITHIN))
        takers: list[StatsCollector] = []
        with ExitStack() as serving:
            watched = _watched(place, model, serving, self._show.say)

            def on_visits(visited: Sequence[VisitDone]) -> None:
                tally.add(visited)
                monitoring.visited(visited)

            if terms := unit_terms(place):
                unit = serving.enter_context(UnitThread(terms, self._worker, clock.now, start.tell_unit))
                await in_thread(unit.wait)
            ready = serving.enter_context(self._show.getting_ready())
            scope = await in_thread(partial(_scope, store, place, clock.now()))
            async with (
                kernels_ready([partial(warm_up_kernels, said)], done=start.tell_kernels),
                live_crawl(
                    self._worker,
                    policy_of(
                        said.schedule,
                        store.urls,
                        host_limits_of(store, live.politeness),
                        model,
                        None if model is None else model.links,
                        classes,
                    ),
                    clock=clock,
                    store=store,
                    folder=place.folder,
                    scope=scope,
                    settings=settings,
                    orders=live.orders,
                    fits=WorkspaceFits(place.folder, place.flags),
                    on_visits=on_visits,
                    watch=takers.append,
                    on_ahead=start.tell_ahead,
                    on_report=start.look_at_the_time,
                    in_unit=terms is not None,
                ) as driver,
            ):
                self._drivers.append(driver)
                forced = False
                try:
                    await driver.get_ready(start.end(), ready.tell)
                    ready.stop()
                    if (uploads := self._uploads) is not None:
                        takers[0].waiting = lambda: uploads.waiting
                    monitoring.ready(driver, takers[0])
                    start.over()
                    end = start.end()
                    with self._show.progress(tally, end, takers[0].take) as show:
                        await driver.run(end, _each_alone(driver, show, watched), until_idle=self._once)
                except asyncio.CancelledError:
                    forced = True
                    self._show.say("Stopped at once. Running requests are dropped; their pages will be visited again.")
                except StoreError:
                    self._tell_error(driver, takers[0])
                    raise
                last = takers[0].take(restart=True)
        return self._outcome(driver, last, store, forced=forced)

    def _outcome(self, driver: CrawlWorker, last: CrawlStats, store: ScheduleStore, *, forced: bool) -> RunOutcome:
        quarantined = 0
        with suppress(StoreError):
            quarantined = store.quarantined()
        return RunOutcome(
            self._tally,
            driver.ended_by,
            has_begun=driver.has_begun,
            stopped=self._stopped,
            forced=forced,
            last=last,
            due=last.due,
            quarantined=quarantined,
            misdated=max(self._start.misdated, 0),
        )

    def _tell_error(self, driver: CrawlWorker, taker: StatsCollector) -> None:
        """Print that an error ended a running crawl; the error itself is printed after it."""
        if driver.has_begun and not driver.clock_was_set:
            due = taker.take(count=False).due
            self._show.say(f"Ended by an error, {counted(due, 'page')} due when last counted.")

    def _tell_error_before(self) -> None:
        """Print that an error ended a run before its first visit."""
        self._show.say("Ended by an error before the first visit; how many pages are due is not known.")


@contextmanager
def _uploads(place: Workspace, clock: RealClock, say: Callable[[str], None]) -> Iterator[UploadThread | None]:
    """Upload closed WARC files beside the run, if the settings name an object storage."""
    from recrawl.crawl.maintenance.archive_upload import ArchiveUploader, uploads_meanwhile

    options = place.archive.options
    if options is None or not options.upload:
        yield None
        return
    require("obstore", "s3")

    def failed(error: RecrawlError) -> None:
        say(f"WARC files are not uploaded for now; the crawl goes on. {error}")
        with LogFile(place.folder / LOG, clock) as file:
            JsonLinesLog(file, clock).event("storage", "uploads failed", level="warn", details={"error": str(error)})

    with uploads_meanwhile(ArchiveUploader(place.warc, options, clock.now), place.open_store, failed) as thread:
        yield thread
    if thread is not None and thread.waiting.files:
        files = counted(thread.waiting.files, "WARC file")
        say(f"{files} not uploaded yet. The next run goes on, or: {command_in(place.folder, 'upload')}")


_LOOK_EVERY = 1.0
"""Seconds between two checks of a clock that was never set."""


class _RateLimitedLog:
    """A log file that is opened for each line: most starts write none."""

    def __init__(self, path: Path, clock: RealClock) -> None:
        self._path = path
        self._clock = clock
        self._text = ""

    def write(self, text: str, /) -> None:
        """Buffer text."""
        self._text += text

    def flush(self) -> None:
        """Write the buffer if the disk has space."""
        text, self._text = self._text, ""
        with suppress(OSError, DiskFullError), LogFile(self._path, self._clock) as file:
            file.write(text)


class RunStart:
    """The start and restart of a run: waits for the store and the clock, and tracks the remaining time of the run."""

    def __init__(
        self, place: Workspace, clock: RealClock, term: RunTerm, worker: str, say: Callable[[str], None]
    ) -> None:
        """The term starts now; ``say`` takes sentences for people."""
        settings = place.configuration.settings.crawl
        self._clock = clock
        self._ends = clock.elapsed() + term.seconds
        self._until = term.until
        self._say = say
        stream = _RateLimitedLog(place.folder / LOG, clock)
        self._log = JsonLinesLog(stream, clock, level=LEVELS[LEVELS.index(settings.log_level)], worker=worker)
        self._storage_backoff = StorageBackoff(self._log, FaultReporter(self._log))
        self.waits_for: StoreError | None = None
        """The error that the start waits on; ``None`` while it does not wait."""
        self._has_run = False
        self._time: StoreTime | None = None
        self._said = ""
        self.misdated = 0
        """Visits marked as misdated since the run started."""

    def left(self) -> float:
        """Remaining seconds of the run, independent of clock changes."""
        return self._ends - self._clock.elapsed()

    def end(self) -> float:
        """The end of the run by the current clock, seconds since the epoch."""
        return min(self._until, self._clock.now() + self.left())

    def over(self) -> None:
        """Mark the start as finished: the run starts."""
        self._storage_backoff.over(self._clock.now())
        self._said = ""
        self._has_run = True

    async def wait(self, fault: StoreError) -> None:
        """Wait for an unreachable store before the run starts, longer after each failure.

        Raises:
            StoreError: the time of the run is over, or waiting does not help.
        """
        now = self._clock.now()
        again = self._storage_backoff.met(fault, now) - now
        if self._said != str(fault):
            self._said = str(fault)
            self._say(f"Waiting for the store: {fault}")
        await self._pause(again, fault)

    async def with_the_right_time(self, store: Store) -> None:
        """Follow the clock of the store, if it has one, and wait for a clock that was never set.

        If the clock was set while other workers run, wait until they have noticed it.
        """
        self._time, ahead = follow_store(self._clock, store)
        if abs(ahead) > APART:
            self._tell_apart(ahead)
        while not self._clock.is_set:
            shown = f"The clock reads {to_iso(self._clock.now())}: waiting until it is set."
            if self._said != shown[:20]:
                self._said = shown[:20]
                self._say(shown)
            await self._pause(_LOOK_EVERY, StoreError(shown, "Set the clock of this machine."))
            self.look_at_the_time()
            self._clock.set_right()
        if self._has_run and registered_workers(store.controls()):
            await asyncio.sleep(GRACE)

    def look_at_the_time(self) -> None:
        """Compare with the clock of the store again, if it has one."""
        if self._time is not None:
            self._time.measure()

    def tell_ahead(self, found: AheadOfClock) -> None:
        """Print what was recorded ahead of the clock, and how it was repaired."""
        self.misdated += found.misdated - found.restored
        if found.visits:
            visits, far = counted(found.visits, "visit"), format_duration(found.seconds)
            self._say(
                f"{visits} recorded ahead of the clock, by up to {far}: {found.misdated:,} of them marked as misdated. "
                "Hosts and due times were corrected."
            )
        if found.restored:
            self._say(f"{counted(found.restored, 'visit')} marked as misdated before are valid again.")

    def tell_unit(self, error: str) -> None:
        """Print and log that the coordination database cannot be reached, or can be reached again. For a thread."""
        if error:
            self._say(f"The last assignment of buckets holds: {error}")
            self._log.event("control", "coordination failed", level="warn", details={"reason": error})
        else:
            self._say("The coordination database can be reached again.")
            self._log.event("control", "coordination works again")

    def tell_kernels(self, failure: str) -> None:
        """Log that compiled kernels are used from now on, or why they are not."""
        if failure:
            self._log.event("schedule", "kernels not compiled", level="warn", details={"reason": failure})
        else:
            self._log.event("schedule", "kernels compiled")

    def _tell_apart(self, ahead: float) -> None:
        where = "ahead of" if ahead > 0 else "behind"
        far = format_duration(abs(ahead))
        self._say(f"The clock of this machine is {far} {where} the clock of the store. The clock of the store is used.")
        self._log.event("schedule", "clocks of machine and store differ", level="warn", details={"seconds": ahead})

    async def _pause(self, seconds: float, why: StoreError) -> None:
        """Sleep, at most until the end of the run, which is an error."""
        self.waits_for = why
        left = self.end() - self._clock.now()
        if left <= 0:
            raise why
        await asyncio.sleep(min(seconds, left))
        self.waits_for = None


async def _counted_due(place: Workspace, clock: RealClock) -> tuple[int | None, StoreError | None]:
    """The number of due pages, ``None`` if it is not known, and the error of the store, if any.

    The store is opened again with a short timeout, because a thread may still use the open one.
    """
    import asyncio
    from contextlib import suppress

    from recrawl.crawl.worker.event_loop import submit
    from recrawl.store.open import open_store

    def count() -> int:
        with open_store(place.store, patience=_COUNT_WITHIN) as store:
            return store.backlog(clock.now()).due

    counting, fault = submit(count), None
    with suppress(asyncio.CancelledError):  # by another signal
        await asyncio.wait([asyncio.wrap_future(counting)], timeout=_COUNT_WITHIN)
    try:
        if counting.done():
            return counting.result(), None
    except StoreError as error:
        fault = error
    return None, fault


def _watched(
    place: Workspace, model: LiveModel | None, watching: ExitStack, say: Callable[[str], None]
) -> Callable[[float], None]:
    """A periodic task that has a model trained, and keeps it current, until the stack is closed."""
    from recrawl.app.predict.model_use import CHECK_EVERY, ModelWatch

    settings = place.configuration.settings.predict
    wanted = settings.model and (settings.train_from > 0 or (model is not None and settings.retrain > 0))
    if not wanted or find_spec("sklearn") is None:
        return lambda _now: None
    watch = watching.enter_context(ModelWatch(place, model, say))
    return together(every(CHECK_EVERY, watch.check), every(1.0, watch.follow_store))


def _each_alone(driver: CrawlWorker, *told: Callable[[float], None]) -> Callable[[float], None]:
    """Call each periodic task; a failing one is reported once and does not stop the others."""

    def tell(now: float) -> None:
        for one in told:
            with driver.faults.contained():
                one(now)

    return tell


def worker_name() -> str:
    """A unique worker name: host name, process id, and random letters.

    Containers may share a host name, and each has a process 1.
    """
    import os
    import secrets
    import socket

    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"


def every(seconds: float, show: Callable[[], object], *, at_once: bool = True) -> Callable[[float], None]:
    """A periodic task that shows the status at most every interval; the first time at once or after a given wait."""
    show_at = -math.inf if at_once else math.inf

    def told(now: float) -> None:
        nonlocal show_at
        if show_at == math.inf:
            show_at = now + seconds
        if now >= show_at:
            show_at = now + seconds
            show()

    return told


def together(*told: Callable[[float], None]) -> Callable[[float], None]:
    """One periodic task that calls several."""

    def tell(now: float) -> None:
        for one in told:
            one(now)

    return tell


def warm_up_kernels(settings: Settings) -> None:
    """Call the kernels of a crawl with these settings."""
    from recrawl.app.workspace.workspace_wiring import classifier_of, policy_of
    from recrawl.parse.parse_pool import warm_up
    from recrawl.schedule.frontier.host_frontier import warm_up_schedule

    warm_up(classifier_of(settings).standards)
    warm_up_schedule(policy_of(settings.schedule))


def _scope(store: Store, place: Workspace, now: float) -> WorkspaceScope:
    """The scope around the scheduled pages and the added feeds.

    Sources with an access method other than HTTP add nothing to the scope. O(sources): pages are read when the scope
    is asked about their hosts.
    """
    import numpy as np

    from recrawl.app.workspace.page_additions import HOME
    from recrawl.crawl.visit.scope import WorkspaceScope
    from recrawl.errors import InputError
    from recrawl.fetch.access.access_methods import FEED
    from recrawl.time import to_iso
    from recrawl.urls import address

    feeds = np.array([page for page, source in store.sources().items() if source == (FEED, HOME)], np.int64)
    alone = not place.configuration.settings.units.name  # other units may send pages
    if alone and not len(feeds) and not store.has_wanted_pages():
        raise InputError("There are no pages to visit.", f"Add some with: {command_in(place.folder, 'add', 'URL')}")
    rules, seeds = place.configuration.settings.crawl.scope_rules(), filter(None, map(address, store.urls(feeds)))
    return WorkspaceScope(rules, seeds, year=int(to_iso(now)[:4]), stored=store)
