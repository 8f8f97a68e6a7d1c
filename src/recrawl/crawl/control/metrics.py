"""Figures of a running crawl: statistics for displays, and metrics for Prometheus with health checks.

A thread serves the metrics. Counters count what this worker did. Gauges are of three kinds: of this worker, of its
health, and of the whole store. One worker reports the last kind for all, so that sums over workers are right
(:mod:`recrawl.crawl.control.health`). A gauge whose value is out of date is left out.
"""

from __future__ import annotations

import json
import math
import platform
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from recrawl import __version__
from recrawl.crawl.control.health import HealthMonitor
from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.control.run_control import StoreRunControl, WorkerLoad
from recrawl.crawl.units.unit_registry import UnitState, own_buckets
from recrawl.crawl.visit.visit_machine import VisitDone
from recrawl.crawl.visit.warc_archive import ResponseArchive
from recrawl.errors import ConfigError, StoreError, require
from recrawl.model.visits import REFUSED_BY_ROBOTS
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.politeness.host_politeness import Politeness
from recrawl.store.base import Store
from recrawl.store.store_values import DueBacklog
from recrawl.time import Clock

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

_COUNT_EVERY, _SHARE_OF_TIME = 0.5, 0.02
"""Minimum seconds between two counts of due pages; share of the time that counting may take."""


@dataclass(frozen=True, slots=True)
class CrawlStats:
    """Statistics of a crawl at a moment."""

    now: float
    underway: int
    """Running requests for pages."""
    in_hand: int
    """Pages leased and not requested yet."""
    due: int
    """Pages of the whole store that are due, paused hosts included."""
    held: int
    """Due pages on paused hosts."""
    late: float
    """Seconds since the first of them was due."""
    next_due: float
    """When the next page can be visited, seconds since the epoch; infinity for never."""
    hosts_resting: int
    """Hosts that may not be requested at this moment."""
    workers: int
    """Workers that share the store, this one included."""
    first: bool
    """Whether this worker started before all others."""
    budget: float
    """Visits per second."""
    left: float | None
    """Visits that the budget allows now; ``None`` if any number."""
    price: float | None
    paused: bool
    fits: int
    """Fits of the policy since the run started."""
    archived: int
    """Bytes written to archive files since the run started."""
    events: Mapping[str, int]
    """Events logged since the run started, by level."""
    resting: int = 0
    """Due pages on hosts that may not be requested yet."""
    buckets: int = 0
    """Buckets of hosts that this worker owns."""
    bucket_moves: int = 0
    """Buckets that this worker claimed or handed over since the run started."""
    masked: int = 0
    """Parts of pages that are masked as noise, on the hosts in this worker's memory."""
    not_uploaded: tuple[int, int] = (0, 0)
    """Closed WARC files that are not in object storage yet: number and bytes."""


@dataclass(slots=True)
class StatsCollector:
    """Collects the statistics of a worker. Due pages are counted now and then, the rest is read at once."""

    load: Callable[[], WorkerLoad]
    clock: Clock
    store: Store
    scheduler: RevisitScheduler
    politeness: Politeness
    run_control: StoreRunControl
    log: JsonLinesLog
    archive: ResponseArchive
    masked: Callable[[], int] = lambda: 0
    waiting: Callable[[], tuple[int, int]] = lambda: (0, 0)
    """Closed WARC files that are not uploaded: number and bytes."""
    _backlog: DueBacklog = field(default_factory=lambda: DueBacklog(0, 0, math.inf))
    _next_due: float = math.inf
    _count_at: float = -math.inf

    def take(self, *, restart: bool = False, count: bool = True) -> CrawlStats:
        """The statistics now; with ``restart`` due pages are counted again, however long that takes.

        Without ``count`` the store is not queried, and the last count of due pages is returned.
        """
        now, run_control = self.clock.now(), self.run_control
        if restart or (count and now >= self._count_at):
            with suppress(StoreError):  # the worker knows, and waits; the last count stands
                self._backlog, self._next_due = self.store.backlog(now), self.store.next_due()
            took = self.clock.now() - now
            self._count_at = now + max(_COUNT_EVERY, took / _SHARE_OF_TIME)
        load, backlog = self.load(), self._backlog
        free_at, _ = self.politeness.columns
        return CrawlStats(
            now=now,
            underway=load.underway,
            in_hand=load.in_hand,
            due=backlog.due,
            held=backlog.paused,
            resting=backlog.resting,
            late=max(now - backlog.earliest, 0.0) if backlog.due else 0.0,
            next_due=self._next_due,
            hosts_resting=int((free_at > now).sum()),
            workers=run_control.workers,
            first=run_control.is_first,
            budget=run_control.budget,
            left=run_control.left(now),
            price=self.scheduler.policy.price,
            paused=run_control.paused,
            fits=self.scheduler.fits,
            archived=self.archive.written,
            masked=self.masked(),
            not_uploaded=self.waiting(),
            buckets=run_control.buckets.owned,
            bucket_moves=run_control.buckets.claimed + run_control.buckets.handed_over,
            events={str(level): count for level, count in self.log.counts.items()},
        )


