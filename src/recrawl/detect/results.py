"""Results of SPARQL queries: rows, which have no order unless the query asks for one.

Two answers say the same if their rows do, however often each occurs, whatever order the endpoint gives them in and
whatever names it gives blank nodes. Rows with blank nodes are taken for a small graph, a node for each row, and named
as graphs are (``rdf.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from recrawl.detect.rdf import canonical_rdf
from recrawl.errors import InputError, require

RESULTS = ("application/sparql-results+json", "application/sparql-results+xml")
"""Media types of results."""
_QUERY = re.compile(r"[?&]query=([^&#]*)", re.IGNORECASE)
_SPACE = re.compile(r"(?:%20|%0[9ad]|\+)+", re.IGNORECASE)
_TO_LAST_BRACE = re.compile(r"^.*(?:%7d|})", re.IGNORECASE)
_ORDER_BY = re.compile(r"\border by\b", re.IGNORECASE)
_SAID_ORDERED = re.compile(r"[?&]rows=ordered(?:&|$)")


def canonical_results(text: str, mime: str, url: str) -> str:
    r"""A line with the variables, then a line for each row: sorted, unless the query in the URL has an ORDER BY.

    >>> rows = '{"x": {"type": "uri", "value": "http://x/%s"}}'
    >>> one, other = (f'{{"head": {{"vars": ["x"]}}, "results": {{"bindings": [{rows % a}, {rows % b}]}}}}'
    ...     for a, b in ("12", "21"))
    >>> canonical_results(one, RESULTS[0], "http://e/") == canonical_results(other, RESULTS[0], "http://e/")
    True
    >>> asked = "http://e/?query=SELECT%20*%20%7B%7D%20ORDER%20BY%20%3Fx"
    >>> canonical_results(one, RESULTS[0], asked) == canonical_results(other, RESULTS[0], asked)
    False

    Raises:
        InputError: these are no results of this media type, or they are cut short.
    """
    oxigraph = require("pyoxigraph", "crawl")
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


def _lines(rows: Iterable[Mapping[str, Any]], blank: type, url: str, *, ordered: bool) -> list[str]:
    plain: list[str] = []
    graph: list[str] = []
    for number, row in enumerate(rows):
        place = f"{number:09} " if ordered else ""
        if not any(isinstance(term, blank) for term in row.values()):
            plain.append(place + " ".join(f"?{name} {term}" for name, term in row.items()))
            continue
        # Names of rows begin with r and those of other nodes with n, so that none is taken for another.
        terms = ((name, f"_:n{term.value}" if isinstance(term, blank) else str(term)) for name, term in row.items())
        graph += [f"_:r{number} <urn:variable:{name}> {term} ." for name, term in terms]
        if ordered:
            graph.append(f'_:r{number} <urn:place> "{number:09}" .')
    named = canonical_rdf("\n".join(graph), "application/n-triples", url).splitlines() if graph else []
    return sorted(plain) + named
