"""RDF as a graph: two files are equal if their triples are, whatever their order, prefixes and blank-node names.

The canonical form is RDFC-1.0 (W3C). Its cost grows exponentially with connected blank nodes of the same shape: nine of
them, all linked to each other, take half a minute. A server could stop the crawler with one such file. So graphs with
more than a handful of such nodes are labelled by colour refinement instead, which is polynomial: equal graphs still get
equal forms, and only graphs built to confuse it get equal forms although they differ.

**JSON-LD** is RDF once its contexts are known. A context maps names to IRIs. One that is given by its URL would have to
be fetched: detectors make no requests, and a context that its owner edits would change every page that uses it. So each
such context is replaced by a local vocabulary, in which a name stands for itself. The comparison is still one of
graphs: the order of members and of sets is no content, and neither are the names of blank nodes. Two facts that only
the context has are lost:

    which names are lists    arrays of numbers and of arrays keep their order (coordinates, series), others do not
    which texts name nodes   a text that names a blank node of the same document is taken for that node

A parser drops names that a context does not define. That would hide changes, so undefined names also stand for
themselves, and characters that an IRI cannot have are percent-escaped.

**Media types.** Many servers know no media types of RDF and send a file as plain text or as bytes without a type. The
name of a file and its first bytes suggest the format; the parser decides.

**Results of SPARQL queries** are rows, which have no order unless the query asks for one. Two results are equal if
their rows are, with their multiplicity, in any order and with any names of blank nodes. Blank nodes are named after the
rows they are in, so a changed row leaves the names elsewhere unchanged. These names cannot separate all rows that
differ; so rows with blank nodes are also turned into a small graph, one node per row, whose canonical form can.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from recrawl.detect.data.canonical_data import is_envelope
from recrawl.detect.fingerprint import text_digest
from recrawl.errors import InputError, require
from recrawl.model.nested_data import reason_not_to_parse
from recrawl.urls import Address, address

JSON_LD = "application/ld+json"
_OURS = "urn:recrawl:undefined:"
"""The vocabulary of names that no available context defines."""
_FORBIDDEN = re.compile(r"[\x00-\x20<>\"{}|\\^`\ud800-\udfff]")
"""What an IRI cannot have (RFC 3987)."""
_BLANK = "_:"
_MOST_DEFINED = 2_000_000
"""Contexts of a document times the names they define: a parser copies all names for each context, 0.25 s for a million
of these."""
_COERCED = ("@id", "@vocab")


class PreparedJsonLd(NamedTuple):
    """A document that can be parsed offline."""

    text: str
    remote: tuple[str, ...]
    """URLs of the contexts that were not read, sorted."""


def prepared_jsonld(text: str) -> PreparedJsonLd:
    r"""The document with available contexts only. O(length).

    Raises:
        InputError: it is not JSON, no JSON-LD document, or has too many contexts.

    >>> prepared_jsonld('{"@context": "https://schema.org/", "name": "x"}').remote
    ('https://schema.org/',)
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not JSON ({error})") from error
    if isinstance(value, dict):
        value = {name: held for name, held in value.items() if not is_envelope(name, held)}
    elif not isinstance(value, list):
        raise InputError("this is no JSON-LD: it is neither an object nor a list")
    preparation = _Preparation()
    preparation.survey(value)
    if preparation.contexts * preparation.definitions > _MOST_DEFINED:
        raise InputError("this JSON-LD has too many contexts to be read")
    node = preparation.node(value)
    if isinstance(node, list):  # contexts of the elements are their own
        node = {"@graph": node}
    context = node.pop("@context", [])
    document = {"@context": [_own_vocabulary(), *(context if isinstance(context, list) else [context])], **node}
    return PreparedJsonLd(json.dumps(document), tuple(sorted(preparation.remote)))


