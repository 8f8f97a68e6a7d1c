"""Sitemaps: the URLs that a site lists, and its claims about their changes; and plain lists of URLs (conventions S1).

``lastmod``, ``changefreq`` and ``priority`` are claims and need not be true. The protocol has three kinds of files, and
all are read: XML (a list of pages or of further sitemaps), text with one URL per line, and feeds. Each may be gzipped.
Memory grows only with the entries found.
"""

from __future__ import annotations

import codecs
import io
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, BinaryIO

from recrawl.detect import decoded
from recrawl.errors import InputError
from recrawl.formats.cdx.line_blocks import blocks_of, pieces_of
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.dates import w3c_time
from recrawl.formats.feed import ROOTS, Feed, FeedReader
from recrawl.formats.site_claims_format import FREQUENCIES, ClaimedPage, EntryFault, to_batches
from recrawl.formats.sniff import HEAD, SourceFormat, sniff_bytes
from recrawl.formats.xml_stream import StopReading, XmlStop, tell, trimmed, unpacked
from recrawl.model import Capture
from recrawl.urls import address

WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How a text in UTF-16 begins."""
_AT_ONCE = 1 << 20
"""Bytes of a list that are held together."""
_SHOWN = 200
"""Letters of a line that names it in an error."""
_SCHEME = 16
"""A line that is a URL has its ``://`` before this character, blanks included."""


def read_url_list(stream: BinaryIO, source: str, fetched: float, report: ReadReport) -> Iterator[Any]:
    """The pages of a list, plain or gzipped, as Arrow record batches of ``claims.schema()``.

    A sitemap may have 50,000 lines, a list of seeds as many as there are; memory is a few blocks of it. What follows
    a TAB is somebody's note and left out. A list without any URL is told as broken.
    """
    pieces = pieces_of(stream, source, report, _AT_ONCE)
    first = next(pieces, b"")
    every: Iterable[bytes] = chain([first], pieces)
    taken = skipped = 0
    for block in blocks_of(_narrow(every) if first.startswith(WIDE) else every, source, report, size=_AT_ONCE):
        for entries, others in report.by_halves(
            block.text.decode().split("\n"), entries_of, lambda lines: f"{source}, {lines[0][:_SHOWN]}"
        ):
            taken, skipped = taken + len(entries), skipped + others
            yield from to_batches(entries, source, fetched, report)
    if not taken:
        report.broken("there is no http or https URL in this list", source=source, position=0)
    elif skipped:
        report.skip("not an http(s) URL", skipped)


def entries_of(lines: Iterable[str]) -> tuple[list[ClaimedPage], int]:
    """The pages that lines name, and how many lines name none; empty ones do not count."""
    entries, others = [], 0
    for line in lines:
        found = entry_of(line)
        if found is not None:
            entries.append(found)
        elif line.strip():
            others += 1
    return entries, others


def entry_of(line: str) -> ClaimedPage | None:
    """The page that a line names."""
    url = line.partition("\t")[0] if "\t" in line else line
    found = address(url) if "://" in url[:_SCHEME] else None
    return ClaimedPage(found.url) if found else None


