"""Before the first visit of a capture: robots.txt and pages known beforehand; and the time slots of requests.

A capture makes one request at a time on each host, at least a delay after the last one, and when the host allows it.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.site_capture.capture_terms import Requisites
from recrawl.crawl.visit.scope import PagePosition, SiteScope
from recrawl.crawl.visit.site_claims import read_announced, sitemap_claims
from recrawl.crawl.visit.warc_archive import ResponseArchive
from recrawl.crawl.worker.event_loop import InterruptibleSleep
from recrawl.detect.digest_verdicts import is_resource
from recrawl.errors import ConfigError, ExitCode, FetchError
from recrawl.fetch.http.dns import IpGate
from recrawl.fetch.http.transfer import retry_after
from recrawl.fetch.request import Fetcher, FetchRequest
from recrawl.fetch.robots_cache import HostRobots, RobotsCache
from recrawl.formats.sitemap_feed import ClaimedPage, Sitemap
from recrawl.model import ANSWERED, Capture, IntArray, Outcome
from recrawl.model.visits import NOT_ALLOWED
from recrawl.parse.parse_pool import ParsePool
from recrawl.schedule.politeness.host_politeness import Politeness
from recrawl.store.base import ScheduleStore, Store
from recrawl.time import Clock
from recrawl.urls import address, host_of

T = TypeVar("T")


class CaptureSlots:
    """When each host may be requested next, and whether the capture is to stop."""

    def __init__(
        self, clock: Clock, politeness: Politeness, store: ScheduleStore, ip_gate: IpGate | None = None
    ) -> None:
        self._clock = clock
        self._politeness = politeness
        self._store = store
        self._ip_gate = ip_gate
        self._next: dict[str, float] = {}
        """The earliest start of the next slot of each lane, seconds since the epoch."""
        self._asked: set[int] = set()
        """Hosts whose responses are awaited."""
        self._asleep: InterruptibleSleep[Any] = InterruptibleSleep()
        self.delay = 0.0
        """Seconds from the start of one request to the start of the next, on the host of the start page."""
        self.home = ""
        """The lane of the start page."""
        self.stopping = False
        """Whether no slot starts any more."""

    def stop(self) -> None:
        """Start no more slots. Call it in the event loop."""
        self.stopping = True
        self._asleep.end()

    def after(self, lane: str, when: float) -> None:
        """Start no slot of a lane before ``when``, seconds since the epoch."""
        self._next[lane] = max(self._next.get(lane, -math.inf), when)

    def when(self, lane: str, host: int) -> float:
        """When the next slot of a lane may start at this host, seconds since the epoch."""
        self._politeness.block_until(host, self._others_asked(host))
        return max(self._next.get(lane, -math.inf), self._politeness.free_at(host))

    def take(self, lane: str, host: int) -> None:
        """Start a slot that may start now."""
        now = self._clock.now()
        self._politeness.begin(host, now)
        self._next[lane] = now + (self.delay if lane == self.home else 0.0)
        self._asked.add(host)

    async def begin(self, host: int) -> bool:
        """Wait for the next slot of the start page's lane at this host and take it; ``False`` if none starts."""
        while not self.stopping and (wait := self.when(self.home, host)) > self._clock.now():
            await self._asleep.through(self._clock.sleep_until(wait))
        if self.stopping:
            return False
        self.take(self.home, host)
        return True

    async def wait(self, running: Collection[asyncio.Task[T]], until: float) -> set[asyncio.Task[T]]:
        """Wait until one of these tasks is done, at most until a time, or until the capture is to stop."""
        done: set[asyncio.Task[T]] | None = await self._asleep.through(self._clock.wait(running, until))
        return done or {task for task in running if task.done()}

    def end(self, host: int, capture: Capture | None) -> None:
        """End the request; the pause of its host starts, a longer one if the host asks for that."""
        now = self._clock.now()
        self._asked.discard(host)
        self._politeness.done(host, now, capture.duration if capture else 0.0)
        wait = retry_after(capture) if capture else None
        if wait is not None:
            self._politeness.block_until(host, now + wait)

    def let_go(self, host: int) -> None:
        """End a request at this host, if one is under way: our own code failed before its end."""
        self._asked.discard(host)
        if math.isinf(self._politeness.free_at(host)):
            self._politeness.done(host, self._clock.now(), 0.0)

    def drop(self) -> None:
        """Store the pauses of hosts that were requested and have not answered: as long as for slow ones."""
        if self._asked:
            hosts = self._store.hosts(np.array(sorted(self._asked)))
            rest = np.maximum(hosts.delay, self._politeness.rules.longest)
            self._store.set_host(hosts.id, ready_at=np.maximum(hosts.ready_at, self._clock.now() + rest))
            self._asked.clear()

    def give_back(self, lane: str, host: int, until: float) -> None:
        """Return a slot without a request: the IP address serves another one. The next slot starts at ``until``."""
        self._politeness.undone(host)
        self._next[lane] = until
        self._asked.discard(host)

    @asynccontextmanager
    async def door(self, url: str, host: int) -> AsyncIterator[None]:
        """In a slot that has started, wait for the URL's IP address, and reserve it."""
        if self._ip_gate is None:
            yield
            return
        door = await self._ip_gate.wait(url, host)
        try:
            yield
        finally:
            self._ip_gate.leave(door)

    def obey(self, host: int, rules: HostRobots, *, waits: bool = True) -> None:
        """Apply the crawl delay of the host from now on; with ``waits`` pause while its robots.txt is unavailable."""
        self._politeness.set_crawl_delay(host, rules.crawl_delay)
        self._politeness.block_until(host, self._clock.now() + self.pause(rules))
        if waits and not rules.available:
            self._politeness.block_until(host, rules.expires)

    def pause(self, rules: HostRobots) -> float:
        """Seconds between two requests under these rules, if responses come at once."""
        return self._politeness.rules.pause(0.0, rules.crawl_delay)

    def free_at(self, host: int) -> float:
        """When the host may be requested again, seconds since the epoch."""
        return self._politeness.free_at(host)

    def _others_asked(self, host: int) -> float:
        """The time before which nobody may request the host: another process may have requested it a moment ago."""
        return float(self._store.hosts(np.array([host])).ready_at[0])