_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Bounds of the histogram of durations, in seconds."""
WORKER_GAUGES = {
    "requests_underway": "Requests for pages that run.",
    "leased_pages": "Pages leased by this worker that are not asked for yet.",
    "buckets": "Buckets of hosts that this worker owns, of 1,024.",
    "hosts_resting": "Hosts that this worker may not ask at this moment.",
    "not_uploaded_files": "Closed WARC files of this workspace that are not in object storage yet.",
    "not_uploaded_bytes": "Their bytes.",
    "budget_left_visits": "Visits that the budget allows this worker at this moment.",
    "masked_parts": "Parts of pages that are masked as learned noise, on the hosts that this worker has loaded.",
    "price": "What a visit must be worth, in the unit of the objective; absent for policies without prices.",
}
"""Of this worker at this moment, by name without ``recrawl_``. Absent if the event loop is blocked."""
HEALTH_GAUGES = {
    "store_up": "1 if this worker can reach the store, else 0.",
    "last_visit_timestamp_seconds": "When a visit of this worker was last acknowledged, seconds since the epoch.",
    "disk_free_bytes": "Bytes of room on the disk with the workspace.",
    "loop_lag_seconds": "Seconds by which the event loop is late at this moment.",
}
"""Of this worker's health, by name without ``recrawl_``."""
STORE_GAUGES = {
    "due_pages": "Pages of the store that are due, those of paused hosts included.",
    "held_pages": "Pages that are due on paused hosts.",
    "late_seconds": "Since when the page that waits longest is due.",
    "workers": "Workers that share the store.",
    "budget_visits_per_second": "Visits that all workers may make together.",
    "paused": "1 while the crawl is paused.",
}
"""Of the whole store, by name without ``recrawl_``. The worker that started first reports them, if known."""
UNIT_GAUGES = {
    "unit_buckets": "Buckets of hosts that belong to this unit, of 1,024.",
    "unit_outbox_pages": "Pages in the store of this unit that wait to be sent to other units.",
    "coordination_up": "1 if this unit can reach the coordination database, else 0.",
    "coordination_timestamp_seconds": "When it was last reached, seconds since the epoch.",
}
"""Of the unit that the store is, by name without ``recrawl_``. Absent if there are no other units."""
COUNTERS = {
    "archive_bytes": "Bytes written to archive files.",
    "bucket_moves": "Buckets of hosts that this worker claimed or handed over.",
    "fits": "Fits of the policy to the budget.",
}
"""Totals since the run started; the names get ``recrawl_`` and ``_total``."""
_ANSWERS = range(100, 600)
"""HTTP statuses; other numbers say why there was no response (conventions L3)."""


