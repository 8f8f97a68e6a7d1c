"""Times and sizes as the pages of the dashboard say them."""

from __future__ import annotations

import math

from recrawl.show.html import when
from recrawl.time import DAY, format_duration

_YEARS = 9_000 * 365 * DAY
_UNIT = 1000


def moment(seconds: float | None) -> str:
    """A time to the minute; total.

    >>> moment(0.0), moment(math.inf), moment(None)
    ('1970-01-01 00:00', 'never', '–')
    """
    if seconds is None or math.isnan(seconds):
        return "–"
    if not -_YEARS / 9 < seconds < _YEARS / 2:
        return "never" if seconds > 0 else "–"
    return when(seconds)


def from_now(seconds: float | None, now: float) -> str:
    """How far a time lies ahead or behind.

    >>> from_now(160.0, 100.0), from_now(0.0, 7200.0), from_now(math.inf, 0.0), from_now(100.2, 100.0)
    ('in 1 min', '2 h ago', 'never', 'now')
    """
    if seconds is None or not math.isfinite(seconds):
        return moment(seconds)
    if abs(seconds - now) < 1.0:
        return "now"
    return f"in {format_duration(seconds - now)}" if seconds > now else f"{format_duration(now - seconds)} ago"


def due_in(seconds: float | None, now: float) -> str:
    """When something is due, or for how long it has been.

    >>> due_in(160.0, 100.0), due_in(0.0, 7200.0), due_in(math.inf, 0.0)
    ('in 1 min', '2 h late', 'never')
    """
    if seconds is None or not math.isfinite(seconds) or seconds > now - 1.0:
        return from_now(seconds, now)
    return f"{format_duration(now - seconds)} late"


def size(count: float) -> str:
    """Bytes as people write them.

    >>> size(512), size(3_400_000)
    ('512 B', '3.4 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < _UNIT:
            return f"{count:.3g} {unit}"
        count /= _UNIT
    return f"{count:.3g} TB"
