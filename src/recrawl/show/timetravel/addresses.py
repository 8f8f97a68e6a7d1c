"""Addresses that hold another address: what is asked for, out of the path as it was sent."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from recrawl.formats.timemap_write import ArchiveUris
from recrawl.show.timetravel.moments import begin_of
from recrawl.show.timetravel.refusal import RefusalError
from recrawl.urls import address

MODIFIERS = ("", "id_", "mp_", "if_", "js_", "cs_", "im_")
"""How a memento is wanted (conventions M2): all but ``id_`` and ``if_`` are for people."""
_MEMENTO = re.compile(r"(\d{1,14})([a-z]{2}_)?/(.+)", re.DOTALL | re.ASCII)
_MAP = re.compile(r"timemap/([a-z]+)/(?:(\d{1,6})/)?(.+)", re.DOTALL | re.ASCII)
_ONE_SLASH = re.compile(r"(https?):/+", re.IGNORECASE)
_ENCODED = re.compile(r"https?%3A(%2F|/)", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


class MementoAsked(NamedTuple):
    """One capture."""

    second: float
    digits: str
    modifier: str
    url: str


class MapAsked(NamedTuple):
    """A page of a TimeMap."""

    form: str
    number: int
    url: str


class GateAsked(NamedTuple):
    """Whatever is nearest to the moment in the header."""

    url: str


def asked_for(rest: str) -> MementoAsked | MapAsked | GateAsked:
    """What stands behind the name of the collection, query and all.

    >>> asked_for("20240101000000id_/http:/example.org/?a=1")
    MementoAsked(second=1704067200.0, digits='20240101000000', modifier='id_', url='http://example.org/?a=1')
    >>> asked_for("timemap/link/2/example.org/"), asked_for("timegate/http://example.org/x")
    (MapAsked(form='link', number=2, url='http://example.org/'), GateAsked(url='http://example.org/x'))
    """
    if found := _MAP.fullmatch(rest):
        return MapAsked(found[1], int(found[2] or 1), web_url(found[3]))
    if rest.startswith("timegate/"):
        return GateAsked(web_url(rest.removeprefix("timegate/")))
    found = _MEMENTO.fullmatch(rest)
    if found and (found[2] or "/" in found[3] or "." in found[3]):
        modifier = found[2] or ""
        if modifier not in MODIFIERS:
            raise RefusalError(f"There is no {modifier} here; there are {', '.join(MODIFIERS[1:])}.", 404)
        return MementoAsked(begin_of(found[1]), found[1], modifier, web_url(found[3]))
    return GateAsked(web_url(rest))


def web_url(text: str) -> str:
    """A URL as people, programs and proxies write it into a path: without scheme, with a slash too few, or encoded.

    >>> web_url("http%3A%2F%2Fexample.org%2Fa%3Fb%3D1"), web_url("example.org/a%2Fb")
    ('http://example.org/a?b=1', 'http://example.org/a%2Fb')
    """
    if _ENCODED.match(text):
        text = unquote(text)
    text = _ONE_SLASH.sub(r"\1://", text, count=1)
    if not _SCHEME.match(text) or re.match(r"[^/]*:\d", text):
        text = f"http://{text.lstrip('/')}"
    found = address(text)
    if found is None:
        raise RefusalError(f"{text[:200]!r} is not the address of a web page; write for example http://example.org/.")
    return found.url


def uris_at(scheme: str, authority: str, collection: str) -> ArchiveUris:
    """Where this archive shows what it holds, as whoever asks sees it."""
    if not re.fullmatch(r"[A-Za-z0-9.\-:\[\]_]{1,255}", authority):
        raise RefusalError("The Host header names no host.")
    return ArchiveUris.below(f"{scheme}://{authority}/{collection}/")
