"""Sitemaps and feeds: the URLs that a site lists, and its claims about their changes.

``lastmod``, ``changefreq``, ``priority`` and the dates of feeds are claims of a site about its own pages. They are
stored as claimed and need not be true. The sitemap protocol (conventions S1) has three kinds of files, and all are
read: XML (a list of pages or of further sitemaps), text with one URL per line, and feeds: RSS 2.0 (with 0.9x and 1.0),
Atom and JSON Feed (jsonfeed.org, 1 and 1.1). Each may be gzipped. Memory grows only with the entries found.
"""

from __future__ import annotations

import codecs
import enum
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

from recrawl.detect import decoded
from recrawl.errors import InputError, require
from recrawl.formats.cdx.line_blocks import blocks_of, pieces_of
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.dates import w3c_time
from recrawl.formats.sniff import HEAD, SourceFormat, sniff_bytes
from recrawl.formats.xml_stream import StopReading, XmlStop, tell, trimmed, unpacked
from recrawl.model import Capture
from recrawl.urls import address

BATCH = 20_000
"""Rows of a batch."""
_SHOWN = 200
"""Letters of a URL that names an entry in an error."""


class ChangeFrequency(enum.IntEnum):
    """How often a page is said to change (``changefreq``)."""

    UNSAID = 0
    ALWAYS = 1
    HOURLY = 2
    DAILY = 3
    WEEKLY = 4
    MONTHLY = 5
    YEARLY = 6
    NEVER = 7


FREQUENCIES = {one.name.lower(): one for one in ChangeFrequency if one}
"""The words of the protocol."""


class EntryFault(NamedTuple):
    """An entry of a sitemap or feed that our own code failed on. All others are read."""

    position: int
    """At which byte of the unpacked file."""
    error: str

    @property
    def words(self) -> str:
        """In a line, as :func:`recrawl.errors.our_fault` has it."""
        return f"recrawl itself failed here ({self.error})"


class ClaimedPage(NamedTuple):
    """One URL and what is claimed of it."""

    url: str
    lastmod: float | None = None
    """Seconds since the epoch; ``None`` if it claims nothing that can be read."""
    changefreq: str = ""
    """One of :data:`FREQUENCIES`, or empty."""
    priority: float | None = None
    """0 to 1, among the pages of the same site."""


def schema() -> Any:  # noqa: ANN401 - pyarrow ships no types
    """The Arrow schema of claims. No column holds nulls."""
    pa = require("pyarrow", "columns")
    return pa.schema(
        [
            pa.field("url", pa.string(), nullable=False),
            pa.field("source", pa.string(), nullable=False),  # the sitemap or feed that says so
            pa.field("time", pa.float64(), nullable=False),  # when the source was fetched, seconds since the epoch
            pa.field("lastmod", pa.float64(), nullable=False),  # NaN if unsaid
            pa.field("changefreq", pa.uint8(), nullable=False),  # a Frequency
            pa.field("priority", pa.float64(), nullable=False),  # NaN if unsaid
        ]
    )


def to_batches(
    entries: Sequence[ClaimedPage], source: str, fetched: float, report: ReadReport, rows: int = BATCH
) -> Iterator[Any]:
    """Entries of a source as Arrow record batches of :func:`schema`."""
    for first in range(0, len(entries), rows):
        yield from report.by_halves(
            entries[first : first + rows],
            lambda part: _batch(part, source, fetched),
            lambda part: f"{source}, {part[0].url[:_SHOWN]}",
        )


def _batch(part: Sequence[ClaimedPage], source: str, fetched: float) -> Any:  # noqa: ANN401 - pyarrow ships no types
    pa, nan = require("pyarrow", "columns"), float("nan")
    return pa.RecordBatch.from_arrays(
        [
            pa.array([entry.url for entry in part], pa.string()),
            pa.repeat(pa.scalar(source, pa.string()), len(part)),
            pa.repeat(pa.scalar(fetched, pa.float64()), len(part)),
            pa.array([nan if entry.lastmod is None else entry.lastmod for entry in part], pa.float64()),
            pa.array([FREQUENCIES.get(entry.changefreq, ChangeFrequency.UNSAID) for entry in part], pa.uint8()),
            pa.array([nan if entry.priority is None else entry.priority for entry in part], pa.float64()),
        ],
        schema=schema(),
    )


