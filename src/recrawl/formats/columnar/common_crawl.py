"""Common Crawl's columnar index: captures as Parquet, with its column names (conventions S6).

Files are read by row groups, so that memory does not grow with the file. They are written with all of its columns, and
two of ours: ``record_kind`` and ``payload_size``. The columns about registered domains need the public suffix list,
which is not available here: they are empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

import ada_url
import numpy as np
import numpy.typing as npt

from recrawl.errors import InputError, require
from recrawl.formats.atomic_files import reporting_write_errors, unfinished_file
from recrawl.formats.cdx.cdx_lines import EARLIEST, LATEST, REVISIT, capture_texts
from recrawl.formats.cdx.line_blocks import LONGEST_LINE, clean
from recrawl.formats.columnar.capture_batches import NO_SIZE, NO_STATUS, ReadReport, RecordKind, schema

ROWS = 32_768
"""Rows in a batch."""
BLOCK_OF_TEXTS = 64 << 20
"""Bytes of texts in a batch."""
_SHOWN = 500
"""Letters of the name of a row in an error."""
OURS = ("record_kind", "payload_size")
PARTITIONS = ("crawl", "subset")
_HOST = "url_host_"
_TEXT, _SHORT, _LONG, _MOMENT = "text", "short", "long", "moment"
COLUMNS = {
    "url_surtkey": _TEXT,
    "url": _TEXT,
    "url_host_name": _TEXT,
    "url_host_tld": _TEXT,
    "url_host_2nd_last_part": _TEXT,
    "url_host_3rd_last_part": _TEXT,
    "url_host_4th_last_part": _TEXT,
    "url_host_5th_last_part": _TEXT,
    "url_host_registry_suffix": _TEXT,
    "url_host_registered_domain": _TEXT,
    "url_host_private_suffix": _TEXT,
    "url_host_private_domain": _TEXT,
    "url_host_name_reversed": _TEXT,
    "url_protocol": _TEXT,
    "url_port": _LONG,
    "url_path": _TEXT,
    "url_query": _TEXT,
    "fetch_time": _MOMENT,
    "fetch_status": _SHORT,
    "fetch_redirect": _TEXT,
    "content_digest": _TEXT,
    "content_mime_type": _TEXT,
    "content_mime_detected": _TEXT,
    "content_charset": _TEXT,
    "content_languages": _TEXT,
    "content_truncated": _TEXT,
    "warc_filename": _TEXT,
    "warc_record_offset": _LONG,
    "warc_record_length": _LONG,
    "warc_segment": _TEXT,
    "crawl": _TEXT,
    "subset": _TEXT,
}
"""The 32 columns of Common Crawl's table; the last two are the names of folders in a partitioned one."""
_KINDS = {kind.name.lower().encode(): int(kind) for kind in RecordKind}


def read_common_crawl(path: Path, report: ReadReport) -> Iterator[Any]:
    """Captures of one Parquet file, as record batches of :func:`~recrawl.formats.columnar.capture_batches.schema`.

    Only the columns that captures have are read, those that are missing excepted; ``url`` and ``fetch_time`` must be
    there. Trouble is reported with the place of the row group.

    Raises:
        InputError: it is not Parquet, or not an index of captures.
    """
    pa, parquet = require("pyarrow", "columns"), require("pyarrow.parquet", "columns")
    try:
        # Texts as they are stored: one of a megabyte may be there once, and stand in every row.
        names = parquet.read_schema(path).names
        file = parquet.ParquetFile(path, read_dictionary=[name for name in names if name in _READ])
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"it cannot be read as Parquet ({error})", "Get the file again from its owner.", source=str(path)
        ) from error
    with file:
        for name in ("url", "fetch_time"):
            if name not in names:
                raise InputError(
                    f"it has no column {name!r}: not an index of captures",
                    "Name an index like that of Common Crawl.",
                    source=str(path),
                )
        wanted = [name for name in (*COLUMNS, *OURS) if name in _READ and name in names]
        for group in range(file.num_row_groups):
            # Where the group begins is not asked: the metadata of a damaged column ends the process, past all handlers.
            place = f"{path}, row group {group + 1} of {file.num_row_groups}"
            try:
                for batch in file.iter_batches(ROWS, row_groups=[group], columns=wanted):
                    for part in _unfolded(batch, place, report):
                        for found in report.by_halves(
                            part,
                            partial(_from_index, source=place, report=report),
                            partial(_row_name, place),
                            (pa.ArrowException, ValueError),
                        ):
                            if found.num_rows:
                                yield found
            except (pa.ArrowException, OSError, ValueError) as error:
                report.broken(f"it cannot be read ({error})", source=place, position=None)


