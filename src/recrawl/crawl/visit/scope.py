"""The scope of a crawl or of a site capture (conventions S1), and the detection of crawler traps.

URLs alone do not reveal every trap. A trap that these rules miss ends at the maximum number of pages per host
(``HostCap``). A trap that they find does not use that number up.

The scope of a workspace lies around the pages it holds, however many these are: it reads them host by host, when it is
first asked about a host, so that a crawl of any size starts at once. People add pages while a crawl runs for
months, and choose another scope for the next one. So a page that was found outside may be inside by now, linked from
pages whose links are not read again before they change. :class:`SeedScope` finds such pages in the store.

A link into the scope becomes a page, and that page widens nothing: its folder lies in a folder that was in the scope
before, its host and domain likewise, and nothing lies around pages that a pattern includes. So the scope can be
computed from all pages, without recording which of them people named.
"""

from __future__ import annotations

import enum
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import IntArray
from recrawl.urls import Address, address

if TYPE_CHECKING:
    from recrawl.store.base import Store
    from recrawl.store.store_values import LeasedPages

_LONGEST = 2_000
"""Maximum characters of a URL. Nobody reads longer ones, and traps produce them."""
_MOST_REPEATS = 2
"""How often one folder or one argument may repeat: /a/b/a/b/a is the mark of a link relative to the wrong place."""
_SESSION = re.compile(
    r"(?:^|[;&/])(?:jsessionid|phpsessid|aspsessionid\w*|oscsid|zenid|sid|sess(?:ion)?[_-]?id|cfid|cftoken)=",
    re.IGNORECASE,
)
_SESSION_FOLDER = re.compile(r"/\((?:[A-Z]\(\w+\))+\)(?:/|$)", re.IGNORECASE)
"""As ASP.NET writes it: ``/(S(lit3py55t21z5v55vlm25s55))/``."""
_DATE_IN_PATH = re.compile(r"/(\d{4})(?:/|-)(?:0?[1-9]|1[0-2])(?=[/-]|$)")
_DATE_IN_QUERY = re.compile(r"(\d{4})-?(?:0[1-9]|1[0-2])(?:-?\d\d)?(?:T.*)?")
_YEAR_ARGUMENT = re.compile(r"(?:cal)?_?(?:year|yr|jahr|annee|ano|anno)", re.IGNORECASE)
_CALENDAR = re.compile(r"calend|kalend|agenda|events?\b|termine|veranstaltung|schedule|month|week|day", re.IGNORECASE)
MOST_HOPS = 20
"""Maximum redirects in a row by which new pages are found: as many as browsers follow."""
MOST_NESTED = 5
"""Maximum steps from a page to a requisite: style sheets import style sheets, frames hold frames, and all redirect."""
_CHAINS = 100_000
"""Ends of redirect chains that are remembered."""
_NO_WAY = ("", "")
_YEARS_AHEAD, _YEARS_BACK = 1, 30
"""How far a calendar is followed."""


def trap(url: str, *, max_depth: int, year: int | None = None) -> str:
    """Why a URL looks like one of endlessly many; empty text if it does not.

    With ``year``, the current year, calendars are followed only a year ahead and some decades back.

    >>> trap("http://x/a/b/a/b/a/b/a/", max_depth=20), trap("http://x/a;jsessionid=1", max_depth=20)
    ('a folder comes up again and again', 'it carries a session')
    >>> trap("http://x/2026/11/15/news", max_depth=20, year=2026), trap("http://x/2031/05/", max_depth=20, year=2026)
    ('', 'it is a page of a calendar, of a far year')
    """
    if len(url) > _LONGEST:
        return "it is too long"
    parts = urlsplit(url)
    folders = [folder for folder in parts.path.split("/") if folder]
    if len(folders) > max_depth:
        return "it is too deep"
    if any(folders.count(folder) > _MOST_REPEATS for folder in set(folders)):
        return "a folder comes up again and again"
    if _SESSION.search(parts.path) or _SESSION.search(parts.query) or _SESSION_FOLDER.search(parts.path):
        return "it carries a session"
    arguments = parse_qsl(parts.query, keep_blank_values=True)
    if len(arguments) > _MOST_REPEATS and max(Counter(arguments).values()) > _MOST_REPEATS:
        return "an argument comes up again and again"
    far = year is not None and _in_a_far_year(parts.path, arguments, year)
    return "it is a page of a calendar, of a far year" if far else ""


