"""Captures read for what is on them: the evidence that features of pages are made of.

Captures may come from the crawler's own WARC files or from any archive; each is read as the detector reads it. Only
pages that answered with HTML are looks: a redirect, an error or a picture says nothing about links and text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from recrawl.detect.body import html_of, media_type
from recrawl.detect.digest import text_digest
from recrawl.detect.html import read_html
from recrawl.detect.nesting import is_too_costly
from recrawl.detect.version import MAX_READ, body_of, is_html
from recrawl.errors import require
from recrawl.model import Capture
from recrawl.predict.features import Evidence
from recrawl.predict.names import bucket
from recrawl.predict.page_graph import TimedLinks
from recrawl.predict.page_texts import PageTexts
from recrawl.predict.page_versions import PageVersions
from recrawl.predict.text_quality import text_quality
from recrawl.predict.url_features import is_internal
from recrawl.urls import address

_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_OK = 200
KEPT = 20_000
"""Characters kept of a text: what a page is about is said by then."""


@dataclass(frozen=True, slots=True)
class PageContent:
    """What one capture holds."""

    counts: dict[str, float]
    """By the names of the columns of :class:`recrawl.predict.page_versions.PageVersions`."""
    mime: int
    text: str
    digest: bytes
    """Of the text without noise."""
    links: dict[str, bool]
    """Keys of the links, and whether they stay on the site."""


def read_content(capture: Capture) -> PageContent | None:
    """What is on a page; ``None`` if it is none: no answer, an error, a redirect, cut off, not HTML, made to harm."""
    if capture.status != _OK:
        return None
    body, whole = body_of(capture)
    mime = media_type(capture)
    if not whole or len(body) > MAX_READ or not is_html(mime, body):
        return None
    html = html_of(body, capture.header("content-type"))
    if is_too_costly(html):
        return None
    page = read_html(html, capture.url)
    tree = require("selectolax.lexbor", "crawl").LexborHTMLParser(html)
    links = {link.key: is_internal(capture.url, link.url) for link in page.links}
    counts = {
        "content_size": len(body),
        "text_size": len(page.text),
        "text_quality": text_quality(page.text),
        "internal_links": sum(links.values()),
        "external_links": len(links) - sum(links.values()),
        "images": len(tree.css("img")),
        "tables": len(tree.css("table")),
        "emails": len(set(_EMAIL.findall(html.lower()))),
        "has_last_modified": bool(capture.header("last-modified")),
    }
    numbers = {name: float(value) for name, value in counts.items()}
    return PageContent(numbers, bucket(mime), page.text[:KEPT], text_digest(page.text), links)


def page_evidence(
    urls: Mapping[int, str], captures: Iterable[tuple[int, Capture]], *, last_texts: bool = False
) -> Evidence:
    """The evidence of pages, given by id and URL, from captures of them, those of a page in the order of time.

    New links are those that the look before did not have, whole sets compared (paper 004, §5.1). Links to pages that
    are not given are counted but are not in the graph. Memory: the links of the last version of each page, and
    :data:`KEPT` characters of each version; of the last alone with ``last_texts``, for whoever asks of no earlier time.
    """
    ids = np.array(sorted(urls), dtype=np.int64)
    known = {found.key: page for page, url in urls.items() if (found := address(url)) is not None}
    reading = _Reading(known, last_texts)
    before: Capture | None = None
    content: PageContent | None = None
    for page, capture in captures:
        if before is None or not _is_same(before, capture):
            before, content = capture, read_content(capture)
        if content is not None:
            reading.take(page, capture.time, content)
    return Evidence(
        ids, tuple(urls[page] for page in ids.tolist()), reading.versions(), reading.timed_links(), reading.texts()
    )


def _is_same(one: Capture, other: Capture) -> bool:
    """Whether they are one answer, told again: then it need not be read again."""
    bytes_are = one.raw_body is other.raw_body and one.raw_head is other.raw_head
    return bytes_are and (one.url, one.status, one.truncated) == (other.url, other.status, other.truncated)


@dataclass(slots=True)
class _Reading:
    """What was read so far."""

    known: dict[str, int]
    """Pages by key."""
    last_texts: bool
    """Of each page keep the last text alone."""
    page: list[int] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    last: dict[int, PageContent] = field(default_factory=dict)
    open: dict[tuple[int, str], tuple[float, bool]] = field(default_factory=dict)
    """When a link that is there was first seen, and whether it stays on the site."""
    links: list[tuple[int, int, float, float, bool]] = field(default_factory=list)

    def take(self, page: int, time: float, content: PageContent) -> None:
        """One more look at a page."""
        before = self.last.get(page)
        new = {} if before is None else {key: one for key, one in content.links.items() if key not in before.links}
        found = {
            **content.counts,
            "mime": content.mime,
            "changed": before is not None and before.digest != content.digest,
            "new_internal": sum(new.values()),
            "new_external": len(new) - sum(new.values()),
        }
        self.page.append(page)
        self.time.append(time)
        if not self.last_texts:
            self.text.append(content.text)
        for name, value in found.items():
            self.columns.setdefault(name, []).append(float(value))
        for key in (before.links.keys() if before else set()) - content.links.keys():
            self._close(page, key, time)
        for key in (content.links if before is None else new).keys() & self.known.keys():
            self.open[page, key] = time, content.links[key]
        self.last[page] = content

    def _close(self, page: int, key: str, time: float) -> None:
        begun = self.open.pop((page, key), None)
        if begun is not None:
            self.links.append((page, self.known[key], begun[0], time, begun[1]))

    def versions(self) -> PageVersions:
        """All looks; what happened between them nobody knows."""
        return PageVersions.of(self.page, self.time, self.columns)

    def texts(self) -> PageTexts:
        """The texts of all looks, or of the last ones."""
        if not self.last_texts:
            return PageTexts.of(self.page, self.time, self.text)
        when = dict(zip(self.page, self.time, strict=True))  # of equal pages the last stands
        return PageTexts.of(list(when), list(when.values()), [self.last[page].text for page in when])

    def timed_links(self) -> TimedLinks:
        """The links that went, and those that are still there."""
        still = [(page, self.known[key], begun, np.inf, inside) for (page, key), (begun, inside) in self.open.items()]
        rows = [*self.links, *still]
        return TimedLinks(
            np.array([row[0] for row in rows], dtype=np.int64),
            np.array([row[1] for row in rows], dtype=np.int64),
            np.array([row[2] for row in rows], dtype=np.float64),
            np.array([row[3] for row in rows], dtype=np.float64),
            np.array([row[4] for row in rows], dtype=np.bool_),
        )
