"""Pages of a data set with their versions, links and texts: what prediction of new links learns from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.errors import InputError, require

if TYPE_CHECKING:
    from recrawl.model import AnyArray, FloatArray, IntArray
    from recrawl.predict.page_graph import TimedLinks
    from recrawl.predict.page_texts import PageTexts
    from recrawl.simulate.lbla_splits import RecordedLinks

_STATES = {
    "content_size": "size",
    "text_size": "text_len",
    "internal_links": "n_links_int",
    "external_links": "n_links_ext",
    "images": "n_images",
    "tables": "n_tables",
}
"""Columns of versions, and what they are called in the tables. E-mail addresses and headers are not told there."""


def link_data(folder: Path, only: Collection[str] = (), *, texts: bool = True) -> RecordedLinks:
    """The pages of a data set, of some of its sites or of all; without their texts if not asked for. O(events).

    Bulk edits change what is on a page, but count neither as changes nor for new links (algorithms §7): whoever moves a
    whole site gives no page a reason to be visited again.

    Raises:
        InputError: a table or column is missing, or a site is unknown.
    """
    from recrawl.predict.features import Evidence
    from recrawl.predict.page_versions import PageVersions
    from recrawl.simulate.lbla_splits import RecordedLinks

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
    evidence = Evidence(np.arange(len(urls)), urls, versions, _links(folder, only, keys), told)
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
    from recrawl.predict.page_graph import TimedLinks

    edges = _table(folder, "edges", ("site", "src", "dst", "t_add", "t_rem"), only)
    source, target = keys.rows(edges, "src"), keys.rows(edges, "dst")
    added, removed = (edges[name].astype(np.float64) for name in ("t_add", "t_rem"))
    return TimedLinks(source, target, added, removed, np.ones(len(source), np.bool_))


def _texts(
    folder: Path, only: Collection[str], keys: _Keys, page: IntArray, time: FloatArray
) -> tuple[PageTexts, FloatArray]:
    """The texts, and the quality of each event's: that of the last text its page is known to have had by then."""
    from recrawl.model.arrays import starts_of_runs
    from recrawl.predict.page_texts import PageTexts
    from recrawl.predict.text_quality import text_qualities

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
            raise InputError("a table names a page that pages.parquet does not have", "Get the data set anew.")
        return row


def _table(folder: Path, name: str, columns: tuple[str, ...], only: Collection[str]) -> dict[str, AnyArray]:
    pq: Any = require("pyarrow.parquet", "columns")
    compute: Any = require("pyarrow.compute", "columns")
    file = folder / f"{name}.parquet"
    if not file.is_file():
        raise InputError(f"{file.name} is missing", "Name a data set with links and texts.", source=str(folder))
    lacking = [column for column in columns if column not in pq.read_schema(file).names]
    if lacking:
        raise InputError(
            f"{file.name} has no column {lacking[0]!r}", "Take a data set with links and texts.", source=str(file)
        )
    table = pq.read_table(file, columns=list(columns))
    if only:
        names = require("pyarrow", "columns").array(sorted(only))
        table = table.filter(compute.is_in(table.column("site").cast("string"), value_set=names))
    return {column: table.column(column).to_numpy(zero_copy_only=False) for column in columns}