def _narrow(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """UTF-16 as UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for piece in pieces:
        yield decoder.decode(piece).encode()


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

    entries: tuple[ClaimedPage, ...] = ()
    children: tuple[ClaimedPage, ...] = ()
    """Further sitemaps, if it is an index."""
    skipped: int = 0
    """Entries without an http(s) URL."""
    broken: str = ""
    """Why reading stopped before the end, empty if it did not. What came before stands."""
    broken_at: int = 0
    """At which byte of the unpacked file it stopped."""
    faults: tuple[EntryFault, ...] = ()
    """Entries that our own code failed on."""


def read_sitemap(capture: Capture) -> Sitemap:
    """The sitemap in a capture.

    Raises:
        InputError: it is none, or it is packed in a way we cannot or will not unpack.
    """
    return parse_sitemap(decoded(capture, MAX_BYTES), capture.url)


def read_claims(data: bytes | BinaryIO, source: str, fetched: float, report: ReadReport) -> Iterator[Any]:
    """The claims of a sitemap file, as Arrow record batches of ``claims.schema()``. Children are not followed.

    Of an open file no more is read than the protocol allows, unless it is a plain list of URLs: what the protocol
    allows is asked of files only that say they are sitemaps.
    """
    stream = io.BytesIO(data) if isinstance(data, bytes) else data
    head = stream.read(HEAD)
    stream.seek(0)
    if sniff_bytes(head) is SourceFormat.SEEDS:
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
    yield from to_batches(found.entries, source, fetched, report)
    for fault in found.faults:
        report.broken(fault.words, source=source, position=fault.position, remedy="Please report it.")
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
    (ClaimedPage(url='http://a.example/', lastmod=0.0, changefreq='', priority=None),)
    """
    reader = _SitemapHandler(source)
    stop = tell(data, reader, source, MAX_BYTES)
    if stop.why and not reader.begun:
        return _parse_lines(data, source, stop)
    found = reader.found()
    if stop.why and not (found.entries or found.children):
        raise InputError(f"this is not a sitemap ({stop.why})", source=source, position=stop.position)
    return replace(found, broken=stop.why, broken_at=stop.position) if stop.why else found


def _parse_lines(data: bytes, source: str, not_xml: XmlStop) -> Sitemap:
    """A text file with one URL a line; a file without any is no sitemap."""
    text, broken = _text(data)
    entries: list[ClaimedPage] = []
    skipped, position = 0, len(data) - len(trimmed(data))
    faults: list[EntryFault] = []
    for line in text.splitlines(keepends=True):
        try:
            found = entry_of(line.decode("utf-8", "replace").removeprefix("\ufeff"))
        except Exception as error:  # noqa: BLE001 - one line must not end the reading of all others
            faults.append(EntryFault(position, repr(error)))
            position += len(line)
            continue
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
    return Sitemap(tuple(entries), (), skipped, broken, position if broken else 0, tuple(faults))


_TOO_MANY = f"it lists more than {MAX_URLS} URLs"


def _text(data: bytes) -> tuple[bytes, str]:
    """A text file as UTF-8, unpacked, and why it is not all of it."""
    parts: list[bytes] = []
    broken = ""
    try:
        parts.extend(unpacked(data, MAX_BYTES))
    except (zlib.error, StopReading) as error:
        broken = str(error)
    whole = b"".join(parts)
    return (whole.decode("utf-16", "replace").encode() if whole.startswith(WIDE) else whole), broken


class _SitemapHandler:
    """What the XML parser tells its findings to; feeds are handed on."""

    def __init__(self, source: str) -> None:
        self.begun = False
        """There is a first element: it is XML."""
        self._source = source
        self._feed: FeedReader | None = None
        self._entries: list[ClaimedPage] = []
        self._is_index = False
        self._skipped = 0
        self._space = ""
        self._depth = 0
        self._names: dict[str, str] = {}
        self._fields: dict[str, str] = {}
        self._text: list[str] | None = None
        self._field = ""
        self._faults: list[EntryFault] = []
        self._faulty = False
        """Our own code failed on the entry that is being read."""

    def found(self) -> Sitemap:
        """All that was told so far."""
        if self._feed is not None:
            items = Feed(tuple(self._feed.items)).entries()
            return Sitemap(items, (), self._feed.skipped, faults=tuple(self._feed.faults))
        entries, faults = tuple(self._entries), tuple(self._faults)
        if self._is_index:
            return Sitemap((), entries, self._skipped, faults=faults)
        return Sitemap(entries, (), self._skipped, faults=faults)

    def failed(self, error: Exception, position: int) -> bool:
        """Note that our own code failed on the entry that is open; there is no rest where it fails outside of all."""
        if self._feed is not None:
            return self._feed.failed(error, position)
        if self._depth < _FIELD_DEPTH - 2:
            return False
        if not self._faulty:
            self._faults.append(EntryFault(position, repr(error)))
        self._faulty = self._depth >= _FIELD_DEPTH - 1
        return True

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
        text, self._text = self._text, None
        self._depth -= 1  # first: whatever fails, the next element has its depth
        if text is not None and self._depth >= _FIELD_DEPTH - 2:
            self._fields.setdefault(self._field, "".join(text).strip())
        if self._depth == _FIELD_DEPTH - 2:
            faulty, self._faulty = self._faulty, False
            if not faulty:
                self._add()

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
            raise StopReading(_TOO_MANY)
        frequency = fields.get("changefreq", "").lower()
        self._entries.append(
            ClaimedPage(
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
