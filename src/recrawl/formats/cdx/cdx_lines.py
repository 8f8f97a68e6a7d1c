"""CDX: one capture per line, with fields in the order that the first line names by letters (conventions X1).

Indexes of any age are read: any order and number of fields, keys as SURT or as plain URLs, sorted or not, with or
without the line that names the fields. Written lines are sorted by their bytes.

:func:`to_captures` turns the fields of lines into columns of captures, for all index formats. A reader finds where in a
block each value starts and ends. Arrow then cuts the values out, and they are checked and converted a column at a time.
The valid values are defined only here, so every format treats a missing status or an impossible date alike.
"""

from __future__ import annotations

import heapq
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from recrawl.errors import InputError, require
from recrawl.formats.cdx.line_blocks import NO_CAPTURES, LineBlock, not_empty, read_blocks, whole_lines
from recrawl.formats.columnar.capture_batches import NO_SIZE, NO_STATUS, ReadReport, RecordKind, schema
from recrawl.urls import surt, url_of_key

TEXTS = ("key", "timestamp", "url", "mime", "status", "digest", "size", "file", "offset", "length")
"""The values a line of an index may give, as text; one that it does not give is ``-`` or empty."""
REVISIT = "warc/revisit"
"""The media type of a revisit (conventions X1)."""
EARLIEST, LATEST = 631_152_000.0, 4_133_980_800.0  # 1990 and the end of 2100: outside, a date is a mistake

_NOT_MODIFIED = 304
_BARE_HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)+(?::\d+)?(?:[/?#]|$)", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d{1,5}")

Positions = npt.NDArray[np.int64]


class FieldSpans(NamedTuple):
    """Where the values of one column begin and end in the text of a block; line after line, so both rise."""

    start: Positions
    end: Positions


def cut(block: LineBlock, spans: FieldSpans) -> Any:  # noqa: ANN401 - a pyarrow array
    """The texts at the spans. Arrow copies them at the speed of memory; nothing is done per line in Python."""
    pa = require("pyarrow", "columns")
    edges = np.empty(2 * len(spans.start) + 1, np.int32)
    edges[0:-1:2], edges[1::2] = spans.start, spans.end
    edges[-1] = len(block.text)
    # Seen as one array, values and what lies between them take turns: every second one is wanted.
    both = pa.StringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), pa.py_buffer(block.text))
    return both.take(pa.array(np.arange(0, len(edges) - 1, 2, dtype=np.int32)))


def to_captures(
    texts: dict[str, Any],  # a pyarrow array of text for each of TEXTS that the source gives
    lines: Positions,
    block: LineBlock,
    report: ReadReport,
    kinds: npt.NDArray[np.uint8] | None = None,
) -> Any:  # noqa: ANN401 - a pyarrow.RecordBatch
    """Captures of the rows that make sense; the others are reported with the place of their line.

    ``kinds`` are the kinds of record where the source tells them; else they follow from media type and status.
    """
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    count = len(lines)
    empty = pa.array([""]).take(pa.array(np.zeros(count, np.int32)))
    given = {name: _blank_to_empty(texts[name]) if name in texts else empty for name in TEXTS}
    time, wrong_time = parse_timestamps(given["timestamp"])
    status, wrong_status = _statuses(given["status"])
    trouble = np.zeros(count, np.uint8)
    numbers = {}
    for name in ("size", "offset", "length"):
        numbers[name], wrong = _numbers(given[name])
        trouble[wrong] = _NO_NUMBER
    trouble[wrong_status] = _NO_STATUS_CODE
    trouble[wrong_time] = _NO_TIME
    url, no_http = _urls(given["url"], given["key"])
    trouble[(trouble == 0) & no_http] = _NOT_HTTP
    trouble[(trouble == 0) & (time < EARLIEST)] = _TOO_EARLY
    trouble[(trouble == 0) & (time >= LATEST)] = _TOO_LATE
    revisit = pc.equal(given["mime"], REVISIT).to_numpy(zero_copy_only=False)
    kind = np.where(revisit, np.uint8(RecordKind.REVISIT_IDENTICAL), np.uint8(RecordKind.RESPONSE))
    kind[status == _NOT_MODIFIED] = RecordKind.REVISIT_NOT_MODIFIED
    kind = kind if kinds is None else kinds
    columns = [
        url,
        given["key"],
        pa.array(time),
        pa.array(kind),
        pa.array(status),
        given["mime"],
        _without_algorithm(given["digest"]),
        pa.array(numbers["size"]),
        given["file"],
        pa.array(numbers["offset"]),
        pa.array(numbers["length"]),
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema())
    if not trouble.any():
        return batch
    _tell(trouble, lines, block, report, given)
    return batch.filter(pa.array(trouble == 0))


