"""The parts of a crawl, put together: the same for the demo's virtual weeks and for the real web."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from recrawl.crawl.access import Access
from recrawl.crawl.archive import WarcArchive
from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into
from recrawl.crawl.background import in_thread
from recrawl.crawl.budget import SharedBudget
from recrawl.crawl.clock import RealClock
from recrawl.crawl.controls import Controls, Orders
from recrawl.crawl.driver import Driver, Pace
from recrawl.crawl.faults import Faults
from recrawl.crawl.fit_process import FitRecipe
from recrawl.crawl.garbage import long_running
from recrawl.crawl.heritrix_log import HeritrixLog
from recrawl.crawl.homes import page_chunks
from recrawl.crawl.judging import Judging, JudgingRules, readers, warm_up
from recrawl.crawl.lease_keeper import leases_kept
from recrawl.crawl.log import JsonLinesLog, Level
from recrawl.crawl.log_file import LogFile
from recrawl.crawl.parse_pool import ParseLimits, ParsePool
from recrawl.crawl.presence import present
from recrawl.crawl.pulse import PulseTaker
from recrawl.crawl.recorder import Recorder
from recrawl.crawl.recovery import acknowledged_by, give_back
from recrawl.crawl.rollcall import RollCall
from recrawl.crawl.scope import Scope
from recrawl.crawl.steering import Steered
from recrawl.crawl.target import Visited
from recrawl.crawl.traps import HostCap
from recrawl.crawl.visitor import Visitor
from recrawl.detect import decoded
from recrawl.fetch.doors import Doors
from recrawl.fetch.files import FileFetcher
from recrawl.fetch.http import HttpFetcher, Limits
from recrawl.fetch.names import Names
from recrawl.fetch.reach import Reach
from recrawl.fetch.robots import RobotsCache
from recrawl.formats.warc import ROLL_SIZE, WarcInfo, WarcWriter
from recrawl.schedule.agenda import Agenda
from recrawl.schedule.newcomers import Newcomers
from recrawl.schedule.policy import Policy
from recrawl.schedule.politeness import Politeness, PolitenessRules
from recrawl.schedule.retry import Retry
from recrawl.schedule.turns import TurnRules, Turns
from recrawl.store.ahead import FoundAhead
from recrawl.store.base import Store
from recrawl.time import Clock, VirtualClock

LOG, CRAWL_LOG = "recrawl.log", "crawl.log"
"""Names of the logs in a workspace: events as JSON, and attempts as Heritrix writes them."""


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """How much, how politely, and by whom."""

    budget: float
    """Visits per second."""
    user_agent: str
    limits: Limits = field(default_factory=Limits)
    http2: bool = True
    """Whether HTTP/2 is spoken to hosts that offer it."""
    politeness: PolitenessRules = field(default_factory=PolitenessRules)
    retry: Retry = field(default_factory=Retry)
    """When pages are tried again whose visits failed."""
    turns: TurnRules | None = None
    """How hosts share an address; without it they do not mind each other."""
    max_pages_per_host: int = 100_000
    """Pages of a host beyond which no more are taken in that are found on the way."""
    archive: WarcInfo = field(default_factory=WarcInfo)
    roll_size: int = ROLL_SIZE
    """Bytes after which an archive file is closed and a new one begun."""
    durable: bool = True
    """Whether archive files wait for the disk before a visit is acknowledged, so that both outlive a power cut."""
    log_level: Level = "debug"
    """Events that matter less are not logged."""
    log_size: int = 0
    """Bytes after which a log is put aside and begun anew; 0 for never."""
    pace: Pace = field(default_factory=Pace)
    judging: JudgingRules = field(default_factory=JudgingRules)
    reach: Reach | None = None
    """Addresses that may be connected to; without it all may."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """``host:port`` to IP address, instead of asking DNS."""
    folders: tuple[Path, ...] = ()
    """Where files may be read that are pages."""
    parsing: ParseLimits | None = None
    """What it may take to read an answer, in processes of their own; without it all is read here, at any cost."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What any crawl works with, continuous or of one site."""

    fetcher: HttpFetcher
    doors: Doors | None
    robots: RobotsCache
    archive: WarcArchive
    events: JsonLinesLog
    attempts: HeritrixLog
    pool: ParsePool | None
    """Reads what is not cheap to read."""


