"""Plain lists of URLs, one a line, of any length (conventions S1). They name pages and claim nothing about them."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO

from recrawl.formats.captures import Report
from recrawl.formats.claims import Entry, to_batches
from recrawl.formats.lines import blocks_of, pieces_of
from recrawl.urls import address

WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How a text in UTF-16 begins."""
_AT_ONCE = 1 << 20
"""Bytes of a list that are held together."""
_SCHEME = 16
"""A line that is a URL has its ``://`` before this character, blanks included."""


def read_url_list(stream: BinaryIO, source: str, fetched: float, report: Report) -> Iterator[Any]:
    """The pages of a list, plain or gzipped, as Arrow record batches of ``claims.schema()``.

    A sitemap may have 50,000 lines, a list of seeds as many as there are; memory is a few blocks of it. What follows
    a TAB is somebody's note and left out. A list without any URL is told as broken.
    """
    pieces = pieces_of(stream, source, report, _AT_ONCE)
    first = next(pieces, b"")
    every: Iterable[bytes] = chain([first], pieces)
    taken = skipped = 0
    for block in blocks_of(_narrow(every) if first.startswith(WIDE) else every, source, report, size=_AT_ONCE):
        entries, others = entries_of(block.text.decode().split("\n"))
        taken, skipped = taken + len(entries), skipped + others
        yield from to_batches(entries, source, fetched)
    if not taken:
        report.broken("there is no http or https URL in this list", source=source, position=0)
    elif skipped:
        report.skip("not an http(s) URL", skipped)


def entries_of(lines: Iterable[str]) -> tuple[list[Entry], int]:
    """The pages that lines name, and how many lines name none; empty ones do not count."""
    entries, others = [], 0
    for line in lines:
        found = entry_of(line)
        if found is not None:
            entries.append(found)
        elif line.strip():
            others += 1
    return entries, others


def entry_of(line: str) -> Entry | None:
    """The page that a line names."""
    url = line.partition("\t")[0] if "\t" in line else line
    found = address(url) if "://" in url[:_SCHEME] else None
    return Entry(found.url) if found else None


def _narrow(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """UTF-16 as UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for piece in pieces:
        yield decoder.decode(piece).encode()
