"""The data that models of change learn from.

Recorded pages of a data set with their versions, links and texts, for the prediction of new links; and the features of
all pages of a workspace as they were known at a moment, with the file they are written to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.progress import bars
from recrawl.app.provenance import KEY, Provenance
from recrawl.errors import ConfigError, InputError, counted, require
from recrawl.formats.atomic_files import complete_file
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.predict.feature_extraction import FeatureEvidence, FeatureOptions, look_around, page_features
from recrawl.predict.related_pages import learn_semantics
from recrawl.predict.static_features import FeatureGroup, FeatureTable
from recrawl.time import to_iso

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.model import AnyArray
    from recrawl.predict.page_versions import PageTexts, TimedLinks
    from recrawl.store.base import Store
    from recrawl.transfer.page_contents import ContentReader


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
    from recrawl.formats.warc.archived_bytes import ArchivedBytes
    from recrawl.transfer.page_contents import observations_before, page_evidence

    pages = store.pages()
    order = np.argsort(pages.id)
    ids, wanted = pages.id[order], (pages.importance > 0)[order]
    urls = dict(zip(ids.tolist(), store.urls(ids), strict=True))
    archived = ArchivedBytes.of(place.archive, store)
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
