"""What the status of a visit means, in words."""

from __future__ import annotations

from http import HTTPStatus

from recrawl.crawl.visitor import NO_ROBOTS, REFUSED_BY_ROBOTS
from recrawl.model import failures

_WORDS = {
    0: "no answer",
    failures.NO_NAME: "no such name",
    failures.NO_CONNECTION: "connection refused",
    failures.BROKEN_OFF: "broken off, or not HTTP",
    failures.TOO_SLOW: "no answer in time",
    failures.OUR_FAULT: "a bug of recrawl",
    failures.NO_NAME_SERVER: "no word from DNS",
    failures.NO_URL: "not a URL to be fetched",
    failures.NO_TRUST: "TLS failed",
    failures.NO_ROUTE: "no way to the address",
    failures.EMPTY: "closed without a byte",
    failures.NOT_ALLOWED: "address not allowed",
    NO_ROBOTS: "robots.txt cannot be had",
    REFUSED_BY_ROBOTS: "robots.txt forbids it",
}


def status_words(status: int) -> str:
    """The status of a visit: HTTP's own words, or what went wrong where there is none (conventions L3).

    >>> status_words(503), status_words(-4), status_words(299)
    ('Service Unavailable', 'no answer in time', 'status 299')
    """
    if status in _WORDS:
        return _WORDS[status]
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"status {status}"


def failure_words(status: int) -> str:
    """The status of a visit that failed. Where it is that of a success, the answer broke off in its body.

    >>> failure_words(503), failure_words(200)
    ('Service Unavailable', 'the answer breaks off')
    """
    return "the answer breaks off" if 200 <= status < 400 else status_words(status)  # noqa: PLR2004 - success, redirects
