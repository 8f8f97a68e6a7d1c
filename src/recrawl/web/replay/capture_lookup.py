"""Finding captures: the nearest one to a moment and its neighbours, and TimeMaps of all."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from recrawl.formats.timemap import PAGE_SIZE, ArchiveUris, MapPage, TimeMap, TimeMapMemento, to_cdxj, to_json, to_link
from recrawl.model import Page
from recrawl.store.archived_copies import Kept, some_of, walk
from recrawl.store.base import CaptureIndex, PageTable, Store
from recrawl.time import to_timestamp14
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


def page_of(store: PageTable, url: str) -> Page:
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


MEDIA_TYPES = {"link": "application/link-format", "json": "application/json", "cdxj": "application/cdxj+ors"}
"""Of a TimeMap, by its form."""


@dataclass(frozen=True, slots=True)
class TimeMapPage:
    """A page of a TimeMap, as it is sent."""

    text: str
    media_type: str
    count: int
    """Captures of the whole map."""


class TimeMapQuery(NamedTuple):
    """The requested part of a TimeMap."""

    url: str
    form: str
    number: int = 1
    """The page, from 1."""
    size: int = PAGE_SIZE
    """Mementos in a page, at most."""


def time_map(store: CaptureIndex, uris: ArchiveUris, query: TimeMapQuery) -> TimeMapPage:
    """A page of the map of a URL. O(number · size)."""
    url, form, number, size = query
    if form not in MEDIA_TYPES:
        raise RefusalError(f"There is no TimeMap in the format {form[:40]!r}. Formats: link, json, cdxj.", 404)
    page = page_of(store, url)
    ends = store.capture_ends(page.id)
    if ends is None:
        raise RefusalError(f"{page.url} was never archived here.", 404)
    cuts, more = _cuts(store, page, number, size)
    if not 1 <= number <= len(cuts):
        raise RefusalError(f"The TimeMap of {page.url} has no page {number}.", 404)
    names = [_page_uri(uris, page.url, form, at) for at in range(1, len(cuts) + 1 + more)]
    links = [MapPage(names[at], cut[0], cut[-1]) for at, cut in enumerate(cuts)]
    around = links[max(number - 2, 0) : number - 1]
    if more:
        around.append(MapPage(names[-1], math.nextafter(cuts[-1][-1], math.inf), ends.last))
    mementos = tuple(
        TimeMapMemento(uris.memento(page.url, to_timestamp14(time)), page.url, time) for time in cuts[number - 1]
    )
    whole = TimeMap(
        mementos, original=page.url, timegate=uris.timegate(page.url), self_uri=names[number - 1], pages=tuple(around)
    )
    return TimeMapPage(_written(whole, uris, form), MEDIA_TYPES[form], ends.count)


def _cuts(store: CaptureIndex, page: Page, number: int, size: int) -> tuple[list[list[float]], bool]:
    """The times on the first pages of a TimeMap, each second once, up to the requested page; whether more follow."""
    cuts: list[list[float]] = []
    start = -math.inf
    while len(cuts) <= number:
        some = store.captures_between(page.id, start, math.inf, size)
        if not len(some):
            return cuts, False
        shown = some.time[some.status >= 0].tolist()
        times = [time for at, time in enumerate(shown) if at == 0 or math.floor(time) > math.floor(shown[at - 1])]
        if times:
            cuts.append(times)
        start = math.floor(float(some.time[-1])) + 1.0
    return cuts[:number], True


def _page_uri(uris: ArchiveUris, url: str, form: str, number: int) -> str:
    return uris.timemap(url if number == 1 else f"{number}/{url}", form)


def _written(timemap: TimeMap, uris: ArchiveUris, form: str) -> str:
    if form == "link":
        return "".join(to_link(timemap))
    others = uris.timemaps(timemap.original)
    if form == "json":
        return to_json(timemap, others)
    return "".join(to_cdxj(timemap, others))
