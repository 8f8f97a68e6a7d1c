"""Parses dates of sitemaps and feeds, also in invalid notations that occur."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from recrawl.time import FIRST_SECOND, LAST_SECOND, epoch_seconds, from_http_date

_DATE = re.compile(
    r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2})(?:[Tt\s]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?\s*(.*))?)?)?",
    re.ASCII,
)
_COMMON = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
"""What nearly all dates look like, and the standard library reads fastest."""
_ZONE = re.compile(r"([+-])(\d{2}):?(\d{2})?", re.ASCII)
_UTC = frozenset({"", "z", "utc", "gmt"})
_NAMED_MONTH = re.compile(r"\d.*[A-Za-z]{3}|[A-Za-z]{3}.*\d", re.ASCII)
_HTTP = re.compile(r"[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT", re.ASCII)
"""The one form that HTTP allows, read without the mail library, which takes thrice the time."""
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: at for at, name in enumerate(_NAMES, start=1)}
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T?(\d{2})(\d{2})(\d{2}))?", re.ASCII)
_MICROS = 6
"""Digits of a second that a datetime keeps."""


def w3c_time(text: str) -> float | None:
    """Seconds since the epoch of a W3C date of any precision, in UTC if it names no zone; ``None`` if it is none.

    Common mistakes are read as they are meant: a blank for the T, single digits, slashes, no colon in the zone,
    digits only, or a date as in mails.

    >>> w3c_time("2026-11"), w3c_time("2026-11-15T09:14:07+01:00"), w3c_time("yesterday")
    (1793491200.0, 1794730447.0, None)
    >>> w3c_time("2026-11-15 09:14 +0100") == w3c_time("Sun, 15 Nov 2026 08:14:00 GMT")
    True
    >>> w3c_time("Thu, 05 Jan 17 13:34:52 +0100")
    1483619692.0
    """
    text = text.strip()
    if _COMMON.fullmatch(text):
        return _iso(text)
    try:
        if text[:1].isalpha():
            return _mail(text)
        found = _DATE.fullmatch(text)
        if found is None:
            return _compact(text) if text.isdigit() or "T" in text[8:9] else _mail(text)
        year, month, day, hour, minute, second, fraction, zone = found.groups()
        shift = _shift(zone or "")
        if shift is None:
            return None
        moment = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
        )
        micros = int((fraction or "0")[:_MICROS].ljust(_MICROS, "0"))
        when = moment.replace(microsecond=micros).timestamp() - shift
        return when if FIRST_SECOND <= when < LAST_SECOND + 1 else None
    except (ValueError, OverflowError):
        return None


def _iso(text: str) -> float | None:
    try:
        return epoch_seconds(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def _shift(zone: str) -> int | None:
    """Seconds that a zone is ahead of UTC; ``None`` if it is no zone."""
    if zone.strip().lower() in _UTC:
        return 0
    found = _ZONE.fullmatch(zone.strip())
    if found is None:
        return None
    seconds = int(found[2]) * 3600 + int(found[3] or 0) * 60
    return -seconds if found[1] == "-" else seconds


def _compact(text: str) -> float | None:
    found = _COMPACT.fullmatch(text.rstrip("Zz"))
    if found is None:
        return None
    return datetime(*(int(part or 0) for part in found.groups()), tzinfo=UTC).timestamp()  # type: ignore[arg-type, misc] # six numbers


def _mail(text: str) -> float | None:
    found = _HTTP.fullmatch(text)
    if found is None or found[2] not in _MONTHS:
        return from_http_date(text) if _NAMED_MONTH.search(text) else None
    day, month, year, hour, minute, second = found.groups()
    moment = datetime(int(year), _MONTHS[month], int(day), int(hour), int(minute), int(second), tzinfo=UTC)
    return moment.timestamp()
