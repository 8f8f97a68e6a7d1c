"""Populations for trials of estimators, from the collections of a data set: whole clusters of pages, not too many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.estimate.page_age import known_births
from recrawl.estimate.tempo_state import Places
from recrawl.model import BoolArray, IntArray
from recrawl.predict.clusters import UrlClusters
from recrawl.simulate.collection import Collection
from recrawl.simulate.rate_trials import Population
from recrawl.simulate.sampling import Truth
from recrawl.simulate.web_events import EventTimes

LARGE = 200
"""A collection of so many pages is a population of its own; the smaller ones of a data set form one together."""


def populations(collections: Sequence[Collection], most_pages: int) -> list[tuple[Population, list[Truth]]]:
    """The populations of a data set, each with the truth of its collections, in the order of its rows."""
    parts = [_part(collection, most_pages) for collection in collections]
    large = [[part] for part in parts if len(part[0]) >= LARGE]
    small = [part for part in parts if len(part[0]) < LARGE]
    return [_join(group) for group in ([*large, small] if small else large)]


_Part = tuple[Truth, IntArray, IntArray]
"""Pages of one collection, their clusters, and the host of each cluster."""


def _part(collection: Collection, most_pages: int) -> _Part:
    life = collection.watched()
    seen = np.flatnonzero(np.isfinite(life.born))
    seen = seen[np.argsort(life.born[seen], kind="stable")]
    clusters = UrlClusters()
    cluster = clusters.add([collection.urls[page] for page in seen.tolist()])
    kept = np.flatnonzero(_some_clusters(cluster, most_pages))
    ids, index = np.unique(cluster[kept], return_inverse=True)
    return life.take(seen[kept]), index.astype(np.int64), clusters.host[ids]


def _some_clusters(cluster: IntArray, most: int) -> BoolArray:
    """Pages of whole clusters, evenly spread over them, about ``most`` of them."""
    share = min(most / max(len(cluster), 1), 1.0)
    number = np.arange(int(cluster.max(initial=-1)) + 1)
    return np.asarray((np.floor((number + 1) * share) > np.floor(number * share))[cluster])


def _join(parts: Sequence[_Part]) -> tuple[Population, list[Truth]]:
    cluster, host, clusters, hosts = [], [], 0, 0
    for _, own, owners in parts:
        cluster.append(own + clusters)
        host.append(owners + hosts)
        clusters += len(owners)
        hosts += int(owners.max(initial=-1)) + 1
    truths = [truth for truth, _, _ in parts]
    places = Places(
        np.concatenate(cluster),
        np.concatenate(host),
        np.concatenate([known_births(truth.born, truth.start) for truth in truths]),
    )
    start, end = (np.concatenate([np.full(len(t), getattr(t, name)) for t in truths]) for name in ("start", "end"))
    changes = EventTimes.concatenate([truth.changes for truth in truths])
    return Population(places, start, end, changes), truths
