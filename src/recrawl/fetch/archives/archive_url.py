"""Parses archive URLs as pasted from a browser: a CDX query or a TimeMap."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from recrawl.errors import ConfigError
from recrawl.fetch.archives.cdx_client import CdxDialect, CdxServerFilter, CdxServerQuery
from recrawl.fetch.archives.memento_client import MapForm

_MAP = re.compile(r"(https?://[^?#]+/timemap/)(?:(link|json|cdxj)/)?(\*/)?([a-z]+:/{1,2}.+|[^/]+\.[^/]+.*)", re.DOTALL)
_CDX_PATH = re.compile(r".*(?:/cdx|-index|/cdx/search/cdx)/?")
_WAYBACK_PATH = re.compile(r".*/cdx/search/cdx/?")
_OUR_BUSINESS = frozenset(
    {"output", "page", "pageSize", "showNumPages", "showPagedIndex", "showResumeKey", "resumeKey", "gzip"}
)
_QUERY_FIELDS = {"url": "url", "matchType": "match", "from": "since", "to": "until", "collapse": "collapse"}


@dataclass(frozen=True, slots=True)
class CdxAddress:
    """A CDX query, and its server."""

    endpoint: str
    dialect: CdxDialect
    query: CdxServerQuery


@dataclass(frozen=True, slots=True)
class MapAddress:
    """A page, and the archive with its TimeMap."""

    template: str
    form: MapForm
    url: str


def replay_of(address: CdxAddress) -> str:
    """The replay prefix of a CDX server's archive; empty if the URL does not reveal it.

    >>> replay_of(archive_address("https://web.archive.org/cdx/search/cdx?url=x.org"))
    'https://web.archive.org/web/'
    >>> replay_of(archive_address("http://localhost:8080/coll/cdx?url=x.org"))
    'http://localhost:8080/coll/'
    """
    endpoint = address.endpoint.rstrip("/")
    if address.dialect is CdxDialect.WAYBACK:
        return endpoint.removesuffix("/cdx/search/cdx") + "/web/"
    return endpoint.removesuffix("cdx") if endpoint.endswith("/cdx") else ""


def archive_address(url: str) -> CdxAddress | MapAddress | None:
    """The CDX query or TimeMap in a URL; ``None`` if it is neither.

    Parameters for paging and output format are dropped: the client sets them.

    >>> archive_address("https://web.archive.org/cdx/search/cdx?url=example.org/*&from=2020&output=json").query.since
    '2020'
    >>> archive_address("https://web.archive.org/web/timemap/link/http://example.org/").template
    'https://web.archive.org/web/timemap/{form}/{url}'

    Raises:
        ConfigError: it is an invalid CDX query, or has unknown parameters.
    """
    found = _MAP.fullmatch(url)
    if found is not None:
        form = MapForm(found[2]) if found[2] else MapForm.LINK
        return MapAddress(f"{found[1]}{'{form}/' if found[2] else ''}{{url}}", form, found[4])
    parts = urlsplit(url)
    arguments = parse_qsl(parts.query)
    is_query = _CDX_PATH.fullmatch(parts.path) and any(name == "url" for name, _ in arguments)
    if parts.scheme not in ("http", "https") or not is_query:
        return None
    dialect = CdxDialect.WAYBACK if _WAYBACK_PATH.fullmatch(parts.path) else CdxDialect.PYWB
    return CdxAddress(f"{parts.scheme}://{parts.netloc}{parts.path}", dialect, _query(arguments, dialect))


def _query(arguments: list[tuple[str, str]], dialect: CdxDialect) -> CdxServerQuery:
    fields: dict[str, Any] = {}
    filters: list[CdxServerFilter] = []
    for name, value in arguments:
        if name in _QUERY_FIELDS:
            fields[_QUERY_FIELDS[name]] = value
        elif name == "collapseTime":
            fields["collapse"] = f"timestamp:{value}"
        elif name in ("fl", "fields"):
            fields["fields"] = tuple(value.split(","))
        elif name == "limit" and re.fullmatch(r"\d{1,12}", value):
            fields["limit"] = int(value)
        elif name == "filter":
            filters.append(read_filter(value, dialect))
        elif name not in _OUR_BUSINESS:
            raise ConfigError(
                f"A CDX query with {name}={value} is not understood.",
                "Leave it out, or correct it; see conventions A1.",
            )
    return CdxServerQuery(filters=tuple(filters), **fields)


def read_filter(text: str, dialect: CdxDialect) -> CdxServerFilter:
    """A filter as the dialect writes it (conventions A2).

    >>> read_filter("!statuscode:[45]..", CdxDialect.WAYBACK)
    CdxServerFilter(field='statuscode', pattern='[45]..', literal=False, inverted=True)
    >>> read_filter("=status:200", CdxDialect.PYWB).literal, read_filter("mime:html", CdxDialect.PYWB).pattern
    (True, '.*html.*')
    """
    bare = text.removeprefix("!")
    sign = bare[:1] if dialect is CdxDialect.PYWB and bare[:1] in ("=", "~") else ""
    name, colon, value = bare[len(sign) :].partition(":")
    if not name or not colon:
        raise ConfigError(f"{text!r} is not a filter.", "Write field:expression, for example statuscode:200.")
    if dialect is CdxDialect.PYWB and sign != "=":  # pywb searches the text anywhere, or a prefix
        value = f"{value}.*" if sign else f".*{re.escape(value)}.*"
    return CdxServerFilter(name, value, literal=sign == "=", inverted=text.startswith("!"))
