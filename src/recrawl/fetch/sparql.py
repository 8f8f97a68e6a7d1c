"""SPARQL endpoints: a query is a source, and its answer a version.

The query goes by GET while it fits into a URL, else as a form by POST (SPARQL 1.1 Protocol, 2.1). Asked whole and by
GET, the answer is the version as it came. Asked in pages, or by POST, the version is put together from the answers:
rows or statements of all pages, sorted unless the query has an ORDER BY. Each answer is archived as it came.

Whatever is not a whole answer is a failed visit and no change: an error status, an error text under 200, results cut
short, an endpoint that says it gave up half-way, more pages than allowed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import quote

from recrawl.errors import ConfigError, InputError
from recrawl.fetch.access import (
    Conversation,
    Options,
    Question,
    Source,
    checked_options,
    failed,
    hop_on_host,
    made,
    whole_number,
)
from recrawl.fetch.request import Request
from recrawl.fetch.sparql_answers import Answer, Rows, Statements
from recrawl.fetch.sparql_query import SparqlQuery, read_query
from recrawl.model import Capture
from recrawl.urls import address

LONGEST_URL = 2_000
"""Characters up to which a query goes by GET; beyond that some servers refuse the URL."""
MAX_PAGES = 100
MAX_HOPS = 3
"""Redirects on the host that are followed for one page: some endpoints moved to https or to another path."""
MAX_BYTES = 64 * 1024 * 1024
"""Bytes of all answers together, decoded."""
_FULL = range(200, 300)
_CAP = re.compile("[0-9]{1,18}")
_NO_CAP = 1 << 60
_GAVE_UP = "S1TAT"
"""Virtuoso's state when it ran out of time and sends what it has, under 200."""


class _Whole(Protocol):
    """What answers are gathered in."""

    accept: str
    media_type: str

    def add(self, body: bytes, mime: str, parse: Callable[..., Any] = ...) -> int: ...

    def body(self) -> bytes: ...


class Sparql:
    """Asks an endpoint a query, whole or in pages."""

    name = "sparql"
    summary = "Ask a SPARQL endpoint a query."
    options = MappingProxyType(
        {
            "query": "the query, or @FILE to read it from a file",
            "page_size": "rows asked for at once, by LIMIT and OFFSET; without it all at once",
            "max_pages": f"pages after which a visit fails, {MAX_PAGES} if not given",
        }
    )

    def source(self, url: str, options: Options) -> Source:
        """The query at the endpoint ``url``. Its page has the query in its URL, or a digest of a long one."""
        found = address(url)
        if found is None:
            raise ConfigError(f"{url!r} is not an http(s) URL.", "Give the URL of the endpoint.")
        kept = {"endpoint": found.url} | checked_options(self, options, required=("query",))
        query = read_query(kept["query"])
        kept["query"] = query.text
        whole_number(self, kept, "max_pages", MAX_PAGES)
        remarks: list[str] = []
        if whole_number(self, kept, "page_size", 0):
            _check_paging(query)
            if not query.ordered:
                remarks.append(
                    "The query has no ORDER BY: an endpoint may then give the pages of its answer in any order, "
                    "and rows can be missing or doubled."
                )
        page = _get_url(kept["endpoint"], query.text)
        return Source(page if len(page) <= LONGEST_URL else _digest_url(kept["endpoint"], query), kept, tuple(remarks))

    def talk(self, question: Question) -> Conversation:
        """Ask for page after page until one is short."""
        options = question.options
        query, endpoint = read_query(options["query"]), options["endpoint"]
        size, most = (whole_number(self, options, *one) for one in (("page_size", 0), ("max_pages", MAX_PAGES)))
        whole = _whole(query, endpoint)
        first: Capture | None = None
        received = asked = 0
        for _ in range(most):
            request = self._request(question, query.page(size, asked) if size else query.text, whole)
            answer = yield request
            for _ in range(MAX_HOPS):
                if not (to := hop_on_host(question.url, answer)):
                    break
                answer = yield replace(request, url=to)
            if answer.status not in _FULL or answer.truncated not in ("", "length"):
                return answer
            first = first or answer
            body = b""
            try:
                body = _body(question, answer, received)
                count = whole.add(body, _mime(answer), question.parse)
            except InputError as unusable:
                return failed(question, answer, f"{unusable}; it begins with {_beginning(body)!r}", first.time)
            received += len(body)
            if not size and answer.url == question.url:
                return answer
            if not size or count == 0 or (isinstance(whole, Rows) and count < min(size, _cap(answer))):
                return made(question, first, answer, whole.body(), whole.media_type)
            asked += min(size, _cap(answer))
        assert first is not None  # noqa: S101 - at least one page is asked for
        return failed(question, answer, f"The answer has more than {most} pages: raise max_pages.", first.time)

    @staticmethod
    def _request(question: Question, text: str, whole: _Whole) -> Request:
        """One request; conditional if it is all there is to ask and its answer is the version."""
        endpoint, said = question.options["endpoint"], question.validators
        url = _get_url(endpoint, text)
        if len(url) > LONGEST_URL:
            return Request(endpoint, accept=whole.accept, body=f"query={quote(text, safe='')}".encode())
        if url != question.url:
            return Request(url, accept=whole.accept)
        return Request(url, said.etag, said.last_modified, accept=whole.accept)


