"""What ``recrawl run`` tells who watches it: metrics and health checks, from before the store is opened to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

import typer

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.driver import Driver
    from recrawl.crawl.metrics import Metrics
    from recrawl.crawl.pulse import PulseTaker
    from recrawl.crawl.target import Visited

PROBE_PATIENCE = 10.0
"""Seconds after which the health check gives a question to the store up."""


class Monitoring:
    """Serves the metrics of one worker within ``with``, if ``crawl.metrics`` has an address for them; else nothing."""

    def __init__(self, place: Workspace, worker: str, clock: RealClock) -> None:
        self._place = place
        self._worker = worker
        self._clock = clock
        self._metrics: Metrics | None = None
        self._takers: list[PulseTaker] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        from recrawl.crawl.health import Health
        from recrawl.crawl.metrics import Metrics, served
        from recrawl.store.open import open_store

        address, location = self._place.configuration.settings.crawl.metrics, self._place.store
        if not address:
            return self
        with self._open as opening:
            health = Health(
                self._worker, self._place.folder, lambda: open_store(location, patience=PROBE_PATIENCE), self._clock.now
            )
            self._metrics = Metrics(health)
            typer.echo(f"Metrics at {opening.enter_context(served(self._metrics, address))}", err=True)
            opening.callback(health.end)
            health.begin()
            opening.callback(asyncio.get_running_loop().create_task(self._beat(self._metrics)).cancel)
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()

    async def _beat(self, metrics: Metrics) -> None:
        from recrawl.crawl.health import BEAT_EVERY

        while True:
            metrics.health.beat()
            if self._takers:
                metrics.show(self._takers[0].take(count=False))
            await asyncio.sleep(BEAT_EVERY)

    def starting(self) -> None:
        """The crawl starts, or starts again."""
        self._takers.clear()
        if self._metrics is not None:
            self._metrics.starting()

    def ready(self, driver: Driver, taker: PulseTaker) -> None:
        """The crawl is about to make its first visit."""
        if self._metrics is not None:
            self._takers.append(taker)
            self._metrics.health.ready(lambda: driver.waits_for)

    def visited(self, visited: Sequence[Visited]) -> None:
        """Visits were acknowledged."""
        if self._metrics is not None:
            self._metrics.add(visited)
