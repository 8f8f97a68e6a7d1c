"""A version: the part of a response that is compared with the response before.

    response                            compared as          a difference is
    HTML                                text without noise   TEXT
    JSON                                sorted keys          DATA
    CSV, XML, lines of JSON             line by line         DATA
    Turtle, RDF/XML, JSON-LD, similar   as a graph           DATA
    results of SPARQL queries           as a bag of rows     DATA
    other text                          text without noise   TEXT
    a redirect                          its target           TEXT
    anything else; too long; too deep;  bytes                CONTENT
      broken

RDF that cannot be parsed is compared line by line, JSON-LD as JSON without an order of arrays. A response that may be
RDF by its name or its first bytes, although its type is plain text or missing, is RDF if it parses as RDF.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from recrawl.detect.body import MAX_DECODED, decoded, html_of, media_type, text_of, unchunked
from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.detect.data.canonical_data import (
    DataUnits,
    canonical_json,
    canonical_lines,
    canonical_table,
    canonical_xml,
    json_units,
    line_units,
    xml_units,
)
from recrawl.detect.data.rdf import RDF, RESULTS, RdfDocument, canonical_results, rdf_guesses, read_rdf
from recrawl.detect.fingerprint import NO_PARTS, Fingerprint, digest, folded, text_digest
from recrawl.detect.html.html_document import Document, embeds_of, forbids_following, is_too_costly, read_html
from recrawl.detect.noise.noise_keys import paths_in, without_largest
from recrawl.detect.noise.text_noise import without_noise
from recrawl.detect.text.text_parts import PageText, PartedText, text_in_lines
from recrawl.errors import InputError
from recrawl.model import Capture, ChangeKind
from recrawl.model.arrays import plain_value
from recrawl.urls import Address, address

_HTML = ("text/html", "application/xhtml+xml")
_TABLES = ("text/csv", "text/tab-separated-values")
_XML = ("application/xml", "text/xml")
_BY_LINES = ("application/x-ndjson",)


MAX_READ = 16 * 1024 * 1024
"""Bytes of a body that is read for its text, links or data: a tree of a page takes many times its length."""
_ANY = ChangeCriteria()
MOST_HTML, MOST_DATA = 256 * 1024, 64 * 1024
"""Bytes of a decoded body up to which it is cheap to read: HTML takes at most 0.4 s a MB, other text up to 0.8 s."""


class Effort(enum.Enum):
    """How much may be done to read an answer."""

    ALL = "all"
    """Whatever it takes, within the limits of this package."""
    CHEAP = "cheap"
    """Only what takes some tenths of a second at worst; raises :class:`CostlyError` where that is not enough."""
    BYTES = "bytes"
    """Nothing: the answer is classified by the bytes that came."""


class CostlyError(Exception):
    """An answer takes more than a cheap check: it is to be read where it can harm nobody, or not at all."""


@plain_value
class Version:
    """Digests, parts and links of one answer."""

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
    content: Callable[[], PartedText | DataUnits] | None = None
    """Gives the comparable form in parts, which only a version that differs needs; ``None`` where there is none."""
    document: Document | None = None
    """The page, if it is HTML."""
    shunned: tuple[Address, ...] = ()
    """Links that were passed over because the page or its server asks for it."""
    feeds: tuple[str, ...] = ()
    """Absolute URLs of the feeds that the page names."""
    embeds: tuple[str, ...] = ()
    """Absolute URLs of what a browser loads to show the page, if that is wanted."""
    link_keys: frozenset[str] = frozenset()
    """SURT keys of the links."""

    def fingerprint(self, capture: Capture, standards: ChangeCriteria) -> Fingerprint | None:
        """What to keep of the version; parts that are noise do not count in how much changed. O(length)."""
        if self.content is None:
            return None
        content = self.content()
        parts = content.parts()
        sample = content.sample(parts, standards.mask, use_kernels=standards.use_kernels)
        return Fingerprint(capture.time, standards.rules.of(capture.url).number, sample, *folded(parts))

    def allowed_mask(self, standards: ChangeCriteria) -> frozenset[int]:
        """The mask without what would hide most of this version's text (``standards.most_masked``). O(length)."""
        mask = standards.mask
        if not mask or self.content is None or standards.most_masked >= 1.0:
            return mask
        content = self.content()
        parts = content.parts()
        if paths_in(mask).isdisjoint({*parts.path, *parts.template}):
            return mask
        return without_largest(parts, list(map(len, content.said)), mask, standards.most_masked)

    def packed(self, capture: Capture, standards: ChangeCriteria) -> bytes:
        """The same to be stored at once, empty if there is nothing to keep: parts are not made where nobody asks."""
        content = self.content() if self.content else None
        columns = content.columns() if content is not None and not standards.mask else None
        if content is None or columns is None:
            kept = self.fingerprint(capture, standards)
            return kept.pack() if kept else b""
        sample = content.sample(NO_PARTS, standards.mask, use_kernels=standards.use_kernels)
        rules = standards.rules.of(capture.url).number
        return Fingerprint(capture.time, rules, sample, columns=columns).pack()