@asynccontextmanager
async def tools(
    clock: Clock, store: Store, folder: Path, settings: CrawlSettings, worker: str = ""
) -> AsyncIterator[Tools]:
    """Tools for a workspace, closed in the end: ``folder`` takes the archive files (``warc/``) and both logs.

    ``worker`` is who events are told of.
    """
    with (
        WarcWriter(
            folder / "warc",
            clock,
            settings.archive,
            roll_size=settings.roll_size,
            durable=settings.durable,
            keeper=acknowledged_by(store),
        ) as writer,
        LogFile(folder / LOG, clock, most=settings.log_size) as events,
        LogFile(folder / CRAWL_LOG, clock, most=settings.log_size) as attempts_file,
        parse_pool(settings, clock) as pool,
    ):
        async with (
            Names(clock, reach=settings.reach, pins=settings.pins, patience=settings.limits.connect) as names,
            HttpFetcher(
                clock,
                settings.user_agent,
                limits=settings.limits,
                reach=settings.reach,
                names=names,
                http2=settings.http2,
            ) as fetcher,
        ):
            attempts = HeritrixLog(attempts_file)
            archived = ArchivedBytes(folder / "warc", imported_into(store))
            archive = WarcArchive(writer, store, attempts.write_aside, archived.read)
            robots = RobotsCache(
                fetcher,
                clock,
                settings.user_agent,
                body_of=decoded,
                on_capture=partial(archive.keep_aside, hops="P"),
                copies=store,
                max_delay=settings.politeness.crawl_delay_cap,
                pause=settings.politeness.shortest,
            )
            doors = None if settings.turns is None else Doors(names, Turns(settings.turns), clock)
            log = JsonLinesLog(events, clock, level=settings.log_level, worker=worker)
            yield Tools(fetcher, doors, robots, archive, log, attempts, pool)


def parse_pool(settings: CrawlSettings, clock: Clock) -> AbstractContextManager[ParsePool | None]:
    """Who reads what is not cheap to read, if the settings ask for that; nothing starts before it is needed.

    Not on virtual time: a run there is to repeat itself, however slow the machine.
    """
    if settings.parsing is None or isinstance(clock, VirtualClock):
        return nullcontext()
    return readers(settings.parsing, settings.judging.standards)


