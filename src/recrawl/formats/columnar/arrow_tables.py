"""Visits and histories as Arrow tables and Parquet files.

In memory nothing is copied without need: numeric columns share their buffers in both directions, a ragged history
becomes a list column over the same offsets and values, and flags travel as bytes (Arrow packs booleans into bits, which
would be a copy). Columns that come from Arrow are read-only.

The schema of a file holds its contents (``recrawl.table``) and the version of this layout (``recrawl.version``). A file
appears complete or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recrawl.errors import InputError, require
from recrawl.formats.atomic_files import complete_file
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.model import (
    UNMEASURED,
    VISIT_COLUMNS,
    AnyArray,
    ChangeKind,
    Histories,
    IntArray,
    Outcome,
    Verdict,
    Visits,
)

_AT_ONCE = 1 << 18
"""Rows that are read at once."""
_LONGEST_URLS = 256 << 20
"""Bytes that their URLs may take together; 1 KB each."""
VERSION = 1
_ALL_KINDS = sum(ChangeKind) & ~ChangeKind.LINKS_COMPARED  # no part of a recorded visit


def visits_to_table(visits: Visits) -> Any:  # noqa: ANN401 - a pyarrow.Table, imported when needed
    """The visits as a ``pyarrow.Table`` over the same memory."""
    pa = require("pyarrow", "columns")
    return pa.Table.from_arrays([pa.array(column) for column in visits.columns().values()], schema=_visit_schema(pa))


def visits_from_table(table: Any, source: str = "") -> Visits:  # noqa: ANN401 - a pyarrow.Table
    """The visits of a table, over the same memory where its columns are in one piece.

    A table without magnitudes is one of the time before they were measured.

    Raises:
        InputError: a column is missing, of another type or out of range; ``source`` names the place.
    """
    if "magnitude" not in table.column_names:
        unmeasured = np.full(table.num_rows, UNMEASURED, VISIT_COLUMNS["magnitude"])
        table = table.append_column("magnitude", [require("pyarrow", "columns").array(unmeasured)])
    table = _conform(table, _visit_schema(require("pyarrow", "columns")), source)
    visits = Visits(*(_values(table, name, source) for name in VISIT_COLUMNS))
    for name, top in (("outcome", max(Outcome)), ("verdict", max(Verdict))):
        column = getattr(visits, name)
        _refuse(column > top, f"column {name!r} has a value above {int(top)}", source)
    _refuse((visits.kinds & ~np.uint16(_ALL_KINDS)) != 0, "column 'kinds' has a kind that no visit records", source)
    _refuse(~np.isfinite(visits.time), "a visit has no finite time", source)
    measured = (visits.magnitude >= 0) & (visits.magnitude <= 1)
    _refuse(~(measured | (visits.magnitude == UNMEASURED)), "a magnitude is not between 0 and 1", source)
    return visits


def histories_to_table(histories: Histories) -> Any:  # noqa: ANN401 - a pyarrow.Table, imported when needed
    """The histories as a ``pyarrow.Table`` over the same memory, one row a page."""
    pa = require("pyarrow", "columns")
    offsets = pa.array(histories.offsets)
    return pa.Table.from_arrays(
        [
            pa.array(histories.page),
            pa.LargeListArray.from_arrays(offsets, pa.array(histories.gaps)),
            pa.LargeListArray.from_arrays(offsets, pa.array(histories.changed.view(np.uint8))),
            pa.array(histories.first_visit),
            pa.array(histories.last_visit),
            pa.array(histories.last_change),
        ],
        schema=_history_schema(pa),
    )


def histories_from_table(table: Any, source: str = "") -> Histories:  # noqa: ANN401 - a pyarrow.Table
    """The histories of a table, over the same memory where its columns are in one piece.

    Raises:
        InputError: a column is missing or of another type, or the rows break a rule of ``Histories``.
    """
    table = _conform(table, _history_schema(require("pyarrow", "columns")), source)
    offsets, gaps = _ragged(table, "gaps", source)
    same_offsets, flags = _ragged(table, "changed", source)
    if not np.array_equal(offsets, same_offsets):
        raise InputError(
            "columns 'gaps' and 'changed' have rows of different lengths", "Write the file again.", source=source
        )
    page, first, last, change = (
        _values(table, name, source) for name in ("page", "first_visit", "last_visit", "last_change")
    )
    _refuse(page[1:] <= page[:-1], "page ids are not ascending", source)
    _refuse(~(np.isfinite(gaps) & (gaps > 0)), "a gap is not a positive number of seconds", source)
    _refuse(flags > 1, "column 'changed' has a value above 1", source)
    _refuse((np.diff(offsets) > 0) & ~np.isfinite(first), "a page has gaps but no first visit", source)
    return Histories(page, offsets, gaps, flags.view(np.bool_), first, last, change)


class PageUrls(NamedTuple):
    """The URL of each page, for files that leave the store whose page numbers they use."""

    page: IntArray
    """Page ids, ascending."""
    url: Sequence[str]


def write_visits(
    path: Path, visits: Visits, urls: PageUrls | None = None, *, about: Mapping[str, str] | None = None
) -> None:
    """Write visits as one Parquet file, replacing it only when complete; with ``urls``, in a column ``url`` too.

    ``about`` goes into the metadata of the schema.
    """
    table = visits_to_table(visits)
    if urls is not None:
        pa = require("pyarrow", "columns")
        index = pa.array(np.searchsorted(urls.page, visits.page).astype(np.int32))
        column = pa.DictionaryArray.from_arrays(index, pa.array(list(urls.url), pa.string()))
        table = table.append_column(pa.field("url", column.type, nullable=False), column)
    _write(path, table, about)


def read_visits(path: Path) -> Visits:
    """The visits of a file that :func:`write_visits` wrote."""
    return visits_from_table(_read(path, "visits"), str(path))


def read_located_visits(path: Path) -> tuple[Visits, PageUrls]:
    """The visits of a file that was written with URLs, and the URL of each page in it.

    Raises:
        InputError: the file has no URLs; its page numbers mean nothing outside the store it came from.
    """
    return _located(_read(path, "visits"), str(path))


def _located(table: Any, source: str) -> tuple[Visits, PageUrls]:  # noqa: ANN401 - a pyarrow.Table
    if "url" not in table.column_names:
        raise InputError("it has no column 'url'", "Export it again with this version of recrawl.", source=source)
    visits = visits_from_table(table, source)
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    column = table.column("url").combine_chunks()
    with _told(Path(source)):
        column.validate(full=True)  # a damaged file may name texts that are not there
    pages, first = np.unique(visits.page, return_index=True)
    chosen = column.take(pa.array(first))
    if pa.types.is_dictionary(chosen.type):  # a text of a megabyte may be there once, and stand in every row
        size = pc.sum(pc.binary_length(chosen.dictionary).take(chosen.indices)).as_py() or 0
    else:
        size = chosen.nbytes
    if size > _LONGEST_URLS:
        raise InputError(f"the URLs of {len(pages)} pages take {size} bytes", "Export it again.", source=source)
    return visits, PageUrls(pages, chosen.to_pylist())


def located_visits(path: Path, report: ReadReport | None = None) -> Iterator[tuple[Visits, PageUrls]]:
    """The same as :func:`read_located_visits`, some rows at a time: memory does not grow with the file.

    ``report`` is told of rows that our own code fails on; without one the first of them is raised.

    Raises:
        InputError: as above; what was given before stands.
    """
    source, report, before = str(path), report or ReadReport(strict=True), 0
    with _opened(path, "visits") as file:
        _check_rows(file.schema_arrow.metadata or {}, file.metadata.num_rows, path)
        for batch in file.iter_batches(_AT_ONCE):
            table = require("pyarrow", "columns").Table.from_batches([batch])
            yield from report.by_halves(
                range(table.num_rows), partial(_located_rows, table, source), partial(_row_name, source, before)
            )
            before += table.num_rows


def _located_rows(table: Any, source: str, rows: range) -> tuple[Visits, PageUrls]:  # noqa: ANN401 - a pyarrow.Table
    return _located(table.slice(rows.start, len(rows)), source)


def _row_name(source: str, before: int, rows: range) -> str:
    return f"{source}, row {before + rows.start}"


def write_histories(path: Path, histories: Histories, *, about: Mapping[str, str] | None = None) -> None:
    """Write histories as one Parquet file, replacing it only when complete. ``about``: as for visits."""
    _write(path, histories_to_table(histories), about)


def read_histories(path: Path) -> Histories:
    """The histories of a file that :func:`write_histories` wrote."""
    return histories_from_table(_read(path, "histories"), str(path))


def _visit_schema(pa: Any) -> Any:  # noqa: ANN401 - the pyarrow module and one of its schemas
    columns = [pa.field(name, pa.from_numpy_dtype(dtype), nullable=False) for name, dtype in VISIT_COLUMNS.items()]
    return pa.schema(columns, metadata=_label("visits"))


def _history_schema(pa: Any) -> Any:  # noqa: ANN401 - the pyarrow module and one of its schemas
    columns = {
        "page": pa.int64(),
        "gaps": pa.large_list(pa.float64()),
        "changed": pa.large_list(pa.uint8()),
        "first_visit": pa.float64(),
        "last_visit": pa.float64(),
        "last_change": pa.float64(),
    }
    return pa.schema(
        [pa.field(name, kind, nullable=False) for name, kind in columns.items()], metadata=_label("histories")
    )


def _label(table: str) -> dict[str, str]:
    return {"recrawl.table": table, "recrawl.version": str(VERSION)}


def _conform(table: Any, schema: Any, source: str) -> Any:  # noqa: ANN401 - pyarrow tables and schema
    """The columns of ``schema``, in its order and types."""
    pa = require("pyarrow", "columns")
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise InputError(f"there is no column {missing[0]!r}", "Write the file again, with all columns.", source=source)
    for name in schema.names:
        if table.column(name).null_count:
            raise InputError(f"column {name!r} has empty values", "Fill them, and write the file again.", source=source)
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise InputError(
            f"a column has another type than expected: {error}", "Write the file again.", source=source
        ) from error


def _piece(table: Any, name: str) -> Any:  # noqa: ANN401 - a pyarrow array
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _values(table: Any, name: str, source: str) -> AnyArray:  # noqa: ANN401 - a pyarrow.Table
    return _to_numpy(_piece(table, name), name, source)


def _ragged(table: Any, name: str, source: str) -> tuple[AnyArray, AnyArray]:  # noqa: ANN401 - a pyarrow.Table
    """Offsets from 0 and values of a list column; a slice of a larger one is cut to its own."""
    lists = _piece(table, name)
    offsets = _to_numpy(lists.offsets, name, source)
    first, last = int(offsets[0]), int(offsets[-1])
    values = _to_numpy(lists.values.slice(first, last - first), name, source)
    return (offsets if first == 0 else offsets - first), values


def _to_numpy(array: Any, name: str, source: str) -> AnyArray:  # noqa: ANN401 - a pyarrow array
    if array.null_count:
        raise InputError(f"column {name!r} has empty values", "Fill them, and write the file again.", source=source)
    values: AnyArray = array.to_numpy(zero_copy_only=True)
    return values


def _refuse(wrong: AnyArray, what: str, source: str) -> None:
    if bool(wrong.any()):
        raise InputError(f"row {int(np.argmax(wrong))}: {what}", "Write the file again.", source=source)


def _write(path: Path, table: Any, about: Mapping[str, str] | None) -> None:  # noqa: ANN401 - a pyarrow.Table
    parquet = require("pyarrow.parquet", "columns")
    # Parquet guards its pages by checksums but not its footer: a damaged row count would go unnoticed.
    label = {**table.schema.metadata, b"recrawl.rows": str(table.num_rows), **(about or {})}
    table = table.replace_schema_metadata(label)
    with complete_file(path) as file:
        parquet.write_table(table, file, compression="zstd", write_page_checksum=True)


@contextmanager
def _opened(path: Path, kind: str) -> Iterator[Any]:
    """The Parquet file, if it holds what is wanted."""
    parquet = require("pyarrow.parquet", "columns")
    if not path.is_file():
        raise InputError("there is no such file", "Check the path.", source=str(path))
    with ExitStack() as opened:
        opened.enter_context(_told(path))
        texts = [name for name in parquet.read_schema(path).names if name == "url"]  # else each is unfolded
        file = opened.enter_context(parquet.ParquetFile(path, page_checksum_verification=True, read_dictionary=texts))
        label = file.schema_arrow.metadata or {}
        _check_label(label.get(b"recrawl.table", b""), label.get(b"recrawl.version", b""), kind, path)
        yield file


def _read(path: Path, kind: str) -> Any:  # noqa: ANN401 - a pyarrow.Table
    with _opened(path, kind) as file:
        table, label = file.read(), file.schema_arrow.metadata or {}
    _check_rows(label, table.num_rows, path)
    return table


def _check_rows(label: dict[bytes, bytes], rows: int, path: Path) -> None:
    if label.get(b"recrawl.rows", str(rows).encode()) != str(rows).encode():
        raise InputError(f"it has {rows} rows, which is not how many were written", "Write it again.", source=str(path))


def _check_label(table: bytes, version: bytes, kind: str, path: Path) -> None:
    if table != kind.encode():
        held = table.decode("utf-8", "replace")
        what = f"it holds {held!r}, not {kind}" if held else f"it is no recrawl file of {kind}"
        raise InputError(what, f"Give a file that recrawl wrote with its {kind}.", source=str(path))
    if not version.isdigit() or len(version) > 9 or int(version) > VERSION:  # noqa: PLR2004 - int() refuses thousands
        raise InputError(
            f"its layout has version {version.decode('utf-8', 'replace')!r}, this recrawl reads up to {VERSION}",
            "Upgrade recrawl.",
            source=str(path),
        )


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what pyarrow raises about a broken file into an error with its name."""
    pa = require("pyarrow", "columns")
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"it is not a readable Parquet file ({error})", "Write it again.", source=str(path)) from error
