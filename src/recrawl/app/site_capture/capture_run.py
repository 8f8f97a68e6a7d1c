"""The capture of a site, as ``recrawl capture`` and the Python API make it, and the forecast of one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from recrawl.app.display import command_in
from recrawl.crawl.clock import RealClock
from recrawl.crawl.site_capture.capture_course import CaptureReport
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.site_capture.site_capture_driver import CaptureProgress, SiteCaptureDriver
from recrawl.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from recrawl.app.site_capture.capture_rates import BelievedRates
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.crawl.worker.crawl_assembly import WorkerSettings
    from recrawl.schedule.politeness.host_politeness import PolitenessRules
    from recrawl.store.base import Store
    from recrawl.store.store_values import SiteCapture
    from recrawl.time import Clock


Show = Callable[[CaptureProgress], None]
Stopping: TypeAlias = Callable[[Callable[[], None]], AbstractContextManager[object]]
"""Given the function that stops a capture, a block within which somebody may call it."""


async def carry_out(  # noqa: PLR0913 - what takes part, and who wants to know
    place: Workspace,
    store: Store,
    order: CaptureOrder,
    unfinished: SiteCapture | None,
    show: Show,
    *,
    stopping: Stopping = lambda _stop: nullcontext(),
    clock: Clock | None = None,
    settings: WorkerSettings | None = None,
) -> CaptureReport | None:
    """Start a capture, or continue an unfinished one; ``None`` if it was stopped.

    ``stopping`` is given a function that stops the capture: the running request may finish within a few
    seconds. A cancellation drops it at once. By default the clock is the real one and the settings are those of the
    workspace.
    """
    from recrawl.app.runs.crawl_run import FINISH_WITHIN, worker_name
    from recrawl.app.workspace.workspace_wiring import crawl_settings_of
    from recrawl.crawl.worker.crawl_assembly import crawl_parts
    from recrawl.crawl.worker.event_loop import InterruptibleSleep
    from recrawl.schedule.politeness.host_politeness import Politeness

    clock, settings = clock or RealClock(), settings or crawl_settings_of(place.configuration.settings)
    rules, turns = pauses_of(order, settings.politeness), settings.turns
    if turns is not None and order.delay is not None:
        turns = replace(turns, delay=min(turns.delay, order.delay))
    settings = replace(
        settings, politeness=rules, turns=turns, archive=replace(settings.archive, is_part_of=order.site)
    )
    started = unfinished.started if unfinished else clock.now()
    async with crawl_parts(clock, store, place.folder, settings, worker_name()) as at_hand:
        driver = SiteCaptureDriver(
            clock=clock,
            store=store,
            fetcher=at_hand.fetcher,
            robots=at_hand.robots,
            ip_gate=at_hand.ip_gate,
            classifier=settings.classifier,
            pool=at_hand.pool,
            politeness=Politeness(rules),
            archive=at_hand.archive,
            rates=rates_of(place, store, order, started),
            log=at_hand.events,
            on_visit=lambda visited: at_hand.attempts.write([visited]),
        )
        working: InterruptibleSleep[CaptureReport | None] = InterruptibleSleep()

        def stop() -> None:
            driver.stop()
            asyncio.get_running_loop().call_later(FINISH_WITHIN, working.end)

        async def work() -> CaptureReport | None:
            capture = unfinished or await driver.begin(order)
            return None if capture is None else await driver.run(capture, show)

        with stopping(stop):
            try:
                return await working.through(work())
            finally:
                driver.drop()


def rates_of(place: Workspace, store: Store, order: CaptureOrder, started: float) -> BelievedRates:
    """Change rates at the start of a capture, from earlier visits and the trained model."""
    from recrawl.app.predict.model_use import expected_changes, predicted_changes
    from recrawl.app.site_capture.capture_rates import BelievedRates

    predicted, compared = predicted_changes(place, store, started), expected_changes(place, store, started)
    return BelievedRates(store, started, order.rates, predicted, compared)


def pauses_of(order: CaptureOrder, rules: PolitenessRules) -> PolitenessRules:
    """The pauses of a capture: ``--delay`` replaces ``politeness.min_delay``."""
    if order.delay is None:
        return rules
    return replace(rules, shortest=order.delay, longest=max(rules.longest, order.delay))


def site_url(site: str | None) -> str:
    """The URL of the first page of a site, as it was written.

    Raises:
        ConfigError: there is none.
    """
    from recrawl.formats.seeds import parse_seed

    if site is None:
        raise ConfigError("There is no site to capture.", "Give the URL of its first page, or --resume.")
    return parse_seed(site, "").url


def unfinished_capture(unfinished: Sequence[SiteCapture], order: CaptureOrder, folder: Path) -> SiteCapture | None:
    """The unfinished capture with this order.

    Raises:
        ConfigError: there is one of the site with another order.
    """
    of_site = [known for known in unfinished if known.site == order.site]
    for known in reversed(of_site):
        if CaptureOrder.from_json(known.terms) == order:
            return known
    if of_site:
        raise ConfigError(
            f"Capture {of_site[-1].id} of {order.site} is not finished and has other options.",
            f"Continue it: {command_in(folder, 'capture --resume')}   or start another one: --restart.",
        )
    return None


@dataclass(frozen=True, slots=True)
class CaptureForecast:
    """A forecast for a capture of all known pages, assuming immediate responses and no failures."""

    pages: int
    requests: int
    delay: float
    """Seconds between requests."""
    coherent: float | None
    """Expected number of pages unchanged between visit and revisit; ``None`` without revisits."""
    blur: float
    """Expected changes per page between a requested time and the shown copy."""

    @property
    def seconds(self) -> float:
        """Seconds from the first request to the last."""
        return max(self.requests - 1, 0) * self.delay


def forecast(place: Workspace, store: Store, order: CaptureOrder, now: float) -> CaptureForecast:
    """Forecast a capture from the pages and rates in the workspace; O(pages) plus the cost of the strategy.

    Raises:
        InputError: no page of the site is known.
    """
    import numpy as np

    from recrawl.app.workspace.workspace_wiring import politeness_of
    from recrawl.assess.blur_coherence import average_blur, expected_coherence
    from recrawl.capture.strategy import LinkGraph, walk
    from recrawl.crawl.site_capture.capture_opening import known_pages
    from recrawl.crawl.visit.scope import SiteScope

    pages = known_pages(store, SiteScope(order.scope, (order.seed,)))[: order.max_pages]
    if not len(pages):
        raise InputError(f"No page of {order.site} is known yet.", "Capture it once, or import captures of it.")
    usual = politeness_of(place.configuration.settings.politeness)
    told = float(store.hosts(store.pages(pages[:1]).host).delay[0])
    delay = pauses_of(order, usual).pause(0.0, told if told > usual.shortest else None)
    rate = rates_of(place, store, order, now)(pages)
    no_links = LinkGraph(np.zeros(len(pages) + 1, np.int64), np.empty(0, np.int64))
    path = walk(order.new_strategy(delay), no_links, np.arange(len(pages)), rate)
    again = path.revisited if order.revisits else path.revisited[:0]
    plan = type(path)(path.visited, again).plan()
    visit, revisit = plan.visit_times(0.0, delay), plan.revisit_times(0.0, delay)
    seen_again = revisit if order.revisits else None
    return CaptureForecast(
        len(pages),
        len(path.visited) + len(again),
        delay,
        expected_coherence(rate, revisit - visit) if order.revisits else None,
        average_blur(rate, visit, 0.0, float(revisit.max()), seen_again) if len(pages) > 1 else 0.0,
    )
