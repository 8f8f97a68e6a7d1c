"""JSON-LD is compared as the graph it is, and nobody is asked for a context."""

import json
import socket

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.detect import classify_change, known_after
from recrawl.detect.data.rdf import canonical_rdf
from recrawl.detect.version import CostlyError, Effort
from recrawl.errors import InputError
from recrawl.model import Capture, ChangeKind, Verdict

URL = "http://data.example/catalog.jsonld"
INLINE = {
    "dct": "http://purl.org/dc/terms/",
    "title": "dct:title",
    "part": {"@id": "dct:hasPart", "@type": "@id"},
    "steps": {"@id": "http://x/steps", "@container": "@list"},
    "at": {"@id": "http://x/at"},
}


def catalog(context):
    """A catalogue as portals publish it: nested objects without names, references between them, sets and a list."""
    return {
        "@context": context,
        "@id": "http://data.example/catalog",
        "@type": ["Catalog", "Thing"],
        "title": ["Katalog", "catalogue", {"@value": "Catalogo", "@language": "it"}],
        "part": [
            {"@id": "_:b0", "title": "Rivers", "at": {"title": "here", "next": {"@id": "_:b1"}}},
            {"@id": "_:b1", "title": "Lakes", "at": {"title": "there"}},
            "_:b1",
        ],
        "steps": {"@list": ["one", "two", "three"]},
        "undefined name": {"x<y": ["p", "q"]},
    }


CONTEXTS = [
    INLINE,
    [INLINE, {"extra": "http://x/extra"}],
    "https://schema.org/",
    ["https://context.example/v1", {"local": "http://x/local"}],
    {"@vocab": "http://vocabulary.example/"},
    {},
]


def respelled(value, rng, names):
    """The same document: members in another order, sets in another order, blank nodes under other names."""
    if isinstance(value, dict):
        members = list(value.items())
        rng.shuffle(members)
        return {
            name: held if name == "@context" else
            [respelled(one, rng, names) for one in held] if name == "@list" else respelled(held, rng, names)
            for name, held in members
        }  # fmt: skip
    if isinstance(value, list):
        held = [respelled(one, rng, names) for one in value]
        rng.shuffle(held)
        return held
    return names.get(value, value) if isinstance(value, str) else value


def answer(document, time=0.0, mime="application/ld+json", url=URL):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Capture(url, time, 200, f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n".encode(), body)


def verdict(one, other):
    first = classify_change(answer(one), None)
    return classify_change(answer(other, 9.0), known_after(first, None))


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: json.dumps(context)[:40])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_another_spelling_is_no_change(context, seed):
    one = catalog(context)
    other = respelled(one, np.random.default_rng(seed), {"_:b0": "_:n77", "_:b1": "_:b0"})
    assert json.dumps(one) != json.dumps(other)
    assert verdict(one, other).verdict == Verdict.UNCHANGED


CHANGES = {
    "a title": lambda one: one["title"].append("another"),
    "a nested title": lambda one: one["part"][0]["at"].update(title="elsewhere"),
    "a name that no context defines": lambda one: one.update({"undefined name": 1}),
    "a value below one": lambda one: one["undefined name"].update({"x<y": ["p", "r"]}),
    "another link between blank nodes": lambda one: one["part"][0]["at"].update(next={"@id": "_:b0"}),
    "the order of a list": lambda one: one["steps"]["@list"].reverse(),
    "a type": lambda one: one.update({"@type": ["Catalog"]}),
    "a language": lambda one: one["title"][2].update({"@language": "fr"}),
}


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: json.dumps(context)[:40])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_differs_is_a_change(context, change):
    one, other = catalog(context), catalog(context)
    change(other)
    found = verdict(one, other)
    assert found.verdict == Verdict.CHANGED
    assert found.kinds & ChangeKind.DATA


def test_prefixes_are_no_content_and_every_syntax_has_one_form():
    spelled = json.dumps({"@context": {"d": "http://purl.org/dc/terms/"}, "@id": "http://x/a", "d:title": "T"})
    full = json.dumps([{"@id": "http://x/a", "http://purl.org/dc/terms/title": [{"@value": "T"}]}])
    turtle = "<http://x/a> <http://purl.org/dc/terms/title> 'T' ."
    forms = [canonical_rdf(text, "application/ld+json", URL) for text in (spelled, full)]
    assert {*forms} == {canonical_rdf(turtle, "text/turtle", URL)}


def test_nobody_is_asked_for_a_context(monkeypatch):
    def asked(*_):
        raise AssertionError

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    monkeypatch.setattr(socket.socket, "connect", asked)
    form = canonical_rdf(json.dumps(catalog("http://127.0.0.1:9/context")), "application/ld+json", URL)
    assert "context not read: http://127.0.0.1:9/context" in form


