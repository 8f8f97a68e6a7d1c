"""Public data sets of change histories as Parquet tables, and the change logs that they hold.

A change log has the exact times at which each page of a site changed, as a repository of its sources records them. A
visit only shows that a page changed since the last visit; a change log has each change. So it can be replayed as
ground truth, and imported as visits at the moment of each change.

Two layouts of data sets are read. *Pages*: ``pages.parquet`` (``site``, ``page_id``, ``url``) and ``events.parquet``
(``site``, ``page_id``, ``t``, ``kind``, ``bulk``, and ``new_int`` and ``new_ext`` where new links were counted), which
``formats.git_history`` writes, too. *Sources*: ``sources.parquet`` (``source_id``, ``repo``, ``url``) and
``events.parquet`` (``source_id``, ``t``, ``kind``). Events are sorted by site and page, and are streamed: memory is
that of one site.

The test web reads the same files into a web that can be served. The two share no code: neither package may import the
other, and they use the events differently.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.errors import InputError, require
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.model import (
    AnyArray,
    BoolArray,
    ByteArray,
    ChangeKind,
    FloatArray,
    Histories,
    IntArray,
    Outcome,
    Verdict,
    Visits,
)
from recrawl.model.arrays import starts_of_runs

BATCH = 20_000
"""Rows of a batch."""


class LoggedChange(enum.IntEnum):
    """What happened to a page."""

    ADD = 0
    """It appeared, for the first time or again."""
    MOD = 1
    """Its source changed."""
    DEL = 2
    """It went away."""


def schema() -> Any:  # noqa: ANN401 - pyarrow ships no types
    """The Arrow schema of a change log."""
    pa = require("pyarrow", "columns")
    return pa.schema(
        [
            pa.field("url", pa.string(), nullable=False),
            pa.field("time", pa.float64(), nullable=False),  # seconds since the epoch
            pa.field("kind", pa.uint8(), nullable=False),  # a Change
            pa.field("bulk", pa.bool_(), nullable=False),  # one of very many at once: an import, a mechanical edit
        ]
    )


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """What happened to the pages of one site: columns of equal length, sorted by page, then time."""

    site: str
    urls: tuple[str, ...]
    """Of the pages. ``page`` counts in here."""
    page: IntArray
    time: FloatArray
    """Seconds since the epoch."""
    kind: ByteArray
    """A :class:`LoggedChange` each."""
    bulk: BoolArray
    """The change was one of very many at once."""
    links: FloatArray | None = None
    """Links the page never had before; ``None`` where nobody counted them."""

    def __len__(self) -> int:
        return len(self.page)

    @property
    def repeated(self) -> int:
        """Events that share page and time with a later one: together they are one visit."""
        return len(self) - int(starts_of_runs(self.page, self.time).sum())

    def of_pages(self, wanted: BoolArray) -> ChangeLog:
        """Only what happened to some pages; ``wanted[i]`` tells of URL i. The URLs keep their places."""
        if bool(wanted.all()):
            return self
        rows = wanted[self.page]
        links = None if self.links is None else self.links[rows]
        return ChangeLog(
            self.site, self.urls, self.page[rows], self.time[rows], self.kind[rows], self.bulk[rows], links
        )

    def of_range(self, first: int, end: int) -> ChangeLog:
        """Only what happened to the pages from ``first`` to the one before ``end``, which count from 0 then."""
        if first == 0 and end == len(self.urls):
            return self
        start, stop = np.searchsorted(self.page, [first, end]).tolist()
        rows = slice(start, stop)
        links = None if self.links is None else self.links[rows]
        return ChangeLog(
            self.site,
            self.urls[first:end],
            self.page[rows] - first,
            self.time[rows],
            self.kind[rows],
            self.bulk[rows],
            links,
        )

    def batches(self, rows: int = BATCH) -> Iterator[Any]:
        """The log as Arrow record batches of :func:`schema`."""
        pa = require("pyarrow", "columns")
        urls = pa.array(self.urls, pa.string())
        for start in range(0, len(self), rows):
            part = slice(start, start + rows)
            yield pa.RecordBatch.from_arrays(
                [
                    urls.take(pa.array(self.page[part])),
                    pa.array(self.time[part]),
                    pa.array(self.kind[part]),
                    pa.array(self.bulk[part]),
                ],
                schema=schema(),
            )

    def visits(self, *, bulk: bool = True, until: float | None = None) -> Visits:
        """Visits that came whenever something happened. The page of a visit is its row in ``urls``.

        The first appearance opens a history and says nothing about change; every later event is a change, and a
        deletion finds the page gone. Several events of a page at one time are one visit, which finds what the last of
        them left: nobody can look twice in one instant, and a history knows no gap of length zero. Without ``bulk``,
        bulk edits say nothing (they still open and close lives). Such visits stop at the last change, which makes any
        page look livelier than it is: ``until`` adds a last observation at that time to every page that was seen before
        it, which found no change: a page that was deleted is gone then too.
        """
        if not len(self):
            return Visits.of(self.page, self.time)
        instants = np.flatnonzero(starts_of_runs(self.page, self.time))
        latest = np.append(instants[1:], len(self)) - 1
        page, time, kind = self.page[latest], self.time[latest], self.kind[latest]
        first, quiet = starts_of_runs(page), (self.kind == LoggedChange.MOD) & self.bulk
        silent = first if bulk else first | np.logical_and.reduceat(quiet, instants)
        verdict = np.where(silent, Verdict.UNKNOWN, Verdict.CHANGED)
        gone = kind == LoggedChange.DEL
        outcome = np.where(gone, Outcome.GONE, Outcome.FETCHED)
        kinds = np.where(kind == LoggedChange.MOD, ChangeKind.CONTENT, ChangeKind.EXISTENCE)
        kinds = np.where(silent, ChangeKind.NONE, kinds)
        events = Visits.of(page, time, outcome=outcome, verdict=verdict, kinds=kinds)
        if until is None:
            return events
        last = np.append(first[1:], np.True_) & (time < until)
        closing = Visits.of(
            page[last], np.full(int(last.sum()), until), outcome=outcome[last], verdict=Verdict.UNCHANGED
        )
        return Visits.concatenate([events, closing]).sorted()

    def histories(self, *, bulk: bool = True, until: float | None = None) -> Histories:
        """The same as histories: every gap but the last of :meth:`visits` with ``until`` ends in a change."""
        return Histories.from_visits(self.visits(bulk=bulk, until=until))


_ROWS = 65_536
"""Events read at a time."""
_LINKS = ("new_int", "new_ext")
"""Columns of events that count new links within the site and out of it."""
OBSERVATIONS = "observations"
"""The table of a data set that was made from what somebody observed: its change times are no exact ones."""
_KINDS = {kind.name.lower(): kind for kind in LoggedChange}
_NO_KIND = 255
_SHOWN = 500
"""Letters of the name of a row in an error."""
_WITHOUT_LINKS = 4
"""Columns of events where new links are not counted."""


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
    return {name: len(pages.urls) for name, pages in _pages(folder, _layout(folder), ReadReport(strict=True)).items()}


def read_dataset(
    folder: Path, only: Collection[str] | None = None, report: ReadReport | None = None
) -> Iterator[ChangeLog]:
    """The change logs of all sites, or of some, one after the other.

    ``report`` is told of rows that do not fit together or that our own code fails on; the others are read. Without one
    the first of them is raised.

    Raises:
        InputError: a table or column is missing, or the events of a site are in several places.
    """
    layout = _layout(folder)
    report = report or ReadReport(strict=True)
    pages = _pages(folder, layout, report)
    unknown = sorted(set(only or ()) - pages.keys())
    if unknown:
        raise InputError(
            f"there is no site {unknown[0]!r}", f"There are: {', '.join(sorted(pages))}.", source=str(folder)
        )
    done: set[str] = set()
    for site, parts in _events(folder / "events.parquet", layout, pages, report):
        if site in done:
            raise InputError(
                f"the events of {site!r} are in several places",
                "Sort them by site.",
                source=str(folder / "events.parquet"),
            )
        done.add(site)
        if only is None or site in only:
            yield _log(site, pages[site], parts, str(folder / "events.parquet"), report)
    for site in pages:
        if site not in done and (only is None or site in only):
            yield _log(site, pages[site], [], str(folder / "events.parquet"), report)


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


def _pages(folder: Path, layout: _Layout, report: ReadReport) -> dict[str, _Pages]:
    path = folder / layout.table
    file = _open(path)
    names = [layout.site, layout.key, "url"]
    table = _complete(file.read(columns=_present(file, names, path)), names, str(path), report)

    def read(rows: range) -> tuple[list[str], IntArray, list[str]]:
        site, key, urls = (_array(table.column(name).slice(rows.start, len(rows))) for name in names)
        return site.tolist(), key.astype(np.int64), urls.tolist()

    parts = list(report.by_halves(range(table.num_rows), read, lambda rows: f"{path}, row {rows.start}"))
    keys = np.concatenate([np.empty(0, np.int64), *(part[1] for part in parts)])
    urls = [url for part in parts for url in part[2]]
    rows_of: dict[str, list[int]] = {}
    for row, name in enumerate(name for part in parts for name in part[0]):
        rows_of.setdefault(name, []).append(row)
    found: dict[str, _Pages] = {}
    for name, rows in rows_of.items():
        ordered = np.array(rows)[np.argsort(keys[rows], kind="stable")]
        found[name] = _Pages(keys[ordered], tuple(urls[row] for row in ordered.tolist()))
    return found


def _complete(table: Any, names: list[str], source: str, report: ReadReport) -> Any:  # noqa: ANN401 - pyarrow tables
    """The rows in which none of these columns is empty; the others are reported."""
    if not any(table.column(name).null_count for name in names):
        return table
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    empty = np.zeros(table.num_rows, np.bool_)
    for name in names:
        empty |= pc.is_null(table.column(name)).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(empty).tolist():
        missing = next(name for name in names if not table.column(name)[row].is_valid)
        report.broken(f"a row has no {missing!r}", source=source, position=None, remedy="Get the data set again.")
    return table.filter(pa.array(~empty))


def _events(
    path: Path, layout: _Layout, pages: dict[str, _Pages], report: ReadReport
) -> Iterator[tuple[str, list[list[AnyArray]]]]:
    """Runs of events of one site, as the pieces they were read in."""
    current = ""
    parts: list[list[AnyArray]] = []
    for site, *columns in _rows(path, layout, pages, report):
        starts = np.flatnonzero(starts_of_runs(site))
        for start, end in zip(starts, np.append(starts[1:], len(site)), strict=True):
            name = str(site[start])
            if name not in pages:
                what = f"there are events of pages that {layout.table} does not have"
                report.broken(what, source=str(path), position=None, remedy="Get the data set again.")
                continue
            if parts and name != current:
                yield current, parts
                parts = []
            current = name
            parts.append([column[start:end] for column in columns])
    if parts:
        yield current, parts


def _rows(path: Path, layout: _Layout, pages: dict[str, _Pages], report: ReadReport) -> Iterator[list[AnyArray]]:
    """The site of each event, and its other columns, some rows at a time."""
    needed = ([layout.site] if layout.by_site else []) + [layout.key, "t", "kind"]
    file = _open(path)
    counted = [name for name in _LINKS if name in file.schema_arrow.names]
    names = needed + (["bulk"] if layout.bulk else []) + counted
    site_of = {} if layout.by_site else {int(key): name for name, one in pages.items() for key in one.ids}

    def read(batch: Any) -> list[AnyArray]:  # noqa: ANN401 - a pyarrow batch
        columns = [_array(batch.column(name)) for name in names]
        site = columns.pop(0) if layout.by_site else np.array([site_of.get(key, "") for key in columns[0].tolist()])
        links = [np.nan_to_num(columns.pop()) for _ in counted]
        if not layout.bulk:
            columns.append(np.zeros(len(site), np.bool_))
        if links:
            columns.append(np.sum(links, axis=0))
        return [site, *columns]

    def name_of(batch: Any) -> str:  # noqa: ANN401 - a pyarrow batch
        return f"{path}, event {batch.slice(0, 1).to_pylist()[0]}"[:_SHOWN]

    for batch in file.iter_batches(batch_size=_ROWS, columns=_present(file, names, path)):
        yield from report.by_halves(_complete(batch, needed, str(path), report), read, name_of)


def _log(site: str, pages: _Pages, parts: list[list[AnyArray]], source: str, report: ReadReport) -> ChangeLog:
    empty = np.empty(0)
    nothing = ChangeLog(site, pages.urls, *(empty.astype(kind) for kind in (np.int64, float, np.uint8, np.bool_)))
    if not parts:
        return nothing
    columns = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
    read = list(
        report.by_halves(
            range(len(columns[0])),
            lambda rows: _read_events(pages, [column[rows.start : rows.stop] for column in columns]),
            lambda rows: f"{source}, event {rows.start} of {site!r}",
        )
    )
    if not read:
        return nothing
    page, time, kind, code, bulk, links = (np.concatenate(pieces) for pieces in zip(*read, strict=True))
    fits = (page >= 0) & (code != _NO_KIND) & np.isfinite(time)
    for row in np.flatnonzero(~fits).tolist():
        what, remedy = f"an event of {site!r} has no finite time", "Get the data set again."
        if page[row] < 0:
            what = f"an event of {site!r} names a page that is not in the table of pages"
        elif code[row] == _NO_KIND:
            what, remedy = f"{kind[row]!r} is no kind of event", "Write add, mod or del."
        report.broken(what, source=source, position=None, remedy=remedy)
    rows = np.flatnonzero(fits)
    rows = rows[np.lexsort((rows, time[rows], page[rows]))]
    counts = links[rows] if len(columns) > _WITHOUT_LINKS else None
    return ChangeLog(site, pages.urls, page[rows], time[rows], code[rows], bulk[rows], counts)


def _read_events(pages: _Pages, columns: list[AnyArray]) -> tuple[AnyArray, ...]:
    """Page, time, kind, its code, bulk and new links of events, each row by itself.

    The page is -1 and the code :data:`_NO_KIND` where they make no sense.
    """
    key, time, kind, bulk, *links = columns
    place = np.minimum(np.searchsorted(pages.ids, key), len(pages.ids) - 1)
    page = np.where(pages.ids[place] == key, place, -1)
    code = np.select([kind == name for name in _KINDS], list(_KINDS.values()), _NO_KIND).astype(np.uint8)
    counts = links[0].astype(np.float64) if links else np.zeros(len(key))
    return page, time.astype(np.float64), kind, code, bulk.astype(np.bool_), counts


def _open(path: Path) -> Any:  # noqa: ANN401 - a ParquetFile
    pa = require("pyarrow", "columns")
    parquet = require("pyarrow.parquet", "columns")
    if not path.is_file():
        raise InputError("this table is missing", "Name the folder of a data set.", source=str(path))
    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"this is not a readable Parquet file ({error})", "Get the data set again.", source=str(path)
        ) from error


def _present(file: Any, names: list[str], path: Path) -> list[str]:  # noqa: ANN401 - a ParquetFile
    missing = [name for name in names if name not in file.schema_arrow.names]
    if missing:
        raise InputError(f"there is no column {missing[0]!r}", "Get the data set again.", source=str(path))
    return names


def _array(column: Any) -> AnyArray:  # noqa: ANN401 - a pyarrow array
    pa = require("pyarrow", "columns")
    plain = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
    return np.asarray(plain.to_numpy(zero_copy_only=False))