def _unfolded(batch: Any, source: str, report: ReadReport) -> Iterator[Any]:  # noqa: ANN401 - pyarrow
    """The rows with their texts, in parts that do not take much memory; rows that alone do are reported."""
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    length = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column.validate(full=True)  # a damaged file may name texts that are not there
            each = pc.fill_null(pc.binary_length(column.dictionary), 0).to_numpy(zero_copy_only=False)
            if len(each):
                length += each[pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False)]
    if (long := length > LONGEST_LINE).any():
        what = f"{int(long.sum())} rows of the row group are longer than {LONGEST_LINE:,} bytes"
        report.broken(what, source=source, position=None)
        batch, length = batch.filter(pa.array(~long)), length[~long]
    part = np.cumsum(length) // BLOCK_OF_TEXTS
    for rows in np.split(np.arange(len(part)), np.flatnonzero(np.diff(part)) + 1):
        if len(rows):
            some = batch.slice(int(rows[0]), len(rows))
            arrays = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in some.columns]
            yield pa.record_batch(arrays, names=batch.schema.names)


_READ = frozenset(
    {
        "url",
        "url_surtkey",
        "fetch_time",
        "fetch_status",
        "content_digest",
        "content_mime_type",
        "warc_filename",
        "warc_record_offset",
        "warc_record_length",
        *OURS,
    }
)


def _row_name(place: str, rows: Any) -> str:  # noqa: ANN401 - pyarrow
    return f"{place}, {rows.column('url')[0]}"[:_SHOWN]


def _from_index(batch: Any, source: str, report: ReadReport) -> Any:  # noqa: ANN401 - pyarrow
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    count = batch.num_rows

    def text(name: str) -> Any:  # noqa: ANN401 - pyarrow
        return _sound(pc.fill_null(given[name].cast(pa.string()), "")) if name in given else pa.array([""] * count)

    def number(name: str, kind: Any, absent: int) -> Any:  # noqa: ANN401 - pyarrow
        if name not in given:
            return pa.array(np.full(count, absent)).cast(kind)
        return pc.fill_null(given[name].cast(kind), absent)

    micros = pc.fill_null(given["fetch_time"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()), 0)
    time = micros.to_numpy(zero_copy_only=False) / 1e6
    status = number("fetch_status", pa.int16(), NO_STATUS)
    mime = text("content_mime_type")
    found = pa.RecordBatch.from_arrays(
        [
            text("url"),
            text("url_surtkey"),
            pa.array(time),
            pa.array(_kinds(given, mime, status)),
            status,
            mime,
            pc.replace_substring_regex(text("content_digest"), "^sha1:", ""),
            number("payload_size", pa.int64(), NO_SIZE),
            text("warc_filename"),
            number("warc_record_offset", pa.int64(), NO_SIZE),
            number("warc_record_length", pa.int64(), NO_SIZE),
        ],
        schema=schema(),
    )
    missing = pc.or_(pc.is_null(given["url"]), pc.is_null(given["fetch_time"])).to_numpy(zero_copy_only=False)
    web = pc.match_substring_regex(found.column("url"), "^(?i)https?://").to_numpy(zero_copy_only=False)
    for _ in range(int(missing.sum())):
        report.broken("a row has no URL or no time", source=source, position=None)
    keep = ~missing
    for reason, wrong in (
        ("not http or https", ~web),
        ("dated before 1990", time < EARLIEST),
        ("dated after 2100", time >= LATEST),
    ):
        if skipped := int((keep & wrong).sum()):
            report.skip(reason, skipped)
        keep &= ~wrong
    return found if keep.all() else found.filter(pa.array(keep))


