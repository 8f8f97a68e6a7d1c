"""Carry a capture out: wire its parts, show how far it is, stop at the first interrupt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from recrawl.crawl.capture import CaptureProgress, SiteDriver
from recrawl.crawl.capture_order import CaptureOrder
from recrawl.crawl.capture_quality import CaptureReport
from recrawl.crawl.clock import RealClock
from recrawl.time import format_duration

if TYPE_CHECKING:
    from recrawl.cli.capture_rates import BelievedRates
    from recrawl.cli.workspace import Workspace
    from recrawl.crawl.live import CrawlSettings
    from recrawl.schedule.politeness import PolitenessRules
    from recrawl.store.base import Store
    from recrawl.store.site_values import SiteCapture
    from recrawl.time import Clock

Show = Callable[[CaptureProgress], None]


async def carry_out(  # noqa: PLR0913 - what takes part, and who wants to know
    place: Workspace,
    store: Store,
    order: CaptureOrder,
    unfinished: SiteCapture | None,
    show: Show,
    *,
    clock: Clock | None = None,
    settings: CrawlSettings | None = None,
) -> CaptureReport | None:
    """Begin a capture, or go on with an unfinished one; ``None`` if it was interrupted.

    The first interrupt lets the request that runs end, but not for long; a second one drops it at once. The time is
    the machine's and the settings are the workspace's, unless others are given.
    """
    from recrawl.cli.interrupts import FINISH_WITHIN, interruptible
    from recrawl.cli.run import worker_name
    from recrawl.cli.wiring import crawl_settings_of
    from recrawl.crawl.live import tools
    from recrawl.crawl.sleeping import Sleep
    from recrawl.schedule.politeness import Politeness

    clock, settings = clock or RealClock(), settings or crawl_settings_of(place.configuration.settings)
    rules, turns = pauses_of(order, settings.politeness), settings.turns
    if turns is not None and order.delay is not None:
        turns = replace(turns, delay=min(turns.delay, order.delay))
    settings = replace(
        settings, politeness=rules, turns=turns, archive=replace(settings.archive, is_part_of=order.site)
    )
    started = unfinished.started if unfinished else clock.now()
    async with tools(clock, store, place.folder, settings, worker_name()) as at_hand:
        driver = SiteDriver(
            clock=clock,
            store=store,
            fetcher=at_hand.fetcher,
            robots=at_hand.robots,
            doors=at_hand.doors,
            judging=settings.judging,
            pool=at_hand.pool,
            politeness=Politeness(rules),
            archive=at_hand.archive,
            rates=rates_of(place, store, order, started),
            log=at_hand.events,
            on_visit=lambda visited: at_hand.attempts.write([visited]),
        )
        working: Sleep[CaptureReport | None] = Sleep()

        def stop() -> None:
            driver.stop()
            asyncio.get_running_loop().call_later(FINISH_WITHIN, working.end)

        async def work() -> CaptureReport | None:
            capture = unfinished or await driver.begin(order)
            return None if capture is None else await driver.run(capture, show)

        with interruptible(stop):
            try:
                return await working.through(work())
            finally:
                driver.drop()


def rates_of(place: Workspace, store: Store, order: CaptureOrder, started: float) -> BelievedRates:
    """How often pages are believed to change when a capture begins: by visits before it and the model there is."""
    from recrawl.cli.capture_rates import BelievedRates
    from recrawl.cli.predict_use import expected_changes, foretold_changes

    foretold, compared = foretold_changes(place, store, started), expected_changes(place, store, started)
    return BelievedRates(store, started, order.rates, foretold, compared)


def pauses_of(order: CaptureOrder, rules: PolitenessRules) -> PolitenessRules:
    """The pauses of a capture: what was asked for by name stands instead of the shortest pause of the settings."""
    if order.delay is None:
        return rules
    return replace(rules, shortest=order.delay, longest=max(rules.longest, order.delay))


@contextmanager
def shown() -> Iterator[Show]:
    """A bar for people: pages visited and seen again, and how long what is known of will take."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    from recrawl.cli.waiting import bars

    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with bars(*columns) as bar:
        visits = bar.add_task("visits", total=None, left="")
        again = bar.add_task("revisits", total=None, left="", visible=False)

        def show(now: CaptureProgress) -> None:
            left = f"about {format_duration(now.seconds_left)} left" if now.seconds_left else ""
            bar.update(visits, completed=now.visited, total=now.pages, left=left if now.visited < now.pages else "")
            whole = now.seen_again + now.to_see_again
            bar.update(again, completed=now.seen_again, total=whole, visible=whole > 0, left="")
            if now.visited == now.pages:
                bar.update(again, left=left)

        yield show
