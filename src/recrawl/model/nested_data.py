"""Data that is nested deeper than can be read, told before it is parsed.

A parser of RDF or of query results follows a term into its terms, and those into theirs. Nothing stops it: a triple of
triples of triples, some thousand levels deep, ends the whole program. So depth is counted beforehand, in one pass, by
the marks of the syntax alone. Texts, names and comments are passed over, so that no mark in them counts.
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
