"""What robots.txt allows, host by host (RFC 9309, conventions R1-R4).

    answer                     rules
    2xx                        as written, of the first 500 KiB
    3xx                        followed up to five times, also to other hosts; then as 4xx
    4xx but 429                none: everything is allowed
    5xx, 429, no or cut answer everything is disallowed, and asked again later
    304                        likewise: nobody asked whether it was modified

A copy serves for at most a day. Crawl-delay is honoured up to a cap.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from http import HTTPStatus
from urllib.parse import urlsplit

from recrawl.errors import InputError
from recrawl.fetch.patience import asked_patience
from recrawl.fetch.request import Fetcher, Request, checked_user_agent
from recrawl.fetch.robots_txt import parse_robots_txt, product_token
from recrawl.model import Capture
from recrawl.time import DAY, HOUR, Clock
from recrawl.urls import address

MAX_REDIRECTS = 5


@dataclass(frozen=True, slots=True)
class Rules:
    """What one host allows us."""

    reason: str
    """Why these rules hold, in words, for the record of a refusal."""
    crawl_delay: float | None = None
    """Seconds between requests that the host asks for, up to our cap; ``None`` if it does not ask."""
    asked_delay: float | None = None
    """The same before the cap."""
    sitemaps: tuple[str, ...] = ()
    expires: float = 0.0
    """When to ask again, seconds since the epoch."""
    available: bool = True
    """False if the host could not tell its rules, so that nothing is allowed for a while."""
    failure: int = 0
    """Why there was no answer (``model/failures.py``), 0 if there was one."""
    _decide: Callable[[str], bool] = field(default=lambda _url: True, repr=False, compare=False)

    def allowed(self, url: str) -> bool:
        """Whether we may fetch this URL of the host. ``/robots.txt`` itself always."""
        return self._decide(url) or urlsplit(url).path == "/robots.txt"


@dataclass(slots=True)
class _Entry:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    rules: Rules | None = None


class RobotsCache:
    """The rules of each host, fetched when first asked for and again when they are a day old.

    ``body_of`` gives the decoded body of a capture (``recrawl.detect.decoded``). ``on_capture`` is handed
    every answer on the way, so that robots.txt is archived like any page. Tasks that ask for the same
    host at once share one request. Beyond ``most`` hosts the longest unused is forgotten: it is asked again.
    """

    def __init__(  # noqa: PLR0913 - what it needs of others, then its settings
        self,
        fetcher: Fetcher,
        clock: Clock,
        user_agent: str,
        *,
        body_of: Callable[[Capture], bytes],
        on_capture: Callable[[Capture], None] = lambda _capture: None,
        max_age: float = DAY,
        retry: float = HOUR,
        max_delay: float = 300.0,
        pause: float = 0.0,
        most: int = 100_000,
    ) -> None:
        """Seconds: rules serve for ``max_age``, those that cannot be had are asked for again after ``retry``.

        A crawl-delay is honoured up to ``max_delay``; ``pause`` lies between two redirects on the way to the rules.
        """
        self._fetcher = fetcher
        self._clock = clock
        self._product = product_token(checked_user_agent(user_agent))
        self._body_of = body_of
        self._on_capture = on_capture
        self._max_age = min(max_age, DAY)
        self._retry = min(retry, self._max_age)
        self._max_delay = max_delay
        self._pause = pause
        self._most = most
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        """The longest unused first."""

    def known(self, host_url: str) -> Rules | None:
        """The rules for ``scheme://host:port`` (or any URL there) if no request is needed to tell them."""
        origin = _origin(host_url)
        entry = self._entries.get(origin)
        if entry is None:
            return None
        self._entries.move_to_end(origin)
        return self._fresh(entry)

    def forget(self, host_url: str) -> None:
        """Ask a host again that could not tell its rules, without waiting until that is due."""
        entry = self._entries.get(_origin(host_url))
        if entry is not None and entry.rules is not None and not entry.rules.available:
            entry.rules = None

    async def rules(self, host_url: str, redirected: Callable[[str], Awaitable[None]] | None = None) -> Rules:
        """The rules for ``scheme://host:port`` (or any URL there), asked for if they are not known.

        ``redirected`` is told each further URL before it is asked for, and may take its time.
        """
        origin = _origin(host_url)
        entry = self._entries.get(origin)
        if entry is None:
            self._make_room()
            entry = self._entries[origin] = _Entry()
        self._entries.move_to_end(origin)
        async with entry.lock:
            known = self._fresh(entry)
            if known is None:
                known = entry.rules = await self._ask(f"{origin}/robots.txt", redirected)
            return known

    def _fresh(self, entry: _Entry) -> Rules | None:
        return entry.rules if entry.rules is not None and self._clock.now() < entry.rules.expires else None

    def _make_room(self) -> None:
        if len(self._entries) < self._most:
            return
        unused = (origin for origin, entry in self._entries.items() if not entry.lock.locked())
        if (longest := next(unused, None)) is not None:  # a host that is being asked stays, or it were asked twice
            del self._entries[longest]

    async def _ask(self, url: str, redirected: Callable[[str], Awaitable[None]] | None) -> Rules:
        for hops in range(MAX_REDIRECTS + 1):
            if hops and self._pause > 0:
                await self._clock.sleep_until(self._clock.now() + self._pause)
            if hops and redirected is not None:
                await redirected(url)
            capture = await self._fetcher.fetch(Request(url))
            self._on_capture(capture)
            if not 300 <= capture.status < 400 or capture.status == HTTPStatus.NOT_MODIFIED:  # noqa: PLR2004 - no redirect
                return self._judge(capture)
            location = capture.header("location")
            target = address(location, base=url) if location else None
            if target is None:
                return self._free(f"{url} redirects to nowhere ({capture.status})")
            url = target.url
        return self._free(f"robots.txt redirects more than {MAX_REDIRECTS} times")

    def _judge(self, capture: Capture) -> Rules:
        said = f"{capture.url} answered {capture.status}"
        if 400 <= capture.status < 500 and capture.status != 429:  # noqa: PLR2004 - 4xx but "too many requests"
            return self._free(said)
        if not 200 <= capture.status < 300:  # noqa: PLR2004 - 5xx, 429, nothing
            wait = asked_patience(capture) or 0.0
            said = said if capture.status else f"{capture.url}: {capture.error}"
            return replace(self._closed(said, wait), failure=capture.failure)
        if capture.truncated not in ("", "length"):
            return self._closed(f"{capture.url} was cut short ({capture.truncated})")
        try:
            body = self._body_of(capture)
        except InputError as broken:
            return self._closed(f"{capture.url}: {broken}")
        return self._read(said, capture.url, body)

    def _read(self, said: str, url: str, body: bytes) -> Rules:
        parsed = parse_robots_txt(body, self._product)
        asked = parsed.crawl_delay
        return Rules(
            reason=said,
            crawl_delay=None if asked is None else min(asked, self._max_delay),
            asked_delay=asked,
            sitemaps=tuple(found.url for place in parsed.sitemaps if (found := address(place, base=url))),
            expires=self._clock.now() + self._max_age,
            _decide=parsed.allowed,
        )

    def _free(self, reason: str) -> Rules:
        return Rules(reason=f"{reason}: no rules", expires=self._clock.now() + self._max_age)

    def _closed(self, reason: str, wait: float = 0.0) -> Rules:
        return Rules(
            reason=f"{reason.rstrip('.')}: nothing is allowed until it is there",
            expires=self._clock.now() + max(self._retry, wait),
            available=False,
            _decide=lambda _url: False,
        )


def _origin(url: str) -> str:
    end = url.find("/", len("https://"))
    return _origin_of(url[:end] if end >= 0 else url)  # it stands before the path, wherever else slashes are


@lru_cache(100_000)
def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
