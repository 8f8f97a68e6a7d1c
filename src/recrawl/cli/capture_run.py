"""Carry a capture out: wire its parts, show how far it is, stop at the first interrupt."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from recrawl.crawl.archive import WarcArchive
from recrawl.crawl.capture import CaptureProgress, SiteDriver
from recrawl.crawl.capture_order import CaptureOrder
from recrawl.crawl.capture_quality import CaptureReport
from recrawl.crawl.clock import RealClock
from recrawl.crawl.heritrix_log import NAME as CRAWL_LOG
from recrawl.crawl.heritrix_log import HeritrixLog
from recrawl.crawl.live import LOG
from recrawl.crawl.log import JsonLinesLog
from recrawl.time import format_duration

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.store.base import Store
    from recrawl.store.values import SiteCapture

Show = Callable[[CaptureProgress], None]


async def carry_out(
    place: Workspace, store: Store, order: CaptureOrder, unfinished: SiteCapture | None, show: Show
) -> CaptureReport | None:
    """Begin a capture, or go on with an unfinished one; ``None`` if it was interrupted.

    The first interrupt lets the request that runs be settled, a second one drops it.
    """
    from recrawl.cli.capture_rates import BelievedRates
    from recrawl.cli.wiring import limits_of, politeness_of, warc_info_of
    from recrawl.detect import decoded
    from recrawl.fetch.http import HttpFetcher
    from recrawl.fetch.reach import Reach
    from recrawl.fetch.robots import RobotsCache
    from recrawl.formats.warc import WarcWriter
    from recrawl.schedule.politeness import Politeness

    clock, said = RealClock(), place.configuration.settings
    agent, info = said.fetch.agent(), warc_info_of(said.archive, said.fetch)
    rules = politeness_of(said.politeness)
    if order.delay is not None:  # asked for by name, so it stands instead of the shortest pause of the settings
        rules = replace(rules, shortest=order.delay, longest=max(rules.longest, order.delay))
    with (
        WarcWriter(place.warc, clock, replace(info, is_part_of=order.site), roll_size=said.archive.roll_size) as writer,
        (place.folder / LOG).open("a", encoding="utf-8") as events,
        (place.folder / CRAWL_LOG).open("a", encoding="utf-8") as lines,
    ):
        heritrix_log = HeritrixLog(lines)
        limits, reach = limits_of(said.fetch), Reach.of(said.fetch.allow_networks.split())
        async with HttpFetcher(clock, agent, limits=limits, reach=reach) as fetcher:
            archive = WarcArchive(writer, store)
            driver = SiteDriver(
                clock=clock,
                store=store,
                fetcher=fetcher,
                robots=RobotsCache(
                    fetcher,
                    clock,
                    agent,
                    body_of=decoded,
                    on_capture=archive.keep_aside,
                    max_delay=rules.crawl_delay_cap,
                ),
                politeness=Politeness(rules),
                archive=archive,
                rates=BelievedRates(store, unfinished.started if unfinished else clock.now()),
                log=JsonLinesLog(events, clock),
                on_visit=lambda visited: heritrix_log.write([visited]),
            )
            with _interruptible(driver):
                capture = unfinished or await driver.begin(order)
                return None if capture is None else await driver.run(capture, show)


@contextmanager
def _interruptible(driver: SiteDriver) -> Iterator[None]:
    """Let the first interrupt finish the request that runs, and the second drop it."""
    loop, running = asyncio.get_running_loop(), asyncio.current_task()
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        if len(received) == 1:
            driver.stop()
        elif running is not None:
            running.cancel()

    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


@contextmanager
def shown() -> Iterator[Show]:
    """A bar for people: pages visited and seen again, and how long what is known of will take."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
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
