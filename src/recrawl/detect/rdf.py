"""RDF as a graph: two files say the same if their triples do, whatever order, prefixes and blank-node names they use.

The canonical form is RDFC-1.0 (W3C), whose price grows exponentially with blank nodes that look alike and hang
together: nine of them in a ring of all-to-all links take half a minute. A server could stop us with one such file. So
graphs where more than a handful hang together that way are named by colour refinement instead, which is polynomial:
equal graphs still get equal forms, and only graphs made to confuse it get equal forms though they differ.

JSON-LD is RDF, too, once its contexts are known; how it is read without asking anybody for them says ``jsonld.py``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from recrawl.detect.digest import text_digest
from recrawl.detect.jsonld import JSON_LD, prepared_jsonld, syntactic_jsonld
from recrawl.errors import InputError, require
from recrawl.model.nested_data import reason_not_to_parse
from recrawl.urls import Address, address

MAX_TANGLED = 5
"""Blank nodes that look alike and hang together up to which RDFC-1.0 is asked; six take 25 ms, nine 36 s."""
_MAX_ROUNDS, _MIN_ROUNDS = 64, 3
"""Rounds of refinement: a node's name then depends on all that is within this many steps."""
_MAX_LOOKS = 200_000
"""Statements that are looked at in all rounds together, some seconds; a graph with many gets fewer rounds."""
MOST_LINKS = 10_000
"""Links of one document that are told. Dumps name millions of things; each would be kept with the page."""
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_DOCUMENTS = frozenset(
    {
        "http://www.w3.org/2000/01/rdf-schema#seeAlso",
        "http://www.w3.org/2000/01/rdf-schema#isDefinedBy",
        "http://www.w3.org/2002/07/owl#imports",
        "http://rdfs.org/ns/void#dataDump",
        "http://rdfs.org/ns/void#inDataset",
        "http://www.w3.org/ns/dcat#downloadURL",
        "http://www.w3.org/ns/dcat#accessURL",
        "http://www.w3.org/ns/dcat#landingPage",
        "http://www.w3.org/ns/hydra/core#next",
        "http://www.w3.org/ns/ldp#contains",
        "http://xmlns.com/foaf/0.1/page",
        "http://xmlns.com/foaf/0.1/isPrimaryTopicOf",
    }
)
"""Predicates that lead to documents: these links are told first."""


class RdfDocument(NamedTuple):
    """What a document of RDF says."""

    form: str
    """Every statement once, sorted, with canonical blank nodes."""
    links: tuple[Address, ...] | None
    """What it names by an http(s) IRI as the object of a statement, but for classes; each key once, at most
    :data:`MOST_LINKS`: those that lead to documents first, then by key. ``None`` if it was read as JSON only."""


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
    return read_rdf(text, mime, url).form


def read_rdf(text: str, mime: str, url: str) -> RdfDocument:
    """The canonical form of a document and its links, as :func:`canonical_rdf`.

    Raises:
        InputError: as there.
    """
    oxigraph = require("pyoxigraph", "crawl")
    if why := reason_not_to_parse(text, mime):
        raise InputError(f"this RDF is not read: {why}")
    if mime != JSON_LD:
        graph = _parsed(text, mime, url, oxigraph)
        return RdfDocument(links=_links(graph, oxigraph.NamedNode, url), form=_canonical(graph, oxigraph))
    try:
        prepared = prepared_jsonld(text)
        graph = _parsed(prepared.text, mime, url, oxigraph)
    except InputError:
        return RdfDocument(syntactic_jsonld(text), None)
    if not len(graph):
        return RdfDocument(syntactic_jsonld(text), ())
    links = _links(graph, oxigraph.NamedNode, url)
    lines = [f"context not read: {context}" for context in prepared.remote]
    return RdfDocument("\n".join([*lines, _canonical(graph, oxigraph)]), links)


def _parsed(text: str, mime: str, url: str, oxigraph: Any) -> Any:  # noqa: ANN401 - a data set, and the library
    form = oxigraph.RdfFormat.from_media_type(mime)
    try:
        return oxigraph.Dataset(oxigraph.parse(text.encode("utf-8", "replace"), format=form, base_iri=url))
    except (SyntaxError, ValueError) as error:
        raise InputError(f"this is not RDF ({error})") from error


def _canonical(graph: Any, oxigraph: Any) -> str:  # noqa: ANN401 - a data set of pyoxigraph, and the library
    looks = _first_looks(graph, oxigraph.BlankNode)
    if _tangled(graph, looks) <= MAX_TANGLED:
        graph.canonicalize(oxigraph.CanonicalizationAlgorithm.RDFC_1_0)
        return "\n".join(sorted(map(str, graph)))
    return _refined(graph, looks)


def _links(graph: Iterable[Any], named: type[Any], url: str) -> tuple[Address, ...]:
    """The links of a graph. O(n log n)."""
    documents, things = dict[str, Address](), dict[str, Address]()
    own = address(url)
    for predicate, target in _objects(graph, named):
        found = address(target)
        if found is not None and (own is None or found.key != own.key):
            (documents if predicate in _DOCUMENTS else things).setdefault(found.key, found)
    first = [documents[key] for key in sorted(documents)]
    others = [things[key] for key in sorted(things.keys() - documents.keys())]
    return tuple([*first, *others][:MOST_LINKS])


def _objects(graph: Iterable[Any], named: type[Any]) -> Iterator[tuple[str, str]]:
    """Predicate and object of the statements whose object has an http(s) IRI and is no class."""
    for quad in graph:
        predicate: str = quad.predicate.value
        if isinstance(quad.object, named) and predicate != _TYPE:
            target: str = quad.object.value
            if target[:4].lower() == "http":
                yield predicate, target


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
