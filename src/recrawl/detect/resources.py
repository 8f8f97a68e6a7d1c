"""Which captures of an archive are resources, not pages: what pages embed, and what is there for crawlers alone.

A browser loads style sheets, scripts, pictures, fonts, sound and film to show a page; crawlers read robots.txt and
sitemaps. Archives hold captures of all of these. They are needed to show pages, but nobody asks when to come back to
them: they change when pages are made anew, and a crawler fetches them with the pages that embed them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SITEMAP = re.compile(r"sitemap.*\.xml(\.gz)?")
_KINDS = ("image/", "font/", "audio/", "video/", "application/font-", "application/x-font-")
_TYPES = frozenset(
    {
        "text/css",
        "text/javascript",
        "text/ecmascript",
        "application/javascript",
        "application/x-javascript",
        "application/ecmascript",
        "application/vnd.ms-fontobject",
        "application/x-shockwave-flash",
        "application/manifest+json",
        "application/wasm",
    }
)
_UNTOLD = frozenset({"", "-", "unk", "application/octet-stream", "application/x-unknown-content-type"})
"""Media types that tell nothing."""
_ENDING = re.compile(
    r"css|m?js|map|png|jpe|jpe?g|gif|webp|avif|svgz?|ico|bmp|tiff?|woff2?|ttf|otf|eot|mp3|m4[av]|og[agv]|wav|flac|mp4|webm|avi|"
    r"mov|mpe?g|flv|swf"
)
"""Endings of names of what pages embed."""


def is_for_crawlers(url: str) -> bool:
    """Whether a URL is by its name that of a robots.txt or a sitemap: nobody reads these but crawlers.

    >>> [is_for_crawlers(f"http://a.org/{name}") for name in ("robots.txt", "x/Sitemap-1.xml.gz", "x/robots.txt")]
    [True, True, False]
    """
    path = _path(url)
    return path == "/robots.txt" or _SITEMAP.fullmatch(path.rpartition("/")[2]) is not None


def is_resource_type(mime: str) -> bool | None:
    """Whether a media type is that of something which pages embed; ``None`` if it tells nothing.

    >>> is_resource_type("image/png"), is_resource_type("text/html; charset=utf-8"), is_resource_type("unk")
    (True, False, None)
    """
    name = mime.partition(";")[0].strip().lower()
    return None if name in _UNTOLD else name.startswith(_KINDS) or name in _TYPES


def is_resource(url: str, types: Iterable[str]) -> bool:
    """Whether all captures of a URL are of a resource; ``types`` are the media types of those that succeeded.

    One capture of a page makes it a page. Where no type tells anything, the ending of the path does.

    >>> is_resource("http://a.org/x", ["image/png"]), is_resource("http://a.org/x.css", ["text/html"])
    (True, False)
    >>> is_resource("http://a.org/x.css", []), is_resource("http://a.org/robots.txt", ["text/plain"])
    (True, True)
    """
    if is_for_crawlers(url):
        return True
    told = {kind for mime in set(types) if (kind := is_resource_type(mime)) is not None}
    if told:
        return told == {True}
    name = _path(url).rpartition("/")[2]
    _, dot, ending = name.rpartition(".")
    return bool(dot) and _ENDING.fullmatch(ending) is not None


def _path(url: str) -> str:
    """The path of an absolute URL in small letters, without query and fragment."""
    _, slash, path = url.partition("://")[2].partition("#")[0].partition("?")[0].partition("/")
    return f"{slash}{path}".lower()
