"""Sitemaps and feeds: found during a crawl, and polled at intervals.

Robots.txt and other sitemaps name sitemaps. Pages (``link rel=alternate``) and people (``recrawl add --feed``) name
feeds, which are stored, so that the next run knows them. Both list pages and dates of change. Such dates are claims;
the policy trusts them as far as they proved true.

These auxiliary fetches are not pages. They follow the pauses of their host, one conditional request at a time, and wait
in the frontier under negative numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from http import HTTPStatus

import numpy as np

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.visit.recorder import Recorder
from recrawl.crawl.visit.visit_machine import AuxiliaryFetched, RobotsFetched, VisitDone, VisitTarget
from recrawl.detect import PageState
from recrawl.fetch.access.access_methods import FEED
from recrawl.formats.sitemap_feed import Sitemap
from recrawl.model import Capture, Validators
from recrawl.store.base import Store
from recrawl.urls import host_of

_ANSWERED = range(200, 300)
MOST_SITEMAPS, DEEPEST = 1_000, 3
"""Maximum sitemaps of one host, and maximum depth of sitemaps that name sitemaps: such lists can be endless."""


class AuxiliaryFetches:
    """Every known sitemap and feed, once each, with its polling interval."""

    def __init__(self) -> None:
        self._waiting: dict[int, VisitTarget] = {}
        self._urls: set[str] = set()
        self._every: dict[int, float] = {}
        self._depth: dict[int, int] = {}
        """By target number, how many sitemaps led to it."""
        self._sitemaps: Counter[int] = Counter()
        """By host."""

    def new(self, urls: Sequence[str], sender: VisitTarget, now: float, every: float) -> Iterator[VisitTarget]:
        """Auxiliary fetches for new URLs on the sender's own host, whose pauses apply.

        They are due now, and then every ``every`` seconds. URLs beyond the limit of the host are ignored.
        """
        host, depth = host_of(sender.url), self._depth.get(sender.page, 0) + 1
        for url in urls if depth <= DEEPEST else ():
            if self._sitemaps[sender.host] >= MOST_SITEMAPS:
                return
            if url not in self._urls and host_of(url) == host:
                auxiliary = self.one(url, sender.host, now, every)
                self._depth[auxiliary.page] = depth
                self._sitemaps[sender.host] += 1
                yield auxiliary

    def one(self, url: str, host: int, due: float, every: float, known: PageState | None = None) -> VisitTarget:
        """A new auxiliary fetch; ``known`` is the state after the last fetch."""
        self._urls.add(url)
        auxiliary = VisitTarget(-len(self._urls), host, url, due, known)
        self._every[auxiliary.page] = every
        self._waiting[auxiliary.page] = auxiliary
        return auxiliary

    def knows(self, url: str) -> bool:
        """Whether the URL is known."""
        return url in self._urls

    def take(self, number: int) -> VisitTarget:
        """Take out an auxiliary fetch to request it."""
        return self._waiting.pop(number)

    def put_back(self, auxiliary: VisitTarget) -> None:
        """Put back an auxiliary fetch that was not requested yet."""
        self._waiting[auxiliary.page] = auxiliary

    def again(self, auxiliary: VisitTarget, now: float, capture: Capture | None = None) -> VisitTarget:
        """The next poll of an auxiliary fetch that is done, conditional if there was a response."""
        known = auxiliary.known
        if capture is not None and capture.status in _ANSWERED:
            known = PageState(Validators(capture.header("etag"), capture.header("last-modified")))
        later = VisitTarget(auxiliary.page, auxiliary.host, auxiliary.url, now + self._every[auxiliary.page], known)
        self._waiting[later.page] = later
        return later

    def due(self, now: float) -> Iterator[VisitTarget]:
        """Auxiliary fetches that wait although they are due. O(auxiliary fetches)."""
        return (auxiliary for auxiliary in self._waiting.values() if auxiliary.due <= now)


MOST_FEEDS = 8
"""Maximum feeds of one host that pages may name; some sites have one for every page."""
_STATE = "feed "
"""Prefix of the URL of a feed in the name under which the store holds its state."""
_REMARKS = "comment"
"""In the URLs of feeds that list comments, not pages."""


class SitemapFeedPoller:
    """Polls sitemaps and feeds, and records their claims. Returns auxiliary fetches to be queued."""

    def __init__(self, store: Store, recorder: Recorder, log: JsonLinesLog, every: tuple[float, float]) -> None:
        """``every`` holds the seconds between two fetches of a sitemap, and of a feed."""
        self._store = store
        self._recorder = recorder
        self._log = log
        self._sitemaps_every, self._feeds_every = every
        self._feeds: Counter[int] = Counter()
        self._feed_fetches: set[int] = set()
        self._withheld: dict[int, RobotsFetched] = {}
        """Robots.txt of hosts with no visited page yet, only sources with their own access method."""
        self.auxiliary_fetches = AuxiliaryFetches()

    def begin(self, now: float) -> Iterator[VisitTarget]:
        """Auxiliary fetches for the feeds in the store."""
        pages = np.array([page for page, (method, _) in self._store.sources().items() if method == FEED], np.int64)
        feeds = self._store.pages(pages)
        for url, host in zip(self._store.urls(feeds.id), feeds.host.tolist(), strict=True):
            if not self.auxiliary_fetches.knows(url):
                due, known = self._recalled(url, now)
                yield self._feed(url, host, due, known)

    def rules_read(self, read: RobotsFetched, now: float) -> Iterator[VisitTarget]:
        """Auxiliary fetches for the sitemaps in robots.txt, once the host has a page that is not just a source."""
        if read.target.source is not None:
            self._withheld[read.target.host] = read
            return
        yield from self.auxiliary_fetches.new(read.rules.sitemaps, read.target, now, self._sitemaps_every)

    def visited(self, batch: Sequence[VisitDone], now: float) -> Iterator[VisitTarget]:
        """Auxiliary fetches for the feeds that pages name."""
        for visited in batch:
            target = visited.target
            if target.source is not None or not (self._withheld or visited.judgement.feeds):
                continue
            if read := self._withheld.pop(target.host, None):
                yield from self.auxiliary_fetches.new(read.rules.sitemaps, target, now, self._sitemaps_every)
            for url in visited.judgement.feeds:
                if self._is_wanted(url, target):
                    self._remember(url, now)
                    yield self._feed(url, target.host, now)

    def done(self, done: AuxiliaryFetched, now: float) -> Iterator[VisitTarget]:
        """Record a fetched sitemap or feed; return its next poll, and fetches of the sitemaps that it names."""
        capture, target = done.capture, done.target
        # If the store fails on the way, claims are recorded again, without harm; an archived response would be doubled.
        children = () if capture.status == HTTPStatus.NOT_MODIFIED else self._record_claims(done.announced, target, now)
        self._recorder.archive_auxiliary(capture, "M")
        yield from self.auxiliary_fetches.new(children, target, now, self._sitemaps_every)
        again = self.auxiliary_fetches.again(target, now, capture)
        if target.page in self._feed_fetches:
            self._note(again, now)
        yield again

    def _record_claims(self, found: Sitemap | str, target: VisitTarget, now: float) -> Sequence[str]:
        """Record the claims of a sitemap or feed; return the sitemaps that it names."""
        if isinstance(found, str):
            details = {"url": target.url, "reason": found}
            self._log.event("fetch", "sitemap not read", level="warn", details=details)
            return ()
        if found.faults:
            first = found.faults[0]
            said = {"url": target.url, "entries": len(found.faults), "byte": first.position, "error": first.error}
            self._log.event("crawl", "entries of a sitemap not read", level="error", details=said)
        self._recorder.record_claims(found.entries, target.url, now)
        return [child.url for child in found.children]

    def _feed(self, url: str, host: int, due: float, known: PageState | None = None) -> VisitTarget:
        self._feeds[host] += 1
        auxiliary = self.auxiliary_fetches.one(url, host, due, self._feeds_every, known)
        self._feed_fetches.add(auxiliary.page)
        return auxiliary

    def _note(self, feed: VisitTarget, now: float) -> None:
        """Store when a feed was read and its validators, so that the next run need not read it again too soon."""
        said = feed.known.validators if feed.known else Validators()
        state = {"read": now, "etag": said.etag, "last_modified": said.last_modified}
        self._store.save_state(_STATE + feed.url, json.dumps(state).encode(), now)

    def _recalled(self, url: str, now: float) -> tuple[float, PageState | None]:
        """When a feed is due, and its validators."""
        kept = self._store.load_state(_STATE + url)
        if kept is None:
            return now, None
        try:
            state = json.loads(kept)
            known = PageState(Validators(str(state["etag"]), str(state["last_modified"])))
            return min(float(state["read"]), now) + self._feeds_every, known
        except (ValueError, KeyError, TypeError):  # the stored state is unreadable: read the feed and store it again
            return now, None

    def _is_wanted(self, url: str, target: VisitTarget) -> bool:
        if self._feeds[target.host] >= MOST_FEEDS or self.auxiliary_fetches.knows(url) or _REMARKS in url.lower():
            return False
        return host_of(url) == host_of(target.url)

    def _remember(self, url: str, now: float) -> None:
        page = self._store.discover([url], now, importance=0.0)
        if not self._store.sources(page):
            self._store.set_source(page, FEED, "{}")
