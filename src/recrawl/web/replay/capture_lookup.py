"""Finding captures: the nearest one to a moment, and its neighbours."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from recrawl.model import Page
from recrawl.store.archived_copies import Kept, some_of, walk
from recrawl.store.base import Store
from recrawl.urls import address
from recrawl.web.replay.replay_urls import RefusalError

_FEW = 50
"""Captures of a page up to which all of them are read at once."""


@dataclass(frozen=True, slots=True)
class FoundCapture:
    """The capture that answers for a moment, and where it stands among the others. Times in seconds since the epoch."""

    kept: Kept
    first: float
    last: float
    before: float | None
    """The one before it, if there is one."""
    after: float | None


def page_of(store: Store, url: str) -> Page:
    """The page of a requested URL."""
    if address(url) is None:
        raise RefusalError(f"{url[:200]!r} is not a URL of a web page. Example: http://example.org/.")
    page = store.find(url)
    if page is None:
        raise RefusalError(f"{url[:200]} was never archived here.", 404)
    return page


def nearest(store: Store, url: str, at: float) -> FoundCapture:
    """The capture nearest to a time, of two the earlier; infinity for the last one. O(log n)."""
    series = CaptureSeries(store, page_of(store, url))
    return _placed(series, _nearest(series, at))


def placed(store: Store, kept: Kept) -> FoundCapture:
    """A capture, and where it stands among the others of its page."""
    return _placed(CaptureSeries(store, page_of(store, kept.url)), kept)


def _nearest(series: CaptureSeries, at: float) -> Kept:
    before = next(series.walk(at, backwards=True), None)
    after = next(series.walk(math.nextafter(at, math.inf)), None) if math.isfinite(at) else None
    sides = [side for side in (before, after) if side is not None]
    if not sides:
        raise RefusalError(f"{series.page.url} was never archived here.", 404)
    found = min(sides, key=lambda side: (abs(at - side.time) if math.isfinite(at) else 0, side.time))
    # An address names a second: of several captures in it, the first.
    return next(series.walk(math.floor(found.time)))


def named(store: Store, url: str, second: float) -> FoundCapture | None:
    """The capture that started in a second, as named by 14 digits; ``None`` if there is none."""
    series = CaptureSeries(store, page_of(store, url))
    kept = next(series.walk(second), None)
    return _placed(series, kept) if kept is not None and kept.time < second + 1.0 else None


def _placed(series: CaptureSeries, kept: Kept) -> FoundCapture:
    first, last = (next(series.walk(end, backwards=end > 0)) for end in (-math.inf, math.inf))
    second = math.floor(kept.time)  # neighbours are in other seconds: in this one they would have the same address
    before = next(series.walk(math.nextafter(second, -math.inf), backwards=True), None)
    after = next(series.walk(second + 1.0), None)
    return FoundCapture(kept, first.time, last.time, before.time if before else None, after.time if after else None)


class CaptureSeries:
    """The captures of one page by time, without failed fetches.

    If there are few, as for most pages, all are read at once: one query per neighbour costs more.
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
            return walk(self._store, self.page, start, backwards=backwards)
        if backwards:
            return some_of(self._all, range(bisect_right(self._times, start) - 1, -1, -1), self.page.url)
        return some_of(self._all, range(bisect_left(self._times, start), len(self._times)), self.page.url)
