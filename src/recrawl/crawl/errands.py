"""Errands: fetching sitemaps and feeds, which are no pages. They wait in the frontier under negative numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from recrawl.crawl.target import Target
from recrawl.detect import Known
from recrawl.model import Capture, Validators
from recrawl.urls import host_of

_ANSWERED = range(200, 300)
MOST_SITEMAPS, DEEPEST = 1_000, 3
"""Sitemaps of one host that are read, and how many may name one another in a row: a list of lists can be endless."""


class Errands:
    """Every sitemap and feed heard of so far, each known once, with how often it is looked at."""

    def __init__(self) -> None:
        self._waiting: dict[int, Target] = {}
        self._urls: set[str] = set()
        self._every: dict[int, float] = {}
        self._depth: dict[int, int] = {}
        """How many sitemaps named one another on the way to an errand."""
        self._sitemaps: Counter[int] = Counter()
        """By host."""

    def new(self, urls: Sequence[str], sender: Target, now: float, every: float) -> Iterator[Target]:
        """Errands for the URLs not known yet that lie on the sender's own host: its pauses are what is kept.

        They are due now, and then ``every`` so many seconds. No more than a host may have: the rest is passed over.
        """
        host, depth = host_of(sender.url), self._depth.get(sender.page, 0) + 1
        for url in urls if depth <= DEEPEST else ():
            if self._sitemaps[sender.host] >= MOST_SITEMAPS:
                return
            if url not in self._urls and host_of(url) == host:
                errand = self.one(url, sender.host, now, every)
                self._depth[errand.page] = depth
                self._sitemaps[sender.host] += 1
                yield errand

    def one(self, url: str, host: int, due: float, every: float, known: Known | None = None) -> Target:
        """An errand that was not known yet; ``known`` is what it brought the last time."""
        self._urls.add(url)
        errand = Target(-len(self._urls), host, url, due, known)
        self._every[errand.page] = every
        self._waiting[errand.page] = errand
        return errand

    def knows(self, url: str) -> bool:
        """Whether somebody was sent for it."""
        return url in self._urls

    def take(self, number: int) -> Target:
        """Set out on an errand."""
        return self._waiting.pop(number)

    def put_back(self, errand: Target) -> None:
        """It was not run yet."""
        self._waiting[errand.page] = errand

    def again(self, errand: Target, now: float, capture: Capture | None = None) -> Target:
        """It was run, and will be run again in time: for what is new since the answer, if there was one."""
        known = errand.known
        if capture is not None and capture.status in _ANSWERED:
            known = Known(Validators(capture.header("etag"), capture.header("last-modified")))
        later = replace(errand, due=now + self._every[errand.page], known=known)
        self._waiting[later.page] = later
        return later

    def due(self, now: float) -> Iterator[Target]:
        """Those that wait though they are due. O(errands)."""
        return (errand for errand in self._waiting.values() if errand.due <= now)
