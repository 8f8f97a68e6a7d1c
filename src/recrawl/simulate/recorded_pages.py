"""What pages look like the first time somebody comes, each at a moment of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.predict.feature_table import Column, Feature, FeatureTable, Group, table_of
from recrawl.predict.features import Evidence
from recrawl.predict.page_graph import TimedLinks
from recrawl.predict.page_versions import picked
from recrawl.predict.static_page import url_columns, version_columns
from recrawl.simulate.collection import Collection
from recrawl.time import DAY


@dataclass(frozen=True, slots=True)
class RecordedPages:
    """Collections with all that is told of their pages. A page has a place: that in all collections, one after another.

    Places ascend with the page ids of the evidence.
    """

    collections: tuple[Collection, ...]
    evidence: Evidence
    page: IntArray
    """The page id of each place."""

    def looks(self, place: IntArray, time: FloatArray) -> FeatureTable:
        """What the pages at these ascending places looked like, each just before its own time."""
        return looks_at(self.evidence, self.page[place], time)

    def ages(self, place: IntArray, time: FloatArray) -> FloatArray:
        """Days since the version was made that each page showed just before its own time; NaN if it was not there."""
        chosen = self.evidence.of_pages(np.isin(self.evidence.page, self.page[place])).versions
        return (time - picked(chosen.time, chosen.valid_at(self.page[place], time))) / DAY


def looks_at(evidence: Evidence, page: IntArray, time: FloatArray) -> FeatureTable:
    """The static features of these ascending pages, each just before its own time, seconds since the epoch.

    Of a page alone, and the links to it; nothing that happened at or after the time of a page is looked at. The table's
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
    return Feature("inlinks", Group.SN), np.bincount(row[there], minlength=len(page))
