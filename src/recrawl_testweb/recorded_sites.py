"""Recorded sites: the change histories of real pages as a virtual web.

Reads the Parquet tables of ``data/documents`` (pages, events, edges) and ``data/data-sources`` (sources,
events): numbers, URLs and paths; what pages said is not in them, so the test web makes up words. Hosts
are renamed to lie under ``.test``: a client that strays never reaches the real site.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recrawl.errors import InputError, require
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray
from recrawl.model.arrays import starts_of_runs
from recrawl.simulate.sites import DOMAIN
from recrawl.simulate.virtual_web import EventTimes, PageKind, VirtualWeb, WebLinks
from recrawl.urls import address

_KINDS = {"json": PageKind.JSON, "jsonl": PageKind.JSON, "csv": PageKind.CSV, "rdf": PageKind.RDF, "rdfa": PageKind.RDF}
"""What a recorded data format is served as; all others as HTML."""


def load_recorded(
    folder: Path | str,
    site: str,
    *,
    start: float | None = None,
    end: float | None = None,
    max_pages: int | None = None,
) -> VirtualWeb:
    """A site of ``data/documents`` as it was between two times (seconds since the epoch; default: all of it).

    Pages that were never there between ``start`` and ``end`` are left out; the history before ``start`` is
    kept, so that Last-Modified is true. ``max_pages`` keeps the pages nearest to the root. Rates are unknown.
    """
    folder = Path(folder)
    pages = _table(folder / "pages.parquet", ["page_id", "url", "depth"], "site", site)
    events = _table(folder / "events.parquet", ["page_id", "t", "kind"], "site", site)
    edges = _table(folder / "edges.parquet", ["src", "dst", "t_add", "t_rem"], "site", site, may_be_empty=True)
    order = np.lexsort((pages["page_id"], pages["depth"]))
    history = _History.of(pages["page_id"], events["page_id"], events["t"], events["kind"])
    chosen, span = _choose(history, order, start, end, max_pages)
    links = _edges(edges, pages["page_id"][chosen], span)
    return _web(
        site, pages["url"][chosen].tolist(), np.zeros(len(chosen), np.uint8), history.take(chosen, span), links, span
    )


def load_recorded_sources(
    folder: Path | str,
    repository: str,
    *,
    start: float | None = None,
    end: float | None = None,
    max_pages: int | None = None,
) -> VirtualWeb:
    """The files of a repository of ``data/data-sources`` as data pages without links; times as in `load_recorded`."""
    folder = Path(folder)
    sources = _table(folder / "sources.parquet", ["source_id", "url", "format"], "repo", repository)
    events = _table(folder / "events.parquet", ["source_id", "t", "kind"], "source_id", sources["source_id"].tolist())
    history = _History.of(sources["source_id"], events["source_id"], events["t"], events["kind"])
    chosen, span = _choose(history, np.arange(len(sources["url"])), start, end, max_pages)
    kind = np.array([_KINDS.get(name, PageKind.HTML) for name in sources["format"][chosen]], dtype=np.uint8)
    links = WebLinks.of([], [], [], [], pages=len(chosen))
    return _web(repository, sources["url"][chosen].tolist(), kind, history.take(chosen, span), links, span)


class _Span(NamedTuple):
    start: float
    end: float


class _History(NamedTuple):
    """Births, deaths and changes of all pages of a recording."""

    lifetimes: EventTimes
    changes: EventTimes

    @classmethod
    def of(cls, ids: IntArray, page: IntArray, t: AnyArray, kind: AnyArray) -> _History:
        """From events sorted by page and time, as recorded. A return from the dead is also a change."""
        by_id = np.argsort(ids)
        row = by_id[np.searchsorted(ids[by_id], page)]
        order = np.lexsort((np.arange(len(row)), t, row))  # the recorded order decides between equal times
        row, time, kind = row[order], t[order].astype(np.float64), kind[order]
        turns = kind != "mod"
        life_row, life_time, is_birth = row[turns], time[turns], kind[turns] == "add"
        opens = starts_of_runs(life_row)
        kept = starts_of_runs(life_row, is_birth) & ~(opens & ~is_birth)
        returns = kept & is_birth & ~opens
        changed_row = np.concatenate([row[~turns], life_row[returns]])
        changed = np.concatenate([time[~turns], life_time[returns]])
        pages = len(ids)
        return cls(EventTimes.of(life_row[kept], life_time[kept], pages), EventTimes.of(changed_row, changed, pages))

    def take(self, rows: IntArray, span: _Span) -> _History:
        """Some pages, and what happened to them up to the end of the span."""
        return _History(*(_rows(events, rows, span.end) for events in self))


def _rows(events: EventTimes, rows: IntArray, end: float) -> EventTimes:
    counts = events.counts()[rows]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    source = np.arange(offsets[-1]) + np.repeat(events.offsets[:-1][rows] - offsets[:-1], counts)
    taken = EventTimes(offsets, events.times[source])
    return taken.where(taken.times <= end)


def _choose(
    history: _History, order: IntArray, start: float | None, end: float | None, max_pages: int | None
) -> tuple[IntArray, _Span]:
    """The pages, in ``order``, that were there at some time of the span."""
    times = np.concatenate([history.lifetimes.times, history.changes.times])
    span = _Span(float(times.min()) if start is None else start, float(times.max()) if end is None else end)
    if not span.start <= span.end:
        raise InputError(f"The span from {span.start} to {span.end} is empty.", "Let it end after it starts.")
    lived = history.lifetimes.until(order, span.end) > 0
    there = history.lifetimes.until(order, span.end) > history.lifetimes.until(order, span.start)
    there |= history.lifetimes.until(order, span.start) % 2 == 1
    chosen = order[lived & there][:max_pages]
    if not len(chosen):
        raise InputError(f"No page was there from {span.start} to {span.end}.", "Choose another span.")
    return chosen, span


def _edges(edges: dict[str, AnyArray], ids: IntArray, span: _Span) -> WebLinks:
    """Links between the chosen pages that were added before the span ended."""
    by_id = np.argsort(ids)
    ordered = ids[by_id]

    def place(column: AnyArray) -> tuple[IntArray, BoolArray]:
        at = np.minimum(np.searchsorted(ordered, column), len(ordered) - 1)
        return by_id[at], ordered[at] == column

    source, known_source = place(edges["src"])
    target, known_target = place(edges["dst"])
    removed = edges["t_rem"].astype(np.float64)
    removed[np.isnan(removed)] = np.inf
    added: FloatArray = edges["t_add"].astype(np.float64)
    keep = known_source & known_target & (added <= span.end) & (source != target)
    return WebLinks.of(source[keep], target[keep], added[keep], removed[keep], pages=len(ids))


def _web(  # noqa: PLR0913, PLR0917 - the parts of a web, each made by its own step
    name: str, urls: list[str], kind: AnyArray, history: _History, links: WebLinks, span: _Span
) -> VirtualWeb:
    paths = _paths(urls)
    label = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return VirtualWeb(
        hosts=(f"{label}.{DOMAIN}",),
        host=np.zeros(len(urls), dtype=np.int64),
        path=paths,
        title=[_title(path) for path in paths],
        kind=kind,
        rate=np.full(len(urls), np.nan),
        lifetimes=history.lifetimes,
        changes=history.changes,
        links=links,
        start=span.start,
        end=span.end,
    )


def _paths(urls: list[str]) -> list[str]:
    """Paths as a client will ask for them; those that two URLs share are told apart by a number."""
    taken: dict[str, int] = {}
    paths = []
    for url in urls:
        found = address(url)
        if found is None:
            raise InputError(f"{url!r} is not an http URL.", "Repair the table of pages.")
        path = "/" + found.url.split("/", 3)[3]
        again = taken.get(path, 0)
        taken[path] = again + 1
        paths.append(f"{path}~{again}" if again else path)
    return paths


def _title(path: str) -> str:
    """A readable title from a path.

    >>> _title("/docs/getting-started/"), _title("/")
    ('Docs Getting started', 'Home')
    """
    words = re.sub(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9/]+", " ", path)
    return " ".join(part.strip().capitalize() for part in words.split("/") if part.strip()) or "Home"


def _table(
    file: Path, columns: list[str], key: str, wanted: str | list[int], *, may_be_empty: bool = False
) -> dict[str, AnyArray]:
    """Some columns of the rows whose ``key`` is (one of) ``wanted``, as arrays. Missing numbers become NaN."""
    parquet = require("pyarrow.parquet", "columns")
    if not file.is_file():
        raise InputError(
            "This file is missing.",
            "Name the folder of a data set.",
            source=str(file),
        )
    condition = (key, "in" if isinstance(wanted, list) else "==", wanted)
    table: Any = parquet.read_table(file, columns=columns, filters=[condition])
    if not table.num_rows and not may_be_empty:
        names = sorted(set(parquet.read_table(file, columns=[key]).column(key).to_pylist()))
        raise InputError(f"It has no rows with {key} = {wanted!r}.", f"There are: {names}.", source=str(file))
    return {name: _array(table.column(name)) for name in columns}


def _array(column: Any) -> AnyArray:  # noqa: ANN401 - pyarrow has no types
    pyarrow = require("pyarrow", "columns")
    plain = column.cast(pyarrow.string()) if pyarrow.types.is_dictionary(column.type) else column
    return np.asarray(plain.to_numpy())