def _sound(texts: Any) -> Any:  # noqa: ANN401 - pyarrow
    """Texts in UTF-8, which Parquet promises and nobody checks."""
    pa = require("pyarrow", "columns")
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([clean(text).decode() for text in texts.cast(pa.binary()).to_pylist()], pa.string())
    return texts


def _kinds(given: dict[str, Any], mime: Any, status: Any) -> npt.NDArray[np.uint8]:  # noqa: ANN401 - pyarrow
    pc = require("pyarrow.compute", "columns")
    kinds = np.where(
        pc.equal(mime, REVISIT).to_numpy(zero_copy_only=False), RecordKind.REVISIT_IDENTICAL, RecordKind.RESPONSE
    ).astype(np.uint8)
    kinds[pc.equal(status, 304).to_numpy(zero_copy_only=False)] = RecordKind.REVISIT_NOT_MODIFIED
    if "record_kind" in given:
        words = pc.fill_null(given["record_kind"].cast("binary"), b"").dictionary_encode()
        codes = np.array([_KINDS.get(word, 255) for word in words.dictionary.to_pylist()], np.uint8)
        told = codes[words.indices.to_numpy(zero_copy_only=False)]
        kinds = np.where(told == 255, kinds, told)  # noqa: PLR2004 - a word we do not know
    return kinds


def write_common_crawl(
    batches: Iterable[Any],
    target: Path,
    crawl: str,
    *,
    partitioned: bool = False,
    about: Mapping[str, str] | None = None,
) -> int:
    """Write captures under Common Crawl's names; returns how many rows.

    ``target`` is a file, or with ``partitioned`` a folder that gets ``crawl=…/subset=…/part-00000.parquet``. Answers
    with 200 are the subset ``warc``, robots.txt is ``robotstxt``, everything else ``crawldiagnostics``, as Common
    Crawl files them. A file appears under its name complete or not at all. ``about`` goes into the metadata of the
    schema.

    Raises:
        DiskFullError: there is no room.
        InputError: it cannot be written there.
    """
    pc = require("pyarrow.compute", "columns")
    schema = index_schema(partitioned=partitioned)
    schema = schema.with_metadata({**(schema.metadata or {}), **about}) if about else schema
    with reporting_write_errors(target), _Files(target, crawl, schema) as files:
        for batch in batches:
            table = _to_index(batch, crawl)
            for subset in table.column("subset").unique().to_pylist() if partitioned else [""]:
                rows = table.filter(pc.equal(table.column("subset"), subset)) if subset else table
                files.write(subset, rows)
        if not partitioned and not files.rows:
            files.write("", index_schema().empty_table())
        return files.rows


class _Files:
    """The Parquet files of one export, which appear together when all is written."""

    def __init__(self, target: Path, crawl: str, table_schema: Any) -> None:  # noqa: ANN401 - pyarrow
        self.rows = 0
        self._target, self._crawl, self._schema = target, crawl, table_schema
        self._writers: dict[str, Any] = {}
        self._parts: dict[Path, Path] = {}
        self._unfinished = ExitStack()

    def __enter__(self) -> Self:
        return self

    def write(self, subset: str, table: Any) -> None:  # noqa: ANN401 - pyarrow
        if subset not in self._writers:
            file = self._target
            if subset:
                file = file / f"crawl={self._crawl}" / f"subset={subset}" / "part-00000.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            self._parts[file] = self._unfinished.enter_context(unfinished_file(file))
            parquet = require("pyarrow.parquet", "columns")
            self._writers[subset] = parquet.ParquetWriter(self._parts[file], self._schema, compression="zstd")
        self._writers[subset].write_table(table.select(self._schema.names))
        self.rows += table.num_rows

    def __exit__(self, kind: type[BaseException] | None, *_details: object) -> None:
        try:
            for writer in self._writers.values():
                writer.close()
            if kind is None:
                for file, part in self._parts.items():
                    with part.open("rb") as written:
                        os.fsync(written.fileno())
                    part.replace(file)
        finally:
            self._unfinished.close()


