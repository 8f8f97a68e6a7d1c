"""What was on pages when they were first looked at: one record of the archive read again for each page."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recrawl.crawl.importing_chunks import chunks_of
from recrawl.crawl.page_contents import PageContent, read_content
from recrawl.crawl.payloads import ReadCapture
from recrawl.model import FloatArray, IntArray
from recrawl.predict.page_versions import PageVersions
from recrawl.store.base import Store
from recrawl.store.values import REVISIT, Captures
from recrawl.time import DAY

_CAPTURES_AT_ONCE, _PAGES_AT_ONCE = 20_000, 2_000
_OK = 200
_TRIES = 3
"""Captures that are read of a page until one turns out to be a page of text."""
LATE = DAY
"""Seconds after the first look until which a capture still shows what it saw."""


def first_looks(
    store: Store,
    read: ReadCapture,
    pages: IntArray,
    first: FloatArray,
    progress: Callable[[int], None] = lambda _pages: None,
) -> PageVersions:
    """One look at each of these pages (ascending ids), first looked at at ``first``; none where no bytes are at hand.

    O(pages) records of the archive. ``progress`` is told how many pages were done.
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
            content = None if capture is None else read_content(capture)
            if content is not None:
                page.append(int(captures.page[row]))
                time.append(float(captures.time[row]))
                found.append(content)
        progress(len(some))
    names = found[0].counts if found else ()
    columns = {name: np.array([one.counts[name] for one in found]) for name in names}
    return PageVersions.of(page, time, columns | ({"mime": np.array([one.mime for one in found])} if found else {}))


def _earliest(store: Store, pages: IntArray) -> Captures:
    """The captures of these pages; of a page with very many, the first ones."""
    if len(pages) == 1:
        return store.captures_of_page(int(pages[0]), after=-np.inf, limit=4 * _TRIES)
    return store.capture_columns(pages)


def _worth_reading(captures: Captures, pages: IntArray, latest: FloatArray) -> list[int]:
    """The first few rows of each page that may be a page of text, not later than these times, by page and time."""
    repeats = np.array([mime == REVISIT for mime in captures.mime], np.bool_)
    in_time = captures.time <= latest[np.searchsorted(pages, captures.page)]
    rows = np.flatnonzero((captures.status == _OK) & ~repeats & in_time)
    nth = np.arange(len(rows)) - np.searchsorted(captures.page[rows], captures.page[rows])
    return [int(row) for row in rows[nth < _TRIES]]
