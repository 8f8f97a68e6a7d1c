"""Recorded sites with their link graphs, read from a data set for captures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.errors import InputError, require

if TYPE_CHECKING:
    from recrawl.model import AnyArray, IntArray
    from recrawl.simulate.capture_recorded import RecordedSite
    from recrawl.simulate.web import Links


def recorded_sites(data: Path, only: Sequence[str]) -> list[RecordedSite]:
    """The sites of all data sets in a folder that tell links (edges.parquet), or those named.

    Raises:
        InputError: there is no such site, or no links are told.
    """
    from recrawl.cli.datasets import collections, find_datasets
    from recrawl.simulate.capture_recorded import RecordedSite

    found = []
    for folder in find_datasets(data):
        if not (folder / "edges.parquet").is_file():
            continue
        wanted = [one for one in collections(folder) if not only or one.name in only]
        links = _links(folder, {one.name: len(one) for one in wanted})
        found += [RecordedSite(one, links[one.name]) for one in wanted]
    missing = sorted(set(only) - {site.name for site in found})
    if missing or not found:
        what = (
            f"There is no site {missing[0]!r} with links." if missing else "No data set here tells the links of pages."
        )
        raise InputError(what, "Name a folder with pages.parquet, events.parquet and edges.parquet.", source=str(data))
    return found


def _links(folder: Path, sizes: dict[str, int]) -> dict[str, Links]:
    """The links of each site, between pages by their place in the order of page numbers."""
    from recrawl.simulate.web import Links

    pages = _columns(folder / "pages.parquet", ("site", "page_id"))
    edges = _columns(folder / "edges.parquet", ("site", "src", "dst", "t_add", "t_rem"))
    links = {}
    for site, size in sizes.items():
        ids = np.sort(pages["page_id"][pages["site"] == site].astype(np.int64))
        rows = edges["site"] == site
        removed = edges["t_rem"][rows].astype(np.float64)
        links[site] = Links.of(
            _places(ids, edges["src"][rows], folder),
            _places(ids, edges["dst"][rows], folder),
            edges["t_add"][rows].astype(np.float64),
            np.where(np.isnan(removed), np.inf, removed),
            pages=size,
        )
    return links


def _places(ids: IntArray, page: AnyArray, folder: Path) -> IntArray:
    place = np.searchsorted(ids, page.astype(np.int64))
    if len(page) and not (len(ids) and np.array_equal(ids[np.minimum(place, len(ids) - 1)], page)):
        raise InputError(
            "a link is between pages that pages.parquet does not have",
            "Get the data set anew.",
            source=str(folder / "edges.parquet"),
        )
    return place


def _columns(file: Path, names: tuple[str, ...]) -> dict[str, AnyArray]:
    pa: Any = require("pyarrow", "columns")
    pq: Any = require("pyarrow.parquet", "columns")
    lacking = [name for name in names if name not in pq.read_schema(file).names]
    if lacking:
        raise InputError(f"there is no column {lacking[0]!r}", "Take a data set that tells links.", source=str(file))
    table = pq.read_table(file, columns=list(names))
    columns = {}
    for name in names:
        column = table.column(name)
        plain = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        columns[name] = np.asarray(plain.to_numpy(zero_copy_only=False))
    return columns