class Metrics:
    """The metrics of one run, in their own registry."""

    def __init__(self, health: HealthMonitor) -> None:
        prometheus = require("prometheus_client", "crawl")
        self.health = health
        self.registry: CollectorRegistry = prometheus.CollectorRegistry()
        self._core = require("prometheus_client.core", "crawl")
        self._visits = prometheus.Counter(
            "recrawl_visits", "Visits acknowledged.", ("outcome", "verdict"), registry=self.registry
        )
        self._responses = prometheus.Counter(
            "recrawl_responses", "Answers of servers to visits, by class of status.", ("class",), registry=self.registry
        )
        self._robots = prometheus.Counter(
            "recrawl_robots_refusals", "Visits not made because robots.txt forbids them.", registry=self.registry
        )
        self._bytes = prometheus.Counter("recrawl_received_bytes", "Bytes of bodies received.", registry=self.registry)
        self._seconds = prometheus.Histogram(
            "recrawl_visit_duration_seconds", "How long visits took.", buckets=_SECONDS, registry=self.registry
        )
        build = prometheus.Info("recrawl_build", "What runs here.", registry=self.registry)
        build.info({"version": __version__, "python": platform.python_version(), "worker": health.worker})
        prometheus.ProcessCollector(registry=self.registry)
        for number in range(1, 6):
            self._responses.labels(f"{number}xx")
        self._stats: tuple[float, CrawlStats] | None = None
        self.registry.register(self)

    def add(self, visited: Sequence[VisitDone]) -> None:
        """Count acknowledged visits."""
        self.health.acknowledged()
        for one in visited:
            visit = one.visit
            self._visits.labels(visit.outcome.name.lower(), visit.verdict.name.lower()).inc()
            if visit.status in _ANSWERS:
                self._responses.labels(f"{visit.status // 100}xx").inc()
            elif visit.status == REFUSED_BY_ROBOTS:
                self._robots.inc()
            self._bytes.inc(max(visit.size, 0))
            self._seconds.observe(visit.cost)

    def starting(self) -> None:
        """Record that the crawl starts, or restarts: the last statistics are out of date."""
        self._stats = None
        self.health.starting()

    def show(self, stats: CrawlStats) -> None:
        """Set the statistics that are reported until the next call."""
        self._stats = self.health.time(), stats
        self.health.reports_for_all = stats.first
        self.health.may_begin = not stats.paused and (stats.left is None or stats.left >= 1)
        self.health.is_busy = stats.underway > 0

    def collect(self) -> Iterator[Metric]:
        """The current values, as Prometheus collects them. Called from other threads; waits for nothing."""
        for name, value in self._health().items():
            yield self._gauge(name, HEALTH_GAUGES[name], value)
        if self._stats is None:
            return
        at, stats = self._stats
        if not self.health.is_stale(at):
            yield from self._of_worker(stats)
            yield from self._of_store(stats)
        totals = {"archive_bytes": stats.archived, "bucket_moves": stats.bucket_moves, "fits": stats.fits}
        for name, count in totals.items():
            yield self._core.CounterMetricFamily(f"recrawl_{name}", COUNTERS[name], value=count)
        events = self._core.CounterMetricFamily("recrawl_events", "Events logged, or left out.", labels=("level",))
        for level, count in stats.events.items():
            events.add_metric((level,), count)
        yield events

    def _health(self) -> dict[str, float]:
        found = self.health.found
        told = {"store_up": float(not self.health.store_error()), "loop_lag_seconds": self.health.loop_lag()}
        if self.health.last_visit is not None:
            told["last_visit_timestamp_seconds"] = self.health.last_visit
        if found is not None and found.disk_free is not None:
            told["disk_free_bytes"] = float(found.disk_free)
        return told

    def _of_worker(self, stats: CrawlStats) -> Iterator[Metric]:
        values = {
            "requests_underway": stats.underway,
            "leased_pages": stats.in_hand,
            "buckets": stats.buckets,
            "hosts_resting": stats.hosts_resting,
            "masked_parts": stats.masked,
            "not_uploaded_files": stats.not_uploaded[0],
            "not_uploaded_bytes": stats.not_uploaded[1],
            "budget_left_visits": math.inf if stats.left is None else stats.left,
            "price": stats.price,
        }
        for name, value in values.items():
            if value is not None:
                yield self._gauge(name, WORKER_GAUGES[name], value)

    def _of_store(self, stats: CrawlStats) -> Iterator[Metric]:
        found = self.health.found
        if found is None or found.figures is None or not stats.first:
            return
        figures = found.figures
        values = {
            "due_pages": figures.due,
            "held_pages": figures.held,
            "late_seconds": figures.late,
            "workers": stats.workers,
            "budget_visits_per_second": stats.budget,
            "paused": float(figures.paused),
        }
        for name, value in values.items():
            yield self._gauge(name, STORE_GAUGES[name], value)
        if figures.unit is not None:
            yield from self._of_unit(figures.unit)

    def _of_unit(self, unit: UnitState) -> Iterator[Metric]:
        values = {
            "unit_buckets": int(own_buckets(unit).sum()),
            "unit_outbox_pages": unit.outbox,
            "coordination_up": float(not unit.error),
            "coordination_timestamp_seconds": unit.at,
        }
        for name, value in values.items():
            yield self._gauge(name, UNIT_GAUGES[name], value)

    def _gauge(self, name: str, meaning: str, value: float) -> Metric:
        family: Metric = self._core.GaugeMetricFamily(f"recrawl_{name}", meaning, value=value)
        return family


