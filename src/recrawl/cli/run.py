"""``recrawl run``: come back to pages when it is worth a visit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, SetOption, WorkspaceOption, command_in, seconds_of
from recrawl.cli.workspace import Workspace, open_workspace
from recrawl.errors import StoreError
from recrawl.model.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import ExitStack

    from recrawl.cli.monitoring import Monitoring
    from recrawl.cli.predict_watch import LiveModel
    from recrawl.cli.run_display import Tally
    from recrawl.cli.starting import Start
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.driver import Driver, EndedBy
    from recrawl.crawl.home_scope import HomeScope
    from recrawl.crawl.pulse import Pulse, PulseTaker
    from recrawl.crawl.target import Visited
    from recrawl.store.base import Store

_FOREVER = 1e6
"""Seconds: longer than anybody gets ready."""

EXAMPLES = """
recrawl run                                 until you stop it with Ctrl-C
recrawl run --for 8h --budget 10000/day     eight hours, at most 10,000 visits a day
recrawl run --once --for 50min              until nothing is due: for cron, once an hour
recrawl run --until 2026-12-01T06:00:00Z
recrawl run --policy nutch                  as another crawler would come back
recrawl run --metrics 9090                  tell Prometheus how it goes
"""


def run(  # noqa: PLR0913 - one argument an option
    *,
    for_: Annotated[str | None, typer.Option("--for", metavar="DURATION", help="Stop after so long, e.g. 8h.")] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Stop at this time in UTC, e.g. 2026-11-09T06:00Z.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when nothing more is due or may be visited now.")] = False,
    budget: Annotated[
        str | None, typer.Option(metavar="VISITS", help="Instead of schedule.budget: 10000/day, 500/h or 2/s.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Instead of schedule.policy, e.g. valued, uniform, nutch, hacs.")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="[ADDRESS:]PORT", help="Instead of crawl.metrics: serve /metrics there.")
    ] = None,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Come back to pages when it is worth a visit.

    Visits due pages, keeps every answer in WARC files, judges what changed, follows links and sitemaps within the scope
    (crawl.scope), and decides when to return to each page. Robots.txt and the pauses between requests are kept
    (politeness.*), and the budget is never exceeded: what is due beyond it waits, the page that waits longest goes
    first, and pages never seen take at most a share (schedule.new_share).

    Several runs may share one workspace; they share its budget and work on different hosts. recrawl pause, resume and
    limit reach them within seconds. The first Ctrl-C finishes what is under way and stops; a second one drops it.
    Whatever happens, what was acknowledged stays, and the next run goes on from there.
    """
    from recrawl.crawl import event_loop

    chosen = {"schedule.budget": budget, "schedule.policy": policy, "crawl.metrics": metrics}
    flags = parse_assignments(assignments or []) | {key: text for key, text in chosen.items() if text is not None}
    place = open_workspace(workspace, flags)
    raise typer.Exit(event_loop.run(_run(place, for_, until, once=once)))


async def _run(place: Workspace, for_: str | None, until: str | None, *, once: bool) -> int:
    """Crawl until the term ends or somebody interrupts; the exit code.

    Until there is a driver nothing is under way, so an interrupt or the end of the term drops what was begun.
    """
    import asyncio

    from recrawl.cli.interrupts import interruptible
    from recrawl.crawl.clock import RealClock
    from recrawl.errors import ExitCode

    clock = RealClock()
    term = _term(clock.now(), for_, until)
    drivers: list[Driver] = []
    loop, running = asyncio.get_running_loop(), asyncio.current_task()

    def stop() -> None:
        if drivers:
            drivers[0].stop()
        elif running is not None:
            running.cancel()

    def expire() -> None:
        if not drivers:
            stop()

    timer = loop.call_later(min(term.until - clock.now(), _FOREVER), expire)
    with interruptible(stop) as interrupts:
        try:
            return await _crawl_on(place, clock, term, drivers, interrupts, once=once)
        except asyncio.CancelledError:
            if drivers:
                raise
            typer.echo("Stopped before the first visit.", err=True)
            return ExitCode.INTERRUPTED if interrupts else ExitCode.OK
        finally:
            timer.cancel()


