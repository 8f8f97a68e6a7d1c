"""The data of an experiment: a data set, or one made from a workspace or captures; and recorded page versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.errors import ConfigError, InputError, require

if TYPE_CHECKING:
    from recrawl.model import IntArray
    from recrawl.predict.feature_extraction import FeatureEvidence
    from recrawl.simulate.sampling import Collection
    from recrawl.store.base import Store
    from recrawl_lab.trials.rate_training import RecordedPages


@contextmanager
def experiment_data(data: Path | None, workspace: Path | None, files: Sequence[Path] = ()) -> Iterator[Path]:
    """The folder of a data set: ``data`` itself, or one with what a workspace or some files of captures tell.

    Anyone who names a workspace or files means these, also where ``data`` is set for all experiments.

    Raises:
        ConfigError: both a workspace and files are named, or nothing is.
        InputError: there is nothing in them to learn from.
    """
    if workspace is not None and files:
        raise ConfigError("A workspace and files are two archives.", "Name one of them.")
    if workspace is None and not files:
        if data is None:
            raise ConfigError("There is no data to work on.", "Name a workspace with -w, or a data set with --data.")
        yield data
        return
    from recrawl.app.progress import line
    from recrawl.app.workspace.workspace import make_workspace, open_workspace
    from recrawl.transfer.exporter import write_dataset

    with TemporaryDirectory(prefix="recrawl-experiment-") as scratch:
        # The folder has the name that reports call the data by.
        folder = Path(scratch) / (workspace.resolve().name if workspace is not None else files[0].name)
        with line("Reading the archive"):
            place = (
                make_workspace(Path(scratch) / ".archive", {}) if workspace is None else open_workspace(workspace, {})
            )
            with place.open_store() as store:
                if files:
                    _take(store, place.warc, files)
                write_dataset(store, folder)
        try:
            yield folder
        except InputError as error:
            if not error.source.startswith(scratch):
                raise
            # The folder is gone when this is read: what is named is the archive that it was made of.
            archive = str(workspace if workspace is not None else files[0])
            raise InputError(error.what.removeprefix(f"{error.source}: "), error.remedy, source=archive) from error


def _take(store: Store, warc: Path, files: Sequence[Path]) -> None:
    """Import files of captures, to be evaluated by their digests."""
    from recrawl.crawl.clock import RealClock
    from recrawl.transfer.archive_import import Importer
    from recrawl.transfer.import_sources import ImportSources, check_known

    importer = Importer(store, RealClock())
    sources = ImportSources(store, importer, RealClock(), warc)
    brought = [one for file in files for one in sources.bring(file)]
    check_known(brought, files)
    importer.judge()


def recorded_pages(folder: Path) -> RecordedPages:
    """The collections of a data set by name, with features of their pages.

    What is told of a version beside its URL differs: sites tell links, images, tables and sizes, sources sizes alone.
    """
    from recrawl.app.compare.benchmark_runs import collections
    from recrawl_lab.trials.rate_training import RecordedPages

    found = sorted(collections(folder), key=lambda one: one.name)
    evidence, page = _of_sites(folder, found) if (folder / "pages.parquet").is_file() else _of_sources(folder, found)
    return RecordedPages(tuple(found), evidence, page)


def _of_sites(folder: Path, found: list[Collection]) -> tuple[FeatureEvidence, IntArray]:
    """All recorded columns of page versions, and the page id of each page of the collections."""
    from recrawl.app.predict.model_data import link_data

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
