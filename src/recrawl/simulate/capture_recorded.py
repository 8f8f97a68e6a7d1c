"""Recorded sites as virtual sites: the pages that were there at a moment, and everything that happened to them after.

What counts as a change is what counts for :mod:`recrawl.simulate.collection`; that a page goes away, or comes back, is
a change too: whoever looks again finds another thing. Pages born later are not part of a capture.

A record holds the links that authors wrote, not those of menus and lists, so much of a site cannot be reached by it.
Therefore every page is also linked from the nearest page above it in the tree of paths; pages with none above them are
the seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.capture.walk import LinkGraph
from recrawl.estimate import oracle
from recrawl.model import IntArray
from recrawl.model.arrays import offsets_of, starts_of_runs
from recrawl.simulate.capture_site import VirtualSite
from recrawl.simulate.collection import Collection
from recrawl.simulate.web import Links
from recrawl.simulate.web_events import EventTimes


@dataclass(frozen=True, slots=True)
class RecordedSite:
    """A site whose every change and link is on record."""

    collection: Collection
    links: Links
    """Between pages by their place in the collection."""

    @property
    def name(self) -> str:
        """What the record calls it."""
        return self.collection.name

    @property
    def middle(self) -> float:
        """The moment that cuts the record in halves: rates are learned before it, captures are taken after it."""
        return (self.collection.start + self.collection.end) / 2.0

    def pages_at(self, moment: float) -> IntArray:
        """The pages that were there, by their place in the collection."""
        lives = self.collection.truth
        there = (lives.birth <= moment) & (moment < lives.death)
        return np.unique(lives.page[there])

    def events(self) -> EventTimes:
        """All changes of each page of the collection, comings and goings included, but not the first coming."""
        lives = self.collection.truth
        again = ~starts_of_runs(lives.page)
        gone = np.isfinite(lives.death)
        row = np.concatenate([lives.page[lives.row_of_change()], lives.page[again], lives.page[gone]])
        time = np.concatenate([lives.times, lives.birth[again], lives.death[gone]])
        return EventTimes.of(row, time, len(self.collection))

    def site_at(self, page: IntArray, start: float, end: float) -> VirtualSite:
        """These pages (from :meth:`pages_at`) as a site that changes from ``start`` to ``end``; page i is ``page[i]``.

        The rate of a page is its number of changes in the span over the span: what an oracle knows (reading 003.37).
        O(pages · depth + links + changes).
        """
        changes = self.events().take(page)
        changes = changes.where((changes.times > start) & (changes.times <= end))
        parent = nearest_above([self.collection.urls[one] for one in page.tolist()])
        return VirtualSite(
            self._graph(page, parent, start),
            np.flatnonzero(parent < 0),
            oracle.rate(changes.counts(), end - start),
            changes,
        )

    def _graph(self, page: IntArray, parent: IntArray, moment: float) -> LinkGraph:
        """Links that authors wrote, oldest first, and then those to the pages below."""
        links = self.links
        place = np.full(len(self.collection), -1, dtype=np.int64)
        place[page] = np.arange(len(page))
        on = (links.added <= moment) & (moment < links.removed)
        source, target, added = place[links.source[on]], place[links.target[on]], links.added[on]
        kept = (source >= 0) & (target >= 0) & (source != target)
        below = np.flatnonzero(parent >= 0)
        source = np.concatenate([source[kept], parent[below]])
        target = np.concatenate([target[kept], below])
        added = np.concatenate([added[kept], np.full(len(below), np.inf)])
        order = np.lexsort((target, added, source))
        return LinkGraph(offsets_of(source[order], len(page)), target[order])


def nearest_above(urls: Sequence[str]) -> IntArray:
    """Of each page the one with the longest path that its own continues; −1 where there is none. O(pages · depth).

    >>> nearest_above(["http://a.test/", "http://a.test/x/", "http://a.test/x/y/z", "http://b.test/q"]).tolist()
    [-1, 0, 1, -1]
    """
    place = {url.rstrip("/"): number for number, url in reversed(list(enumerate(urls)))}
    return np.fromiter((_above(url.rstrip("/"), place) for url in urls), np.int64, len(urls))


def _above(path: str, place: dict[str, int]) -> int:
    while "/" in path:
        path = path.rpartition("/")[0]
        if path in place:
            return place[path]
    return -1
