"""Pages in portions of so many captures, since a page may have one capture or a million."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recrawl.model import IntArray
from recrawl.store.base import Store
from recrawl.store.values import Captures


def chunks_of(store: Store, pages: IntArray, captures: int, at_most: int) -> Iterator[IntArray]:
    """Pages, in order, in portions with at most so many captures and pages. A page with more is a portion by itself."""
    for start in range(0, len(pages), at_most):
        some = pages[start : start + at_most]
        total = np.append(0, np.cumsum(store.capture_counts(some)))
        first = 0
        while first < len(some):
            last = max(first + 1, int(np.searchsorted(total, total[first] + captures, "right")) - 1)
            yield some[first:last]
            first = last


def captures_in_pieces(store: Store, pages: IntArray, at_once: int) -> Iterator[Captures]:
    """The captures of one portion, by page and time; those of a page with very many in several pieces."""
    if len(pages) != 1:
        yield store.capture_columns(pages)
        return
    after = -np.inf
    while len(piece := store.captures_of_page(int(pages[0]), after=after, limit=at_once)):
        yield piece
        after = float(piece.time[-1])
