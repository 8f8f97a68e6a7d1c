"""CDX queries (conventions A1 to A4): parameters, validated and translated into key ranges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import quote_plus, unquote_plus

from recrawl.store.store_values import KeyRange
from recrawl.urls import address
from recrawl.web.replay.replay_urls import RefusalError, begin_of, end_of, moment_of

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
