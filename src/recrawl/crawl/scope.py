"""Which of the URLs that are found belong to the archive, or to one capture of a site (conventions S1)."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from recrawl.errors import ConfigError
from recrawl.urls import Address


class Scope(Protocol):
    """What a crawl takes in."""

    def covers(self, address: Address) -> bool:
        """Whether the URL is to be visited. Others are remembered as links, never fetched."""
        ...

    def touches(self, host: str) -> bool:
        """Whether any URL of this host (and port, if it is not the default) may be covered."""
        ...

    def widen(self, address: Address) -> bool:
        """Take in what is near a page that is to be visited anyway; whether that is more than before."""
        ...


@dataclass(frozen=True, slots=True)
class HostScope:
    """Everything on these hosts (host and, if it is not the default, port), and nothing else."""

    hosts: frozenset[str]

    def covers(self, address: Address) -> bool:
        """Whether the URL is to be visited. Others are remembered as links, never fetched."""
        return address.host in self.hosts

    def touches(self, host: str) -> bool:
        """Whether it is one of them."""
        return host in self.hosts

    def widen(self, address: Address) -> bool:  # noqa: ARG002 - it stays as it is
        """Nothing is near."""
        return False


class ScopeKind(enum.StrEnum):
    """How far a site reaches from where it begins. Schemes and a leading ``www`` make no difference."""

    PAGE = "page"
    """The page itself."""
    PAGE_SPA = "page-spa"
    """The page itself under any fragment. Fragments are never sent to a server, so this is the same."""
    PREFIX = "prefix"
    """What lies in the same folder or below: everything up to the last slash of the path is the same."""
    HOST = "host"
    DOMAIN = "domain"
    """The host and every host below it: ``example.org`` covers ``news.example.org``."""
    ANY = "any"
    """The whole web."""
    CUSTOM = "custom"
    """Only what is included by a pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRules:
    """What a capture of a site, or a continuous crawl, takes in.

    Patterns are regular expressions, looked for anywhere in a URL.
    """

    kind: ScopeKind = ScopeKind.PREFIX
    include: tuple[str, ...] = ()
    """Taken in whatever the kind says."""
    exclude: tuple[str, ...] = ()
    """Left out whatever else is said, but for the page where a capture begins."""
    hops: int | None = None
    """Links from the first page to the last; ``None`` for any number."""
    extra_hops: int = 0
    """Links that are followed out of the scope."""
    max_depth: int = 20
    """Folders a URL may be deep; links to deeper ones, and to other traps (``traps.trap``), are not followed."""

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


class Place(NamedTuple):
    """Where a page stands in a capture."""

    hops: int = 0
    """Links from a page where the capture began."""
    outside: int = 0
    """Links since the scope was left; 0 inside."""


@dataclass(frozen=True, slots=True)
class SiteScope:
    """The scope of one capture: its rules, around the pages where it begins."""

    rules: ScopeRules
    seeds: tuple[Address, ...]
    _include: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)
    _exclude: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_include", compiled(self.rules.include))
        object.__setattr__(self, "_exclude", compiled(self.rules.exclude))

    def covers(self, address: Address) -> bool:
        """Whether the URL is part of the site. O(seeds and patterns).

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

    def place(self, address: Address, found_on: Place) -> Place | None:
        """Where a page that is linked from a page at ``found_on`` stands; ``None`` if it is not to be visited."""
        hops = found_on.hops + 1
        if self.rules.hops is not None and hops > self.rules.hops:
            return None
        if self.covers(address):
            return Place(hops)
        outside = found_on.outside + 1
        excluded = any(pattern.search(address.url) for pattern in self._exclude)
        return None if excluded or outside > self.rules.extra_hops else Place(hops, outside)

    def with_seed(self, seed: Address) -> SiteScope:
        """The same rules around one more page: where the first one redirects to."""
        return SiteScope(self.rules, (*self.seeds, seed))


def compiled(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    """Patterns, ready to be looked for."""
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
    """As the key writes it: reversed, with its port, without ``www``."""
    return address.key.partition(")")[0]


def _name_and_port(address: Address) -> tuple[str, str]:
    name, _, port = _host(address).partition(":")
    return name, port


def _path(address: Address) -> str:
    """Path and query, with the slash they begin with."""
    return "/" + address.url.split("/", 3)[3]


def _folder(address: Address) -> str:
    """The path up to its last slash: Heritrix's rule for the prefix that a seed stands for."""
    return _path(address).partition("?")[0].rpartition("/")[0] + "/"
