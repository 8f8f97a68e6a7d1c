"""CDXJ: key, time and an object of JSON on each line (conventions X2); and plain lines of JSON, as servers answer.

In a file nearly all lines have the same few shapes: the same names in the same order, only the values differ. One line
of each shape is parsed as JSON, and all others that have the same bytes between their values are cut by the places
of their quotes. Only lines that fit no shape are parsed one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from recrawl.errors import require
from recrawl.formats.captures import Report
from recrawl.formats.cdx_columns import to_captures
from recrawl.formats.cdx_text import archived, capture_texts, write_sorted
from recrawl.formats.cdxj_shapes import cut_lines
from recrawl.formats.lines import Block, not_empty, read_blocks, whole_lines

_ORDER = ("url", "mime", "status", "digest", "length", "offset", "filename")


def read_cdxj(stream: BinaryIO, source: str, report: Report) -> Iterator[Any]:
    """Captures of a CDXJ file, plain or gzipped, as record batches of :func:`~recrawl.formats.captures.schema`.

    Numbers may be written as numbers or as texts. Lines that begin with ``!`` describe the file and are passed over.
    Where a line gives no URL, one is made of its key.
    """
    yield from captures_of_blocks(not_empty(read_blocks(stream, source, report), report), report)


def captures_of_blocks(blocks: Iterable[Block], report: Report) -> Iterator[Any]:
    """Captures of CDXJ or JSON lines that are already in blocks."""

    def captures(block: Block) -> Any:  # noqa: ANN401 - a pyarrow.RecordBatch
        return to_captures(*cut_lines(block, report), block, report)

    for block in blocks:
        yield from whole_lines(block, captures, report)


def write_cdxj(batches: Iterable[Any], stream: BinaryIO, *, scratch: Path | None = None) -> int:
    """Write captures as sorted CDXJ, in pywb's form; returns how many lines. Failed fetches are left out.

    Memory is bounded: what is too much to sort at once goes through a temporary file in the folder ``scratch``.
    """
    return write_sorted(map(cdxj_lines, archived(batches)), stream, scratch=scratch)


def cdxj_lines(batch: Any) -> Any:  # noqa: ANN401 - pyarrow record batch in, array out
    """The captures of a batch as lines of CDXJ, without line ends, in the order they come.

    Numbers are texts and what is not known is left out, as pywb and its indexers write it.
    """
    pc = require("pyarrow.compute", "columns")
    texts = capture_texts(batch, absent="")
    texts["filename"] = texts["file"]
    parts = [texts["key"], " ", texts["timestamp"], ' {"url": ', _quoted(texts["url"])]
    for name in _ORDER[1:]:
        value = texts[name]
        pair = pc.binary_join_element_wise(f', "{name}": ', _quoted(value), "")
        parts.append(pc.if_else(pc.equal(value, ""), "", pair))
    return pc.binary_join_element_wise(*parts, "}", "")


def _quoted(texts: Any) -> Any:  # noqa: ANN401 - pyarrow
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    if pc.any(pc.match_substring_regex(texts, r'["\\\x00-\x1f]')).as_py():
        return pa.array([json.dumps(text, ensure_ascii=False) for text in texts.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', texts, '"', "")
