"""Seed files: one URL a line, in the dialects of other crawlers (conventions S1). Text in, addresses out."""

from __future__ import annotations

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
