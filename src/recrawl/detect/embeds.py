"""What a browser loads to show a page and nobody visits: pictures, styles, scripts, sound, objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from recrawl.detect.html import base_of
from recrawl.errors import require
from recrawl.urls import Address, address

_SOURCES = (
    "img[src], img[srcset], source[src], source[srcset], link[rel][href], link[imagesrcset], script[src], embed[src], "
    "object[data], audio[src], video[src], video[poster], track[src], input[type=image][src]"
)
_ATTRIBUTES = ("src", "data", "poster")
_LOADED = frozenset({"apple-touch-icon", "icon", "manifest", "modulepreload", "preload", "stylesheet"})
"""Values of ``rel`` by which a page loads something; all others point somewhere."""
_CANDIDATE = re.compile(r"[\s,]*([^\s,]\S*)")
_DESCRIPTORS = re.compile(r"(?:\([^)]*\)?|[^,(])*")


def embeds_of(html: str, url: str) -> tuple[Address, ...]:
    """Addresses of all that the page at ``url`` embeds, each key once, in the order of the page.

    Of a picture in several sizes, all. What stands in the page itself (``data:``) is no address. Other pages are no
    embeds: frames are links.

    >>> page = "<img src=a.png srcset='b,c.png 2x, data:image/png;base64,AA 3x, d.png'>"
    >>> [one.url for one in embeds_of(page, "http://example.com/")]
    ['http://example.com/a.png', 'http://example.com/b,c.png', 'http://example.com/d.png']
    """
    tree = require("selectolax.lexbor", "crawl").LexborHTMLParser(html)
    base = base_of(tree, url)
    found = (address(written, base=base) for written in dict.fromkeys(_embedded(tree)) if written.strip())
    first: dict[str, Address] = {}
    for one in found:
        if one is not None:
            first.setdefault(one.key, one)
    return tuple(first.values())


def candidates(srcset: str) -> Iterator[str]:
    """The URLs of a ``srcset``, split as HTML says: at spaces, and at commas that end a candidate.

    >>> list(candidates("a.png, b,c.png 2x,d.png 480w , e.png,")), list(candidates("data:image/png;base64,AA== 1x"))
    (['a.png', 'b,c.png', 'd.png', 'e.png'], ['data:image/png;base64,AA=='])
    """
    place = 0
    while found := _CANDIDATE.match(srcset, place):
        place, written = found.end(), found[1]
        url = written.rstrip(",")
        yield url
        if url == written:  # what follows belongs to it, up to a comma outside of parentheses
            descriptors = _DESCRIPTORS.match(srcset, place)
            place = descriptors.end() if descriptors else place


def _embedded(tree: Any) -> Iterator[str]:  # noqa: ANN401 - a selectolax tree
    """Every reference as written."""
    for node in tree.css(_SOURCES):
        attributes = node.attributes
        loads = node.tag != "link" or not _LOADED.isdisjoint((attributes.get("rel") or "").lower().split())
        if loads and node.tag == "link":
            yield attributes.get("href") or ""
        yield from (attributes.get(name) or "" for name in _ATTRIBUTES if name in attributes)
        for name in ("srcset", "imagesrcset"):
            yield from candidates(attributes.get(name) or "")
