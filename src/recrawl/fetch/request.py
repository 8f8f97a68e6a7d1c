"""The fetch request: a URL, and the validators of its last version; and the Fetcher protocol."""

from __future__ import annotations

import math
import re
from typing import Protocol, runtime_checkable

from recrawl.errors import ConfigError
from recrawl.model import Capture
from recrawl.model.arrays import plain_value

_CONTACT = re.compile(r"https?://[^\s/]+|[^\s@<>()]+@[^\s@<>()]+\.[^\s@<>()]+")
_VISIBLE = re.compile(r"[\x20-\x7e]+")


@plain_value
class FetchRequest:
    """One request; with validators it is conditional, and the server may answer 304."""

    url: str
    etag: str = ""
    """As the server wrote it, with quotes and ``W/``."""
    last_modified: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    """Additional headers, such as ``Accept-Datetime``."""
    accept: str = ""
    """Media types wanted; empty for the default of pages."""
    body: bytes = b""
    """Sent by POST, as a form; empty for GET."""
    most: int = 0
    """Maximum bytes of body; 0 for the general limit."""
    not_after: float = math.inf
    """When it must be sent at the latest, by ``Clock.elapsed`` of the fetcher's clock in seconds. The lease of the page
    may be another worker's afterwards, since this process may have been suspended."""


class TooLateError(Exception):
    """A request that several belong to could not be sent by its ``not_after``."""

    def __init__(self, *, asked: bool) -> None:
        """``asked``: whether an earlier one of them was sent."""
        super().__init__("it was too late to send a request")
        self.asked = asked


@runtime_checkable
class Fetcher(Protocol):
    """Carries out single requests. The built-in one speaks HTTP (:mod:`recrawl.fetch.http.http_fetcher`).

    The caller applies robots.txt and the pauses of the host before each request; a fetcher never retries, never follows
    a redirect, and sends nothing that it was not asked for. Many requests run at once on one event loop. Times are
    seconds since the epoch by the clock it was given, durations seconds.

    Every implementation passes :class:`recrawl.testing.FetcherConformance`. See
    :mod:`recrawl.fetch.http.http_fetcher` for how packages register one.
    """

    async def fetch(self, request: FetchRequest) -> Capture:
        """Ask once and return the answer, whatever its status.

        What goes wrong on the way is a capture with status 0, the reason in ``error`` and a Heritrix code in
        ``failure``. A body beyond the limits is cut: ``truncated`` is ``length`` or ``time``. The bytes are as
        received, with their content encoding. A request is not sent after its ``not_after``, which is compared right
        before, when there is a connection: the failure is ``TOO_LATE`` then. It raises nothing but what cancelling
        raises. O(bytes of the answer).
        """
        ...


@plain_value
class FetchedPage:
    """The answer of a page and the answers of what was loaded with it."""

    capture: Capture
    """The page itself."""
    requisites: tuple[Capture, ...] = ()
    """Further answers, such as images and scripts that a browser loaded. Archived with the page; not visits."""


@runtime_checkable
class PageFetcher(Fetcher, Protocol):
    """A fetcher whose visit of a page yields several captures, as a browser's does.

    Pages are fetched by ``fetch_page``, everything else (robots.txt, sitemaps, confirmations, access methods) by
    ``fetch``. The fetcher sends the further requests itself, so it applies robots.txt, address policy and size limits
    to them. The crawler pauses for the host of the page after the last of them.
    """

    async def fetch_page(self, request: FetchRequest) -> FetchedPage:
        """The page and what belongs to it. Raises as ``fetch`` does: nothing."""
        ...


def is_contact(text: str) -> bool:
    """Whether it names a contact: a URL or a mail address that HTTP can carry.

    >>> is_contact("https://example.org/bot"), is_contact("mailto:me@example.org"), is_contact("mailto:nonsense")
    (True, True, False)
    """
    return bool(_VISIBLE.fullmatch(text) and _CONTACT.search(text))


def checked_user_agent(user_agent: str) -> str:
    """The User-Agent, if it names a contact (conventions R5).

    >>> checked_user_agent("recrawl/1.0 (+https://example.org/bot)")
    'recrawl/1.0 (+https://example.org/bot)'
    """
    if not _VISIBLE.fullmatch(user_agent):
        raise ConfigError(
            f"The User-Agent {user_agent!r} is empty or holds characters that HTTP forbids.",
            "Use printable ASCII, for example 'recrawl/1.0 (+https://example.org/bot)'.",
        )
    if not _CONTACT.search(user_agent):
        raise ConfigError(
            f"The User-Agent {user_agent!r} does not say whom a webmaster can ask.",
            "Add a URL or a mail address, for example 'recrawl/1.0 (+https://example.org/bot)'.",
        )
    return user_agent
