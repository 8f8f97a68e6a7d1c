"""The scope of a workspace: around the pages it holds, however many these are.

A link into the scope becomes a page, and that page widens nothing: its folder lies in a folder that was in the scope
before, its host and domain likewise. So the scope can be taken from all pages there are, with no memory of which of
them people named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from recrawl.crawl.scope import ScopeKind
from recrawl.urls import Address

_LONGEST = 2_000
"""Characters of a URL; nobody reads longer ones, and traps make them."""
_MOST_REPEATS = 2
"""How often one folder may come up again in a path: /a/b/a/b/a is the mark of a link relative to the wrong place."""
_SESSION = re.compile(r"(?:jsessionid|phpsessid|aspsessionid\w*|sid|session_?id|cfid|cftoken)=", re.IGNORECASE)


class HomeScope:
    """Covers what lies in the same folders, on the same hosts or below the same domains as given pages.

    O(pages) to make, O(depth of the URL) to ask.
    """

    def __init__(self, kind: ScopeKind, pages: Iterable[Address], *, max_depth: int) -> None:
        self._kind = kind
        self._max_depth = max_depth
        self._places = {_place(kind, page) for page in pages}

    def covers(self, address: Address) -> bool:
        """Whether the URL is to be visited.

        >>> from recrawl.urls import address
        >>> scope = HomeScope(ScopeKind.PREFIX, [address("http://example.org/news/today.html")], max_depth=20)
        >>> [scope.covers(address(f"http://example.org{path}")) for path in ("/news/2026/a", "/about", "/news/x/x/x/x")]
        [True, False, False]
        """
        if self._kind is ScopeKind.PAGE or not self._reaches(address):
            return False
        return not trap(address.url, max_depth=self._max_depth)

    def _reaches(self, address: Address) -> bool:
        host, path = _parts(address)
        match self._kind:
            case ScopeKind.HOST:
                return host in self._places
            case ScopeKind.DOMAIN:
                name, _, port = host.partition(":")
                labels = name.split(",")
                return any(f"{','.join(labels[:count])}:{port}" in self._places for count in range(len(labels), 0, -1))
            case _:
                return any(f"{host})/{path[:end]}" in self._places for end in _folder_ends(path))


def trap(url: str, *, max_depth: int) -> str:
    """Why a URL looks like one of endlessly many, in words; empty text if it does not.

    >>> trap("http://x/a/b/a/b/a/b/a/", max_depth=20), trap("http://x/a;jsessionid=1", max_depth=20)
    ('a folder comes up again and again', 'it carries a session')
    >>> trap("http://x/2026/11/15/news", max_depth=20)
    ''
    """
    if len(url) > _LONGEST:
        return "it is too long"
    parts = urlsplit(url)
    folders = [folder for folder in parts.path.split("/") if folder]
    if len(folders) > max_depth:
        return "it is too deep"
    if any(folders.count(folder) > _MOST_REPEATS for folder in set(folders)):
        return "a folder comes up again and again"
    if _SESSION.search(parts.path) or _SESSION.search(parts.query):
        return "it carries a session"
    return ""


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
