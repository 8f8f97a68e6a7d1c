"""How fast, how steadily and how politely a crawl goes: the whole of it, against other crawlers in the same run.

uv run --group bench python benchmarks/crawl.py                      all figures of the documentation, in five minutes
uv run --group bench python benchmarks/crawl.py speed --fetches 6000
uv run --group bench python benchmarks/crawl.py floor          what no rewriting of Python can avoid, part by part
uv run --group bench python benchmarks/crawl.py shared --workers 4    on one PostgreSQL, its server counted
uv run --group bench python benchmarks/crawl.py memory --fetches 1000000     an hour
uv run --group bench python benchmarks/crawl.py polite --hosts 1000
uv run --group bench python benchmarks/crawl.py starts --pages 10000000     a quarter of an hour, 10 GB of disk

A server process answers with pages of 20 KB and 60 links on many loopback hosts; every crawler is a process of its own.
Rates are pages per second of processor time, so that they do not depend on what else the machine does; pages per second
of real time stand beside them. The first pages are left out: there programs load their parts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import crawl_floor
import crawl_ours
import numpy as np
import psycopg
from crawl_fits import measure_fits, measure_starts
from crawl_ours import Job
from crawl_web import Web, page_urls, small_document, web
from figures import note, options_of
from store_population import postgres_server

from recrawl.urls import bucket_of

HOSTS = 50
PAGES = 200
"""Of each host."""
PAGES_OF_MANY = 8
"""Of each host where it is not about many pages."""
SETTLED = 8.0
"""Seconds after which a crawl has read the rules of all hosts."""
SHARED_BUDGET = 400.0
"""Visits per second of all workers that share a store together."""
WARM_UP = 500
"""Pages that are not counted."""
ROUNDS = 3
"""Turns of all crawlers whose speed is compared."""
SAMPLE_EVERY = 1_000
"""Pages between two observations of the memory."""
AIMS = 3, 2
"""How many times as fast as Scrapy's engine, and as the usual parts, a crawl is to be."""
MIB = 1 << 20


@dataclass(slots=True)
class Meter:
    """Counts the pages that a process got, and what they took."""

    pages: int = 0
    wall: float = 0.0
    processor: float = 0.0
    memory: list[int] = field(default_factory=list)
    """Bytes in use after every thousand pages."""

    def page(self) -> None:
        """One more page."""
        self.pages += 1
        if self.pages == WARM_UP:
            self.wall, self.processor = time.perf_counter(), time.process_time()
        if self.pages % SAMPLE_EVERY == 0:
            self.memory.append(int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096)

    def end(self) -> None:
        """No more pages: from here on the meter tells what came after the first ones."""
        self.pages -= WARM_UP
        self.wall, self.processor = time.perf_counter() - self.wall, time.process_time() - self.processor

    def rate(self) -> float:
        """Pages per second of processor time."""
        return self.pages / self.processor


Crawler = Callable[[Callable[[], None]], None]
"""Fetches pages and tells of each."""


@dataclass(frozen=True, slots=True)
class Ours:
    """Our own crawler, on a store that is there already."""

    folder: Path
    worker: str
    job: Job
    location: str = ""
    """Where the store is; by default in the folder."""

    def __call__(self, on_page: Callable[[], None]) -> None:
        """Crawl."""
        crawl_ours.crawl(self.folder, self.worker, self.job, on_page, self.location)


@dataclass(frozen=True, slots=True)
class Rival:
    """A function of ``crawl_rivals``, or a part of a crawl."""

    name: str
    urls: Sequence[str]
    folder: Path
    among: str = "crawl_rivals"

    def __call__(self, on_page: Callable[[], None]) -> None:
        """Crawl."""
        getattr(import_module(self.among), self.name)(self.urls, self.folder, on_page)


def run(*crawlers: Crawler) -> list[Meter]:
    """Run crawlers at the same time, each in its own process."""
    context, started = multiprocessing.get_context("spawn"), []
    for crawler in crawlers:
        ours, theirs = context.Pipe()
        process = context.Process(target=_metered, args=(theirs, crawler))
        process.start()
        theirs.close()
        started.append((process, ours))
    meters: list[Meter] = [pipe.recv() for _, pipe in started]
    for process, _ in started:
        process.join()
    if min(meter.pages for meter in meters) <= 0:
        sys.exit(f"A crawler did not get past its first {WARM_UP} pages, which do not count; give it more --seconds.")
    return meters


