"""The field on which policies compete: pages, their true histories, and the ground they stand on.

Rows are pages in the order in which they were born, and the row is the id that policies know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from recrawl.model import BoolArray, FloatArray, IntArray, Pages
from recrawl.predict.clusters import UrlClusters
from recrawl.simulate.collection import Collection
from recrawl.simulate.sampling import Truth
from recrawl.simulate.web_events import EventTimes


@dataclass(frozen=True, slots=True)
class Field:
    """Pages and what really happened to them."""

    name: str
    truth: Truth
    """Births ascending."""
    host: IntArray
    """Host of each page, 0 … hosts − 1."""
    cluster: IntArray
    """Related pages by their URLs: whole clusters are resampled, and policies may be told."""
    importance: FloatArray
    urls: tuple[str, ...] = ()
    """Of each page; empty where pages have none."""
    links: FloatArray = field(default_factory=lambda: np.empty(0))
    """New links of each change, as the changes of the truth lie; empty where nobody knows."""

    def __post_init__(self) -> None:
        n = len(self.truth)
        if not len(self.host) == len(self.cluster) == len(self.importance) == n:
            msg = "truth, host, cluster and importance differ in length"
            raise ValueError(msg)
        if self.urls and len(self.urls) != n:
            msg = f"{len(self.urls)} URLs for {n} pages"
            raise ValueError(msg)
        if len(self.links) not in {0, len(self.truth.changes.times)}:
            msg = f"{len(self.links)} counts of links for {len(self.truth.changes.times)} changes"
            raise ValueError(msg)
        if not bool(np.isfinite(self.truth.born).all()) or bool((np.diff(self.truth.born) < 0).any()):
            msg = "pages are not in the order of their births"
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.truth)

    @classmethod
    def of(
        cls,
        name: str,
        truth: Truth,
        *,
        host: npt.ArrayLike = 0,
        cluster: npt.ArrayLike | None = None,
        importance: npt.ArrayLike = 1.0,
    ) -> Field:
        """A field from a truth in any order of births. Without clusters every page is one of its own."""
        n = len(truth)
        there = np.flatnonzero(np.isfinite(truth.born))
        rows = there[np.argsort(truth.born[there], kind="stable")]
        columns = [
            np.broadcast_to(np.asarray(host, dtype=np.int64), n),
            np.arange(n) if cluster is None else np.broadcast_to(np.asarray(cluster, dtype=np.int64), n),
        ]
        weight = np.broadcast_to(np.asarray(importance, dtype=np.float64), n)
        return cls(name, truth.take(rows), columns[0][rows], columns[1][rows], weight[rows].copy())

    def clusters(self, pages: Pages) -> IntArray:
        """Which of these pages, given in order of discovery, belong together: by their URLs, and by no others.

        What a policy may know of clusters. O(pages · depth) of Python where pages have URLs.
        """
        if not self.urls:
            return self.cluster[pages.id]
        return UrlClusters().add([self.urls[row] for row in pages.id.tolist()])

    def rates(self, page: IntArray) -> FloatArray:
        """True changes per second of these pages, over the part of their lives that is recorded: for oracles only."""
        truth = self.truth
        lived = np.minimum(truth.died, truth.end) - np.maximum(truth.born, truth.start)
        return np.asarray((truth.changes.counts() / np.maximum(lived, 1.0))[page])

    def at_most(self, pages: int) -> Field:
        """About so many pages: whole clusters, evenly spread over them. All if there are no more.

        Where clusters are so large that not one of them is due, so many pages of the largest, evenly spread.
        """
        if len(self) <= pages:
            return self
        number, place = np.unique(self.cluster, return_inverse=True)
        step = np.floor(np.arange(len(number) + 1) * (pages / len(self)))
        chosen = np.asarray(np.diff(step)[place] > 0)
        if chosen.any():
            return self.take(chosen)
        largest = np.flatnonzero(place == np.bincount(place).argmax())
        return self.take(largest[np.linspace(0, len(largest) - 1, min(pages, len(largest))).astype(np.int64)])

    def take(self, rows: IntArray | BoolArray) -> Field:
        """Some of the pages, by ascending position or mask."""
        places = np.arange(len(self))[rows]
        urls = tuple(self.urls[place] for place in places.tolist()) if self.urls else ()
        return replace(
            self,
            truth=self.truth.take(places),
            host=self.host[places],
            cluster=self.cluster[places],
            importance=self.importance[places],
            urls=urls,
            links=_links_of(self.truth, self.links, places),
        )


def field_of(collection: Collection, *, most_pages: int | None = None) -> Field:
    """The field of one collection; with ``most_pages``, about so many in whole clusters, evenly spread over them."""
    return field_of_all(collection.name, [collection], most_pages=most_pages)


def field_of_all(name: str, collections: Sequence[Collection], *, most_pages: int | None = None) -> Field:
    """Several collections as one field, from the first start to the last end."""
    lives = [collection.watched() for collection in collections]
    whole = Truth(
        np.concatenate([life.born for life in lives]),
        np.concatenate([life.died for life in lives]),
        EventTimes.concatenate([life.changes for life in lives]),
        min(life.start for life in lives),
        max(life.end for life in lives),
    )
    urls = [url for collection in collections for url in collection.urls]
    there = np.flatnonzero(np.isfinite(whole.born))
    rows = there[np.argsort(whole.born[there], kind="stable")]
    named = tuple(urls[row] for row in rows.tolist())
    clusters = UrlClusters()
    cluster = clusters.add(named)
    links = np.concatenate([collection.links for collection in collections])
    links = _links_of(whole, links if len(links) == len(whole.changes.times) else np.empty(0), rows)
    ground = Field(name, whole.take(rows), clusters.host[cluster], cluster, np.ones(len(rows)), named, links)
    return ground if most_pages is None else ground.at_most(most_pages)


def _links_of(truth: Truth, links: FloatArray, rows: IntArray) -> FloatArray:
    """The counts of the changes of some pages: they go where the times of the changes go."""
    counts = EventTimes(truth.changes.offsets, links)
    return replace(truth, changes=counts).take(rows).changes.times if len(links) else links
