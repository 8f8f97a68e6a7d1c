"""The time to fetch a set of URLs with a number of threads: the heuristic of paper 001 §5, and an exact simulation.

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
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import FloatArray, IntArray
from recrawl.model.compiled import compiled


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
