"""Results of queries: rows in any order, under any names of blank nodes, are the same rows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.detect.data.rdf import RESULTS, canonical_results, is_ordered
from recrawl.errors import InputError

JSON, XML = RESULTS
PLAIN = "http://e.example/sparql?query=SELECT%20*%20%7B%7D"
SORTED = PLAIN + "%20ORDER%20BY%20%3Fa"


def results(rows, variables=("a", "b")):
    return json.dumps({"head": {"vars": list(variables)}, "results": {"bindings": rows}})


def uri(name):
    return {"type": "uri", "value": f"http://x.example/{name}"}


def node(name):
    return {"type": "bnode", "value": name}


terms = st.one_of(
    st.integers(0, 3).map(lambda number: uri(str(number))),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=3).map(
        lambda text: {"type": "literal", "value": text}
    ),
    st.integers(0, 3).map(lambda number: node(f"b{number}")),
)
rows_of = st.lists(st.dictionaries(st.sampled_from(["a", "b"]), terms, min_size=1), max_size=6)


def renamed(rows, names):
    return [
        {name: node(names[term["value"]]) if term["type"] == "bnode" else term for name, term in row.items()}
        for row in rows
    ]


@given(rows_of, st.randoms(use_true_random=False))
def test_order_and_names_of_blank_nodes_are_nothing(rows, chance):
    shuffled = chance.sample(rows, len(rows))
    names = dict(zip([f"b{n}" for n in range(4)], chance.sample(["r0", "r1", "n0", "zz", "q"], 4), strict=True))
    other = results(renamed(shuffled, names), ("b", "a"))
    assert canonical_results(results(rows), JSON, PLAIN) == canonical_results(other, JSON, PLAIN)


@given(rows_of, rows_of)
def test_rows_that_differ_without_blank_nodes_differ(some, others):
    def bag(rows):
        return sorted(json.dumps(row, sort_keys=True) for row in rows)

    if '"bnode"' in json.dumps([some, others]):
        return
    same = canonical_results(results(some), JSON, PLAIN) == canonical_results(results(others), JSON, PLAIN)
    assert same == (bag(some) == bag(others))


def test_how_often_a_row_occurs_counts():
    once, twice = results([{"a": uri("1")}]), results([{"a": uri("1")}, {"a": uri("1")}])
    assert canonical_results(once, JSON, PLAIN) != canonical_results(twice, JSON, PLAIN)
    once, twice = results([{"a": node("1")}]), results([{"a": node("1")}, {"a": node("2")}])
    assert canonical_results(once, JSON, PLAIN) != canonical_results(twice, JSON, PLAIN)


def test_which_rows_share_a_blank_node_counts():
    shared = results([{"a": node("1"), "b": uri("1")}, {"a": node("1"), "b": uri("2")}])
    apart = results([{"a": node("1"), "b": uri("1")}, {"a": node("2"), "b": uri("2")}])
    assert canonical_results(shared, JSON, PLAIN) != canonical_results(apart, JSON, PLAIN)


@pytest.mark.parametrize("row", [uri, node], ids=["plain", "blank"])
def test_order_counts_where_the_query_asks_for_one(row):
    one = [{"a": row("1"), "b": uri("1")}, {"a": row("2"), "b": uri("2")}]
    other = one[::-1]
    assert canonical_results(results(one), JSON, SORTED) != canonical_results(results(other), JSON, SORTED)
    assert canonical_results(results(one), JSON, PLAIN) == canonical_results(results(other), JSON, PLAIN)


def test_json_and_xml_of_the_same_rows_say_the_same():
    xml = (
        '<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="a"/><variable name="b"/></head>'
        '<results><result><binding name="a"><uri>http://x.example/1</uri></binding></result></results></sparql>'
    )
    assert canonical_results(xml, XML, PLAIN) == canonical_results(results([{"a": uri("1")}]), JSON, PLAIN)


def test_yes_and_no():
    assert canonical_results('{"head": {}, "boolean": true}', JSON, PLAIN) == "yes"
    assert canonical_results('{"head": {}, "boolean": false}', JSON, PLAIN) == "no"


@pytest.mark.parametrize("text", ["", "Error 42000: too long", "{}", results([{"a": uri("1")}] * 9)[:-30]])
def test_what_is_no_result_is_refused(text):
    with pytest.raises(InputError):
        canonical_results(text, JSON, PLAIN)


@pytest.mark.parametrize(
    ("mime", "inside"),
    [(JSON, '{"type": "triple", "value": {"subject": '), (XML, "<triple><subject>")],
    ids=["json", "xml"],
)
def test_terms_nested_without_end_are_not_followed(mime, inside):
    """The parser follows each into the next, and takes the whole program down with it."""
    with pytest.raises(InputError, match="too deep"):
        canonical_results('{"head": {"vars": ["a"]}, "results": {"bindings": [{"a": ' + inside * 20_000, mime, PLAIN)


@pytest.mark.parametrize(
    ("url", "ordered"),
    [
        ("http://e/?query=SELECT+*+%7B%7D+ORDER+BY+%3Fx", True),
        ("http://e/?default-graph-uri=g&query=SELECT%20*%7B%7D%0Aorder%0D%0A%09by%20%3Fx&timeout=1", True),
        ("http://e/?query-sha256=00&rows=ordered", True),
        ("http://e/?query=SELECT+*+%7B%7BSELECT+*+%7B%7D+ORDER+BY+%3Fx%7D%7D", False),
        ("http://e/?query=SELECT+*+%7B%7D&note=order+by", False),
        ("http://e/", False),
    ],
)
def test_an_order_is_asked_for_behind_the_last_brace(url, ordered):
    assert is_ordered(url) == ordered
