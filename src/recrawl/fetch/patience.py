"""How long a host asks to be left alone (RFC 9110, 10.2.3; conventions R4)."""

from __future__ import annotations

import re

from recrawl.model import Capture
from recrawl.time import DAY, from_http_date

_ASKING = (429, 503)
_SECONDS = re.compile(r"[0-9]{1,12}")
LONGEST = 30 * DAY
"""Most seconds that are granted at once; a host that wants more can ask again."""


def asked_patience(capture: Capture) -> float | None:
    r"""Seconds that a 429 or 503 asks us to wait, in seconds or as a date; ``None`` if it does not ask.

    >>> asked_patience(Capture("http://x/", 0.0, 503, b"HTTP/1.1 503 Busy\r\nRetry-After: 120\r\n\r\n"))
    120.0
    """
    text = capture.header("retry-after").strip() if capture.status in _ASKING else ""
    if not text:
        return None
    if _SECONDS.fullmatch(text):
        wait = float(text)
    else:
        until = from_http_date(text)
        if until is None:
            return None
        wait = until - capture.time
    return min(max(wait, 0.0), LONGEST)