async def _crawl_on(  # noqa: PLR0913 - what takes part
    place: Workspace, clock: RealClock, term: Term, drivers: list[Driver], interrupts: list[int], *, once: bool
) -> int:
    """Crawl, and begin again after a step of the clock, or when the store went away before the first turn."""
    from recrawl.cli.monitoring import Monitoring
    from recrawl.cli.run_display import Tally
    from recrawl.cli.starting import Start
    from recrawl.crawl.background import in_thread
    from recrawl.errors import StoreError

    worker = worker_name()
    tally, start = Tally(), Start(place, clock, term.seconds, term.until, worker)
    with Monitoring(place, worker, clock) as monitoring:
        while True:
            drivers.clear()
            monitoring.starting()
            try:
                with await in_thread(place.open_store) as store:
                    await start.with_the_right_time(store)
                    part = _Part(place, store, clock, term._replace(seconds=start.left()), worker, tally, start)
                    code = await _crawl(part, monitoring, drivers, interrupts, once=once)
            except StoreError as fault:
                began = bool(drivers) and drivers[0].has_begun and not drivers[0].clock_was_set
                if began or interrupts or not fault.passing:
                    raise
                drivers.clear()
                await start.wait(fault)
                continue
            if interrupts or not drivers[0].clock_was_set:
                return code


class _Part(NamedTuple):
    """A run, or what is left of it when it begins again."""

    place: Workspace
    store: Store
    clock: RealClock
    term: Term
    worker: str
    tally: Tally
    start: Start