def _in_a_far_year(path: str, arguments: list[tuple[str, str]], this_year: int) -> bool:
    """Whether a date in the URL lies years ahead, or decades back in a URL that names a calendar.

    Without such a name old dates are accepted: they say what pages are about.
    """
    years = [int(found) for found in _DATE_IN_PATH.findall(path)]
    for name, value in arguments:
        found = _DATE_IN_QUERY.fullmatch(value)
        if found or (_YEAR_ARGUMENT.fullmatch(name) and re.fullmatch(r"\d{4}", value)):
            years.append(int(value[:4]))
    if not years:
        return False
    said = f"{path} {' '.join(name for name, _ in arguments)}"
    earliest = this_year - _YEARS_BACK if _CALENDAR.search(said) else 0
    return any(not earliest <= year <= this_year + _YEARS_AHEAD for year in years)


class HostCap:
    """Limits the discovered pages per host. Pages that people name are always added."""

    def __init__(self, most: int, pages_of: Callable[[str], int]) -> None:
        """``pages_of`` counts the pages that a host has already; it is called once per host, when one is discovered."""
        self._most = most
        self._pages_of = pages_of
        self._held: dict[str, int] = {}

    def has_room(self, host: str, more: int = 0) -> bool:
        """Whether one more page of the host may be added, beside ``more`` that are about to be."""
        return self._count(host) + more < self._most

    def took(self, host: str) -> None:
        """Count a page that was added."""
        if host in self._held:  # otherwise the page is counted when the host is
            self._held[host] += 1

    def _count(self, host: str) -> int:
        if host not in self._held:
            self._held[host] = self._pages_of(host)
        return self._held[host]


class RedirectChains:
    """How pages were found through redirects, one leading to the next. Bounded, and only in memory."""

    def __init__(self) -> None:
        self._ways: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def way(self, url: str) -> tuple[str, str]:
        """The URL that redirected to this one, and one letter per redirect on the way; empty texts if none did.

        >>> chains = RedirectChains()
        >>> chains.lead("http://x/a", "http://x/b")
        >>> chains.lead("http://x/b", "http://x/c")
        >>> chains.way("http://x/c"), chains.way("http://x/a")
        (('http://x/b', 'RR'), ('', ''))
        """
        return self._ways.get(url, _NO_WAY)

    def lead(self, url: str, to: str) -> None:
        """Record that the first URL redirects to the second. The first chain found to a page is kept."""
        if to in self._ways or to == url:
            return
        self._ways[to] = url, self.way(url)[1] + "R"
        if len(self._ways) > _CHAINS:
            self._ways.popitem(last=False)


class CrawlScope(Protocol):
    """Decides which URLs a crawl visits."""

    def covers(self, address: Address) -> bool:
        """Whether the URL is to be visited. Other URLs are stored as link targets, never fetched."""
        ...

    def touches(self, host: str) -> bool:
        """Whether any URL of this host (and port, if it is not the default) may be covered."""
        ...

    def widen(self, address: Address) -> bool:
        """Include the surroundings of a page that is visited anyway; return whether the scope grew."""
        ...


@dataclass(frozen=True, slots=True)
class HostScope:
    """Everything on these hosts (host and, if it is not the default, port), and nothing else."""

    hosts: frozenset[str]

    def covers(self, address: Address) -> bool:
        """Whether the URL is to be visited. Other URLs are stored as link targets, never fetched."""
        return address.host in self.hosts

    def touches(self, host: str) -> bool:
        """Whether the host is one of them."""
        return host in self.hosts

    def widen(self, address: Address) -> bool:  # noqa: ARG002 - it stays as it is
        """Nothing: this scope is fixed."""
        return False


