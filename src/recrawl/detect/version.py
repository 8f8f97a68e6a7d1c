"""A version: what of an answer is compared with the answer before it.

    answer                              compared as          a difference is
    HTML                                text without noise   TEXT
    JSON                                sorted keys          DATA
    CSV, XML, lines of JSON             line by line         DATA
    Turtle, RDF/XML and their kin       as a graph           DATA
    other text                          text without noise   TEXT
    a redirect                          its target           TEXT
    anything else; too long; broken     bytes                CONTENT

RDF that cannot be parsed is compared line by line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recrawl.detect.body import decoded, media_type, text_of, unchunked
from recrawl.detect.data import canonical_json, canonical_lines
from recrawl.detect.digest import digest, text_digest
from recrawl.detect.html import read_html
from recrawl.detect.noise import without_noise
from recrawl.detect.rdf import canonical_rdf
from recrawl.errors import InputError
from recrawl.model import Capture, ChangeKind
from recrawl.urls import Address, address

_HTML = ("text/html", "application/xhtml+xml")
_RDF = (
    "application/n-quads",
    "application/n-triples",
    "application/rdf+xml",
    "application/trig",
    "text/n3",
    "text/turtle",
)
_BY_LINES = ("application/x-ndjson", "application/xml", "text/csv", "text/tab-separated-values", "text/xml")


MAX_READ = 16 * 1024 * 1024
"""Bytes of a body that is read for its text, links or data: a tree of a page takes many times its length."""


@dataclass(frozen=True, slots=True)
class Version:
    """Digests and links of one answer."""

    digest: bytes
    """Of the decoded body, or of the bytes we have where it cannot be decoded."""
    mime: str = ""
    text_digest: bytes = b""
    """Of the comparable form; empty where only the bytes can be compared."""
    kind: ChangeKind = ChangeKind.CONTENT
    """The kind of change if that digest differs."""
    links: tuple[Address, ...] | None = ()
    """Outlinks; ``None`` if the body could not be read."""
    redirect_to: str = ""


def body_of(capture: Capture) -> tuple[bytes, bool]:
    """The decoded body and True, or, if it is cut or broken, the bytes we have and False."""
    if not capture.truncated:
        try:
            return decoded(capture), True
        except InputError:
            pass  # Said by the second value: the verdict then rests on the bytes.
    return unchunked(capture), False


def redirect_version(capture: Capture) -> Version:
    """A redirect, whose text is its target. Without a valid one the target is empty."""
    location = capture.header("location")
    target = address(location, base=capture.url) if location else None
    to = target.url if target else ""
    return Version(digest(to.encode()), "", text_digest(f"→ {without_noise(to)}"), ChangeKind.TEXT, (), to)


def page_version(capture: Capture, body: bytes, named: bytes, *, whole: bool) -> Version:
    """A page, from its capture and what :func:`body_of` made of it; ``named`` is the digest of the body."""
    mime, content_type = media_type(capture), capture.header("content-type")
    if not whole or len(body) > MAX_READ:
        return Version(named, mime, links=None)
    if is_html(mime, body):
        page = read_html(text_of(body, content_type), capture.url)
        return Version(named, mime, text_digest(page.text), ChangeKind.TEXT, page.links)
    canonical, kind = canonical_form(mime)
    if canonical is None:
        return Version(named, mime)
    try:
        return Version(named, mime, text_digest(canonical(text_of(body, content_type), capture.url)), kind)
    except InputError:
        return Version(named, mime)


def is_html(mime: str, body: bytes) -> bool:
    """Whether a body is read as HTML: it is called so, or called nothing and looks like it."""
    return mime in _HTML or (not mime and _looks_like_html(body))


def _looks_like_html(body: bytes) -> bool:
    return body[:512].lstrip(b"\xef\xbb\xbf\t\n\r ")[:14].lower().startswith((b"<!doctype html", b"<html"))


def canonical_form(mime: str) -> tuple[Callable[[str, str], str] | None, ChangeKind]:
    """What makes one text of the spellings of one content, from the text and its URL."""
    if mime in _RDF:
        return lambda text, url: _graph_or_lines(text, mime, url), ChangeKind.DATA
    if mime == "application/json" or mime.endswith("+json"):
        return lambda text, _url: canonical_json(text), ChangeKind.DATA
    if mime in _BY_LINES or mime.endswith("+xml"):
        return lambda text, _url: canonical_lines(text), ChangeKind.DATA
    if mime.startswith("text/"):
        return lambda text, _url: without_noise(text), ChangeKind.TEXT
    return None, ChangeKind.CONTENT


def _graph_or_lines(text: str, mime: str, url: str) -> str:
    try:
        return canonical_rdf(text, mime, url)
    except InputError:
        return canonical_lines(text)
