"""ZipNum: a sorted index in gzip blocks of some thousand lines, and a small index of the blocks (conventions X4).

The small index (``.idx``) has one line per block: its first key and time, its part, offset and length in bytes. A part
is a file named as the part, also with ``.cdx.gz`` or ``.gz``, unless a ``.loc`` file beside the index gives its path.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from recrawl.formats.cdx import cdx_lines, cdxj
from recrawl.formats.cdx.line_blocks import BLOCK, LineBlock, clean, read_blocks
from recrawl.formats.columnar.capture_batches import ReadReport, and_rest

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
    reader = cdxj.captures_of_blocks if line.endswith(b"}") else cdx_lines.captures_of_blocks
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