class ScopeKind(enum.StrEnum):
    """How far a site reaches from its start page. Schemes and a leading ``www`` make no difference."""

    PAGE = "page"
    """The page itself."""
    PAGE_SPA = "page-spa"
    """The page itself under any fragment. Fragments are never sent to a server, so this equals ``PAGE``."""
    PREFIX = "prefix"
    """The same folder and below: everything up to the last slash of the path is equal."""
    HOST = "host"
    DOMAIN = "domain"
    """The host and every host below it: ``example.org`` covers ``news.example.org``."""
    ANY = "any"
    """The whole web."""
    CUSTOM = "custom"
    """Only what a pattern includes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRules:
    """The scope rules of a site capture or a continuous crawl.

    Patterns are regular expressions that may match anywhere in a URL.
    """

    kind: ScopeKind = ScopeKind.PREFIX
    include: tuple[str, ...] = ()
    """Included whatever the kind says."""
    exclude: tuple[str, ...] = ()
    """Excluded whatever else applies, except the page where a capture starts."""
    hops: int | None = None
    """Maximum links from a start page; ``None`` for any number."""
    extra_hops: int = 0
    """Links that are followed out of the scope."""
    max_depth: int = 20
    """Maximum folders in a URL. Links to deeper URLs and to other traps (:func:`trap`) are not followed."""

    def __post_init__(self) -> None:
        for pattern in (*self.include, *self.exclude):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(
                    f"{pattern!r} is not a regular expression: {error}.", r"Write for example /news/ or \.pdf$."
                ) from error
        if self.kind is ScopeKind.CUSTOM and not self.include:
            raise ConfigError("The scope custom has no pattern.", "Add one with --include, or crawl.include for a run.")


class PagePosition(NamedTuple):
    """The position of a page in a capture."""

    hops: int = 0
    """Links from a page where the capture started."""
    outside: int = 0
    """Links since the scope was left; 0 inside."""
    embedded: int = 0
    """Steps from the page that embeds it: 1 for its style sheet, 2 for an image of that; 0 for a page by itself."""


@dataclass(frozen=True, slots=True)
class SiteScope:
    """The scope of one capture: its rules, around its start pages."""

    rules: ScopeRules
    seeds: tuple[Address, ...]
    _include: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)
    _exclude: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_include", compiled(self.rules.include))
        object.__setattr__(self, "_exclude", compiled(self.rules.exclude))

    def covers(self, address: Address) -> bool:
        """Whether the URL is part of the site. O(seeds + patterns).

        >>> from recrawl.urls import address
        >>> scope = SiteScope(ScopeRules(), (address("http://example.org/news/today.html"),))
        >>> [scope.covers(address(f"https://www.example.org{path}")) for path in ("/news/2026/a", "/news", "/")]
        [True, False, False]
        """
        if any(address.key == seed.key for seed in self.seeds):
            return True
        if any(pattern.search(address.url) for pattern in self._exclude):
            return False
        return any(pattern.search(address.url) for pattern in self._include) or any(
            _reaches(self.rules.kind, seed, address) for seed in self.seeds
        )

    def place(self, address: Address, found_on: PagePosition) -> PagePosition | None:
        """The position of a page that is linked from a page at ``found_on``; ``None`` if it is not to be visited."""
        hops = found_on.hops + 1
        if self.rules.hops is not None and hops > self.rules.hops:
            return None
        if self.covers(address):
            return PagePosition(hops)
        outside = found_on.outside + 1
        excluded = any(pattern.search(address.url) for pattern in self._exclude)
        return None if excluded or outside > self.rules.extra_hops else PagePosition(hops, outside)

    def place_embedded(self, address: Address, found_on: PagePosition, *, anywhere: bool) -> PagePosition | None:
        """The position of what a page at ``found_on`` embeds; ``None`` if it is not to be fetched.

        Patterns exclude. ``anywhere`` takes requisites of any host, else only those in the scope.
        """
        depth = found_on.embedded + 1
        if depth > MOST_NESTED or any(pattern.search(address.url) for pattern in self._exclude):
            return None
        if not (anywhere or self.covers(address)):
            return None
        return PagePosition(found_on.hops, found_on.outside, depth)

    def with_seed(self, seed: Address) -> SiteScope:
        """The same rules around one more page: the redirect target of the first one."""
        return SiteScope(self.rules, (*self.seeds, seed))


def compiled(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    """Compiled patterns."""
    return tuple(re.compile(pattern) for pattern in patterns)


def _reaches(kind: ScopeKind, seed: Address, found: Address) -> bool:
    match kind:
        case ScopeKind.ANY:
            return True
        case ScopeKind.HOST:
            return _host(found) == _host(seed)
        case ScopeKind.PREFIX:
            return _host(found) == _host(seed) and _path(found).startswith(_folder(seed))
        case ScopeKind.DOMAIN:
            (name, port), (wanted, wanted_port) = _name_and_port(found), _name_and_port(seed)
            return port == wanted_port and (name == wanted or name.startswith(f"{wanted},"))
        case _:
            return False


def _host(address: Address) -> str:
    """The host as the key spells it: reversed, with its port, without ``www``."""
    return address.key.partition(")")[0]


def _name_and_port(address: Address) -> tuple[str, str]:
    name, _, port = _host(address).partition(":")
    return name, port


def _path(address: Address) -> str:
    """Path and query, with the leading slash."""
    return "/" + address.url.split("/", 3)[3]


def _folder(address: Address) -> str:
    """The path up to its last slash: Heritrix's rule for the prefix of a seed."""
    return _path(address).partition("?")[0].rpartition("/")[0] + "/"


