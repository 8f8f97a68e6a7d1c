"""TimeMaps in files of any length, as captures. Whoever needs the pages of a map reads it whole instead."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

from recrawl.errors import InputError
from recrawl.formats.captures import Report, and_rest
from recrawl.formats.lines import pieces_of
from recrawl.formats.timemap import is_cdxj, read_links, read_text
from recrawl.formats.timemap import read_lines as take_lines
from recrawl.formats.timemap_values import BATCH, Findings, Memento, to_batches

MAX_JSON = 64 * 1024 * 1024
"""Bytes of a map in JSON, which cannot be read in parts; half a million captures fit."""
_PIECE = 1 << 20
_LONGEST = 1 << 20
"""Bytes of one link or line; what is longer makes no sense."""
_BOM = b"\xef\xbb\xbf"


def read_timemap_file(stream: BinaryIO, source: str, report: Report) -> Iterator[Any]:
    """The captures of a TimeMap, plain or gzipped, as record batches of :func:`~recrawl.formats.captures.schema`.

    Memory is bounded: link-format and CDXJ are read piece by piece, JSON up to :data:`MAX_JSON`. A map that names its
    original only behind 20,000 mementos is understood if those name it themselves.

    Raises:
        InputError: it is no TimeMap, or one in JSON that is too long.
    """
    pieces = pieces_of(stream, source, report, _PIECE)
    first = next(pieces, b"")
    offset = len(_BOM) if first.startswith(_BOM) else 0
    begin = first[offset:].lstrip()
    every = chain([first[offset:]], pieces)
    found = Findings(source, report, offset)
    if begin.startswith(b"<"):
        taken = _linked(every, found)
    elif is_cdxj(begin):
        taken = _listed(every, found)
    else:
        taken = _at_once(every, found)
    yield from to_batches(and_rest(taken, found.rest))


def _at_once(pieces: Iterator[bytes], found: Findings) -> Iterator[Memento]:
    read_text(_whole(pieces, found.source), found)
    yield from ()


def _whole(pieces: Iterator[bytes], source: str) -> bytes:
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > MAX_JSON:
            raise InputError(
                f"a TimeMap in JSON may have {MAX_JSON >> 20} MiB, and this one is longer",
                "Get it in link-format or as CDXJ, which can be of any length.",
                source=source,
            )
    return b"".join(held)


def _linked(pieces: Iterator[bytes], found: Findings) -> Iterator[Memento]:
    rest = b""
    for piece in pieces:
        rest += piece
        done = read_links(rest, found, final=len(rest) > _PIECE + _LONGEST)
        rest, found.offset = rest[done:], found.offset + done
        if found.original or len(found) >= BATCH:
            yield from found.mementos()
    read_links(rest, found)


def _listed(pieces: Iterator[bytes], found: Findings) -> Iterator[Memento]:
    rest = b""
    for piece in pieces:
        rest += piece
        done = len(rest) if len(rest) > _PIECE + _LONGEST else rest.rfind(b"\n") + 1
        take_lines(rest[:done], found)
        rest, found.offset = rest[done:], found.offset + done
        if found.original or len(found) >= BATCH:
            yield from found.mementos()
    take_lines(rest, found)
