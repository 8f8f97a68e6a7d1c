"""Graphs are compared as graphs: order, prefixes and names of blank nodes are not content."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.detect import classify_change
from recrawl.detect.data.rdf import MAX_TANGLED, canonical_rdf
from recrawl.errors import InputError
from recrawl.model import Capture

URL = "http://data.example/graph"
NODES = st.sampled_from(["<http://x/a>", "<http://x/b>", "_:k", "_:l", "_:m"])
OBJECTS = NODES | st.sampled_from(['"one"', '"one"@en', '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'])
RDF_XML = """<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">
  <r:Description r:about="http://x/a"><x:p r:parseType="Resource"><x:q>v</x:q></x:p></r:Description>
</r:RDF>"""
TRIPLES = st.lists(st.tuples(NODES, st.sampled_from(["<http://x/p>", "<http://x/q>"]), OBJECTS), max_size=12)


def form(triples: list[tuple[str, str, str]]) -> str:
    return canonical_rdf("".join(f"{' '.join(triple)} .\n" for triple in triples), "application/n-triples", URL)


@settings(max_examples=60)
@given(TRIPLES, st.randoms(use_true_random=False), st.permutations(["_:k", "_:l", "_:m"]))
def test_order_and_blank_names_are_no_content(triples, random, renamed):
    """Relabelling must not keep the form because the labels are the same: they are exchanged."""
    other = dict(zip(["_:k", "_:l", "_:m"], renamed, strict=True))
    spelled = [tuple(other.get(term, term) for term in triple) for triple in triples]
    random.shuffle(spelled)
    assert form(triples) == form(spelled)


@settings(max_examples=60)
@given(TRIPLES)
def test_a_statement_more_is_a_change(triples):
    assert form(triples) != form([*triples, ("<http://x/new>", "<http://x/p>", "_:k")])


def all_to_all(nodes: list[str]) -> list[tuple[str, str, str]]:
    return [(one, "<http://x/p>", two) for one, two in itertools.permutations(nodes, 2)]


def test_a_graph_made_to_stop_us_is_compared_all_the_same():
    """RDFC-1.0 would take half a minute for nine such nodes and centuries for twenty."""
    nodes = [f"_:n{number}" for number in range(20)]
    assert len(nodes) > MAX_TANGLED
    ring = all_to_all(nodes)
    assert form(ring) == form(all_to_all(nodes[::-1]))
    assert form(ring) != form(ring[1:])


@pytest.mark.parametrize(
    ("mime", "before", "inside", "after"),
    [
        ("application/n-triples", "<u:a> <u:b> ", "<<( <u:a> <u:b> ", ")>> "),
        ("text/turtle", "<u:a> <u:b> ", "<<( <u:a> <u:b> ", ")>> "),
        ("application/rdf+xml", "<a>", "<x><y>", "</y></x>"),
    ],
)
def test_terms_nested_without_end_are_not_followed(mime, before, inside, after):
    """The parser follows each into the next, and takes the whole program down with it."""
    deep = before + inside * 20_000 + "<u:c>" + after * 20_000
    with pytest.raises(InputError, match="too deep"):
        canonical_rdf(deep, mime, "http://x/")
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n".encode()
    judged = classify_change(Capture("http://x/", 0.0, 200, head, deep.encode()), None)
    assert judged.validators.text_digest


def test_two_rings_of_other_sizes_differ():
    """Every node looks alike in each; what tells them apart is how many there are."""

    def rings(*sizes: int) -> list[tuple[str, str, str]]:
        return [
            (f"_:r{ring}n{at}", "<http://x/p>", f"_:r{ring}n{(at + 1) % size}")
            for ring, size in enumerate(sizes)
            for at in range(size)
        ]

    assert form(rings(4, 4)) != form(rings(4, 5))


@pytest.mark.parametrize(
    ("mime", "text"),
    [
        ("text/turtle", "@prefix x: <http://x/> . x:a x:p [ x:q 'v' ] ."),
        ("application/n-triples", '<http://x/a> <http://x/p> _:z .\n_:z <http://x/q> "v" .'),
        ("application/n-quads", '_:z <http://x/q> "v" .\n<http://x/a> <http://x/p> _:z .'),
        ("application/trig", "PREFIX x: <http://x/> { x:a x:p [ x:q 'v' ] }"),
        (
            "application/rdf+xml",
            RDF_XML,
        ),
    ],
)
def test_one_graph_in_every_syntax_has_one_form(mime, text):
    assert canonical_rdf(text, mime, URL) == canonical_rdf(
        "<http://x/a> <http://x/p> [ <http://x/q> 'v' ] .", "text/turtle", URL
    )


def test_relative_names_belong_to_the_page():
    text = "<> <p> <other> ."
    assert canonical_rdf(text, "text/turtle", "http://x/one") != canonical_rdf(text, "text/turtle", "http://x/two")


@pytest.mark.parametrize("text", ["<a> <b>", "\x00", '<a> <b> "unended .'])
def test_what_is_not_rdf_says_so(text):
    with pytest.raises(InputError, match="not RDF"):
        canonical_rdf(text, "text/turtle", URL)
