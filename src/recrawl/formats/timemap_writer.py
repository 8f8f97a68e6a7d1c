"""Writes TimeMaps: link-format, JSON and CDXJ (conventions M3 and M4), whole or in pages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlsplit

from recrawl.errors import InputError
from recrawl.formats.cdx.cdx_lines import archived
from recrawl.formats.timemap import MapPage, TimeMap, TimeMapMemento
from recrawl.time import to_http_date, to_iso, to_timestamp14

PAGE_SIZE = 5_000
"""Mementos in one page."""
CONTEXT = "http://oduwsdl.github.io/contexts/memento"
"""What CDXJ maps name as the meaning of their keys."""
_UNWRITABLE = re.compile(r"[\x00-\x20<>\"\x7f]")


@dataclass(frozen=True, slots=True)
class ArchiveUris:
    """Where an archive shows what it holds, in the form of pywb and the Wayback Machine (conventions M1 to M3).

    >>> uris = ArchiveUris.below("http://localhost:8080/mine")
    >>> uris.memento("http://a.org/", "20240101000000"), uris.timegate("http://a.org/")
    ('http://localhost:8080/mine/20240101000000/http://a.org/', 'http://localhost:8080/mine/http://a.org/')
    >>> uris.timemap("http://a.org/", "link")
    'http://localhost:8080/mine/timemap/link/http://a.org/'
    """

    base: str
    """The URL of the collection, with a slash at its end."""

    @classmethod
    def below(cls, base: str) -> ArchiveUris:
        """The URIs below the URL of a collection.

        Raises:
            InputError: it is no http(s) URL, or has a query, behind which nothing could follow.
        """
        try:
            parts = urlsplit(base)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not _UNWRITABLE.search(base)
        except ValueError:
            usable = False
        if not usable or "?" in base or "#" in base:
            raise InputError(
                f"{base!r} is not where an archive can be",
                "Give the address of the collection, such as http://localhost:8080/my-archive/.",
            )
        return cls(base if base.endswith("/") else f"{base}/")

    def memento(self, url: str, timestamp: str) -> str:
        """Where one capture is shown."""
        return f"{self.base}{timestamp}/{url}"

    def timegate(self, url: str) -> str:
        """Where one asks for a URL as it was at some time."""
        return self.base + url

    def timemap(self, url: str, form: str) -> str:
        """Where the list of captures is, in the form ``link``, ``json`` or ``cdxj``."""
        return f"{self.base}timemap/{form}/{url}"

    def timemaps(self, url: str) -> dict[str, str]:
        """All three forms, by the names that maps themselves have for them."""
        return {f"{form}_format": self.timemap(url, form) for form in ("link", "json", "cdxj")}

    def map_of(self, url: str, batches: Iterable[Any], form: str) -> TimeMap:
        """The captures of a URL as the map that the archive would give in a form."""
        mementos = tuple(mementos_of(batches, self.memento))
        return TimeMap(mementos, original=url, timegate=self.timegate(url), self_uri=self.timemap(url, form))


def mementos_of(batches: Iterable[Any], uri_of: Callable[[str, str], str]) -> Iterator[TimeMapMemento]:
    """Captures as mementos: ``uri_of(url, timestamp)`` says where the archive shows one. Failed fetches are none.

    ``batches`` are Arrow record batches of ``captures.schema()``.
    """
    for batch in archived(batches):
        for url, time in zip(batch.column("url").to_pylist(), batch.column("time").to_pylist(), strict=True):
            yield TimeMapMemento(uri_of(url, to_timestamp14(time)), url, time)


def paged(whole: TimeMap, page_uri: Callable[[int], str], size: int = PAGE_SIZE) -> tuple[TimeMap, ...]:
    """The map cut into pages of at most ``size`` mementos, by time.

    The first page keeps the map's own URI; the others have ``page_uri(2)``, ``page_uri(3)`` and so on. Each names
    its neighbours, so whoever enters anywhere finds all of them.
    """
    mementos = _by_time(whole)
    cuts = [mementos[start : start + size] for start in range(0, len(mementos), size)] or [()]
    uris = [whole.self_uri, *(page_uri(number) for number in range(2, len(cuts) + 1))]
    links = [MapPage(uri, cut[0].time, cut[-1].time) for uri, cut in zip(uris, cuts, strict=True) if cut]
    return tuple(
        replace(
            whole,
            mementos=cut,
            pages=whole.pages + tuple(links[max(at - 1, 0) : at] + links[at + 1 : at + 2]),
            self_uri=uris[at],
        )
        for at, cut in enumerate(cuts)
    )


def to_link(timemap: TimeMap) -> Iterator[str]:
    """The map in link-format (``application/link-format``), link by link; ``from`` and ``until`` stand on itself."""
    mementos = _by_time(timemap)
    span = _span(mementos[0].time, mementos[-1].time) if mementos else ""
    head = [
        f'<{_uri(timemap.original)}>; rel="original"' if timemap.original else "",
        f'<{_uri(timemap.self_uri)}>; rel="self"; type="application/link-format"{span}' if timemap.self_uri else "",
        f'<{_uri(timemap.timegate)}>; rel="timegate"' if timemap.timegate else "",
        *(
            f'<{_uri(page.uri)}>; rel="timemap"; type="application/link-format"{_span(page.start, page.end)}'
            for page in timemap.pages
        ),
    ]
    between = ""
    for line in head:
        if line:
            yield between + line
            between = ",\n"
    for one, relation in zip(mementos, _relations(timemap, mementos), strict=True):
        yield f'{between}<{_uri(one.uri)}>; rel="{relation}"; datetime="{to_http_date(one.time)}"'
        between = ",\n"
    yield "\n"


def to_json(timemap: TimeMap, others: dict[str, str] | None = None) -> str:
    """The map as JSON, as MemGator writes it. ``others`` are its URIs by form (``link_format``, ``cdxj_format``)."""
    mementos = [{"datetime": to_iso(one.time), "uri": one.uri} for one in _by_time(timemap)]
    listed: dict[str, Any] = {"list": mementos}
    if mementos:
        listed |= {"first": mementos[0], "last": mementos[-1]}
    whole: dict[str, Any] = {"original_uri": timemap.original, "self": timemap.self_uri, "mementos": listed}
    if timemap.pages:
        whole["timemap_index"] = _index(timemap)
    whole["timemap_uri"] = others or {"json_format": timemap.self_uri}
    whole["timegate_uri"] = timemap.timegate
    return json.dumps(whole, indent=2) + "\n"


def to_cdxj(timemap: TimeMap, others: dict[str, str] | None = None) -> Iterator[str]:
    """The map as CDXJ, line by line. ``others`` are its URIs by form, as for :func:`to_json`."""
    meta: dict[str, Any] = {"original_uri": timemap.original}
    if others:
        meta["timemap_uri"] = others
    if timemap.timegate:
        meta["timegate_uri"] = timemap.timegate
    if timemap.pages:
        meta["timemap_index"] = _index(timemap)
    yield f"!context {json.dumps([CONTEXT])}\n"
    yield f"!id {json.dumps({'uri': timemap.self_uri})}\n"
    yield '!keys ["memento_datetime_YYYYMMDDhhmmss"]\n'
    yield f"!meta {json.dumps(meta)}\n"
    mementos = _by_time(timemap)
    for one, relation in zip(mementos, _relations(timemap, mementos), strict=True):
        fields = {"uri": one.uri, "rel": relation, "datetime": to_http_date(one.time)}
        yield f"{to_timestamp14(one.time)} {json.dumps(fields)}\n"


def _relations(timemap: TimeMap, mementos: tuple[TimeMapMemento, ...]) -> Iterator[str]:
    """What each memento is: the first or last one of all, if no other page of the map begins earlier or ends later."""
    for at, one in enumerate(mementos):
        first = at == 0 and not any(page.start < one.time for page in timemap.pages)
        last = at == len(mementos) - 1 and not any(page.end > one.time for page in timemap.pages)
        yield "first " * first + "last " * last + "memento"


def _by_time(timemap: TimeMap) -> tuple[TimeMapMemento, ...]:
    return tuple(sorted(timemap.mementos, key=lambda one: one.time))


def _index(timemap: TimeMap) -> list[dict[str, str]]:
    return [
        {"uri": page.uri}
        | {name: to_iso(time) for name, time in (("from", page.start), ("until", page.end)) if time == time}  # noqa: PLR0124 - not NaN
        for page in timemap.pages
    ]


def _span(start: float, end: float) -> str:
    given = (("from", start), ("until", end))
    return "".join(f'; {name}="{to_http_date(time)}"' for name, time in given if time == time)  # noqa: PLR0124 - not NaN


def _uri(uri: str) -> str:
    """The URI with what would end it early percent-encoded."""
    return _UNWRITABLE.sub(lambda found: quote(found[0]), uri)