def _metered(pipe: Connection, crawler: Crawler) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    meter = Meter()
    crawler(meter.page)
    meter.end()
    pipe.send(meter)


def measure_speed(place: Web, fetches: int) -> None:
    """The same pages by all crawlers, one after the other, in some rounds: a machine has its quick and slow minutes."""
    urls = page_urls(HOSTS, PAGES, place.port)
    often = [urls[number % len(urls)] for number in range(fetches + WARM_UP)]
    crawlers: dict[str, Callable[[Path], Crawler]] = {
        "Scrapy's engine alone": lambda folder: Rival("scrapy_engine", often, folder),
        "aiohttp, lxml, warcio, SQLite": lambda folder: Rival("usual_parts", often, folder),
        "recrawl, everything": lambda folder: Ours(folder, "one", Job(fetches + WARM_UP)),
    }
    meters: dict[str, list[Meter]] = {name: [] for name in crawlers}
    for _ in range(ROUNDS):
        for name, crawler in crawlers.items():
            with tempfile.TemporaryDirectory() as folder:
                crawl_ours.seed(Path(folder), urls)
                meters[name] += run(crawler(Path(folder)))
    rates = {}
    for name, rounds in meters.items():
        each = [1e6 / meter.rate() for meter in rounds]
        rates[name] = 1e6 / float(np.mean(each))
        print(
            f"{name:30} {rates[name]:7,.0f} pages/s of processor time ({np.mean(each):,.0f} us a page; "
            f"{min(each):,.0f} to {max(each):,.0f} in {ROUNDS} rounds), "
            f"{np.mean([meter.pages / meter.wall for meter in rounds]):,.0f}/s of real time"
        )
    *others, (_, own) = rates.items()
    for name, rate in others:
        print(f"{'':30} {own / rate:.2f} x {name}")
        note(
            f"speed, {name}", own, "pages/s of a processor", f"{ROUNDS} × {fetches:,} pages", baseline=rate, beside=name
        )


def measure_floor(place: Web, fetches: int) -> None:
    """The compiled code that a crawl calls, part by part, beside what others take for a page."""
    urls = page_urls(HOSTS, PAGES, place.port)
    often = [urls[number % len(urls)] for number in range(fetches + WARM_UP)]
    others = {"scrapy_engine": "Scrapy's engine alone", "usual_parts": "aiohttp, lxml, warcio, SQLite"}
    takes = {}
    for name, words in (*crawl_floor.PARTS.items(), *others.items()):
        with tempfile.TemporaryDirectory() as folder:
            crawl_ours.seed(Path(folder), urls)
            among = "crawl_rivals" if name in others else "crawl_floor"
            [meter] = run(Rival(name, often, Path(folder), among))
        takes[name] = 1e6 / meter.rate()
        print(f"{words:40} {takes[name]:7,.0f} us a page")
    floor = sum(takes[name] for name in crawl_floor.PARTS)
    print(f"{'all parts':40} {floor:7,.0f} us a page")
    for (name, words), aim in zip(others.items(), AIMS, strict=True):
        allowed = takes[name] / aim
        print(f"{'':40} {aim} x {words} allows {allowed:,.0f}: {allowed - floor:,.0f} for everything else")
        note(f"floor, {words}", floor, "us a page", f"{fetches:,} pages", baseline=takes[name], beside=words)


def measure_processes(place: Web, seconds: float) -> None:
    """One process and two on one store, for the same time."""
    urls = page_urls(HOSTS, PAGES, place.port)
    ways = {"1 process": [0], "2 processes": [0, 0], "2, a store each": [0, 1]}
    rates: dict[str, list[tuple[float, float]]] = {words: [] for words in ways}
    for _ in range(ROUNDS):
        for words, stores in ways.items():
            meters = _together(urls, stores, seconds)
            rates[words].append(
                (sum(meter.pages / meter.wall for meter in meters), sum(meter.rate() for meter in meters))
            )
    means = {words: np.mean(found, axis=0) for words, found in rates.items()}
    one = means["1 process"]
    for words, (real, by_processor) in means.items():
        alone = [rate for _, rate in rates[words]]
        print(
            f"{words:16}{real:7,.0f} pages/s of real time, {by_processor:,.0f}/s if each had its own processor "
            f"({min(alone):,.0f} to {max(alone):,.0f} in {ROUNDS} rounds); "
            f"{real / one[0]:.2f} x by real time, {by_processor / one[1]:.2f} x by processor time"
        )
    sizes, unit = f"{ROUNDS} × {seconds:g} s each", "pages/s, a processor each"
    two = float(means["2 processes"][1])
    note("two processes", two, unit, sizes, baseline=float(one[1]), beside="one process")