ROOTS = frozenset({"rss", "feed", "rdf"})
"""Local names, in lower case, of the element a feed begins with."""
_ITEMS = frozenset({"item", "entry"})
_TEXTS = frozenset({"link", "guid", "id", "pubdate", "date", "updated", "published", "modified", "issued"})
_UPDATED = ("updated", "modified", "date", "pubdate")
"""Names of the time of the last change, best first."""
_PUBLISHED = ("published", "issued", "pubdate", "date")
_MEDIA = ("search.yahoo.com/mrss", "/media/", "/itunes")
"""Namespaces whose fields speak of something else."""
_BASE = "http://www.w3.org/XML/1998/namespace}base"


class FeedItem(NamedTuple):
    """One entry of a feed."""

    url: str
    id: str
    """As the feed names it; often a URL, sometimes not. May be empty."""
    updated: float | None
    """Seconds since the epoch. RSS knows only when an item was published."""
    published: float | None


@dataclass(frozen=True, slots=True)
class Feed:
    """What one file says."""

    items: tuple[FeedItem, ...] = ()
    skipped: int = 0
    """Items without an http(s) URL."""
    broken: str = ""
    """Why reading stopped before the end, empty if it did not. What came before stands."""
    faults: tuple[EntryFault, ...] = ()
    """Items that our own code failed on."""

    def entries(self) -> tuple[ClaimedPage, ...]:
        """The items as claims."""
        return tuple(
            ClaimedPage(item.url, item.updated if item.updated is not None else item.published) for item in self.items
        )


def parse_feed(data: bytes, source: str) -> Feed:
    """The feed in a file's bytes, plain or gzipped.

    Raises:
        InputError: it is none, or it has a document type of its own.

    >>> rss = b"<rss><channel><item><link>http://a.example/1</link><pubDate>1970-01-02</pubDate></item></channel></rss>"
    >>> parse_feed(rss, "x").items
    (FeedItem(url='http://a.example/1', id='', updated=86400.0, published=86400.0),)
    """
    reader = FeedReader(source)
    stop = tell(data, reader, source, MAX_BYTES)
    if stop.why and not reader.items:
        raise InputError(f"this is not a feed ({stop.why})", source=source, position=stop.position)
    return Feed(tuple(reader.items), reader.skipped, stop.why, tuple(reader.faults))