_CHUNK = 2_000
"""Pages read at a time; takes some milliseconds."""
_HOSTS_AT_ONCE = 64
"""Hosts whose pages that are never due are read at a time."""


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

        O(hosts + pages that are never due) in all, and what the scope reads of hosts that have any; milliseconds per
        step.
        """
        sources, last = np.array(list(self._store.sources()), np.int64), 0
        while True:
            page, host, after = self._store.never_due(last, _HOSTS_AT_ONCE)
            if after is None:
                return
            last = after
            hosts = self._store.hosts(np.unique(host))
            for number, name in zip(hosts.id.tolist(), hosts.name, strict=True):
                found = np.setdiff1d(page[host == number], sources, assume_unique=True)
                if len(found) and self._scope.touches(name):
                    yield from self._idle(found)
            yield page[:0], []

    def _idle(self, page: IntArray) -> Iterator[tuple[IntArray, list[str]]]:
        """Those of these pages that are not to be visited, and their URLs, in chunks."""
        for start in range(0, len(page), _CHUNK):
            pages = self._store.pages(page[start : start + _CHUNK])
            idle = pages.id[pages.importance == 0]
            yield idle, self._store.urls(idle)

    def _make_room(self, page: IntArray) -> None:
        size = int(page.max(initial=-1)) + 1
        if size > len(self._known):
            self._known = np.concatenate([self._known, np.zeros(max(size, 2 * len(self._known)), np.bool_)])


_NOTHING_AROUND = (ScopeKind.PAGE, ScopeKind.PAGE_SPA, ScopeKind.CUSTOM)
"""Kinds that include nothing by its place."""


class StoredFolders(Protocol):
    """What a scope reads from a store."""

    def folders_of(self, host_key: str, *, whole: bool = False) -> list[str]:
        """The folders of pages to be visited on a host, or with ``whole`` the pages; see ``store.base.PageTable``."""
        ...


class WorkspaceScope:
    """Covers the folders, hosts or domains of given pages, or everything.

    Patterns include and exclude URLs in which they match. O(depth of the URL + patterns) per URL. Pages in a store are
    read host by host, when a URL of the host is first asked for: O(folders of the host) in Python, once.
    """

    def __init__(
        self,
        rules: ScopeRules,
        pages: Iterable[Address],
        *,
        year: int | None = None,
        stored: StoredFolders | None = None,
    ) -> None:
        """``year`` is the current year; with it calendars are followed to near years only.

        ``stored`` has more pages, which are read when they are needed; without it ``pages`` are all.
        Hops are not counted: a page of a continuous crawl has no distance from a start page.
        """
        self._kind = rules.kind
        self._year = year
        self._max_depth = rules.max_depth
        self._include, self._exclude = compiled(rules.include), compiled(rules.exclude)
        self._places: set[str] = set()
        self._hosts: set[str] = set()
        self._stored = stored
        self._read: set[str] = set()
        """Keys of hosts whose folders are known."""
        for page in pages:
            self._add(page)

    def widen(self, address: Address) -> bool:
        """Widen the scope by one page, which is in the store if the scope has one; return whether it grew.

        Of a host that was not read yet nothing was decided, and its folders will include that of the page.
        """
        if self._stored is not None and self._is_by_place() and _parts(address)[0] not in self._read:
            return False
        return self._add(address)

    def _add(self, address: Address) -> bool:
        if self._kind is ScopeKind.ANY or any(pattern.search(address.url) for pattern in self._include):
            return False
        place, before = _place(self._kind, address), len(self._places)
        self._places.add(place)
        self._hosts.add(_parts(address)[0])
        return len(self._places) > before and self._kind not in _NOTHING_AROUND

    def _is_by_place(self) -> bool:
        """Whether the scope depends on where pages lie."""
        return self._kind is not ScopeKind.ANY and self._kind not in _NOTHING_AROUND

    def _read_host(self, host: str) -> None:
        """Read the folders of a host, unless they are known."""
        if self._stored is None or host in self._read or not self._is_by_place():
            return
        # What a pattern includes is told by whole URLs.
        for folder in self._stored.folders_of(host, whole=bool(self._include)):
            if (found := address(folder)) is not None:
                self._add(found)
        self._read.add(host)  # after a failure of the store they are read again

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
        if self._kind is ScopeKind.DOMAIN:
            return self._reaches(home)
        host = _parts(home)[0]
        self._read_host(host)
        return host in self._hosts

    def _reaches(self, address: Address) -> bool:
        host, path = _parts(address)
        match self._kind:
            case ScopeKind.PAGE | ScopeKind.PAGE_SPA | ScopeKind.CUSTOM:
                return False
            case ScopeKind.ANY:
                return True
            case ScopeKind.HOST:
                self._read_host(host)
                return host in self._places
            case ScopeKind.DOMAIN:
                name, _, port = host.partition(":")
                labels = name.split(",")
                for count in range(len(labels), 0, -1):
                    above = ",".join(labels[:count])
                    self._read_host(f"{above}:{port}" if port else above)
                    if f"{above}:{port}" in self._places:
                        return True
                return False
            case _:
                self._read_host(host)
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