def _together(urls: Sequence[str], stores: Sequence[int], seconds: float) -> list[Meter]:
    """Crawl in as many processes as there are numbers, each into the store of its number."""
    with tempfile.TemporaryDirectory() as folder:
        for store in set(stores):
            (Path(folder) / str(store)).mkdir()
            crawl_ours.seed(Path(folder) / str(store), urls)
        job = Job(seconds=seconds)
        return run(*(Ours(Path(folder) / str(store), f"worker-{n}", job) for n, store in enumerate(stores)))


def measure_shared(place: Web, workers: int, fetches: int) -> None:
    """One worker on a PostgreSQL store, several, and as many with a database each: processor time of all processes.

    All have the same hosts and budget together, which is less than what one worker could do. The server is counted
    apart. Several processes slow each other down on a small machine: those with a database each show by how much.
    Pages are counted after a minute's worth of them: by then all workers have their buckets, and have fitted.
    """
    urls = page_urls(HOSTS, PAGES_OF_MANY, place.port)
    ways = {"one worker": [0], f"{workers} workers": [0] * workers, "a database each": list(range(workers))}
    costs: dict[str, list[tuple[float, float]]] = {words: [] for words in ways}
    for number in range(ROUNDS):
        for words, databases in ways.items():
            with tempfile.TemporaryDirectory() as folder, postgres_server(Path(folder)) as address:
                costs[words].append(_shared(Path(folder), address, databases, urls, fetches))
            own, server = costs[words][-1]
            print(f"  round {number + 1}: {words}, {own:,.0f} + {server:,.0f} us a page", flush=True)
    means = {words: np.mean(found, axis=0) for words, found in costs.items()}
    one = means["one worker"]
    for words, (own, server) in means.items():
        print(
            f"{words:16}{own:7,.0f} us a page, their server {server:,.0f}; {(own + server) / one.sum():.2f} x in all, "
            f"{own / one[0]:.2f} x workers, {server / one[1]:.2f} x server"
        )
    sizes, several = f"{ROUNDS} × {fetches:,} pages", f"{workers} workers"
    note(
        f"{several}, one PostgreSQL", means[several].sum(), "us a page", sizes, baseline=one.sum(), beside="one worker"
    )


def _shared(
    folder: Path, address: str, databases: Sequence[int], urls: Sequence[str], fetches: int
) -> tuple[float, float]:
    """Microseconds of processor time a page: of workers with subprocesses, each in its database, and of the server."""
    many = max(databases) + 1
    for database in range(many):
        with psycopg.connect(address % "postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE store{database}".encode())
        some = [url for url in urls if bucket_of(url.split("/")[2]) % many == database]
        crawl_ours.seed(folder, some, address % f"store{database}")
    context = multiprocessing.get_context("spawn")
    counted, started = context.Value("q", 0), []
    for number, database in enumerate(databases):
        (folder / f"w{number}").mkdir()
        job, location = Job(budget=SHARED_BUDGET / many), address % f"store{database}"
        crawler = Ours(folder / f"w{number}", f"worker-{number}", job, location)
        process = context.Process(target=_counting, args=(crawler, counted))
        process.start()
        started.append(process)
    server = int((folder / "postgres" / "postmaster.pid").read_text(encoding="ascii").split()[0])
    roots = [process.pid for process in started if process.pid is not None]

    def reached(pages: int) -> tuple[int, float, float]:
        while counted.value < pages:
            time.sleep(0.1)
            if not all(process.is_alive() for process in started):
                sys.exit("A worker ended by itself.")
        return counted.value, _of_trees(roots), _of_trees([server])

    before = reached(int(60 * SHARED_BUDGET))
    after = reached(before[0] + fetches)
    for process in started:
        process.kill()
        process.join()
    pages = after[0] - before[0]
    return 1e6 * (after[1] - before[1]) / pages, 1e6 * (after[2] - before[2]) / pages


def _counting(crawler: Crawler, counted: Any) -> None:  # noqa: ANN401 - a number that processes share
    def page() -> None:
        with counted.get_lock():
            counted.value += 1

    crawler(page)


