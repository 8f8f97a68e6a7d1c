"""A forecast of how long a crawl takes, with an interval.

Paper 001 §5 takes the average download time of each host and packs bins. Here the crawl is simulated many times, each
time with download times, failures and newly found pages drawn from past crawls (``download_times``, and the growth
model below), and with the threads and pauses of the crawler (``crawl_time``). The median of these times is the
estimate; 90 % of them lie in the interval, which is slightly wider than their spread. If a crawl is too large for that,
a few simulations give the distance from the lower bound, which is then applied to many draws of the bound.

A frontier grows while a list of URLs is crawled. A host given s URLs adds x more, Poisson with mean γ_h·ε·s. γ_h
differs from host to host, and ε, of mean 1 and variance 1/k, from crawl to crawl. All are Gamma, found by moments; the
past of a host counts as much as ε allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.compiled import can_compile
from recrawl.plan.crawl_time import HostRequests, bounds, run
from recrawl.plan.download_times import DownloadTimes, NextCrawl
from recrawl.schedule.politeness.host_politeness import PolitenessRules

_UNSTEADY = 0.1
"""Variance from crawl to crawl, relative to the square of the mean, of a host of which nothing is known."""
_CRAWLS_WORTH = 4.0
"""How many rows of the past that counts for."""


@dataclass(frozen=True, slots=True)
class FrontierGrowth:
    """What is believed of γ_h, Gamma(a, b), one entry per host; and of ε, Gamma(k, k)."""

    a: FloatArray
    b: FloatArray
    k: float

    def mean(self) -> FloatArray:
        """Pages found for each page given."""
        return self.a / self.b

    def draw(self, given: IntArray, rng: np.random.Generator) -> IntArray:
        """Pages that each host may bring beside those it was given."""
        share = rng.gamma(self.a) / self.b
        if math.isfinite(self.k):
            share = share * rng.gamma(self.k, 1.0 / self.k, len(share))
        return np.asarray(rng.poisson(given * share), dtype=np.int64)


def learn_growth(host: IntArray, given: IntArray, found: IntArray, hosts: int) -> FrontierGrowth:
    """From past crawls, a row for each host in each: pages given, and pages found beside them. O(rows).

    >>> grown = learn_growth(np.array([0, 1, 1]), np.array([10, 10, 30]), np.array([5, 0, 0]), 3)
    >>> grown.mean().round(2).tolist()
    [0.43, 0.01, 0.25]
    """
    some = given > 0
    host = host[some]
    asked, got = given[some].astype(np.float64), found[some].astype(np.float64)
    share = float(got.sum()) / float(asked.sum()) if len(asked) else 0.0
    if share == 0.0:
        return FrontierGrowth(np.zeros(hosts), np.ones(hosts), math.inf)
    rows = np.bincount(host, minlength=hosts).astype(np.float64)
    total = np.bincount(host, asked, hosts)
    own = np.bincount(host, got, hosts) / np.where(rows > 0, total, 1.0)
    unsteady = _unsteady(host, asked, got, own, rows)
    # A row of s pages tells x/s with this variance: chance, and what differs from crawl to crawl.
    noise = share / asked + unsteady * np.maximum(own[host], share / 2.0) ** 2
    told = np.bincount(host, 1.0 / noise, hosts)
    best = np.bincount(host, got / asked / noise, hosts)
    seen = told > 0
    middle = float(own[seen].mean())
    between = max(float(((own[seen] - middle) ** 2 - 1.0 / told[seen]).sum()) / max(int(seen.sum()) - 1, 1), 0.0)
    between = max(between, (0.1 * middle) ** 2)
    precision = told + 1.0 / between
    mean = (best + middle / between) / precision
    return FrontierGrowth(mean**2 * precision, mean * precision, 1.0 / unsteady)


def _unsteady(host: IntArray, given: FloatArray, found: FloatArray, own: FloatArray, rows: FloatArray) -> float:
    """1/k: what is left of the squares of rows about their host's mean when chance is taken out."""
    expected = own[host] * given
    often = rows[host] > 1
    free = np.where(often, 1.0 - 1.0 / np.maximum(rows[host], 1.0), 0.0)
    left = float((((found - expected) ** 2 - free * expected)[often]).sum())
    base = float((free * expected**2)[often].sum())
    crawls = float(free.sum())
    seen = min(max(left / base, 0.0), 4.0) if base > 0 else _UNSTEADY
    return (crawls * seen + _CRAWLS_WORTH * _UNSTEADY) / (crawls + _CRAWLS_WORTH)


