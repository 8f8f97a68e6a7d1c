"""Recorded collections with what their pages looked like, read from a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.errors import require

if TYPE_CHECKING:
    from recrawl.model import IntArray
    from recrawl.predict.feature_extraction import FeatureEvidence
    from recrawl.simulate.sampling import Collection
    from recrawl_lab.trials.rate_training import RecordedPages


def recorded_pages(folder: Path) -> RecordedPages:
    """The collections of a data set by name, with what their pages looked like.

    What is told of a version beside its URL differs: sites tell links, images, tables and sizes, sources sizes alone.
    """
    from recrawl.app.compare.collections_data import collections
    from recrawl_lab.trials.rate_training import RecordedPages

    found = sorted(collections(folder), key=lambda one: one.name)
    evidence, page = _of_sites(folder, found) if (folder / "pages.parquet").is_file() else _of_sources(folder, found)
    return RecordedPages(tuple(found), evidence, page)


def _of_sites(folder: Path, found: list[Collection]) -> tuple[FeatureEvidence, IntArray]:
    """All that is told of the versions of pages; and the page id of each page of the collections."""
    from recrawl.app.predict.link_data import link_data

    told = link_data(folder, texts=False)
    place = [np.flatnonzero(told.site == told.sites.index(one.name)) for one in found]
    return told.evidence, np.concatenate(place)


def _of_sources(folder: Path, found: list[Collection]) -> tuple[FeatureEvidence, IntArray]:
    """Sizes of the versions of sources; and the page id of each source of the collections."""
    from recrawl.predict.feature_extraction import FeatureEvidence
    from recrawl.predict.page_versions import PageVersions

    pq: Any = require("pyarrow.parquet", "columns")
    sources = pq.read_table(folder / "sources.parquet", columns=["source_id", "repo"]).to_pydict()
    named = {one.name for one in found}
    # By repository, then by number, as the collections are.
    order = sorted(
        (repo, number) for repo, number in zip(sources["repo"], sources["source_id"], strict=True) if repo in named
    )
    page = {number: place for place, (_, number) in enumerate(order)}
    has_size = "size" in pq.read_schema(folder / "events.parquet").names
    events = pq.read_table(folder / "events.parquet", columns=["source_id", "t", *["size"] * has_size])
    ids, time = (events.column(name).to_numpy(zero_copy_only=False) for name in ("source_id", "t"))
    size = events.column("size").to_numpy(zero_copy_only=False) if has_size else np.full(len(ids), np.nan)
    versions = PageVersions.of([page[one] for one in ids.tolist()], time, {"content_size": size}, complete=True)
    urls = tuple(url for one in found for url in one.urls)
    return FeatureEvidence(np.arange(len(urls)), urls, versions), np.arange(len(urls))
