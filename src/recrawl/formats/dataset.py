"""Public data sets of change histories, as Parquet tables: each site's pages and what happened to them.

Two layouts are read. *Pages*: ``pages.parquet`` (``site``, ``page_id``, ``url``) and ``events.parquet`` (``site``,
``page_id``, ``t``, ``kind``, ``bulk``, and ``new_int`` and ``new_ext`` where new links were counted), which
``formats.git_recording`` writes too. *Sources*: ``sources.parquet``
(``source_id``, ``repo``, ``url``) and ``events.parquet`` (``source_id``, ``t``, ``kind``). Events are sorted by site
and page, and stream by: memory is that of one site.

``living.recorded`` reads the same files into a web that can be served. The two share no code: neither room may import
the other, and what they make of the events differs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.errors import InputError, require
from recrawl.formats.changes import Change, ChangeLog
from recrawl.model import AnyArray, IntArray
from recrawl.model.arrays import starts_of_runs

_ROWS = 65_536
"""Events read at a time."""
_LINKS = ("new_int", "new_ext")
"""Columns of events that count new links within the site and out of it."""
OBSERVATIONS = "observations"
"""The table of a data set that was made from what somebody observed: its change times are no exact ones."""
_KINDS = {kind.name.lower(): kind for kind in Change}


@dataclass(frozen=True, slots=True)
class _Layout:
    """Names of one layout."""

    table: str
    site: str
    key: str
    by_site: bool
    """Whether events name their site; else the key alone names the page."""
    bulk: bool


_LAYOUTS = (
    _Layout("pages.parquet", "site", "page_id", by_site=True, bulk=True),
    _Layout("sources.parquet", "repo", "source_id", by_site=False, bulk=False),
)


def is_dataset(folder: Path) -> bool:
    """Whether a folder looks like one of these data sets."""
    return (folder / "events.parquet").is_file() and any((folder / layout.table).is_file() for layout in _LAYOUTS)


def sites(folder: Path) -> dict[str, int]:
    """The sites of a data set and how many pages each has, in the order of the tables."""
    return {name: len(pages.urls) for name, pages in _pages(folder, _layout(folder)).items()}


def read_dataset(folder: Path, only: Collection[str] | None = None) -> Iterator[ChangeLog]:
    """The change logs of all sites, or of some, one after the other.

    Raises:
        InputError: a table or column is missing, or rows do not fit together.
    """
    layout = _layout(folder)
    pages = _pages(folder, layout)
    unknown = sorted(set(only or ()) - pages.keys())
    if unknown:
        raise InputError(
            f"there is no site {unknown[0]!r}", f"There are: {', '.join(sorted(pages))}.", source=str(folder)
        )
    done: set[str] = set()
    for site, parts in _events(folder / "events.parquet", layout, pages):
        if site in done:
            raise InputError(
                f"the events of {site!r} are in several places",
                "Sort them by site.",
                source=str(folder / "events.parquet"),
            )
        done.add(site)
        if only is None or site in only:
            yield _log(site, pages[site], parts, str(folder / "events.parquet"))
    for site in pages:
        if site not in done and (only is None or site in only):
            yield _log(site, pages[site], [], str(folder / "events.parquet"))


@dataclass(frozen=True, slots=True)
class _Pages:
    ids: IntArray
    """Ascending."""
    urls: tuple[str, ...]


def _layout(folder: Path) -> _Layout:
    for layout in _LAYOUTS:
        if (folder / layout.table).is_file():
            return layout
    raise InputError(
        "there is neither pages.parquet nor sources.parquet", "Name the folder of a data set.", source=str(folder)
    )


def _pages(folder: Path, layout: _Layout) -> dict[str, _Pages]:
    file = _open(folder / layout.table)
    table = file.read(columns=_present(file, [layout.site, layout.key, "url"], folder / layout.table))
    site, key, urls = (_array(table.column(name)) for name in (layout.site, layout.key, "url"))
    found: dict[str, _Pages] = {}
    for name in dict.fromkeys(site.tolist()):
        rows = np.flatnonzero(site == name)
        rows = rows[np.argsort(key[rows], kind="stable")]
        found[name] = _Pages(key[rows].astype(np.int64), tuple(urls[rows].tolist()))
    return found


def _events(path: Path, layout: _Layout, pages: dict[str, _Pages]) -> Iterator[tuple[str, list[list[AnyArray]]]]:
    """Runs of events of one site, as the pieces they were read in."""
    names = ([layout.site] if layout.by_site else []) + [layout.key, "t", "kind"] + (["bulk"] if layout.bulk else [])
    site_of = {} if layout.by_site else {int(key): name for name, one in pages.items() for key in one.ids}
    current = ""
    parts: list[list[AnyArray]] = []
    file = _open(path)
    counted = [name for name in _LINKS if name in file.schema_arrow.names]
    names += counted
    for batch in file.iter_batches(batch_size=_ROWS, columns=_present(file, names, path)):
        columns = [_array(batch.column(name)) for name in names]
        site = columns.pop(0) if layout.by_site else np.array([site_of.get(key, "") for key in columns[0].tolist()])
        links = [np.nan_to_num(columns.pop()) for _ in counted]
        if not layout.bulk:
            columns.append(np.zeros(len(site), np.bool_))
        if links:
            columns.append(np.sum(links, axis=0))
        starts = np.flatnonzero(starts_of_runs(site))
        for start, end in zip(starts, np.append(starts[1:], len(site)), strict=True):
            name = str(site[start])
            if name not in pages:
                raise InputError(
                    f"there are events of pages that {layout.table} does not have",
                    "Get the data set anew.",
                    source=str(path),
                )
            if parts and name != current:
                yield current, parts
                parts = []
            current = name
            parts.append([column[start:end] for column in columns])
    if parts:
        yield current, parts


def _log(site: str, pages: _Pages, parts: list[list[AnyArray]], source: str) -> ChangeLog:
    if not parts:
        empty = np.empty(0)
        return ChangeLog(site, pages.urls, *(empty.astype(kind) for kind in (np.int64, float, np.uint8, np.bool_)))
    key, time, kind, bulk, *links = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    page = np.searchsorted(pages.ids, key)
    if not np.array_equal(pages.ids[np.minimum(page, len(pages.ids) - 1)], key):
        raise InputError(
            f"an event of {site!r} names a page that is not in the table of pages",
            "Get the data set anew.",
            source=source,
        )
    strange = set(np.unique(kind).tolist()) - _KINDS.keys()
    if strange:
        raise InputError(f"{strange.pop()!r} is no kind of event", "Write add, mod or del.", source=source)
    codes = np.select([kind == name for name in _KINDS], list(_KINDS.values())).astype(np.uint8)
    order = np.lexsort((np.arange(len(page)), time, page))
    counts = links[0][order].astype(np.float64) if links else None
    return ChangeLog(site, pages.urls, page[order], time[order].astype(np.float64), codes[order], bulk[order], counts)


def _open(path: Path) -> Any:  # noqa: ANN401 - a ParquetFile
    pa = require("pyarrow", "columns")
    parquet = require("pyarrow.parquet", "columns")
    if not path.is_file():
        raise InputError("this table is missing", "Name the folder of a data set.", source=str(path))
    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"this is not a readable Parquet file ({error})", "Get the data set anew.", source=str(path)
        ) from error


def _present(file: Any, names: list[str], path: Path) -> list[str]:  # noqa: ANN401 - a ParquetFile
    missing = [name for name in names if name not in file.schema_arrow.names]
    if missing:
        raise InputError(f"there is no column {missing[0]!r}", "Get the data set anew.", source=str(path))
    return names


def _array(column: Any) -> AnyArray:  # noqa: ANN401 - a pyarrow array
    pa = require("pyarrow", "columns")
    plain = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
    return np.asarray(plain.to_numpy(zero_copy_only=False))
