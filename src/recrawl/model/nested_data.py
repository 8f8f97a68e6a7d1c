"""Find data that would crash the program or fill its memory, before a parser reads it.

A parser of RDF or of query results recurses into nested terms without a limit: a triple of triples, some thousand
levels deep, crashes the process. So the depth is counted first, in one pass, from the brackets of the syntax alone.
Strings, names and comments are skipped, so that brackets in them do not count.

XML can declare entities, which the parser of RDF/XML expands without a limit: 559 bytes of nested entities become
gigabytes ("billion laughs"), and so do 3,000 references to an entity of 1 MB. Data with a document type is not parsed.
"""

from __future__ import annotations

import re

DEEPEST = 200
"""Levels; data that people publish has a dozen."""

_JSON = re.compile(r"\"(?:[^\"\\]|\\.)*+\"?+|(?P<open>[\[{])|(?P<close>[\]}])", re.DOTALL)
_XML = re.compile(
    r"<!--(?:.*?-->|.*)|<!\[CDATA\[(?:.*?\]\]>|.*)|<\?(?:.*?\?>|.*)|<![^>]*+>?+|(?P<close></)"
    r"|(?P<open><[^\s/!?>](?:[^\"'>/]|/(?!>)|\"[^\"]*+\"?+|'[^']*+'?+)*+(?:/>)?+)",
    re.DOTALL,
)
_TURTLE = re.compile(
    r"\\.|\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*+(?:\"\"\")?+|'''(?:[^'\\]|\\.|'(?!''))*+(?:''')?+"
    r"|\"(?:[^\"\\\r\n]|\\.)*+\"?+|'(?:[^'\\\r\n]|\\.)*+'?+|<[^<>\"{}|^`\s]*+>|#[^\r\n]*+"
    r"|(?P<open><<\(?+|[\[({])|(?P<close>\)?+>>|[\])}])",
    re.DOTALL,
)

_DECLARATION = re.compile("<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)


def reason_not_to_parse(text: str, mime: str) -> str:
    """Why data of this media type is not given to a parser; empty if it can be. O(length).

    A declaration counts wherever it stands, also in a comment or in CDATA: to tell these apart as each parser does is
    what attackers rely on, and a mistake on this side only costs a comparison line by line. ``text`` must be what the
    parser gets, in its encoding: bytes that only another encoding would read as a declaration are none to it.

    >>> reason_not_to_parse('<!DOCTYPE r [<!ENTITY a "b">]><r>&a;</r>', "application/rdf+xml")
    'it has a document type, whose entities could fill the memory'
    """
    if mime.endswith("xml") and _DECLARATION.search(text):
        return "it has a document type, whose entities could fill the memory"
    return "it is nested too deep to be read" if is_nested_too_deep(text, mime) else ""


def is_nested_too_deep(text: str, mime: str) -> bool:
    """Whether data of this media type (JSON, XML, Turtle and its kin) is nested deeper than :data:`DEEPEST`. O(length).

    >>> is_nested_too_deep("[" * 300, "application/json"), is_nested_too_deep('["[[["]' * 300, "application/json")
    (True, False)
    """
    marks = _JSON if mime.endswith("json") else _XML if mime.endswith("xml") else _TURTLE
    depth = 0
    for found in marks.finditer(text):
        kind = found.lastgroup
        if kind == "open":
            depth += not found[0].endswith("/>")  # an element that has nothing in it
            if depth > DEEPEST:
                return True
        elif kind == "close":
            depth = max(0, depth - 1)
    return False
