"""A survey of the captured pages of a store with their page requisites: all of them, or a sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.assess.composite_coherence import Composites, CompositeSummary, summary_json, summary_of
from recrawl.detect import ChangeCriteria
from recrawl.detect.digest_verdicts import outcomes_of
from recrawl.formats.warc.archived_bytes import ArchivedBytes
from recrawl.model import IntArray, Outcome
from recrawl.parse.parse_pool import ParseLimits
from recrawl.parse.pooled_classification import new_parse_pool
from recrawl.store.base import CaptureIndex, Store
from recrawl.store.store_values import REVISIT, CaptureColumns
from recrawl.transfer.composite_reader import CapturedPage, CompositeReader
from recrawl.transfer.listed_captures import chunks_of

MOST_PAGES = 2_000
"""Default number of captured pages that are assessed."""
MOST_OF_A_PAGE = 50
"""Captures of one page that are assessed, of a large archive."""
_JUDGED_AT_ONCE = 200
_ROOTS_AT_ONCE = 500
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_SPREADS = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose products spread ids evenly (Knuth, TAOCP 6.4)."""


@dataclass(frozen=True, slots=True)
class CompositeFindings:
    """The findings about captured pages with their requisites."""

    found: Composites
    urls: list[str]
    """Of each row."""
    unread: int
    """Captured pages that could not be read."""
    whole: bool
    """Whether all captured pages were assessed; else a sample."""

    def summary(self) -> CompositeSummary:
        """All of them together."""
        return summary_of(self.found)


def composites_of(
    store: Store,
    pages: IntArray,
    archived: ArchivedBytes,
    most: int = MOST_PAGES,
    *,
    limits: ParseLimits | None = None,
) -> CompositeFindings | None:
    """Assess about ``most`` captures of these pages with their requisites; ``None`` if none can be read."""
    if most <= 0:
        return None
    chosen = captured_pages(store, pages, most, archived.has)
    # Copies of one content are read once if they come together.
    roots = sorted(chosen.roots, key=lambda root: (root.file, root.offset, root.time))
    parts: list[Composites] = []
    with new_parse_pool(limits or ParseLimits(), ChangeCriteria()) as pool:
        reader = CompositeReader(store, archived.read, archived.has, pool)
        parts = [reader.judge(roots[at : at + _JUDGED_AT_ONCE]) for at in range(0, len(roots), _JUDGED_AT_ONCE)]
    if not any(len(part) for part in parts):
        return None
    found = Composites.joined(parts)
    url_of = {root.page: root.url for root in roots}
    urls = [url_of[page] for page in found.page.tolist()]
    whole = chosen.looked_through == len(pages) and len(roots) == chosen.captures
    return CompositeFindings(found, urls, len(roots) - len(found), whole)


def composite_facts(composed: CompositeFindings | None) -> dict[str, Any] | None:
    """As plain values; ``None`` if nothing is known."""
    if composed is None:
        return None
    return {**summary_json(composed.summary()), "sample": not composed.whole, "unread": composed.unread}


@dataclass(frozen=True, slots=True)
class ChosenPages:
    """Captured pages that are assessed for all."""

    roots: list[CapturedPage]
    captures: int
    """Captures of HTML pages among the pages that were searched."""
    looked_through: int
    """Pages that were searched, of all requested."""


def captured_pages(store: CaptureIndex, pages: IntArray, most: int, has: Callable[[str], bool]) -> ChosenPages:
    """Captures of these pages that are HTML and have bytes: all of them, or about ``most``.

    Of many, pages are taken in a fixed random order, each with up to :data:`MOST_OF_A_PAGE` of its captures, evenly
    spread. O(captures of the searched pages).
    """
    mixed = (pages.astype(np.uint64) * _SPREADS) >> np.uint64(32)
    order = pages[np.argsort(mixed, kind="stable")]
    files: dict[str, bool] = {}

    def at_hand(file: str) -> bool:
        if file not in files:
            files[file] = has(file)
        return files[file]

    roots: list[CapturedPage] = []
    captures = looked_through = 0
    for some in chunks_of(store, order, _ROOTS_AT_ONCE, _ROOTS_AT_ONCE):
        if len(roots) >= most:
            break
        looked_through += len(some)
        ids = np.sort(some)
        url_of = dict(zip(ids.tolist(), store.urls(ids), strict=True))
        listed = store.capture_columns(ids)
        places = _places_of_html(listed, at_hand)
        captures += len(places)
        by_page: dict[int, list[CapturedPage]] = {}
        for row, (file, offset) in places.items():
            page = int(listed.page[row])
            root = CapturedPage(page, url_of[page], float(listed.time[row]), file, offset)
            by_page.setdefault(page, []).append(root)
        for of_page in by_page.values():
            step = max(1, math.ceil(len(of_page) / MOST_OF_A_PAGE))
            roots += of_page[::step]
    return ChosenPages(roots, captures, looked_through)


def _places_of_html(listed: CaptureColumns, at_hand: Callable[[str], bool]) -> dict[int, tuple[str, int]]:
    """Rows of captures that show an HTML page, and where its bytes lie."""
    outcome = outcomes_of(listed.status)
    held: dict[tuple[int, bytes], tuple[str, int]] = {}
    found: dict[int, tuple[str, int]] = {}
    for row, (mime, file) in enumerate(zip(listed.mime, listed.warc_file, strict=True)):
        if (
            mime in _HTML
            and outcome[row] == Outcome.FETCHED
            and file
            and listed.warc_offset[row] >= 0
            and at_hand(file)
        ):
            found[row] = file, int(listed.warc_offset[row])
            held[int(listed.page[row]), listed.digest[row]] = found[row]
    for row, mime in enumerate(listed.mime):
        place = held.get((int(listed.page[row]), listed.digest[row]))
        # A revisit record, or a capture that was not fetched from its archive since these bytes are the same.
        repeats = mime == REVISIT or (mime in _HTML and row not in found)
        if repeats and place is not None and listed.digest[row] and outcome[row] < Outcome.REDIRECTED:
            found[row] = place
    return dict(sorted(found.items()))
