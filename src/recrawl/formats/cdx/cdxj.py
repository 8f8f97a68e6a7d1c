"""CDXJ and ZipNum: sorted indexes of captures with a JSON object per line.

CDXJ: key, time and a JSON object on each line (conventions X2); and plain lines of JSON, as servers send them.

Nearly all lines of a file share a few shapes: the same names in the same order, only the values differ. A shape is the
bytes between the values. One line of each shape is parsed as JSON. A line fits a shape if it has as many quotes and the
same bytes at the places that its quotes give; then its values are cut by these places. Lines that fit no shape, among
them all with backslashes, control characters or anything else than texts and integers, are parsed one by one
(:func:`parse_line`).

ZipNum: a sorted index in gzip blocks of some thousand lines, and a small index of the blocks (conventions X4).

The small index (``.idx``) has one line per block: its first key and time, its part, offset and length in bytes. A part
is a file named as the part, also with ``.cdx.gz`` or ``.gz``, unless a ``.loc`` file beside the index gives its path.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from recrawl.errors import InputError, require
from recrawl.formats.cdx import cdx_lines
from recrawl.formats.cdx.cdx_lines import (
    TEXTS,
    FieldSpans,
    Positions,
    archived,
    capture_texts,
    cut,
    to_captures,
    write_sorted,
)
from recrawl.formats.cdx.line_blocks import BLOCK, LineBlock, clean, not_empty, read_blocks, whole_lines
from recrawl.formats.columnar.capture_batches import ReadReport, and_rest

NAMES = {
    "urlkey": "key",
    "timestamp": "timestamp",
    "url": "url",
    "original": "url",
    "original_uri": "url",
    "mime": "mime",
    "mimetype": "mime",
    "mime_type": "mime",
    "status": "status",
    "statuscode": "status",
    "status_code": "status",
    "digest": "digest",
    "filename": "file",
    "offset": "offset",
    "length": "length",
}
"""What the values are called by pywb, the Internet Archive's server, Common Crawl, OutbackCDX and IPWB."""

_IPWB = frozenset({"locator", "payload_digest", "encryption_key", "encryption_method"})
_NUMERIC = frozenset({"timestamp", "status", "offset", "length"})
_SHAPES = 64  # in a block; more would be a file without common shapes
_GAP = re.compile(rb"(: *)\d+(, *|\})")
_QUOTE, _BRACE = ord('"'), ord("{")


@dataclass(frozen=True, slots=True)
class _Value:
    """One value of a shape, and the bytes that stand before it."""

    name: str
    literal: bytes
    quote: int
    """The number of the quote from which the literal's place is counted."""
    before: int
    """The literal begins this many bytes before that quote."""
    number: bool
    tail: int
    """Of a number: how many bytes lie between it and the next quote, or the end of the line."""


@dataclass(frozen=True, slots=True)
class _Shape:
    values: tuple[_Value, ...]
    quotes: int
    ending: bytes
    """What follows the last value."""


def cut_lines(block: LineBlock, report: ReadReport) -> tuple[dict[str, Any], Positions]:
    """The texts of all lines of a block that can be read, and the numbers of those lines."""
    pa, pc = require("pyarrow", "columns"), require("pyarrow.compute", "columns")
    cutter = _Cutter(block)
    if about_file := int(cutter.about_file.sum()):
        report.skip("a line about the file", about_file)
    odd = cutter.cut_shapes()
    read: dict[int, dict[str, str]] = {}
    for line in np.flatnonzero(odd):
        try:
            read[int(line)] = parse_line(block.text[cutter.starts[line] : cutter.ends[line]])
        except InputError as error:
            report.broken(error.what, source=block.source, position=block.place(int(line)))
            cutter.data[line] = False
    lines = np.flatnonzero(cutter.data)
    mask = pa.array(odd[lines])
    texts = {}
    for name in TEXTS:
        texts[name] = cut(block, FieldSpans(cutter.start[name][lines], cutter.end[name][lines]))
        if read:
            texts[name] = pc.replace_with_mask(
                texts[name], mask, pa.array([one.get(name, "") for one in read.values()], pa.string())
            )
    return texts, lines


