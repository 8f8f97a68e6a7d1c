"""Captures as text for indexes: the values in their written form, and lines in the order of their bytes."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from recrawl.errors import require
from recrawl.formats.captures import NO_SIZE, NO_STATUS, RecordKind
from recrawl.formats.cdx_columns import REVISIT
from recrawl.urls import surt

SORTED_AT_ONCE = 1 << 25
"""Bytes of lines that are sorted in memory; more is sorted in parts on disk and merged."""
_SMALLEST_PIECE, _LARGEST_PIECE = 1 << 14, 1 << 20
"""Bytes of each part that are in memory while parts are merged."""


def archived(batches: Iterable[Any]) -> Iterator[Any]:
    """The captures that lie in an archive: without failed fetches, of which there is no record."""
    pc = require("pyarrow.compute", "columns")
    for batch in batches:
        yield batch.filter(pc.not_equal(batch.column("kind"), int(RecordKind.FAILED)))


def capture_texts(batch: Any, absent: str) -> dict[str, Any]:  # noqa: ANN401 - pyarrow
    """The values of captures as indexes write them, none with white space in it; what is not known is ``absent``."""
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    kind = columns["kind"].to_numpy(zero_copy_only=False)
    revisit = (kind == RecordKind.REVISIT_IDENTICAL) | (kind == RecordKind.REVISIT_NOT_MODIFIED)
    texts = {name: _unspaced(columns[name]) for name in ("url", "digest", "file")}
    texts["key"] = _unspaced(_keys(columns["key"], columns["url"]))
    mime = _unspaced(pc.replace_substring_regex(columns["mime"], r"[;\s].*$", ""))
    texts["mime"] = pc.if_else(pa.array(revisit), REVISIT, mime)
    texts = {name: pc.if_else(pc.equal(text, ""), absent, text) for name, text in texts.items()}
    for name, unknown in (("status", NO_STATUS), ("size", NO_SIZE), ("offset", NO_SIZE), ("length", NO_SIZE)):
        known = pc.not_equal(columns[name], unknown)
        texts[name] = pc.if_else(known, columns[name].cast(pa.string()), absent)
    texts["timestamp"] = timestamps(columns["time"])
    return texts


def timestamps(times: Any) -> Any:  # noqa: ANN401 - pyarrow
    """Seconds since the epoch as 14 digits (conventions X2), cut off, not rounded."""
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    whole = np.floor(times.to_numpy(zero_copy_only=False)).astype(np.int64)
    return pc.strftime(pa.array(whole).cast(pa.timestamp("s")), format="%Y%m%d%H%M%S")


def write_sorted(
    arrays: Iterable[Any], stream: BinaryIO, at_once: int = SORTED_AT_ONCE, *, scratch: Path | None = None
) -> int:
    """Write lines in the order of their bytes (``LC_ALL=C``); returns how many.

    Memory is about five times ``at_once``. More than that goes through a temporary file, as large as all lines, in the
    folder ``scratch`` or where the system keeps such files.
    """
    pa = require("pyarrow", "columns")
    held: list[Any] = []
    weight, count = 0, 0
    with tempfile.TemporaryFile(dir=scratch) as file:
        runs: list[tuple[int, int]] = []
        for lines in arrays:
            binary = lines.cast(pa.large_binary())
            held.append(binary)
            weight += binary.nbytes
            count += len(binary)
            if weight >= at_once:
                runs.append(_write_run(held, file))
                held, weight = [], 0
        if not runs:
            stream.writelines(_sorted_pieces(held))
            return count
        if held:
            runs.append(_write_run(held, file))
        piece = min(max(at_once // len(runs), _SMALLEST_PIECE), _LARGEST_PIECE)
        stream.writelines(heapq.merge(*(_lines(file, *run, piece) for run in runs)))
    return count


def _sorted_pieces(held: list[Any]) -> Iterator[bytes]:
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    if not held:
        return
    lines = pa.chunked_array(held, pa.large_binary()).combine_chunks()
    order = pc.sort_indices(lines)
    for begin in range(0, len(lines), 65_536):
        yield b"".join(line + b"\n" for line in lines.take(order[begin : begin + 65_536]).to_pylist())


def _write_run(held: list[Any], scratch: Any) -> tuple[int, int]:  # noqa: ANN401 - a temporary file
    begin = scratch.seek(0, 2)
    scratch.writelines(_sorted_pieces(held))
    return begin, scratch.tell()


def _lines(scratch: Any, begin: int, end: int, size: int) -> Iterator[bytes]:  # noqa: ANN401 - a temporary file
    """The lines of one sorted part, read in pieces, since all parts share one file."""
    rest = b""
    while begin < end:
        scratch.seek(begin)
        piece = scratch.read(min(size, end - begin))
        begin += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in whole)


def _unspaced(texts: Any) -> Any:  # noqa: ANN401 - pyarrow
    """White space would end a field: it is percent-escaped, as in a URL."""
    pc = require("pyarrow.compute", "columns")
    if not pc.any(pc.match_substring_regex(texts, r"[\x00-\x20\x7f]")).as_py():
        return texts
    pa = require("pyarrow", "columns")
    escape = {code: f"%{code:02X}" for code in (*range(33), 127)}
    return pa.array([text.translate(escape) for text in texts.to_pylist()], pa.string())


def _keys(keys: Any, urls: Any) -> Any:  # noqa: ANN401 - pyarrow
    """The keys of the source; where it gave none, made of the URL."""
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    missing = pc.equal(keys, "")
    if not pc.any(missing).as_py():
        return keys
    made = pa.array([surt(url) or url for url in urls.filter(missing).to_pylist()], pa.string())
    return pc.replace_with_mask(keys, missing, made)
