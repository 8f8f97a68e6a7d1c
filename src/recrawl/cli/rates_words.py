"""Rates as people say them: "about every 12 days, 9–17"."""

from __future__ import annotations

import math

from recrawl.time import DAY, HOUR, MINUTE

_UNITS = ((365.25 * DAY, "years"), (DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes"), (1.0, "seconds"))
_COMPARABLE = (0.1, 1_000.0)
"""Numbers of one unit that are read easily side by side."""

_FOREVER = 1_000 * 365.25 * DAY
"""Seconds beyond which nobody can mean it: a belief that knows next to nothing has no upper end."""


def in_words(every: float, shortest: float, longest: float) -> str:
    """How often something changes: the middle estimate of the time between changes and its interval, in seconds.

    >>> in_words(12 * DAY, 9 * DAY, 17 * DAY), in_words(2.5 * HOUR, 40 * MINUTE, 9 * HOUR)
    ('about every 12 days, 9–17', 'about every 2.5 hours, 0.67–9')
    >>> in_words(3 * DAY, 20 * MINUTE, 9 * 365.25 * DAY)
    'about every 3 days, 20 minutes – 9 years'
    >>> in_words(15 * HOUR, 4.0, 1e19), in_words(1e15, 2 * DAY, 1e19)
    ('about every 15 hours, 4 seconds or more', 'hardly ever; less often than every 2 days')
    >>> in_words(math.inf, 40 * DAY, math.inf), in_words(DAY, DAY, DAY)
    ('not seen to change; less often than every 40 days', 'about every 24 hours')
    >>> in_words(math.nan, math.nan, math.nan)
    'not known'
    """
    if math.isnan(every):
        return "not known"
    if every >= _FOREVER:
        known = math.isfinite(shortest) and shortest > 0
        middle = "not seen to change" if math.isinf(every) else "hardly ever"
        return middle + (f"; less often than every {_amount(shortest)}" if known else "")
    middle = f"about every {_amount(every)}"
    if shortest == every == longest:
        return middle
    unit = _unit(every)[0]
    least, most = _COMPARABLE
    if longest >= _FOREVER:
        return f"{middle}, {_amount(shortest)} or more"
    if least <= shortest / unit and longest / unit < most:
        return f"{middle}, {_number(shortest / unit)}–{_number(longest / unit)}"
    return f"{middle}, {_amount(shortest)} – {_amount(longest)}"


def _amount(seconds: float) -> str:
    unit, name = _unit(seconds)
    shown = _number(seconds / unit)
    return f"{shown} {name.removesuffix('s') if shown == '1' else name}"


def _unit(seconds: float) -> tuple[float, str]:
    """The largest unit of which there are two."""
    return next((entry for entry in _UNITS if seconds >= 2 * entry[0]), _UNITS[-1])


def _number(value: float) -> str:
    """Two leading digits, never an exponent."""
    digits = max(0, 1 - math.floor(math.log10(value))) if value > 0 else 0
    shown = f"{float(f'{value:.2g}'):,.{digits}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
