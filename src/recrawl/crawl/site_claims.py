"""What sites say of their own changes: kept as claims, and heard as signals where a date moves on.

A claim is no truth. The policy learns host by host how often a signal was followed by a change, and hears those of a
host only if they carry information (algorithms §4).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.formats.claims import FREQUENCIES, Entry
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.store.values import Claims

LAST_MODIFIED = "last-modified"
"""Source of a claim that a page made itself, in the header of this name."""


def sitemap_claims(entries: Sequence[Entry], pages: IntArray, source: str, time: float) -> Claims:
    """What the entries of a sitemap or feed claim of these pages, read at ``time`` (seconds since the epoch)."""
    count = len(entries)
    return Claims(
        pages,
        np.full(count, time),
        [source] * count,
        np.array([-np.inf if entry.lastmod is None else entry.lastmod for entry in entries], np.float64),
        np.array([FREQUENCIES.get(entry.changefreq, 0) for entry in entries], np.int64),
        np.array([-1.0 if entry.priority is None else entry.priority for entry in entries], np.float64),
    )


def news(now: Claims, before: Claims) -> BoolArray:
    """Which claims of one source say something else than that source said last of the page. O(n log n).

    ``before`` is ordered by page and time; a page is claimed of once in ``now``.
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
        repeats[found] &= np.isclose(said, known, rtol=0.0, atol=1e-6)  # priorities are kept in single precision
    return ~repeats


def signals(claims: Claims) -> tuple[IntArray, FloatArray]:
    """Pages, and when a source named a later date of change than it had before. O(n log n).

    Last-Modified headers are heard during visits, so they announce nothing. The first date of a page announces nothing
    either: it may be old.
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
