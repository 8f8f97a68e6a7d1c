"""Lines of an index as text (conventions A4): CDX, JSON in two dialects, CDXJ, and links."""

from __future__ import annotations

import json
from typing import NamedTuple

from recrawl.formats.timemap_write import ArchiveUris
from recrawl.show.timetravel.cdx_query import FIELDS, ORIGINS, CdxQuery, Wanted
from recrawl.show.timetravel.cdx_rows import CdxAnswer, Line
from recrawl.time import to_http_date

_SHORT = {"original": "url", "mimetype": "mime", "statuscode": "status"}
"""As pywb calls them, in objects."""


class Written(NamedTuple):
    """A body and its media type."""

    text: str
    media_type: str


def written(found: CdxAnswer, query: CdxQuery, uris: ArchiveUris) -> Written:
    """The answer in the form that was asked for."""
    resume = found.resume if query.show_resume_key else ""
    match query.output:
        case "json":
            return Written(_table(found.lines, query, resume), "application/json")
        case "ndjson":
            lines = (json.dumps(_object(line, query)) + "\n" for line in found.lines)
            return Written("".join(lines), "application/x-ndjson")
        case "cdxj":
            lines = (f"{line.key} {line.value('timestamp')} {json.dumps(_rest(line, query))}\n" for line in found.lines)
            return Written("".join(lines), "text/x-cdxj")
        case "link":
            return Written(_links(found.lines, uris), "application/link-format")
        case "text":
            fields = _fields(query)
            lines = (" ".join(line.value(name) for name, _ in fields) + "\n" for line in found.lines)
            return Written("".join(lines) + (f"\n{resume}\n" if resume else ""), "text/plain; charset=utf-8")


def _fields(query: CdxQuery) -> tuple[Wanted, ...]:
    if query.fields is not None:
        return query.fields
    return tuple((name, name) for name in (*FIELDS, *(ORIGINS if query.resolve else ())))


def _table(lines: list[Line], query: CdxQuery, resume: str) -> str:
    """One array of arrays with a row of names before it, as the Wayback Machine answers."""
    fields = _fields(query)
    rows = [[line.value(name) for name, _ in fields] for line in lines]
    if not rows:
        return "[]\n"
    rows.insert(0, [shown for _, shown in fields])
    if resume:
        rows += [[], [resume]]
    return "[" + ",\n".join(json.dumps(row) for row in rows) + "]\n"


def _object(line: Line, query: CdxQuery) -> dict[str, str]:
    """A line as pywb writes one: what is not known is left out."""
    fields = query.fields or tuple((name, _SHORT.get(name, name)) for name, _ in _fields(query))
    return {shown: line.fields[name] for name, shown in fields if name in line.fields}


def _rest(line: Line, query: CdxQuery) -> dict[str, str]:
    return {name: value for name, value in _object(line, query).items() if name not in ("urlkey", "timestamp")}


def _links(lines: list[Line], uris: ArchiveUris) -> str:
    """Mementos in link-format."""
    return ",\n".join(
        f'<{uris.memento(line.value("original"), line.value("timestamp"))}>; rel="memento"; '
        f'datetime="{to_http_date(line.time)}"'
        for line in lines
    ) + ("\n" if lines else "")
