"""The endpoint of a test web: what it answers, what it refuses, and that it knows when answers changed."""

import json
from itertools import pairwise
from urllib.parse import quote

import numpy as np
import pytest

from recrawl.simulate.virtual_web import PageKind
from recrawl.time import HOUR, VirtualClock, to_iso
from recrawl_testweb import VirtualWebServer
from recrawl_testweb.demo.demo_serve import fault_profile, portal, source_path
from recrawl_testweb.responses import ReceivedRequest, Responder

START = 1.79e9
MODIFIED = "SELECT ?thing ?when { ?thing <http://purl.org/dc/terms/modified> ?when }"
ONE_STATION = "SELECT ?thing ?value { ?thing <http://vocabulary.living.test/station-3> ?value } ORDER BY ?thing"


@pytest.fixture
def web():
    return portal(9, START, START + HOUR, seed=4)


def ask(web, query, now, accept="", path=None):
    answers = Responder(web, fault_profile(), 4, 80)
    asked = ReceivedRequest("GET", web.hosts[0], path or f"/sparql?query={quote(query)}", {"accept": accept})
    return answers.answer(asked, now)


def things(web):
    return np.flatnonzero(web.kind == PageKind.RDF)


def test_rows_are_what_the_rdf_pages_say_now(web):
    now = START + 600.0
    answer = ask(web, MODIFIED, now)
    assert (answer.status, dict(answer.headers)["Content-Type"]) == (
        200,
        "application/sparql-results+json; charset=utf-8",
    )
    rows = json.loads(answer.body)["results"]["bindings"]
    said = {row["thing"]["value"]: row["when"]["value"] for row in rows}
    wanted = {web.url(page, 80): float(web.modified(page, now)) for page in things(web)}
    assert said.keys() == wanted.keys()
    assert len(said) == 3
    assert said == {url: to_iso(when) for url, when in wanted.items()}


@pytest.mark.parametrize(
    ("query", "accept", "media_type", "begins"),
    [
        (MODIFIED, "application/sparql-results+xml", "application/sparql-results+xml", b"<?xml"),
        ("ASK { ?s ?p ?o }", "", "application/sparql-results+json", b'{"head"'),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "text/turtle", "text/turtle", b"<http://127.0.0.1"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "", "application/n-triples", b"<http://127.0.0.1"),
    ],
)
def test_the_form_is_what_the_client_likes(web, query, accept, media_type, begins):
    answer = ask(web, query, START, accept)
    assert dict(answer.headers)["Content-Type"] == f"{media_type}; charset=utf-8"
    assert answer.body.startswith(begins)


@pytest.mark.parametrize(
    "query",
    [
        "DELETE WHERE { ?s ?p ?o }",
        "SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
        "SELECT * { \\u0053ERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
        "nonsense",
    ],
)
def test_what_is_no_question_to_this_endpoint_is_refused(web, query):
    assert ask(web, query, START).status == 400


def test_without_a_query_it_says_how_to_ask(web):
    answer = ask(web, "", START, path="/sparql")
    assert (answer.status, answer.body) == (400, b"Ask with /sparql?query=...\n")


def test_a_host_without_things_has_no_endpoint():
    web = portal(2, START, START + HOUR, seed=4)
    assert ask(web, MODIFIED, START).status == 404


@pytest.mark.parametrize("query", [MODIFIED, ONE_STATION])
def test_the_exact_changes_of_an_answer_are_known(web, query):
    """Between two of them the answer stays, at each of them it becomes another."""
    end = START + 300.0
    living = VirtualWebServer(web, VirtualClock(START), fault_profile=fault_profile(), seed=4)
    living.close()
    url = f"http://{web.hosts[0]}:{living.port}/sparql?query={quote(query)}"
    changes = living.answer_changes(url, end)
    moments = web.changes.take(things(web)).times
    assert 0 < len(changes) <= ((moments > START) & (moments <= end)).sum()
    assert set(changes) <= set(moments)
    edges = [START, *changes.tolist(), end]
    before = None
    for first, after in pairwise(edges):
        said = {
            tuple(sorted(map(str, json.loads(ask(web, query, when).body)["results"]["bindings"])))
            for when in (first, (first + after) / 2, np.nextafter(after, 0))
        }
        assert len(said) == 1
        assert said != before
        before = said


def test_only_questions_to_an_endpoint_here_have_changes(web):
    living = VirtualWebServer(web, VirtualClock(START))
    living.close()
    assert living.answer_changes("http://elsewhere.example/sparql?query=ASK%20%7B%7D", START) is None
    assert living.answer_changes(living.urls()[1], START) is None


def test_a_portal_has_every_kind_of_source(web):
    assert web.path == ["/", *map(source_path, range(9))]
    assert [PageKind(kind).name for kind in web.kind[:4]] == ["HTML", "JSON", "CSV", "RDF"]
    assert len(set(web.path)) == len(web)
