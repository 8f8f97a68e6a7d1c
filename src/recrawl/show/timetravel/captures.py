"""Finding captures: the nearest one to a moment, its neighbours, and the bytes behind a record that repeats another."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from recrawl.model import Page
from recrawl.show.timetravel.refusal import RefusalError
from recrawl.store.base import Store
from recrawl.store.values import REVISIT, Captures
from recrawl.time import to_timestamp14
from recrawl.urls import address

_AT_ONCE = 32
_FEW = 50
"""Captures of a page up to which all of them are read at once."""
MOST_SEARCHED = 20_000
"""Captures that are looked at for the one that a record repeats."""


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
        """The 14 digits that name it."""
        return to_timestamp14(self.time)

    @property
    def repeats(self) -> bool:
        """Whether its bytes lie in an earlier record."""
        return self.mime == REVISIT


@dataclass(frozen=True, slots=True)
class Found:
    """The capture that answers for a moment, and where it stands among the others. Times in seconds since the epoch."""

    kept: Kept
    first: float
    last: float
    before: float | None
    """The one before it, if there is one."""
    after: float | None


def page_of(store: Store, url: str) -> Page:
    """The page of a URL that somebody asks for."""
    if address(url) is None:
        raise RefusalError(f"{url[:200]!r} is not the address of a web page; write for example http://example.org/.")
    page = store.find(url)
    if page is None:
        raise RefusalError(f"{url[:200]} was never archived here.", 404)
    return page


def nearest(store: Store, url: str, at: float) -> Found:
    """The capture nearest to a moment, of two the earlier; infinity asks for the last one. O(log n)."""
    series = Series(store, page_of(store, url))
    return _placed(series, _nearest(series, at))


def placed(store: Store, kept: Kept) -> Found:
    """A capture, and where it stands among the others of its page."""
    return _placed(Series(store, page_of(store, kept.url)), kept)


def _nearest(series: Series, at: float) -> Kept:
    before = next(series.walk(at, backwards=True), None)
    after = next(series.walk(math.nextafter(at, math.inf)), None) if math.isfinite(at) else None
    sides = [side for side in (before, after) if side is not None]
    if not sides:
        raise RefusalError(f"{series.page.url} was never archived here.", 404)
    found = min(sides, key=lambda side: (abs(at - side.time) if math.isfinite(at) else 0, side.time))
    # An address names a second: of several captures in it, the first.
    return next(series.walk(math.floor(found.time)))


def named(store: Store, url: str, second: float) -> Found | None:
    """The capture that began in a second: the one that 14 digits name; ``None`` if there is none."""
    series = Series(store, page_of(store, url))
    kept = next(series.walk(second), None)
    return _placed(series, kept) if kept is not None and kept.time < second + 1.0 else None


def original(store: Store, kept: Kept) -> Kept | None:
    """The capture whose bytes a record repeats: the last before it with the same digest, else the first after it."""
    return original_among(store, kept, MOST_SEARCHED)[0]


def original_among(store: Store, kept: Kept, most: int) -> tuple[Kept | None, int]:
    """The same among so many captures before it, and as many after it; and how many were looked at."""
    page = Page(kept.page, 0, kept.url, "", 0.0, 0.0)
    looked_at = 0
    for backwards in (True, False):
        for other in islice(_walk(store, page, kept.time, backwards=backwards), most):
            looked_at += 1
            if other.digest == kept.digest and not other.repeats and other.file and other.offset >= 0:
                return other, looked_at
    return None, looked_at


def _placed(series: Series, kept: Kept) -> Found:
    first, last = (next(series.walk(end, backwards=end > 0)) for end in (-math.inf, math.inf))
    second = math.floor(kept.time)  # neighbours are in other seconds: in this one they would have the same address
    before = next(series.walk(math.nextafter(second, -math.inf), backwards=True), None)
    after = next(series.walk(second + 1.0), None)
    return Found(kept, first.time, last.time, before.time if before else None, after.time if after else None)


class Series:
    """The captures of one page by time; failed fetches are none.

    Few of them, as of most pages, are read at once: to ask again for every neighbour costs more than to read them.
    """

    def __init__(self, store: Store, page: Page) -> None:
        self.page = page
        self._store = store
        some = store.captures_between(page.id, -math.inf, math.inf, _FEW + 1)
        self._all = some if len(some) <= _FEW else None
        self._times: list[float] = some.time.tolist()

    def walk(self, start: float, *, backwards: bool = False) -> Iterator[Kept]:
        """The captures from a time on, in one direction. The first costs one look-up at most."""
        if self._all is None:
            return _walk(self._store, self.page, start, backwards=backwards)
        if backwards:
            return _some(self._all, range(bisect_right(self._times, start) - 1, -1, -1), self.page.url)
        return _some(self._all, range(bisect_left(self._times, start), len(self._times)), self.page.url)


def _walk(store: Store, page: Page, start: float, *, backwards: bool) -> Iterator[Kept]:
    """The captures of a page from a time on, in one direction, asked for in pieces that grow."""
    size = 1
    while True:
        since, until = (-math.inf, start) if backwards else (start, math.inf)
        some = store.captures_between(page.id, since, until, size, backwards=backwards)
        yield from _some(some, range(len(some)), page.url)
        if len(some) < size:
            return
        start = math.nextafter(float(some.time[-1]), -math.inf if backwards else math.inf)
        size = min(size * _AT_ONCE, _AT_ONCE**2)


def _some(captures: Captures, rows: range, url: str) -> Iterator[Kept]:
    return (kept_of(captures, row, url) for row in rows if captures.status[row] >= 0)


def kept_of(captures: Captures, row: int, url: str) -> Kept:
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
