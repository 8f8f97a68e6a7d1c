"""RDF is recognised by name and content where servers do not say what it is; its links are told."""

import json

import pytest

from recrawl.detect import classify_change, known_after
from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.detect.data.rdf import MOST_LINKS, read_rdf
from recrawl.detect.explanation import shown
from recrawl.detect.noise.learned_noise import HostNoise
from recrawl.detect.version import CostlyError, Effort
from recrawl.model import Capture, ChangeKind, Verdict

TURTLE = "@prefix x: <http://x/> .\nx:a x:p [ x:q '{0}' ] ; x:r '2026-11-15 10:00' .\n"
NT = '_:z <http://x/q> "{0}" .\n<http://x/a> <http://x/p> _:z .\n'
XML = """<?xml version="1.0"?>
<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/"><r:Description r:about="http://x/a">
<x:p r:parseType="Resource"><x:q>{0}</x:q></x:p></r:Description></r:RDF>"""
JSON_LD = '{{"@context": {{"x": "http://x/"}}, "@id": "x:a", "x:p": {{"@id": "_:z", "x:q": ["{0}", "b"]}}}}'
SPELLINGS = {
    ".ttl": (TURTLE, "# served now\nPREFIX y: <http://x/>\n_:n y:q '{0}' . y:a y:p _:n ; y:r '2026-11-15 10:00' ."),
    ".n3": (TURTLE, "# served now\n@prefix y: <http://x/> .\n_:n y:q '{0}' . y:a y:p _:n ; y:r '2026-11-15 10:00' ."),
    ".trig": (TURTLE, "PREFIX y: <http://x/> {{ _:n y:q '{0}' . y:a y:p _:n ; y:r '2026-11-15 10:00' }}"),
    ".nt": (NT, '# now\n<http://x/a> <http://x/p> _:n1 .\n_:n1 <http://x/q> "{0}" .\n'),
    ".nq": (NT, '# now\n<http://x/a> <http://x/p> _:n1 .\n_:n1 <http://x/q> "{0}" .\n'),
    ".rdf": (XML, XML.replace("xmlns:x=", "xmlns:y=").replace("<x:", "<y:").replace("</x:", "</y:")),
    ".owl": (XML, XML.replace("\n", " ")),
    ".jsonld": (JSON_LD, '{{"@context": {{"y": "http://x/"}}, "@id": "y:a", "y:p": {{"y:q": ["b", "{0}"]}}}}'),
}
PLAIN, BYTES = "text/plain; charset=utf-8", "application/octet-stream"


def answer(text, mime, url="http://data.example/file", time=0.0, more=""):
    said = f"Content-Type: {mime}\r\n" if mime else ""
    return Capture(url, time, 200, f"HTTP/1.1 200 OK\r\n{said}{more}\r\n".encode(), text.encode())


def verdict(one, other):
    return classify_change(other, known_after(classify_change(one, None), None))


@pytest.mark.parametrize("mime", [PLAIN, BYTES, ""])
@pytest.mark.parametrize("by", ["name", "content", "attachment"])
@pytest.mark.parametrize("ending", SPELLINGS)
def test_files_are_compared_as_graphs(mime, by, ending):
    url = f"http://data.example/file{ending}?version=2" if by == "name" else "http://data.example/download"
    more = f'Content-Disposition: attachment; filename="file{ending}"\r\n' if by == "attachment" else ""
    one, other = SPELLINGS[ending]
    first = answer(one.format("v"), mime, url, more=more)
    assert verdict(first, answer(other.format("v"), mime, url, 9.0, more)).verdict == Verdict.UNCHANGED
    changed = verdict(first, answer(other.format("w"), mime, url, 9.0, more))
    assert changed.verdict == Verdict.CHANGED
    assert changed.kinds & ChangeKind.DATA
    assert changed.mime == mime.partition(";")[0]  # what the server says stays what the archive says


@pytest.mark.parametrize("mime", ["application/xml", "text/xml"])
def test_xml_with_a_graph_in_it(mime):
    one, other = SPELLINGS[".rdf"]
    assert verdict(answer(one, mime), answer(other, mime, time=9.0)).verdict == Verdict.UNCHANGED


def test_json_of_that_name():
    one, other = (text.format("v") for text in SPELLINGS[".jsonld"])
    url = "http://data.example/x.jsonld"
    assert verdict(answer(one, "application/json", url), answer(other, "application/json", url, 9.0)).verdict == (
        Verdict.UNCHANGED
    )


@pytest.mark.parametrize("mime", ["application/json", "application/vnd.api+json; charset=utf-8"])
@pytest.mark.parametrize("listed", [False, True])
def test_json_with_a_context_is_a_graph(mime, listed):
    one, other, changed = (
        f"[{text}]" if listed else text
        for text in (SPELLINGS[".jsonld"][0].format("v"), *(SPELLINGS[".jsonld"][1].format(word) for word in "vw"))
    )
    assert verdict(answer(one, mime), answer(other, mime, time=9.0)).verdict == Verdict.UNCHANGED
    assert verdict(answer(one, mime), answer(changed, mime, time=9.0)).verdict == Verdict.CHANGED


