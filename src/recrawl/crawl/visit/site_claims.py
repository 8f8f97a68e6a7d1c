"""Claims of sites about their own changes, from sitemaps and feeds. A date that advances is a signal.

A claim need not be true. The policy learns per host how often a signal was followed by a change, and uses the signals
of a host only if they carry information (algorithms §4). Sitemaps and feeds are parsed within limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

import numpy as np

from recrawl.detect import decoded
from recrawl.errors import InputError
from recrawl.formats.sitemap_feed import (
    FREQUENCIES,
    MAX_BYTES,
    ClaimedPage,
    Sitemap,
    is_json,
    parse_json_feed,
    parse_sitemap,
)
from recrawl.formats.xml_stream import GZIP
from recrawl.model import BoolArray, Capture, FloatArray, IntArray
from recrawl.parse.parse_pool import OverBudgetError, ParsePool
from recrawl.store.store_values import LAST_MODIFIED, ClaimColumns


def sitemap_claims(entries: Sequence[ClaimedPage], pages: IntArray, source: str, time: float) -> ClaimColumns:
    """The claims of a sitemap or feed about these pages, read at ``time`` (seconds since the epoch)."""
    count = len(entries)
    return ClaimColumns(
        pages,
        np.full(count, time),
        [source] * count,
        np.array([-np.inf if entry.lastmod is None else entry.lastmod for entry in entries], np.float64),
        np.array([FREQUENCIES.get(entry.changefreq, 0) for entry in entries], np.int64),
        np.array([-1.0 if entry.priority is None else entry.priority for entry in entries], np.float64),
    )


def news(now: ClaimColumns, before: ClaimColumns) -> BoolArray:
    """Which claims of one source differ from its last claim about the page. O(n log n).

    ``before`` is ordered by page and time; ``now`` has each page once.
    """
    source = now.source[0] if len(now) else ""
    same = np.flatnonzero([one == source for one in before.source])
    page = before.page[same]
    place = np.searchsorted(page, now.page, side="right") - 1
    found = (place >= 0) & (page[np.maximum(place, 0)] == now.page) if len(page) else np.zeros(len(now), np.bool_)
    last = same[np.maximum(place, 0)] if len(page) else np.zeros(len(now), np.int64)
    repeats = found.copy()
    for name in ("lastmod", "changefreq", "priority"):
        said, known = getattr(now, name)[found], getattr(before, name)[last[found]]
        repeats[found] &= np.isclose(said, known, rtol=0.0, atol=1e-6)  # priorities are stored in single precision
    return ~repeats


def signals(claims: ClaimColumns) -> tuple[IntArray, FloatArray]:
    """Pages, and times when a source named a later date of change than before. O(n log n).

    Last-Modified headers come with visits, so they announce nothing. The first date of a page announces nothing either:
    it may be old.
    """
    names, source = np.unique(np.array(claims.source, dtype=object), return_inverse=True)
    outside = names[source] != LAST_MODIFIED if len(names) else np.zeros(0, np.bool_)
    order = np.lexsort((claims.time, source, claims.page))
    order = order[outside[order]]
    page, which, lastmod = claims.page[order], source[order], claims.lastmod[order]
    moved = (page[1:] == page[:-1]) & (which[1:] == which[:-1]) & (lastmod[1:] > lastmod[:-1])
    moved &= np.isfinite(lastmod[:-1])
    rows = order[1:][moved]
    return claims.page[rows], claims.time[rows]


_MOST = 64 * 1024
"""Bytes of a plain file up to which it is cheap to parse."""


async def read_announced(capture: Capture, pool: ParsePool | None) -> Sitemap | str:
    """The content of a sitemap or feed of any kind, or why it cannot be read. The pool parses large ones."""
    if capture.status == HTTPStatus.NOT_MODIFIED:
        return ""
    try:
        return announced(capture) if pool is None or _is_cheap(capture) else await pool.run(announced, capture)
    except (InputError, OverBudgetError) as unreadable:
        return str(unreadable)


def announced(capture: Capture) -> Sitemap:
    """The content of a sitemap or feed of any kind.

    Raises:
        InputError: it is none.
    """
    data = decoded(capture, MAX_BYTES)
    if is_json(data):
        feed = parse_json_feed(data, capture.url)
        return Sitemap(feed.entries(), skipped=feed.skipped, faults=feed.faults)
    return parse_sitemap(data, capture.url)


def _is_cheap(capture: Capture) -> bool:
    """Whether it is short and not compressed."""
    body = capture.raw_body
    return len(body) <= _MOST and not capture.header("content-encoding") and GZIP not in body[:_MOST]
