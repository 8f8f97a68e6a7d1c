"""What is asked of an access method: a URL, and what we already know of its version."""

from __future__ import annotations

import re
from typing import Protocol

from recrawl.errors import ConfigError
from recrawl.model import Capture
from recrawl.model.values import plain_value

_CONTACT = re.compile(r"https?://[^\s/]+|[^\s@<>()]+@[^\s@<>()]+\.[^\s@<>()]+")
_VISIBLE = re.compile(r"[\x20-\x7e]+")


@plain_value
class Request:
    """One request; with validators it is conditional, and the server may answer 304."""

    url: str
    etag: str = ""
    """As the server wrote it, with quotes and ``W/``."""
    last_modified: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    """More headers, such as ``Accept-Datetime``."""
    accept: str = ""
    """Media types wanted; empty for what a page is asked for with."""
    body: bytes = b""
    """Sent by POST, as a form; empty for GET."""


class Fetcher(Protocol):
    """An access method: HTTP now, others beside it later."""

    async def fetch(self, request: Request) -> Capture:
        """Ask once and return what came, whatever it was. Redirects are not followed."""
        ...


def is_contact(text: str) -> bool:
    """Whether somebody can be reached by it: a URL or a mail address that HTTP can carry.

    >>> is_contact("https://example.org/bot"), is_contact("mailto:me@example.org"), is_contact("mailto:nonsense")
    (True, True, False)
    """
    return bool(_VISIBLE.fullmatch(text) and _CONTACT.search(text))


def checked_user_agent(user_agent: str) -> str:
    """The User-Agent, if it names somebody to write to (conventions R5).

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
