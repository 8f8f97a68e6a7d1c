r"""The rhythm of the week: people edit in working hours. One profile of 168 hours for each host (algorithms §5).

With A expected changes and E exposure in each hour of the week, w = (a + A)/(a + E), scaled to mean 1. Only gaps of at
most three days say anything about hours, and only where such gaps are usual does the profile matter: a host whose
median gap is longer keeps the neutral one. Within a piece of a gap the other factors count with their mean.
"""

from __future__ import annotations

import numpy as np

from recrawl.estimate.operational import OperationalTime
from recrawl.estimate.operational_learning import Expectation, Looks
from recrawl.estimate.operational_tables import HOURS, WeekTable, locate_hour
from recrawl.model import FloatArray, IntArray
from recrawl.time import DAY, HOUR

LONGEST = 3 * DAY
"""Gaps up to here tell hours apart; a host whose median gap is longer has no profile."""
STRENGTH = 5.0
"""Changes in an hour that outweigh the prior."""


def neutral(hosts: int) -> WeekTable:
    """Every hour like every other."""
    return WeekTable(np.ones((hosts, HOURS)))


def rhythmic(time: OperationalTime, looks: Looks) -> IntArray:
    """Hosts whose median gap is at most three days, ascending. O(looks log looks)."""
    host = time.host[time.cluster[looks.row]]
    order = np.lexsort((looks.end - looks.start, host))
    hosts, heads, counts = np.unique(host[order], return_index=True, return_counts=True)
    gap = (looks.end - looks.start)[order]
    return np.asarray(hosts[gap[heads + (counts - 1) // 2] <= LONGEST])


def fit_week(time: OperationalTime, looks: Looks, expected: Expectation) -> WeekTable:
    """One round of EM for the profiles of all hosts. O(pieces + hosts)."""
    held = time.week
    if held is None:
        msg = "looks must be expected under a week, be it a neutral one"
        raise ValueError(msg)
    hosts, pieces = len(held.hourly), expected.pieces
    host = time.host[time.cluster[expected.row]]
    span = held.between(host, pieces.start, pieces.end)
    short = (looks.end - looks.start)[pieces.gap] <= LONGEST
    short &= (span > 0) & np.isin(host, rhythmic(time, looks))
    rows = np.flatnonzero(short)
    host, start, end = host[rows], pieces.start[rows], pieces.end[rows]
    weight = expected.exposure[rows] / span[rows]
    exposure = _hours(hosts, host, start, end, weight)
    changes = _hours(hosts, host, start, end, weight * expected.found[rows]) * held.hourly
    hourly = (STRENGTH + changes) / (STRENGTH + exposure)
    return WeekTable(hourly / hourly.mean(axis=1, keepdims=True))


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