Order = Literal["turns", "longest"]
"""Hosts take turns, or the one with most left to do goes first."""
DRAWS = 200
_FEWEST, _ENOUGH = 5, 60
"""Runs of a large crawl, and how many suffice without the bounds."""
_UNMODELLED = 0.02
"""What no draw knows of, as a share of the time: a crawl that rests rule out to the second is still not exact."""
_WIDER = 1.2
"""How much farther from the middle, on logarithms, the ends of the interval lie than the draws say: variances that are
themselves learned from a handful of crawls are too small on average where hosts are wild. Chosen on crawls of seed 101,
together with what seed 1 had shown before."""
_MOST_REQUESTS = (200_000, 2_000_000)
"""Requests that are run through in all, in Python and in compiled code."""


@dataclass(frozen=True, slots=True)
class HostTreatment:
    """How hosts are treated."""

    rules: PolitenessRules
    apart: bool = False
    """Rest counts from the start of a request: see ``crawl_run.Requests``."""

    def pause(self, seconds: FloatArray, crawl_delay: FloatArray) -> FloatArray:
        """Seconds of rest after requests that took ``seconds``; ``crawl_delay`` is NaN where a host has none.

        The same as ``PolitenessRules.pause``, for many at once.
        """
        rules = self.rules
        asked = np.maximum(np.minimum(crawl_delay, rules.crawl_delay_cap), rules.shortest)
        own = np.clip(rules.factor * seconds, rules.shortest, rules.longest)
        return np.where(np.isnan(crawl_delay), own, asked)


@dataclass(frozen=True, slots=True)
class PlannedCrawl:
    """What is to be crawled. One entry per host."""

    pages: IntArray
    crawl_delay: FloatArray
    """Seconds that the host asks for between requests; NaN where it asks for nothing."""
    concurrency: int
    treatment: HostTreatment
    unheard: BoolArray | None = None
    """Hosts of which nobody knows what they will ask for; any of the others may be like them."""

    def __len__(self) -> int:
        return len(self.pages)

    def draw_delays(self, rng: np.random.Generator) -> FloatArray:
        """``crawl_delay``, with a guess for each host that is unheard of."""
        if self.unheard is None or not self.unheard.any() or self.unheard.all():
            return self.crawl_delay
        delay = self.crawl_delay.copy()
        delay[self.unheard] = rng.choice(self.crawl_delay[~self.unheard], int(self.unheard.sum()))
        return delay


@dataclass(frozen=True, slots=True)
class CrawlForecast:
    """How long it takes, in seconds."""

    seconds: float
    """The middle of what is possible."""
    low: float
    high: float
    """Ends of the interval."""
    longest: float
    """The longest host alone, in the middle; no number of threads makes the crawl shorter."""
    work: float
    """All download seconds over the threads, in the middle."""
    concurrency: int
    pages: float
    """Requests expected, those for pages found on the way included."""
    slowest: int
    """The host that most often took longest; -1 if there is nothing to do."""
    draws: FloatArray
    """All times that were drawn."""

    @property
    def useful_concurrency(self) -> float:
        """About as many as the crawl can use: with more, the longest host decides alone."""
        return self.concurrency * self.work / self.longest if self.longest > 0 else 0.0


