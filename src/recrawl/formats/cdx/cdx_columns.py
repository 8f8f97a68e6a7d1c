"""Turns fields of text lines into columns of captures, for all index formats.

A reader finds where in a block each value starts and ends. Arrow then cuts the values out, and they are checked and
converted a column at a time. The valid values are defined only here, so every format treats a missing status or an
impossible date alike.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recrawl.errors import require
from recrawl.formats.cdx.line_blocks import LineBlock
from recrawl.formats.columnar.capture_batches import NO_SIZE, NO_STATUS, ReadReport, RecordKind, schema
from recrawl.urls import url_of_key

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
