"""TimeMaps of a page, in pages (conventions M3 and M4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from recrawl.formats.memento.timemap import MapPage, TimeMap, TimeMapMemento
from recrawl.formats.memento.timemap_writer import PAGE_SIZE, ArchiveUris, to_cdxj, to_json, to_link
from recrawl.model import Page
from recrawl.store.base import Store
from recrawl.time import to_timestamp14
from recrawl.web.replay.capture_lookup import page_of
from recrawl.web.replay.replay_urls import RefusalError

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


def time_map(store: Store, uris: ArchiveUris, query: TimeMapQuery) -> TimeMapPage:
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


def _cuts(store: Store, page: Page, number: int, size: int) -> tuple[list[list[float]], bool]:
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
