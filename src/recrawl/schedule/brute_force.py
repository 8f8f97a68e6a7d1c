"""Brute force (HACS §III-B): every page at every round. It misses nothing that a weekly look can see, at any cost."""

from __future__ import annotations

from recrawl.schedule.by_interval import ByInterval
from recrawl.schedule.fixed_period import fixed_period
from recrawl.time import WEEK


def brute_force(*, period: float = WEEK) -> ByInterval:
    """Every page every ``period`` seconds: the paper's evaluation interval e, a week. It heeds no budget."""
    return fixed_period("brute-force", period)
