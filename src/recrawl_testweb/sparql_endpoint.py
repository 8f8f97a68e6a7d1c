"""A SPARQL endpoint over the things of a host: what its RDF pages say now, and when an answer really changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import numpy as np

from recrawl.errors import MissingExtraError, require
from recrawl.model import FloatArray, IntArray
from recrawl.simulate.virtual_web import VirtualWeb
from recrawl_testweb.conditional_requests import best_type

if TYPE_CHECKING:
    import pyoxigraph

PATH = "/sparql"
"""Where the endpoint of a host is."""
_ELSEWHERE = re.compile(r"\bservice\b|\\u", re.IGNORECASE)
"""A query that would have another endpoint asked, or could hide that it does."""


class SparqlResult(NamedTuple):
    """What the endpoint says."""

    status: int
    media_type: str
    text: str


class _ResultFormat(NamedTuple):
    """One way to write an answer."""

    media_type: str
    format: str
    """As pyoxigraph names it."""


_ROWS = (
    _ResultFormat("application/sparql-results+json", "JSON"),
    _ResultFormat("application/sparql-results+xml", "XML"),
)
_STATEMENTS = (_ResultFormat("application/n-triples", "N_TRIPLES"), _ResultFormat("text/turtle", "TURTLE"))


def query_of(path: str) -> str | None:
    """The query that a path with arguments asks an endpoint; ``None`` if it asks none.

    >>> query_of("/sparql?query=ASK%20%7B%7D"), query_of("/news")
    ('ASK {}', None)
    """
    parts = urlsplit(path)
    return parse_qs(parts.query).get("query", [None])[0] if parts.path == PATH else None


class SparqlEndpoint:
    """Answers queries about some pages. Only asked by GET; nothing can be updated, no other endpoint is asked."""

    def __init__(self, web: VirtualWeb, pages: IntArray, describe: Callable[[int, float], str]) -> None:
        """``describe`` gives the statements of a page at a time, as N-Triples."""
        self._web = web
        self._pages = pages
        self._describe = describe
        self._store: tuple[bytes, pyoxigraph.Store] | None = None

    def answer(self, query: str, accept: str, now: float) -> SparqlResult:
        """What the pages say at ``now``. O(statements) after a change of any page."""
        try:
            oxigraph = require("pyoxigraph", "crawl")
        except MissingExtraError as missing:
            return SparqlResult(501, "text/plain", f"{missing}\n")
        if _ELSEWHERE.search(query):
            return SparqlResult(400, "text/plain", "This endpoint asks no other one.\n")
        try:
            found: Any = self._data(now).query(query)
        except SyntaxError as wrong:
            return SparqlResult(400, "text/plain", f"The query cannot be read: {wrong}\n")
        rows = not isinstance(found, oxigraph.QueryTriples)
        form = best_type(_ROWS if rows else _STATEMENTS, accept)
        formats = oxigraph.QueryResultsFormat if rows else oxigraph.RdfFormat
        return SparqlResult(200, form.media_type, found.serialize(format=getattr(formats, form.format)).decode())

    def changes(self, query: str, until: float) -> FloatArray:
        """Exact times at which the answer became another, whatever the order of its rows. One query a change."""
        changes = self._web.changes.take(self._pages).times
        moments = np.unique(changes[changes <= until])
        said = [self._content(query, when) for when in (self._web.start, *moments.tolist())]
        return moments[np.array([after != before for before, after in pairwise(said)], np.bool_)]

    def _content(self, query: str, now: float) -> list[str]:
        """What is in the answer, in an order of its own."""
        found: Any = self._data(now).query(query)
        if isinstance(found, require("pyoxigraph", "crawl").QueryBoolean):
            return [str(bool(found))]
        return sorted(str(row) for row in found)

    def _data(self, now: float) -> pyoxigraph.Store:
        state = self._web.version(self._pages, now).tobytes() + self._web.alive(self._pages, now).tobytes()
        if self._store is None or self._store[0] != state:
            oxigraph = require("pyoxigraph", "crawl")
            store = oxigraph.Store()
            for page in self._pages[self._web.alive(self._pages, now)].tolist():
                store.load(self._describe(page, now).encode(), format=oxigraph.RdfFormat.N_TRIPLES)
            self._store = (state, store)
        return self._store[1]
