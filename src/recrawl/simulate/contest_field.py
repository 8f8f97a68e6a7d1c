"""The field on which policies compete: pages, their true histories, and the ground they stand on.

Rows are pages in the order in which they were born, and the row is the id that policies know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from recrawl.model import BoolArray, FloatArray, IntArray
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

    def __post_init__(self) -> None:
        n = len(self.truth)
        if not len(self.host) == len(self.cluster) == len(self.importance) == n:
            msg = "truth, host, cluster and importance differ in length"
            raise ValueError(msg)
        if self.urls and len(self.urls) != n:
            msg = f"{len(self.urls)} URLs for {n} pages"
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
    field = Field(name, whole.take(rows), clusters.host[cluster], cluster, np.ones(len(rows)), named)
    if most_pages is None or len(field) <= most_pages:
        return field
    return field.take(_some_clusters(cluster, most_pages))


def _some_clusters(cluster: IntArray, most: int) -> BoolArray:
    share = min(most / max(len(cluster), 1), 1.0)
    number = np.arange(int(cluster.max(initial=-1)) + 1)
    return np.asarray((np.floor((number + 1) * share) > np.floor(number * share))[cluster])