def syntactic_jsonld(text: str) -> str:
    """JSON-LD that is no graph to the parser, as JSON in which arrays outside ``@list`` have no order.

    Names of blank nodes are left out, so two documents that only link other blank nodes are the same here.

    Raises:
        InputError: it is not JSON.
    """
    try:
        return _written(_unordered(json.loads(text)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not JSON ({error})") from error


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _written(value: object) -> str:
    return _ENCODER.encode(value)


def _unordered(value: object, *, ordered: bool = False) -> object:
    if isinstance(value, dict):
        return {name: _unordered(held, ordered=name == "@list") for name, held in value.items()}
    if isinstance(value, list):
        held = [_unordered(one) for one in value]
        return held if ordered else sorted(held, key=_written)
    return _BLANK if isinstance(value, str) and value.startswith(_BLANK) else value


def _refuse(constant: str) -> None:
    msg = f"{constant} is no JSON"
    raise ValueError(msg)


def _own_vocabulary() -> dict[str, str]:
    return {"@vocab": _OURS}


class _Preparation:
    """One document: first what it says anywhere, then the same with what the parser needs."""

    def __init__(self) -> None:
        self.remote: set[str] = set()
        self.contexts = self.definitions = 0
        self._labels: set[str] = set()
        """Of blank nodes."""
        self._defined: set[str] = set()
        """Names that an available context defines."""
        self._coerced: set[str] = set()
        """Of these, whose texts are IRIs."""

    def survey(self, value: object) -> None:
        """Find the contexts and the names of blank nodes."""
        if isinstance(value, list):
            for one in value:
                self.survey(one)
        elif isinstance(value, dict):
            for name, held in value.items():
                if name == "@context":
                    self._survey_context(held)
                    continue
                if name in ("@id", "id") and isinstance(held, str) and held.startswith(_BLANK):
                    self._labels.add(held)
                self.survey(held)

    def _survey_context(self, context: object) -> None:
        if isinstance(context, str):
            self.remote.add(context)
        elif isinstance(context, list):
            for one in context:
                self._survey_context(one)
        elif isinstance(context, dict):
            self.contexts += 1
            self.definitions += len(context)
            imported = context.get("@import")
            if isinstance(imported, str):
                self.remote.add(imported)
            for name, held in context.items():
                self._survey_term(name, held)

    def _survey_term(self, name: str, held: object) -> None:
        self._defined.add(name)
        definition = held if isinstance(held, dict) else {"@id": held}
        # What is written as a list or an object is no type, and no key of a set.
        if str(definition.get("@type")) in _COERCED or str(definition.get("@id")) in ("@id", "@type"):
            self._coerced.add(name)
        if "@context" in definition:
            self._survey_context(definition["@context"])

    def node(self, value: Any, name: str = "") -> Any:  # noqa: ANN401 - whatever JSON holds
        """The same with available contexts only, and nothing that a parser would drop."""
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            held = [self.node(one, name) for one in value]
            return {"@list": held} if self._is_series(value, name) else held
        if isinstance(value, str):
            return self._text(value, name)
        return value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, held in value.items():
            if name == "@context":
                found[name] = self._context(held)
            elif name in ("@value", "@language", "@direction", "@index", "@json"):
                found[name] = held
            elif name == "@list":
                found[name] = self._elements(held)
            elif name == "id" and self.remote and name not in self._defined and self._is_label(held):
                found["@id"] = held  # most contexts that are named by a URL say so
            else:
                found[name if name.startswith("@") or name in self._defined else _escaped(name)] = self.node(held, name)
        return found

    def _is_label(self, held: object) -> bool:
        return isinstance(held, str) and held in self._labels

    def _elements(self, held: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
        """The elements of a list, in their order; lists in it are kept apart."""
        if not isinstance(held, list):
            return self.node(held)
        return [{"@list": self._elements(one)} if isinstance(one, list) else self.node(one) for one in held]

    def _text(self, value: str, name: str) -> Any:  # noqa: ANN401 - a text, or the node that it names
        if name in ("@id", "@type") or name in self._coerced:
            return _escaped(value) if value else value
        if name not in self._defined and self._is_label(value):
            return {"@id": value}
        return value

    def _is_series(self, value: list[Any], name: str) -> bool:
        """Whether an array has an order that only a context which is not available could tell."""
        if not self.remote or name.startswith("@") or name in self._defined or not value:
            return False
        return all(isinstance(one, int | float | list) and not isinstance(one, bool) for one in value)

    def _context(self, context: object) -> Any:  # noqa: ANN401 - whatever JSON holds
        if isinstance(context, list):
            return [one for given in context for one in self._contexts(given)]
        return self._contexts(context)

    def _contexts(self, context: object) -> list[Any]:
        """One context, as those that stand for it."""
        if context is None:  # forgets ours as well
            return [None, _own_vocabulary()]
        if isinstance(context, str):
            return []
        if not isinstance(context, dict):
            return [context]  # the parser says what is wrong with it
        found: dict[str, Any] = {}
        for name, held in context.items():
            if name == "@import":
                continue
            if name == "@vocab" and held is None:
                found[name] = _OURS
            elif isinstance(held, dict) and "@context" in held:
                found[name] = {**held, "@context": self._context(held["@context"])}
            else:
                found[name] = held
        return [found]


def _escaped(name: str) -> str:
    """A name with the characters that an IRI cannot have as percent-escapes."""
    return _FORBIDDEN.sub(_percent, name) or "%00"


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


RDF = frozenset(
    {
        JSON_LD,
        "application/n-quads",
        "application/n-triples",
        "application/rdf+xml",
        "application/trig",
        "text/n3",
        "text/turtle",
    }
)
"""Media types of RDF."""
_OLD_NAMES = MappingProxyType(
    {
        "application/n3": "text/n3",
        "application/rdf+n3": "text/n3",
        "application/turtle": "text/turtle",
        "application/x-trig": "application/trig",
        "application/x-turtle": "text/turtle",
        "text/nquads": "application/n-quads",
        "text/ntriples": "application/n-triples",
        "text/rdf+n3": "text/n3",
        "text/x-nquads": "application/n-quads",
    }
)
"""Media types that were in use before those above were registered."""
_UNTOLD = frozenset(
    {
        "",
        "application/binary",
        "application/download",
        "application/force-download",
        "application/octet-stream",
        "application/x-download",
        "binary/octet-stream",
        "text/plain",
    }
)
"""Media types that do not identify the format."""
_XML = ("application/xml", "text/xml")
_NAMES = MappingProxyType(
    {
        ".jsonld": JSON_LD,
        ".n3": "text/n3",
        ".nq": "application/n-quads",
        ".nt": "application/n-triples",
        ".owl": "application/rdf+xml",
        ".rdf": "application/rdf+xml",
        ".trig": "application/trig",
        ".ttl": "text/turtle",
    }
)
_BEGINNING = 4096
"""Bytes at the start of a file that identify its format."""
_COMMENTS = re.compile(r"(?:\s*+#[^\r\n]*+(?:[\r\n]|$))*+\s*+")
_DIRECTIVE = re.compile(r"@prefix\s|@base\s|prefix\s+[^\s:]*:\s*<|base\s+<", re.IGNORECASE)
_STATEMENT = re.compile(r"(?:<[^<>\s]++>|_:[^\s<>]++)\s++<[^<>\s]++>\s++(?:[<\"]|_:)")
_JSON_TOKEN = re.compile(r'[{}\[\]]|"(?:[^"\\]|\\.)*+"(\s*+:)?')
"""A bracket, or a text; the name of a member with its colon."""
_FILE_NAME = re.compile(r"filename\*?\s*=\s*(?:[\w-]*''|\"|)([^\";]*)", re.IGNORECASE)


def rdf_guesses(mime: str, url: str, disposition: str, body: bytes) -> Iterator[str]:
    """The media types of RDF that an answer may have, the likeliest first; none if it is not RDF. O(1).

    ``disposition`` is the header Content-Disposition, which may name a file.

    >>> list(rdf_guesses("application/octet-stream", "http://x/data.nt?v=2", "", b"<a:b> <c:d> <e:f> ."))
    ['application/n-triples', 'application/n-quads']
    >>> list(rdf_guesses("text/plain", "http://x/readme", "", b"See the data."))
    []
    >>> list(rdf_guesses("application/json", "http://x/", "", b'{"@context": {}}'))
    ['application/ld+json']
    """
    mime = _OLD_NAMES.get(mime, mime)
    if mime in RDF:
        yield mime
        return
    if mime == "application/json" or mime.endswith("+json"):
        if _named(url, disposition) == JSON_LD or _has_context(_start(body)):
            yield JSON_LD
    elif mime in _XML:
        if _is_rdf_xml(_start(body)):
            yield "application/rdf+xml"
    elif mime in _UNTOLD and b"\0" not in body[:_BEGINNING]:
        start = _start(body)
        guesses = [_named(url, disposition), _by_content(start)]
        yield from dict.fromkeys(guess for guess in guesses if guess and not _is_page(start))


def _named(url: str, disposition: str) -> str:
    """The format by the name of a file."""
    found = _FILE_NAME.search(disposition)
    path = url.partition("#")[0].partition("?")[0]
    for name in (found[1] if found else "", path):
        for ending, mime in _NAMES.items():
            if name.strip().lower().endswith(ending):
                return mime
    return ""


def _start(body: bytes) -> str:
    return body[:_BEGINNING].decode("utf-8", "replace").removeprefix("\ufeff").lstrip()


def _is_page(start: str) -> bool:
    return start[:14].lower().startswith(("<!doctype html", "<html"))


def _is_rdf_xml(start: str) -> bool:
    return start.startswith("<") and "http://www.w3.org/1999/02/22-rdf-syntax-ns#" in start and ":RDF" in start


def _has_context(start: str) -> bool:
    """Whether JSON is JSON-LD: an object, or an object of a list, has a member ``@context`` of its own.

    A context further inside applies to that part alone.

    >>> [_has_context(start) for start in ('{"a": [1], "@context": 0}', '[{"@context": 0', '{"a": {"@context": 0}}')]
    [True, True, False]
    """
    if '"@context"' not in start:
        return False
    outermost, depth = 1 if start.startswith("{") else 2, 0
    for token in _JSON_TOKEN.finditer(start):
        if token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
        elif depth == outermost and token[1] and token[0].startswith('"@context"'):
            return True
    return False


def _by_content(start: str) -> str:
    """The format by the start of a file: of each family the one that includes the others."""
    if start[:1] in ("{", "[") and '"@context"' in start:
        return JSON_LD
    if _is_rdf_xml(start):
        return "application/rdf+xml"
    after = start[_end_of_comments(start) :]
    if _DIRECTIVE.match(after):
        return "application/trig"
    return "application/n-quads" if _STATEMENT.match(after) else ""


def _end_of_comments(start: str) -> int:
    found = _COMMENTS.match(start)
    return found.end() if found else 0


MAX_TANGLED = 5
"""Maximum connected blank nodes of the same shape for RDFC-1.0; six take 25 ms, nine 36 s."""
_MAX_ROUNDS, _MIN_ROUNDS = 64, 3
"""Rounds of refinement: a node's name then depends on all that is within this many steps."""
_MOST_COMPARISONS = 200_000
"""Statements that are observed in all rounds together, some seconds; a graph with many gets fewer rounds."""
MOST_LINKS = 10_000
"""Maximum links of one document. Dumps name millions of things; each would be stored with the page."""
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
"""Predicates that lead to documents: these links come first."""


class RdfDocument(NamedTuple):
    """The content of an RDF document."""

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
    observations = _first_observations(graph, oxigraph.BlankNode)
    if _tangled(graph, observations) <= MAX_TANGLED:
        graph.canonicalize(oxigraph.CanonicalizationAlgorithm.RDFC_1_0)
        return "\n".join(sorted(map(str, graph)))
    return _refined(graph, observations)


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
    """A statement with blank nodes under these names; the one it is observed from is called ``_:self``."""
    return " ".join("_:self" if term == self else names.get(term) or str(term) for term in _terms(quad))


def _first_observations(graph: Iterable[Any], blank: type) -> dict[Any, str]:
    """Each blank node with its statements, in which all other blank nodes are equal."""
    nodes = {term for quad in graph for term in _terms(quad) if isinstance(term, blank)}
    return _observation(graph, dict.fromkeys(nodes, "_:other"))


def _observation(graph: Iterable[Any], names: dict[Any, str]) -> dict[Any, str]:
    """One round: each blank node is named after the statements it is in, under the names so far."""
    said: dict[Any, list[str]] = defaultdict(list)
    for quad in graph:
        for node in {term for term in _terms(quad) if term in names}:
            said[node].append(_line(quad, names, node))
    return {node: "_:" + text_digest("\n".join([names[node], *sorted(lines)])).hex() for node, lines in said.items()}


def _tangled(graph: Iterable[Any], observations: dict[Any, str]) -> int:
    """The number of blank nodes of the same shape as another, and connected to a third such node."""
    often = Counter(observations.values())
    doubled = {node for node, observation in observations.items() if often[observation] > 1}
    together = ({term for term in _terms(quad) if term in doubled} for quad in graph)
    return len({node for nodes in together if len(nodes) > 1 for node in nodes})


def _refined(graph: Collection[Any], names: dict[Any, str]) -> str:
    """The statements with node names refined until no round separates more nodes, and their multiplicity."""
    for _ in range(min(max(_MOST_COMPARISONS // len(graph), _MIN_ROUNDS), _MAX_ROUNDS)):
        finer = _observation(graph, names)
        if len(set(finer.values())) == len(set(names.values())):
            break
        names = finer
    return "\n".join(sorted(_line(quad, names) for quad in graph))


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
    lines = _result_lines(rows, oxigraph.BlankNode, url, ordered=is_ordered(url))
    return "\n".join([" ".join(f"?{name}" for name in names), *lines])


def is_ordered(url: str) -> bool:
    """Whether the query that a URL carries asks for an order behind its last brace; in a part of it that means nothing.

    >>> is_ordered("http://e/?query=SELECT+*+%7B%7D+order+by%0A%3Fx"), is_ordered("http://e/?query=%7BORDER+BY+%3Fx%7D")
    (True, False)
    """
    query = _QUERY.search(url)
    behind = _SPACE.sub(" ", _TO_LAST_BRACE.sub("", query[1])) if query else ""
    return bool(_SAID_ORDERED.search(url) or _ORDER_BY.search(behind))


def _result_lines(rows: Sequence[Mapping[str, Any]], blank: type, url: str, *, ordered: bool) -> list[str]:
    """A line for each row; and, where there are blank nodes, one that names their graph."""
    names: dict[Any, str] = {term: "_:other" for row in rows for term in row.values() if isinstance(term, blank)}
    with_nodes = [(number, row) for number, row in enumerate(rows) if any(term in names for term in row.values())]
    for _ in range(_ROUNDS if names else 0):
        names = _row_names([row for _, row in with_nodes], names)
    lines = [_row_line(row, names) for row in rows]
    graph = _row_graph(with_nodes, blank, url, ordered=ordered) if names else []
    return [*(lines if ordered else sorted(lines)), *graph]


def _row_line(row: Mapping[str, Any], names: Mapping[Any, str], self: Any = None) -> str:  # noqa: ANN401 - terms of pyoxigraph
    """A row with blank nodes under these names; the one it is observed from is called ``_:self``."""
    terms = ((name, "_:self" if term == self else names.get(term) or str(term)) for name, term in row.items())
    return " ".join(f"?{name} {term}" for name, term in terms)


def _row_names(rows: Iterable[Mapping[str, Any]], names: Mapping[Any, str]) -> dict[Any, str]:
    """One round: each blank node is named after the rows it is in, under the names so far."""
    said: dict[Any, list[str]] = defaultdict(list)
    for row in rows:
        for node in {term for term in row.values() if term in names}:
            said[node].append(_row_line(row, names, node))
    return {node: "_:" + text_digest("\n".join(sorted(lines))).hex()[:16] for node, lines in said.items()}


def _row_graph(rows: Iterable[tuple[int, Mapping[str, Any]]], blank: type, url: str, *, ordered: bool) -> list[str]:
    """A digest of the rows as a graph. It separates rows that differ although their readable names are equal."""
    lines: list[str] = []
    for number, row in rows:
        # Names of rows start with r and those of other nodes with n, so that none is taken for another.
        terms = ((name, f"_:n{str(term)[2:]}" if isinstance(term, blank) else str(term)) for name, term in row.items())
        lines += [f"_:r{number} <urn:variable:{name}> {term} ." for name, term in terms]
        if ordered:
            lines.append(f'_:r{number} <urn:place> "{number}" .')
    return ["graph " + text_digest(canonical_rdf("\n".join(lines), "application/n-triples", url)).hex()]
