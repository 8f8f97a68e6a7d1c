"""Exports the store in the formats of other tools, and as a data set of change histories.

``formats.columnar.dataset`` reads the data set, and so do experiments.
``pages.parquet``, ``events.parquet`` and ``edges.parquet`` have the columns of the public data sets. Events are dated
as well as the observations allow: a logged change at its time, any other halfway between the observation that found it
and the one before (HACS §II-B2). ``observations.parquet`` has the observations themselves. Values that were not
measured are null.

A site is defined as in HACS: a user's directory (``foo.edu/~bar/``), else a host.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.errors import DiskFullError, InputError, require
from recrawl.estimate.site_signals import is_exact
from recrawl.formats.atomic_files import FULL, unfinished_file
from recrawl.formats.cdx.cdx_lines import REVISIT
from recrawl.formats.columnar.capture_batches import NO_SIZE, RecordKind, schema
from recrawl.formats.columnar.dataset import OBSERVATIONS
from recrawl.model import AnyArray, FloatArray, IntArray, Outcome, Verdict, Visits
from recrawl.model.arrays import starts_of_runs
from recrawl.store.base import CaptureIndex, HistoryStore
from recrawl.store.store_values import CaptureColumns
from recrawl.transfer.listed_captures import captures_in_pieces, chunks_of
from recrawl.urls import home_of, surt

_PAGES_AT_ONCE, _CAPTURES_AT_ONCE = 5_000, 50_000
_SHA1_BYTES = 20


def capture_batches(
    store: CaptureIndex,
    pages: IntArray | None = None,
    *,
    name_of: Callable[[str], str] = lambda file: Path(file).name,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Iterator[Any]:
    """All captures (of these pages) as record batches of :func:`recrawl.formats.columnar.capture_batches.schema`.

    ``name_of`` maps the store's name of a file to the written one; ``progress`` receives pages done and all pages.
    Memory does not grow with the captures of the store, nor with those of one page.
    """
    pa = require("pyarrow", "columns")
    for some, captures in _columns(store, pages, progress):
        urls = dict(zip(some.tolist(), store.urls(some), strict=True))
        keys = {page: surt(url) or "" for page, url in urls.items()}
        page = captures.page.tolist()
        repeats = [mime == REVISIT for mime in captures.mime]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([urls[number] for number in page], pa.string()),
                pa.array([keys[number] for number in page], pa.string()),
                pa.array(captures.time),
                pa.array(_kinds(captures.status, np.array(repeats, np.bool_))),
                pa.array(captures.status.astype(np.int16)),
                pa.array(
                    ["" if again else mime for mime, again in zip(captures.mime, repeats, strict=True)], pa.string()
                ),
                pa.array([digest_text(digest) for digest in captures.digest], pa.string()),
                pa.array(captures.size),
                pa.array([name_of(file) for file in captures.warc_file], pa.string()),
                pa.array(np.where(captures.warc_offset < 0, NO_SIZE, captures.warc_offset)),
                pa.array(np.where(captures.warc_length < 0, NO_SIZE, captures.warc_length)),
            ],
            schema=schema(),
        )


def capture_files(
    store: CaptureIndex, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> Iterator[str]:
    """The file of every capture, as the store names it; empty text for none."""
    for _, captures in _columns(store, None, progress):
        yield from captures.warc_file


def _columns(
    store: CaptureIndex, pages: IntArray | None, progress: Callable[[int, int], None]
) -> Iterator[tuple[IntArray, CaptureColumns]]:
    """Captures some ten thousand at a time, with the pages they are of: a page may have one or a million."""
    chosen = store.pages().id if pages is None else pages
    done = 0
    for some in chunks_of(store, chosen, _CAPTURES_AT_ONCE, _PAGES_AT_ONCE):
        for captures in captures_in_pieces(store, some, _CAPTURES_AT_ONCE):
            if len(captures):
                yield some, captures
        done += len(some)
        progress(done, len(chosen))


def digest_text(digest: bytes) -> str:
    """A digest as indexes write it: SHA-1 in base32, any other as it was given.

    >>> digest_text(bytes(20)), digest_text(b"md5:0cc1")
    ('AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'md5:0cc1')
    """
    return base64.b32encode(digest).decode() if len(digest) == _SHA1_BYTES else digest.decode("utf-8", "replace")


def page_batches(store: HistoryStore, progress: Callable[[int, int], None] = lambda _done, _all: None) -> Iterator[Any]:
    """Pages as nodes of a graph: id, URL, observations, changes, importance."""
    pa = require("pyarrow", "columns")
    pages = store.pages()
    for start in range(0, len(pages), _PAGES_AT_ONCE):
        some = pages.take(slice(start, start + _PAGES_AT_ONCE))
        histories = store.histories(pages=some.id).align(some.id)
        yield pa.RecordBatch.from_pydict(
            {
                "id": some.id,
                "url": store.urls(some.id),
                "importance": some.importance,
                "observations": histories.counts() + ~np.isnan(histories.first_visit),
                "changes": histories.changes(),
            }
        )
        progress(start + len(some), len(pages))


def link_batches(store: HistoryStore, progress: Callable[[int, int], None] = lambda _done, _all: None) -> Iterator[Any]:
    """Links as edges of a graph: source, target, first and last seen (seconds since the epoch)."""
    pa = require("pyarrow", "columns")
    pages = store.pages().id
    for start in range(0, len(pages), _PAGES_AT_ONCE):
        some = pages[start : start + _PAGES_AT_ONCE]
        links = store.outlinks(some)
        columns = {name: getattr(links, name) for name in ("source", "target", "first_seen", "last_seen")}
        yield pa.RecordBatch.from_pydict(columns)
        progress(start + len(some), len(pages))


def _kinds(status: IntArray, repeats: Any) -> Any:  # noqa: ANN401 - arrays of flags
    kinds = np.where(repeats, RecordKind.REVISIT_IDENTICAL, RecordKind.RESPONSE)
    kinds = np.where(repeats & (status == HTTPStatus.NOT_MODIFIED), RecordKind.REVISIT_NOT_MODIFIED, kinds)
    return np.where(status < 0, RecordKind.FAILED, kinds).astype(np.uint8)


DEEPEST = 2
"""Directories below a home page up to which pages count as its site (HACS, data set D2)."""


@dataclass(frozen=True, slots=True)
class DatasetCounts:
    """How much was written."""

    sites: int
    pages: int
    events: int
    observations: int


def write_dataset(store: HistoryStore, folder: Path, *, about: Mapping[str, str] | None = None) -> DatasetCounts:
    """Write the tables; each appears complete or not at all, with ``about`` in its metadata. Memory: all visits.

    Raises:
        DiskFullError: the disk is full.
        InputError: no page was ever seen, or the folder cannot be written to.
    """
    visits = store.visits().sorted()
    seen = observations(visits)
    if not len(seen):
        raise InputError("no page of this workspace was ever seen", "Import an archive, or crawl for a while first.")
    ids = np.unique(seen.page)
    pages = _ExportedPages.of(ids, store.urls(ids))
    events = _events(seen)
    links = store.outlinks(ids)
    tables = {
        "pages": _page_table(pages, seen),
        "events": _event_table(pages, *events),
        "edges": _edge_table(pages, links.source, links.target, links.first_seen),
        OBSERVATIONS: _observation_table(pages, seen),
    }
    _write(folder, tables, about)
    return DatasetCounts(len(set(pages.site)), len(ids), len(events[0]), len(seen))


def observations(visits: Visits) -> Visits:
    """The observations (by page and time): the first answer of each page, and visits with a verdict."""
    answered = visits.take(visits.answered())
    return answered.take(starts_of_runs(answered.page) | (answered.verdict != Verdict.UNKNOWN))


@dataclass(frozen=True, slots=True)
class _ExportedPages:
    """Pages by ascending id, with the site of each and its number there."""

    id: IntArray
    url: list[str]
    site: list[str]
    depth: IntArray
    number: IntArray
    """``page_id``: counted within the site."""

    @classmethod
    def of(cls, ids: IntArray, urls: list[str]) -> _ExportedPages:
        seed_scope = [home_of(url) for url in urls]
        count: dict[str, int] = {}
        number = np.zeros(len(ids), np.int64)
        for row, (site, _) in enumerate(seed_scope):
            number[row] = count.get(site, 0)
            count[site] = int(number[row]) + 1
        return cls(
            ids, urls, [site for site, _ in seed_scope], np.array([deep for _, deep in seed_scope], np.int64), number
        )

    def rows(self, page: IntArray) -> IntArray:
        """The row of each page."""
        return np.searchsorted(self.id, page)

    def by_site(self, row: IntArray, time: FloatArray) -> IntArray:
        """The order of rows of a table by site, page and time: tables name each site in one place."""
        rank = np.unique(np.array(self.site), return_inverse=True)[1]
        return np.lexsort((time, self.number[row], rank[row]))

    def named(self, row: IntArray) -> dict[str, Any]:
        """The key of these rows."""
        return {"site": [self.site[one] for one in row.tolist()], "page_id": self.number[row]}


def _events(observations: Visits) -> tuple[Visits, FloatArray, AnyArray]:
    """The observations that found something, when it happened, and what: add, mod or del."""
    first, gone = starts_of_runs(observations.page), observations.outcome == Outcome.GONE
    before = np.append(False, gone[:-1]) & ~first
    middle = np.where(first, observations.time, (observations.time + np.roll(observations.time, 1)) / 2.0)
    when = np.where(is_exact(observations), observations.time, middle)
    kind = np.where(gone, "del", np.where(first | before, "add", "mod"))
    told = np.flatnonzero(np.where(first, ~gone, observations.verdict == Verdict.CHANGED))
    return observations.take(told), when[told], kind[told]


def _page_table(pages: _ExportedPages, observations: Visits) -> dict[str, Any]:
    row = pages.by_site(np.arange(len(pages.id)), np.zeros(len(pages.id)))
    seen = observations.time[np.flatnonzero(starts_of_runs(observations.page))]
    return {
        **pages.named(row),
        "url": [pages.url[one] for one in row.tolist()],
        "first_seen": seen[row],
        "depth": pages.depth[row],
        "is_home": pages.depth[row] == 0,
        "in_d2": pages.depth[row] <= DEEPEST,
    }


def _event_table(pages: _ExportedPages, found: Visits, when: FloatArray, kind: AnyArray) -> dict[str, Any]:
    row = pages.rows(found.page)
    order = pages.by_site(row, when)
    counts = {
        name: np.where(column >= 0, column, np.nan)[order]
        for name, column in (
            ("new_int", found.new_internal),
            ("new_ext", found.new_external),
            ("net_int", found.added_internal),
            ("net_ext", found.added_external),
            ("size", np.where(found.size > 0, found.size, -1)),
        )
    }
    unknown = dict.fromkeys(
        ("text_len", "n_links_int", "n_links_ext", "n_images", "n_tables"), np.full(len(order), np.nan)
    )
    nothing = np.zeros(len(order), np.bool_)
    return {
        **pages.named(row[order]),
        "t": when[order],
        "kind": kind[order].tolist(),
        "bulk": nothing,
        "missing": nothing,
        **counts,
        **unknown,
    }


def _edge_table(pages: _ExportedPages, source: IntArray, target: IntArray, added: FloatArray) -> dict[str, Any]:
    """Links between pages of one site; the time of their removal is not recorded."""
    site = np.array(pages.site)
    inside = np.isin(target, pages.id)
    source, target, added = (pages.rows(source[inside]), pages.rows(target[inside]), added[inside])
    same = np.flatnonzero(site[source] == site[target]) if len(source) else np.empty(0, np.int64)
    source, target, added = source[same], target[same], added[same]
    order = pages.by_site(source, added)
    return {
        "site": site[source[order]].tolist(),
        "src": pages.number[source[order]],
        "dst": pages.number[target[order]],
        "t_add": added[order],
        "t_rem": np.full(len(order), np.nan),
    }


def _observation_table(pages: _ExportedPages, observations: Visits) -> dict[str, Any]:
    row = pages.rows(observations.page)
    order = pages.by_site(row, observations.time)
    told = observations.take(order)
    return {
        **pages.named(row[order]),
        "t": told.time,
        "outcome": told.outcome,
        "verdict": told.verdict,
        "kinds": told.kinds,
        "new_int": told.new_internal,
        "new_ext": told.new_external,
    }


def _write(folder: Path, tables: dict[str, dict[str, Any]], about: Mapping[str, str] | None) -> None:
    pa, parquet = require("pyarrow", "columns"), require("pyarrow.parquet", "columns")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, columns in tables.items():
            made = {
                key: pa.array(column, pa.string()) if isinstance(column, list) else pa.array(column, from_pandas=True)
                for key, column in columns.items()
            }
            with unfinished_file(folder / f"{name}.parquet") as part:
                parquet.write_table(pa.table(made).replace_schema_metadata(about), part, compression="zstd")
                part.replace(folder / f"{name}.parquet")
    except OSError as error:
        if error.errno in FULL:
            raise DiskFullError(f"{folder}: the disk is full.", "Free some space and write it again.") from error
        raise InputError(f"it cannot be written ({error})", "Check the folder.", source=str(folder)) from error
