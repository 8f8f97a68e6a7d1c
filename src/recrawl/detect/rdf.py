"""RDF as a graph: two files say the same if their triples do, whatever order, prefixes and blank-node names they use.

The canonical form is RDFC-1.0 (W3C), whose price grows exponentially with blank nodes that look alike and hang
together: nine of them in a ring of all-to-all links take half a minute. A server could stop us with one such file. So
graphs where more than a handful hang together that way are named by colour refinement instead, which is polynomial:
equal graphs still get equal forms, and only graphs made to confuse it get equal forms though they differ.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from recrawl.detect.digest import text_digest
from recrawl.errors import InputError, require
from recrawl.model.nested_data import reason_not_to_parse

MAX_TANGLED = 5
"""Blank nodes that look alike and hang together up to which RDFC-1.0 is asked; six take 25 ms, nine 36 s."""
_MAX_ROUNDS, _MIN_ROUNDS = 64, 3
"""Rounds of refinement: a node's name then depends on all that is within this many steps."""
_MAX_LOOKS = 200_000
"""Statements that are looked at in all rounds together, some seconds; a graph with many gets fewer rounds."""


def canonical_rdf(text: str, mime: str, url: str) -> str:
    r"""Every statement once, sorted, with canonical blank nodes, as N-Quads.

    Relative names are resolved against ``url``. O(n log n) for n statements, times the tangled blank nodes.

    >>> one = canonical_rdf("<a> <b> [ <c> 1 ] . # served 09:14", "text/turtle", "http://x/")
    >>> one == canonical_rdf("_:n <c> 01 . <a> <b> _:n .", "text/turtle", "http://x/")
    False
    >>> one == canonical_rdf("@prefix : <http://x/> . _:n :c 1 . :a :b _:n .", "text/turtle", "http://x/")
    True

    Raises:
        InputError: the text is not RDF of this media type, or it must not be parsed (``model.nested_data``).
    """
    oxigraph = require("pyoxigraph", "crawl")
    if why := reason_not_to_parse(text, mime):
        raise InputError(f"this RDF is not read: {why}")
    form = oxigraph.RdfFormat.from_media_type(mime)
    try:
        graph = oxigraph.Dataset(oxigraph.parse(text.encode("utf-8", "replace"), format=form, base_iri=url))
    except (SyntaxError, ValueError) as error:
        raise InputError(f"this is not RDF ({error})") from error
    looks = _first_looks(graph, oxigraph.BlankNode)
    if _tangled(graph, looks) <= MAX_TANGLED:
        graph.canonicalize(oxigraph.CanonicalizationAlgorithm.RDFC_1_0)
        return "\n".join(sorted(map(str, graph)))
    return _refined(graph, looks)


def _terms(quad: Any) -> tuple[Any, Any, Any, Any]:  # noqa: ANN401 - a quad of pyoxigraph
    return quad.subject, quad.predicate, quad.object, quad.graph_name


def _line(quad: Any, names: dict[Any, str], self: Any = None) -> str:  # noqa: ANN401 - terms of pyoxigraph
    """A statement with blank nodes under these names; the one it is looked at from is called ``_:self``."""
    return " ".join("_:self" if term == self else names.get(term) or str(term) for term in _terms(quad))


def _first_looks(graph: Iterable[Any], blank: type) -> dict[Any, str]:
    """Each blank node with what is said of it, all other blank nodes being alike."""
    nodes = {term for quad in graph for term in _terms(quad) if isinstance(term, blank)}
    return _look(graph, dict.fromkeys(nodes, "_:other"))


def _look(graph: Iterable[Any], names: dict[Any, str]) -> dict[Any, str]:
    """One round: each blank node is named after the statements it is in, under the names so far."""
    said: dict[Any, list[str]] = defaultdict(list)
    for quad in graph:
        for node in {term for term in _terms(quad) if term in names}:
            said[node].append(_line(quad, names, node))
    return {node: "_:" + text_digest("\n".join([names[node], *sorted(lines)])).hex() for node, lines in said.items()}


def _tangled(graph: Iterable[Any], looks: dict[Any, str]) -> int:
    """How many blank nodes look like another one and share a statement with a third that also does."""
    often = Counter(looks.values())
    doubled = {node for node, look in looks.items() if often[look] > 1}
    together = ({term for term in _terms(quad) if term in doubled} for quad in graph)
    return len({node for nodes in together if len(nodes) > 1 for node in nodes})


def _refined(graph: Collection[Any], names: dict[Any, str]) -> str:
    """The statements under names refined until no round tells more nodes apart, with how often each occurs."""
    for _ in range(min(max(_MAX_LOOKS // len(graph), _MIN_ROUNDS), _MAX_ROUNDS)):
        finer = _look(graph, names)
        if len(set(finer.values())) == len(set(names.values())):
            break
        names = finer
    return "\n".join(sorted(_line(quad, names) for quad in graph))
