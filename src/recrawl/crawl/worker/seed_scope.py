"""The scope of a workspace: around the pages it holds, however many these are.

People add pages while a crawl runs for months, and choose another scope for the next one. So a page that was found
outside may be inside by now, linked from pages whose links are not read again before they change. :class:`SeedScope`
finds such pages in the store.

A link into the scope becomes a page, and that page widens nothing: its folder lies in a folder that was in the scope
before, its host and domain likewise, and nothing lies around pages that a pattern includes. So the scope can be
computed from all pages, without recording which of them people named.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from urllib.parse import urlsplit

import numpy as np

from recrawl.crawl.visit.scope import CrawlScope, ScopeKind, ScopeRules, compiled, trap
from recrawl.model import IntArray, Pages
from recrawl.store.base import Store
from recrawl.store.store_values import LeasedPages
from recrawl.urls import Address, address

_CHUNK = 2_000
"""Pages read at a time; takes some milliseconds."""


def page_chunks(store: Store) -> Iterator[Pages]:
    """All pages of a store by ascending id, in chunks, so that the event loop can run between them."""
    last, _ = store.rough_size()
    for start in range(1, last + 1, _CHUNK):
        yield store.pages(np.arange(start, min(start + _CHUNK, last + 1)))


class SeedScope:
    """Keeps a scope in step with the pages of a store."""

    def __init__(self, store: Store, scope: CrawlScope) -> None:
        self._store = store
        self._scope = scope
        self._known = np.zeros(0, np.bool_)
        """By page number, whether the scope already includes its surroundings."""
        self.is_wider = True
        """Whether the scope may cover pages that were left out; reset when they are added."""

    def widen_scope(self, leased: LeasedPages, sources: Collection[int]) -> bool:
        """Widen the scope by leased pages; return whether it grew.

        Sources, which have an access method of their own, widen nothing. O(1) for a page that was there before.
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
        """Pages known only as link targets, on hosts that the scope reaches, and their URLs.

        O(pages) in all, milliseconds per chunk.
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


_NOTHING_AROUND = (ScopeKind.PAGE, ScopeKind.PAGE_SPA, ScopeKind.CUSTOM)
"""Kinds that include nothing by its place."""


class WorkspaceScope:
    """Covers the folders, hosts or domains of given pages, or everything.

    Patterns include and exclude URLs in which they match. O(pages) to build, O(depth of the URL + patterns) per URL.
    """

    def __init__(self, rules: ScopeRules, pages: Iterable[Address], *, year: int | None = None) -> None:
        """``year`` is the current year; with it calendars are followed to near years only.

        Hops are not counted: a page of a continuous crawl has no distance from a start page.
        """
        self._kind = rules.kind
        self._year = year
        self._max_depth = rules.max_depth
        self._include, self._exclude = compiled(rules.include), compiled(rules.exclude)
        self._places: set[str] = set()
        self._hosts: set[str] = set()
        for page in pages:
            self.widen(page)

    def widen(self, address: Address) -> bool:
        """Widen the scope by one page; return whether it grew."""
        if self._kind is ScopeKind.ANY or any(pattern.search(address.url) for pattern in self._include):
            return False
        place, before = _place(self._kind, address), len(self._places)
        self._places.add(place)
        self._hosts.add(_parts(address)[0])
        return len(self._places) > before and self._kind not in _NOTHING_AROUND

    def covers(self, address: Address) -> bool:
        """Whether the URL is to be visited.

        >>> from recrawl.urls import address
        >>> scope = WorkspaceScope(ScopeRules(), [address("http://example.org/news/today.html")])
        >>> [scope.covers(address(f"http://example.org{path}")) for path in ("/news/2026/a", "/about", "/news/x/x/x/x")]
        [True, False, False]
        """
        url = address.url
        if any(pattern.search(url) for pattern in self._exclude):
            return False
        if not (any(pattern.search(url) for pattern in self._include) or self._reaches(address)):
            return False
        return not trap(address.url, max_depth=self._max_depth, year=self._year)

    def touches(self, host: str) -> bool:
        """Whether any URL of this host (and port, if it is not the default) may be covered."""
        home = address(f"http://{host}/")
        if home is not None and self._include:
            return True
        if home is None or self._kind in _NOTHING_AROUND:
            return False
        if self._kind is ScopeKind.ANY:
            return True
        return self._reaches(home) if self._kind is ScopeKind.DOMAIN else _parts(home)[0] in self._hosts

    def _reaches(self, address: Address) -> bool:
        host, path = _parts(address)
        match self._kind:
            case ScopeKind.PAGE | ScopeKind.PAGE_SPA | ScopeKind.CUSTOM:
                return False
            case ScopeKind.ANY:
                return True
            case ScopeKind.HOST:
                return host in self._places
            case ScopeKind.DOMAIN:
                name, _, port = host.partition(":")
                labels = name.split(",")
                return any(f"{','.join(labels[:count])}:{port}" in self._places for count in range(len(labels), 0, -1))
            case _:
                return any(f"{host})/{path[:end]}" in self._places for end in _folder_ends(path))


def _place(kind: ScopeKind, address: Address) -> str:
    host, path = _parts(address)
    match kind:
        case ScopeKind.HOST:
            return host
        case ScopeKind.DOMAIN:
            name, _, port = host.partition(":")
            return f"{name}:{port}"
        case _:
            return f"{host})/{path[: path.rfind('/') + 1]}"


def _parts(address: Address) -> tuple[str, str]:
    """Host as the key spells it, and path without its first slash: a key has no slash at its end, a folder has."""
    return address.key.partition(")")[0], urlsplit(address.url).path.removeprefix("/").lower()


def _folder_ends(path: str) -> list[int]:
    """Where the folders of a path end: after each slash, and at its start."""
    return [0, *(found.end() for found in re.finditer("/", path))]
