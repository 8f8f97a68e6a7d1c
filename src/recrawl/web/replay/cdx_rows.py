"""Index lines from the store: read in chunks, filtered, collapsed, limited (conventions A1 to A3).

Rules of this file:
 1. Parameters are applied in this order: time range, filters, collapse, offset, limit; as by other servers.
 2. A response has at most ``MOST_LINES`` lines, and at most ``MOST_LOOKED_AT`` captures are scanned for it. If either
 limit cuts it, it says where to continue.
 3. Patterns are matched by RE2, in linear time: no query can keep the server busy with one.

Lines of an index as text (conventions A4): CDX, JSON in two dialects, CDXJ, and links.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, NamedTuple

from recrawl.errors import require
from recrawl.formats.memento.timemap_writer import ArchiveUris
from recrawl.formats.warc.warc_records import base32
from recrawl.store.archived_copies import MOST_SEARCHED, Kept, original_among
from recrawl.store.base import Store
from recrawl.store.store_values import REVISIT, CaptureColumns, KeyedCaptures
from recrawl.time import to_http_date, to_timestamp14
from recrawl.web.replay.cdx_request import (
    BLOCK_LINES,
    FIELDS,
    ORIGINS,
    CdxCollapse,
    CdxRequest,
    FieldFilter,
    Wanted,
    resume_key,
)
from recrawl.web.replay.replay_urls import RefusalError

MOST_LOOKED_AT = 1_000_000
_PIECE = 5_000
_FIRST_PIECE = 200
"""Captures that are read at once; few at first, since most answers are short."""
_SHA1 = 20


@dataclass(frozen=True, slots=True)
class IndexLine:
    """One line of an index."""

    fields: dict[str, str]
    key: str
    time: float
    page: int
    raw_digest: bytes
    file: str

    def value(self, name: str) -> str:
        """A field as text; ``-`` if nothing is known."""
        return self.fields.get(name, "-")


@dataclass(frozen=True, slots=True)
class CdxResult:
    """Lines, and where to go on if there are more."""

    lines: list[IndexLine]
    resume: str = ""


def answer(store: Store, query: CdxRequest) -> CdxResult:
    """The lines of a query."""
    if query.closest is not None:
        lines = list(_closest(store, query, query.closest))
        return CdxResult(_resolved(store, lines) if query.resolve else lines)
    if query.page is not None:
        size = query.page_size * BLOCK_LINES
        piece = store.captures_by_key(query.keys, size, query.page * size)
        lines = _collapsed(_sifted(_lines(piece), query.filters), query.collapses)
        return CdxResult(_resolved(store, lines) if query.resolve else lines)
    if query.last is not None:
        turned = replace(query, keys=replace(query.keys, backwards=not query.keys.backwards), last=None)
        found = answer(store, replace(turned, limit=query.last, collapses=_turned(query.collapses)))
        return CdxResult(found.lines[::-1])
    lines, place = _walked(store, query)
    return CdxResult(_resolved(store, lines) if query.resolve else lines, resume_key(*place) if place else "")


def pages_of(store: Store, query: CdxRequest) -> int:
    """How many pages the whole answer has."""
    return math.ceil(store.count_by_key(query.keys) / (query.page_size * BLOCK_LINES))


def _walked(store: Store, query: CdxRequest) -> tuple[list[IndexLine], tuple[str, float] | None]:
    """Lines up to the limit, and behind which key and time more may follow."""
    plain = not query.filters and not query.collapses
    wanted = query.limit + 1 if plain else math.inf
    kept: list[IndexLine] = []
    skip, looked_at, keys = query.offset if plain else 0, 0, query.keys
    size = int(min(_FIRST_PIECE, wanted))
    while looked_at < MOST_LOOKED_AT:
        piece = store.captures_by_key(keys, size, skip)
        skip, looked_at = 0, looked_at + len(piece)
        kept += _sifted(_lines(piece), query.filters)
        collapsed = _collapsed(kept, query.collapses)
        begin = 0 if plain else query.offset
        # The last line may still grow together with what follows, so one more has to be there.
        if len(collapsed) > begin + query.limit:
            shown = collapsed[begin : begin + query.limit]
            return shown, (shown[-1].key, shown[-1].time)
        if len(piece) < size:
            return collapsed[begin:], None
        keys = replace(keys, beyond=(piece.key[-1], float(piece.captures.time[-1])))
        kept, size = collapsed, _PIECE
    return kept[0 if plain else query.offset :], keys.beyond


def _closest(store: Store, query: CdxRequest, at: float) -> Iterator[IndexLine]:
    """Captures of one page by their distance from a moment, of two the earlier."""
    page = store.find(query.exact)
    if page is None:
        return
    keys = query.keys
    count = min(query.limit + query.offset, _PIECE) if not query.filters else _PIECE
    sides = (
        store.captures_between(page.id, max(keys.since, -math.inf), min(at, keys.until), count, backwards=True),
        store.captures_between(page.id, max(keys.since, math.nextafter(at, math.inf)), keys.until, count),
    )
    lines = [line for side in sides for line in _lines(_keyed(side, page.key, page.url))]
    lines.sort(key=lambda line: (abs(line.time - at), line.time))
    lines = _collapsed(_sifted(lines, query.filters), query.collapses)
    yield from lines[query.offset : query.offset + query.limit]


def _keyed(captures: CaptureColumns, key: str, url: str) -> KeyedCaptures:
    return KeyedCaptures([key] * len(captures), [url] * len(captures), captures)


def _lines(piece: KeyedCaptures) -> list[IndexLine]:
    """Captures as lines; failed fetches have no record and are left out."""
    found = piece.captures
    columns = zip(
        piece.key,
        piece.url,
        found.page.tolist(),
        found.time.tolist(),
        found.status.tolist(),
        found.mime,
        found.digest,
        found.warc_file,
        found.warc_offset.tolist(),
        found.warc_length.tolist(),
        strict=True,
    )
    return [_line(*row) for row in columns if row[4] >= 0]


def _line(  # noqa: PLR0913, PLR0917 - the columns of a capture
    key: str,
    url: str,
    page: int,
    time: float,
    status: int,
    mime: str,
    digest: bytes,
    file: str,
    offset: int,
    length: int,
) -> IndexLine:
    fields = {"urlkey": key, "timestamp": to_timestamp14(time), "original": _unspaced(url)}
    if mime:
        fields["mimetype"] = _unspaced(mime.partition(";")[0].strip()) or "-"
    if status:
        fields["statuscode"] = str(status)
    if digest:
        fields["digest"] = base32(digest) if len(digest) == _SHA1 else _unspaced(digest.decode("ascii", "replace"))
    for name, number in (("length", length), ("offset", offset)):
        if number >= 0:
            fields[name] = str(number)
    if file:
        fields["filename"] = _unspaced(PurePath(file).name)
    return IndexLine(fields, key, time, page, digest, file)


def _unspaced(text: str) -> str:
    """White space would end a field."""
    if text.isprintable() and " " not in text:
        return text
    return "".join(sign if sign.isprintable() and sign != " " else f"%{ord(sign):02X}" for sign in text)


def _sifted(lines: list[IndexLine], filters: tuple[FieldFilter, ...]) -> list[IndexLine]:
    """The lines that fulfil all conditions."""
    for one in filters:
        values = [line.value(one.field) for line in lines]
        if one.how == "equal":
            fits = [value == one.pattern for value in values]
        else:
            fits = _matched(values, f"^(?:{one.pattern})$" if one.how == "regex" else f"^(?:{one.pattern})")
        lines = [line for line, fit in zip(lines, fits, strict=True) if fit != one.negated]
    return lines


def _matched(values: list[str], pattern: str) -> list[bool]:
    pa: Any = require("pyarrow", "columns")
    compute: Any = require("pyarrow.compute", "columns")
    try:
        found: list[bool] = compute.match_substring_regex(pa.array(values, pa.string()), pattern).to_pylist()
    except pa.ArrowInvalid as error:
        raise RefusalError(f"The filter is not a regular expression: {str(error)[:200]}") from error
    return found


def _turned(collapses: tuple[CdxCollapse, ...]) -> tuple[CdxCollapse, ...]:
    """The same from the other end."""
    return tuple(one._replace(last=not one.last) for one in collapses)


def _collapsed(lines: list[IndexLine], collapses: tuple[CdxCollapse, ...]) -> list[IndexLine]:
    """Of neighbours that agree in a field, the first or the last."""
    for one in collapses:
        kept: list[IndexLine] = []
        before = None
        for line in lines:
            mark = line.value(one.field)[: one.length]
            if mark != before:
                kept.append(line)
            elif one.last:
                kept[-1] = line
            before = mark
        lines = kept
    return lines


def _resolved(store: Store, lines: list[IndexLine]) -> list[IndexLine]:
    """Add the location of the repeated bytes to each revisit.

    Those of one page with one digest are looked up once, and rule 2 limits the scanned captures of the whole response.
    """
    known: dict[tuple[int, bytes], dict[str, str]] = {}
    found, left = [], MOST_LOOKED_AT
    for line in lines:
        origins = dict.fromkeys(ORIGINS, "-")
        if line.value("mimetype") == REVISIT:
            what = line.page, line.raw_digest
            if what not in known:
                known[what], looked_at = _origins(store, line, left)
                left -= looked_at
                if left <= 0:
                    raise RefusalError("Resolving this many revisits takes too long. Request fewer lines.")
            origins |= known[what]
        found.append(replace(line, fields={**line.fields, **origins}))
    return found


def _origins(store: Store, line: IndexLine, most: int) -> tuple[dict[str, str], int]:
    """The location of the bytes of a revisit, if known, and the number of scanned captures."""
    revisit = Kept(line.page, "", line.time, 0, REVISIT, line.raw_digest, "", -1)
    kept, looked_at = original_among(store, revisit, min(MOST_SEARCHED, most))
    if kept is None:
        return {}, looked_at
    [there] = _lines(_keyed(store.captures_between(kept.page, kept.time, kept.time, 1), line.key, ""))
    return {name: there.value(name.removeprefix("orig.")) for name in ORIGINS}, looked_at


_SHORT = {"original": "url", "mimetype": "mime", "statuscode": "status"}
"""As pywb calls them, in objects."""


class CdxBody(NamedTuple):
    """A body and its media type."""

    text: str
    media_type: str


def written(found: CdxResult, query: CdxRequest, uris: ArchiveUris) -> CdxBody:
    """The response in the requested format."""
    resume = found.resume if query.show_resume_key else ""
    match query.output:
        case "json":
            return CdxBody(_table(found.lines, query, resume), "application/json")
        case "ndjson":
            lines = (json.dumps(_object(line, query)) + "\n" for line in found.lines)
            return CdxBody("".join(lines), "application/x-ndjson")
        case "cdxj":
            lines = (f"{line.key} {line.value('timestamp')} {json.dumps(_rest(line, query))}\n" for line in found.lines)
            return CdxBody("".join(lines), "text/x-cdxj")
        case "link":
            return CdxBody(_links(found.lines, uris), "application/link-format")
        case "text":
            fields = _fields(query)
            lines = (" ".join(line.value(name) for name, _ in fields) + "\n" for line in found.lines)
            return CdxBody("".join(lines) + (f"\n{resume}\n" if resume else ""), "text/plain; charset=utf-8")


def _fields(query: CdxRequest) -> tuple[Wanted, ...]:
    if query.fields is not None:
        return query.fields
    return tuple((name, name) for name in (*FIELDS, *(ORIGINS if query.resolve else ())))


def _table(lines: list[IndexLine], query: CdxRequest, resume: str) -> str:
    """One array of arrays with a row of names before it, as the Wayback Machine answers."""
    fields = _fields(query)
    rows = [[line.value(name) for name, _ in fields] for line in lines]
    if not rows:
        return "[]\n"
    rows.insert(0, [shown for _, shown in fields])
    if resume:
        rows += [[], [resume]]
    return "[" + ",\n".join(json.dumps(row) for row in rows) + "]\n"


def _object(line: IndexLine, query: CdxRequest) -> dict[str, str]:
    """A line as pywb writes one: what is not known is left out."""
    fields = query.fields or tuple((name, _SHORT.get(name, name)) for name, _ in _fields(query))
    return {shown: line.fields[name] for name, shown in fields if name in line.fields}


def _rest(line: IndexLine, query: CdxRequest) -> dict[str, str]:
    return {name: value for name, value in _object(line, query).items() if name not in ("urlkey", "timestamp")}


def _links(lines: list[IndexLine], uris: ArchiveUris) -> str:
    """Mementos in link-format."""
    return ",\n".join(
        f'<{uris.memento(line.value("original"), line.value("timestamp"))}>; rel="memento"; '
        f'datetime="{to_http_date(line.time)}"'
        for line in lines
    ) + ("\n" if lines else "")