@contextmanager
def served(metrics: Metrics, address: str) -> Iterator[str]:
    """Serve ``/metrics``, ``/healthz`` and ``/readyz`` at ``host:port`` while the block runs; yields the first URL.

    Port 0 takes any free one.

    Raises:
        ConfigError: it is no address, or the port cannot be bound.
    """
    host, colon, port = address.rpartition(":")
    if not (port.isdecimal() and int(port) < 1 << 16):
        raise ConfigError(
            f"crawl.metrics: {address!r} is no address with a port.", "Write for example 127.0.0.1:9090, or 9090."
        )
    host = host.strip("[]") if colon else "127.0.0.1"
    try:
        server = MetricsServer(host, int(port), metrics)
    except (OSError, UnicodeError) as error:  # the latter for an invalid host name
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(
            f"crawl.metrics: nothing can be served at {address}: {why}.",
            "Another run may be there already: choose another port, or 0 for any that is free.",
        ) from error
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True, name="recrawl-metrics")
    thread.start()
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class MetricsServer(ThreadingHTTPServer):
    """Answers each request in a thread. If there are too many at once, the oldest, which are slow, are dropped."""

    daemon_threads = True
    block_on_close = False  # slow clients do not delay the end of a run
    request_queue_size = 128
    most_at_once = 32

    def __init__(self, host: str, port: int, metrics: Metrics) -> None:
        self.metrics = metrics
        self._open: OrderedDict[socket.socket, None] = OrderedDict()
        self._lock = threading.Lock()
        [(family, _, _, _, place), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        self.address_family = family
        super().__init__((str(place[0]), int(place[1])), _Handler)

    def server_bind(self) -> None:
        """Listen without a reverse DNS look-up of this machine, which can take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as its parent has it
        """Start a request, and drop the oldest if there are too many."""
        with self._lock:
            self._open[request] = None
            late = [self._open.popitem(last=False)[0] for _ in range(len(self._open) - self.most_at_once)]
        for one in late:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - as its parent has it
        """End a request."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as its parent has it
        """Ignore it: a client that disconnects is not worth a message."""


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    timeout = 10.0
    server_version, sys_version = "recrawl", ""

    def do_GET(self) -> None:
        """Answer a scrape or a health check."""
        metrics = self.server.metrics
        match self.path.partition("?")[0]:
            case "/metrics":
                exposition = require("prometheus_client.exposition", "crawl")
                encode, kind = exposition.choose_encoder(self.headers.get("accept", ""))
                self._say(200, kind, encode(metrics.registry))
            case "/healthz":
                answer = metrics.health.liveness()
                self._say(answer.status, "application/json", json.dumps(answer.facts).encode())
            case "/readyz":
                answer = metrics.health.readiness()
                self._say(answer.status, "application/json", json.dumps(answer.facts).encode())
            case _:
                self._say(404, "text/plain", b"There are /metrics, /healthz and /readyz.\n")

    def do_HEAD(self) -> None:
        """The same without the body."""
        self.do_GET()

    def _say(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its parent has it
        """Log nothing: scrapes are not events."""