@asynccontextmanager
async def live_crawl(  # noqa: PLR0913 - what takes part
    worker: str,
    policy: Policy,
    *,
    clock: Clock,
    store: Store,
    folder: Path,
    scope: Scope,
    settings: CrawlSettings,
    orders: Callable[[Mapping[str, str]], Orders] | None = None,
    fits: FitRecipe | None = None,
    on_visits: Callable[[Sequence[Visited]], None] = lambda _visited: None,
    watch: Callable[[PulseTaker], None] = lambda _taker: None,
    on_ahead: Callable[[FoundAhead], None] = lambda _found: None,
    on_call: Callable[[], object] = lambda: None,
) -> AsyncIterator[Driver]:
    """A driver that is ready to run; ``folder`` as for :func:`tools`.

    With ``orders``, which makes orders of limits by the keys of settings, it does what the controls in the store say,
    and shares the budget with other workers; ``watch`` is given whoever tells how it goes. Without, it keeps to its
    settings and to the budget on average.
    With ``fits`` the policy is fitted by a process of its own, which makes its parts by that recipe, and what takes
    long before the start leaves the event loop its turn: for real time. Without, all is done in the event loop.
    ``on_visits`` is told of visits once they are acknowledged. Everything is closed in the end, also after an error.
    What workers that died in this folder had leased is given back first, and what lies ahead of the clock is repaired:
    ``on_ahead`` is told what that was. ``on_call`` is called every few seconds, where there are ``orders``.
    """
    first = orders({}) if orders else None
    newcomers = Newcomers(first.new_share, first.burst) if first else None
    agenda = Agenda(policy, budget=settings.budget, retry=settings.retry, newcomers=newcomers)
    politeness = Politeness(settings.politeness)

    def steering(log: JsonLinesLog, judging: Judging, misdated: int) -> Steered | None:
        if orders is None or first is None:
            return None
        return Steered(
            worker,
            first,
            controls=Controls(store, orders),
            budget=SharedBudget(store, clock, misdated),
            roll=RollCall(store, worker, clock.elapsed),
            agenda=agenda,
            politeness=politeness,
            judging=judging,
            log=log,
            on_call=on_call,
        )

    give_back(store, folder, clock.now(), settings.politeness.shortest)
    with present(folder, worker), _aside(settings) as aside:
        async with tools(clock, store, folder, settings, worker) as at_hand:
            faults = Faults(at_hand.events)

            def acknowledged(visited: Sequence[Visited]) -> None:
                with faults.contained():
                    on_visits(visited)
                faults.each(at_hand.attempts.write, visited, lambda one: one.target.url)

            found = store.repair_ahead(clock.now(), lease_time=settings.pace.lease_time)
            if found:
                at_hand.events.event("store", "found ahead of the clock", level="warn", details=asdict(found))
                on_ahead(found)
            judging = Judging(store, settings.judging, at_hand.events, at_hand.pool)
            if fits is None:
                warm_up(settings.judging.standards)
            else:
                await in_thread(partial(warm_up, settings.judging.standards))
            steered = steering(at_hand.events, judging, found.misdated)
            cap = await cap_of(store, settings.max_pages_per_host)
            files = FileFetcher(clock, settings.folders, settings.limits.body, in_thread)
            access = Access(elsewhere={"file": files}, pool=at_hand.pool)
            driver = Driver(
                worker,
                clock=clock,
                store=store,
                agenda=agenda,
                politeness=politeness,
                visitor=Visitor(at_hand.fetcher, at_hand.robots, clock, at_hand.doors, access, judging, at_hand.pool),
                recorder=Recorder(worker, store, agenda, scope, at_hand.archive, judging, cap),
                pace=replace(settings.pace, longest_visit=max(settings.pace.longest_visit, 8 * settings.limits.total)),
                log=at_hand.events,
                steering=steered,
                tidy=lambda now: give_back(store, folder, now, settings.politeness.shortest),
                on_visits=acknowledged,
                aside=aside,
                fits=fits,
            )
            if steered is not None:
                log, archive = at_hand.events, at_hand.archive
                taker = PulseTaker(driver.load, clock, store, agenda, politeness, steered, log, archive)
                taker.masked = lambda: judging.masked
                watch(taker)
            real = isinstance(clock, RealClock) and steered is not None
            with leases_kept(driver.keep_leases) if real else nullcontext(), long_running():
                yield driver


def _aside(settings: CrawlSettings) -> AbstractContextManager[Executor | None]:
    """A thread that waits for the disk, where anybody does."""
    return ThreadPoolExecutor(1, "acknowledging") if settings.durable else nullcontext()


async def cap_of(store: Store, most: int) -> HostCap:
    """How many more pages of each host are taken in. O(pages), in steps between which others have their turn."""
    hosts = store.hosts()
    counts = np.zeros(len(hosts.id), np.int64)
    for pages in page_chunks(store):
        np.add.at(counts, np.searchsorted(hosts.id, pages.host[pages.importance > 0]), 1)
        await asyncio.sleep(0)
    return HostCap(most, {hosts.name[row]: int(counts[row]) for row in np.flatnonzero(counts).tolist()})