class FeedReader:
    """What the XML parser tells its findings to."""

    def __init__(self, source: str) -> None:
        self.items: list[FeedItem] = []
        self.skipped = 0
        self.faults: list[EntryFault] = []
        """Items that our own code failed on."""
        self._faulty = False
        """It failed on the item that is being read."""
        self._source = source
        self._depth = 0
        self._item_depth = 0
        """Where the item began that is being read; 0 outside of items."""
        self._fields: dict[str, str] = {}
        self._text: list[str] | None = None
        self._bases: list[str] = [source]

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Enter an element."""
        self._depth += 1
        space, _, name = tag.rpartition("}")
        name = name.lower()
        if self._depth == 1 and name not in ROOTS:
            raise InputError(f"a feed begins with rss, feed or RDF, not {name!r}", source=self._source)
        self._bases.append(self._bases[-1])  # whatever fails below, every element that is open has one
        self._text = None
        self._bases[-1] = self._within(attributes.get(_BASE))
        if not self._item_depth:
            if name in _ITEMS:
                self._item_depth, self._fields = self._depth, {}
        elif self._depth == self._item_depth + 1 and name in _TEXTS and not any(part in space for part in _MEDIA):
            self._text = []
            self._note(name, attributes)

    def data(self, text: str) -> None:
        """Text of the element that is open."""
        if self._text is not None:
            self._text.append(text)

    def end(self, tag: str) -> None:
        """Leave an element."""
        parts, self._text = self._text, None
        if parts is not None and (text := "".join(parts).strip()):
            self._fields.setdefault(tag.rpartition("}")[2].lower(), text)
        is_item, base = self._depth == self._item_depth, self._bases.pop()
        self._depth -= 1  # first: whatever fails, the next element has its depth
        if is_item:
            self._item_depth = 0
            faulty, self._faulty = self._faulty, False
            if not faulty:
                self._add(base)

    def failed(self, error: Exception, position: int) -> bool:
        """Note that our own code failed on the item that is open; there is no rest where it fails outside of all."""
        if not self._depth:
            return False
        if not self._faulty:
            self.faults.append(EntryFault(position, repr(error)))
        self._faulty = self._item_depth > 0
        return True

    def _within(self, base: str | None) -> str:
        found = address(base, self._bases[-1]) if base else None
        return found.url if found else self._bases[-1]

    def _note(self, name: str, attributes: dict[str, str]) -> None:
        """Attributes that decide what a field means."""
        if name == "link" and "href" in attributes and attributes.get("rel", "alternate") == "alternate":
            self._fields.setdefault("link", attributes["href"])
        elif name == "link" and "href" in attributes:
            self._text = None  # edit, self, enclosure: not the page
        elif name == "guid" and attributes.get("isPermaLink", "true").lower() == "false":
            self._fields["opaque"] = "yes"

    def _add(self, base: str) -> None:
        fields = self._fields
        name = fields.get("guid") or fields.get("id", "")
        link = fields.get("link") or ("" if "opaque" in fields else name)
        found = (address(link) or address(link, base)) if link else None
        if found is None:
            self.skipped += 1
            return
        self.items.append(FeedItem(found.url, name, _first(fields, _UPDATED), _first(fields, _PUBLISHED)))


def _first(fields: dict[str, str], names: tuple[str, ...]) -> float | None:
    return next((when for name in names if (when := w3c_time(fields.get(name, ""))) is not None), None)


_VERSION = "://jsonfeed.org/version/"


def is_json(data: bytes) -> bool:
    r"""Whether a file looks like JSON rather than like XML or text.

    >>> is_json(b'\xef\xbb\xbf {"version": 1}'), is_json(b"<rss>")
    (True, False)
    """
    return data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def parse_json_feed(data: bytes, source: str) -> Feed:
    """The feed in a file's bytes. URLs are resolved against ``source``.

    Raises:
        InputError: it is none.

    >>> items = b'[{"url": "/a", "date_modified": "1970-01-02"}]'
    >>> feed = b'{"version": "https://jsonfeed.org/version/1.1", "items": %s}' % items
    >>> parse_json_feed(feed, "http://x.example/feed.json").items
    (FeedItem(url='http://x.example/a', id='', updated=86400.0, published=None),)
    """
    try:
        feed = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not JSON ({error})", source=source) from error
    items = feed.get("items") if isinstance(feed, dict) else None
    if not isinstance(items, list) or _VERSION not in str(feed.get("version", "")):
        raise InputError("this is JSON, but no feed", source=source)
    found: list[FeedItem] = []
    faults: list[EntryFault] = []
    for item in items:
        try:
            one = _item(item, source)
        except Exception as error:  # noqa: BLE001 - one item must not end the reading of all others
            faults.append(EntryFault(0, repr(error)))
            continue
        if one is not None:
            found.append(one)
    return Feed(tuple(found), len(items) - len(found) - len(faults), faults=tuple(faults))


def _item(item: object, source: str) -> FeedItem | None:
    """An entry; ``None`` if it names no page. Its id is one where it has no URL and the id is written as one."""
    if not isinstance(item, dict):
        return None
    name = str(item.get("id") or "")
    link = item.get("url") or (name if "://" in name else "")
    page = address(link, base=source) if isinstance(link, str) and link else None
    if page is None:
        return None
    return FeedItem(page.url, name, _time(item.get("date_modified")), _time(item.get("date_published")))


def _time(text: object) -> float | None:
    return w3c_time(text) if isinstance(text, str) else None


WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How a text in UTF-16 begins."""
_AT_ONCE = 1 << 20
"""Bytes of a list that are held together."""
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
