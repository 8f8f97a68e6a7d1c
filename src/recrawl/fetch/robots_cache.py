"""The robots.txt cache: what robots.txt allows, per host (RFC 9309, conventions R1-R4).

    response                      rules
    2xx                           as written, in the first 500 KiB
    3xx                           followed up to five times, also to other hosts; then as 4xx
    4xx but 429                   none: everything is allowed
    5xx, 429, none or truncated   everything is disallowed, and requested again later
    304                           likewise: the request was not conditional

A copy is valid for at most a day. It is stored, so that all workers share it and a restart finds it. It is read again
earlier on request (``recrawl robots --refresh``), or if a page that it allows answers 401 or 403: the host may have
changed its rules. Crawl-delay is honoured up to a cap.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import urlsplit

from recrawl.errors import InputError, StoreError
from recrawl.fetch.http.transfer import retry_after
from recrawl.fetch.request import Fetcher, FetchRequest, TooLateError, checked_user_agent
from recrawl.fetch.robots_txt import MAX_BYTES, AgentRules, parse_robots_txt, product_token
from recrawl.model import Capture
from recrawl.model.captures import RobotsCopies, RobotsCopy
from recrawl.model.visits import TOO_LATE
from recrawl.time import DAY, HOUR, MINUTE, Clock
from recrawl.urls import address

_SHORT = 16 * 1024
"""Bytes of a robots.txt that is parsed at once."""
_MOST = 2 * MAX_BYTES
"""Bytes of a robots.txt that are stored; at most half of them are parsed."""
MAX_REDIRECTS = 5
DOUBT_AFTER = 15 * MINUTE
"""Minimum age in seconds of a copy that is read again because of a 401 or 403."""
CHECK_EVERY = 2.0
"""Seconds between two checks for changed copies in the store."""
_OVERLAP = 10 * MINUTE
"""Seconds by which the clocks of two machines may differ."""
_AHEAD = MINUTE
"""Seconds by which a copy may lie in the future; one further ahead was read by a wrong clock."""
_NO_RULES = AgentRules()


@dataclass(frozen=True, slots=True)
class HostRobots:
    """What one host allows us."""

    reason: str
    """Why these rules apply, for the record of a refusal."""
    crawl_delay: float | None = None
    """Seconds between requests that the host asks for, up to our cap; ``None`` if it does not ask."""
    asked_delay: float | None = None
    """The same before the cap."""
    sitemaps: tuple[str, ...] = ()
    fetched_at: float = 0.0
    """When they were read, seconds since the epoch."""
    expires: float = 0.0
    """When to read them again, seconds since the epoch."""
    available: bool = True
    """False if robots.txt is unavailable, so that nothing is allowed for a while."""
    failure: int = 0
    """Why there was no response (``model/visits.py``), 0 if there was one."""
    said: AgentRules = field(default=_NO_RULES, repr=False)
    """The rules in the file for us."""

    def allowed(self, url: str) -> bool:
        """Whether we may fetch this URL of the host. ``/robots.txt`` itself always."""
        return (self.available and self.said.allowed(url)) or urlsplit(url).path == "/robots.txt"

    def is_fresh(self, now: float) -> bool:
        """Whether they have not expired."""
        return self.fetched_at - _AHEAD <= now < self.expires


RulesAndCopy: TypeAlias = "tuple[HostRobots, RobotsCopy | None]"
"""Rules, and the copy to store if the host answered."""


@dataclass(slots=True)
class _CachedRobots:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    rules: HostRobots | None = None


class RobotsCache:
    """The rules of each host, fetched when first needed and again when they are a day old.

    ``body_of`` returns the decoded body of a capture (``recrawl.detect.decoded``). ``in_thread`` parses what is not
    short; without it that is done at once. ``on_capture`` receives every response on the way, so that robots.txt is
    archived like any page. Tasks that need the same host at once share one request. Beyond ``most`` hosts, or
    ``most_rules`` rules, the longest unused is dropped: it is read from ``copies`` again, which all workers share, or
    fetched again.
    """

    def __init__(  # noqa: PLR0913 - its parts, then its settings
        self,
        fetcher: Fetcher,
        clock: Clock,
        user_agent: str,
        *,
        body_of: Callable[[Capture], bytes],
        in_thread: Callable[[Callable[[], RulesAndCopy]], Awaitable[RulesAndCopy]] | None = None,
        on_capture: Callable[[Capture], None] = lambda _capture: None,
        ahead: Callable[[Capture], Awaitable[None]] | None = None,
        copies: RobotsCopies | None = None,
        max_age: float = DAY,
        retry: float = HOUR,
        max_delay: float = 300.0,
        pause: float = 0.0,
        most: int = 100_000,
        most_rules: int = 500_000,
    ) -> None:
        """Seconds: rules are valid for ``max_age``, unavailable ones are requested again after ``retry``.

        A crawl delay is honoured up to ``max_delay``; ``pause`` is the wait between two redirects on the way to the
        rules. ``on_capture`` receives every response, after ``ahead`` did what takes long for it.
        """
        self._fetcher = fetcher
        self._clock = clock
        self._product = product_token(checked_user_agent(user_agent))
        self._body_of = body_of
        self._in_thread = in_thread
        self._on_capture = on_capture
        self._ahead = ahead
        self._copies = copies
        self._max_age = min(max_age, DAY)
        self._retry = min(retry, self._max_age)
        self._max_delay = max_delay
        self._pause = pause
        self._most, self._most_rules = most, most_rules
        self._entries: OrderedDict[str, _CachedRobots] = OrderedDict()
        """The longest unused first."""
        self._rules_in_memory = 0
        self._unkept: list[RobotsCopy] = []
        """Copies that the store does not have yet."""
        self._check_at = -math.inf

    def known(self, host_url: str) -> HostRobots | None:
        """The rules for ``scheme://host:port`` (or any URL there) if they are in memory.

        Raises:
            StoreError: it was time to check for changes, and the store is unreachable.
        """
        self._check_copies()
        origin = _origin(host_url)
        entry = self._entries.get(origin)
        if entry is None:
            return None
        self._entries.move_to_end(origin)
        return self._fresh(entry)

    def recalled(self, host_url: str) -> HostRobots | None:
        """The rules by the copy in the store, from another worker or an earlier run; they are in memory then.

        Raises:
            StoreError: the store is unreachable.
        """
        origin = _origin(host_url)
        copy = self._copies.robots_copy(origin) if self._copies is not None else None
        rules = self._rules_of(copy) if copy is not None else None
        if rules is None or not rules.is_fresh(self._clock.now()):
            return None
        self._remember(self._entry(origin), rules)
        return rules

    def forget(self, host_url: str) -> None:
        """Request unavailable rules again, without waiting until that is due."""
        entry = self._entries.get(_origin(host_url))
        if entry is not None and entry.rules is not None and not entry.rules.available:
            self._remember(entry, None)

    def doubt(self, host_url: str) -> bool:
        """Read the rules again soon, because a page that they allow was refused; return whether that will happen."""
        origin, now = _origin(host_url), self._clock.now()
        entry = self._entries.get(origin)
        if entry is None or entry.rules is None or now < entry.rules.fetched_at + DOUBT_AFTER:
            return False
        self._remember(entry, None)
        if self._copies is not None:
            with suppress(StoreError):  # then only this worker reads them again
                self._copies.expire_robots_copies([origin], now)
        return True

    async def rules(
        self,
        host_url: str,
        redirected: Callable[[str], Awaitable[None]] | None = None,
        not_after: float = math.inf,
    ) -> HostRobots:
        """The rules for ``scheme://host:port`` (or any URL there), fetched if they are not in memory.

        ``redirected`` receives each further URL before it is requested, and may wait. ``not_after`` is as in
        :class:`FetchRequest`.

        Raises:
            TooLateError: a request could not be sent by then. Nothing was learned of the host.
        """
        origin = _origin(host_url)
        entry = self._entry(origin)
        async with entry.lock:
            known = self._fresh(entry) or self.recalled(host_url)
            if known is None:
                known, copy = await self._fetch_rules(origin, redirected, not_after)
                self._remember(entry, known)
                if copy is not None and self._copies is not None:
                    self._unkept.append(copy)
            return known

    def keep_copies(self) -> None:
        """Store the rules read since the last call, for other workers and the next run.

        Call it when the store may be written to: a crawl starts with many hosts.

        Raises:
            StoreError: the store is unreachable. It can be repeated.
        """
        if self._unkept and self._copies is not None:
            self._copies.keep_robots_copies(self._unkept)
            self._unkept = []

    def _fresh(self, entry: _CachedRobots) -> HostRobots | None:
        return entry.rules if entry.rules is not None and entry.rules.is_fresh(self._clock.now()) else None

    def _check_copies(self) -> None:
        """Drop rules that another worker read later, or that are to be read again."""
        now = self._clock.now()
        if self._copies is None or now < self._check_at:
            return
        self._check_at = now + CHECK_EVERY
        for copy in self._copies.changed_robots_copies(now - _OVERLAP):
            entry = self._entries.get(copy.origin)
            if entry is None or entry.rules is None:
                continue
            fetched_at = entry.rules.fetched_at
            if fetched_at < copy.fetched_at or (copy.expires <= copy.changed and fetched_at < copy.changed):
                self._remember(entry, None)

    def _entry(self, origin: str) -> _CachedRobots:
        entry = self._entries.get(origin)
        if entry is None:
            entry = self._entries[origin] = _CachedRobots()
            self._make_room()
        self._entries.move_to_end(origin)
        return entry

    def _remember(self, entry: _CachedRobots, rules: HostRobots | None) -> None:
        for which, sign in ((entry.rules, -1), (rules, 1)):
            self._rules_in_memory += sign * len(which.said.rules) if which is not None else 0
        entry.rules = rules
        self._make_room()

    def _make_room(self) -> None:
        """Drop the longest unused; but a host with a request under way stays, or it would be requested twice."""
        while len(self._entries) > self._most or self._rules_in_memory > self._most_rules:
            newest = next(reversed(self._entries))
            unused = (one for one, entry in self._entries.items() if not entry.lock.locked() and one != newest)
            longest = next(unused, None)
            if longest is None:
                return
            gone = self._entries.pop(longest).rules
            self._rules_in_memory -= len(gone.said.rules) if gone is not None else 0

    async def _fetch_rules(
        self, origin: str, redirected: Callable[[str], Awaitable[None]] | None, not_after: float
    ) -> tuple[HostRobots, RobotsCopy | None]:
        """The rules, and the copy to store if the host answered."""
        url = f"{origin}/robots.txt"
        for hops in range(MAX_REDIRECTS + 1):
            if hops and self._pause > 0:
                await self._clock.sleep_until(self._clock.now() + self._pause)
            if hops and redirected is not None:
                await redirected(url)
            capture = await self._fetcher.fetch(FetchRequest(url, most=_MOST, not_after=not_after))
            if capture.failure == TOO_LATE:
                raise TooLateError(asked=hops > 0)
            if self._ahead is not None:
                await self._ahead(capture)
            self._on_capture(capture)
            if not 300 <= capture.status < 400 or capture.status == HTTPStatus.NOT_MODIFIED:  # noqa: PLR2004 - no redirect
                if self._in_thread is None or _is_cheap(capture):
                    return self._judge(origin, capture)
                return await self._in_thread(partial(self._judge, origin, capture))
            location = capture.header("location")
            target = address(location, base=url) if location else None
            if target is None:
                return self._free(origin, capture, f"{url} redirects to nowhere ({capture.status})")
            url = target.url
        return self._free(origin, capture, f"robots.txt redirects more than {MAX_REDIRECTS} times")

    def _judge(self, origin: str, capture: Capture) -> tuple[HostRobots, RobotsCopy | None]:
        said = f"{capture.url} answered {capture.status}"
        if 400 <= capture.status < 500 and capture.status != 429:  # noqa: PLR2004 - 4xx but "too many requests"
            return self._free(origin, capture, said)
        if not 200 <= capture.status < 300:  # noqa: PLR2004 - 5xx, 429, nothing
            wait = retry_after(capture) or 0.0
            said = said if capture.status else f"{capture.url}: {capture.error}"
            return self._closed(origin, capture, said, wait)
        if capture.truncated not in ("", "length"):
            return self._closed(origin, capture, f"{capture.url} was cut short ({capture.truncated})")
        try:
            body = self._body_of(capture)
        except InputError as broken:
            return self._closed(origin, capture, f"{capture.url}: {broken}")
        return self._read(self._copy(origin, capture, said, self._max_age, body=body[: MAX_BYTES + 1]))

    def _free(self, origin: str, capture: Capture, reason: str) -> tuple[HostRobots, RobotsCopy | None]:
        return self._read(self._copy(origin, capture, f"{reason}: no rules", self._max_age))

    def _closed(
        self, origin: str, capture: Capture, reason: str, wait: float = 0.0
    ) -> tuple[HostRobots, RobotsCopy | None]:
        why = f"{reason.rstrip('.')}: nothing is allowed until it is there"
        copy = self._copy(origin, capture, why, max(self._retry, wait), available=False)
        rules, _ = self._read(copy)
        # The failure may be ours: other workers find out for themselves.
        return replace(rules, failure=capture.failure), copy if capture.status else None

    def _copy(  # noqa: PLR0913 - its fields
        self,
        origin: str,
        capture: Capture,
        reason: str,
        serves: float,
        *,
        available: bool = True,
        body: bytes = b"",
    ) -> RobotsCopy:
        now = self._clock.now()
        return RobotsCopy(origin, now, now + serves, capture.status, reason, available, capture.url, body)

    def _read(self, copy: RobotsCopy) -> tuple[HostRobots, RobotsCopy]:
        return self._rules_of(copy), copy

    def _rules_of(self, copy: RobotsCopy) -> HostRobots:
        return rules_of(copy, self._product, self._max_delay)


def rules_of(copy: RobotsCopy, product: str, max_delay: float) -> HostRobots:
    """What a copy allows the crawler with this product token; a Crawl-delay counts up to ``max_delay`` seconds."""
    said = parse_robots_txt(copy.body, product) if copy.body else _NO_RULES
    delay = said.crawl_delay
    return HostRobots(
        reason=copy.reason,
        crawl_delay=None if delay is None else min(delay, max_delay),
        asked_delay=delay,
        sitemaps=tuple(found.url for place in said.sitemaps if (found := address(place, base=copy.url))),
        fetched_at=copy.fetched_at,
        expires=copy.expires,
        available=copy.available,
        said=said,
    )


def _is_cheap(capture: Capture) -> bool:
    """Whether parsing takes a few milliseconds: it is short and not compressed."""
    return len(capture.raw_body) <= _SHORT and not capture.header("content-encoding")


def _origin(url: str) -> str:
    end = url.find("/", len("https://"))
    return _origin_of(url[:end] if end >= 0 else url)  # the origin comes before the path, wherever else slashes are


@lru_cache(100_000)
def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
