"""Before the first visit: the rules of the host, and the pages that can be known beforehand."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.crawl.archive import Archive
from recrawl.crawl.capture_order import CaptureOrder
from recrawl.crawl.capture_slots import Slots
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.parse_pool import ParsePool
from recrawl.crawl.scope import SiteScope
from recrawl.crawl.site_claims import sitemap_claims
from recrawl.crawl.site_files import read_announced
from recrawl.errors import ConfigError, ExitCode, FetchError
from recrawl.fetch.request import Fetcher, Request
from recrawl.fetch.robots import RobotsCache, Rules
from recrawl.formats.claims import Entry
from recrawl.formats.sitemap import Sitemap
from recrawl.model import IntArray
from recrawl.model.failures import NOT_ALLOWED
from recrawl.store.base import Store
from recrawl.urls import address, host_of

MOST_SITEMAPS = 1_000
"""Files that are read at most: 50 million URLs, if each is as long as the protocol allows."""
_AT_ONCE = 100_000


class NoRulesError(FetchError):
    """A host cannot tell its rules, so nothing may be fetched (conventions R2)."""

    exit_code = ExitCode.FAILED


@dataclass(frozen=True, slots=True)
class Opening:
    """What is known before the first visit."""

    rules: Rules
    pages: IntArray
    """Page ids without repeats, that of the first page first."""


class Opener:
    """Reads what a host says of itself, one request a slot."""

    def __init__(  # noqa: PLR0913 - the parts it uses
        self,
        *,
        store: Store,
        slots: Slots,
        fetcher: Fetcher,
        robots: RobotsCache,
        archive: Archive,
        log: JsonLinesLog,
        pool: ParsePool | None = None,
    ) -> None:
        self._store = store
        self._pool = pool
        self._slots = slots
        self._fetcher = fetcher
        self._robots = robots
        self._archive = archive
        self._log = log

    async def open(self, order: CaptureOrder, scope: SiteScope, now: float) -> Opening | None:
        """What is known of the site; ``None`` if it was stopped.

        Pages of the workspace count as known only where the strategy must know all pages: else they are found again.

        Raises:
            NoRulesError: the host cannot tell its rules now.
            ConfigError: the strategy must know all pages, and none are known.
        """
        [first] = self._store.discover([order.seed.url], now, importance=0.0).tolist()
        host = int(self._store.pages(np.array([first])).host[0])
        rules = await self._rules(order.seed.url, host)
        if rules is None:
            return None
        pages = {first: None}
        if order.from_sitemap:
            async for entries, source, time in self._sitemaps(order, rules, host):
                pages |= dict.fromkeys(self._take_in(entries, source, scope, time).tolist())
            if self._slots.stopping:
                return None
        if order.needs_all_pages:
            known = known_pages(self._store, scope)
            if not (order.from_sitemap or len(known)):
                raise ConfigError(
                    f"The strategy {order.strategy} must know the pages of {order.site} beforehand, and none was seen.",
                    "Add --from-sitemap, or capture it once with a strategy that finds pages, such as sharc-online.",
                )
            pages |= dict.fromkeys(known.tolist())
        return Opening(rules, np.array(list(pages)[: order.max_pages], np.int64))

    async def _rules(self, url: str, host: int) -> Rules | None:
        if not await self._slots.begin(host):
            return None
        async with self._slots.door(url, host):
            rules = await self._robots.rules(url)
        self._slots.end(host, None)
        self._robots.keep_copies()
        self._log.event("fetch", "robots.txt read", details={"url": url, "reason": rules.reason})
        if not rules.available:
            ours = "If it is yours, allow its network with fetch.allow_networks."
            raise NoRulesError(f"{rules.reason}.", ours if rules.failure == NOT_ALLOWED else "Try again later.")
        self._slots.obey(host, rules)
        return rules

    async def _sitemaps(
        self, order: CaptureOrder, rules: Rules, host: int
    ) -> AsyncIterator[tuple[Sequence[Entry], str, float]]:
        """What the sitemaps of the host say, one after the other: entries, URL of the sitemap, when it was read.

        Those on other hosts are left alone: their pauses are not ours to keep.
        """
        home = host_of(order.seed.url)
        waiting = deque(rules.sitemaps or [_default_sitemap(order.seed.url)])
        heard: set[str] = set(waiting)
        read = 0
        while waiting and read < MOST_SITEMAPS:
            url = waiting.popleft()
            if host_of(url) != home or not rules.allowed(url):
                continue
            if not await self._slots.begin(host):
                return
            async with self._slots.door(url, host):
                capture = await self._fetcher.fetch(Request(url))
            self._slots.end(host, capture)
            self._archive.keep_aside(capture, "M")
            read += 1
            sitemap = await read_announced(capture, self._pool)
            if isinstance(sitemap, str):
                details = {"url": url, "reason": sitemap}
                self._log.event("fetch", "sitemap not read", level="warn", details=details)
                continue
            yield sitemap.entries, url, capture.time
            for child in _children(sitemap):
                if child not in heard:
                    heard.add(child)
                    waiting.append(child)

    def _take_in(self, entries: Sequence[Entry], source: str, scope: SiteScope, time: float) -> IntArray:
        """Ids of the entries that lie in the scope; what is claimed of them is noted."""
        inside = [entry for entry in entries if (found := address(entry.url)) and scope.covers(found)]
        pages = self._store.discover([entry.url for entry in inside], time, importance=0.0)
        self._store.add_claims(sitemap_claims(inside, pages, source, time))
        return pages


def known_pages(store: Store, scope: SiteScope) -> IntArray:
    """Pages of the workspace that were seen, were not gone when last asked for, and lie in the scope.

    O(pages of the workspace).
    """
    found: list[int] = []
    pages = np.setdiff1d(store.histories().page, store.resources(), assume_unique=True)
    for start in range(0, len(pages), _AT_ONCE):
        some = pages[start : start + _AT_ONCE]
        rows = zip(some.tolist(), store.urls(some), store.validators(some), strict=True)
        found += [page for page, url, last in rows if not last.gone and (place := address(url)) and scope.covers(place)]
    return np.array(found, np.int64)


def _default_sitemap(url: str) -> str:
    found = address("/sitemap.xml", base=url)
    if found is None:
        raise AssertionError  # the base is a URL
    return found.url


def _children(sitemap: Sitemap) -> Iterator[str]:
    return (found.url for child in sitemap.children if (found := address(child.url)))
