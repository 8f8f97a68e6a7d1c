"""Estimates of crawl time compared with the durations of simulated crawls (paper 001 §5).

Estimates are by the heuristic of paper 001, as printed and as corrected, and by the forecast of recrawl.

A simulated set of hosts is crawled repeatedly. Host sizes are log-normal and pauses differ. Download times vary over
hosts, over crawls and, with heavier tails than a log-normal distribution, over pages. Some requests fail, at once or at
a time limit; sometimes a host is overloaded. Some hosts of each crawl are new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.plan.crawl_time import (
    DEFAULT_DELAY,
    DEFAULT_SECONDS,
    Domains,
    HostRequests,
    HostTreatment,
    PlannedCrawl,
    estimate,
    forecast,
    learn_growth,
    run,
)
from recrawl.plan.download_times import Downloads, learn_downloads
from recrawl.schedule.politeness.host_politeness import PolitenessRules

TIME_LIMIT = 20.0
DEGREES = 4.0
"""Of Student's distribution, which the logs of download times of a host follow."""
OVERLOADED, TIMES_SLOWER = 0.03, 4.0
NEW_HOSTS = 0.1
"""Share of hosts that were not crawled before."""


@dataclass(frozen=True, slots=True)
class CrawlKind:
    """What sort of crawl it is."""

    name: str
    apart: bool
    """Requests to a host start a delay apart, several at a time; else one at a time, with a rest after the answer."""
    grows: bool
    """Pages are found while crawling."""


KINDS = (
    CrawlKind("fixed list, several requests at a host", apart=True, grows=False),
    CrawlKind("fixed list, one request at a host", apart=False, grows=False),
    CrawlKind("growing list, one request at a host", apart=False, grows=True),
)
"""The first is what paper 001 assumes; the others are how archives crawl."""


@dataclass(frozen=True, slots=True)
class CrawlWorld:
    """Hosts as columns, and who crawls them."""

    kind: CrawlKind
    pages: FloatArray
    """Of each host in an ordinary crawl."""
    delay: FloatArray
    middle: FloatArray
    """Of the log of download seconds."""
    spread: FloatArray
    failing: FloatArray
    hanging: FloatArray
    """Share of failures that end by the time limit."""
    growth: FloatArray
    known: BoolArray
    """Whether past crawls went there."""
    of_host: float
    of_crawl: float
    concurrency: int

    def __len__(self) -> int:
        return len(self.pages)

    @property
    def treatment(self) -> HostTreatment:
        """Rests as the hosts ask for them."""
        return HostTreatment(PolitenessRules(0.0, 0.0, 0.0, np.inf), self.kind.apart)


@dataclass(frozen=True, slots=True)
class CrawlRecord:
    """A crawl that has happened."""

    given: IntArray
    """URLs of each host."""
    found: IntArray
    """Pages found on the way and fetched too."""
    downloads: Downloads
    seconds: float
    """How long all of it took."""


def draw_world(kind: CrawlKind, rng: np.random.Generator) -> CrawlWorld:
    """Hosts and a crawler."""
    hosts = int(rng.integers(8, 80))
    growth = rng.uniform(0.1, 0.8) * rng.gamma(2.0, 0.5, hosts) if kind.grows else np.zeros(hosts)
    known = rng.random(hosts) >= NEW_HOSTS
    known[0] = True
    return CrawlWorld(
        kind,
        rng.lognormal(rng.normal(3.0, 0.6), rng.uniform(0.8, 1.6), hosts),
        rng.choice([0.5, 1.0, 2.0, 5.0, 10.0], hosts, p=[0.15, 0.45, 0.2, 0.15, 0.05]),
        np.log(0.8) + rng.normal(0.0, 1.0, hosts),
        rng.uniform(0.3, 1.0, hosts),
        rng.beta(0.6, 15.0, hosts),
        rng.random(hosts),
        growth,
        known,
        rng.uniform(0.1, 0.4),
        rng.uniform(0.0, 0.25),
        int(rng.choice([2, 5, 10, 20, 50])),
    )


