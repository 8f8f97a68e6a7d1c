"""The features of all pages of a workspace as they were known at a moment, and the file they go to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recrawl.errors import ConfigError, InputError, require
from recrawl.formats.disk import complete_file
from recrawl.model.words import counted
from recrawl.predict.feature_table import FeatureTable, Group
from recrawl.predict.features import Evidence, FeatureOptions, look_around, page_features
from recrawl.predict.text_space import learn_semantics
from recrawl.time import to_iso

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.store.base import Store


@dataclass(frozen=True, slots=True)
class Asked:
    """What features are wanted, and as of when."""

    as_of: float
    """Seconds since the epoch; nothing at or after it is looked at."""
    period: float
    history: int
    seed: int
    groups: tuple[Group, ...]

    def __post_init__(self) -> None:
        if self.period <= 0:
            raise ConfigError("--period is 0: nothing can be counted in no time.", "Write 7d.")


@dataclass(frozen=True, slots=True)
class Features:
    """What was found."""

    table: FeatureTable
    urls: tuple[str, ...]
    looks: int
    """Looks that were read for it."""
    recall: float
    """Share of the truly related pages that was found."""

    def sentence(self) -> str:
        """How much there is."""
        count = {group: sum(one.group is group for one in self.table.columns) for group in Group}
        parts = ", ".join(f"{number} {group}" for group, number in count.items() if number)
        return (
            f"{len(self.table.columns)} features ({parts}) of {counted(len(self.table), 'page')} "
            f"by {counted(self.looks, 'look')} before {to_iso(self.table.as_of)}; "
            f"{self.recall:.1%} of the related pages found."
        )


def groups_of(names: Sequence[str]) -> tuple[Group, ...]:
    """The groups of these names; all if none is named.

    Raises:
        ConfigError: there is no such group.
    """
    for name in names:
        if name.upper() not in set(Group):
            raise ConfigError(f"{name!r} is no group of features.", f"There are: {', '.join(Group)}.")
    return tuple(Group(name.upper()) for name in names) or tuple(Group)


def feature_table(place: Workspace, store: Store, asked: Asked) -> Features:
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
    return Features(table, evidence.urls, len(evidence.versions), around.related.recall)


def write_features(file: Path, found: Features, asked: Asked) -> None:
    """Write a row a page: its URL, then its features. Parquet also keeps what they are, and as of when."""
    from recrawl.cli.rates_output import write_columns

    table = found.table
    if file.suffix.lower() != ".parquet":
        columns = {name: table.column(name).astype(np.float64).tolist() for name in table.names}
        write_columns(file, {"url": list(found.urls), **columns})
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
    values = [pa.array(table.values[:, place], from_pandas=True) for place in range(len(kinds))]
    schema = pa.schema([pa.field("url", pa.string()), *kinds], metadata=about)
    written = pa.Table.from_arrays([pa.array(found.urls, pa.string()), *values], schema=schema)
    with complete_file(file) as stream:
        parquet.write_table(written, stream)


def _evidence(place: Workspace, store: Store, as_of: float) -> Evidence:
    """What was known of all pages that somebody knew of before a time: to be visited, looked at, or linked to.

    When a page that is not to be visited was found does not count: an import notes one time for many of them.
    """
    from recrawl.cli.waiting import bar
    from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into
    from recrawl.crawl.looks_before import looks_before
    from recrawl.crawl.page_contents import page_evidence

    pages = store.pages()
    order = np.argsort(pages.id)
    ids, wanted = pages.id[order], (pages.importance > 0)[order]
    urls = dict(zip(ids.tolist(), store.urls(ids), strict=True))
    archived = ArchivedBytes(place.warc, imported_into(store))
    with bar("copies of pages", len(ids)) as advance:

        def progress(done: int) -> None:
            for _ in range(done):
                advance()

        looks = looks_before(store, archived.read, ids, as_of, progress)
        evidence = page_evidence(urls, looks, last_texts=True)
    known = (wanted & (pages.discovered[order] < as_of)) | np.isin(ids, evidence.versions.page)
    known |= np.isin(ids, evidence.links.target) if evidence.links is not None else False
    if not known.any():
        raise InputError(f"No page was known before {to_iso(as_of)}.", "Name a later --at.")
    return evidence.of_pages(known)