def body_of(capture: Capture, effort: Effort = Effort.ALL) -> tuple[bytes, bool]:
    """The decoded body and True, or, if it is cut, broken or not to be decoded, the bytes we have and False.

    Raises:
        CostlyError: it cannot be decoded cheaply, and nothing else is wanted.
    """
    if not capture.truncated and effort is not Effort.BYTES:
        cheaply = effort is Effort.CHEAP and bool(capture.header("content-encoding"))
        try:
            return decoded(capture, MOST_HTML if cheaply else MAX_DECODED), True
        except InputError as error:
            if cheaply:
                raise CostlyError from error
            # Said by the second value: the verdict then rests on the bytes.
    return unchunked(capture), False


def redirect_version(capture: Capture) -> Version:
    """A redirect, whose text is its target. Without a valid one the target is empty."""
    location = capture.header("location")
    target = address(location, base=capture.url) if location else None
    to = target.url if target else ""
    told = f"→ {without_noise(to)}"
    return Version(digest(to.encode()), "", text_digest(told), ChangeKind.TEXT, (), to, lambda: PageText([0], [told]))


def page_version(  # noqa: PLR0913 - what was made of the capture, and how to read it
    capture: Capture,
    body: bytes,
    named: bytes,
    *,
    whole: bool,
    standards: ChangeCriteria = _ANY,
    effort: Effort = Effort.ALL,
) -> Version:
    """A page, from its capture and what :func:`body_of` made of it; ``named`` is the digest of the body.

    Raises:
        CostlyError: it cannot be read cheaply, and nothing else is wanted.
    """
    mime, content_type = media_type(capture), capture.header("content-type")
    if not whole or len(body) > MAX_READ:
        return Version(named, mime, links=None)
    if effort is Effort.CHEAP and _is_costly(capture, mime, body):
        raise CostlyError
    if is_html(mime, body):
        html = html_of(body, content_type)
        if is_too_costly(html):
            return Version(named, mime, links=None)
        return _html_version(capture, html, named, standards)
    rules = standards.rules.of(capture.url)
    found = comparable_answer(capture, body, row_order=standards.row_order)
    if found is None:
        return Version(named, mime)
    if rules.texts:
        kept = rules.cut(found.content())
        found = found._replace(form="\n".join(kept.said), content=lambda: kept)
    links = found.links
    shunned: tuple[Address, ...] = ()
    if links and standards.obeys_nofollow and forbids_following(capture, standards.agent):
        links, shunned = (), links
    return Version(
        named,
        mime,
        text_digest(found.form),
        found.kind,
        links,
        content=found.content,
        shunned=shunned,
        link_keys=frozenset(link.key for link in links or ()),
    )


def _html_version(capture: Capture, html: str, named: bytes, standards: ChangeCriteria) -> Version:
    page = read_html(html, capture.url, standards.rules.of(capture.url), use_kernels=standards.use_kernels)
    passed_over = frozenset[str]()
    if standards.obeys_nofollow:
        passed_over = page.link_keys if forbids_following(capture, standards.agent) else page.nofollow
    return Version(
        named,
        media_type(capture),
        digest(page.parts.written()),
        ChangeKind.TEXT,
        tuple(link for link in page.links if link.key not in passed_over) if passed_over else page.links,
        content=lambda: page.parts,
        document=page,
        shunned=tuple(link for link in page.links if link.key in passed_over) if passed_over else (),
        feeds=page.feeds,
        embeds=tuple(one.url for one in embeds_of(html, capture.url)) if standards.takes_embeds else (),
        link_keys=page.link_keys - passed_over if passed_over else page.link_keys,
    )


