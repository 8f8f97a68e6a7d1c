"""Link headers: where an archive shows a resource at other times (RFC 7089, conventions M1 and M2)."""

from __future__ import annotations

import math

from recrawl.formats.timemap_write import ArchiveUris
from recrawl.show.timetravel.captures import Found
from recrawl.time import to_http_date, to_timestamp14


def link_header(uris: ArchiveUris, found: Found) -> str:
    """Original, TimeGate, TimeMaps, and the first, last, previous and next memento beside the one that is shown."""
    url = found.kept.url
    links = [
        f'<{url}>; rel="original"',
        f'<{uris.timegate(url)}>; rel="timegate"',
        f'<{uris.timemap(url, "link")}>; rel="timemap"; type="application/link-format"',
        f'<{uris.timemap(url, "json")}>; rel="timemap"; type="application/json"',
        f'<{uris.timemap(url, "cdxj")}>; rel="timemap"; type="application/cdxj+ors"',
    ]
    relations: dict[int, list[str]] = {}
    for name, time in (("first", found.first), ("last", found.last), ("prev", found.before), ("next", found.after)):
        if time is not None:
            relations.setdefault(math.floor(time), []).append(name)
    relations.setdefault(math.floor(found.kept.time), [])
    for second in sorted(relations):
        rel = " ".join([*relations[second], "memento"])
        links.append(f'<{uris.memento(url, to_timestamp14(second))}>; rel="{rel}"; datetime="{to_http_date(second)}"')
    return ", ".join(links)
