"""The time to fetch a set of URLs: the heuristic of paper 001 §5, an exact simulation, and a forecast with an interval.

**The heuristic** (readings 001.7 and 001.8). A domain with ``docs`` documents of c seconds each and a delay of d
seconds between requests occupies ⌊c/d⌋ threads (at least 1, at most ``docs``) and takes

    docs·c/threads + d·(threads − 1).

Domains share bins as long as the longest of them: each, by falling number of threads, goes to the least loaded bin it
fits into, or opens a new one. A bin needs the threads of its widest domain. While all bins together need more threads
than there are, domains may use one thread fewer, and all is packed again. When one thread each is still too much, the
domains are assigned to the available threads, longest first.

**The simulation** runs request by request: when has the last response arrived if T threads fetch as politeness allows?
Each host is a chain of requests. Among the hosts that may receive a request, rank decides, as in ``schedule.frontier``.
Let L be the longest chain, pauses included, and W all download seconds. Whatever the order,

    max(L, W/T) ≤ time ≤ L + W/T:

no crawl finishes before the longest chain or before all work is done; and the host that finishes last waited only while
all T threads were busy, which they are for W/T at most. Both bounds fall with T and grow with every page and pause. The
time itself lies between them, but need not fall with T (Graham's anomalies of list scheduling).

**The forecast** simulates the crawl many times, with download times, failures and newly found pages drawn from past
crawls (:mod:`recrawl.plan.download_times`, and the growth model below), and with the threads and pauses of the crawler.
The median is the estimate. The interval is slightly wider than the central 90 % of the simulations. For a very large
crawl, a few simulations give the ratio to the lower bound, which is then applied to many draws of the bound.

A frontier grows while a list of URLs is crawled. A host with s given URLs adds x more, Poisson with mean γ_h·ε·s. γ_h
varies over hosts, and ε, with mean 1 and variance 1/k, over crawls. All are Gamma distributed, fitted by moments; the
history of a host has as much weight as ε allows.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.compiled import can_compile, compiled
from recrawl.plan.download_times import DownloadTimes, NextCrawl
from recrawl.schedule.politeness.host_politeness import PolitenessRules


@dataclass(frozen=True, slots=True)
class HostRequests:
    """What is asked of each host, in this order. Host h has the rows ``offsets[h]:offsets[h + 1]``."""

    offsets: IntArray
    rank: FloatArray
    """Of all that may be asked for, the lowest is asked for first."""
    seconds: FloatArray
    """How long each answer takes."""
    pause: FloatArray
    """Seconds of rest of the host after each request."""
    apart: bool = False
    """Rest counts from the start of a request, so that several are under way at one host (paper 001 §5); else from
    its end, and a host is asked one request at a time (``schedule.politeness``)."""

    def __len__(self) -> int:
        return len(self.seconds)


@dataclass(frozen=True, slots=True)
class CrawlBounds:
    """What no crawl can beat, in seconds."""

    longest: float
    """The longest chain of one host, its rests included: L."""
    work: float
    """All download seconds over the threads: W/T."""
    host: int
    """Whose chain it is; -1 if there is nothing to do."""

    @property
    def least(self) -> float:
        """No crawl is shorter."""
        return max(self.longest, self.work)

    @property
    def most(self) -> float:
        """No crawl that leaves no thread idle without need is longer."""
        return self.longest + self.work


def run(requests: HostRequests, concurrency: int, *, many: bool = False) -> float:
    """Seconds until the last answer. O(n log n).

    With ``many`` it is done in compiled code where numba is installed: ten times as fast, once that is compiled.
    """
    _check(concurrency)
    if not len(requests):
        return 0.0
    kernel = _run if many else _run.__wrapped__  # type: ignore[attr-defined]  # the plain function
    found = kernel(requests.offsets, requests.rank, requests.seconds, requests.pause, concurrency, requests.apart)
    return float(found)


def bounds(requests: HostRequests, concurrency: int) -> CrawlBounds:
    """The longest chain, and the work. O(n).

    >>> two = HostRequests(np.array([0, 2, 3]), np.arange(3.0), np.array([1.0, 1.0, 7.0]), np.array([4.0, 4.0, 4.0]))
    >>> bounds(two, 3), run(two, 3), run(two, 1)
    (CrawlBounds(longest=7.0, work=3.0, host=1), 7.0, 9.0)
    """
    _check(concurrency)
    chain = chains(requests)
    if not len(requests):
        return CrawlBounds(0.0, 0.0, -1)
    host = int(chain.argmax())
    return CrawlBounds(float(chain[host]), float(requests.seconds.sum()) / concurrency, host)


def chains(requests: HostRequests) -> FloatArray:
    """How long each host takes if there is always a thread for it. O(n)."""
    counts = np.diff(requests.offsets)
    step = requests.pause if requests.apart else requests.pause + requests.seconds
    before = np.concatenate([np.zeros(1), np.cumsum(step)])
    end = before[:-1] + requests.seconds
    chain = np.zeros(len(counts))
    filled = np.flatnonzero(counts)
    if len(filled):
        first = requests.offsets[filled]
        chain[filled] = np.maximum.reduceat(end, first) - before[first]
    return chain


def _check(concurrency: int) -> None:
    if concurrency < 1:
        raise ConfigError(f"Nothing can be fetched with a concurrency of {concurrency}.", "Give 1 or more.")


@compiled
def _run(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    offsets: IntArray, rank: FloatArray, seconds: FloatArray, pause: FloatArray, concurrency: int, apart: bool
) -> float:
    hosts = len(offsets) - 1
    following = offsets[:-1].copy()
    running, waiting, ready = [(0.0, -1)], [(0.0, -1)], [(0.0, -1)]
    running.pop()
    waiting.pop()
    ready.pop()
    for host in range(hosts):
        if following[host] < offsets[host + 1]:
            ready.append((rank[following[host]], host))  # noqa: PERF401 - a list that compiled code can type
    heapq.heapify(ready)
    now = 0.0
    while running or ready or waiting:
        while waiting and waiting[0][0] <= now:
            host = heapq.heappop(waiting)[1]
            heapq.heappush(ready, (rank[following[host]], host))
        while ready and len(running) < concurrency:
            host = heapq.heappop(ready)[1]
            row = following[host]
            following[host] += 1
            heapq.heappush(running, (now + seconds[row], host))
            if apart and following[host] < offsets[host + 1]:
                heapq.heappush(waiting, (now + pause[row], host))
        if waiting and len(running) < concurrency and (not running or waiting[0][0] < running[0][0]):
            now = max(now, waiting[0][0])
        elif running:
            now, host = heapq.heappop(running)
            if not apart and following[host] < offsets[host + 1]:
                heapq.heappush(waiting, (now + pause[following[host] - 1], host))
    return now


DEFAULT_SECONDS = 2.0
"""Download time of a document from a domain never seen (paper 001 §5)."""
DEFAULT_DELAY = 1.0
"""Delay of a domain never seen (paper 001 §5)."""


@dataclass(frozen=True, slots=True)
class Domains:
    """What is to be fetched, by domain, as columns."""

    name: Sequence[str]
    """Breaks ties."""
    docs: IntArray
    seconds: FloatArray
    """Average seconds a document takes: c."""
    delay: FloatArray
    """Seconds between two requests: d."""

    def __len__(self) -> int:
        return len(self.docs)


@dataclass(frozen=True, slots=True)
class CrawlTime:
    """The estimate, and how it came about."""

    seconds: float
    concurrency: int
    """Requests at once that are made."""
    cap: int
    """Most threads that one domain was allowed."""
    bins: int


def estimate(domains: Domains, concurrency: int, *, keep_delay: bool = False) -> CrawlTime:
    """Seconds until all documents are fetched, ``concurrency`` at once. O(D log D) a round, ≤ max c/d rounds.

    As printed, a domain whose documents arrive faster than its delay (c < d) is thought not to wait; with
    ``keep_delay`` its requests are d seconds apart as they must be, so it takes at least (docs − 1)·d + c.

    >>> two = Domains(["d0", "d1"], np.array([25, 83]), np.array([2.32, 1.53]), np.array([1.12, 0.76]))
    >>> found = estimate(two, 3)
    >>> round(found.seconds, 2), found.concurrency, found.cap, found.bins
    (126.99, 2, 1, 2)
    """
    if concurrency < 1:
        raise ConfigError(f"Nothing can be fetched with a concurrency of {concurrency}.", "Give 1 or more.")
    wide = _threads(domains)
    cap = int(wide.max(initial=1))
    while True:
        threads = np.minimum(wide, cap)
        seconds = _seconds(domains, threads, keep_delay=keep_delay)
        rows = _order(domains, threads, seconds)
        widths = _pack(threads[rows].tolist(), seconds[rows].tolist())
        if sum(widths) <= concurrency:
            return CrawlTime(float(seconds.max(initial=0.0)), sum(widths), cap, len(widths))
        if cap == 1:
            longest_first = np.sort(seconds)[::-1].tolist()
            return CrawlTime(_lay_out(longest_first, concurrency), concurrency, cap, concurrency)
        cap -= 1


def _threads(domains: Domains) -> IntArray:
    with np.errstate(divide="ignore"):
        useful = np.floor(np.where(domains.delay > 0, domains.seconds / domains.delay, np.inf))
    return np.maximum(np.minimum(useful, domains.docs), 1).astype(np.int64)


def _seconds(domains: Domains, threads: IntArray, *, keep_delay: bool) -> FloatArray:
    working = domains.docs * domains.seconds / threads + domains.delay * (threads - 1)
    if keep_delay:
        waiting = (domains.docs - 1) * domains.delay + domains.seconds
        working = np.maximum(working, waiting)
    return np.where(domains.docs > 0, working, 0.0)


def _order(domains: Domains, threads: IntArray, seconds: FloatArray) -> IntArray:
    """By falling threads, then falling time, then name; domains without documents left out."""
    rows = np.lexsort((np.asarray(domains.name, dtype=np.str_), -seconds, -threads))
    return np.asarray(rows[domains.docs[rows] > 0])


def _pack(threads: list[int], seconds: list[float]) -> list[int]:
    """Width, in threads, of each bin. If any bin has room the least loaded one has, so a heap finds it."""
    size = max(seconds, default=0.0)
    bins: list[tuple[float, int]] = []
    widths: list[int] = []
    for width, time in zip(threads, seconds, strict=True):
        if bins and bins[0][0] + time <= size:
            load, number = heapq.heappop(bins)
        else:
            load, number = 0.0, len(widths)
            widths.append(0)
        heapq.heappush(bins, (load + time, number))
        widths[number] = max(widths[number], width)
    return widths


def _lay_out(longest_first: list[float], threads: int) -> float:
    loads = [0.0] * threads
    for time in longest_first:
        heapq.heapreplace(loads, loads[0] + time)
    return max(loads)


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
    """Hosts whose pauses are not known; they are drawn from those of the other hosts."""

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
