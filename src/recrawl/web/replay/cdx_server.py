"""The CDX server: a query, the lines of the index that match it, and their form (conventions A1 to A4)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import quote_plus, unquote_plus

from recrawl.errors import require
from recrawl.formats.timemap import ArchiveUris
from recrawl.formats.warc.warc_records import base32
from recrawl.store.archived_copies import MOST_SEARCHED, Kept, original_among
from recrawl.store.base import CaptureIndex, Store
from recrawl.store.store_values import REVISIT, CaptureColumns, KeyedCaptures, KeyRange
from recrawl.time import to_http_date, to_timestamp14
from recrawl.urls import address
from recrawl.web.replay.replay_port import RefusalError, begin_of, end_of, moment_of

FIELDS = (
    "urlkey",
    "timestamp",
    "original",
    "mimetype",
    "statuscode",
    "digest",
    "redirect",
    "robotflags",
    "length",
    "offset",
    "filename",
)
"""Of a line, in the order and under the names of CDX-11 (conventions X1)."""
ORIGINS = ("orig.length", "orig.offset", "orig.filename")
"""Whether to resolve revisits to the location of their bytes."""
_ALIASES = {"key": "urlkey", "url": "original", "mime": "mimetype", "status": "statuscode", "file": "filename"}
_OUTPUTS = ("text", "json", "ndjson", "cdxj", "link")
_MATCHES = ("exact", "prefix", "host", "domain")
_FILTER = re.compile(r"(!?)([=~]?)([A-Za-z]+):(.*)", re.DOTALL)
_PLACE = re.compile(r"(\S+) (-?\d{1,12}(?:\.\d{1,9})?)", re.ASCII)
_LONGEST = 500
"""Characters of a pattern."""
_MOST_CONDITIONS = 20
"""Maximum number of filters and collapses of a query: each costs time for every scanned capture."""
MOST_LINES = 100_000
"""In one answer."""
BLOCK_LINES = 3_000
"""Lines of a result page per ``pageSize``, as if the index were ZipNum (conventions X4)."""

Output: TypeAlias = Literal["text", "json", "ndjson", "cdxj", "link"]
How: TypeAlias = Literal["regex", "equal", "begins"]
Wanted: TypeAlias = tuple[str, str]
"""A field by our name and by the name in the query."""


class FieldFilter(NamedTuple):
    """A condition on one field."""

    field: str
    how: How
    """``regex``: matches the whole value (Wayback Machine). ``equal`` and ``begins`` (a pattern at the start of the
    value) are pywb's ``=`` and ``~``."""
    pattern: str
    negated: bool


class CdxCollapse(NamedTuple):
    """Of neighbours that agree in a field, or in its first characters, one stays."""

    field: str
    length: int | None
    last: bool = False


@dataclass(frozen=True, slots=True)
class CdxRequest:
    """A query that makes sense."""

    keys: KeyRange
    exact: str = ""
    """The URL, if captures of one page are requested."""
    closest: float | None = None
    """Sort by distance from this moment."""
    embedded: bool = False
    """Only the capture that is shown inside a page captured at that moment."""
    limit: int = MOST_LINES
    offset: int = 0
    last: int | None = None
    """Only the last N."""
    filters: tuple[FieldFilter, ...] = ()
    collapses: tuple[CdxCollapse, ...] = ()
    fields: tuple[Wanted, ...] | None = None
    output: Output = "text"
    resolve: bool = False
    """Include the location of the bytes of revisits."""
    show_resume_key: bool = False
    page: int | None = None
    page_size: int = 5
    show_pages: bool = False