def test_another_context_is_a_change():
    assert verdict(catalog("https://a.example/"), catalog("https://b.example/")).verdict == Verdict.CHANGED


@pytest.mark.parametrize("where", ["nested", "scoped", "imported", "reset"])
def test_contexts_are_found_wherever_they_are(where):
    remote = "https://context.example/"
    context = {
        "nested": {"p": "http://x/p"},
        "scoped": {"p": {"@id": "http://x/p", "@context": remote}},
        "imported": {"@version": 1.1, "@import": remote, "p": "http://x/p"},
        "reset": [None, remote],
    }[where]
    inner = {"@context": remote, "q": "one"} if where == "nested" else {"q": "one"}
    one, other = ({"@context": context, "@id": "http://x/a", "p": {**inner, "q": said}} for said in ("one", "two"))
    assert "context not read" in canonical_rdf(json.dumps(one), "application/ld+json", URL)
    assert verdict(one, other).verdict == Verdict.CHANGED
    assert verdict(one, dict(reversed(one.items()))).verdict == Verdict.UNCHANGED


@pytest.mark.parametrize(
    ("one", "other"),
    [([8.5, 47.3], [47.3, 8.5]), ([[1, 2], [3, 4]], [[1, 4], [3, 2]]), ([1, 1, 2], [1, 2, 2])],
    ids=["a place", "a line", "a series"],
)
def test_numbers_keep_their_order_where_a_context_is_not_at_hand(one, other):
    """Only the context could tell that they are no list, and coordinates in another order are another place."""
    documents = [{"@context": "https://geojson.example/", "coordinates": numbers} for numbers in (one, other)]
    assert verdict(*documents).verdict == Verdict.CHANGED


@pytest.mark.parametrize(
    "document",
    [
        {"@context": {"a": 5}, "a": ["x", "y"]},
        {"@id": 7, "a": ["x", "y"]},
        {"@context": {"@version": 2}, "a": ["x", "y"]},
        {"@context": {"@protected": True, "a": "http://x/a"}, "b": {"@context": None, "a": ["x", "y"]}},
        ["x", "y"],
        {},
        [],
        {"@value": "x"},
    ],
    ids=json.dumps,
)
def test_what_is_no_graph_is_compared_as_json_without_an_order(document):
    other = respelled(document, np.random.default_rng(1), {})
    assert verdict(document, other).verdict == Verdict.UNCHANGED
    assert verdict(document, [document, "more"]).verdict == Verdict.CHANGED


def test_what_is_no_json_is_compared_by_line():
    assert verdict(b'{"a": ', b'{"b": ').verdict == Verdict.CHANGED
    assert verdict(b'{"a": \n', b'{"a":\r\n').verdict == Verdict.UNCHANGED


def test_it_is_read_where_it_harms_nobody():
    """A library that parses RDF can end the whole process."""
    with pytest.raises(CostlyError):
        classify_change(answer({"@id": "http://x/"}), None, effort=Effort.CHEAP)


def test_nested_without_end_is_not_followed():
    deep = '{"a":' * 5_000 + "1" + "}" * 5_000
    with pytest.raises(InputError, match="too deep"):
        canonical_rdf(deep, "application/ld+json", URL)
    assert classify_change(answer(deep.encode()), None).validators.text_digest


def test_contexts_made_to_cost_time_and_memory_are_not_followed():
    """Each object below has a context of its own, and a parser copies all definitions for each."""
    many = {f"t{number}": f"http://x/{number}" for number in range(3_000)}
    held = [{"@context": {"a": "http://x/a"}, "a": number} for number in range(3_000)]
    form = canonical_rdf(json.dumps({"@context": many, "t1": held}), "application/ld+json", URL)
    assert form.startswith("{")
    few = canonical_rdf(json.dumps({"@context": many, "t1": held[:10]}), "application/ld+json", URL)
    assert not few.startswith("{")


NAMES = ["@context", "@id", "@type", "@list", "@set", "@graph", "@value", "@reverse", "id", "a", "a b", ""]
TEXTS = st.sampled_from(["x", "_:b", "http://x/", "@id"]) | st.text(max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda held: st.lists(held, max_size=4) | st.dictionaries(st.sampled_from(NAMES), held, max_size=4),
    max_leaves=20,
)


@settings(max_examples=200)
@given(JSON)
def test_no_json_breaks_it_and_the_same_is_the_same(document):
    first = classify_change(answer(document), None)
    again = classify_change(answer(json.dumps(document, indent=1).encode(), 9.0), known_after(first, None))
    assert again.verdict == Verdict.UNCHANGED
