"""Whether a host is well: what one request says about all its pages."""

from __future__ import annotations

from recrawl.crawl.target import Result, RulesRead, TurnedAway, Visited
from recrawl.crawl.visitor import NO_ROBOTS, REFUSED_BY_ROBOTS

_OVERLOADED = (429, 502, 503, 504)


def is_well(result: Result) -> bool | None:
    """False if the host gave no answer or one that speaks of overload, ``None`` if the result says nothing about it.

    A 500 is an answer: it speaks of one page.
    """
    if isinstance(result, RulesRead):
        return result.rules.available
    if isinstance(result, Visited) and result.capture is None:
        return False if result.visit.status == NO_ROBOTS else None
    if isinstance(result, TurnedAway) or result.capture is None or result.capture.failure == REFUSED_BY_ROBOTS:
        return None
    return result.capture.status > 0 and result.capture.status not in _OVERLOADED