def query_of(pairs: Sequence[tuple[str, str]]) -> CdxRequest:
    r"""The query from URL parameters; unknown parameters are ignored, as by other servers.

    >>> query_of([("url", "example.org/a/*")]).keys
    KeyRange(start='org,example)/a/', end='org,example)/a/\x7f', since=-inf, until=inf, backwards=False, beyond=None)
    """
    words = dict(pairs)
    if sum(name == "filter" or name.startswith("collapse") for name, _ in pairs) > _MOST_CONDITIONS:
        raise RefusalError(
            f"More than {_MOST_CONDITIONS} filters and collapses at once; a filter may name several values."
        )
    keys, exact = _keys(words)
    sort = _one_of(words.get("sort", "default"), "sort", ("default", "reverse", "closest"))
    limit = _number(words, "limit", MOST_LINES, least=-MOST_LINES)
    page = _number(words, "page", -1, least=0) if "page" in words else None
    closest = moment_of(words.get("closest") or "x") if sort == "closest" else None
    if closest is not None and not exact:
        raise RefusalError("sort=closest needs one url, not a prefix, host or domain.")
    span = KeyRange(
        keys.start,
        keys.end,
        begin_of(words["from"]) if words.get("from") else keys.since,
        end_of(words["to"]) + 1.0 - 1e-6 if words.get("to") else keys.until,
        backwards=sort == "reverse",
        beyond=_resumed(words["resumeKey"]) if words.get("resumeKey") else None,
    )
    return CdxRequest(
        span,
        exact,
        closest,
        embedded=_said(words, "embedded"),
        limit=min(abs(limit), MOST_LINES) if limit else MOST_LINES,
        offset=_number(words, "offset", 0),
        last=-limit if limit < 0 else None,
        filters=tuple(_filter(text) for name, text in pairs if name == "filter"),
        collapses=tuple(_collapses(pairs)),
        fields=_fields(words.get("fl") or words.get("fields") or ""),
        output=_output(words.get("output", "text")),
        resolve=_said(words, "resolveRevisits"),
        show_resume_key=_said(words, "showResumeKey"),
        page=page,
        page_size=max(_number(words, "pageSize", 5, least=1, most=MOST_LINES // BLOCK_LINES), 1),
        show_pages=_said(words, "showNumPages"),
    )


def resume_key(key: str, time: float) -> str:
    """The word by which an answer is continued behind this capture.

    >>> _resumed(unquote_plus(resume_key("org,example)/", 12.5)))
    ('org,example)/', 12.5)
    """
    return quote_plus(f"{key} {time:.6f}")


def _resumed(text: str) -> tuple[str, float]:
    """The capture that a resume key names; it may have stayed encoded (conventions A3)."""
    found = _PLACE.fullmatch(text if " " in text else unquote_plus(text))
    if found is None:
        raise RefusalError("resumeKey was not issued by this server.")
    return found[1], float(found[2])


def _keys(words: Mapping[str, str]) -> tuple[KeyRange, str]:
    """The range of keys, and the URL if it is one page."""
    if key := words.get("urlkey", ""):
        return KeyRange(key, key), ""
    url = words.get("url", "").strip()
    if not url:
        raise RefusalError("Give a url, such as url=example.org/ or url=example.org/news/*.")
    match = words.get("matchType") or ""
    if not match and url.startswith("*."):
        match, url = "domain", url[2:]
    elif not match and url.endswith("*"):
        match, url = "prefix", url[:-1]
    match = _one_of(match or "exact", "matchType", _MATCHES)
    found = address(url if re.match(r"[a-z]+://", url, re.IGNORECASE) else f"http://{url}")
    if found is None:
        raise RefusalError(f"{url[:200]!r} is not a URL of a web page.")
    host = found.key.partition(")")[0]
    if match == "exact":
        return KeyRange(found.key, found.key), found.url
    if match == "domain":
        return KeyRange(f"{host})", f"{host},\x7f"), ""
    start = f"{host})/" if match == "host" else _prefix(found.key, url)
    return KeyRange(start, f"{start}\x7f"), ""


def _prefix(key: str, url: str) -> str:
    """Keys have no slash at the end; a prefix that was written with one means what lies below."""
    return f"{key}/" if url.endswith("/") and not key.endswith("/") else key


def _one_of(word: str, name: str, choices: Sequence[str]) -> str:
    if word not in choices:
        raise RefusalError(f"{name}={word[:40]} is unknown. Choices: {', '.join(choices)}.")
    return word


def _output(word: str) -> Output:
    _one_of(word, "output", _OUTPUTS)
    return next(known for known in ("text", "json", "ndjson", "cdxj", "link") if known == word)


def _number(words: Mapping[str, str], name: str, default: int, *, least: int = 0, most: int = 10**12) -> int:
    text = words.get(name, "")
    if not text:
        return default
    if not re.fullmatch(r"-?\d{1,15}", text, re.ASCII) or int(text) < least:
        raise RefusalError(f"{name}={text[:40]} is not a number of at least {least}.")
    return min(int(text), most)


def _said(words: Mapping[str, str], name: str) -> bool:
    return _one_of(words.get(name, "false").lower(), name, ("true", "false", "1", "0", "")) in ("true", "1")


def field_of(name: str) -> str:
    """A field under our name for it; archives have two for some (conventions A2)."""
    field = _ALIASES.get(name, name)
    if field not in FIELDS:
        raise RefusalError(f"There is no field {name[:40]!r}; there are {', '.join(FIELDS)}.")
    return field


def _fields(text: str) -> tuple[Wanted, ...] | None:
    names = [name.strip() for name in text.split(",") if name.strip()]
    return tuple((name if name in ORIGINS else field_of(name), name) for name in names) or None


def _filter(text: str) -> FieldFilter:
    parts = _FILTER.fullmatch(text)
    if parts is None or len(text) > _LONGEST:
        raise RefusalError(
            f"filter={text[:80]} is not a filter. Example: filter=statuscode:200 or filter=!mimetype:image/.*"
        )
    how: How = "equal" if parts[2] == "=" else "begins" if parts[2] == "~" else "regex"
    return FieldFilter(field_of(parts[3]), how, parts[4], bool(parts[1]))


def _collapses(pairs: Sequence[tuple[str, str]]) -> list[CdxCollapse]:
    found = []
    for name, text in pairs:
        if name not in ("collapse", "collapseToFirst", "collapseToLast") or not text:
            continue
        field, colon, length = text.partition(":")
        if colon and not re.fullmatch(r"\d{1,4}", length, re.ASCII):
            raise RefusalError(f"{name}={text[:80]} is not valid. Example: {name}=timestamp:8.")
        found.append(CdxCollapse(field_of(field), int(length) if colon else None, name == "collapseToLast"))
    return found


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


def pages_of(store: CaptureIndex, query: CdxRequest) -> int:
    """How many pages the whole answer has."""
    return math.ceil(store.count_by_key(query.keys) / (query.page_size * BLOCK_LINES))


def _walked(store: CaptureIndex, query: CdxRequest) -> tuple[list[IndexLine], tuple[str, float] | None]:
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


def _closest(store: CaptureIndex, query: CdxRequest, at: float) -> Iterator[IndexLine]:
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
            fields = _line_fields(query)
            lines = (" ".join(line.value(name) for name, _ in fields) + "\n" for line in found.lines)
            return CdxBody("".join(lines) + (f"\n{resume}\n" if resume else ""), "text/plain; charset=utf-8")


def _line_fields(query: CdxRequest) -> tuple[Wanted, ...]:
    if query.fields is not None:
        return query.fields
    return tuple((name, name) for name in (*FIELDS, *(ORIGINS if query.resolve else ())))


def _table(lines: list[IndexLine], query: CdxRequest, resume: str) -> str:
    """One array of arrays with a row of names before it, as the Wayback Machine answers."""
    fields = _line_fields(query)
    rows = [[line.value(name) for name, _ in fields] for line in lines]
    if not rows:
        return "[]\n"
    rows.insert(0, [shown for _, shown in fields])
    if resume:
        rows += [[], [resume]]
    return "[" + ",\n".join(json.dumps(row) for row in rows) + "]\n"


def _object(line: IndexLine, query: CdxRequest) -> dict[str, str]:
    """A line as pywb writes one: what is not known is left out."""
    fields = query.fields or tuple((name, _SHORT.get(name, name)) for name, _ in _line_fields(query))
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
