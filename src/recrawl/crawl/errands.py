"""Errands: fetching sitemaps, which are no pages. They wait in the frontier under negative numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recrawl.crawl.target import Target
from recrawl.urls import host_of


class Errands:
    """Every sitemap heard of so far, each known once."""

    def __init__(self) -> None:
        self._waiting: dict[int, Target] = {}
        self._urls: set[str] = set()

    def new(self, urls: Sequence[str], sender: Target, now: float) -> Iterator[Target]:
        """Errands for the URLs not known yet that lie on the sender's own host: its pauses are what is kept."""
        host = host_of(sender.url)
        for url in urls:
            if url not in self._urls and host_of(url) == host:
                self._urls.add(url)
                errand = Target(-len(self._urls), sender.host, url, now)
                self._waiting[errand.page] = errand
                yield errand

    def take(self, number: int) -> Target:
        """Set out on an errand."""
        return self._waiting.pop(number)

    def put_back(self, errand: Target) -> None:
        """It will be run again."""
        self._waiting[errand.page] = errand
