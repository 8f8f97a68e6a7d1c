r"""The rhythm of the week: people edit in working hours. One profile of 168 hours for each host (algorithms §5).

With A expected changes and E exposure in each hour of the week, w = (a + A)/(a + E), scaled to mean 1. Only gaps of at
most three days say anything about hours, and only where such gaps are usual does the profile matter: a host whose
median gap is longer keeps the neutral one. Within a piece of a gap the other factors count with their mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.estimate.operational import OperationalTime
from recrawl.estimate.operational_learning import Expectation, Looks
from recrawl.estimate.operational_tables import HOURS, WeekTable, locate_hour
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.time import DAY, HOUR

LONGEST = 3 * DAY
"""Gaps up to here tell hours apart; a host whose median gap is longer has no profile."""
STRENGTH = 5.0
"""Changes in an hour that outweigh the prior."""


@dataclass(slots=True)
class WeekCounts:
    """Changes and exposure of each host in each hour of the week. Mutable: looks are folded in."""

    rhythmic: BoolArray
    """Hosts that have a profile. Shape (hosts,)."""
    changes: FloatArray
    """Shape (hosts, 168)."""
    exposure: FloatArray

    @classmethod
    def of(cls, host: IntArray, gap: FloatArray, hosts: int) -> WeekCounts:
        """Nothing known. ``host[k]`` is the host of gap k: those with a short median gap may learn. O(n log n)."""
        order = np.lexsort((gap, host))
        found, heads, counts = np.unique(host[order], return_index=True, return_counts=True)
        rhythmic = np.zeros(hosts, dtype=np.bool_)
        rhythmic[found] = gap[order][heads + (counts - 1) // 2] <= LONGEST
        return cls(rhythmic, np.zeros((hosts, HOURS)), np.zeros((hosts, HOURS)))

    def table(self) -> WeekTable:
        """The profiles as they are known now, each of mean 1."""
        hourly = (STRENGTH + self.changes) / (STRENGTH + self.exposure)
        return WeekTable(hourly / hourly.mean(axis=1, keepdims=True))

    def add(self, time: OperationalTime, looks: Looks, expected: Expectation) -> None:
        """Fold in looks; ``time`` is the operational time under which they were expected. O(pieces + hosts)."""
        held, pieces = time.week, expected.pieces
        if held is None:
            msg = "looks must be expected under a week, be it a neutral one"
            raise ValueError(msg)
        host = time.host[time.cluster[expected.row]]
        span = held.between(host, pieces.start, pieces.end)
        short = (looks.end - looks.start)[pieces.gap] <= LONGEST
        rows = np.flatnonzero(short & (span > 0) & self.rhythmic[host])
        host, start, end = host[rows], pieces.start[rows], pieces.end[rows]
        weight = expected.exposure[rows] / span[rows]
        hosts = len(self.rhythmic)
        self.exposure += _hours(hosts, host, start, end, weight)
        self.changes += _hours(hosts, host, start, end, weight * expected.found[rows]) * held.hourly

    def clear(self) -> None:
        """Forget all looks: a new round of EM begins."""
        self.changes[:] = 0.0
        self.exposure[:] = 0.0


def _hours(hosts: int, host: IntArray, start: FloatArray, end: FloatArray, weight: FloatArray) -> FloatArray:
    """Σ weight · (seconds of the gap within the hour), by differences, over two weeks that are folded into one."""
    _, first, into = locate_hour(start)
    passed = into + (end - start)
    ahead = np.floor(passed / HOUR).astype(np.int64)
    last = first + ahead
    cell, cells = host * (2 * HOURS), hosts * 2 * HOURS
    out = np.bincount(cell + first, weight * np.minimum(end - start, HOUR - into), cells)
    crossing = np.flatnonzero(ahead)
    out += np.bincount((cell + last)[crossing], (weight * (passed - ahead * HOUR))[crossing], cells)
    rises = np.bincount((cell + first + 1)[crossing], weight[crossing], cells)
    rises -= np.bincount((cell + last)[crossing], weight[crossing], cells)
    whole = np.maximum(np.cumsum(rises.reshape(hosts, 2 * HOURS), axis=1), 0.0) * HOUR
    both = out.reshape(hosts, 2 * HOURS) + whole
    return np.asarray(both[:, :HOURS] + both[:, HOURS:])
