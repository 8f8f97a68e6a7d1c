"""Which answers are RDF, whatever their servers call them.

Many servers know no media types of RDF and send a file as plain text or as bytes without a type. The name of a file and
how it begins then tell what it may be; whether it is, the parser says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType

from recrawl.detect.jsonld import JSON_LD

RDF = frozenset(
    {
        JSON_LD,
        "application/n-quads",
        "application/n-triples",
        "application/rdf+xml",
        "application/trig",
        "text/n3",
        "text/turtle",
    }
)
"""Media types of RDF."""
_OLD_NAMES = MappingProxyType(
    {
        "application/n3": "text/n3",
        "application/rdf+n3": "text/n3",
        "application/turtle": "text/turtle",
        "application/x-trig": "application/trig",
        "application/x-turtle": "text/turtle",
        "text/nquads": "application/n-quads",
        "text/ntriples": "application/n-triples",
        "text/rdf+n3": "text/n3",
        "text/x-nquads": "application/n-quads",
    }
)
"""Media types that were in use before those above were registered."""
_UNTOLD = frozenset(
    {
        "",
        "application/binary",
        "application/download",
        "application/force-download",
        "application/octet-stream",
        "application/x-download",
        "binary/octet-stream",
        "text/plain",
    }
)
"""Media types that say nothing about what a file holds."""
_XML = ("application/xml", "text/xml")
_NAMES = MappingProxyType(
    {
        ".jsonld": JSON_LD,
        ".n3": "text/n3",
        ".nq": "application/n-quads",
        ".nt": "application/n-triples",
        ".owl": "application/rdf+xml",
        ".rdf": "application/rdf+xml",
        ".trig": "application/trig",
        ".ttl": "text/turtle",
    }
)
_BEGINNING = 4096
"""Bytes that tell how a file begins."""
_COMMENTS = re.compile(r"(?:\s*+#[^\r\n]*+(?:[\r\n]|$))*+\s*+")
_DIRECTIVE = re.compile(r"@prefix\s|@base\s|prefix\s+[^\s:]*:\s*<|base\s+<", re.IGNORECASE)
_STATEMENT = re.compile(r"(?:<[^<>\s]++>|_:[^\s<>]++)\s++<[^<>\s]++>\s++(?:[<\"]|_:)")
_FILE_NAME = re.compile(r"filename\*?\s*=\s*(?:[\w-]*''|\"|)([^\";]*)", re.IGNORECASE)


def rdf_guesses(mime: str, url: str, disposition: str, body: bytes) -> Iterator[str]:
    """The media types of RDF that an answer may have, the likeliest first; none if it is not RDF. O(1).

    ``disposition`` is the header Content-Disposition, which may name a file.

    >>> list(rdf_guesses("application/octet-stream", "http://x/data.nt?v=2", "", b"<a:b> <c:d> <e:f> ."))
    ['application/n-triples', 'application/n-quads']
    >>> list(rdf_guesses("text/plain", "http://x/readme", "", b"See the data."))
    []
    """
    mime = _OLD_NAMES.get(mime, mime)
    if mime in RDF:
        yield mime
        return
    if mime == "application/json":
        if _named(url, disposition) == JSON_LD:
            yield JSON_LD
    elif mime in _XML:
        if _is_rdf_xml(_start(body)):
            yield "application/rdf+xml"
    elif mime in _UNTOLD and b"\0" not in body[:_BEGINNING]:
        start = _start(body)
        guesses = [_named(url, disposition), _by_content(start)]
        yield from dict.fromkeys(guess for guess in guesses if guess and not _is_page(start))


def _named(url: str, disposition: str) -> str:
    """The type that the name of a file tells."""
    found = _FILE_NAME.search(disposition)
    path = url.partition("#")[0].partition("?")[0]
    for name in (found[1] if found else "", path):
        for ending, mime in _NAMES.items():
            if name.strip().lower().endswith(ending):
                return mime
    return ""


def _start(body: bytes) -> str:
    return body[:_BEGINNING].decode("utf-8", "replace").removeprefix("\ufeff").lstrip()


def _is_page(start: str) -> bool:
    return start[:14].lower().startswith(("<!doctype html", "<html"))


def _is_rdf_xml(start: str) -> bool:
    return start.startswith("<") and "http://www.w3.org/1999/02/22-rdf-syntax-ns#" in start and ":RDF" in start


def _by_content(start: str) -> str:
    """The type that the beginning of a file tells: of each family the one that holds the others."""
    if start[:1] in ("{", "[") and '"@context"' in start:
        return JSON_LD
    if _is_rdf_xml(start):
        return "application/rdf+xml"
    after = start[_end_of_comments(start) :]
    if _DIRECTIVE.match(after):
        return "application/trig"
    return "application/n-quads" if _STATEMENT.match(after) else ""


def _end_of_comments(start: str) -> int:
    found = _COMMENTS.match(start)
    return found.end() if found else 0