@pytest.mark.parametrize(
    "text", ['{{"shown": {{"@context": {{}}}}, "best": {0}}}', '{{"name": "@context", "best": {0}}}']
)
def test_json_with_a_context_further_inside_stays_json(text):
    """Its arrays have an order."""
    one, other = (answer(text.format(row), "application/json", time=9.0) for row in ('["a", "b"]', '["b", "a"]'))
    assert verdict(one, other).verdict == Verdict.CHANGED


@pytest.mark.parametrize("mime", ["application/x-turtle", "text/rdf+n3"])
def test_old_names_of_media_types(mime):
    one, other = (text.format("v") for text in SPELLINGS[".ttl"])
    assert verdict(answer(one, mime), answer(other, mime, time=9.0)).verdict == Verdict.UNCHANGED


def test_plain_text_of_such_a_name_stays_text():
    notes = "Notes, made at 12:30:00 by nobody.\nSecond line."
    found = verdict(
        answer(notes, PLAIN, "http://x/notes.nt"),
        answer(notes.replace("12:30", "12:31"), PLAIN, "http://x/notes.nt", 9.0),
    )
    assert found.verdict == Verdict.UNCHANGED  # a clock in a text is noise
    changed = verdict(
        answer(notes, PLAIN, "http://x/notes.nt"), answer("Other words.", PLAIN, "http://x/notes.nt", 9.0)
    )
    assert changed.kinds & ChangeKind.TEXT


def test_bytes_that_are_no_text_stay_bytes():
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n"
    one = Capture("http://x/archive.nt", 0.0, 200, head, b"\x1f\x8b\x08\0\0\0")
    assert not classify_change(one, None).validators.text_digest


def test_only_what_may_be_rdf_leaves_the_process():
    with pytest.raises(CostlyError):
        classify_change(answer(TURTLE.format("v"), PLAIN), None, effort=Effort.CHEAP)
    assert classify_change(answer("Some text.", PLAIN), None, effort=Effort.CHEAP).validators.text_digest


def test_statements_are_shown_to_people():
    seen = shown(answer(TURTLE.format("v"), BYTES, "http://x/a.ttl"), ChangeCriteria(), HostNoise())
    assert any('<http://x/q> "v"' in line for line in seen.lines)


# -- links -----------------------------------------------------------------------------------------------

LINKED = """@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
<> a owl:Ontology ; owl:imports <http://other.example/onto> ; rdfs:seeAlso <more.ttl#part>, <mailto:a@x> ;
   <http://x/knows> <http://data.example/a>, [ <http://x/knows> <http://data.example/b> ], "http://data.example/text" .
"""


def test_what_a_graph_names_are_its_links():
    found = classify_change(answer(LINKED, "text/turtle", "http://data.example/onto.ttl"), None)
    assert found.links_read
    assert found.links == (
        "http://data.example/more.ttl",
        "http://other.example/onto",
        "http://data.example/a",
        "http://data.example/b",
    )


def test_links_of_json_ld_and_of_files_without_a_type():
    document = json.dumps({"@id": "http://x/a", "http://x/p": {"@id": "http://data.example/b"}})
    assert classify_change(answer(document, "application/ld+json"), None).links == ("http://data.example/b",)
    assert classify_change(answer(LINKED, BYTES, "http://data.example/o.ttl"), None).links


def test_a_new_link_in_data_is_a_new_link():
    one, other = ("<http://x/a> <http://x/p> <http://x/b> .", "<http://x/a> <http://x/p> <http://x/b>, <http://y/c> .")
    found = verdict(answer(one, "text/turtle"), answer(other, "text/turtle", time=9.0))
    assert found.kinds & ChangeKind.NEW_LINKS
    assert (found.new_internal, found.new_external) == (0, 1)


def test_robots_that_are_asked_not_to_follow_do_not():
    found = classify_change(
        answer(LINKED, "text/turtle", "http://data.example/o.ttl", more="X-Robots-Tag: nofollow\r\n"), None
    )
    assert not found.links
    assert len(found.shunned) == 4


def test_what_cannot_be_parsed_says_nothing_of_links():
    assert not classify_change(answer("<a> <b>", "text/turtle"), None).links_read


def test_of_countless_links_the_first_are_told_whatever_their_order():
    lines = [f"<http://x/s> <http://x/p> <http://x/{number:06}> ." for number in range(MOST_LINKS + 10)]
    see = "<http://x/s> <http://www.w3.org/2000/01/rdf-schema#seeAlso> <http://x/zzz> ."
    found = [
        read_rdf("\n".join(text), "application/n-triples", "http://y/").links
        for text in ([*lines, see], [see, *lines[::-1]])
    ]
    assert found[0] == found[1]
    assert len(found[0]) == MOST_LINKS
    assert found[0][0].url == "http://x/zzz"
