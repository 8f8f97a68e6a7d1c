"""Depth is told by the marks of a syntax; marks in texts, names and comments do not count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model.nested_data import DEEPEST, is_nested_too_deep

TURTLE, XML, JSON = "text/turtle", "application/rdf+xml", "application/sparql-results+json"
LEVELS = [
    (TURTLE, "<<( <a> <b> "),
    (TURTLE, "<<( <a#b> <b> # >>\n"),
    (TURTLE, "<<( <a\\u0041#b> <b> "),
    (TURTLE, "<<( ex:a\\' ex:b "),
    (TURTLE, '<<( """>> " """ '),
    (TURTLE, "<<( '''>> ' ''' "),
    (TURTLE, "[ <b> '>>]' "),
    (TURTLE, '( "\\")" '),
    (XML, "<a><b/>"),
    (XML, "<a b='/>'>"),
    (XML, '<a b="</a>" c>'),
    (XML, "<a><!-- </a> -->"),
    (XML, "<a><![CDATA[</a>]]>"),
    (XML, "<a><?x </a>?>"),
    (JSON, '{"a}":"}","b\\"}":'),
    (JSON, "["),
]
FLAT = [
    (TURTLE, "<a> <b> [ <c> ( 1 2 ) ] . # [\n"),
    (TURTLE, '<a> <b> "[[[", \'<<\' , """ << " """ .\n'),
    (TURTLE, "<< <a> <b> <c> >> <d> 'x' .\n"),
    (TURTLE, "<a[> <b(> <c]> .\n"),
    (XML, "<a/>"),
    (XML, "<a b='/'/>"),
    (XML, "<a><b c='/>'/></a>"),
    (XML, "<!-- <a> --><?x <a> ?><![CDATA[<a>]]>"),
    (JSON, '{"a": ["{[", "\\"["]}'),
]


@pytest.mark.parametrize(("mime", "level"), LEVELS)
def test_levels_are_counted(mime, level):
    assert is_nested_too_deep(level * (DEEPEST + 1), mime)
    assert not is_nested_too_deep(level * DEEPEST, mime)


@pytest.mark.parametrize(("mime", "text"), FLAT)
def test_what_ends_or_is_no_mark_is_no_level(mime, text):
    assert not is_nested_too_deep(text * (DEEPEST + 1), mime)


@given(st.text(), st.sampled_from([TURTLE, XML, JSON]))
def test_any_text_has_a_depth(text, mime):
    assert not is_nested_too_deep(text[:DEEPEST], mime)
