"""Sitemaps: URLs that a site names itself, and what it claims about their changes.

Claims are claims: ``lastmod``, ``changefreq`` and ``priority`` say what the site wants crawlers to believe. The
protocol knows three kinds of files, and all are read: XML (a list of pages or of further sitemaps), text with one
URL a line, and feeds. Each may be gzipped. Memory grows by what is found only.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from recrawl.detect import decoded
from recrawl.errors import InputError
from recrawl.formats.captures import Report
from recrawl.formats.claims import FREQUENCIES, Entry, to_batches
from recrawl.formats.dates import w3c_time
from recrawl.formats.feed import ROOTS, Feed, FeedReader
from recrawl.formats.sniff import HEAD, Format, sniff_bytes
from recrawl.formats.url_list import WIDE, entry_of, read_url_list
from recrawl.formats.xml_stream import Enough, Stop, tell, trimmed, unpacked
from recrawl.model import Capture
from recrawl.urls import address

MAX_BYTES = 50 * 1024 * 1024
"""What the protocol allows, unpacked."""
MAX_URLS = 50_000
"""What the protocol allows in one file."""
_FIELDS = frozenset({"loc", "lastmod", "changefreq", "priority"})
_FIELD_DEPTH = 3
"""Of ``urlset/url/loc``. Deeper ones (``image:image/image:loc``) speak of something else."""
_OURS = "/schemas/sitemap/"
"""Part of every namespace that sitemaps themselves have had; those of extensions read ``/schemas/sitemap-image/``."""


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
    broken_at: int = 0
    """At which byte of the unpacked file it stopped."""


def read_sitemap(capture: Capture) -> Sitemap:
    """The sitemap in a capture.

    Raises:
        InputError: it is none, or it is packed in a way we cannot or will not unpack.
    """
    return parse_sitemap(decoded(capture, MAX_BYTES), capture.url)


def read_claims(data: bytes | BinaryIO, source: str, fetched: float, report: Report) -> Iterator[Any]:
    """The claims of a sitemap file, as Arrow record batches of ``claims.schema()``. Children are not followed.

    Of an open file no more is read than the protocol allows, unless it is a plain list of URLs: what the protocol
    allows is asked of files only that say they are sitemaps.
    """
    stream = io.BytesIO(data) if isinstance(data, bytes) else data
    head = stream.read(HEAD)
    stream.seek(0)
    if sniff_bytes(head) is Format.SEEDS:
        yield from read_url_list(stream, source, fetched, report)
        return
    try:
        found = parse_sitemap(stream.read(MAX_BYTES + 1), source)
    except InputError as error:
        if report.strict:
            raise
        report.bad += 1
        report.on_bad(error)
        return
    yield from to_batches(found.entries, source, fetched)
    if found.children:
        report.skip("a further sitemap", len(found.children))
    if found.skipped:
        report.skip("not an http(s) URL", found.skipped)
    if found.broken:
        report.broken(f"the rest is not read: {found.broken}", source=source, position=found.broken_at)


def parse_sitemap(data: bytes, source: str) -> Sitemap:
    """The sitemap in a file's bytes, plain or gzipped. Of a file beyond the limits, the first part is kept.

    Raises:
        InputError: it is none or it has a document type. Where only its end is broken the rest is returned.

    >>> parse_sitemap(b"<urlset><url><loc>http://a.example/</loc><lastmod>1970</lastmod></url></urlset>", "x").entries
    (Entry(url='http://a.example/', lastmod=0.0, changefreq='', priority=None),)
    """
    reader = _Reader(source)
    stop = tell(data, reader, source, MAX_BYTES)
    if stop.why and not reader.begun:
        return _parse_lines(data, source, stop)
    found = reader.found()
    if stop.why and not (found.entries or found.children):
        raise InputError(f"this is not a sitemap ({stop.why})", source=source, position=stop.position)
    return replace(found, broken=stop.why, broken_at=stop.position) if stop.why else found


def _parse_lines(data: bytes, source: str, not_xml: Stop) -> Sitemap:
    """A text file with one URL a line; a file without any is no sitemap."""
    text, broken = _text(data)
    entries: list[Entry] = []
    skipped, position = 0, len(data) - len(trimmed(data))
    for line in text.splitlines(keepends=True):
        found = entry_of(line.decode("utf-8", "replace").removeprefix("\ufeff"))
        if found is not None and len(entries) == MAX_URLS:
            broken = _TOO_MANY
            break
        if found is not None:
            entries.append(found)
        elif line.strip():
            skipped += 1
        position += len(line)
    if not entries:
        raise InputError(f"this is not a sitemap ({broken or not_xml.why})", source=source, position=not_xml.position)
    return Sitemap(tuple(entries), (), skipped, broken, position if broken else 0)


_TOO_MANY = f"it lists more than {MAX_URLS} URLs"


def _text(data: bytes) -> tuple[bytes, str]:
    """A text file as UTF-8, unpacked, and why it is not all of it."""
    parts: list[bytes] = []
    broken = ""
    try:
        parts.extend(unpacked(data, MAX_BYTES))
    except (zlib.error, Enough) as error:
        broken = str(error)
    whole = b"".join(parts)
    return (whole.decode("utf-16", "replace").encode() if whole.startswith(WIDE) else whole), broken


class _Reader:
    """What the XML parser tells its findings to; feeds are handed on."""

    def __init__(self, source: str) -> None:
        self.begun = False
        """There is a first element: it is XML."""
        self._source = source
        self._feed: FeedReader | None = None
        self._entries: list[Entry] = []
        self._is_index = False
        self._skipped = 0
        self._space = ""
        self._depth = 0
        self._names: dict[str, str] = {}
        self._fields: dict[str, str] = {}
        self._text: list[str] | None = None
        self._field = ""

    def found(self) -> Sitemap:
        """All that was told so far."""
        if self._feed is not None:
            return Sitemap(Feed(tuple(self._feed.items)).entries(), (), self._feed.skipped)
        entries = tuple(self._entries)
        return Sitemap((), entries, self._skipped) if self._is_index else Sitemap(entries, (), self._skipped)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Enter an element."""
        if self._feed is not None:
            self._feed.start(tag, attributes)
            return
        self._depth += 1
        if self._depth == _FIELD_DEPTH:
            self._field = self._names.get(tag) or self._name(tag)
            self._text = [] if self._field in _FIELDS else None
        elif self._depth == _FIELD_DEPTH - 1:
            self._fields = {}
            self._field, self._text = "", []  # some write the URL right into <sitemap>
        elif self._depth == 1:
            self._open(tag, attributes)
        else:
            self._text = None

    def data(self, text: str) -> None:
        """Text of the element that is open."""
        if self._text is not None:
            self._text.append(text)
        elif self._feed is not None:
            self._feed.data(text)

    def end(self, tag: str) -> None:
        """Leave an element."""
        if self._feed is not None:
            self._feed.end(tag)
            return
        if self._text is not None and self._depth >= _FIELD_DEPTH - 1:
            self._fields.setdefault(self._field, "".join(self._text).strip())
        if self._depth == _FIELD_DEPTH - 1:
            self._add()
        self._text = None
        self._depth -= 1

    def _open(self, tag: str, attributes: dict[str, str]) -> None:
        self.begun = True
        self._space, _, name = tag.rpartition("}")
        name = name.lower()
        if name in ROOTS:
            self._feed = FeedReader(self._source)
            self._feed.start(tag, attributes)
        elif name not in ("urlset", "sitemapindex"):
            raise InputError(f"a sitemap begins with urlset or sitemapindex, not {name!r}", source=self._source)
        self._is_index = name == "sitemapindex"

    def _name(self, tag: str) -> str:
        """The field a tag stands for, of whatever namespace that is not an extension's."""
        space, _, name = tag.rpartition("}")
        ours = not space or space == self._space or _OURS in space
        self._names[tag] = name.lower() if ours else "-"
        return self._names[tag]

    def _add(self) -> None:
        fields = self._fields
        loc = fields.get("loc") or fields.get("", "")
        found = address(loc) if loc else None
        if found is None:
            self._skipped += 1
            return
        if len(self._entries) == MAX_URLS:
            raise Enough(_TOO_MANY)
        frequency = fields.get("changefreq", "").lower()
        self._entries.append(
            Entry(
                found.url,
                w3c_time(fields["lastmod"]) if "lastmod" in fields else None,
                frequency if frequency in FREQUENCIES else "",
                _priority(fields["priority"]) if "priority" in fields else None,
            )
        )


def _priority(text: str) -> float | None:
    """A number from 0 to 1, also with a decimal comma; anything else claims nothing."""
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return None
    return value if 0.0 <= value <= 1.0 else None
