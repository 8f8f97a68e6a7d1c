"""Reads captures for their contents: the evidence for the features of pages.

Captures may come from the crawler's own WARC files or from any archive; each is parsed as the change detector does.
Only HTML responses are observations: a redirect, an error or an image says nothing about links and text. The module
reads the first observation of each page, and all observations before a moment, from which the features of that moment
are computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from recrawl.detect.body import html_of, media_type
from recrawl.detect.fingerprint import text_digest
from recrawl.detect.html.html_document import is_too_costly, read_html
from recrawl.detect.version import MAX_READ, MOST_HTML, CostlyError, Effort, body_of, is_html
from recrawl.errors import counted, require
from recrawl.model import Capture, FloatArray, IntArray, Verdict
from recrawl.parse.parse_pool import OverBudgetError, ParsePool
from recrawl.predict.feature_extraction import FeatureEvidence
from recrawl.predict.page_versions import PageTexts, PageVersions, TimedLinks
from recrawl.predict.static_features import bucket, is_internal, text_quality
from recrawl.store.base import CaptureIndex, HistoryStore, Store
from recrawl.store.store_values import REVISIT, CaptureColumns
from recrawl.time import DAY
from recrawl.transfer.listed_captures import captures_in_pieces, chunks_of
from recrawl.transfer.payload_classifier import ReadCapture
from recrawl.urls import address

_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_OK = 200
_TOLD = 5
"""Pages that could not be read and are named."""
KEPT = 20_000
"""Characters of a text that are stored: enough to tell what a page is about."""


@dataclass(frozen=True, slots=True)
class PageContent:
    """The contents of one capture."""

    counts: dict[str, float]
    """By the names of the columns of :class:`recrawl.predict.page_versions.PageVersions`."""
    mime: int
    text: str
    digest: bytes
    """Of the text without noise."""
    links: dict[str, bool]
    """Keys of the links, and whether they stay on the site."""


def read_content(capture: Capture, effort: Effort = Effort.ALL) -> PageContent | None:
    """The contents of a page; ``None`` if it is none: no response, an error, a redirect, truncated, not HTML, hostile.

    Raises:
        CostlyError: it cannot be parsed cheaply, and ``effort`` allows nothing else.
    """
    if capture.status != _OK:
        return None
    body, whole = body_of(capture, effort)
    mime = media_type(capture)
    if not whole or len(body) > MAX_READ or not is_html(mime, body):
        return None
    if effort is Effort.CHEAP and len(body) > MOST_HTML:
        raise CostlyError
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


class ContentReader:
    """Parses archived pages within limits, in a pool unless that is cheap; as :func:`read_content` does."""

    def __init__(self, pool: ParsePool) -> None:
        self._pool = pool
        self.unread: list[tuple[str, str]] = []
        """URL and reason of the first pages that could not be read."""
        self.failures = 0
        """Number of pages that could not be read."""

    def __call__(self, capture: Capture) -> PageContent | None:
        """The contents of a page; ``None`` also where its limits are exceeded, or our own code fails. Blocks."""
        try:
            with suppress(CostlyError):
                return read_content(capture, Effort.CHEAP)
            return self._pool.call(read_content, capture)
        except Exception as error:  # noqa: BLE001 - whatever happened, only this page is concerned
            self.failures += 1
            if self.failures <= _TOLD:
                self.unread.append((capture.url, str(error) if isinstance(error, OverBudgetError) else repr(error)))
            return None

    def sentences(self) -> Iterator[str]:
        """What was not read, in sentences."""
        if self.failures:
            yield f"{counted(self.failures, 'copy', 'copies')} of pages could not be read:"
            yield from (f"  {url}: {reason}" for url, reason in self.unread)
            if self.failures > len(self.unread):
                yield f"  and {self.failures - len(self.unread):,} more"


def page_evidence(
    urls: Mapping[int, str],
    captures: Iterable[tuple[int, Capture]],
    *,
    last_texts: bool = False,
    read: Callable[[Capture], PageContent | None] = read_content,
) -> FeatureEvidence:
    """The evidence of pages, given by id and URL, from captures of them, those of a page in the order of time.

    New links are those that the observation before did not have, whole sets compared (paper 004, §5.1). Links to pages
    that are not given are counted but are not in the graph. Memory: the links of the last version of each page, and
    :data:`KEPT` characters of each version; of the last alone with ``last_texts``, if no earlier time is needed.
    ``read`` parses a capture: a :class:`ContentReader` for untrusted captures.
    """
    ids = np.array(sorted(urls), dtype=np.int64)
    known = {found.key: page for page, url in urls.items() if (found := address(url)) is not None}
    reading = _ContentReading(known, last_texts)
    before: Capture | None = None
    content: PageContent | None = None
    for page, capture in captures:
        if before is None or not _is_same(before, capture):
            before, content = capture, read(capture)
        if content is not None:
            reading.take(page, capture.time, content)
    return FeatureEvidence(
        ids, tuple(urls[page] for page in ids.tolist()), reading.versions(), reading.timed_links(), reading.texts()
    )


def _is_same(one: Capture, other: Capture) -> bool:
    """Whether they are the same response: then it need not be parsed again."""
    bytes_are = one.raw_body is other.raw_body and one.raw_head is other.raw_head
    return bytes_are and (one.url, one.status, one.truncated) == (other.url, other.status, other.truncated)


@dataclass(slots=True)
class _ContentReading:
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
        """Add one observation of a page."""
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
        """All observations; what happened between them is unknown."""
        return PageVersions.of(self.page, self.time, self.columns)

    def texts(self) -> PageTexts:
        """The texts of all observations, or of the last ones."""
        if not self.last_texts:
            return PageTexts.of(self.page, self.time, self.text)
        when = dict(zip(self.page, self.time, strict=True))  # of equal pages the last stands
        return PageTexts.of(list(when), list(when.values()), [self.last[page].text for page in when])

    def timed_links(self) -> TimedLinks:
        """The links that were removed, and those that are still there."""
        still = [(page, self.known[key], begun, np.inf, inside) for (page, key), (begun, inside) in self.open.items()]
        rows = [*self.links, *still]
        return TimedLinks(
            np.array([row[0] for row in rows], dtype=np.int64),
            np.array([row[1] for row in rows], dtype=np.int64),
            np.array([row[2] for row in rows], dtype=np.float64),
            np.array([row[3] for row in rows], dtype=np.float64),
            np.array([row[4] for row in rows], dtype=np.bool_),
        )


_CAPTURES_AT_ONCE, _PAGES_AT_ONCE = 20_000, 2_000
_TRIES = 3
"""Captures that are read of a page until one is a page of text."""
LATE = DAY
"""Seconds after the first observation until which a capture still shows what it saw."""


def first_observations(  # noqa: PLR0913 - which pages, how they are read, and callbacks
    store: CaptureIndex,
    read: ReadCapture,
    pages: IntArray,
    first: FloatArray,
    progress: Callable[[int], None] = lambda _pages: None,
    *,
    content_of: Callable[[Capture], PageContent | None] = read_content,
) -> PageVersions:
    """The first observation of each of these pages (ascending ids), made at ``first``; none without available bytes.

    O(pages) records of the archive. ``progress`` receives the number of pages done. ``content_of`` parses a capture.
    """
    page: list[int] = []
    time: list[float] = []
    found: list[PageContent] = []
    for some in chunks_of(store, pages, _CAPTURES_AT_ONCE, _PAGES_AT_ONCE):
        latest = first[np.searchsorted(pages, some)] + LATE
        captures = _earliest(store, some)
        for row in _worth_reading(captures, some, latest):
            if page and page[-1] == captures.page[row]:
                continue
            capture = read(captures.warc_file[row], int(captures.warc_offset[row]))
            content = None if capture is None else content_of(capture)
            if content is not None:
                page.append(int(captures.page[row]))
                time.append(float(captures.time[row]))
                found.append(content)
        progress(len(some))
    names = found[0].counts if found else ()
    columns = {name: np.array([one.counts[name] for one in found]) for name in names}
    return PageVersions.of(page, time, columns | ({"mime": np.array([one.mime for one in found])} if found else {}))


def _earliest(store: CaptureIndex, pages: IntArray) -> CaptureColumns:
    """The captures of these pages; of a page with very many, the first ones."""
    if len(pages) == 1:
        return store.captures_of_page(int(pages[0]), after=-np.inf, limit=4 * _TRIES)
    return store.capture_columns(pages)


def _worth_reading(captures: CaptureColumns, pages: IntArray, latest: FloatArray) -> list[int]:
    """The first few rows of each page that may be a page of text, not later than these times, by page and time."""
    repeats = np.array([mime == REVISIT for mime in captures.mime], np.bool_)
    in_time = captures.time <= latest[np.searchsorted(pages, captures.page)]
    rows = np.flatnonzero((captures.status == _OK) & ~repeats & in_time)
    nth = np.arange(len(rows)) - np.searchsorted(captures.page[rows], captures.page[rows])
    return [int(row) for row in rows[nth < _TRIES]]


def observations_before(
    store: Store,
    read: ReadCapture,
    pages: IntArray,
    as_of: float,
    progress: Callable[[int], None] = lambda _pages: None,
) -> Iterator[tuple[int, Capture]]:
    """Observations of these pages (ascending ids) before a time, by page and time; later ones are not even read.

    An unchanged observation, from a visit or a revisit record, is the capture before it with a later time. Captures
    without available bytes are left out, and so are unchanged observations before the first capture. O(captures)
    records of the archive. ``progress`` receives the number of pages done.
    """
    for some in chunks_of(store, pages, _CAPTURES_AT_ONCE, _PAGES_AT_ONCE):
        reading = _CaptureReading(read, _unchanged(store, some, as_of))
        for captures in captures_in_pieces(store, some, _CAPTURES_AT_ONCE):
            for row in np.flatnonzero(captures.time < as_of).tolist():
                yield from reading.observation(captures, row)
        yield from reading.rest()
        progress(len(some))


@dataclass(frozen=True, slots=True)
class _CaptureReading:
    """Captures as they are read, page by page in the order of time, with the observations between them."""

    read: ReadCapture
    unchanged: dict[int, list[float]]
    """Descending times of unchanged observations; removed as they are yielded."""
    last: dict[int, tuple[bytes, Capture]] = field(default_factory=dict)
    """The last capture of each page, with its digest."""
    place: dict[tuple[int, bytes], tuple[str, int]] = field(default_factory=dict)
    """Where the bytes of a page with a digest lie."""

    def observation(self, captures: CaptureColumns, row: int) -> Iterator[tuple[int, Capture]]:
        """One capture, after the observations before it."""
        page, time, digest = int(captures.page[row]), float(captures.time[row]), captures.digest[row]
        yield from self._again(page, time)
        if captures.mime[row] == REVISIT:
            found = self._repeated(page, digest)
        else:
            at = captures.warc_file[row], int(captures.warc_offset[row])
            self.place.setdefault((page, digest), at)
            found = self.read(*at)
        if found is not None:
            self.last[page] = digest, found
            yield page, replace(found, time=time)

    def rest(self) -> Iterator[tuple[int, Capture]]:
        """The observations after the last capture of each page."""
        for page in self.unchanged:
            yield from self._again(page, np.inf)

    def _repeated(self, page: int, digest: bytes) -> Capture | None:
        """The original of a revisit record: the capture before it, or an earlier one of the same digest."""
        known, before = self.last.get(page, (b"", None))
        if before is not None and digest in {b"", known}:
            return before
        at = self.place.get((page, digest))
        return None if at is None else self.read(*at)

    def _again(self, page: int, until: float) -> Iterator[tuple[int, Capture]]:
        """The last capture again for each observation before ``until``."""
        times = self.unchanged.get(page, [])
        while times and times[-1] <= until:
            time = times.pop()
            if page in self.last and time < until:
                yield page, replace(self.last[page][1], time=time)


def _unchanged(store: HistoryStore, pages: IntArray, as_of: float) -> dict[int, list[float]]:
    """Times of visits that found a page unchanged, before a time: descending, by page."""
    visits = store.visits(pages=pages, until=as_of)
    rows = np.flatnonzero((visits.verdict == Verdict.UNCHANGED) & (visits.time < as_of))
    page, time = visits.page[rows], visits.time[rows]
    ends = np.append(np.flatnonzero(np.diff(page)) + 1, len(page))
    parts: list[FloatArray] = np.split(time, ends[:-1]) if len(page) else []
    return {int(page[end - 1]): part[::-1].tolist() for end, part in zip(ends.tolist(), parts, strict=False)}
