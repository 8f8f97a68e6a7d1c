"""TimeMaps of a page, in pages (conventions M3 and M4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from recrawl.formats.timemap_values import MapPage, Memento, TimeMap
from recrawl.formats.timemap_write import PAGE_SIZE, ArchiveUris, to_cdxj, to_json, to_link
from recrawl.model import Page
from recrawl.show.timetravel.captures import page_of
from recrawl.show.timetravel.refusal import RefusalError
from recrawl.store.base import Store
from recrawl.time import to_timestamp14

MEDIA_TYPES = {"link": "application/link-format", "json": "application/json", "cdxj": "application/cdxj+ors"}
"""Of a TimeMap, by its form."""


@dataclass(frozen=True, slots=True)
class MapAnswer:
    """A page of a TimeMap, as it is sent."""

    text: str
    media_type: str
    count: int
    """Captures of the whole map."""


class MapQuery(NamedTuple):
    """Which part of a map is asked for."""

    url: str
    form: str
    number: int = 1
    """The page, from 1."""
    size: int = PAGE_SIZE
    """Mementos in a page, at most."""


def time_map(store: Store, uris: ArchiveUris, query: MapQuery) -> MapAnswer:
    """A page of the map of a URL. O(number · size)."""
    url, form, number, size = query
    if form not in MEDIA_TYPES:
        raise RefusalError(f"There is no TimeMap in the form {form[:40]!r}; ask for link, json or cdxj.", 404)
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
    mementos = tuple(Memento(uris.memento(page.url, to_timestamp14(time)), page.url, time) for time in cuts[number - 1])
    whole = TimeMap(
        mementos, original=page.url, timegate=uris.timegate(page.url), self_uri=names[number - 1], pages=tuple(around)
    )
    return MapAnswer(_written(whole, uris, form), MEDIA_TYPES[form], ends.count)


def _cuts(store: Store, page: Page, number: int, size: int) -> tuple[list[list[float]], bool]:
    """The times on the first pages of a map, each second once, up to the page asked for; whether more follow."""
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
