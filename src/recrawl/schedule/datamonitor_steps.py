"""How far the rules of datamonitor move an interval (datamonitor §4.1): the steps that several of them share.

"Frequency" is an interval throughout (reading 001.1). A month is 30 days; intervals stay between 1 and 180 days and
start at 7 days, which the paper does not give.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from recrawl.model import FloatArray
from recrawl.time import DAY, WEEK

SHORTEST = DAY
START = WEEK
MONTH = 30 * DAY
LONGEST = 180 * DAY

FASTER: Mapping[float, float] = MappingProxyType({0.6: 1.5, 0.75: 2.0, 0.9: 3.0})
"""Share of changes above which the interval is divided, and by what; the last that holds counts."""
SLOWER: Mapping[float, float] = MappingProxyType({0.4: 1.5, 0.25: 2.0, 0.1: 3.0})
"""Share of changes below which the interval is multiplied, and by what."""


def by_ratio(interval: FloatArray, ratio: FloatArray) -> FloatArray:
    """The next interval after changes at this share (or probability) of looks; NaN keeps it. Seconds.

    >>> (by_ratio(np.full(4, 12 * DAY), np.array([0.95, 0.7, 0.5, 0.0])) / DAY).tolist()
    [4.0, 8.0, 12.0, 36.0]
    """
    divisor = np.ones(len(interval))
    for above, factor in FASTER.items():
        divisor = np.where(ratio > above, factor, divisor)
    for below, factor in SLOWER.items():
        divisor = np.where(ratio < below, 1.0 / factor, divisor)
    return within(interval / divisor)


def shorter(interval: FloatArray) -> FloatArray:
    """The next interval after nothing but changes: two thirds beyond a month, half up to it (reading 001.3)."""
    return within(interval / np.where(interval > MONTH, 1.5, 2.0))


def longer(interval: FloatArray) -> FloatArray:
    """The next interval after no change: half as much again below a month, double from there on (reading 001.3)."""
    return within(interval * np.where(interval < MONTH, 1.5, 2.0))


def within(interval: FloatArray) -> FloatArray:
    """Kept between 1 and 180 days."""
    return np.clip(interval, SHORTEST, LONGEST)


def start_of(start: float | None) -> float:
    """The start that was asked for, or the usual one until the budget sets it."""
    return START if start is None else start
