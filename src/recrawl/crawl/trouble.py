"""Whether a host is well: what one request says about all its pages."""

from __future__ import annotations

from recrawl.crawl.target import ErrandDone, Result, RulesRead, TurnedAway

_OVERLOADED = (429, 502, 503, 504)


def is_well(result: Result) -> bool | None:
    """False if the host gave no answer or one that speaks of overload, ``None`` if the result says nothing about it.

    A 500 is an answer: it speaks of one page.
    """
    if isinstance(result, RulesRead):
        return result.rules.available if result.asked else None
    asked_nothing = isinstance(result, TurnedAway) or (isinstance(result, ErrandDone) and not result.asked)
    if asked_nothing or result.capture is None:
        return None
    return result.capture.status > 0 and result.capture.status not in _OVERLOADED
