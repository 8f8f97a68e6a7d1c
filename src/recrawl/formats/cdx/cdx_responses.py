"""Responses of CDX servers: the Internet Archive's array of arrays, lines of JSON, CDXJ or plain text.

The first bytes of a response show which of these it is. A server with more results ends its response with a resume key,
which is returned.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np

from recrawl.errors import InputError, require
from recrawl.formats.cdx import cdx_lines, cdxj
from recrawl.formats.cdx.cdx_lines import to_captures
from recrawl.formats.cdx.cdxj import NAMES
from recrawl.formats.cdx.line_blocks import LineBlock, read_blocks, whole_lines
from recrawl.formats.columnar.capture_batches import ReadReport

LONGEST_ROW = 1 << 26
"""An answer may be one line; a longer one is not read."""
_TEXT_COLUMNS = ("key", "timestamp", "url", "mime", "status", "digest", "length")
_RECORDED = b'"response_text"'


class CdxResponse:
    """The captures of one answer, as record batches; afterwards, the key to ask for more with.

    >>> rows = b'[["urlkey","timestamp","original"],["org,a)/","20200101000000","http://a.org/"],[],["next"]]'
    >>> answer = CdxResponse(io.BytesIO(rows), "answer", ReadReport())
    >>> [batch.num_rows for batch in answer], answer.resume_key
    ([1], 'next')
    """

    def __init__(self, stream: BinaryIO, source: str, report: ReadReport) -> None:
        self.resume_key = ""
        """Empty if the server has told all it knows; valid once all batches are taken."""
        self._stream = stream
        self._source = source
        self._report = report
        self._empty: int | None = None
        """Where the row before was empty."""
        self._names: list[str | None] | None = None
        """What the columns of an array of arrays are; the first row says it."""

    def __iter__(self) -> Iterator[Any]:
        blocks = read_blocks(self._stream, self._source, self._report, longest=LONGEST_ROW)
        first = next(blocks, None)
        if first is None:
            return
        rest = itertools.chain([first], blocks)
        opening = first.text.lstrip()
        line = opening.split(b"\n", 1)[0]
        if opening.startswith(b"[") and opening[1:].lstrip()[:1] in (b"[", b"]", b""):
            yield from self._rows(rest)
        elif opening.startswith(b"["):
            self._report.skip("an answer without captures")  # such as the list of Common Crawl's indexes
        elif line.startswith(b"{") and _RECORDED in line:
            yield from self._recorded(rest)
        elif line.startswith(b"{") or line.rstrip().endswith(b"}"):
            yield from cdxj.captures_of_blocks(self._messages_told(rest), self._report)
        elif opening:
            yield from self._text(rest)

    def _rows(self, blocks: Iterable[LineBlock]) -> Iterator[Any]:
        """An array of arrays, of which the first names the columns. Servers write a row a line; so it is read."""
        for block in blocks:
            yield from whole_lines(block, self._table, self._report)
            if self._names is not None and "timestamp" not in self._names:
                self._report.skip("an answer without captures")
                return
        if self._names is not None:
            self._tell_empty()

    def _table(self, block: LineBlock) -> Any:  # noqa: ANN401 - a pyarrow.RecordBatch
        """The captures of a block of rows. Where it raises, it leaves what is known as it was before."""
        known = self._names, self._empty, self.resume_key
        try:
            rows, lines = self._rows_of(block)
            if self._names is None and rows:
                header, rows, lines = rows[0], rows[1:], lines[1:]
                self._names = [NAMES.get(name) if isinstance(name, str) else None for name in header]
            if "timestamp" not in (names := self._names or []):
                rows, lines = [], []
            return self._captures(names, rows, lines, block)
        except InputError:
            self._names, self._empty, self.resume_key = known
            raise

    def _rows_of(self, block: LineBlock) -> tuple[list[list[Any]], list[int]]:
        rows: list[list[Any]] = []
        lines: list[int] = []
        for number, line in enumerate(block.text.split(b"\n")):
            text = line.strip().rstrip(b",")
            if not text or text in (b"[", b"]"):
                continue
            for row in self._decoded(text, number, block):
                place = block.place(number)
                if not isinstance(row, list):
                    self._report.broken("a row is not an array", source=self._source, position=place)
                elif not row:
                    self._tell_empty()
                    self._empty = place
                elif len(row) == 1 and isinstance(row[0], str) and self._empty is not None:
                    self.resume_key, self._empty = row[0], None  # an empty row announces it
                else:
                    self._tell_empty()
                    rows.append(row)
                    lines.append(number)
        return rows, lines

    def _tell_empty(self) -> None:
        """An empty row that no resume key followed is a row without its values."""
        if self._empty is not None:
            self._report.broken("the row is empty", source=self._source, position=self._empty)
            self._empty = None

    def _decoded(self, text: bytes, number: int, block: LineBlock) -> list[Any]:
        """The rows of a line: one, or all of them if the answer is written without line ends."""
        for form in (text, text.removeprefix(b"["), text.removesuffix(b"]")):
            try:
                value = json.loads(form)
            except (ValueError, RecursionError):
                continue
            whole = isinstance(value, list) and bool(value) and isinstance(value[0], list)
            return value if whole else [value]
        self._report.broken("the JSON cannot be read", source=self._source, position=block.place(number))
        return []

    def _captures(self, names: list[str | None], rows: list[list[Any]], lines: list[int], block: LineBlock) -> Any:  # noqa: ANN401
        pa = require("pyarrow", "columns")
        good: list[list[str]] = []
        kept: list[int] = []
        for row, line in zip(rows, lines, strict=True):
            if len(row) != len(names):
                what = f"the row has {len(row)} values, not {len(names)}"
                self._report.broken(what, source=self._source, position=block.place(line))
                continue
            good.append([_clean_text(value) for value in row])
            kept.append(line)
        columns = {
            name: pa.array([row[place] for row in good], pa.string())
            for place, name in enumerate(names)
            if name is not None
        }
        return to_captures(columns, np.array(kept, np.int64), block, self._report)

    def _text(self, blocks: Iterable[LineBlock]) -> Iterator[Any]:
        """Plain lines: CDX with 7 or more fields, and after an empty line the resume key."""
        lines = (self._without_key(block) for block in blocks)
        yield from cdx_lines.captures_of_blocks(
            (block for block in lines if block.text.strip()), self._report, _TEXT_COLUMNS
        )

    def _without_key(self, block: LineBlock) -> LineBlock:
        head, gap, tail = block.text.rstrip(b"\n").rpartition(b"\n\n")
        if not gap or b" " in tail or b"\n" in tail:
            return block
        self.resume_key = tail.decode()
        end = block.raw.rstrip(b"\r\n").rfind(b"\n") + 1
        return LineBlock(head + b"\n\n", block.raw[:end], block.position, block.source)

    def _messages_told(self, blocks: Iterable[LineBlock]) -> Iterator[LineBlock]:
        """Without the lines in which a server says that there is nothing."""
        for block in blocks:
            lines = block.text.split(b"\n")
            told = [number for number, line in enumerate(lines) if _is_message(line)]
            if told:
                self._report.skip("a message of the server", len(told))
                for number in told:
                    lines[number] = b""
                yield LineBlock(b"\n".join(lines), block.raw, block.position, block.source)
            else:
                yield block

    def _recorded(self, blocks: Iterable[LineBlock]) -> Iterator[Any]:
        """Answers that were recorded with their requests, one a line, as cdx_toolkit keeps them."""
        for block in blocks:
            for number, line in enumerate(block.text.split(b"\n")[:-1]):
                if not line.strip():
                    continue
                try:
                    text = json.loads(line)["response_text"].encode()
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    what = "the line is not a recorded answer"
                    self._report.broken(what, source=self._source, position=block.place(number))
                    continue
                place = f"{self._source} at byte {block.place(number)}"
                inner = CdxResponse(io.BytesIO(text), place, self._report)
                try:
                    yield from inner
                except InputError as error:
                    self._report.broken(error.what, source=self._source, position=block.place(number))


def read_answer(stream: BinaryIO, source: str, report: ReadReport) -> Iterator[Any]:
    """The captures of an answer, whichever form it has, as record batches."""
    return iter(CdxResponse(stream, source, report))


def _is_message(line: bytes) -> bool:
    return line.startswith((b'{"message"', b'{"error"')) and b'"timestamp"' not in line


def _clean_text(value: object) -> str:
    if value is None or isinstance(value, list | dict | bool):
        return ""
    return str(value).encode("utf-8", "replace").decode()