_NO_TIME, _NO_STATUS_CODE, _NO_NUMBER, _NOT_HTTP, _TOO_EARLY, _TOO_LATE = range(1, 7)
_SKIPPED = {_NOT_HTTP: "not http or https", _TOO_EARLY: "dated before 1990", _TOO_LATE: "dated after 2100"}


def _tell(trouble: Any, lines: Positions, block: LineBlock, report: ReadReport, given: dict[str, Any]) -> None:  # noqa: ANN401
    for code, reason in _SKIPPED.items():
        if found := int((trouble == code).sum()):
            report.skip(reason, found)
    for row in np.flatnonzero((trouble > 0) & (trouble < _NOT_HTTP)):
        if trouble[row] == _NO_TIME:
            what = f"{_short(given['timestamp'][row])} is not a time of 14 to 17 digits"
        elif trouble[row] == _NO_STATUS_CODE:
            what = f"the status {_short(given['status'][row])} is not a number of HTTP or Heritrix"
        else:
            what = "size, offset or length is not a number"
        report.broken(what, source=block.source, position=block.place(int(lines[row])))


def _short(text: Any) -> str:  # noqa: ANN401 - a pyarrow scalar
    return repr(text.as_py()[:40])


def _blank_to_empty(texts: Any) -> Any:  # noqa: ANN401 - pyarrow arrays
    pc = require("pyarrow.compute", "columns")
    absent = pc.equal(texts, "-")
    return pc.if_else(absent, "", texts) if pc.any(absent).as_py() else texts


def parse_timestamps(texts: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:  # noqa: ANN401
    """Seconds since the epoch of 14 digits (conventions X2), or up to 17 with fractions, and which are no such times.

    One pass per number of digits that occurs; no Python per row.
    """
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    seconds = np.zeros(len(texts))
    wrong = np.ones(len(texts), np.bool_)
    lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False)
    for digits in (14, 15, 16, 17):
        rows = np.flatnonzero(lengths == digits)
        if not len(rows):
            continue
        some = texts if len(rows) == len(texts) else texts.take(pa.array(rows))
        seconds[rows], wrong[rows] = _moments(_matrix(some, digits))
    seconds[wrong] = 0.0
    return seconds, wrong


def _matrix(texts: Any, width: int) -> npt.NDArray[np.uint8]:  # noqa: ANN401 - a pyarrow array of texts of one length
    _, offsets, data = texts.buffers()
    first = int(np.frombuffer(offsets, np.int32, 1, 4 * texts.offset)[0])
    return np.frombuffer(data, np.uint8, len(texts) * width, first).reshape(-1, width)


