"""Pages of recorded collections as paper 002 watches them: once a day for a period, each from a random moment on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.predict.feature_table import FeatureTable, table_of
from recrawl.predict.static_features import url_columns
from recrawl.predict.url_clusters import UrlClusters
from recrawl.simulate.change_processes import EventTimes
from recrawl.simulate.sampling import Collection, PageTruth
from recrawl.time import DAY

FeaturesAt: TypeAlias = Callable[[IntArray, FloatArray], FeatureTable]
"""The features of pages, given by their ascending places in all collections, each just before a time of its own."""


@dataclass(frozen=True, slots=True)
class DailyMonitoring:
    """Pages visited once a day for a while, each from its own day 0."""

    urls: tuple[str, ...]
    cluster: IntArray
    """Pages of one directory, which are edited together."""
    truth: PageTruth
    days: int
    observations: FeatureTable
    """What each page looked like on its day 0."""

    def __len__(self) -> int:
        return len(self.urls)

    def rates(self) -> FloatArray:
        """Changes a day by eq. 1, from once in the period to once a day: no more can be told by daily visits."""
        row, day = self.truth.changes.row_of_event(), np.ceil(self.truth.changes.times / DAY).astype(np.int64)
        seen = np.unique(row * (self.days + 1) + day)
        found = np.bincount(seen // (self.days + 1), minlength=len(self))
        rates = -np.log((self.days - found + 0.5) / (self.days + 0.5))
        return np.asarray(np.clip(rates, 1.0 / self.days, 1.0))

    def take(self, rows: IntArray) -> DailyMonitoring:
        """The pages at these ascending places."""
        urls = tuple(self.urls[row] for row in rows.tolist())
        return DailyMonitoring(urls, self.cluster[rows], self.truth.take(rows), self.days, self.observations.take(rows))


def monitored(
    collections: Sequence[Collection],
    rng: np.random.Generator,
    *,
    days: int,
    most: int | None = None,
    observations: FeaturesAt | None = None,
) -> DailyMonitoring:
    """The pages that were there long enough, each for ``days`` days from a random moment; at most N of them.

    Without ``observations`` a page is nothing but its URL.

    Raises:
        ValueError: no page was there for so long.
    """
    lifetimes = [collection.watched() for collection in collections]
    urls = [url for collection in collections for url in collection.urls]
    born = np.concatenate([life.born for life in lifetimes])
    end = np.concatenate([np.minimum(life.died, life.end) for life in lifetimes])
    changes = EventTimes.concatenate([life.changes for life in lifetimes])
    spare = np.where(np.isfinite(born), end - np.where(np.isfinite(born), born, 0.0), -np.inf) - days * DAY
    rows = np.flatnonzero(spare >= 0)
    if not len(rows):
        msg = f"no page was there for {days} days"
        raise ValueError(msg)
    if most is not None and len(rows) > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    start = born[rows] + rng.random(len(rows)) * spare[rows]
    whole = PageTruth(born, end, changes, 0.0, days * DAY).take(rows)
    since = whole.changes.times - start[whole.changes.row_of_event()]
    within = EventTimes(whole.changes.offsets, since).where((since > 0) & (since <= days * DAY))
    truth = PageTruth(np.zeros(len(rows)), np.full(len(rows), np.inf), within, 0.0, days * DAY)
    chosen = tuple(urls[row] for row in rows.tolist())
    seen = observations(rows, start) if observations else table_of(rows, float(start.max()), url_columns(chosen))
    return DailyMonitoring(chosen, UrlClusters().add(urls)[rows], truth, days, seen)
