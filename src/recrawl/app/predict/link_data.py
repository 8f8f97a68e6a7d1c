"""Pages of a data set with their versions, links and texts: what prediction of new links learns from.

Recorded pages of several sites with their links: what prediction of new links learns from.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.errors import InputError, require
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.predict.feature_extraction import FeatureEvidence

if TYPE_CHECKING:
    from recrawl.model import AnyArray, FloatArray, IntArray
    from recrawl.predict.page_versions import PageTexts, TimedLinks


@dataclass(frozen=True, slots=True)
class RecordedLinks:
    """The pages of several sites with all recorded data. Page ids are 0, 1, …, n − 1."""

    evidence: FeatureEvidence
    site: IntArray
    """The site of each page, as a place in ``sites``."""
    sites: tuple[str, ...]
    events: tuple[IntArray, FloatArray, BoolArray]
    """Page, time, and whether the page went, of every event; by page and time."""

    def alive(self, time: float) -> BoolArray:
        """Which pages were there just before a time."""
        page, when, gone = self.events
        there = np.zeros(len(self.site), np.bool_)
        earlier = when < time
        there[page[earlier]] = ~gone[earlier]  # of equal indices the last assignment stands
        return there

    def recorded_at(self, time: float) -> BoolArray:
        """The pages of sites whose record goes on to this time; past its end a site seems to have no new links."""
        page, when, _ = self.events
        last = np.full(len(self.sites), -np.inf)
        np.maximum.at(last, self.site[page], when)
        return np.asarray((last >= time)[self.site])


_STATES = {
    "content_size": "size",
    "text_size": "text_len",
    "internal_links": "n_links_int",
    "external_links": "n_links_ext",
    "images": "n_images",
    "tables": "n_tables",
}
"""Columns of versions, and their names in the tables, which hold no e-mail addresses or headers."""


def link_data(folder: Path, only: Collection[str] = (), *, texts: bool = True) -> RecordedLinks:
    """The pages of a data set, of some of its sites or of all; without texts if not requested. O(events).

    Bulk edits change what is on a page, but count neither as changes nor for new links (algorithms §7): moving a
    whole site is no reason to visit its pages again.

    Raises:
        InputError: a table or column is missing, or a site is unknown.
    """
    from recrawl.predict.feature_extraction import FeatureEvidence
    from recrawl.predict.page_versions import PageVersions

    names = ("site", "page_id", "t", "kind", "bulk", "missing", "net_int", "net_ext", *_STATES.values())
    pages, events = _table(folder, "pages", ("site", "page_id", "url"), only), _table(folder, "events", names, only)
    sites = tuple(sorted(set(pages["site"])))
    unknown = sorted(set(only) - set(sites))
    if unknown:
        raise InputError(f"there is no site {unknown[0]!r}", f"There are: {', '.join(sites)}.", source=str(folder))
    keys = _Keys.of(sites, pages)
    page, time = keys.rows(events, "page_id"), events["t"].astype(np.float64)
    order = np.lexsort((np.arange(len(page)), time, page))
    page, time, events = page[order], time[order], {name: column[order] for name, column in events.items()}
    told, quality = _texts(folder, only, keys, page, time) if texts else (None, np.full(len(page), np.nan))
    columns = _versions(events, quality)
    there = events["kind"] != "del"
    versions = PageVersions.of(
        page[there], time[there], {name: column[there] for name, column in columns.items()}, complete=True
    )
    urls = tuple(pages["url"][keys.order].tolist())
    evidence = FeatureEvidence(np.arange(len(urls)), urls, versions, _links(folder, only, keys), told)
    return RecordedLinks(evidence, keys.site, sites, (page, time, ~there))


def _versions(events: dict[str, AnyArray], quality: FloatArray) -> dict[str, AnyArray]:
    """What each event found on its page; a page that came back is not all new links."""
    unread = events["missing"].astype(np.bool_)
    columns: dict[str, AnyArray] = {
        name: np.where(unread, np.nan, events[column].astype(np.float64)) for name, column in _STATES.items()
    }
    modified = (events["kind"] == "mod") & ~events["bulk"].astype(np.bool_)
    for name, column in (("new_internal", "net_int"), ("new_external", "net_ext")):
        columns[name] = np.where(modified & ~unread, np.nan_to_num(events[column].astype(np.float64)), 0.0)
    return columns | {"changed": modified, "text_quality": quality}


def _links(folder: Path, only: Collection[str], keys: _Keys) -> TimedLinks:
    from recrawl.predict.page_versions import TimedLinks

    edges = _table(folder, "edges", ("site", "src", "dst", "t_add", "t_rem"), only)
    source, target = keys.rows(edges, "src"), keys.rows(edges, "dst")
    added, removed = (edges[name].astype(np.float64) for name in ("t_add", "t_rem"))
    return TimedLinks(source, target, added, removed, np.ones(len(source), np.bool_))


def _texts(
    folder: Path, only: Collection[str], keys: _Keys, page: IntArray, time: FloatArray
) -> tuple[PageTexts, FloatArray]:
    """The texts, and the quality of each event's: that of the last text its page is known to have had by then."""
    from recrawl.model.arrays import starts_of_runs
    from recrawl.predict.page_versions import PageTexts
    from recrawl.predict.static_features import text_qualities

    told = _table(folder, "texts", ("site", "page_id", "t_ref", "title", "text"), only)
    row, read = keys.rows(told, "page_id"), told["t_ref"].astype(np.float64)
    written = [f"{title or ''} {text or ''}" for title, text in zip(told["title"], told["text"], strict=True)]
    # A text was there from the last event before it was read; that event is the one it belongs to.
    scale = max(float(time.max(initial=0.0)), float(read.max(initial=0.0))) + 1.0
    event = np.searchsorted(page * scale + time, row * scale + read, side="right") - 1
    quality = np.full(len(page), np.nan)
    fits = (event >= 0) & (page[np.maximum(event, 0)] == row)
    quality[event[fits]] = text_qualities(written)[fits]
    last = np.maximum.accumulate(np.where(~np.isnan(quality) | starts_of_runs(page), np.arange(len(page)), 0))
    return PageTexts.of(row, read, written), quality[last]


