"""What every access method promises, asked of each: ours, and the example of the documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.detect import decoded
from recrawl.errors import ConfigError
from recrawl.fetch.access import AccessMethod, Question, Talk, redirect_of
from recrawl.fetch.access_methods import AccessMethods
from recrawl.model import Capture, Validators
from recrawl.urls import address, host_of

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "add-an-access-method.md"
ROWS = '{"head": {"vars": ["s"]}, "results": {"bindings": [{"s": {"type": "bnode", "value": "x"}}]}}'
MOST = 250
"""Requests after which a conversation counts as endless."""


def of_the_guide():
    [code] = re.findall(
        r"^    ```python\n(.*?class .*?)^    ```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    names: dict[str, object] = {}
    exec(compile(re.sub(r"^    ", "", code, flags=re.MULTILINE), str(GUIDE), "exec"), names)
    return names["JsonPages"]()


SELECT, CONSTRUCT = "SELECT DISTINCT ?s { ?s ?p ?o }", "CONSTRUCT WHERE { ?s ?p ?o }"
SOURCES = {
    "rdf": ("rdf", "http://x.example/thing", {}),
    "sparql whole": ("sparql", "http://x.example/sparql", {"query": SELECT}),
    "sparql pages": ("sparql", "http://x.example/sparql", {"query": SELECT, "page_size": "1", "max_pages": "20"}),
    "sparql graph": ("sparql", "http://x.example/sparql", {"query": CONSTRUCT, "page_size": "1", "max_pages": "20"}),
    "sparql posted": ("sparql", "http://x.example/sparql?a=b", {"query": "ASK {} # " + "x" * 3000}),
    "file": ("file", "file:///srv/data/a.csv", {}),
    "guide": ("", "http://x.example/list", {"max_pages": "20"}),
}


def method_of(name) -> AccessMethod:
    return AccessMethods([]).get(name) if name else of_the_guide()


answers = st.builds(
    lambda status, mime, body, location, truncated: (
        status,
        (
            f"HTTP/1.1 {status} X\r\nContent-Type: {mime}\r\nLocation: {location}\r\n"
            f"{'Content-Encoding: gzip' if truncated == 'gzip' else 'X: y'}\r\n\r\n"
        ).encode(),
        body,
        truncated.removeprefix("gzip"),
    ),
    st.sampled_from([0, 200, 200, 200, 206, 301, 303, 304, 404, 429, 500, 999]),
    st.sampled_from(["application/sparql-results+json", "application/n-triples", "text/turtle", "text/html", "x", ""]),
    st.sampled_from([ROWS.encode(), b"<http://a/> <http://b/> _:c .", b'{"records": [1], "next": "?p"}', b"{}", b"[]"])
    | st.sampled_from(["mailto:z", "http://y.example/", 5, ["x"]]).map(
        lambda following: json.dumps({"records": [1], "next": following}).encode()
    )
    | st.binary(max_size=20),
    st.sampled_from(["/on", "?q", "http://x.example/sparql", "http://y.example/", "mailto:z", "", "http://["]),
    st.sampled_from(["", "", "", "length", "time", "gzip"]),
)


@pytest.mark.parametrize(("name", "url", "options"), SOURCES.values(), ids=SOURCES)
def test_a_source_has_a_page_and_is_described_the_same_again(name, url, options):
    method = method_of(name)
    source = method.source(url, options)
    assert isinstance(method, AccessMethod)
    assert address(source.url).url == source.url
    assert all(isinstance(text, str) for pair in source.options.items() for text in pair)
    assert method.source(url, options) == source
    assert name in ("", method.name)


@pytest.mark.parametrize(("name", "url", "options"), SOURCES.values(), ids=SOURCES)
def test_what_it_does_not_know_is_refused(name, url, options):
    method = method_of(name)
    for wrong_url, wrong in ((url, {**options, "no such option": "x"}), ("gopher://x.example/", options)):
        with pytest.raises(ConfigError):
            method.source(wrong_url, wrong)


@pytest.mark.parametrize(("name", "url", "options"), SOURCES.values(), ids=SOURCES)
@given(told=st.lists(answers, min_size=1, max_size=30), etag=st.sampled_from(["", '"a"']))
def test_whatever_comes_back_a_conversation_ends_in_a_capture_and_goes_where_it_may(name, url, options, told, etag):
    method = method_of(name)
    source = method.source(url, options)
    talk = Talk(method, Question(source.url, source.options, Validators(etag), decoded))
    led_to = ""
    for turn in range(MOST):
        request = talk.request
        assert request.url.startswith("file:") or host_of(request.url) == host_of(source.url) or request.url == led_to
        status, head, body, truncated = told[turn % len(told)]
        capture = Capture(
            request.url, float(turn), status, head if status else b"", body if status else b"", truncated=truncated
        )
        led_to = redirect_of(capture)
        version = talk.hear(capture)
        if version is not None:
            assert version.status or version.error or not status
            assert not version.made or version.url == source.url
            return
    pytest.fail("it never ends")
