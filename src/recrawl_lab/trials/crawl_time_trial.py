"""Estimates of crawl time beside what crawls took: the heuristic of paper 001 §5, printed and corrected, and ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.plan.crawl_time import (
    DEFAULT_DELAY,
    DEFAULT_SECONDS,
    Domains,
    PlannedCrawl,
    estimate,
    forecast,
    learn_growth,
)
from recrawl.plan.download_times import Downloads, learn_downloads
from recrawl_lab.trials.simulated_crawls import TIME_LIMIT, CrawlKind, CrawlRecord, crawl_world, draw_world, planned

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
