"""CDX: one capture per line, with fields in the order that the first line names by letters (conventions X1).

Indexes of any age are read: any order and number of fields, keys as SURT or as plain URLs, sorted or not, with or
without the line that names the fields. Written lines are sorted by their bytes.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from recrawl.errors import InputError, require
from recrawl.formats.cdx.cdx_columns import REVISIT, FieldSpans, cut, to_captures
from recrawl.formats.cdx.line_blocks import NO_CAPTURES, LineBlock, not_empty, read_blocks, whole_lines
from recrawl.formats.columnar.capture_batches import NO_SIZE, NO_STATUS, ReadReport, RecordKind
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


HEADER = " CDX N b a m s k r M S V g"
"""The first line of what we write: eleven fields. The space before CDX says what separates them."""

_LETTERS = {
    "N": "key",
    "A": "key",
    "b": "timestamp",
    "a": "url",
    "m": "mime",
    "s": "status",
    "k": "digest",
    "n": "size",
    "g": "file",
    "V": "offset",
    "S": "length",
}
_BY_COUNT = {
    9: "N b a m s k r V g",
    10: "N b a m s k r M V g",
    11: "N b a m s k r M S V g",
    14: "N b a m s k r M S V g - - -",  # three more: where the original of a revisit lies
    16: "A b e a m s c k r V v D d g M n",
}


def read_cdx(stream: BinaryIO, source: str, report: ReadReport) -> Iterator[Any]:
    """Captures of a CDX file, plain or gzipped, as record batches (:mod:`~recrawl.formats.columnar.capture_batches`).

    A line with another number of fields is reported and left out. A file without a first line that names its
    fields is read by their number (9, 10, 11, 14 or 16); anything else cannot be CDX.
    """
    blocks = not_empty(read_blocks(stream, source, report), report)
    yield from captures_of_blocks(blocks, report)


def captures_of_blocks(
    blocks: Iterable[LineBlock], report: ReadReport, otherwise: tuple[str, ...] | None = None
) -> Iterator[Any]:
    """Captures of CDX lines that are already in blocks, as from the parts of a ZipNum cluster.

    ``otherwise`` names the values of lines that have as many fields, where no line of the file names them.
    """
    layout: CdxLayout | None = None
    lines = False
    for block in blocks:
        if layout is None:
            layout = _first_layout(block, otherwise)
        for part, named in _sections(block, layout):
            layout, lines = named, lines or not part.text.isspace()
            yield from whole_lines(part, partial(_captures, layout=named, report=report), report)
    if layout is not None and not lines:
        report.skip(NO_CAPTURES)


@dataclass(frozen=True, slots=True)
class CdxLayout:
    """Which field of a line is what."""

    width: int
    """How many fields a line has."""
    separator: int
    """The byte between them."""
    fields: dict[str, int]
    """The place of each value that captures have."""


def _layout(letters: list[str], separator: bytes) -> CdxLayout:
    fields: dict[str, int] = {}
    for place, letter in enumerate(letters):
        if (name := _LETTERS.get(letter)) is not None:
            fields.setdefault(name, place)
    return CdxLayout(len(letters), separator[0], fields)


def header_layout(line: bytes) -> CdxLayout | None:
    """The layout that a line names, ``None`` if it is an ordinary line.

    >>> header_layout(b" CDX N b a").fields
    {'key': 0, 'timestamp': 1, 'url': 2}
    """
    separator, words = (line[:1], line[1:]) if line[1:4] == b"CDX" else (b" ", line)
    name, *letters = words.replace(separator, b" ").decode("latin-1").split() or [""]
    named = name == "CDX" and letters and all(len(letter) == 1 for letter in letters)
    return _layout(letters, separator) if named else None


def _first_layout(block: LineBlock, otherwise: tuple[str, ...] | None) -> CdxLayout:
    first = next((line for line in block.text.split(b"\n", 64) if line.strip()), b"")
    layout = header_layout(first)
    if layout is None:
        count = len(first.split(b" "))
        if otherwise is not None and count == len(otherwise):
            return CdxLayout(count, ord(" "), {name: place for place, name in enumerate(otherwise)})
        letters = _BY_COUNT.get(count)
        if letters is None:
            raise InputError(
                "this is not CDX: the first line neither names its fields nor has 9, 10, 11, 14 or 16 of them",
                "Put a line like ' CDX N b a m s k r M S V g' before it.",
                source=block.source,
                position=block.position,
            )
        layout = _layout(letters.split(" "), b" ")
    return layout


def _sections(block: LineBlock, layout: CdxLayout) -> Iterator[tuple[LineBlock, CdxLayout]]:
    """The block, cut where a line names the fields anew: files that were put together have several such lines."""
    text, begin, place = block.text, 0, block.text.find(b"CDX")
    while place >= 0:
        start = text.rfind(b"\n", 0, place) + 1
        end = text.index(b"\n", place)
        found = header_layout(text[start:end]) if place - start <= 1 else None
        if found is not None:
            if start > begin:
                yield _part(block, begin, start), layout
            layout, begin = found, end + 1
        place = text.find(b"CDX", place + 3)
    if begin == 0:
        yield block, layout
    elif begin < len(text):
        yield _part(block, begin, len(text)), layout


def _part(block: LineBlock, begin: int, end: int) -> LineBlock:
    """Some lines of a block, by where they begin and end in its text."""
    first = block.text.count(b"\n", 0, begin)
    last = first + block.text.count(b"\n", begin, end)
    start = block.place(first)
    raw = block.raw[start - block.position : block.place(last) - block.position]
    return LineBlock(block.text[begin:end], raw, start, block.source)


def _captures(block: LineBlock, layout: CdxLayout, report: ReadReport) -> Any:  # noqa: ANN401 - a pyarrow.RecordBatch
    """One pass that finds all separators; lines with the right number of them form a matrix."""
    text = np.frombuffer(block.text, np.uint8)
    marks = np.flatnonzero((text == layout.separator) | (text == ord("\n")))
    ends = np.flatnonzero(text[marks] == ord("\n"))  # of the marks, those that end a line
    fields = np.diff(ends, prepend=-1)
    starts = np.concatenate(([0], marks[ends[:-1]] + 1))
    blank = starts == marks[ends]
    good = (fields == layout.width) & ~blank
    for line in np.flatnonzero(~good & ~blank):
        report.broken(
            f"the line has {fields[line]} fields, not {layout.width}",
            source=block.source,
            position=block.place(int(line)),
        )
    lines = np.flatnonzero(good)
    last = ends[lines]
    texts = {}
    for name, place in layout.fields.items():
        end = marks[last - (layout.width - 1 - place)]
        start = starts[lines] if place == 0 else marks[last - (layout.width - place)] + 1
        texts[name] = cut(block, FieldSpans(start, end))
    return to_captures(texts, lines, block, report)


def write_cdx(batches: Iterable[Any], stream: BinaryIO, *, scratch: Path | None = None) -> int:
    """Write captures as sorted CDX-11; returns how many lines. Failed fetches have no record and are left out.

    Memory is bounded: what is too much to sort at once goes through a temporary file in the folder ``scratch``.
    """
    pc = require("pyarrow.compute", "columns")

    def lines(batch: Any) -> Any:  # noqa: ANN401 - pyarrow
        texts = capture_texts(batch, absent="-")
        fields = [texts[name] for name in ("key", "timestamp", "url", "mime", "status", "digest")]
        return pc.binary_join_element_wise(*fields, "-", "-", texts["length"], texts["offset"], texts["file"], " ")

    stream.write(HEADER.encode() + b"\n")
    return write_sorted(map(lines, archived(batches)), stream, scratch=scratch)
