"""Pages of recorded sites with features and change rates, as training data for predicted rates.

Features are those of the first observation, at a separate time for each page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.predict.feature_extraction import FeatureEvidence
from recrawl.predict.page_versions import TimedLinks, picked
from recrawl.predict.static_features import (
    Column,
    Feature,
    FeatureGroup,
    FeatureTable,
    beside,
    buckets,
    table_of,
    url_columns,
    version_columns,
)
from recrawl.simulate.sampling import Collection
from recrawl.time import DAY
from recrawl.urls import host_of


@dataclass(frozen=True, slots=True)
class RecordedPages:
    """Collections with the features of their pages. A page has a place: that in all collections, one after another.

    Places ascend with the page ids of the evidence.
    """

    collections: tuple[Collection, ...]
    evidence: FeatureEvidence
    page: IntArray
    """The page id of each place."""

    def observations(self, place: IntArray, time: FloatArray) -> FeatureTable:
        """The features of the pages at these ascending places, each just before its own time."""
        return observations_at(self.evidence, self.page[place], time)

    def ages(self, place: IntArray, time: FloatArray) -> FloatArray:
        """Days since the version was made that each page showed just before its own time; NaN if it was not there."""
        chosen = self.evidence.of_pages(np.isin(self.evidence.page, self.page[place])).versions
        return (time - picked(chosen.time, chosen.valid_at(self.page[place], time))) / DAY


def observations_at(evidence: FeatureEvidence, page: IntArray, time: FloatArray) -> FeatureTable:
    """The static features of these ascending pages, each just before its own time, seconds since the epoch.

    Of a page alone, and the links to it; nothing that happened at or after the time of a page is observed. The table's
    ``as_of`` is the latest of the times. O(versions + links).
    """
    among = np.isin(evidence.page, page)
    chosen = evidence.of_pages(among)
    columns = url_columns(chosen.urls)
    columns += version_columns(chosen.versions, chosen.versions.valid_at(page, time))
    if chosen.links is not None:
        columns.append(_inlinks(chosen.links, page, time))
    return table_of(page, float(time.max(initial=0.0)), columns)


def known_only(table: FeatureTable) -> FeatureTable:
    """Without the features that are unknown of every page."""
    return table.only([name for name in table.names if not np.isnan(table.column(name)).all()])


def _inlinks(links: TimedLinks, page: IntArray, time: FloatArray) -> Column:
    """Links from any page that were there just before the time of the page they lead to."""
    row = np.minimum(np.searchsorted(page, links.target), max(len(page) - 1, 0))
    leads = page[row] == links.target if len(page) else np.zeros(len(links), np.bool_)
    then = time[row] if len(page) else links.added
    there = leads & (links.source != links.target) & (links.added < then) & ~(links.removed < then)
    return Feature("inlinks", FeatureGroup.SN), np.bincount(row[there], minlength=len(page))


SHORTEST: Final = 30 * DAY
"""Pages that were there for less are left out: one change on one day is no rate."""
AGE: Final = "days_since_change"
WHOLE, AHEAD = "as printed", "ahead"
READINGS: Final = (WHOLE, AHEAD)
"""Rates of the whole record and features at its end, as in the thesis; or features in its middle and rates after it."""


@dataclass(frozen=True, slots=True)
class RateTraining:
    """Pages of a site with features and change rates."""

    name: str
    urls: tuple[str, ...]
    table: FeatureTable
    rate: FloatArray
    """Changes per second; NaN if not known."""

    def __len__(self) -> int:
        return len(self.rate)


def training_pages(recorded: RecordedPages, reading: str) -> list[RateTraining]:
    """A lesson for each collection. Pages that had gone by the time they are observed are left out.

    With ``WHOLE`` a page is observed when the record ends, and its rate is that from its birth on: what it looks like,
    above all its age, has then been shaped by the very changes that are predicted. ``AHEAD`` observes it in the middle
    of the record, and counts what happens from then until the page goes or the record ends.
    """
    found, first = [], 0
    for collection in recorded.collections:
        found.append(_training(recorded, collection, first, reading))
        first += len(collection)
    return found


def pooled(several: Sequence[RateTraining], name: str) -> RateTraining:
    """The pages of several sites as those of one, which then has several domains."""
    page = np.concatenate([one.table.page for one in several])
    values = np.concatenate([one.table.values for one in several])
    table = FeatureTable(page, several[0].table.columns, values, max(one.table.as_of for one in several))
    urls = tuple(url for one in several for url in one.urls)
    return RateTraining(name, urls, table, np.concatenate([one.rate for one in several]))


def _training(recorded: RecordedPages, collection: Collection, first: int, reading: str) -> RateTraining:
    life = collection.watched()
    middle = 0.5 * (collection.start + collection.end)
    observation = collection.end if reading == WHOLE else middle
    begin = np.maximum(life.born, collection.start) if reading == WHOLE else np.full(len(collection), middle)
    end = np.minimum(life.died, collection.end)
    there = (life.born < observation) & (life.died >= observation)
    row = np.flatnonzero(there & (end - np.where(there, begin, 0.0) >= SHORTEST))
    begin, end = begin[row], end[row]
    changes = collection.changes_between(row, begin, end)
    place, time = first + row, np.full(len(row), observation)
    urls = tuple(collection.urls[one] for one in row.tolist())
    observations = recorded.observations(place, time)
    own = table_of(observations.page, observations.as_of, _own_columns(urls, recorded.ages(place, time)))
    return RateTraining(collection.name, urls, beside([observations, own]), changes / np.maximum(end - begin, SHORTEST))


def sitemap_training(name: str, urls: Sequence[str], last: FloatArray) -> RateTraining:
    """What a sitemap tells of its pages: URLs, and when they changed last, seconds since the epoch or NaN.

    Ages are those on the day of the latest change, since a sitemap does not say when it was written.
    """
    known = last[~np.isnan(last)]
    written = float(known.max()) if len(known) else 0.0
    columns = [*url_columns(urls), *_own_columns(urls, (written - last) / DAY)]
    return RateTraining(name, tuple(urls), table_of(np.arange(len(urls)), written, columns), np.full(len(urls), np.nan))


def _own_columns(urls: Sequence[str], age: FloatArray) -> list[Column]:
    """Domains as names, and days since the last change as the head of an answer or a sitemap tells them."""
    domain = Feature("domain", FeatureGroup.SP, categorical=True)
    return [(domain, buckets([host_of(url) or "" for url in urls])), (Feature(AGE, FeatureGroup.DP), age)]
