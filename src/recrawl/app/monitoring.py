"""Monitoring of ``recrawl run``: metrics and health checks, from before the store is opened to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.control.metrics import Metrics, StatsCollector
    from recrawl.crawl.visit.visit_machine import VisitDone
    from recrawl.crawl.worker.crawl_worker import CrawlWorker


PROBE_PATIENCE = 10.0
"""Timeout of the health check for the store, in seconds."""


class Monitoring:
    """Context manager: serves the metrics of one worker if ``crawl.metrics`` has an address."""

    def __init__(self, place: Workspace, worker: str, clock: RealClock, say: Callable[[str], None]) -> None:
        self._say = say
        self._place = place
        self._worker = worker
        self._clock = clock
        self._metrics: Metrics | None = None
        self._takers: list[StatsCollector] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        from recrawl.crawl.control.health import HealthMonitor
        from recrawl.crawl.control.metrics import Metrics, served
        from recrawl.store.open import open_store

        address, location = self._place.configuration.settings.crawl.metrics, self._place.store
        if not address:
            return self
        with self._open as opening:
            health = HealthMonitor(
                self._worker, self._place.folder, lambda: open_store(location, patience=PROBE_PATIENCE), self._clock.now
            )
            self._metrics = Metrics(health)
            self._say(f"Metrics at {opening.enter_context(served(self._metrics, address))}")
            opening.callback(health.end)
            health.begin()
            opening.callback(asyncio.get_running_loop().create_task(self._beat(self._metrics)).cancel)
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()

    async def _beat(self, metrics: Metrics) -> None:
        from recrawl.crawl.control.health import BEAT_EVERY

        while True:
            metrics.health.beat()
            if self._takers:
                metrics.show(self._takers[0].take(count=False))
            await asyncio.sleep(BEAT_EVERY)

    def starting(self) -> None:
        """Report that the crawl starts or restarts."""
        self._takers.clear()
        if self._metrics is not None:
            self._metrics.starting()

    def ready(self, driver: CrawlWorker, taker: StatsCollector) -> None:
        """Report that the crawl is about to make its first visit."""
        if self._metrics is not None:
            self._takers.append(taker)
            self._metrics.health.ready(lambda: driver.waits_for)

    def visited(self, visited: Sequence[VisitDone]) -> None:
        """Report acknowledged visits."""
        if self._metrics is not None:
            self._metrics.add(visited)