def index_schema(*, partitioned: bool = False) -> Any:  # noqa: ANN401 - pyarrow
    """The Arrow schema of the table we write."""
    pa = require("pyarrow", "columns")
    kinds = {_TEXT: pa.string(), _SHORT: pa.int16(), _LONG: pa.int64(), _MOMENT: pa.timestamp("us", tz="UTC")}
    fields = [pa.field(name, kinds[kind]) for name, kind in COLUMNS.items() if not (partitioned and name in PARTITIONS)]
    return pa.schema([*fields, pa.field("record_kind", pa.string()), pa.field("payload_size", pa.int64())])


def _to_index(batch: Any, crawl: str) -> Any:  # noqa: ANN401 - pyarrow
    pa = require("pyarrow", "columns")
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    count = batch.num_rows
    status = given["status"].to_numpy(zero_copy_only=False)
    parts = [_url_parts(url) for url in given["url"].to_pylist()]
    robots = np.array([part["url_path"] == "/robots.txt" for part in parts], np.bool_)
    subset = np.where(robots, "robotstxt", np.where(status == 200, "warc", "crawldiagnostics"))  # noqa: PLR2004 - HTTP
    micros = np.rint(given["time"].to_numpy(zero_copy_only=False) * 1e6).astype(np.int64)
    names = np.array([kind.name.lower() for kind in RecordKind])
    columns: dict[str, Any] = {
        "url_surtkey": capture_texts(batch, absent="")["key"],
        "url": given["url"],
        "fetch_time": pa.array(micros).cast(pa.timestamp("us", tz="UTC")),
        "fetch_status": given["status"],
        "content_digest": _or_null(given["digest"], ""),
        "content_mime_type": _or_null(given["mime"], ""),
        "warc_filename": _or_null(given["file"], ""),
        "warc_record_offset": _or_null(given["offset"], NO_SIZE),
        "warc_record_length": _or_null(given["length"], NO_SIZE),
        "crawl": pa.array([crawl] * count, pa.string()),
        "subset": pa.array(subset.astype(object), pa.string()),
        "record_kind": pa.array(names[given["kind"].to_numpy(zero_copy_only=False)].astype(object), pa.string()),
        "payload_size": _or_null(given["size"], NO_SIZE),
    }
    whole = index_schema()
    for name in whole.names:
        if name not in columns:
            columns[name] = pa.array([part.get(name) for part in parts], whole.field(name).type)
    return pa.table([columns[name] for name in whole.names], schema=whole)


def _or_null(values: Any, absent: str | int) -> Any:  # noqa: ANN401 - pyarrow
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    return pc.if_else(pc.equal(values, pa.scalar(absent, values.type)), pa.scalar(None, values.type), values)


def _url_parts(url: str) -> dict[str, Any]:
    """The columns that repeat parts of the URL."""
    try:
        parsed = ada_url.URL(url)
    except ValueError:
        return {"url_path": ""}
    host = parsed.hostname
    is_address = host.startswith("[") or host.replace(".", "").isdigit()
    labels = [host] if is_address else host.split(".")[::-1]
    found: dict[str, Any] = {
        "url_host_name": host,
        "url_host_name_reversed": ".".join(labels),
        "url_protocol": parsed.protocol.rstrip(":"),
        "url_port": int(parsed.port) if parsed.port else None,
        "url_path": parsed.pathname,
        "url_query": parsed.search[1:] or None,
    }
    if not is_address:
        places = ("tld", "2nd_last_part", "3rd_last_part", "4th_last_part", "5th_last_part")
        found.update({f"{_HOST}{place}": label for place, label in zip(places, labels, strict=False)})
    return found