def crawl_world(world: CrawlWorld, number: int, rng: np.random.Generator, *, past: bool = True) -> CrawlRecord:
    """Crawl the world once. A ``past`` crawl goes to known hosts only. O(requests log requests)."""
    wanted = world.pages * rng.lognormal(0.0, 0.5, len(world))
    given = np.maximum(rng.poisson(wanted), 1).astype(np.int64)
    if past:
        given = np.where(world.known, given, 0)
    found = rng.poisson(given * world.growth * rng.gamma(10.0, 0.1, len(world))).astype(np.int64)
    pages = given + found
    host = np.repeat(np.arange(len(world)), pages)
    slow = np.where(rng.random(len(world)) < OVERLOADED, np.log(TIMES_SLOWER), 0.0)
    today = world.of_host * rng.standard_normal(len(world)) + world.of_crawl * rng.standard_normal() + slow
    noise = rng.standard_t(DEGREES, len(host)) * np.sqrt(1.0 - 2.0 / DEGREES)
    answer = np.exp((world.middle + today)[host] + world.spread[host] * noise)
    fails = rng.random(len(host)) < world.failing[host]
    hangs = rng.random(len(host)) < world.hanging[host]
    seconds = np.where(fails, np.where(hangs, TIME_LIMIT, 0.1), answer)
    late = seconds >= TIME_LIMIT
    seconds = np.minimum(seconds, TIME_LIMIT)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(pages)])
    rank = np.arange(len(host)) - offsets[host] + host / len(world)
    requests = HostRequests(offsets, rank, seconds, world.delay[host], world.kind.apart)
    downloads = Downloads(host, np.full(len(host), number), seconds, ~(fails | late))
    return CrawlRecord(given, found, downloads, run(requests, world.concurrency, many=True))


def planned(world: CrawlWorld, given: IntArray, unknown_delay: float) -> PlannedCrawl:
    """What a planner knows of a crawl before it starts: the delays of hosts that were crawled before."""
    return PlannedCrawl(
        given, np.where(world.known, world.delay, unknown_delay), world.concurrency, world.treatment, ~world.known
    )


PAST_CRAWLS = 4
CRAWLS_OF_A_WORLD = 2
DRAWS = 100


@dataclass(frozen=True, slots=True)
class TimedCrawl:
    """One crawl and what was said of it beforehand, in seconds."""

    kind: str
    actual: float
    printed: float
    corrected: float
    recrawl: float
    low: float
    high: float

    def error(self, method: str) -> float:
        """(estimate − actual)/actual."""
        return float(getattr(self, method)) / self.actual - 1.0

    @property
    def covered(self) -> bool:
        """Whether the interval held the truth."""
        return self.low <= self.actual <= self.high


def evaluate_kind(
    kind: CrawlKind,
    crawls: int,
    rng: np.random.Generator,
    *,
    draws: int = DRAWS,
    progress: Callable[[], None] = lambda: None,
) -> list[TimedCrawl]:
    """Crawl worlds of a kind; each estimate knows the crawls of its world before it, at least four."""
    judged: list[TimedCrawl] = []
    # Estimates draw from chances of their own, so that the crawls are the same however they are estimated.
    guessing = rng.spawn(1)[0]
    while len(judged) < crawls:
        world = draw_world(kind, rng)
        past = [crawl_world(world, number, rng) for number in range(PAST_CRAWLS)]
        for _ in range(min(CRAWLS_OF_A_WORLD, crawls - len(judged))):
            record = crawl_world(world, len(past), rng, past=False)
            judged.append(
                judge(
                    kind.name, planned(world, record.given, DEFAULT_DELAY), past, record.seconds, guessing, draws=draws
                )
            )
            progress()
    return judged


def judge(  # noqa: PLR0913 - what is crawled, what is known, and what came of it
    name: str,
    crawl: PlannedCrawl,
    past: Sequence[CrawlRecord],
    actual: float,
    rng: np.random.Generator,
    *,
    draws: int = DRAWS,
    limit: float = TIME_LIMIT,
) -> TimedCrawl:
    """What each method says of a crawl from the same past."""
    downloads = Downloads(
        *(
            np.concatenate([getattr(record.downloads, column) for record in past])
            for column in ("host", "crawl", "seconds", "answered")
        )
    )
    domains = as_domains(crawl, downloads)
    hosts = len(crawl)
    growth = learn_growth(
        np.tile(np.arange(hosts), len(past)),
        np.concatenate([record.given for record in past]),
        np.concatenate([record.found for record in past]),
        hosts,
    )
    ours = forecast(crawl, learn_downloads(downloads, hosts, limit=limit), rng, growth=growth, draws=draws)
    printed = estimate(domains, crawl.concurrency).seconds
    corrected = estimate(domains, crawl.concurrency, keep_delay=True).seconds
    return TimedCrawl(name, actual, printed, corrected, ours.seconds, ours.low, ours.high)


def as_domains(crawl: PlannedCrawl, downloads: Downloads) -> Domains:
    """The same crawl as paper 001 sees it: the average download time of each domain, 2 s if it is new."""
    hosts = len(crawl)
    count = np.bincount(downloads.host, minlength=hosts)
    total = np.bincount(downloads.host, downloads.seconds, hosts)
    seconds = np.where(count > 0, total / np.maximum(count, 1), DEFAULT_SECONDS)
    return Domains([f"{host:06}" for host in range(hosts)], crawl.pages, seconds, crawl.crawl_delay)


def median_error(judged: Sequence[TimedCrawl], method: str) -> float:
    """The middle of |estimate − actual|/actual."""
    return float(np.median([abs(one.error(method)) for one in judged]))
