"""The features of all pages of a workspace as they were known at a moment, and the file they go to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recrawl.app.progress import bars
from recrawl.app.provenance import KEY, Provenance
from recrawl.errors import ConfigError, InputError, require
from recrawl.formats.atomic_files import complete_file
from recrawl.model.plurals import counted
from recrawl.predict.feature_extraction import FeatureEvidence, FeatureOptions, look_around, page_features
from recrawl.predict.feature_table import FeatureGroup, FeatureTable
from recrawl.predict.related_pages import learn_semantics
from recrawl.time import to_iso

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import Store
    from recrawl.transfer.page_contents import ContentReader


@dataclass(frozen=True, slots=True)
class FeatureQuestion:
    """What features are wanted, and as of when."""

    as_of: float
    """Seconds since the epoch; nothing at or after it is used."""
    period: float
    history: int
    seed: int
    groups: tuple[FeatureGroup, ...]

    def __post_init__(self) -> None:
        if self.period <= 0:
            raise ConfigError("--period is 0.", "Give a positive duration such as 7d.")


@dataclass(frozen=True, slots=True)
class ExtractedFeatures:
    """What was found."""

    table: FeatureTable
    urls: tuple[str, ...]
    observations: int
    """The number of observations used."""
    recall: float
    """Share of the truly related pages that was found."""

    def sentence(self) -> str:
        """How much there is."""
        count = {group: sum(one.group is group for one in self.table.columns) for group in FeatureGroup}
        parts = ", ".join(f"{number} {group}" for group, number in count.items() if number)
        return (
            f"{len(self.table.columns)} features ({parts}) of {counted(len(self.table), 'page')} "
            f"by {counted(self.observations, 'observation')} before {to_iso(self.table.as_of)}; "
            f"{self.recall:.1%} of the related pages found."
        )


def groups_of(names: Sequence[str]) -> tuple[FeatureGroup, ...]:
    """The groups of these names; all if none is named.

    Raises:
        ConfigError: there is no such group.
    """
    for name in names:
        if name.upper() not in set(FeatureGroup):
            raise ConfigError(f"{name!r} is not a group of features.", f"There are: {', '.join(FeatureGroup)}.")
    return tuple(FeatureGroup(name.upper()) for name in names) or tuple(FeatureGroup)


def feature_table(place: Workspace, store: Store, asked: FeatureQuestion) -> ExtractedFeatures:
    """Read the archive up to a time, and make the features of the pages that were known by then.

    Raises:
        InputError: no page was.
    """
    evidence = _evidence(place, store, asked.as_of)
    rng = np.random.default_rng(asked.seed)
    texts = [] if evidence.texts is None else evidence.texts.last_of(evidence.page)
    around = look_around(evidence, asked.as_of, learn_semantics(texts, rng), rng)
    options = FeatureOptions(period=asked.period, history=asked.history, rate_periods=max(asked.history, 1))
    table = page_features(evidence, asked.as_of, around, options).of_groups(asked.groups)
    return ExtractedFeatures(table, evidence.urls, len(evidence.versions), around.related.recall)


@contextmanager
def content_reader(place: Workspace) -> Iterator[ContentReader]:
    """Reads archived pages with the budget that a crawl has for answers; says in the end what could not be read."""
    from recrawl.parse.parse_pool import new_parse_pool
    from recrawl.transfer.page_contents import ContentReader

    settings = place.configuration.settings.detect
    with new_parse_pool(settings.parse_limits(), settings.standards()) as pool:
        reader = ContentReader(pool)
        yield reader
    if unread := list(reader.sentences()):
        with bars() as shown:
            for line in unread:
                shown.say(line)


def write_features(
    file: Path, found: ExtractedFeatures, asked: FeatureQuestion, provenance: Provenance | None = None
) -> None:
    """Write a row a page: its URL, then its features. Parquet also keeps what they are, and as of when."""
    from recrawl.app.result_tables import write_columns

    table = found.table
    if file.suffix.lower() != ".parquet":
        columns = {name: table.column(name).astype(np.float64).tolist() for name in table.names}
        write_columns(file, {"url": list(found.urls), **columns}, provenance)
        return
    pa, parquet = require("pyarrow", "columns"), require("pyarrow.parquet", "columns")
    kinds = [
        pa.field(one.name, pa.float32(), metadata={"group": one.group.value, "categorical": str(one.categorical)})
        for one in table.columns
    ]
    about = {
        "as_of": to_iso(asked.as_of),
        "schema": table.schema,
        "period": str(asked.period),
        "history": str(asked.history),
        "seed": str(asked.seed),
        "recall": str(found.recall),
    }
    if provenance is not None:
        about[KEY] = provenance.json()
    values = [pa.array(table.values[:, place], from_pandas=True) for place in range(len(kinds))]
    schema = pa.schema([pa.field("url", pa.string()), *kinds], metadata=about)
    written = pa.Table.from_arrays([pa.array(found.urls, pa.string()), *values], schema=schema)
    with complete_file(file) as stream:
        parquet.write_table(written, stream)


def _evidence(place: Workspace, store: Store, as_of: float) -> FeatureEvidence:
    """The features of all pages known before a time: scheduled, observed, or linked to.

    The discovery time of unscheduled pages is ignored: an import stores one time for many of them.
    """
    from recrawl.app.progress import bar
    from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
    from recrawl.transfer.page_contents import observations_before, page_evidence

    pages = store.pages()
    order = np.argsort(pages.id)
    ids, wanted = pages.id[order], (pages.importance > 0)[order]
    urls = dict(zip(ids.tolist(), store.urls(ids), strict=True))
    archived = ArchivedBytes(place.warc, imported_into(store))
    with bar("copies of pages", len(ids)) as advance:

        def progress(done: int) -> None:
            for _ in range(done):
                advance()

        observations = observations_before(store, archived.read, ids, as_of, progress)
        with content_reader(place) as read:
            evidence = page_evidence(urls, observations, last_texts=True, read=read)
    known = (wanted & (pages.discovered[order] < as_of)) | np.isin(ids, evidence.versions.page)
    known |= np.isin(ids, evidence.links.target) if evidence.links is not None else False
    if not known.any():
        raise InputError(f"No page was known before {to_iso(as_of)}.", "Give a later --at.")
    return evidence.of_pages(known)