def _is_costly(capture: Capture, mime: str, body: bytes) -> bool:
    """Whether a body takes more than a cheap check. Libraries that parse RDF can end the whole process."""
    if is_html(mime, body):
        return len(body) > MOST_HTML
    if any(_guesses(capture, mime, body)):
        return True
    return is_comparable(mime) and (len(body) > MOST_DATA or mime in RESULTS)


def _guesses(capture: Capture, mime: str, body: bytes) -> Iterator[str]:
    """Media types of RDF that an answer may have."""
    return rdf_guesses(mime, capture.url, capture.header("content-disposition"), body)


def is_html(mime: str, body: bytes) -> bool:
    """Whether a body is read as HTML: by its media type, or by its content if it has no media type."""
    return mime in _HTML or (not mime and _looks_like_html(body))


def _looks_like_html(body: bytes) -> bool:
    return body[:512].lstrip(b"\xef\xbb\xbf\t\n\r ")[:14].lower().startswith((b"<!doctype html", b"<html"))


def is_comparable(mime: str) -> bool:
    """Whether more than the bytes of such an answer can be compared."""
    return mime.startswith("text/") or mime.endswith(("json", "+xml")) or mime in RDF or mime in _XML


class Comparable(NamedTuple):
    """What spellings of one content have in common."""

    form: str
    """As one text."""
    content: Callable[[], PageText | DataUnits]
    """Gives it in parts."""
    kind: ChangeKind
    """The kind of change if it differs."""
    links: tuple[Address, ...] | None = ()
    """What the data links to; ``None`` if it could not be read."""


def comparable_answer(capture: Capture, body: bytes, *, row_order: bool = True) -> Comparable | None:
    """The comparable form of an answer that is no HTML, from its decoded body; ``None`` if its bytes are all there is.

    What may be RDF, whatever the server calls it, is read as RDF; if it is none, as what it is called.
    """
    mime, content_type = media_type(capture), capture.header("content-type")
    for guess in _guesses(capture, mime, body):
        try:
            found = read_rdf(text_of(body, content_type), guess, capture.url)
        except InputError:
            continue
        if found.form or mime in RDF:
            return _of_graph(found)
    if not is_comparable(mime):
        return None
    try:
        return comparable(text_of(body, content_type), mime, capture.url, row_order=row_order)
    except InputError:
        return None


def _of_graph(found: RdfDocument) -> Comparable:
    units = json_units if found.form[:1] in ("{", "[") else line_units
    return Comparable(found.form, partial(units, found.form), ChangeKind.DATA, found.links)


def comparable(text: str, mime: str, url: str, *, row_order: bool = True) -> Comparable:  # noqa: PLR0911 - a form each
    """The comparable form of an answer that is no HTML.

    Raises:
        InputError: the text does not match its media type.
    """
    if mime in RDF:
        try:
            return _of_graph(read_rdf(text, mime, url))
        except InputError:
            form = canonical_lines(text)
            return Comparable(form, partial(line_units, form), ChangeKind.DATA, None)
    if mime in RESULTS:
        form = canonical_results(text, mime, url)
        return Comparable(form, partial(line_units, form), ChangeKind.DATA)
    if mime == "application/json" or mime.endswith("+json"):
        form = canonical_json(text, list_order=row_order)
        return Comparable(form, partial(json_units, form), ChangeKind.DATA)
    if mime in _TABLES or mime in _BY_LINES:
        form = canonical_table(text, row_order=row_order)
        return Comparable(form, partial(line_units, form), ChangeKind.DATA)
    if mime in _XML or mime.endswith("+xml"):
        form = canonical_xml(text)
        return Comparable(form, partial(xml_units, form), ChangeKind.DATA)
    told = text_in_lines(text, without_noise)
    return Comparable(" ".join(told.said), lambda: told, ChangeKind.TEXT)
