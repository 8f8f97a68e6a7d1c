"""What sites announce of themselves: sitemaps and feeds, found on the way, and read again in time.

Sitemaps are named by robots.txt and by other sitemaps. Feeds are named by pages (``link rel=alternate``) or by people
(``recrawl add --feed``); they are remembered in the store, so that the next run knows them. Both name pages, and say
when these changed: claims, which the policy believes as far as they proved true. What a site announces is asked for
under its pauses, one request at a time, and only for what is new since the last time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from http import HTTPStatus

import numpy as np

from recrawl.crawl.errands import Errands
from recrawl.crawl.log import JsonLinesLog
from recrawl.crawl.recorder import Recorder
from recrawl.crawl.target import ErrandDone, RulesRead, Target, Visited
from recrawl.detect import Known
from recrawl.fetch.access_methods import FEED
from recrawl.formats.sitemap import Sitemap
from recrawl.model import Validators
from recrawl.store.base import Store
from recrawl.urls import host_of

MOST_FEEDS = 8
"""Feeds of one host that pages may name; some sites have one for every page."""
_STATE = "feed "
"""Before the URL of a feed, the name under which the store keeps when it was read."""
_REMARKS = "comment"
"""In the URLs of feeds that name no pages but what readers say of them."""


class Announcements:
    """Sends for sitemaps and feeds, and takes in what they say. Returns errands to be offered, due as they say."""

    def __init__(self, store: Store, recorder: Recorder, log: JsonLinesLog, every: tuple[float, float]) -> None:
        """``every`` are the seconds between two looks at a sitemap, and at a feed."""
        self._store = store
        self._recorder = recorder
        self._log = log
        self._sitemaps_every, self._feeds_every = every
        self._feeds: Counter[int] = Counter()
        self._feed_errands: set[int] = set()
        self._withheld: dict[int, RulesRead] = {}
        """Rules of hosts where only sources with a method of their own were visited so far."""
        self.errands = Errands()

    def begin(self, now: float) -> Iterator[Target]:
        """Errands for the feeds that the store knows."""
        pages = np.array([page for page, (method, _) in self._store.sources().items() if method == FEED], np.int64)
        feeds = self._store.pages(pages)
        for url, host in zip(self._store.urls(feeds.id), feeds.host.tolist(), strict=True):
            if not self.errands.knows(url):
                due, known = self._recalled(url, now)
                yield self._feed(url, host, due, known)

    def rules_read(self, read: RulesRead, now: float) -> Iterator[Target]:
        """Errands for the sitemaps that robots.txt names, once there is a page of the host that is no mere source."""
        if read.target.source is not None:
            self._withheld[read.target.host] = read
            return
        yield from self.errands.new(read.rules.sitemaps, read.target, now, self._sitemaps_every)

    def visited(self, batch: Sequence[Visited], now: float) -> Iterator[Target]:
        """Errands for the feeds that pages name."""
        for visited in batch:
            target = visited.target
            if target.source is not None or not (self._withheld or visited.judgement.feeds):
                continue
            if read := self._withheld.pop(target.host, None):
                yield from self.errands.new(read.rules.sitemaps, target, now, self._sitemaps_every)
            for url in visited.judgement.feeds:
                if self._is_wanted(url, target):
                    self._remember(url, now)
                    yield self._feed(url, target.host, now)

    def done(self, done: ErrandDone, now: float) -> Iterator[Target]:
        """Take in what came; the errand again in time, and those that it names."""
        capture, target = done.capture, done.target
        # What is told is told again if the store fails on the way; what is kept would be kept again.
        children = () if capture.status == HTTPStatus.NOT_MODIFIED else self._heard(done.announced, target, now)
        self._recorder.keep_aside(capture, "M")
        yield from self.errands.new(children, target, now, self._sitemaps_every)
        again = self.errands.again(target, now, capture)
        if target.page in self._feed_errands:
            self._note(again, now)
        yield again

    def _heard(self, found: Sitemap | str, target: Target, now: float) -> Sequence[str]:
        """Tell the recorder what is announced; further sitemaps."""
        if isinstance(found, str):
            details = {"url": target.url, "reason": found}
            self._log.event("fetch", "sitemap not read", level="warn", details=details)
            return ()
        self._recorder.hear(found.entries, target.url, now)
        return [child.url for child in found.children]

    def _feed(self, url: str, host: int, due: float, known: Known | None = None) -> Target:
        self._feeds[host] += 1
        errand = self.errands.one(url, host, due, self._feeds_every, known)
        self._feed_errands.add(errand.page)
        return errand

    def _note(self, feed: Target, now: float) -> None:
        """Keep when a feed was read and what it said of its version: a run that begins soon need not read it again."""
        said = feed.known.validators if feed.known else Validators()
        state = {"read": now, "etag": said.etag, "last_modified": said.last_modified}
        self._store.save_state(_STATE + feed.url, json.dumps(state).encode(), now)

    def _recalled(self, url: str, now: float) -> tuple[float, Known | None]:
        """When a feed is due, and what it said of its version."""
        kept = self._store.load_state(_STATE + url)
        if kept is None:
            return now, None
        try:
            state = json.loads(kept)
            known = Known(Validators(str(state["etag"]), str(state["last_modified"])))
            return min(float(state["read"]), now) + self._feeds_every, known
        except (ValueError, KeyError, TypeError):  # what is kept makes no sense: read the feed, and keep it anew
            return now, None

    def _is_wanted(self, url: str, target: Target) -> bool:
        if self._feeds[target.host] >= MOST_FEEDS or self.errands.knows(url) or _REMARKS in url.lower():
            return False
        return host_of(url) == host_of(target.url)

    def _remember(self, url: str, now: float) -> None:
        page = self._store.discover([url], now, importance=0.0)
        if not self._store.sources(page):
            self._store.set_source(page, FEED, "{}")