async def _crawl(
    part: _Part, monitoring: Monitoring, drivers: list[Driver], interrupts: list[int], *, once: bool
) -> int:
    """Get ready, put the driver that is ready into ``drivers``, and let it run; the exit code."""
    import asyncio
    from contextlib import ExitStack
    from dataclasses import replace
    from functools import partial

    from recrawl.cli.interrupts import FINISH_WITHIN
    from recrawl.cli.predict_use import live_model
    from recrawl.cli.run_display import display, getting_ready
    from recrawl.cli.sources import check_methods
    from recrawl.cli.wiring import LiveSettings, WorkspaceFits, crawl_settings_of, host_limits_of, policy_of
    from recrawl.crawl.background import in_thread
    from recrawl.crawl.live import live_crawl
    from recrawl.errors import ExitCode
    from recrawl.schedule.warm_up import warm_up_schedule

    place, store, clock, term, worker, tally, start = part
    check_methods(store)
    said, live = place.configuration.settings, LiveSettings(place)
    model = live_model(place, store)
    settings = crawl_settings_of(said, part_of=place.folder.resolve().name)
    settings = replace(settings, pace=replace(settings.pace, finish_within=FINISH_WITHIN))
    takers: list[PulseTaker] = []
    with ExitStack() as serving:
        watched = _watched(place, model, serving)

        def on_visits(visited: Sequence[Visited]) -> None:
            tally.add(visited)
            monitoring.visited(visited)

        ready = serving.enter_context(getting_ready())
        scope = await _scope(store, place, clock.now())
        await in_thread(partial(warm_up_schedule, policy_of(said.schedule)))
        async with live_crawl(
            worker,
            policy_of(
                said.schedule,
                store.urls,
                host_limits_of(store, live.politeness),
                model,
                None if model is None else model.links,
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
            on_call=start.look_at_the_time,
        ) as driver:
            drivers.append(driver)
            try:
                await driver.get_ready(term.until, ready.tell)
                ready.stop()
                monitoring.ready(driver, takers[0])
                start.over()
                end = min(term.until, clock.now() + term.seconds)
                with display(tally, end, takers[0].take) as show:
                    await driver.run(end, _each_alone(driver, show, watched), until_idle=once)
            except asyncio.CancelledError:
                typer.echo("Stopped at once: what was under way is dropped and will be visited again.", err=True)
                typer.echo(_still_due(takers[0].take(anew=True), store), err=True)
                return ExitCode.FORCED
            except StoreError:
                _tell_error(driver, takers[0])
                raise
            if driver.clock_was_set and not interrupts:
                return ExitCode.OK
            last = takers[0].take(anew=True)
    typer.echo(tally.words() + start.words())
    typer.echo(_ending(driver.ended_by, last, store))
    return ExitCode.INTERRUPTED if interrupts else ExitCode.OK


def _watched(place: Workspace, model: LiveModel | None, watching: ExitStack) -> Callable[[float], None]:
    """Something to be told the time, which looks after the model until the stack is closed, if there is one."""
    from recrawl.cli.predict_watch import CHECK_EVERY, ModelWatch
    from recrawl.cli.run_display import every, together

    if model is None or place.configuration.settings.predict.retrain <= 0:
        return lambda _now: None
    watch = watching.enter_context(ModelWatch(place, model, lambda said: typer.echo(said, err=True)))
    return together(every(CHECK_EVERY, watch.check), every(1.0, watch.heed))


def _each_alone(driver: Driver, *told: Callable[[float], None]) -> Callable[[float], None]:
    """Tell each of them the time; one that fails is reported once, and keeps no other from being told."""

    def tell(now: float) -> None:
        for one in told:
            with driver.faults.contained():
                one(now)

    return tell


def worker_name() -> str:
    """A name that no other worker of the store has: the machine, the process, and a few letters by chance.

    Containers may share the name of their machine, and each of them has a process 1.
    """
    import os
    import secrets
    import socket

    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"


def _tell_error(driver: Driver, taker: PulseTaker) -> None:
    """Say that an error ends a run that had begun; what it was is told after it."""
    if driver.has_begun and not driver.clock_was_set:
        due = taker.take(count=False).due
        typer.echo(f"Ended by an error, {counted(due, 'page')} due when last counted.", err=True)


def _ending(by: EndedBy | None, last: Pulse, store: Store) -> str:
    """The last line: why the run ended, how many pages are due, and what they wait for."""
    from recrawl.crawl.driver import EndedBy

    due = _still_due(last, store)
    spent = last.due > 0 and last.left is not None and last.left < 1
    if by is EndedBy.PAUSE:
        return f"The crawl is paused, {due} recrawl resume lets it go on."
    if by is EndedBy.BUDGET:
        return f"The budget is spent, {due} recrawl plan says what more would buy."
    also = " The crawl is paused." if last.paused else " The budget is spent." if spent else ""
    return f"Ended because {by.value if by else 'of an error'}, {due}{also}"


def _still_due(last: Pulse, store: Store) -> str:
    """How many pages are due, and how many of these cannot be visited now. Two counts by the store."""
    from contextlib import suppress

    quarantined = 0
    with suppress(StoreError):
        quarantined = store.quarantined()
    waiting = [
        *([f"{last.resting:,} on hosts that rest"] if last.resting else []),
        *([f"{last.held:,} on paused hosts"] if last.held else []),
    ]
    details = f" ({', '.join(waiting)})" if waiting else ""
    due = f"{counted(last.due, 'page')} due{details}"
    return f"{due}, {quarantined:,} in quarantine." if quarantined else f"{due}."


class Term(NamedTuple):
    """How long to crawl: what ends first. Time to get ready does not count."""

    seconds: float
    until: float
    """Seconds since the epoch."""


def _term(now: float, for_: str | None, until: str | None) -> Term:
    """What was asked for; infinity for ever."""
    from recrawl.cli.rates_question import moment
    from recrawl.errors import ConfigError

    term = Term(seconds_of("--for", for_) if for_ is not None else math.inf, moment(until, math.inf))
    if term.seconds <= 0 or term.until <= now:
        raise ConfigError("The time to stop is already over.", "Name a later --until, or a longer --for.")
    return term


async def _scope(store: Store, place: Workspace, now: float) -> HomeScope:
    """Around the pages that are to be visited, and the feeds that people named.

    Sources with a method of their own stand alone: nothing is near them. O(pages), in steps between which an interrupt
    is heard.
    """
    import asyncio

    import numpy as np

    from recrawl.cli.sources import HOME
    from recrawl.crawl.home_scope import HomeScope
    from recrawl.crawl.homes import page_chunks
    from recrawl.errors import InputError
    from recrawl.fetch.access_methods import FEED
    from recrawl.time import to_iso
    from recrawl.urls import address

    sources, any_wanted = store.sources(), False
    feeds = np.array([page for page, source in sources.items() if source == (FEED, HOME)], np.int64)
    alone = np.setdiff1d(np.array(list(sources), np.int64), feeds)
    scope = HomeScope(place.configuration.settings.crawl.scope_rules(), (), year=int(to_iso(now)[:4]))
    for pages in page_chunks(store):
        wanted = pages.id[pages.importance > 0]
        any_wanted |= len(wanted) > 0
        homes = np.setdiff1d(np.union1d(wanted, np.intersect1d(pages.id, feeds)), alone, assume_unique=True)
        for url in store.urls(homes):
            if (found := address(url)) is not None:
                scope.widen(found)
        await asyncio.sleep(0)
    if not any_wanted and not len(feeds):
        raise InputError("There are no pages to visit.", f"Add some with: {command_in(place.folder, 'add', 'URL')}")
    return scope
