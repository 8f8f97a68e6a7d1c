"""Times as archives are asked for them: digits in addresses and queries, and dates in headers."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime

from recrawl.formats.dates import w3c_time
from recrawl.show.timetravel.refusal import RefusalError
from recrawl.time import from_http_date

_FULL = 14
_EARLIEST, _LATEST = "00010101000000", "99991231235959"
_HTTP_DATE = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")


def accepted(header: str) -> float:
    """The moment in ``Accept-Datetime``, which has one form only (conventions M1).

    >>> accepted("Thu, 31 May 2007 20:35:00 GMT")
    1180643700.0
    """
    text = header.strip()
    moment = from_http_date(text) if _HTTP_DATE.fullmatch(text) else None
    if moment is None:
        raise RefusalError(
            f"Accept-Datetime is {header[:80]!r}, which is no date of HTTP; one is: Thu, 31 May 2007 20:35:00 GMT"
        )
    return moment


def begin_of(digits: str) -> float:
    """The first instant of a time of 1 to 14 digits, ``yyyyMMddHHmmss`` or the beginning of it (conventions A1).

    >>> begin_of("2024") == begin_of("20240101000000")
    True
    """
    return _moment(_whole(digits, _EARLIEST))


def end_of(digits: str) -> float:
    """The last second of such a time. Months have the days that they have.

    >>> end_of("202402") == end_of("20240229235959")
    True
    """
    whole = _whole(digits, _LATEST)
    if len(digits) <= len("yyyyMM"):
        month = min(int(whole[4:6]), 12)
        whole = f"{whole[:4]}{month:02}{calendar.monthrange(max(int(whole[:4]), 1), max(month, 1))[1]:02}{whole[8:]}"
    return _moment(whole)


def moment_of(text: str) -> float:
    """A moment as people and programs write one: 1 to 14 digits, a date of HTTP, or one of ISO 8601.

    >>> moment_of("2024") == moment_of("2024-01-01") == moment_of("Mon, 01 Jan 2024 00:00:00 GMT")
    True
    """
    if text.isascii() and text.isdigit():
        return begin_of(text)
    found = w3c_time(text)
    if found is None:
        raise RefusalError(f"{text[:80]!r} is no time; write 1 to 14 digits such as 20240131, or 2024-01-31T12:00:00Z.")
    return found


def _whole(digits: str, pattern: str) -> str:
    if not (digits.isascii() and digits.isdigit() and 1 <= len(digits) <= _FULL):
        raise RefusalError(f"{digits[:80]!r} is no time; write 1 to 14 digits, yyyyMMddHHmmss or the beginning of it.")
    return digits + pattern[len(digits) :]


def _moment(whole: str) -> float:
    try:
        return datetime.strptime(whole, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise RefusalError(f"{whole} is no time: there is no such day or hour.") from error
