"""The scope of a workspace: around the pages it holds, however many these are.

A link into the scope becomes a page, and that page widens nothing: its folder lies in a folder that was in the scope
before, its host and domain likewise; and what a pattern includes has nothing around it. So the scope can be taken from
all pages there are, with no memory of which of them people named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from recrawl.crawl.scope import ScopeKind, ScopeRules, compiled
from recrawl.crawl.traps import trap
from recrawl.urls import Address, address

_NOTHING_AROUND = (ScopeKind.PAGE, ScopeKind.PAGE_SPA, ScopeKind.CUSTOM)
"""Kinds that take in nothing for where it lies."""


class HomeScope:
    """Covers what lies in the same folders, on the same hosts or below the same domains as given pages, or everything.

    Patterns include and exclude what they are found in. O(pages) to make, O(depth of the URL, and patterns) to ask.
    """

    def __init__(self, rules: ScopeRules, pages: Iterable[Address], *, year: int | None = None) -> None:
        """``year`` is the current one; with it calendars are followed to near years only.

        Hops are not counted: a page of a continuous crawl has no place in it.
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
        """Lie around one more page; whether the scope reaches further for it."""
        if self._kind is ScopeKind.ANY or any(pattern.search(address.url) for pattern in self._include):
            return False
        place, before = _place(self._kind, address), len(self._places)
        self._places.add(place)
        self._hosts.add(_parts(address)[0])
        return len(self._places) > before and self._kind not in _NOTHING_AROUND

    def covers(self, address: Address) -> bool:
        """Whether the URL is to be visited.

        >>> from recrawl.urls import address
        >>> scope = HomeScope(ScopeRules(), [address("http://example.org/news/today.html")])
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
    """Host as the key writes it, and path without its first slash: a key has no slash at its end, a folder has."""
    return address.key.partition(")")[0], urlsplit(address.url).path.removeprefix("/").lower()


def _folder_ends(path: str) -> list[int]:
    """Where the folders of a path end: after each slash, and at its beginning."""
    return [0, *(found.end() for found in re.finditer("/", path))]
