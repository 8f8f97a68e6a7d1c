"""What a CDX server is asked (conventions A1 to A4): the words of a query, checked, and made into ranges of keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import quote_plus, unquote_plus

from recrawl.show.timetravel.moments import begin_of, end_of, moment_of
from recrawl.show.timetravel.refusal import RefusalError
from recrawl.store.values import KeyRange
from recrawl.urls import address

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
"""Where the bytes lie that a revisit repeats, if that is asked for."""
_ALIASES = {"key": "urlkey", "url": "original", "mime": "mimetype", "status": "statuscode", "file": "filename"}
_OUTPUTS = ("text", "json", "ndjson", "cdxj", "link")
_MATCHES = ("exact", "prefix", "host", "domain")
_FILTER = re.compile(r"(!?)([=~]?)([A-Za-z]+):(.*)", re.DOTALL)
_PLACE = re.compile(r"(\S+) (-?\d{1,12}(?:\.\d{1,9})?)", re.ASCII)
_LONGEST = 500
"""Characters of a pattern."""
_MOST_CONDITIONS = 20
"""Filters and collapses of a query: each costs time for every capture that is looked at."""
MOST_LINES = 100_000
"""In one answer."""
BLOCK_LINES = 3_000
"""A page of an answer is so many lines times ``pageSize``, as if the index were ZipNum (conventions X4)."""

Output: TypeAlias = Literal["text", "json", "ndjson", "cdxj", "link"]
How: TypeAlias = Literal["regex", "equal", "begins"]
Wanted: TypeAlias = tuple[str, str]
"""A field as we call it, and as whoever asks does."""


class Filter(NamedTuple):
    """A condition on one field."""

    field: str
    how: How
    """``regex``: the whole value fits (Wayback Machine). ``equal`` and ``begins`` (a pattern that the value begins
    with) are pywb's ``=`` and ``~``."""
    pattern: str
    negated: bool


class Collapse(NamedTuple):
    """Of neighbours that agree in a field, or in its first characters, one stays."""

    field: str
    length: int | None
    last: bool = False


@dataclass(frozen=True, slots=True)
class CdxQuery:
    """A query that makes sense."""

    keys: KeyRange
    exact: str = ""
    """The URL, if captures of one page are asked for."""
    closest: float | None = None
    """Sort by distance from this moment."""
    limit: int = MOST_LINES
    offset: int = 0
    last: int | None = None
    """Only the last so many."""
    filters: tuple[Filter, ...] = ()
    collapses: tuple[Collapse, ...] = ()
    fields: tuple[Wanted, ...] | None = None
    output: Output = "text"
    resolve: bool = False
    """Tell where the bytes of revisits lie."""
    show_resume_key: bool = False
    page: int | None = None
    page_size: int = 5
    show_pages: bool = False


def query_of(pairs: Sequence[tuple[str, str]]) -> CdxQuery:
    r"""The query in the words of an address; a word that nobody knows is passed over, as other servers do.

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
    return CdxQuery(
        span,
        exact,
        closest,
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
        raise RefusalError("resumeKey is none that this server gave.")
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
        raise RefusalError(f"{url[:200]!r} is not the address of a web page.")
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
        raise RefusalError(f"{name}={word[:40]} is unknown; it is one of {', '.join(choices)}.")
    return word


def _output(word: str) -> Output:
    _one_of(word, "output", _OUTPUTS)
    return next(known for known in ("text", "json", "ndjson", "cdxj", "link") if known == word)


def _number(words: Mapping[str, str], name: str, default: int, *, least: int = 0, most: int = 10**12) -> int:
    text = words.get(name, "")
    if not text:
        return default
    if not re.fullmatch(r"-?\d{1,15}", text, re.ASCII) or int(text) < least:
        raise RefusalError(f"{name}={text[:40]} is no number from {least} on.")
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


def _filter(text: str) -> Filter:
    parts = _FILTER.fullmatch(text)
    if parts is None or len(text) > _LONGEST:
        raise RefusalError(
            f"filter={text[:80]} is none; write for example filter=statuscode:200 or filter=!mimetype:image/.*"
        )
    how: How = "equal" if parts[2] == "=" else "begins" if parts[2] == "~" else "regex"
    return Filter(field_of(parts[3]), how, parts[4], bool(parts[1]))


def _collapses(pairs: Sequence[tuple[str, str]]) -> list[Collapse]:
    found = []
    for name, text in pairs:
        if name not in ("collapse", "collapseToFirst", "collapseToLast") or not text:
            continue
        field, colon, length = text.partition(":")
        if colon and not re.fullmatch(r"\d{1,4}", length, re.ASCII):
            raise RefusalError(f"{name}={text[:80]} is none; write for example {name}=timestamp:8.")
        found.append(Collapse(field_of(field), int(length) if colon else None, name == "collapseToLast"))
    return found