def forecast(  # noqa: PLR0913 - what is crawled, what is known, and how it is asked
    crawl: PlannedCrawl,
    times: DownloadTimes,
    rng: np.random.Generator,
    *,
    growth: FrontierGrowth | None = None,
    order: Order = "turns",
    level: float = 0.9,
    draws: int = DRAWS,
) -> CrawlForecast:
    """Estimate the time until all is fetched. O(draws · requests · log), bounded to some two million requests."""
    total = int(crawl.pages.sum())
    if total == 0:
        return CrawlForecast(0.0, 0.0, 0.0, 0.0, 0.0, crawl.concurrency, 0.0, -1, np.zeros(1))
    expected = total + (float((growth.mean() * crawl.pages).sum()) if growth is not None else 0.0)
    whole = int(min(draws, max(_FEWEST, _MOST_REQUESTS[can_compile()] // max(expected, 1.0))))
    many = whole * expected > _MOST_REQUESTS[0]
    found = np.empty((4, whole))
    for place in range(whole):
        future = times.next_crawl(rng)
        requests = _requests(crawl, future, growth, order, rng)
        limit = bounds(requests, crawl.concurrency)
        found[:, place] = run(requests, crawl.concurrency, many=many), limit.longest, limit.work, limit.host
    drawn, longest, work, slowest = found
    if whole < min(draws, _ENOUGH):
        drawn, longest, work = _from_bounds(crawl, times, growth, found, draws, rng)
    middle = float(np.median(drawn))
    noisy = drawn * np.exp(_UNMODELLED * rng.standard_normal(len(drawn)))
    # Weibull's places leave room outside for the crawl itself, which is one more draw.
    ends = np.quantile(noisy, [0.5 - level / 2, 0.5 + level / 2], method="weibull")
    low, high = (middle * (min(max(end / middle, 1e-9), 1e9)) ** _WIDER for end in ends.tolist())
    low, high = min(low, middle), max(high, middle)
    return CrawlForecast(
        middle, low, high, float(np.median(longest)), float(np.median(work)), crawl.concurrency, expected,
        int(np.bincount(slowest.astype(np.int64)).argmax()), drawn,
    )  # fmt: skip


def _requests(
    crawl: PlannedCrawl, future: NextCrawl, growth: FrontierGrowth | None, order: Order, rng: np.random.Generator
) -> HostRequests:
    """One way in which the crawl may go."""
    pages = crawl.pages if growth is None else crawl.pages + growth.draw(crawl.pages, rng)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(pages)])
    host = np.repeat(np.arange(len(pages)), pages)
    seconds = future.seconds(host, rng)
    delay = crawl.draw_delays(rng)
    pause = crawl.treatment.pause(seconds, delay[host])
    place = np.arange(len(host)) - offsets[host]
    if order == "turns":
        rank = place + host / max(len(pages), 1)
    else:
        mean = future.mean()
        turn = crawl.treatment.pause(mean, delay) + (0.0 if crawl.treatment.apart else mean)
        rank = -(pages[host] - place) * turn[host]
    return HostRequests(offsets, rank, seconds, pause, crawl.treatment.apart)


def _from_bounds(  # noqa: PLR0913, PLR0917 - all that the forecast knows
    crawl: PlannedCrawl,
    times: DownloadTimes,
    growth: FrontierGrowth | None,
    found: FloatArray,
    draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Time, longest host and work of many crawls: bounds of whole hosts, times what running through added. O(hosts)."""
    stretch = rng.choice(found[0] / np.maximum(found[1], found[2]), draws)
    drawn = np.empty((3, draws))
    for place in range(draws):
        future, delay = times.next_crawl(rng), crawl.draw_delays(rng)
        pages = crawl.pages if growth is None else crawl.pages + growth.draw(crawl.pages, rng)
        turn, variance = _turns(crawl.treatment, future, delay)
        # A sum of many turns is normal.
        chain = pages * turn + np.sqrt(pages * variance) * rng.standard_normal(len(crawl))
        longest = float(np.where(pages > 0, chain, 0.0).max(initial=0.0))
        work = float((pages * future.mean()).sum()) / crawl.concurrency
        drawn[:, place] = max(longest, work) * stretch[place], longest, work
    return drawn


def _turns(treatment: HostTreatment, future: NextCrawl, delay: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the seconds from one request to the next one to the same host. O(hosts · nodes)."""
    times, failing = future.times, future.failing
    total = square = np.zeros(len(delay))
    nodes = times.shape[_EVERY // 2 :: _EVERY]
    for node in nodes.tolist():
        seconds = np.minimum(np.exp(future.middle + times.spread * node), times.limit)
        turn = treatment.pause(seconds, delay) + (0.0 if treatment.apart else seconds)
        total, square = total + turn / len(nodes), square + turn**2 / len(nodes)
    seconds = times.failure_mean()
    turn = treatment.pause(seconds, delay) + (0.0 if treatment.apart else seconds)
    mean = (1.0 - failing) * total + failing * turn
    return mean, np.maximum((1.0 - failing) * square + failing * turn**2 - mean**2, 0.0)


_EVERY = 16
"""Of the places of a distribution, averages take one in this many."""
