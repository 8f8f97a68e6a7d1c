"""CDX: one capture a line, fields in the order that the first line names by letters (conventions X1).

Indexes of many ages are read: any order and number of fields, keys as SURT or as plain URLs, sorted or not, with
or without the line that names the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from recrawl.errors import InputError, require
from recrawl.formats.captures import Report
from recrawl.formats.cdx_columns import Spans, cut, to_captures
from recrawl.formats.cdx_text import archived, capture_texts, write_sorted
from recrawl.formats.lines import NO_CAPTURES, Block, not_empty, read_blocks, whole_lines

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


def read_cdx(stream: BinaryIO, source: str, report: Report) -> Iterator[Any]:
    """Captures of a CDX file, plain or gzipped, as record batches of :func:`~recrawl.formats.captures.schema`.

    A line with another number of fields is reported and left out. A file without a first line that names its
    fields is read by their number (9, 10, 11, 14 or 16); anything else cannot be CDX.
    """
    blocks = not_empty(read_blocks(stream, source, report), report)
    yield from captures_of_blocks(blocks, report)


def captures_of_blocks(
    blocks: Iterable[Block], report: Report, otherwise: tuple[str, ...] | None = None
) -> Iterator[Any]:
    """Captures of CDX lines that are already in blocks, as from the parts of a ZipNum cluster.

    ``otherwise`` names the values of lines that have as many fields, where no line of the file names them.
    """
    layout: Layout | None = None
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
class Layout:
    """Which field of a line is what."""

    width: int
    """How many fields a line has."""
    separator: int
    """The byte between them."""
    fields: dict[str, int]
    """The place of each value that captures have."""


def _layout(letters: list[str], separator: bytes) -> Layout:
    fields: dict[str, int] = {}
    for place, letter in enumerate(letters):
        if (name := _LETTERS.get(letter)) is not None:
            fields.setdefault(name, place)
    return Layout(len(letters), separator[0], fields)


def header_layout(line: bytes) -> Layout | None:
    """The layout that a line names, ``None`` if it is an ordinary line.

    >>> header_layout(b" CDX N b a").fields
    {'key': 0, 'timestamp': 1, 'url': 2}
    """
    separator, words = (line[:1], line[1:]) if line[1:4] == b"CDX" else (b" ", line)
    name, *letters = words.replace(separator, b" ").decode("latin-1").split() or [""]
    named = name == "CDX" and letters and all(len(letter) == 1 for letter in letters)
    return _layout(letters, separator) if named else None


def _first_layout(block: Block, otherwise: tuple[str, ...] | None) -> Layout:
    first = next((line for line in block.text.split(b"\n", 64) if line.strip()), b"")
    layout = header_layout(first)
    if layout is None:
        count = len(first.split(b" "))
        if otherwise is not None and count == len(otherwise):
            return Layout(count, ord(" "), {name: place for place, name in enumerate(otherwise)})
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


def _sections(block: Block, layout: Layout) -> Iterator[tuple[Block, Layout]]:
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


def _part(block: Block, begin: int, end: int) -> Block:
    """Some lines of a block, by where they begin and end in its text."""
    first = block.text.count(b"\n", 0, begin)
    last = first + block.text.count(b"\n", begin, end)
    start = block.place(first)
    raw = block.raw[start - block.position : block.place(last) - block.position]
    return Block(block.text[begin:end], raw, start, block.source)


def _captures(block: Block, layout: Layout, report: Report) -> Any:  # noqa: ANN401 - a pyarrow.RecordBatch
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
        texts[name] = cut(block, Spans(start, end))
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
