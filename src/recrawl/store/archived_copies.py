"""Archived copies of a page: the place of their bytes, and whether these exist.

An index is only a claim: its line can name any place of any file. A copy has bytes if the record at that place is one
of this page and second, and so is the record whose body it repeats, if it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from recrawl.model import BoolArray, Capture, FloatArray, IntArray, Page
from recrawl.store.base import Store
from recrawl.store.store_values import REVISIT, CaptureColumns
from recrawl.time import to_timestamp14
from recrawl.urls import surt

MOST_SEARCHED = 20_000
"""Captures that are searched for the one that a record repeats."""
ReadHead = Callable[[str, int], Capture | None]
"""Reads the record at an offset of an archive file, without its body; ``None`` if it cannot be read."""
_AT_ONCE = 32
_PAGES_AT_ONCE = 1_000
_SAME_TIME = 1.0
"""Seconds by which the time in an index, which may be whole seconds, can differ from that of the record."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One capture."""

    page: int
    url: str
    time: float
    status: int
    mime: str
    digest: bytes
    file: str
    offset: int

    @property
    def timestamp(self) -> str:
        """The 14-digit timestamp."""
        return to_timestamp14(self.time)

    @property
    def repeats(self) -> bool:
        """Whether its bytes lie in an earlier record."""
        return self.mime == REVISIT


def is_readable(head: ReadHead, store: Store, kept: Kept) -> bool:
    """Whether the bytes of a capture are here: its record, and that of the body if it repeats another.

    Reads headers.
    """
    return _is_there(head, kept) and (
        not kept.repeats or ((source := original(store, kept)) is not None and _is_there(head, source))
    )


def is_record_of(capture: Capture, kept: Kept) -> bool:
    """Whether a record is the one that the index means: an index can name any place of any file."""
    return surt(capture.url) == surt(kept.url) and abs(capture.time - kept.time) <= _SAME_TIME


def _is_there(head: ReadHead, kept: Kept) -> bool:
    """Whether there is a record of this page where the index says."""
    found = head(kept.file, kept.offset) if kept.file and kept.offset >= 0 else None
    return found is not None and is_record_of(found, kept)


def readable_copies(head: ReadHead, store: Store, page: IntArray, since: FloatArray, until: FloatArray) -> BoolArray:
    """Whether the bytes of the copy shown of each page are here: of its last capture in a span, both ends included.

    Pages ascend. The time of an observation names the capture that it made. An observation without a capture, as a 304
    is in some archives, shows the capture before it of the same version: then the span is from the first observation of
    the version to this one. O(captures of these pages) and one header per page, about 0.1 ms.
    """
    readable = np.zeros(len(page), np.bool_)
    for start in range(0, len(page), _PAGES_AT_ONCE):
        rows = slice(start, start + _PAGES_AT_ONCE)
        urls = store.urls(page[rows])
        listed = store.capture_columns(page[rows])
        places = [
            _last_in(listed, *one)
            for one in zip(page[rows].tolist(), since[rows].tolist(), until[rows].tolist(), strict=True)
        ]
        copies = [(row, kept_of(listed, place, urls[row])) for row, place in enumerate(places) if place is not None]
        for row, kept in sorted(copies, key=lambda copy: (copy[1].file, copy[1].offset)):
            readable[start + row] = is_readable(head, store, kept)
    return readable


def _last_in(listed: CaptureColumns, page: int, since: float, until: float) -> int | None:
    """The row of the last capture of a page in a span; failed fetches do not count."""
    first, end = np.searchsorted(listed.page, [page, page + 1]).tolist()
    low = first + int(np.searchsorted(listed.time[first:end], since))
    high = first + int(np.searchsorted(listed.time[first:end], until, "right"))
    return next((row for row in range(high - 1, low - 1, -1) if listed.status[row] >= 0), None)


def original(store: Store, kept: Kept) -> Kept | None:
    """The capture whose bytes a record repeats: the last before it with the same digest, else the first after it."""
    return original_among(store, kept, MOST_SEARCHED)[0]


def original_among(store: Store, kept: Kept, most: int) -> tuple[Kept | None, int]:
    """The same among ``most`` captures before it, and as many after it; and how many were searched."""
    page = Page(kept.page, 0, kept.url, "", 0.0, 0.0)
    looked_at = 0
    for backwards in (True, False):
        for other in islice(walk(store, page, kept.time, backwards=backwards), most):
            looked_at += 1
            if other.digest == kept.digest and not other.repeats and other.file and other.offset >= 0:
                return other, looked_at
    return None, looked_at


def walk(store: Store, page: Page, start: float, *, backwards: bool) -> Iterator[Kept]:
    """The captures of a page from a time on, in one direction, read in growing chunks."""
    size = 1
    while True:
        since, until = (-math.inf, start) if backwards else (start, math.inf)
        some = store.captures_between(page.id, since, until, size, backwards=backwards)
        yield from some_of(some, range(len(some)), page.url)
        if len(some) < size:
            return
        start = math.nextafter(float(some.time[-1]), -math.inf if backwards else math.inf)
        size = min(size * _AT_ONCE, _AT_ONCE**2)


def some_of(captures: CaptureColumns, rows: range, url: str) -> Iterator[Kept]:
    """The captures at these rows, in this order; failed fetches are left out."""
    return (kept_of(captures, row, url) for row in rows if captures.status[row] >= 0)


def kept_of(captures: CaptureColumns, row: int, url: str) -> Kept:
    """One row of a table of captures."""
    return Kept(
        int(captures.page[row]),
        url,
        float(captures.time[row]),
        int(captures.status[row]),
        captures.mime[row],
        captures.digest[row],
        captures.warc_file[row],
        int(captures.warc_offset[row]),
    )
