"""Metrics of a run for Prometheus: what was done, counted as it is acknowledged, and how it goes at each pulse."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from recrawl.crawl.pulse import Pulse
from recrawl.crawl.target import Visited
from recrawl.errors import ConfigError, require

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Bounds of the histogram of durations."""
GAUGES = {
    "due_pages": "Pages of the store that are due, those of paused hosts included.",
    "held_pages": "Pages that are due on paused hosts.",
    "late_seconds": "Since when the page that waits longest is due.",
    "requests_underway": "Requests for pages that run.",
    "leased_pages": "Pages in the hands of this worker that are not asked for yet.",
    "hosts_resting": "Hosts that this worker may not ask at this moment.",
    "workers": "Workers that share the store.",
    "budget_visits_per_second": "Visits that all workers may make together.",
    "budget_left_visits": "Visits that the budget allows this worker at this moment.",
    "price": "What a visit must be worth, in the unit of the objective; absent for policies without prices.",
    "paused": "1 while the crawl is paused.",
}
"""Values of the moment, by name; each begins with ``recrawl_``."""
COUNTERS = {
    "archive_bytes": "Bytes written to archive files.",
    "fits": "Fits of the policy to the budget.",
}
"""Totals since the run began that the pulse tells; the names get ``recrawl_`` and ``_total``."""


class Metrics:
    """The metrics of one run, in a registry of their own."""

    def __init__(self) -> None:
        prometheus = require("prometheus_client", "crawl")
        self.registry: CollectorRegistry = prometheus.CollectorRegistry()
        self._core = require("prometheus_client.core", "crawl")
        self._visits = prometheus.Counter(
            "recrawl_visits", "Visits acknowledged.", ("outcome", "verdict"), registry=self.registry
        )
        self._bytes = prometheus.Counter("recrawl_received_bytes", "Bytes of bodies received.", registry=self.registry)
        self._seconds = prometheus.Histogram(
            "recrawl_visit_duration_seconds", "How long visits took.", buckets=_SECONDS, registry=self.registry
        )
        self._pulse: Pulse | None = None
        self.registry.register(self)

    def add(self, visited: Sequence[Visited]) -> None:
        """Count visits."""
        for one in visited:
            visit = one.visit
            self._visits.labels(visit.outcome.name.lower(), visit.verdict.name.lower()).inc()
            self._bytes.inc(max(visit.size, 0))
            self._seconds.observe(visit.cost)

    def show(self, pulse: Pulse) -> None:
        """What to tell until the next pulse."""
        self._pulse = pulse

    def collect(self) -> Iterator[Metric]:
        """The last pulse, as Prometheus asks for it; nothing before the first. Called from another thread."""
        pulse = self._pulse
        if pulse is None:
            return
        values = {
            "due_pages": pulse.due,
            "held_pages": pulse.held,
            "late_seconds": pulse.late,
            "requests_underway": pulse.underway,
            "leased_pages": pulse.in_hand,
            "hosts_resting": pulse.hosts_resting,
            "workers": pulse.workers,
            "budget_visits_per_second": pulse.budget,
            "budget_left_visits": math.inf if pulse.left is None else pulse.left,
            "price": pulse.price,
            "paused": float(pulse.paused),
        }
        for name, meaning in GAUGES.items():
            value = values[name]
            if value is not None:
                yield self._core.GaugeMetricFamily(f"recrawl_{name}", meaning, value=value)
        for name, value in {"archive_bytes": pulse.archived, "fits": pulse.fits}.items():
            yield self._core.CounterMetricFamily(f"recrawl_{name}", COUNTERS[name], value=value)
        events = self._core.CounterMetricFamily("recrawl_events", "Events logged, or left out.", labels=("level",))
        for level, count in pulse.events.items():
            events.add_metric((level,), count)
        yield events


@contextmanager
def served(metrics: Metrics, address: str) -> Iterator[str]:
    """Serve metrics at ``host:port`` within the block; yields the URL. Port 0 takes any that is free.

    Raises:
        ConfigError: it is no address, or it cannot be listened at.
    """
    host, colon, port = address.rpartition(":")
    if not (port.isdecimal() and int(port) < 1 << 16):
        raise ConfigError(
            f"crawl.metrics: {address!r} is no address with a port.", "Write for example 127.0.0.1:9090, or 9090."
        )
    host = host.strip("[]") if colon else "127.0.0.1"
    prometheus = require("prometheus_client", "crawl")
    try:
        server, thread = prometheus.start_http_server(int(port), host, registry=metrics.registry)
    except (OSError, UnicodeError) as error:  # the latter of a name that cannot be one
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(
            f"crawl.metrics: nothing can be served at {address}: {why}.",
            "Another run may be there already: choose another port, or 0 for any that is free.",
        ) from error
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
