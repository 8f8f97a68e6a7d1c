"""``recrawl plan --slots``: due pages hour by hour, each hour filled so that it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from recrawl.cli.plan_crawl_time import SEED
from recrawl.cli.plan_next import chosen
from recrawl.cli.plan_outlook import Outlook
from recrawl.model import IntArray
from recrawl.plan.forecast import Crawl, Forecast, forecast
from recrawl.plan.slots import Slots, Turns, fill_slots
from recrawl.time import HOUR, format_duration

if TYPE_CHECKING:
    from recrawl.store.base import Store

FILLS = (0.95, 0.85, 0.7, 0.5, 0.3)
"""How full slots are made, until each ends within the hour in nineteen cases of twenty."""
DRAWS = 60


def tell_slots(  # noqa: PLR0913 - the question
    store: Store, outlook: Outlook, count: int, at_once: int, *, host: str | None, json_output: bool
) -> None:
    """Print one row an hour."""
    from recrawl.cli.knowledge import host_id
    from recrawl.cli.tables import print_json, print_table, rows_of, shown_time

    rows = np.flatnonzero(chosen(outlook, host_id(store, host)))
    start = outlook.now
    slots, times = fitting(outlook, rows, count, at_once)
    columns: dict[str, list[Any]] = {
        "start": [start + HOUR * number for number in range(count)],
        "pages": slots.pages.tolist(),
        "moved": slots.moved.tolist(),
        "seconds": [time.seconds for time in times],
        "high": [time.high for time in times],
    }
    unplaced = len(slots.unplaced)
    if json_output:
        print_json({"slots": rows_of(columns), "unplaced": unplaced})
        return
    shown = [
        (shown_time(begin), f"{pages:,}", f"{moved:,}", format_duration(middle), format_duration(high))
        for begin, pages, moved, middle, high in zip(*columns.values(), strict=True)
    ]
    headings = ("hour from", "pages", "moved here", "takes", "at most (95 %)")
    print_table(headings, shown, right=headings[1:])
    if unplaced:
        more = "1 more page falls due and fits" if unplaced == 1 else f"{unplaced:,} more pages fall due and fit"
        typer.echo(f"{more} into none of these hours.")


def fitting(outlook: Outlook, rows: IntArray, count: int, at_once: int) -> tuple[Slots, list[Forecast]]:
    """Fill the slots less and less, until every one is expected to end in time; the emptiest if none does."""
    hosts = outlook.hosts
    mean = hosts.times.mean()
    turns = Turns(mean, mean + hosts.pause)
    host = outlook.host[rows]
    interval = outlook.interval[rows]
    for fill in FILLS:
        slots = fill_slots(
            outlook.due[rows], host, turns, start=outlook.now, length=HOUR, count=count, concurrency=at_once, fill=fill,
            interval=interval,
        )  # fmt: skip
        parts = np.split(host[slots.page], np.cumsum(slots.pages)[:-1])
        times = [_time(outlook, part, at_once) for part in parts]
        if all(time.high <= HOUR for time in times):
            break
    return slots, times


def _time(outlook: Outlook, host: IntArray, at_once: int) -> Forecast:
    hosts = outlook.hosts
    asked = np.bincount(host, minlength=len(hosts.id))
    used = np.flatnonzero(asked)
    crawl = Crawl(asked[used], hosts.crawl_delay[used], at_once, hosts.manners)
    return forecast(crawl, hosts.times.take(used), np.random.default_rng(SEED), draws=DRAWS)
