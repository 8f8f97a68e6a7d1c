"""Pages of recorded sites with what they look like and how often they change: what rates are foretold from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from recrawl.model import FloatArray
from recrawl.predict.feature_table import Column, Feature, FeatureTable, Group, beside, table_of
from recrawl.predict.names import buckets
from recrawl.predict.static_page import url_columns
from recrawl.simulate.collection import Collection
from recrawl.simulate.recorded_pages import RecordedPages
from recrawl.time import DAY
from recrawl.urls import host_of

SHORTEST: Final = 30 * DAY
"""Pages that were there for less are left out: one change on one day is no rate."""
AGE: Final = "days_since_change"
WHOLE, AHEAD = "as printed", "ahead"
READINGS: Final = (WHOLE, AHEAD)
"""Rates of the whole record and features at its end, as in the thesis; or features in its middle and rates after it."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """Pages of a site, what they look like, and how often they change."""

    name: str
    urls: tuple[str, ...]
    table: FeatureTable
    rate: FloatArray
    """Changes a second; NaN where nobody counted them."""

    def __len__(self) -> int:
        return len(self.rate)


def lessons(recorded: RecordedPages, reading: str) -> list[Lesson]:
    """A lesson for each collection. Pages that had gone by the time they are looked at are left out.

    With ``WHOLE`` a page is looked at when the record ends, and its rate is that from its birth on: what it looks like,
    above all its age, has then been shaped by the very changes that are foretold. ``AHEAD`` looks at it in the middle
    of the record, and counts what happens from then until the page goes or the record ends.
    """
    found, first = [], 0
    for collection in recorded.collections:
        found.append(_lesson(recorded, collection, first, reading))
        first += len(collection)
    return found


def pooled(several: Sequence[Lesson], name: str) -> Lesson:
    """The pages of several sites as those of one, which then has several domains."""
    page = np.concatenate([one.table.page for one in several])
    values = np.concatenate([one.table.values for one in several])
    table = FeatureTable(page, several[0].table.columns, values, max(one.table.as_of for one in several))
    urls = tuple(url for one in several for url in one.urls)
    return Lesson(name, urls, table, np.concatenate([one.rate for one in several]))


def _lesson(recorded: RecordedPages, collection: Collection, first: int, reading: str) -> Lesson:
    life = collection.watched()
    middle = 0.5 * (collection.start + collection.end)
    look = collection.end if reading == WHOLE else middle
    begin = np.maximum(life.born, collection.start) if reading == WHOLE else np.full(len(collection), middle)
    end = np.minimum(life.died, collection.end)
    there = (life.born < look) & (life.died >= look)
    row = np.flatnonzero(there & (end - np.where(there, begin, 0.0) >= SHORTEST))
    begin, end = begin[row], end[row]
    changes = collection.changes_between(row, begin, end)
    place, time = first + row, np.full(len(row), look)
    urls = tuple(collection.urls[one] for one in row.tolist())
    looks = recorded.looks(place, time)
    own = table_of(looks.page, looks.as_of, _own_columns(urls, recorded.ages(place, time)))
    return Lesson(collection.name, urls, beside([looks, own]), changes / np.maximum(end - begin, SHORTEST))


def sitemap_lesson(name: str, urls: Sequence[str], last: FloatArray) -> Lesson:
    """What a sitemap tells of its pages: URLs, and when they changed last, seconds since the epoch or NaN.

    Ages are those on the day of the latest change, since a sitemap does not say when it was written.
    """
    known = last[~np.isnan(last)]
    written = float(known.max()) if len(known) else 0.0
    columns = [*url_columns(urls), *_own_columns(urls, (written - last) / DAY)]
    return Lesson(name, tuple(urls), table_of(np.arange(len(urls)), written, columns), np.full(len(urls), np.nan))


def _own_columns(urls: Sequence[str], age: FloatArray) -> list[Column]:
    """Domains as names, and days since the last change as the head of an answer or a sitemap tells them."""
    domain = Feature("domain", Group.SP, categorical=True)
    return [(domain, buckets([host_of(url) or "" for url in urls])), (Feature(AGE, Group.DP), age)]
