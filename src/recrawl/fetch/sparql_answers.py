"""The answers of a SPARQL endpoint, page by page, put together as one: rows, or statements.

Blank nodes are named anew page by page: one answer's ``_:b0`` is not another's. An answer that is cut, or an error
text under a status that promises success, is refused: half a result is no version.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from recrawl.errors import InputError, require
from recrawl.fetch.access import in_this_process
from recrawl.model.nested_data import reason_not_to_parse

ROWS, TRIPLES = "application/sparql-results+json", "application/n-triples"
"""Media types of what is put together."""


class Rows:
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
        """Take in one answer; how many rows it had.

        Raises:
            InputError: it is no such answer, or repeats rows that an earlier one had though the query asks for each
                once: then the endpoint has no order that pages could follow.
        """
        names, rows = parse(read_rows, body, mime, self._pages)
        if self._pages and self._distinct and not set(rows).isdisjoint(self._rows):
            raise InputError("rows of one page come up again on another: give the query an ORDER BY")
        self._variables = self._variables or names
        self._rows += rows
        self._pages += 1
        return len(rows)

    def body(self) -> bytes:
        """All rows in the JSON of the W3C, sorted unless their order is content."""
        rows = ",\n".join(self._rows if self._ordered else sorted(self._rows))
        head = json.dumps({"vars": self._variables}, separators=(",", ":"))
        return f'{{"head":{head},"results":{{"bindings":[\n{rows}\n]}}}}\n'.encode()


class Answer:
    """The yes or no of an ASK query."""

    accept = Rows.accept
    media_type = ROWS

    def __init__(self) -> None:
        self._answer = False

    def add(self, body: bytes, mime: str, parse: Callable[..., Any] = in_this_process) -> int:
        """Take in the answer.

        Raises:
            InputError: it is none.
        """
        self._answer = parse(read_yes_or_no, body, mime)
        return 1

    def body(self) -> bytes:
        """The answer in the JSON of the W3C."""
        return json.dumps({"head": {}, "boolean": self._answer}).encode()


class Statements:
    """The statements of a CONSTRUCT or DESCRIBE query."""

    accept = f"{TRIPLES}, text/turtle;q=0.9, application/rdf+xml;q=0.8"
    media_type = TRIPLES

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._lines: set[str] = set()
        self._pages = 0

    def add(self, body: bytes, mime: str, parse: Callable[..., Any] = in_this_process) -> int:
        """Take in one answer; how many statements it had.

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
    """The variables and the rows of one answer, each row as JSON.

    Raises:
        InputError: it is no such answer.
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
    """What one answer says.

    Raises:
        InputError: it is no such answer.
    """
    found = _results(body, mime)
    if not isinstance(found, require("pyoxigraph", "crawl").QueryBoolean):
        raise InputError("the endpoint answered with rows, not with yes or no")
    return bool(found)


def read_statements(body: bytes, mime: str, endpoint: str, page: int) -> list[str]:
    """The statements of one answer, each as a line of N-Triples.

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
    """Refuse what would end the program if it were parsed. The parser reads nothing but UTF-8."""
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
    """A blank node under a name that no other page gives; any other term as it is."""
    return oxigraph.BlankNode(f"p{page}-{term.value}") if isinstance(term, oxigraph.BlankNode) else term
