"""SPARQL endpoints: a query is a source, and its result a version.

The query is sent by GET while it fits into a URL, else as a form by POST (SPARQL 1.1 Protocol, 2.1). If it is sent
whole and by GET, the response is the version as received. In pages, or by POST, the version is assembled from the
responses: the rows or statements of all pages, sorted unless the query has an ORDER BY. Each response is archived as
received.

Redirects are followed, also to other hosts, and the same query is sent there: see
:mod:`recrawl.fetch.access.access_methods`.

An incomplete result is a failed visit and no change: an error status, an error text under 200, truncated results, an
endpoint that gave up half-way, more pages than allowed. Blank nodes are renamed per page, because ``_:b0`` of one
response is not that of another.

The query is parsed only as far as paging needs: its form, and what follows its last brace. Endpoints have extensions,
and only the endpoint can tell whether a query is valid.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import quote

from recrawl.errors import ConfigError, InputError, require
from recrawl.fetch.access.access_method import (
    REDIRECTS_OPTION,
    AccessRequest,
    AccessSource,
    Conversation,
    Options,
    check_redirects,
    checked_options,
    failed,
    in_this_process,
    made,
    next_hop,
    whole_number,
)
from recrawl.fetch.request import FetchRequest
from recrawl.model import Capture
from recrawl.model.nested_data import reason_not_to_parse
from recrawl.urls import address

_TOKEN = re.compile(
    r"""
      (?P<skip> \#[^\r\n]* | <[^<>"{}|^`\\\s]*>
        | \"\"\"(?:[^\\]|\\.)*?\"\"\" | '''(?:[^\\]|\\.)*?'''
        | "(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*'
        | [?$]\w+ | [\w.-]*:[\w.:%\\-]* | @[\w-]+ | [\d.]+(?:[eE][+-]?\d+)? )
    | (?P<open> [{(\[] ) | (?P<close> [})\]] ) | (?P<word> [A-Za-z_]\w* )
    """,
    re.VERBOSE | re.DOTALL,
)
_FORMS = ("SELECT", "CONSTRUCT", "DESCRIBE", "ASK")
_UPDATES = frozenset({"INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH"})


@dataclass(frozen=True, slots=True)
class SparqlQuery:
    """A query and its outermost keywords."""

    text: str
    form: str
    """``SELECT``, ``CONSTRUCT``, ``DESCRIBE`` or ``ASK``."""
    distinct: bool = False
    ordered: bool = False
    """Whether it has an ORDER BY, so that the order of rows is content."""
    limited: bool = False
    """Whether it has a LIMIT or OFFSET."""
    has_values: bool = False
    """Whether VALUES follow its last brace, where nothing else may follow."""

    def page(self, size: int, offset: int) -> str:
        r"""The same query for some rows of its result.

        >>> read_query("SELECT ?s { ?s ?p ?o } ORDER BY ?s # by name").page(100, 200)
        'SELECT ?s { ?s ?p ?o } ORDER BY ?s # by name\nLIMIT 100 OFFSET 200'
        """
        return f"{self.text}\nLIMIT {size} OFFSET {offset}"


def read_query(text: str) -> SparqlQuery:
    """Parse a query.

    >>> read_query("PREFIX order: <http://x/> SELECT DISTINCT * { ?s order:by 'ORDER BY' }").ordered
    False

    Raises:
        ConfigError: it is none, or it would change the data.
    """
    words, depth = [], 0
    for token in _TOKEN.finditer(text):
        depth += (token["open"] is not None) - (token["close"] is not None)
        if token["word"] and depth == 0:
            words.append(token["word"].upper())
    form = next((word for word in words if word in _FORMS or word in _UPDATES), "")
    if form not in _FORMS:
        raise ConfigError(
            f"This is not a query but an update ({form})." if form else "This is not a SPARQL query.",
            "Write a SELECT, CONSTRUCT, DESCRIBE or ASK query; give a file as query=@FILE.",
        )
    after = words[words.index(form) + 1 :]
    return SparqlQuery(
        text.strip(),
        form,
        distinct=after[:1] == ["DISTINCT"],
        ordered=any(pair == ("ORDER", "BY") for pair in pairwise(after)),
        limited="LIMIT" in after or "OFFSET" in after,
        has_values="VALUES" in after,
    )


ROWS, TRIPLES = "application/sparql-results+json", "application/n-triples"
"""Media types of assembled versions."""


class SelectPages:
    """The rows of a SELECT query."""

    accept = f"{ROWS}, application/sparql-results+xml;q=0.8"
    media_type = ROWS

    def __init__(self, *, ordered: bool, distinct: bool) -> None:
        self._ordered = ordered
        self._distinct = distinct
        self._variables: list[str] = []
        self._rows: list[str] = []
        self._pages = 0

    def add(self, body: bytes, mime: str, parse: Callable[..., Any] = in_this_process) -> int:
        """Add one response; return its number of rows.

        Raises:
            InputError: it is invalid, or repeats rows of an earlier one although the query asks for distinct ones:
                then the endpoint has no stable order for pages.
        """
        names, rows = parse(read_rows, body, mime, self._pages)
        if self._pages and self._distinct and not set(rows).isdisjoint(self._rows):
            raise InputError("rows of one page come up again on another: give the query an ORDER BY")
        self._variables = self._variables or names
        self._rows += rows
        self._pages += 1
        return len(rows)

    def body(self) -> bytes:
        """All rows in the JSON format of the W3C, sorted unless their order is content."""
        rows = ",\n".join(self._rows if self._ordered else sorted(self._rows))
        head = json.dumps({"vars": self._variables}, separators=(",", ":"))
        return f'{{"head":{head},"results":{{"bindings":[\n{rows}\n]}}}}\n'.encode()


class AskResult:
    """The boolean of an ASK query."""

    accept = SelectPages.accept
    media_type = ROWS

    def __init__(self) -> None:
        self._answer = False

    def add(self, body: bytes, mime: str, parse: Callable[..., Any] = in_this_process) -> int:
        """Add the response.

        Raises:
            InputError: it is invalid.
        """
        self._answer = parse(read_yes_or_no, body, mime)
        return 1

    def body(self) -> bytes:
        """The result in the JSON format of the W3C."""
        return json.dumps({"head": {}, "boolean": self._answer}).encode()


class GraphPages:
    """The statements of a CONSTRUCT or DESCRIBE query."""

    accept = f"{TRIPLES}, text/turtle;q=0.9, application/rdf+xml;q=0.8"
    media_type = TRIPLES

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._lines: set[str] = set()
        self._pages = 0

    def add(self, body: bytes, mime: str, parse: Callable[..., Any] = in_this_process) -> int:
        """Add one response; return its number of statements.

        Raises:
            InputError: it is no RDF.
        """
        lines = parse(read_statements, body, mime, self._endpoint, self._pages)
        self._lines.update(lines)
        self._pages += 1
        return len(lines)

    def body(self) -> bytes:
        """Every statement once, sorted, as N-Triples."""
        return "".join(f"{line}\n" for line in sorted(self._lines)).encode()


def read_rows(body: bytes, mime: str, page: int) -> tuple[list[str], list[str]]:
    """The variables and the rows of one response, each row as JSON.

    Raises:
        InputError: it is invalid.
    """
    oxigraph, found = require("pyoxigraph", "crawl"), _results(body, mime)
    if isinstance(found, oxigraph.QueryBoolean):
        raise InputError("the endpoint answered yes or no, not with rows")
    try:
        names = [variable.value for variable in found.variables]
        return names, [_row(row, names, page, oxigraph) for row in found]
    except SyntaxError as error:
        raise InputError(f"the rows cannot be read to their end ({error})") from error


def read_yes_or_no(body: bytes, mime: str) -> bool:
    """The boolean of one response.

    Raises:
        InputError: it is invalid.
    """
    found = _results(body, mime)
    if not isinstance(found, require("pyoxigraph", "crawl").QueryBoolean):
        raise InputError("the endpoint answered with rows, not with yes or no")
    return bool(found)


def read_statements(body: bytes, mime: str, endpoint: str, page: int) -> list[str]:
    """The statements of one response, each as a line of N-Triples.

    Raises:
        InputError: it is no RDF.
    """
    oxigraph = require("pyoxigraph", "crawl")
    form = oxigraph.RdfFormat.from_media_type(mime) if mime else None
    if form is None:
        raise InputError(f"the endpoint answered with {mime or 'something without a type'}, not with RDF")
    _check(body, mime)
    lines: list[str] = []
    try:
        for quad in oxigraph.parse(body, format=form, base_iri=endpoint):
            subject, thing = (_renamed(term, page, oxigraph) for term in (quad.subject, quad.object))
            lines.append(f"{subject} {quad.predicate} {thing} .")
    except (SyntaxError, ValueError) as error:
        raise InputError(f"the statements cannot be read to their end ({error})") from error
    return lines


def _results(body: bytes, mime: str) -> Any:  # noqa: ANN401 - solutions or a boolean of pyoxigraph
    oxigraph = require("pyoxigraph", "crawl")
    form = oxigraph.QueryResultsFormat.from_media_type(mime) if mime else None
    if form is None:
        raise InputError(f"the endpoint answered with {mime or 'something without a type'}, not with results")
    _check(body, mime)
    try:
        return oxigraph.parse_query_results(body, format=form)
    except (SyntaxError, ValueError) as error:
        raise InputError(f"the results cannot be read ({error})") from error


def _check(body: bytes, mime: str) -> None:
    """Refuse input that would crash the parser. The parser reads UTF-8 only."""
    if why := reason_not_to_parse(body.decode("utf-8", "replace"), mime):
        raise InputError(f"the answer is not read: {why}")


def _row(row: Any, names: list[str], page: int, oxigraph: Any) -> str:  # noqa: ANN401 - of pyoxigraph
    bound = {name: _term(row[name], page, oxigraph) for name in names if row[name] is not None}
    return json.dumps(bound, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _term(term: Any, page: int, oxigraph: Any) -> dict[str, Any]:  # noqa: ANN401 - of pyoxigraph
    if isinstance(term, oxigraph.NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, oxigraph.BlankNode):
        return {"type": "bnode", "value": _renamed(term, page, oxigraph).value}
    if isinstance(term, oxigraph.Triple):
        parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
        return {"type": "triple", "value": {name: _term(part, page, oxigraph) for name, part in parts.items()}}
    said = {"type": "literal", "value": term.value}
    if term.language:
        return {**said, "xml:lang": term.language}
    return said if term.datatype.value == _STRING else {**said, "datatype": term.datatype.value}


_STRING = "http://www.w3.org/2001/XMLSchema#string"


def _renamed(term: Any, page: int, oxigraph: Any) -> Any:  # noqa: ANN401 - of pyoxigraph
    """A blank node under a name unique to this page; any other term unchanged."""
    return oxigraph.BlankNode(f"p{page}-{term.value}") if isinstance(term, oxigraph.BlankNode) else term


LONGEST_URL = 2_000
"""Characters up to which a query is sent by GET; some servers refuse longer URLs."""
MAX_PAGES = 100
MAX_HOPS = 3
"""Maximum redirects for one page: endpoints move to https, to another path, or to another host."""
MAX_BYTES = 64 * 1024 * 1024
"""Maximum bytes of all responses together, decoded."""
_FULL = range(200, 300)
_CAP = re.compile("[0-9]{1,18}")
_NO_CAP = 1 << 60
_GAVE_UP = "S1TAT"
"""Virtuoso's state when it ran out of time and sends a partial result, under 200."""


