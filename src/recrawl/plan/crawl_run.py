r"""A crawl, request by request: when the last answer has arrived if T threads fetch as politeness allows.

Each host is a chain of requests. Who is served first of the hosts that may be asked is a matter of rank, as in
``schedule.frontier``. Let L be the longest chain, rests included, and W all download seconds. Whatever the order,

    max(L, W/T) ≤ time ≤ L + W/T:

nobody can finish before the longest chain or before all work is done; and the host that finishes last was kept waiting
only while all T threads were busy, which they are for W/T at most. Both ends fall with T and grow with every page and
rest. The time itself lies between them, but need not fall with T (Graham's anomalies of list scheduling).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import FloatArray, IntArray
from recrawl.model.compiled import compiled


@dataclass(frozen=True, slots=True)
class Requests:
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
class Bounds:
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


def run(requests: Requests, concurrency: int, *, many: bool = False) -> float:
    """Seconds until the last answer. O(n log n).

    With ``many`` it is done in machine code where numba is installed: ten times as fast, once that is compiled.
    """
    _check(concurrency)
    if not len(requests):
        return 0.0
    kernel = _run if many else _run.__wrapped__  # type: ignore[attr-defined]  # the plain function
    found = kernel(requests.offsets, requests.rank, requests.seconds, requests.pause, concurrency, requests.apart)
    return float(found)


def bounds(requests: Requests, concurrency: int) -> Bounds:
    """The longest chain, and the work. O(n).

    >>> two = Requests(np.array([0, 2, 3]), np.arange(3.0), np.array([1.0, 1.0, 7.0]), np.array([4.0, 4.0, 4.0]))
    >>> bounds(two, 3), run(two, 3), run(two, 1)
    (Bounds(longest=7.0, work=3.0, host=1), 7.0, 9.0)
    """
    _check(concurrency)
    chain = chains(requests)
    if not len(requests):
        return Bounds(0.0, 0.0, -1)
    host = int(chain.argmax())
    return Bounds(float(chain[host]), float(requests.seconds.sum()) / concurrency, host)


def chains(requests: Requests) -> FloatArray:
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
            ready.append((rank[following[host]], host))  # noqa: PERF401 - a list that machine code can type
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
