"""Which captures a CDX server is asked for, in the words of its dialect (conventions A1-A3)."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from recrawl.errors import ConfigError

_DIGITS = re.compile(r"\d{1,14}")


class Dialect(enum.Enum):
    """Whose parameters and field names a server understands."""

    WAYBACK = "wayback"
    PYWB = "pywb"


_FIELDS: Mapping[Dialect, Mapping[str, str]] = MappingProxyType(
    {
        Dialect.WAYBACK: {"url": "original", "mime": "mimetype", "status": "statuscode"},
        Dialect.PYWB: {"original": "url", "mimetype": "mime", "statuscode": "status"},
    }
)


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep captures whose field matches; with ``inverted``, drop them. Fields may be named in either dialect."""

    field: str
    pattern: str
    """A regular expression for the whole value, or with ``literal`` the value itself."""
    literal: bool = False
    inverted: bool = False

    def written(self, dialect: Dialect) -> str:
        """As the dialect writes it (conventions A2).

        >>> Filter("status", "200", literal=True).written(Dialect.WAYBACK)
        'statuscode:200'
        >>> Filter("mimetype", "text/.*", inverted=True).written(Dialect.PYWB)
        '!~mime:(?:text/.*)$'
        """
        name = _FIELDS[dialect].get(self.field, self.field)
        sign = "!" if self.inverted else ""
        if dialect is Dialect.WAYBACK:
            return f"{sign}{name}:{re.escape(self.pattern) if self.literal else self.pattern}"
        # pywb's regular expressions need only match at the beginning.
        return f"{sign}={name}:{self.pattern}" if self.literal else f"{sign}~{name}:(?:{self.pattern})$"


@dataclass(frozen=True, slots=True)
class CdxQuery:
    """Which captures are asked for (conventions A1-A3)."""

    url: str
    """``example.org/a``; ``example.org/a/*`` for all that begin so; ``*.example.org`` for a domain with its hosts."""
    match: str = ""
    """``exact``, ``prefix``, ``host`` or ``domain`` instead of a star in the URL."""
    since: str = ""
    """1 to 14 digits; both ends are included."""
    until: str = ""
    filters: tuple[Filter, ...] = ()
    fields: tuple[str, ...] = ()
    """Only these, named in either dialect; all that the server has if empty."""
    collapse: str = ""
    """``field`` or ``field:N``: of neighbours with the same first N characters keep the first."""
    limit: int = 0
    """Captures in all; 0 for no limit."""

    def __post_init__(self) -> None:
        if not self.url or self.match not in ("", "exact", "prefix", "host", "domain"):
            raise ConfigError(
                f"{self.url!r} cannot be matched as {self.match!r}.",
                "Give a URL, and as match exact, prefix, host or domain.",
            )
        for moment in (self.since, self.until):
            if moment and not _DIGITS.fullmatch(moment):
                raise ConfigError(f"{moment!r} is not a time of an index.", "Give 1 to 14 digits, for example 202405.")
        if self.limit < 0:
            raise ConfigError(f"{self.limit} captures cannot be asked for.", "Give a limit above 0, or 0 for all.")

    def of_one_page(self) -> CdxQuery:
        """The same about the page alone at which the query begins.

        >>> CdxQuery("*.example.org").of_one_page().url, CdxQuery("example.org/a/*").of_one_page().url
        ('example.org', 'example.org/a/')
        """
        if self.match:
            return replace(self, match="exact")
        bare = self.url[2:] if self.url.startswith("*.") else self.url.removesuffix("*")
        return replace(self, url=bare, match="exact") if bare not in ("", self.url) else self

    def parameters(self, dialect: Dialect) -> list[tuple[str, str]]:
        """What goes into the request, whatever the paging.

        >>> CdxQuery("*.example.org", since="2024", fields=("url", "digest")).parameters(Dialect.WAYBACK)
        [('url', '*.example.org'), ('from', '2024'), ('fl', 'original,digest'), ('output', 'json')]
        """
        named = _FIELDS[dialect]
        fields = ",".join(named.get(name, name) for name in self.fields)
        plain = [("url", self.url), ("matchType", self.match), ("from", self.since), ("to", self.until)]
        plain += [("filter", one.written(dialect)) for one in self.filters]
        plain += [("fl", fields), self._collapsed(dialect), ("output", "json")]
        return [(name, value) for name, value in plain if value]

    def _collapsed(self, dialect: Dialect) -> tuple[str, str]:
        field, _, length = self.collapse.partition(":")
        if dialect is Dialect.WAYBACK or not self.collapse:
            return "collapse", ":".join(filter(None, (_FIELDS[dialect].get(field, field), length)))
        if field == "timestamp":
            return "collapseTime", length or "14"
        raise ConfigError(f"pywb cannot collapse by {field!r}.", "Collapse by timestamp:N, or not at all.")
