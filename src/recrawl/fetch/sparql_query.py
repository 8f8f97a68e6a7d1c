"""A SPARQL query, read as far as it must be to ask it in pages: its form, and what stands behind its last brace.

Not a parser of SPARQL: endpoints have words of their own, and only the endpoint can say whether it understands a query.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from recrawl.errors import ConfigError

_TOKEN = re.compile(
    r"""
      (?P<skip> \#[^\r\n]* | <[^<>"{}|^`\\\s]*>
        | \"\"\"(?:[^\\]|\\.)*?\"\"\" | '''(?:[^\\]|\\.)*?'''
        | "(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*'
        | [?$]\w+ | [\w.-]*:[\w.:%\\-]* | @[\w-]+ | [\d.]+(?:[eE][+-]?\d+)? )
    | (?P<open> [{(\[] ) | (?P<close> [})\]] ) | (?P<word> [A-Za-z_]\w* )
    """,
    re.VERBOSE | re.DOTALL,
)
_FORMS = ("SELECT", "CONSTRUCT", "DESCRIBE", "ASK")
_UPDATES = frozenset({"INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH"})


@dataclass(frozen=True, slots=True)
class SparqlQuery:
    """A query and what its outermost words say."""

    text: str
    form: str
    """``SELECT``, ``CONSTRUCT``, ``DESCRIBE`` or ``ASK``."""
    distinct: bool = False
    ordered: bool = False
    """It asks for an order, so the order of rows is content."""
    limited: bool = False
    """It has a LIMIT or OFFSET of its own."""
    has_values: bool = False
    """Values follow its last brace, where nothing else may follow."""

    def page(self, size: int, offset: int) -> str:
        r"""The same query, asked for some rows of its answer.

        >>> read_query("SELECT ?s { ?s ?p ?o } ORDER BY ?s # by name").page(100, 200)
        'SELECT ?s { ?s ?p ?o } ORDER BY ?s # by name\nLIMIT 100 OFFSET 200'
        """
        return f"{self.text}\nLIMIT {size} OFFSET {offset}"


def read_query(text: str) -> SparqlQuery:
    """Read a query.

    >>> read_query("PREFIX order: <http://x/> SELECT DISTINCT * { ?s order:by 'ORDER BY' }").ordered
    False

    Raises:
        ConfigError: it is none, or it would change the data.
    """
    words, depth = [], 0
    for token in _TOKEN.finditer(text):
        depth += (token["open"] is not None) - (token["close"] is not None)
        if token["word"] and depth == 0:
            words.append(token["word"].upper())
    form = next((word for word in words if word in _FORMS or word in _UPDATES), "")
    if form not in _FORMS:
        raise ConfigError(
            f"This is not a query but an update ({form})." if form else "This is not a SPARQL query.",
            "Write a SELECT, CONSTRUCT, DESCRIBE or ASK query; give a file as query=@FILE.",
        )
    after = words[words.index(form) + 1 :]
    return SparqlQuery(
        text.strip(),
        form,
        distinct=after[:1] == ["DISTINCT"],
        ordered=any(pair == ("ORDER", "BY") for pair in pairwise(after)),
        limited="LIMIT" in after or "OFFSET" in after,
        has_values="VALUES" in after,
    )
