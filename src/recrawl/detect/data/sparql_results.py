"""Results of SPARQL queries: rows, which have no order unless the query asks for one.

Two results are equal if their rows are, with their multiplicity, in any order and with any names of blank nodes. Blank
nodes are named after the rows they are in, so a changed row leaves the names elsewhere unchanged. These names cannot
separate all rows that differ; so rows with blank nodes are also turned into a small graph, one node per row, whose
canonical form (``rdf.py``) can.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recrawl.detect.data.rdf import canonical_rdf
from recrawl.detect.fingerprint import text_digest
from recrawl.errors import InputError, require
from recrawl.model.nested_data import reason_not_to_parse

RESULTS = ("application/sparql-results+json", "application/sparql-results+xml")
"""Media types of results."""
_QUERY = re.compile(r"[?&]query=([^&#]*)", re.IGNORECASE)
_SPACE = re.compile(r"(?:%20|%0[9ad]|\+)+", re.IGNORECASE)
_TO_LAST_BRACE = re.compile(r"^.*(?:%7d|})", re.IGNORECASE)
_ORDER_BY = re.compile(r"\border by\b", re.IGNORECASE)
_ROUNDS = 3
"""Of naming, always this many: a blank node's name depends on what is within this many rows, and on nothing else."""
_SAID_ORDERED = re.compile(r"[?&]rows=ordered(?:&|$)")


def canonical_results(text: str, mime: str, url: str) -> str:
    r"""A line with the variables, then a line for each row: sorted, unless the query in the URL has an ORDER BY.

    O(n log n) for n rows.

    >>> rows = '{"x": {"type": "uri", "value": "http://x/%s"}}'
    >>> one, other = (f'{{"head": {{"vars": ["x"]}}, "results": {{"bindings": [{rows % a}, {rows % b}]}}}}'
    ...     for a, b in ("12", "21"))
    >>> canonical_results(one, RESULTS[0], "http://e/") == canonical_results(other, RESULTS[0], "http://e/")
    True
    >>> asked = "http://e/?query=SELECT%20*%20%7B%7D%20ORDER%20BY%20%3Fx"
    >>> canonical_results(one, RESULTS[0], asked) == canonical_results(other, RESULTS[0], asked)
    False

    Raises:
        InputError: these are no results of this media type, they are cut short, or must not be parsed
            (``model.nested_data``).
    """
    oxigraph = require("pyoxigraph", "crawl")
    if why := reason_not_to_parse(text, mime):
        raise InputError(f"these results are not read: {why}")
    try:
        found = oxigraph.parse_query_results(
            text.encode("utf-8", "replace"), format=oxigraph.QueryResultsFormat.from_media_type(mime)
        )
        if isinstance(found, oxigraph.QueryBoolean):
            return "yes" if found else "no"
        names = sorted(variable.value for variable in found.variables)
        rows = [{name: row[name] for name in names if row[name] is not None} for row in found]
    except (SyntaxError, ValueError) as error:
        raise InputError(f"these are no results of a query ({error})") from error
    lines = _lines(rows, oxigraph.BlankNode, url, ordered=is_ordered(url))
    return "\n".join([" ".join(f"?{name}" for name in names), *lines])


def is_ordered(url: str) -> bool:
    """Whether the query that a URL carries asks for an order behind its last brace; in a part of it that means nothing.

    >>> is_ordered("http://e/?query=SELECT+*+%7B%7D+order+by%0A%3Fx"), is_ordered("http://e/?query=%7BORDER+BY+%3Fx%7D")
    (True, False)
    """
    query = _QUERY.search(url)
    behind = _SPACE.sub(" ", _TO_LAST_BRACE.sub("", query[1])) if query else ""
    return bool(_SAID_ORDERED.search(url) or _ORDER_BY.search(behind))


def _lines(rows: Sequence[Mapping[str, Any]], blank: type, url: str, *, ordered: bool) -> list[str]:
    """A line for each row; and, where there are blank nodes, one that names their graph."""
    names: dict[Any, str] = {term: "_:other" for row in rows for term in row.values() if isinstance(term, blank)}
    with_nodes = [(number, row) for number, row in enumerate(rows) if any(term in names for term in row.values())]
    for _ in range(_ROUNDS if names else 0):
        names = _observation([row for _, row in with_nodes], names)
    lines = [_line(row, names) for row in rows]
    graph = _graph(with_nodes, blank, url, ordered=ordered) if names else []
    return [*(lines if ordered else sorted(lines)), *graph]


def _line(row: Mapping[str, Any], names: Mapping[Any, str], self: Any = None) -> str:  # noqa: ANN401 - terms of pyoxigraph
    """A row with blank nodes under these names; the one it is observed from is called ``_:self``."""
    terms = ((name, "_:self" if term == self else names.get(term) or str(term)) for name, term in row.items())
    return " ".join(f"?{name} {term}" for name, term in terms)


def _observation(rows: Iterable[Mapping[str, Any]], names: Mapping[Any, str]) -> dict[Any, str]:
    """One round: each blank node is named after the rows it is in, under the names so far."""
    said: dict[Any, list[str]] = defaultdict(list)
    for row in rows:
        for node in {term for term in row.values() if term in names}:
            said[node].append(_line(row, names, node))
    return {node: "_:" + text_digest("\n".join(sorted(lines))).hex()[:16] for node, lines in said.items()}


def _graph(rows: Iterable[tuple[int, Mapping[str, Any]]], blank: type, url: str, *, ordered: bool) -> list[str]:
    """A digest of the rows as a graph. It separates rows that differ although their readable names are equal."""
    lines: list[str] = []
    for number, row in rows:
        # Names of rows start with r and those of other nodes with n, so that none is taken for another.
        terms = ((name, f"_:n{str(term)[2:]}" if isinstance(term, blank) else str(term)) for name, term in row.items())
        lines += [f"_:r{number} <urn:variable:{name}> {term} ." for name, term in terms]
        if ordered:
            lines.append(f'_:r{number} <urn:place> "{number}" .')
    return ["graph " + text_digest(canonical_rdf("\n".join(lines), "application/n-triples", url)).hex()]
