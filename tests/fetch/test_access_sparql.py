"""Conversations with an endpoint, told what it answers: what is asked, and what comes of it."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from recrawl.errors import ConfigError, InputError
from recrawl.fetch.access.access_method import AccessRequest, Exchange
from recrawl.fetch.access.sparql import LONGEST_URL, MAX_HOPS, Sparql, read_query
from recrawl.model import Capture, Validators

ENDPOINT = "http://data.example/sparql"
QUERY = "SELECT ?s { ?s ?p ?o }"
RESULTS, TRIPLES = "application/sparql-results+json", "application/n-triples"


def exchange(query=QUERY, validators=None, **options):
    source = Sparql().source(ENDPOINT, {"query": query, **options})
    question = AccessRequest(source.url, source.options, validators or Validators(), lambda capture: capture.raw_body)
    return Exchange(Sparql(), question), source


def rows(*values, kind="literal"):
    bindings = [{"s": {"type": kind, "value": str(value)}} for value in values]
    return json.dumps({"head": {"vars": ["s"]}, "results": {"bindings": bindings}})


def answer(request, body="", *, mime=RESULTS, status=200, time=100.0, more="", **how):  # noqa: PLR0913 - an answer
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {mime}; charset=utf-8\r\n{more}\r\n".encode()
    return Capture(request.url, time, status, head, body.encode(), duration=1.0, **how)


def asked(request):
    return parse_qs(request.body.decode() or urlsplit(request.url).query)["query"][0]


def values(version):
    return [row["s"]["value"] for row in json.loads(version.raw_body)["results"]["bindings"]]


def test_a_short_query_goes_by_get_and_its_answer_is_the_version():
    conversation, source = exchange(validators=Validators('"a"', "yesterday"))
    request = conversation.request
    assert (request.url, request.etag, request.last_modified, request.body) == (source.url, '"a"', "yesterday", b"")
    assert asked(request) == QUERY
    assert RESULTS in request.accept
    capture = answer(request, rows(1, 2))
    assert conversation.feed(capture) is capture


def test_an_unchanged_answer_is_the_version_too():
    conversation, _ = exchange(validators=Validators('"a"'))
    capture = answer(conversation.request, status=304)
    assert conversation.feed(capture) is capture


def test_a_long_query_goes_by_post_and_its_page_is_named_by_a_digest():
    query = QUERY + " # " + "x" * LONGEST_URL
    conversation, source = exchange(query)
    assert conversation.request.url == ENDPOINT
    assert asked(conversation.request) == query
    assert len(source.url) < 200
    assert exchange(query + "y")[1].url != source.url
    version = conversation.feed(answer(conversation.request, rows(2, 1)))
    assert (version.url, version.made, version.status) == (source.url, True, 200)
    assert values(version) == ["1", "2"]
    assert version.header("content-type") == RESULTS


@pytest.mark.parametrize(("order", "mark"), [(" ORDER BY ?s", True), ("", False)])
def test_the_page_of_a_long_query_says_whether_its_rows_are_ordered(order, mark):
    _, source = exchange(QUERY + order + " # " + "x" * LONGEST_URL)
    assert source.url.endswith("&rows=ordered") == mark


def test_pages_are_asked_for_until_one_is_short():
    conversation, source = exchange(QUERY + " ORDER BY ?s", page_size="2")
    offsets = []
    for body in (rows("c", "a"), rows("b", "d"), rows("e")):
        offsets.append(asked(conversation.request).rpartition("\n")[2])
        version = conversation.feed(answer(conversation.request, body, time=100.0 + len(offsets)))
    assert offsets == ["LIMIT 2 OFFSET 0", "LIMIT 2 OFFSET 2", "LIMIT 2 OFFSET 4"]
    assert values(version) == ["c", "a", "b", "d", "e"]
    assert (version.url, version.time, version.duration) == (source.url, 101.0, 3.0)


def test_without_an_order_rows_are_sorted_and_whoever_adds_the_source_is_warned():
    conversation, source = exchange(page_size="2")
    assert "ORDER BY" in source.remarks[0]
    assert conversation.feed(answer(conversation.request, rows("c", "a"))) is None
    assert values(conversation.feed(answer(conversation.request, rows("b")))) == ["a", "b", "c"]


def test_an_empty_page_ends_an_answer_of_full_ones():
    conversation, _ = exchange(page_size="1", max_pages="2")
    assert conversation.feed(answer(conversation.request, rows("a"))) is None
    assert values(conversation.feed(answer(conversation.request, rows()))) == ["a"]


def test_an_endpoint_that_gives_fewer_rows_than_asked_for_is_asked_on():
    conversation, _ = exchange(page_size="1000")
    told = "X-SPARQL-MaxRows: 2\r\n"
    assert conversation.feed(answer(conversation.request, rows("a", "b"), more=told)) is None
    assert asked(conversation.request).endswith("OFFSET 2")
    assert values(conversation.feed(answer(conversation.request, rows("c"), more=told))) == ["a", "b", "c"]


def test_statements_are_asked_for_until_a_page_has_none_and_kept_once():
    conversation, _ = exchange("CONSTRUCT WHERE { ?s ?p ?o }", page_size="2")
    assert TRIPLES in conversation.request.accept
    pages = ("<http://x/b> <http://p/> 'x' . <http://x/a> <http://p/> _:n .", "<http://x/a> <http://p/> _:n .")
    for body in pages:
        turtle = answer(conversation.request, body.replace("'", '"'), mime="text/turtle")
        assert conversation.feed(turtle) is None
    version = conversation.feed(answer(conversation.request, "", mime=TRIPLES))
    assert version.header("content-type") == TRIPLES
    assert version.raw_body.decode().splitlines() == [
        "<http://x/a> <http://p/> _:p0-n .",
        "<http://x/a> <http://p/> _:p1-n .",
        '<http://x/b> <http://p/> "x" .',
    ]


def test_statements_nested_without_end_are_a_failure():
    conversation, _ = exchange("CONSTRUCT WHERE { ?s ?p ?o }")
    deep = "<u:a> <u:b> " + "<<( <u:a> <u:b> " * 20_000 + "<u:c> " + ")>> " * 20_000 + ".\n"
    assert "too deep" in conversation.feed(answer(conversation.request, deep, mime=TRIPLES)).error


def test_rows_keep_their_terms_and_blank_nodes_of_two_pages_stay_apart():
    literal = {"type": "literal", "value": "é", "xml:lang": "fr"}
    number = {"type": "typed-literal", "value": "1", "datatype": "http://www.w3.org/2001/XMLSchema#integer"}
    first = {
        "head": {"vars": ["a", "b"]},
        "results": {"bindings": [{"a": literal, "b": number}, {"a": {"type": "bnode", "value": "x"}}]},
    }
    conversation, _ = exchange(page_size="2")
    conversation.feed(answer(conversation.request, json.dumps(first)))
    version = conversation.feed(answer(conversation.request, rows("x", kind="bnode")))
    found = json.loads(version.raw_body)["results"]["bindings"]
    assert {"a": literal, "b": {**number, "type": "literal"}} in found
    assert sorted(row[name]["value"] for row in found for name in row if row[name]["type"] == "bnode") == [
        "p0-x",
        "p1-x",
    ]


@pytest.mark.parametrize(("said", "yes"), [("true", True), ("false", False)])
def test_yes_or_no(said, yes):
    conversation, _ = exchange("ASK { ?s ?p ?o } # " + "x" * LONGEST_URL)
    version = conversation.feed(answer(conversation.request, f'{{"head": {{}}, "boolean": {said}}}'))
    assert json.loads(version.raw_body)["boolean"] is yes


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("Error 42000", {"mime": "text/plain"}),
        ("Error 42000", {}),
        ("<html>Please wait</html>", {"mime": "text/html"}),
        (rows("a", "b")[:-9], {}),
        ("", {}),
        ("", {"mime": ""}),
        ('{"head": {}, "boolean": true}', {}),
        (rows("a")[:40] + '[{"s": {"type": "triple", "value": ' * 20_000, {}),
        (rows("a"), {"more": "X-SQL-State: S1TAT\r\n"}),
        (rows("a"), {"truncated": "length"}),
    ],
)
@pytest.mark.parametrize("options", [{}, {"page_size": "1"}], ids=["whole", "pages"])
def test_an_answer_that_is_none_is_a_failure_that_says_why(body, how, options):
    conversation, source = exchange(**options)
    if options:
        assert conversation.feed(answer(conversation.request, rows("z"), time=50.0)) is None
    version = conversation.feed(answer(conversation.request, body, **how))
    assert (version.url, version.status, version.raw_head) == (source.url, 0, b"")
    assert version.time == (50.0 if options else 100.0)
    assert version.error
    assert "truncated" in how or "S1TAT" in str(how) or repr(body[:20])[:-1] in version.error
    assert version.failure < 0


def test_a_body_that_cannot_be_decoded_is_a_failure():
    def broken(_capture):
        raise InputError("the gzip encoding is broken")

    source = Sparql().source(ENDPOINT, {"query": QUERY})
    conversation = Exchange(Sparql(), AccessRequest(source.url, source.options, Validators(), broken))
    assert "gzip" in conversation.feed(answer(conversation.request, rows("a"))).error


@pytest.mark.parametrize("how", [{"status": 503}, {"status": 404}, {"truncated": "time"}])
def test_an_error_of_the_endpoint_in_the_middle_is_what_the_visit_came_to(how):
    conversation, _ = exchange(page_size="1")
    conversation.feed(answer(conversation.request, rows("a")))
    capture = answer(conversation.request, "gone", **how)
    assert conversation.feed(capture) is capture


def test_an_endpoint_that_moved_on_its_host_is_followed_and_asked_the_same():
    conversation, source = exchange(page_size="1")
    for number in (0, 1):
        asked_first = asked(conversation.request)
        moved = f"Location: https://data.example/query?{urlsplit(conversation.request.url).query}\r\n"
        assert conversation.feed(answer(conversation.request, status=301, more=moved)) is None
        assert conversation.request.url.startswith("https://data.example/query?")
        assert asked(conversation.request) == asked_first
        assert RESULTS in conversation.request.accept
        version = conversation.feed(answer(conversation.request, rows("a") if number == 0 else rows()))
    assert (version.url, values(version)) == (source.url, ["a"])


def test_an_endpoint_that_moved_to_another_host_is_followed_unless_told_otherwise():
    conversation, source = exchange(page_size="1")
    for rest in (["a"], []):
        page = asked(conversation.request)
        moved = f"Location: http://other.example/sparql?{urlsplit(conversation.request.url).query}\r\n"
        assert conversation.feed(answer(conversation.request, status=308, more=moved)) is None
        assert conversation.request.url.startswith("http://other.example/sparql?")
        assert asked(conversation.request) == page
        version = conversation.feed(answer(conversation.request, rows(*rest)))
    assert (version.url, version.made, values(version)) == (source.url, True, ["a"])
    conversation, _ = exchange(redirects="host")
    elsewhere = answer(conversation.request, status=301, more="Location: http://other.example/sparql\r\n")
    assert conversation.feed(elsewhere) is elsewhere
    with pytest.raises(ConfigError, match="redirects"):
        exchange(redirects="all")


def test_the_answer_of_another_host_is_a_version_of_the_page_and_not_of_its_url():
    conversation, source = exchange()
    assert (
        conversation.feed(answer(conversation.request, status=302, more="Location: http://other.example/q\r\n")) is None
    )
    version = conversation.feed(answer(conversation.request, rows("a")))
    assert (version.url, version.made) == (source.url, True)


def test_redirects_in_circles_or_without_end_are_a_failure():
    conversation, source = exchange()
    version = conversation.feed(answer(conversation.request, status=302, more=f"Location: {source.url}\r\n"))
    assert (version.status, version.url) == (0, source.url)
    assert "in circles" in version.error
    conversation, source = exchange()
    for hop in range(MAX_HOPS):
        moved = f"Location: http://h{hop}.example/\r\n"
        assert conversation.feed(answer(conversation.request, status=302, more=moved)) is None
    version = conversation.feed(answer(conversation.request, status=302, more="Location: http://on.example/\r\n"))
    assert (version.status, version.url) == (0, source.url)
    assert f"more than {MAX_HOPS} times" in version.error


def test_too_many_pages_are_a_failure():
    conversation, _ = exchange(page_size="1", max_pages="2")
    assert conversation.feed(answer(conversation.request, rows("a"))) is None
    assert "2 pages" in conversation.feed(answer(conversation.request, rows("b"))).error


def test_distinct_rows_that_come_up_again_show_that_the_pages_follow_no_order():
    conversation, _ = exchange("SELECT DISTINCT ?s { ?s ?p ?o }", page_size="2")
    conversation.feed(answer(conversation.request, rows("a", "b")))
    assert "ORDER BY" in conversation.feed(answer(conversation.request, rows("b"))).error


def test_two_queries_of_one_endpoint_are_two_pages_and_an_endpoint_may_have_arguments():
    one, other = (Sparql().source(f"{ENDPOINT}?graph=g", {"query": query}) for query in (QUERY, "ASK { ?s ?p ?o }"))
    assert one.url != other.url
    assert one.url.startswith(f"{ENDPOINT}?graph=g&query=SELECT")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"query": " "},
        {"query": "hello"},
        {"query": "DROP ALL"},
        {"query": "PREFIX a: <x> INSERT DATA { <a> <b> 1 }"},
        {"query": QUERY, "colour": "red"},
        {"query": QUERY, "page_size": "0"},
        {"query": QUERY, "page_size": "many"},
        {"query": QUERY, "max_pages": "-1"},
        {"query": QUERY + " LIMIT 5", "page_size": "10"},
        {"query": QUERY + " VALUES ?s { 1 }", "page_size": "10"},
        {"query": "ASK { ?s ?p ?o }", "page_size": "10"},
        {"query": "DESCRIBE <http://x/>", "page_size": "10"},
    ],
)
def test_what_cannot_be_asked_is_refused_when_it_is_added(options):
    with pytest.raises(ConfigError) as error:
        Sparql().source(ENDPOINT, options)
    assert error.value.remedy


@pytest.mark.parametrize(
    ("query", "form", "ordered", "limited"),
    [
        ("select * {?s ?p ?o}order by ?s", "SELECT", True, False),
        ("SELECT * { { SELECT * { ?s ?p ?o } ORDER BY ?s LIMIT 3 } }", "SELECT", False, False),
        ('ASK { ?s ?p "} ORDER BY ?s" }', "ASK", False, False),
        ("SELECT ?limit { ?s <http://x/#}> ?limit } # LIMIT 5", "SELECT", False, False),
        (
            "BASE <http://x/> PREFIX select: <y#> CONSTRUCT { } WHERE { ?s select:limit ?o } LIMIT 5",
            "CONSTRUCT",
            False,
            True,
        ),
        ("SELECT ?s (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING (?n > 1) OFFSET 2", "SELECT", False, True),
        ("SELECT ?s { ?s ?p '''a'b} LIMIT 1''' }", "SELECT", False, False),
        ("DESCRIBE <http://x/ORDER> ?x { ?x ?y [ ?z 1e5 ] FILTER(?y<5 && ?x>3) }", "DESCRIBE", False, False),
    ],
)
def test_a_query_is_read_as_far_as_paging_needs_it(query, form, ordered, limited):
    found = read_query(query)
    assert (found.form, found.ordered, found.limited) == (form, ordered, limited)