@dataclass(frozen=True, slots=True)
class _Keys:
    """Where each page of each site lies."""

    sites: dict[str, int]
    site: IntArray
    ids: IntArray
    order: IntArray
    """Rows of the table of pages, by site and page id."""

    @classmethod
    def of(cls, sites: tuple[str, ...], pages: dict[str, AnyArray]) -> _Keys:
        place = {name: number for number, name in enumerate(sites)}
        site = np.array([place[name] for name in pages["site"]], dtype=np.int64)
        ids = pages["page_id"].astype(np.int64)
        order = np.lexsort((ids, site))
        return cls(place, site[order], ids[order], order)

    def rows(self, table: dict[str, AnyArray], column: str) -> IntArray:
        """The place of each page that a table names."""
        site = np.array([self.sites[name] for name in table["site"]], dtype=np.int64)
        width = int(max(self.ids.max(initial=0), table[column].max(initial=0))) + 1
        key = self.site * width + self.ids
        wanted = site * width + table[column].astype(np.int64)
        row = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        if not np.array_equal(key[row], wanted):
            raise InputError("a table names a page that pages.parquet does not have", "Download the data set again.")
        return row


def _table(folder: Path, name: str, columns: tuple[str, ...], only: Collection[str]) -> dict[str, AnyArray]:
    pq: Any = require("pyarrow.parquet", "columns")
    compute: Any = require("pyarrow.compute", "columns")
    file = folder / f"{name}.parquet"
    if not file.is_file():
        raise InputError(f"{file.name} is missing", "Give a data set with links and texts.", source=str(folder))
    lacking = [column for column in columns if column not in pq.read_schema(file).names]
    if lacking:
        raise InputError(
            f"{file.name} has no column {lacking[0]!r}", "Give a data set with links and texts.", source=str(file)
        )
    table = pq.read_table(file, columns=list(columns))
    if only:
        names = require("pyarrow", "columns").array(sorted(only))
        table = table.filter(compute.is_in(table.column("site").cast("string"), value_set=names))
    return {column: table.column(column).to_numpy(zero_copy_only=False) for column in columns}