def _of_trees(roots: Sequence[int]) -> float:
    """Processor seconds of these processes and all below them, also of those that have ended."""
    spent, children, ticks = dict[int, float](), dict[int, list[int]](), os.sysconf("SC_CLK_TCK")
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            spent[int(status.parent.name)] = sum(map(int, fields[11:15])) / ticks
            children.setdefault(int(fields[1]), []).append(int(status.parent.name))
    total, waiting = 0.0, list(roots)
    while waiting:
        process = waiting.pop()
        total += spent.get(process, 0.0)
        waiting += children.get(process, [])
    return total


def measure_memory(fetches: int) -> None:
    """How much memory grows while pages are fetched again and again, few enough that all are known soon."""
    with tempfile.TemporaryDirectory() as folder, web(PAGES_OF_MANY) as place:
        crawl_ours.seed(Path(folder), page_urls(HOSTS, PAGES_OF_MANY, place.port))
        [meter] = run(Ours(Path(folder), "one", Job(fetches)))
    used = np.array(meter.memory) / MIB
    half = used[len(used) // 2 :]
    slope = float(np.polyfit(np.arange(len(half)), half, 1)[0])
    print(
        f"memory {used[0]:,.0f} MiB after a thousand fetches, {half[0]:,.0f} after {len(used) // 2 + 1:,} thousand, "
        f"{used[-1]:,.0f} after {len(used):,} thousand; in the second half {slope * 1024:+,.0f} KiB a thousand fetches"
    )
    note("memory", used[-1], "MiB", f"{fetches:,} fetches", baseline=float(half[0]), beside="after half of them")


def measure_politeness(hosts: int, seconds: float, delay: float = 1.0) -> None:
    """When requests reached their hosts, from the server's own log; the first seconds, when programs load, left out."""
    with tempfile.TemporaryDirectory() as folder, web(PAGES_OF_MANY, small_document) as place:
        crawl_ours.seed(Path(folder), page_urls(hosts, PAGES_OF_MANY, place.port))
        job = Job(seconds=SETTLED + seconds, delay=delay, concurrency=256)
        [meter] = run(Ours(Path(folder), "one", job))
        _, arrived, left, host = place.log()
    order = np.lexsort((arrived, host))
    arrived, left, host = arrived[order], left[order], host[order]
    pause = (arrived[1:] - left[:-1])[host[1:] == host[:-1]]
    late = (pause - delay)[(arrived[1:] > arrived.min() + SETTLED)[host[1:] == host[:-1]]] * 1e3
    print(
        f"{hosts:,} hosts, {delay:g} s apart: {len(arrived):,} requests, {meter.pages / meter.wall:,.0f}/s; "
        f"{int((pause < delay).sum())} too early (shortest pause {pause.min():.4f} s); "
        f"late by {np.median(late):.1f} ms at the median, {np.quantile(late, 0.95):.1f} ms at 95 %"
    )
    sizes = f"{hosts:,} hosts, {len(arrived):,} requests"
    note("too early", int((pause < delay).sum()), "requests", sizes)
    note("late", float(np.median(late)), "ms", sizes)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = ["all", "speed", "floor", "processes", "shared", "memory", "polite", "fits", "starts"]
    parser.add_argument("what", choices=kinds, nargs="?", default="all")
    parser.add_argument("--fetches", type=int, help="pages that each crawler fetches; 6,000, or 40,000 for memory")
    parser.add_argument("--hosts", type=int, default=1_000, help="for polite")
    parser.add_argument("--seconds", type=float, default=12.0, help="for processes and polite")
    parser.add_argument("--workers", type=int, default=4, help="for shared")
    parser.add_argument("--pages", type=int, default=10_000, help="for fits and starts")
    parser.add_argument("--visits", type=int, default=8, help="of each page, for starts")
    options = options_of(parser)
    if options.what == "starts":
        measure_starts(options.pages, options.visits)
        return
    if options.what == "fits":
        measure_fits(options.pages, options.seconds)
        return
    with web() as place:
        if options.what in ("all", "speed"):
            measure_speed(place, options.fetches or 6_000)
        if options.what == "floor":
            measure_floor(place, options.fetches or 6_000)
        if options.what in ("all", "processes"):
            measure_processes(place, options.seconds)
        if options.what == "shared":
            measure_shared(place, options.workers, options.fetches or 12_000)
        if options.what in ("all", "memory"):
            measure_memory(options.fetches or 40_000)
        if options.what in ("all", "polite"):
            measure_politeness(options.hosts, options.seconds)


if __name__ == "__main__":
    main()
