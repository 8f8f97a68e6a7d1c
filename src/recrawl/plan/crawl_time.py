"""How long a set of URLs takes with so many threads: the heuristic of paper 001 §5, with readings 001.7 and 001.8.

A domain with ``docs`` documents of c seconds each and a delay of d seconds between requests keeps ⌊c/d⌋ threads busy
(at least 1, at most ``docs``) and takes

    docs·c/threads + d·(threads − 1).

Domains share bins as long as the longest of them: each, by falling number of threads, goes to the least loaded bin it
fits into, or opens a new one. A bin needs the threads of its widest domain. While all bins together need more threads
than there are, domains may use one thread fewer, and all is packed again. When one thread each is still too much, the
domains are laid out on the threads there are, longest first.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import FloatArray, IntArray

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