def parse_line(line: bytes) -> dict[str, str]:
    """The values of one line, as text.

    Raises:
        InputError: it is neither ``key time {json}`` nor ``{json}``, or a value has the wrong type.

    >>> parse_line(b'org,a)/ 20200101000000 {"url": "http://a.org/", "status": 200}')
    {'key': 'org,a)/', 'timestamp': '20200101000000', 'url': 'http://a.org/', 'status': '200'}
    """
    found: dict[str, str] = {}
    rest = line
    if not line.startswith(b"{"):
        parts = line.split(b" ", 2)
        if len(parts) < 3 or not parts[2].startswith(b"{"):  # noqa: PLR2004 - key, time and object
            raise InputError("the line is not a key, a time and an object of JSON")
        found["key"], found["timestamp"], rest = parts[0].decode(), parts[1].decode(), parts[2]
    try:
        pairs = json.loads(rest)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the JSON cannot be read ({error})") from error
    for name, value in pairs.items():
        if (field := NAMES.get(name)) is None or field in found or value is None:
            continue
        found[field] = _text(name, field, value)
    if not _IPWB.isdisjoint(pairs) and "digest" not in found:
        found["digest"] = _content_address(pairs)
    return found


def _text(name: str, field: str, value: object) -> str:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"the {name} is not Unicode") from error
        return value
    if field in _NUMERIC and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"the {name} has the wrong type")


def _content_address(pairs: dict[str, Any]) -> str:
    """InterPlanetary Wayback names a payload by a hash of its bytes, which serves as digest unless it is encrypted."""
    if pairs.get("encryption_key") or pairs.get("encryption_method"):
        return ""
    address = pairs.get("payload_digest") or pairs.get("locator")
    return address.rpartition("/")[2] if isinstance(address, str) and address.isascii() else ""