MOST_SITEMAPS = 1_000
"""Maximum files that are read: 50 million URLs, if each is as long as the protocol allows."""
_AT_ONCE = 100_000


class NoRulesError(FetchError):
    """The robots.txt of a host is unavailable, so nothing may be fetched (conventions R2)."""

    exit_code = ExitCode.FAILED


@dataclass(frozen=True, slots=True)
class PreparedSite:
    """What is known before the first visit."""

    rules: HostRobots
    pages: IntArray
    """Page ids without repeats, the start page first."""
    requisites: IntArray
    """Page ids of known requisites that are not among them."""


class SitePreparation:
    """Reads robots.txt and sitemaps of a host, one request per slot."""

    def __init__(  # noqa: PLR0913 - the parts it uses
        self,
        *,
        store: Store,
        slots: CaptureSlots,
        fetcher: Fetcher,
        robots: RobotsCache,
        archive: ResponseArchive,
        log: JsonLinesLog,
        pool: ParsePool | None = None,
        pack_ahead: Callable[[Capture], Awaitable[None]],
    ) -> None:
        """``pack_ahead`` compresses a large response before it is archived."""
        self._store = store
        self._pack_ahead = pack_ahead
        self._pool = pool
        self._slots = slots
        self._fetcher = fetcher
        self._robots = robots
        self._archive = archive
        self._log = log

    async def open(self, order: CaptureOrder, scope: SiteScope, now: float) -> PreparedSite | None:
        """What is known of the site; ``None`` if it was stopped.

        Pages of the workspace count as known only if the strategy needs all pages beforehand: otherwise they are found
        again.

        Raises:
            NoRulesError: robots.txt of the host is unavailable now.
            ConfigError: the strategy needs all pages beforehand, and none are known.
        """
        [first] = self._store.discover([order.seed.url], now, importance=0.0).tolist()
        host = int(self._store.pages(np.array([first])).host[0])
        rules = await self._rules(order.seed.url, host)
        if rules is None:
            return None
        pages = {first: None}
        if order.from_sitemap:
            async for entries, source, time in self._sitemaps(order, rules, host):
                pages |= dict.fromkeys(self._record_entries(entries, source, scope, time).tolist())
            if self._slots.stopping:
                return None
        if order.needs_all_pages:
            known = known_pages(self._store, scope, resources=order.requisites is not Requisites.NONE)
            if not (order.from_sitemap or len(known)):
                raise ConfigError(
                    f"The strategy {order.strategy} must know the pages of {order.site} beforehand, and none was seen.",
                    "Add --from-sitemap, or capture it once with a strategy that finds pages, such as sharc-online.",
                )
            pages |= dict.fromkeys(known.tolist())
        chosen = np.array(list(pages)[: order.max_pages], np.int64)
        embedded = known_requisites(self._store, order, scope) if order.needs_all_pages else chosen[:0]
        return PreparedSite(rules, chosen, embedded[~np.isin(embedded, chosen)])

    async def _rules(self, url: str, host: int) -> HostRobots | None:
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
        self, order: CaptureOrder, rules: HostRobots, host: int
    ) -> AsyncIterator[tuple[Sequence[ClaimedPage], str, float]]:
        """The sitemaps of the host, one after the other: entries, URL of the sitemap, when it was read.

        Sitemaps on other hosts are skipped: a capture does not keep their pauses.
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
                capture = await self._fetcher.fetch(FetchRequest(url))
            self._slots.end(host, capture)
            await self._pack_ahead(capture)
            self._archive.write_auxiliary(capture, "M")
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

    def _record_entries(self, entries: Sequence[ClaimedPage], source: str, scope: SiteScope, time: float) -> IntArray:
        """Ids of the entries that lie in the scope; their claims are recorded."""
        inside = [entry for entry in entries if (found := address(entry.url)) and scope.covers(found)]
        pages = self._store.discover([entry.url for entry in inside], time, importance=0.0)
        self._store.add_claims(sitemap_claims(inside, pages, source, time))
        return pages


def known_pages(store: Store, scope: SiteScope, *, resources: bool = True) -> IntArray:
    """Pages of the workspace that were seen, were not gone at the last visit, and lie in the scope.

    Without ``resources``, images, style sheets and the like are left out. O(pages of the workspace).
    """
    found: list[int] = []
    histories = store.histories()
    seen = histories.page[~np.isnan(histories.first_visit)]  # the others never answered
    pages = np.setdiff1d(seen, store.resources(), assume_unique=True)
    for start in range(0, len(pages), _AT_ONCE):
        some = pages[start : start + _AT_ONCE]
        rows = zip(some.tolist(), store.urls(some), store.validators(some), strict=True)
        found += [
            page
            for page, url, last in rows
            if not last.gone and (place := address(url)) and scope.covers(place)
            if resources or not is_resource(url, [last.mime])
        ]
    return np.array(found, np.int64)


def knows_pages(store: Store, known: IntArray) -> bool:
    """Whether a workspace knows a site: it has seen at least four fifths of the pages that it has heard of there.

    ``known`` are the pages of the site that were seen; counted are all pages on their hosts. O(pages of the workspace),
    on columns.
    """
    pages = store.pages()
    pages = pages.take(~np.isin(pages.id, store.resources()))
    hosts = np.unique(pages.host[np.isin(pages.id, known)])
    return len(known) >= _MOSTLY * int(np.isin(pages.host, hosts).sum())


def known_requisites(store: Store, order: CaptureOrder, scope: SiteScope) -> IntArray:
    """What the last finished capture of the site fetched because pages embed it, if it belongs to this one, too."""
    done = [one for one in store.site_captures() if one.is_finished and one.site == order.site]
    if not done or order.requisites is Requisites.NONE:
        return np.empty(0, np.int64)
    log = store.site_log(done[-1].id)
    there = {step.number for step in log.steps if step.outcome <= ANSWERED and step.outcome != Outcome.GONE}
    number = np.array([one for one in np.flatnonzero(log.found.via < -1).tolist() if one in there], np.int64)
    page = log.found.page[number]
    start, anywhere = PagePosition(), order.requisites is Requisites.ANY
    return page[
        np.array(
            [
                (place := address(url)) is not None
                and scope.place_embedded(place, start, anywhere=anywhere) is not None
                for url in store.urls(page)
            ],
            np.bool_,
        )
    ]


FEWEST_KNOWN = 5
"""A site of which fewer pages are known is not planned beforehand."""
_MOSTLY = 0.8


def _default_sitemap(url: str) -> str:
    found = address("/sitemap.xml", base=url)
    if found is None:
        raise AssertionError  # the base is a URL
    return found.url


def _children(sitemap: Sitemap) -> Iterator[str]:
    return (found.url for child in sitemap.children if (found := address(child.url)))