def _moments(digits: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Seconds since the epoch of rows of digits ``yyyyMMddHHmmss`` and fractions."""
    values = np.ascontiguousarray(digits.T).astype(np.int32) - ord("0")
    wrong = ((values < 0) | (values > 9)).any(axis=0)  # noqa: PLR2004 - the digits

    def number(begin: int, end: int) -> npt.NDArray[np.int64]:
        total = np.zeros(len(digits), np.int64)
        for place in range(begin, end):
            total = total * 10 + values[place]
        return total

    year, month, day = number(0, 4), number(4, 6), number(6, 8)
    hour, minute, second = number(8, 10), number(10, 12), number(12, 14)
    wrong |= (month < 1) | (month > 12) | (hour > 23) | (minute > 59) | (second > 59)  # noqa: PLR2004 - the calendar
    months = np.where(wrong, 0, (year - 1970) * 12 + month - 1).astype("M8[M]")
    days = months.astype("M8[D]").astype(np.int64)
    wrong |= (day < 1) | (day > (months + 1).astype("M8[D]").astype(np.int64) - days)
    whole = ((days + day - 1) * 86_400 + hour * 3_600 + minute * 60 + second).astype(np.float64)
    more = len(values) - 14
    return (whole + number(14, 14 + more) / 10**more if more else whole), wrong


def _statuses(texts: Any) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:  # noqa: ANN401
    """The few different statuses are read one by one, the many rows by index."""
    words = texts.dictionary_encode()
    codes = [_status(word) for word in words.dictionary.to_pylist()]
    index = words.indices.to_numpy(zero_copy_only=False)
    values = np.array([NO_STATUS if code is None else code for code in codes], np.int16)
    wrong = np.array([code is None for code in codes], np.bool_)
    return values[index], wrong[index]


def _status(word: str) -> int | None:
    if not word:
        return NO_STATUS
    if not word.isascii() or _NUMBER.fullmatch(word) is None:
        return None
    return int(word) if -(1 << 15) <= int(word) < 1 << 15 else None


def _numbers(texts: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:  # noqa: ANN401
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    length = pc.binary_length(texts)
    absent = pc.equal(length, 0)
    if pc.all(absent).as_py():
        return np.full(len(texts), NO_SIZE, np.int64), np.zeros(len(texts), np.bool_)
    digits = pc.and_(pc.ascii_is_decimal(texts), pc.less(length, 19))  # 18 digits always fit
    wrong = pc.invert(pc.or_(digits, absent)).to_numpy(zero_copy_only=False)
    readable = texts if pc.all(digits).as_py() else pc.if_else(digits, texts, str(NO_SIZE))
    return readable.cast(pa.int64()).to_numpy(zero_copy_only=False), wrong


def _urls(urls: Any, keys: Any) -> tuple[Any, npt.NDArray[np.bool_]]:  # noqa: ANN401 - pyarrow arrays
    """URLs with their scheme, and which rows are about something else than the web.

    Old indexes leave out ``http://``; some give only the key, of which a URL is made.
    """
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    fine = pc.or_(pc.starts_with(urls, "http://"), pc.starts_with(urls, "https://")).to_numpy(zero_copy_only=False)
    if fine.all():
        return urls, ~fine
    rows = np.flatnonzero(~fine)
    chosen = pa.array(rows)
    better = [
        _web_url(url, key)
        for url, key in zip(urls.take(chosen).to_pylist(), keys.take(chosen).to_pylist(), strict=True)
    ]
    repaired = pc.replace_with_mask(urls, pa.array(~fine), pa.array([url or "" for url in better], pa.string()))
    other = np.zeros(len(urls), np.bool_)
    other[rows] = [url is None for url in better]
    return repaired, other


def _web_url(url: str, key: str) -> str | None:
    if not url:
        return url_of_key(key)
    if url[:8].lower().startswith(("http://", "https://")):
        return url
    return f"http://{url}" if _BARE_HOST.match(url) else None


def _without_algorithm(digests: Any) -> Any:  # noqa: ANN401 - pyarrow arrays
    pc = require("pyarrow.compute", "columns")
    named = pc.starts_with(digests, "sha1:")
    return pc.if_else(named, pc.utf8_slice_codeunits(digests, 5), digests) if pc.any(named).as_py() else digests


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
    """The block, cut where a line names the fields again: files that were put together have several such lines."""
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
