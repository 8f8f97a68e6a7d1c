"""Seed files: one URL per line, in the dialects of other crawlers (conventions S1), read and written."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from recrawl.errors import InputError
from recrawl.urls import Address, address


@dataclass(frozen=True, slots=True)
class Seeds:
    """What a list of seeds holds."""

    addresses: tuple[Address, ...]
    """In the order of the list; a page that is listed twice is kept once."""
    repeated: int = 0
    """Lines that name a page listed before."""
    scopes: int = 0
    """``+SURT`` lines: Heritrix's way to widen the scope; skipped, since they name no page."""


def read_seeds(text: str, source: str) -> Seeds:
    r"""Parse a seed file. ``#`` begins a comment line; TAB-separated ``key=value`` after the URL is ignored.

    >>> read_seeds("# ours\nhttp://a.org/\tnote=x\n+http://(org,b,)/\n", "seeds.txt").addresses[0].url
    'http://a.org/'
    """
    found: dict[str, Address] = {}
    repeated = scopes = 0
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        url = line.partition("\t")[0].strip()
        if not url or url.startswith("#"):
            continue
        if url.startswith("+"):
            scopes += 1
            continue
        seed = parse_seed(url, f"{source}, line {number}")
        repeated += seed.key in found
        found.setdefault(seed.key, seed)
    return Seeds(tuple(found.values()), repeated, scopes)


def parse_seed(url: str, source: str) -> Address:
    """The address of one seed, or an error that says where it stands."""
    found = address(url)
    if found is None:
        raise InputError(
            f"{url!r} is not an http or https URL.",
            "Write it in full, like https://example.org/.",
            source=source,
        )
    return found


class SeedDialect(enum.Enum):
    """Who shall read the list."""

    PLAIN = "plain"
    HERITRIX = "heritrix"
    """URLs, then a ``+`` line with the SURT prefix of each host, which is its scope."""
    NUTCH = "nutch"
    """TAB ``key=value`` behind the URL; StormCrawler's too."""
    BROWSERTRIX = "browsertrix"
    """YAML with a list of ``seeds``."""


def seed_lines(
    urls: Iterable[str],
    dialect: SeedDialect,
    metadata: Mapping[str, Mapping[str, str]] | None = None,
    *,
    pages_only: bool = False,
) -> Iterator[str]:
    r"""The lines of a seed list, each with its line end.

    ``metadata`` belongs to URLs; only Nutch's dialect has a place for it. With ``pages_only`` the list asks for these
    pages and widens no scope: Heritrix gets no ``+`` lines, Browsertrix the scope ``page``.

    >>> "".join(seed_lines(["http://a.org/"], SeedDialect.NUTCH, {"http://a.org/": {"depth": "2"}}))
    'http://a.org/\tdepth=2\n'
    >>> print("".join(seed_lines(["https://b.org/x"], SeedDialect.BROWSERTRIX)), end="")
    seeds:
      - url: "https://b.org/x"
        scopeType: prefix
    """
    if dialect is SeedDialect.BROWSERTRIX:
        yield "seeds:\n"
    prefixes: dict[str, None] = {}
    for url in urls:
        seed = parse_seed(url, "seeds")
        if dialect is SeedDialect.BROWSERTRIX:
            scope = "page" if pages_only else "prefix"
            yield f"  - url: {json.dumps(seed.url)}\n    scopeType: {scope}\n"  # a JSON text is a YAML text
        elif dialect is SeedDialect.NUTCH:
            pairs = (metadata or {}).get(url, {}).items()
            yield "\t".join([seed.url, *(f"{_one_word(key)}={_one_word(value)}" for key, value in pairs)]) + "\n"
        else:
            yield f"{seed.url}\n"
        prefixes[_host_prefix(seed)] = None
    if dialect is SeedDialect.HERITRIX and not pages_only:
        yield from (f"+{prefix}\n" for prefix in prefixes)


def _one_word(text: str) -> str:
    return " ".join(text.split())


def _host_prefix(seed: Address) -> str:
    """Heritrix's SURT prefix of the seed's host: ``)`` after its last comma leaves subdomains out of scope.

    The scheme of a prefix is always http, which stands for https too.
    """
    name, colon, port = seed.host.partition(":") if not seed.host.startswith("[") else (seed.host, "", "")
    labels = [name] if name.startswith("[") or name.replace(".", "").isdigit() else name.split(".")[::-1]
    return f"http://({','.join(labels)},{colon}{port})/"