def _check_paging(query: SparqlQuery) -> None:
    if query.form not in ("SELECT", "CONSTRUCT"):
        raise ConfigError(f"{query.form} queries have no pages.", "Leave page_size out.")
    if query.limited or query.has_values:
        raise ConfigError(
            "A query that is asked in pages gets a LIMIT and OFFSET at its end, and this one has some there already."
            if query.limited
            else "A query that is asked in pages gets a LIMIT at its end, where this one has VALUES.",
            "Leave page_size out, or LIMIT and OFFSET." if query.limited else "Put the VALUES inside the braces.",
        )


def _whole(query: SparqlQuery, endpoint: str) -> _Whole:
    match query.form:
        case "SELECT":
            return Rows(ordered=query.ordered, distinct=query.distinct)
        case "ASK":
            return Answer()
        case _:
            return Statements(endpoint)


def _get_url(endpoint: str, text: str) -> str:
    mark = "&" if "?" in endpoint else "?"
    found = address(f"{endpoint}{mark}query={quote(text, safe='')}")
    return found.url if found else endpoint


def _digest_url(endpoint: str, query: SparqlQuery) -> str:
    mark, named = "&" if "?" in endpoint else "?", hashlib.sha256(query.text.encode()).hexdigest()[:32]
    return f"{endpoint}{mark}query-sha256={named}{'&rows=ordered' if query.ordered else ''}"


def _body(question: Question, answer: Capture, received: int) -> bytes:
    """The decoded body of an answer that is all there.

    Raises:
        InputError: it is not.
    """
    if answer.truncated:
        raise InputError("the answer is longer than fetch.max_size allows")
    if answer.header("x-sql-state") == _GAVE_UP:
        raise InputError("the endpoint ran out of time and sent part of the answer")
    body = question.body_of(answer)
    if received + len(body) > MAX_BYTES:
        raise InputError(f"the pages are longer than {MAX_BYTES} bytes together")
    return body


def _beginning(body: bytes) -> str:
    """The first words of an answer: often an error in words."""
    return " ".join(body[:200].decode("utf-8", "replace").split())


def _mime(answer: Capture) -> str:
    return answer.header("content-type").partition(";")[0].strip().lower()


def _cap(answer: Capture) -> int:
    """Rows that the endpoint gives at once, if it says so; else very many."""
    said = answer.header("x-sparql-maxrows")
    return int(said) or _NO_CAP if _CAP.fullmatch(said) else _NO_CAP
