"""``recrawl plan --crawl-time``: how long a list of URLs takes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from recrawl.cli.plan_outlook import HostTable, hosts_of
from recrawl.cli.settings import Settings
from recrawl.cli.waiting import line
from recrawl.errors import InputError
from recrawl.model.words import counted
from recrawl.plan.crawl_time import Domains, estimate
from recrawl.plan.durations import DownloadTimes
from recrawl.plan.forecast import Crawl, Forecast, forecast
from recrawl.time import format_duration

if TYPE_CHECKING:
    from recrawl.store.base import Store

ALL = "all"
SEED = 1
"""The same question gets the same answer."""


def tell_crawl_time(  # noqa: PLR0913 - the question
    store: Store,
    settings: Settings,
    urls: str,
    at_once: int,
    now: float,
    *,
    host: str | None,
    json_output: bool,
) -> None:
    """Print the estimate, its interval, what bounds it, and the heuristic of paper 001 beside it."""
    from recrawl.cli.tables import print_json, print_table

    wanted = _wanted(store, urls, host)
    if not wanted:
        raise InputError("There is no URL to crawl.", "Give a file with http or https URLs, one a line.", source=urls)
    hosts = hosts_of(store, settings, now)
    crawl, times, names = crawl_of(wanted, hosts, at_once)
    with line("Running the crawl through in advance"):
        found = forecast(crawl, times, np.random.default_rng(SEED))
    delay = crawl.manners.pause(times.mean(), crawl.crawl_delay)
    domains = Domains(names, crawl.pages, times.mean(), delay)
    printed, corrected = (estimate(domains, at_once, keep_delay=keep).seconds for keep in (False, True))
    slowest = names[found.slowest]
    if json_output:
        facts = {"seconds": found.seconds, "low": found.low, "high": found.high, "longest_host": slowest}
        bounds = {"longest_host_seconds": found.longest, "work_seconds": found.work}
        paper = {"heuristic_printed": printed, "heuristic_corrected": corrected}
        print_json({"urls": int(found.pages), "hosts": len(names), "concurrency": at_once, **facts, **bounds, **paper})
        return
    unasked = int(_new(wanted, hosts))
    rows = [
        ("URLs", f"{found.pages:,.0f} on {counted(len(names), 'host')}, {unasked:,} of them never asked before"),
        ("takes", f"{format_duration(found.seconds)}; {format_duration(found.low)} to {format_duration(found.high)}"),
        ("longest host", f"{slowest}: {format_duration(found.longest)}, however many requests at once"),
        ("work", f"{format_duration(found.work)} with {counted(at_once, 'request')} at once"),
        ("useful at once", _useful(found)),
        ("heuristic of paper 001", f"{format_duration(printed)} as printed, {format_duration(corrected)} corrected"),
    ]
    print_table(("", ""), rows)


def crawl_of(wanted: Mapping[str, int], hosts: HostTable, at_once: int) -> tuple[Crawl, DownloadTimes, list[str]]:
    """URLs counted by host as a crawl, with what is known of each host; of new hosts, what is known of all."""
    row_of = {name: row for row, name in enumerate(hosts.name)}
    names = list(wanted)
    new = len(row_of)
    rows = np.array([row_of.get(name, new) for name in names], dtype=np.int64)
    delay = np.append(hosts.crawl_delay, math.nan)[rows]
    crawl = Crawl(np.array(list(wanted.values()), dtype=np.int64), delay, at_once, hosts.manners, rows == new)
    return crawl, hosts.all_times.take(rows), names


def _wanted(store: Store, urls: str, host: str | None) -> Counter[str]:
    """How many URLs each host has."""
    from pathlib import Path

    from recrawl.cli.add import text_of
    from recrawl.cli.knowledge import host_id
    from recrawl.formats.seeds import read_seeds
    from recrawl.urls import host_of

    if urls == ALL:
        pages, hosts = store.pages(), store.hosts()
        count = np.bincount(np.searchsorted(hosts.id, pages.host[pages.importance > 0]), minlength=len(hosts))
        found = Counter({name: int(number) for name, number in zip(hosts.name, count, strict=True) if number})
    else:
        seeds = read_seeds(text_of(Path(urls)), urls)
        found = Counter(host_of(seed.url) or "" for seed in seeds.addresses)
    if host is None:
        return found
    if urls == ALL:
        host_id(store, host)
    elif host not in found:
        raise InputError(f"No URL of this list is on the host {host!r}.", "Leave out --host to take all.", source=urls)
    return Counter({name: n for name, n in found.items() if name == host})


def _new(wanted: Mapping[str, int], hosts: HostTable) -> int:
    return len(wanted.keys() - set(hosts.name))


def _useful(found: Forecast) -> str:
    useful = max(found.useful_concurrency, 1.0)
    if found.concurrency >= useful:
        return f"about {math.ceil(useful)}: with more the longest host decides"
    return f"about {math.ceil(useful)}: more than {found.concurrency} would make it shorter"
