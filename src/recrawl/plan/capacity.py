r"""What the hosts and the crawler can bear, whatever the budget says.

A host is asked one request at a time, each taking ``duration`` seconds and followed by ``pause`` seconds of rest
(``schedule.politeness``): at most 1/(pause + duration) visits per second. W workers bear Σ rate·duration ≤ W.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Hosts:
    """Hosts as columns."""

    pages: IntArray
    """Pages to keep up with."""
    pause: FloatArray
    """Seconds of rest after each answer."""
    duration: FloatArray
    """Seconds an answer takes."""
    asked: FloatArray
    """Visits per second that are wanted."""

    def __len__(self) -> int:
        return len(self.pages)


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is possible."""

    round_seconds: float
    """No round of one visit to every page is shorter than this."""
    limit: FloatArray
    """Most visits per second that politeness allows each host."""
    too_slow: BoolArray
    """Hosts that cannot keep up with what is asked of them."""
    served: float
    """Visits per second that remain of what is asked when each host gets at most its limit, workers aside."""
    workers_needed: float
    """Requests in flight, on average, at that rate."""
    largest_budget: float
    """Most visits per second that all hosts and the workers together can bear: no budget above it can be spent."""


def capacity(hosts: Hosts, workers: int) -> Capacity:
    """Judge what is asked of the hosts. O(hosts log hosts).

    >>> two = Hosts(np.array([100, 10]), np.array([9.0, 9.0]), np.array([1.0, 1.0]), np.array([0.2, 0.05]))
    >>> found = capacity(two, workers=4)
    >>> found.round_seconds, found.too_slow.tolist(), round(found.served, 3), found.largest_budget
    (991.0, [True, False], 0.15, 0.2)
    """
    if workers < 1:
        raise ConfigError(f"Nothing can be fetched by {workers} workers.", "Give 1 or more.")
    turn = hosts.pause + hosts.duration
    with np.errstate(divide="ignore"):
        limit = np.where(hosts.pages > 0, 1.0 / turn, 0.0)
    slowest = np.where(hosts.pages > 0, hosts.pages * turn - hosts.pause, 0.0).max(initial=0.0)
    work = float((hosts.pages * hosts.duration).sum()) / workers
    served = np.minimum(hosts.asked, limit)
    return Capacity(
        round_seconds=float(max(slowest, work)),
        limit=limit,
        too_slow=hosts.asked > limit,
        served=float(served.sum()),
        workers_needed=float((served * hosts.duration).sum()),
        largest_budget=_most(limit, hosts.duration, workers),
    )


def _most(limit: FloatArray, duration: FloatArray, workers: int) -> float:
    """The largest Σ rate with rate ≤ limit and Σ rate·duration ≤ workers: quick hosts first."""
    order = np.argsort(duration, kind="stable")
    load = limit[order] * duration[order]
    left = workers - (np.cumsum(load) - load)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(load > 0, np.clip(left / load, 0.0, 1.0), 1.0)
    return float((limit[order] * share).sum())
