"""Assembles the parts of a crawl. Virtual-time demos and real crawls use the same assembly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from recrawl.crawl.clock import RealClock
from recrawl.crawl.control.bucket_owner import BucketOwner
from recrawl.crawl.control.heritrix_log import HeritrixLog
from recrawl.crawl.control.json_log import JsonLinesLog, Level, LogFile
from recrawl.crawl.control.metrics import StatsCollector
from recrawl.crawl.control.price_exchange import PriceExchange
from recrawl.crawl.control.run_control import StoreRunControl
from recrawl.crawl.control.runtime_limits import LimitsWatcher, RuntimeLimits, SharedBudget
from recrawl.crawl.control.worker_registry import WorkerRegistry, worker_lock
from recrawl.crawl.visit.change_classifier import ChangeClassifier, ClassifierRules
from recrawl.crawl.visit.fault_isolation import FaultReporter
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.scope import CrawlScope, HostCap
from recrawl.crawl.visit.visit_machine import VisitDone
from recrawl.crawl.visit.visitor import AccessRunner, Visitor
from recrawl.crawl.visit.warc_archive import WarcArchive, pack_ahead
from recrawl.crawl.worker.crawl_worker import CrawlWorker, WorkerPace
from recrawl.crawl.worker.event_loop import in_thread
from recrawl.crawl.worker.fit_process import FitRecipe
from recrawl.crawl.worker.gc_tuning import long_running
from recrawl.crawl.worker.lease_pool import leases_kept
from recrawl.crawl.worker.outages import acknowledged_by, release_dead_workers
from recrawl.detect import decoded
from recrawl.fetch.access.access_methods import FileFetcher
from recrawl.fetch.http.bytes_in_flight import BytesInFlight
from recrawl.fetch.http.dns import AddressPolicy, HostResolver, IpGate
from recrawl.fetch.http.http_fetcher import FetchTerms, OpenFetcher, TransferLimits, http_fetcher
from recrawl.fetch.request import Fetcher
from recrawl.fetch.robots_cache import RobotsCache
from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
from recrawl.formats.warc.warc_writer import ROLL_SIZE, WarcInfo, WarcWriter
from recrawl.parse.parse_pool import ParseLimits, ParsePool, new_parse_pool, warm_up
from recrawl.schedule.frontier.revisit_scheduler import NewPageQueue, RevisitScheduler
from recrawl.schedule.policy import Policy
from recrawl.schedule.politeness.host_politeness import IpLimiter, IpLimits, Politeness, PolitenessRules
from recrawl.schedule.politeness.retry import Retry
from recrawl.store.base import Store
from recrawl.store.recording import AheadOfClock
from recrawl.time import Clock, VirtualClock

LOG, CRAWL_LOG = "recrawl.log", "crawl.log"
"""Log files in a workspace: events as JSON lines, and fetch attempts in the format of Heritrix."""
_LONGEST_RULES = 8 * 1024 * 1024
"""Bytes of a decompressed robots.txt; far more than is parsed of it."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Limits, politeness and identity of a worker."""

    budget: float
    """Visits per second."""
    user_agent: str
    fetcher: OpenFetcher = http_fetcher
    """Opens what pages, robots.txt and sitemaps are fetched with."""
    limits: TransferLimits = field(default_factory=TransferLimits)
    http2: bool = True
    """Whether to use HTTP/2 with hosts that offer it."""
    in_flight: int = 160 * 1024 * 1024
    """Bytes of memory for all responses that are received and not yet recorded. Large responses wait beyond that."""
    politeness: PolitenessRules = field(default_factory=PolitenessRules)
    retry: Retry = field(default_factory=Retry)
    """When to retry pages whose visits failed."""
    turns: IpLimits | None = None
    """How hosts at one IP address share it; without it they are independent."""
    max_pages_per_host: int = 100_000
    """Maximum pages of a host that discovery may add."""
    archive: WarcInfo = field(default_factory=WarcInfo)
    roll_size: int = ROLL_SIZE
    """Bytes after which an archive file is closed and the next one is opened."""
    durable: bool = True
    """Whether archive files are synced to disk before a visit is acknowledged, so that both survive a power cut."""
    log_level: Level = "debug"
    """Events below this level are not logged."""
    log_size: int = 0
    """Bytes after which a log is rotated; 0 for never."""
    pace: WorkerPace = field(default_factory=WorkerPace)
    classifier: ClassifierRules = field(default_factory=ClassifierRules)
    reach: AddressPolicy | None = None
    """Addresses that may be connected to; without it all may."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """``host:port`` to IP address, instead of a DNS look-up."""
    folders: tuple[Path, ...] = ()
    """Folders from which ``file:`` pages may be read."""
    parsing: ParseLimits | None = None
    """Limits for parsing in subprocesses; without it everything is parsed in this process without limits."""


@dataclass(frozen=True, slots=True)
class CrawlParts:
    """The parts that every crawl uses, continuous or of one site."""

    fetcher: Fetcher
    in_flight: BytesInFlight
    ip_gate: IpGate | None
    robots: RobotsCache
    archive: WarcArchive
    events: JsonLinesLog
    attempts: HeritrixLog
    pool: ParsePool | None
    """Parses content that is expensive to parse."""


@asynccontextmanager
async def crawl_parts(
    clock: Clock, store: Store, folder: Path, settings: WorkerSettings, worker: str = ""
) -> AsyncIterator[CrawlParts]:
    """The parts for a workspace, closed at the end. ``folder`` receives the archive files (``warc/``) and both logs.

    ``worker`` is the name under which events are logged.
    """
    with (
        WarcWriter(
            folder / "warc",
            clock,
            replace(settings.archive, visits=True),
            roll_size=settings.roll_size,
            durable=settings.durable,
            keeper=acknowledged_by(store),
        ) as writer,
        LogFile(folder / LOG, clock, most=settings.log_size) as events,
        LogFile(folder / CRAWL_LOG, clock, most=settings.log_size) as attempts_file,
        parse_pool(settings, clock) as pool,
    ):
        in_flight = BytesInFlight(settings.in_flight, settings.limits.body)
        async with (
            HostResolver(clock, reach=settings.reach, pins=settings.pins, patience=settings.limits.connect) as names,
            settings.fetcher(
                FetchTerms(
                    clock,
                    settings.user_agent,
                    limits=settings.limits,
                    reach=settings.reach,
                    names=names,
                    http2=settings.http2,
                    in_flight=in_flight,
                )
            ) as fetcher,
        ):
            attempts = HeritrixLog(attempts_file)
            archived = ArchivedBytes(folder / "warc", imported_into(store))
            archive = WarcArchive(writer, store, attempts.write_auxiliary, archived.read)
            log = JsonLinesLog(events, clock, level=settings.log_level, worker=worker)
            faults = FaultReporter(log)
            robots = RobotsCache(
                fetcher,
                clock,
                settings.user_agent,
                body_of=partial(decoded, limit=_LONGEST_RULES),
                in_thread=None if isinstance(clock, VirtualClock) else in_thread,
                on_capture=partial(archive.write_auxiliary, hops="P"),
                ahead=lambda capture: pack_ahead(archive, capture, clock, faults),
                copies=store,
                max_delay=settings.politeness.crawl_delay_cap,
                pause=settings.politeness.shortest,
            )
            ip_gate = None if settings.turns is None else IpGate(names, IpLimiter(settings.turns), clock)
            yield CrawlParts(fetcher, in_flight, ip_gate, robots, archive, log, attempts, pool)


def parse_pool(settings: WorkerSettings, clock: Clock) -> AbstractContextManager[ParsePool | None]:
    """The parse pool, if the settings ask for one. Its processes start when they are needed.

    There is no pool on virtual time: such a run must be repeatable however slow the machine is.
    """
    if settings.parsing is None or isinstance(clock, VirtualClock):
        return nullcontext()
    return new_parse_pool(settings.parsing, settings.classifier.standards)


@asynccontextmanager
async def live_crawl(  # noqa: PLR0913 - what takes part
    worker: str,
    policy: Policy,
    *,
    clock: Clock,
    store: Store,
    folder: Path,
    scope: CrawlScope,
    settings: WorkerSettings,
    orders: Callable[[Mapping[str, str]], RuntimeLimits] | None = None,
    fits: FitRecipe | None = None,
    on_visits: Callable[[Sequence[VisitDone]], None] = lambda _visited: None,
    watch: Callable[[StatsCollector], None] = lambda _taker: None,
    on_ahead: Callable[[AheadOfClock], None] = lambda _found: None,
    on_report: Callable[[], object] = lambda: None,
    in_unit: bool = False,
) -> AsyncIterator[CrawlWorker]:
    """A worker that is ready to run; ``folder`` as for :func:`crawl_parts`.

    With ``orders``, which turns limits by settings key into runtime limits, the worker follows the controls in the
    store and shares the budget with other workers; ``watch`` receives its statistics and ``on_report`` is called every
    few seconds. Without ``orders`` the worker follows its own settings and keeps the budget on average.

    With ``in_unit`` the store is one of several units, and the worker visits only the hosts of its own one
    (``crawl.units``).

    With ``fits``, a subprocess fits the policy with parts made by that recipe, and slow steps before the start run
    outside the event loop: use it on real time. Without, everything runs in the event loop.

    ``on_visits`` receives visits once they are acknowledged. Everything is closed at the end, also after an error.
    Before the start, leases of workers that died in this folder are returned, and records dated after the clock are
    repaired: ``on_ahead`` receives a report of them.
    """
    first = orders({}) if orders else None
    new_page_queue = NewPageQueue(first.discovery_share, first.burst) if first else None
    scheduler = RevisitScheduler(policy, budget=settings.budget, retry=settings.retry, new_page_queue=new_page_queue)
    politeness = Politeness(settings.politeness)

    def run_control(
        log: JsonLinesLog, classifier: ChangeClassifier, misdated: int, pool: ParsePool | None
    ) -> StoreRunControl | None:
        if orders is None or first is None:
            return None
        return StoreRunControl(
            worker,
            first,
            controls=LimitsWatcher(store, orders),
            budget=SharedBudget(store, clock, misdated),
            registry=WorkerRegistry(store, worker, clock.elapsed),
            buckets=BucketOwner(store, worker),
            hosts=store,
            scheduler=scheduler,
            politeness=politeness,
            classifier=classifier,
            log=log,
            on_report=on_report,
            exchange=PriceExchange(store, worker),
            parsed=(lambda: pool.seconds) if pool is not None else lambda: 0.0,
            in_unit=in_unit,
        )

    release_dead_workers(store, folder, clock.now(), settings.politeness.shortest)
    with worker_lock(folder, worker), _aside(settings) as aside:
        async with crawl_parts(clock, store, folder, settings, worker) as parts:
            faults = FaultReporter(parts.events)

            def acknowledged(visited: Sequence[VisitDone]) -> None:
                with faults.contained():
                    on_visits(visited)
                faults.each(parts.attempts.write, visited, lambda one: one.target.url)

            found = store.repair_ahead(clock.now(), lease_time=settings.pace.lease_time)
            if found:
                parts.events.event("store", "records dated after the clock", level="warn", details=asdict(found))
                on_ahead(found)
            classifier = ChangeClassifier(store, settings.classifier, parts.events, parts.pool)
            if fits is None:
                warm_up(settings.classifier.standards)
            else:
                await in_thread(partial(warm_up, settings.classifier.standards))
            steered = run_control(parts.events, classifier, found.misdated, parts.pool)
            cap = HostCap(settings.max_pages_per_host, store.host_size)
            files = FileFetcher(clock, settings.folders, settings.limits.body, in_thread)
            access = AccessRunner(elsewhere={"file": files}, pool=parts.pool)
            driver = CrawlWorker(
                worker,
                clock=clock,
                store=store,
                scheduler=scheduler,
                politeness=politeness,
                visitor=Visitor(parts.fetcher, parts.robots, clock, parts.ip_gate, access, classifier, parts.pool),
                recorder=Recorder(
                    worker,
                    store,
                    scheduler,
                    scope,
                    parts.archive,
                    classifier,
                    cap,
                    found.behind_until,
                    steered.owns_host if in_unit and steered is not None else None,
                ),
                pace=replace(settings.pace, longest_visit=max(settings.pace.longest_visit, 8 * settings.limits.total)),
                log=parts.events,
                run_control=steered,
                tidy=lambda now: release_dead_workers(store, folder, now, settings.politeness.shortest),
                on_visits=acknowledged,
                aside=aside,
                fits=fits,
                in_flight=parts.in_flight,
            )
            if steered is not None:
                log, archive = parts.events, parts.archive
                taker = StatsCollector(driver.load, clock, store, scheduler, politeness, steered, log, archive)
                taker.masked = lambda: classifier.masked
                watch(taker)
            real = isinstance(clock, RealClock) and steered is not None
            with leases_kept(driver.keep_leases) if real else nullcontext(), long_running():
                yield driver


def _aside(settings: WorkerSettings) -> AbstractContextManager[Executor | None]:
    """A thread that syncs archive files, where they are synced."""
    return ThreadPoolExecutor(1, "group_commit") if settings.durable else nullcontext()
