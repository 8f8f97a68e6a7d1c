"""Homes: the pages that are to be visited, around which the scope of a crawl lies.

People add pages while a crawl runs for months, and choose another scope for the next one. So what was found outside may
lie inside by now, on pages whose links will not be read again before they change. Nobody may be forgotten for that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from recrawl.crawl.scope import Scope
from recrawl.model import IntArray, Pages
from recrawl.store.base import Store
from recrawl.store.values import Leased
from recrawl.urls import address

_CHUNK = 2_000
"""Pages read at a time: some milliseconds."""


def page_chunks(store: Store) -> Iterator[Pages]:
    """All pages of a store by ascending id, a few at a time, so that others have their turn between them."""
    last, _ = store.rough_size()
    for start in range(1, last + 1, _CHUNK):
        yield store.pages(np.arange(start, min(start + _CHUNK, last + 1)))


class Homes:
    """Keeps a scope in step with the pages of a store."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self._known = np.zeros(0, np.bool_)
        """By number, pages that the scope lies around already."""
        self.is_wider = True
        """Whether the scope may cover pages that were left out; to be set back when they were taken in."""

    def move_in(self, leased: Leased, sources: Collection[int]) -> bool:
        """Let the scope lie around pages that are to be visited now, too; whether it reaches further for it.

        Nothing lies around sources, which have an access method of their own. O(1) for a page that was there before.
        """
        self._make_room(leased.page)
        wider = False
        for row in np.flatnonzero(~self._known[leased.page]).tolist():
            where = address(leased.url[row])
            if where is not None and leased.page[row] not in sources:
                wider |= self._scope.widen(where)
        self._known[leased.page] = True
        self.is_wider |= wider
        return wider

    def left_out(self) -> Iterator[tuple[IntArray, list[str]]]:
        """Pages that were only remembered, as targets of links, on hosts that the scope reaches, and their URLs.

        O(pages) in all, and milliseconds for each part of them.
        """
        sources = np.array(list(self._store.sources()), np.int64)
        for pages in page_chunks(self._store):
            idle = pages.take(pages.importance == 0)
            hosts = self._store.hosts(np.unique(idle.host)) if len(idle) else None
            if hosts is None:
                yield idle.id, []
                continue
            near = hosts.id[np.array([self._scope.touches(name) for name in hosts.name], np.bool_)]
            found = np.setdiff1d(idle.id[np.isin(idle.host, near)], sources, assume_unique=True)
            yield found, self._store.urls(found)

    def _make_room(self, page: IntArray) -> None:
        size = int(page.max(initial=-1)) + 1
        if size > len(self._known):
            self._known = np.concatenate([self._known, np.zeros(max(size, 2 * len(self._known)), np.bool_)])
