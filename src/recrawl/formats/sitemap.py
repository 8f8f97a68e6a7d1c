"""Sitemaps: URLs that a site names itself, and what it claims about their changes.

Claims are claims: ``lastmod`` and ``changefreq`` say what the site wants crawlers to believe. The file is
read as it streams by, without a tree, so memory grows by what is found in it only. A sitemap has no use
for a document type, and entity bombs live there: a file with one is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from xml.etree.ElementTree import ParseError, XMLParser

from recrawl.detect import decoded, unfolded
from recrawl.errors import InputError
from recrawl.model import Capture
from recrawl.urls import address

MAX_BYTES = 50 * 1024 * 1024
"""What the protocol allows, unpacked."""
FREQUENCIES = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})
_GZIP = b"\x1f\x8b"
_AT_ONCE = 65_536
"""Bytes given to the parser in one go; it keeps a copy of them."""
_FIELDS = ("loc", "lastmod", "changefreq")
_FIELD_DEPTH = 3
"""Of ``urlset/url/loc``. Deeper ones (``image:image/image:loc``) speak of something else."""


class Entry(NamedTuple):
    """One URL of a sitemap."""

    url: str
    lastmod: float | None
    """Seconds since the epoch; ``None`` if it claims nothing that can be read."""
    changefreq: str
    """One of :data:`FREQUENCIES`, or empty."""


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What one file says."""

    entries: tuple[Entry, ...] = ()
    children: tuple[Entry, ...] = ()
    """Further sitemaps, if it is an index."""
    skipped: int = 0
    """Entries without an http(s) URL."""
    broken: str = ""
    """Why reading stopped before the end, empty if it did not. What came before stands."""


def read_sitemap(capture: Capture) -> Sitemap:
    """The sitemap in a capture.

    Raises:
        InputError: it is none, or it is packed in a way we cannot or will not unpack.
    """
    return parse_sitemap(decoded(capture, MAX_BYTES), capture.url)


def parse_sitemap(data: bytes, source: str) -> Sitemap:
    """The sitemap in a file's bytes, plain or gzipped.

    Raises:
        InputError: it is none, it is too long or broken, or it has a document type. Where only its end is broken
            the rest is returned.

    >>> parse_sitemap(b"<urlset><url><loc>http://a.example/</loc><lastmod>1970</lastmod></url></urlset>", "x").entries
    (Entry(url='http://a.example/', lastmod=0.0, changefreq=''),)
    """
    if data.startswith(_GZIP):
        data = unfolded(data, "gzip", MAX_BYTES, source)
    if len(data) > MAX_BYTES:
        raise InputError(f"the sitemap is longer than {MAX_BYTES} bytes", source=source)
    reader = _Reader(source)
    parser = XMLParser(target=reader)  # noqa: S314 - no entities: _Reader refuses every DTD
    broken = ""
    try:
        blank = len(data) - len(data.lstrip())  # lines before the declaration: common, and forbidden
        for start in range(blank, len(data), _AT_ONCE):
            parser.feed(data[start : start + _AT_ONCE])
        parser.close()
    except (ParseError, ValueError, LookupError) as error:
        broken = str(error)
        if not (reader.entries or reader.children):
            raise InputError(f"this is not a sitemap ({error})", source=source) from error
    return Sitemap(tuple(reader.entries), tuple(reader.children), reader.skipped, broken)


class _Reader:
    """What the XML parser tells its findings to."""

    def __init__(self, source: str) -> None:
        self.entries: list[Entry] = []
        self.children: list[Entry] = []
        self.skipped = 0
        self._source = source
        self._found = self.entries
        self._depth = 0
        self._fields: dict[str, str] = {}
        self._text: list[str] | None = None

    def doctype(self, _name: str, _public: str | None, _system: str | None) -> None:
        raise InputError("the sitemap has a document type, which none needs", source=self._source)

    def start(self, tag: str, _attributes: Mapping[str, str]) -> None:
        self._depth += 1
        name = _local(tag)
        if self._depth == 1:
            if name not in ("urlset", "sitemapindex"):
                raise InputError(f"a sitemap begins with urlset or sitemapindex, not {name!r}", source=self._source)
            self._found = self.children if name == "sitemapindex" else self.entries
        elif self._depth == _FIELD_DEPTH - 1:
            self._fields = {}
        self._text = [] if self._depth == _FIELD_DEPTH and name in _FIELDS else None

    def data(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def end(self, tag: str) -> None:
        if self._depth == _FIELD_DEPTH and self._text is not None:
            self._fields.setdefault(_local(tag), "".join(self._text).strip())
        elif self._depth == _FIELD_DEPTH - 1:
            self._add()
        self._text = None
        self._depth -= 1

    def _add(self) -> None:
        found = address(self._fields.get("loc", ""))
        if found is None:
            self.skipped += 1
            return
        frequency = self._fields.get("changefreq", "").lower()
        frequency = frequency if frequency in FREQUENCIES else ""
        self._found.append(Entry(found.url, w3c_time(self._fields.get("lastmod", "")), frequency))

    def close(self) -> None:
        """Nothing is left to do at the end."""


def _local(tag: str) -> str:
    return tag.rpartition("}")[2].lower()


def w3c_time(text: str) -> float | None:
    """Seconds since the epoch of a W3C date, with or without time and zone (then UTC); ``None`` if it is none.

    >>> w3c_time("2026-11"), w3c_time("2026-11-15T09:14:07+01:00"), w3c_time("yesterday")
    (1793491200.0, 1794730447.0, None)
    """
    padded = text + "-01-01"[len(text) - 4 :] if len(text) in (len("2026"), len("2026-11")) else text
    try:
        moment = datetime.fromisoformat(padded)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