class _Cutter:
    """Where the values of each line of a block lie."""

    def __init__(self, block: LineBlock) -> None:
        self.block = block
        text = np.frombuffer(block.text, np.uint8)
        self.text = text
        padded = np.concatenate((text, np.zeros(8, np.uint8)))
        self.words = np.ndarray((len(text) + 1,), "<u8", padded, strides=(1,))  # the eight bytes from any place on
        self.ends = np.flatnonzero(text == ord("\n"))
        self.starts = np.concatenate(([0], self.ends[:-1] + 1))
        first = text[self.starts]
        self.about_file = first == ord("!")
        self.data = (self.ends > self.starts) & ~self.about_file
        self.quotes = np.append(np.flatnonzero(text == _QUOTE), [len(text)] * 2)
        self.first_quote = np.searchsorted(self.quotes, self.starts)
        self.count = np.searchsorted(self.quotes, self.ends) - self.first_quote
        self.start = {name: self.starts.copy() for name in TEXTS}
        self.end = {name: self.starts.copy() for name in TEXTS}

    def cut_shapes(self) -> npt.NDArray[np.bool_]:
        """Cut all lines that fit a shape; returns which lines with data are left."""
        keyed, bare = self._cut_keys()
        left: npt.NDArray[np.bool_] = self.data.copy()
        tidy = self._tidy()
        for group in (keyed & tidy & left, bare & tidy & left):
            rest = np.flatnonzero(group)
            for _ in range(_SHAPES):
                if not len(rest):
                    break
                shape = self._shape_of(int(rest[0]))
                if shape is None:
                    rest = rest[1:]
                    continue
                alike = rest[self.count[rest] == shape.quotes]
                fitting = self._cut_shape(shape, alike)
                left[fitting] = False
                rest = rest[1:][left[rest[1:]]]
        for name in TEXTS:
            self.end[name][left] = self.start[name][left] = self.starts[left]
        return left

    def _tidy(self) -> npt.NDArray[np.bool_]:
        """Lines without escapes and control characters: there a quote is a quote."""
        tidy = np.ones(len(self.ends), np.bool_)
        if b"\\" not in self.block.text and np.count_nonzero(self.text < ord(" ")) == len(self.ends):
            return tidy
        wild = (self.text == ord("\\")) | (self.text < ord(" "))
        wild[self.ends] = False
        tidy[np.searchsorted(self.ends, np.flatnonzero(wild))] = False
        return tidy

    def _cut_keys(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Key and time before the object; returns which lines have both, and which begin with the object."""
        opened = self.quotes[self.first_quote] - 1
        brace = (self.count > 0) & (self.text[np.clip(opened, 0, len(self.text) - 1)] == _BRACE)
        spaces = np.append(np.flatnonzero(self.text == ord(" ")), [len(self.text)] * 2)
        place = np.searchsorted(spaces, self.starts)
        one, two = spaces[place], spaces[place + 1]
        keyed = brace & (two == opened - 1) & (opened > self.starts) & (self.text[self.starts] != _BRACE)
        bare = brace & (opened == self.starts)
        self.end["key"][keyed] = one[keyed]
        self.start["timestamp"][keyed], self.end["timestamp"][keyed] = one[keyed] + 1, two[keyed]
        return keyed, bare

    def _shape_of(self, line: int) -> _Shape | None:
        """The shape of a line, ``None`` if it has none."""
        begin, end = int(self.starts[line]), int(self.ends[line])
        first, count = int(self.first_quote[line]), int(self.count[line])
        places = [int(place) - begin for place in self.quotes[first : first + count]]
        text = self.block.text[begin:end]
        try:
            pairs = json.loads(text[places[0] - 1 :], object_pairs_hook=list)
        except (ValueError, RecursionError):
            return None
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names) or not _IPWB.isdisjoint(names):
            return None
        return _shape(text, places, pairs)

    def _cut_shape(self, shape: _Shape, lines: Positions) -> Positions:
        """Cut the lines that fit; returns them."""
        spans: list[FieldSpans] = []
        quotes = self.first_quote[lines]
        fits = np.ones(len(lines), np.bool_)
        for value in shape.values:
            place = self.quotes[quotes + value.quote] - value.before
            fits &= self._has(place, value.literal)
            start = place + len(value.literal)
            edge = value.quote + value.literal.count(b'"')
            if value.number:
                following = self.ends[lines] if edge >= shape.quotes else self.quotes[quotes + edge]
                end = following - value.tail
                fits &= self._is_number(start, end)
            else:
                end = self.quotes[quotes + edge]
            spans.append(FieldSpans(start, end))
        fits &= self._has(spans[-1].end, shape.ending) & (spans[-1].end + len(shape.ending) == self.ends[lines])
        fitting: Positions = lines[fits]
        filled = {"key", "timestamp"} if len(fitting) and self.text[self.starts[fitting[0]]] != _BRACE else set()
        for value, span in zip(shape.values, spans, strict=True):
            field = NAMES.get(value.name)
            if field is not None and field not in filled:
                filled.add(field)
                self.start[field][fitting], self.end[field][fitting] = span.start[fits], span.end[fits]
        return fitting

    def _has(self, place: Positions, literal: bytes) -> npt.NDArray[np.bool_]:
        """Whether the bytes of the literal stand at each place."""
        same = np.ones(len(place), np.bool_)
        last = len(self.words) - 1
        for begin in range(0, len(literal), 8):
            part = literal[begin : begin + 8]
            mask = np.uint64((1 << (8 * len(part))) - 1)
            same &= self.words[np.clip(place + begin, 0, last)] & mask == np.uint64(int.from_bytes(part, "little"))
        return same

    def _is_number(self, start: Positions, end: Positions) -> npt.NDArray[np.bool_]:
        """Whether one to eighteen digits without a leading zero lie between the places."""
        length = end - start
        digit = (self.text >= ord("0")) & (self.text <= ord("9"))
        fine: npt.NDArray[np.bool_] = (length > 0) & (length <= 18)  # noqa: PLR2004 - always fits 64 bits
        last = len(self.text) - 1
        for place in range(int(length[fine].max(initial=0))):
            fine &= (place >= length) | digit[np.clip(start + place, 0, last)]
        fine &= (length == 1) | (self.text[np.clip(start, 0, last)] != ord("0"))
        return fine


def _shape(text: bytes, places: list[int], pairs: list[tuple[str, Any]]) -> _Shape | None:
    """Walk over the quotes of a line whose JSON is known to be sound."""
    values: list[_Value] = []
    anchor, before, begin = 0, 1, places[0] - 1  # the first literal begins with the brace before the first quote
    at = 0
    for name, value in pairs:
        if isinstance(value, str):
            if at + 3 >= len(places):
                return None
            values.append(_Value(name, text[begin : places[at + 2] + 1], anchor, before, number=False, tail=0))
            anchor, before, begin = at + 3, 0, places[at + 3]
            at += 4
            continue
        following = places[at + 2] if at + 2 < len(places) else len(text)
        gap = _GAP.fullmatch(text[places[at + 1] + 1 : following])
        if gap is None or (name in NAMES and NAMES[name] not in _NUMERIC):
            return None
        start = places[at + 1] + 1 + len(gap[1])
        values.append(_Value(name, text[begin:start], anchor, before, number=True, tail=len(gap[2])))
        anchor, before, begin = at + 2, len(gap[2]), following - len(gap[2])
        at += 2
    if at != len(places) or not values:
        return None
    return _Shape(tuple(values), len(places), text[begin:])


_ORDER = ("url", "mime", "status", "digest", "length", "offset", "filename")


def read_cdxj(stream: BinaryIO, source: str, report: ReadReport) -> Iterator[Any]:
    """Captures of a CDXJ file, plain or gzipped, as record batches (:mod:`~recrawl.formats.columnar.capture_batches`).

    Numbers may be written as numbers or as texts. Lines that begin with ``!`` describe the file and are passed over.
    Where a line gives no URL, one is made of its key.
    """
    yield from captures_of_blocks(not_empty(read_blocks(stream, source, report), report), report)


def captures_of_blocks(blocks: Iterable[LineBlock], report: ReadReport) -> Iterator[Any]:
    """Captures of CDXJ or JSON lines that are already in blocks."""

    def captures(block: LineBlock) -> Any:  # noqa: ANN401 - a pyarrow.RecordBatch
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


LINES_PER_BLOCK = 3_000
LARGEST_BLOCK = 1 << 26
"""Bytes of text that one block may hold; more is no block of an index."""


@dataclass(frozen=True, slots=True)
class ZipNumBlock:
    """One line of the small index."""

    first: str
    """Key and time of the first line in the block."""
    part: str
    offset: int
    length: int


def read_zipnum(index: Path, report: ReadReport) -> Iterator[Any]:
    """Captures of a cluster, block by block in the order of its ``.idx`` file.

    Each block is read alone: a damaged one is reported and the others go on. To read the blocks without their
    index, give the ``.cdx.gz`` file to :func:`recrawl.formats.cdx.cdx_lines.read_cdx` or its ``cdxj`` twin.
    """
    blocks = _blocks(index, report)
    first = next(blocks, None)
    if first is None:
        return
    line = first.text.split(b"\n", 1)[0].rstrip()
    reader = captures_of_blocks if line.endswith(b"}") else cdx_lines.captures_of_blocks
    yield from reader(_gathered(first, blocks), report)


def read_entries(stream: BinaryIO, source: str, report: ReadReport) -> Iterator[ZipNumBlock]:
    """The lines of a small index; those that make no sense are reported."""
    for block in read_blocks(stream, source, report):
        for number, line in enumerate(block.text.decode().split("\n")[:-1]):
            fields = line.split("\t")
            if not line:
                continue
            if len(fields) < 4 or not all(_is_count(field) for field in fields[2:4]):  # noqa: PLR2004 - as above
                report.broken(
                    "the line is not a key, a part, an offset and a length, separated by tabs",
                    source=source,
                    position=block.place(number),
                )
                continue
            yield ZipNumBlock(fields[0], fields[1], int(fields[2]), int(fields[3]))


def write_zipnum(
    lines: Iterable[bytes], data: BinaryIO, index: BinaryIO, part: str, per_block: int = LINES_PER_BLOCK
) -> int:
    """Write sorted lines (each with its line end) as gzip blocks and their small index; returns how many blocks."""
    held: list[bytes] = []
    offset = blocks = 0

    def close() -> None:
        nonlocal offset, blocks
        packer = zlib.compressobj(level=6, wbits=31)
        packed = packer.compress(b"".join(held)) + packer.flush()
        data.write(packed)
        blocks += 1
        first = b" ".join(held[0].split(b" ", 2)[:2])
        index.write(first + f"\t{part}\t{offset}\t{len(packed)}\t{blocks}\n".encode())
        offset += len(packed)
        held.clear()

    for line in lines:
        held.append(line)
        if len(held) == per_block:
            close()
    if held:
        close()
    return blocks


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19  # noqa: PLR2004 - always fits 64 bits


def _blocks(index: Path, report: ReadReport) -> Iterator[LineBlock]:
    locations = _locations(index)
    files: dict[str, BinaryIO | None] = {}
    try:
        with index.open("rb") as stream:
            for entry in read_entries(stream, str(index), report):
                if entry.part not in files:
                    names = _names(index, entry.part, locations, only=not files)
                    files[entry.part] = _open_part(index, entry.part, names, report)
                file = files[entry.part]
                if file is None:
                    report.skip("in a part that is missing")
                    continue
                block = _read_block(file, entry, report)
                if block is not None:
                    yield block
    finally:
        for file in files.values():
            if file is not None:
                file.close()


def _locations(index: Path) -> dict[str, str]:
    """Where parts lie, from a ``.loc`` file beside the index: part, TAB, path."""
    found = {}
    for name in (index.with_suffix(".loc"), index.with_name(index.name.partition(".")[0] + ".loc")):
        if name.is_file():
            for line in name.read_text("utf-8", errors="replace").splitlines():
                part, _, path = line.partition("\t")
                found[part] = path.partition("\t")[0].strip()
    return found


def _names(index: Path, part: str, locations: dict[str, str], *, only: bool) -> list[str]:
    """Where a part may lie. Without a ``.loc`` file that is beside the index and nowhere else."""
    if part in locations:
        return [locations[part]]
    names = [part, f"{part}.cdx.gz", f"{part}.gz"] if part == Path(part).name else []
    return [*names, f"{index.stem}.cdx.gz"] if only else names  # a cluster of one part may be renamed as a whole


def _open_part(index: Path, part: str, names: list[str], report: ReadReport) -> BinaryIO | None:
    for name in names:
        with suppress(OSError, ValueError):  # a name that no file can have
            if (file := index.parent / name).is_file():
                return file.open("rb")
    report.broken(f"the part {part!r} is missing", source=str(index), position=0)
    return None


def _read_block(file: BinaryIO, entry: ZipNumBlock, report: ReadReport) -> LineBlock | None:
    file.seek(entry.offset)
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(file.read(min(entry.length, LARGEST_BLOCK)), LARGEST_BLOCK)
    except zlib.error as error:
        report.broken(f"the block is damaged ({error})", source=file.name, position=entry.offset)
        return None
    if not unpacker.eof:
        report.broken("the block is not complete, or too large", source=file.name, position=entry.offset)
        return None
    raw = text if text.endswith(b"\n") else text + b"\n"
    return LineBlock(clean(raw), raw, entry.offset, file.name) if raw.strip() else None


def _gathered(first: LineBlock, blocks: Iterator[LineBlock]) -> Iterator[LineBlock]:
    """Blocks of one part put together to the size that is quick to cut.

    A place in such a block is that of its first gzip block plus the bytes of text from there on.
    """
    held, weight = [first], len(first.raw)

    def full() -> Iterator[LineBlock]:
        nonlocal held, weight
        for block in blocks:
            if block.source != held[0].source or weight + len(block.raw) > BLOCK:
                yield _joined(held)
                held, weight = [], 0
            held.append(block)
            weight += len(block.raw)

    return and_rest(full(), lambda _damage: [_joined(held)])


def _joined(held: list[LineBlock]) -> LineBlock:
    first = held[0]
    return LineBlock(b"".join(b.text for b in held), b"".join(b.raw for b in held), first.position, first.source)