class _Whole(Protocol):
    """Collects responses."""

    accept: str
    media_type: str

    def add(self, body: bytes, mime: str, parse: Callable[..., Any] = ...) -> int: ...

    def body(self) -> bytes: ...


class Sparql:
    """Queries an endpoint, whole or in pages."""

    name = "sparql"
    summary = "Ask a SPARQL endpoint a query."
    options = MappingProxyType(
        {
            "query": "the query, or @FILE to read it from a file",
            "page_size": "rows asked for at once, by LIMIT and OFFSET; without it all at once",
            "max_pages": f"pages after which a visit fails, {MAX_PAGES} if not given",
            "redirects": REDIRECTS_OPTION,
        }
    )

    def source(self, url: str, options: Options) -> AccessSource:
        """The query at the endpoint ``url``. Its page has the query in its URL, or a digest of a long one."""
        found = address(url)
        if found is None:
            raise ConfigError(f"{url!r} is not an http(s) URL.", "Give the URL of the endpoint.")
        kept = {"endpoint": found.url} | checked_options(self, options, required=("query",))
        query = read_query(kept["query"])
        kept["query"] = query.text
        check_redirects(kept)
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
        return AccessSource(
            page if len(page) <= LONGEST_URL else _digest_url(kept["endpoint"], query), kept, tuple(remarks)
        )

    def exchange(self, question: AccessRequest) -> Conversation:
        """Request page after page until one is short."""
        options = question.options
        query, endpoint = read_query(options["query"]), options["endpoint"]
        size, most = (whole_number(self, options, *one) for one in (("page_size", 0), ("max_pages", MAX_PAGES)))
        whole = _whole(query, endpoint)
        first: Capture | None = None
        received = asked = 0
        for _ in range(most):
            request = self._request(question, query.page(size, asked) if size else query.text, whole)
            answer = yield request
            hops = {request.url}
            while to := next_hop(question, answer):
                if to in hops or len(hops) > MAX_HOPS:
                    way = f"in circles, to {to} again" if to in hops else f"more than {MAX_HOPS} times"
                    return failed(question, answer, f"The endpoint redirects {way}.", first.time if first else None)
                hops.add(to)
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
            if not size or count == 0 or (isinstance(whole, SelectPages) and count < min(size, _cap(answer))):
                return made(question, first, answer, whole.body(), whole.media_type)
            asked += min(size, _cap(answer))
        assert first is not None  # noqa: S101 - at least one page is asked for
        return failed(question, answer, f"The answer has more than {most} pages: raise max_pages.", first.time)

    @staticmethod
    def _request(question: AccessRequest, text: str, whole: _Whole) -> FetchRequest:
        """One request; conditional if it is the only one and its response is the version."""
        endpoint, said = question.options["endpoint"], question.validators
        url = _get_url(endpoint, text)
        if len(url) > LONGEST_URL:
            return FetchRequest(endpoint, accept=whole.accept, body=f"query={quote(text, safe='')}".encode())
        if url != question.url:
            return FetchRequest(url, accept=whole.accept)
        return FetchRequest(url, said.etag, said.last_modified, accept=whole.accept)


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
            return SelectPages(ordered=query.ordered, distinct=query.distinct)
        case "ASK":
            return AskResult()
        case _:
            return GraphPages(endpoint)


def _get_url(endpoint: str, text: str) -> str:
    mark = "&" if "?" in endpoint else "?"
    found = address(f"{endpoint}{mark}query={quote(text, safe='')}")
    return found.url if found else endpoint


def _digest_url(endpoint: str, query: SparqlQuery) -> str:
    mark, named = "&" if "?" in endpoint else "?", hashlib.sha256(query.text.encode()).hexdigest()[:32]
    return f"{endpoint}{mark}query-sha256={named}{'&rows=ordered' if query.ordered else ''}"


def _body(question: AccessRequest, answer: Capture, received: int) -> bytes:
    """The decoded body of a complete response.

    Raises:
        InputError: it is incomplete.
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
    """The start of a response: often an error message."""
    return " ".join(body[:200].decode("utf-8", "replace").split())


def _mime(answer: Capture) -> str:
    return answer.header("content-type").partition(";")[0].strip().lower()


def _cap(answer: Capture) -> int:
    """The maximum rows of the endpoint per response, if it says so; else a very large number."""
    said = answer.header("x-sparql-maxrows")
    return int(said) or _NO_CAP if _CAP.fullmatch(said) else _NO_CAP
