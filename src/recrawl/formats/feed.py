"""Feeds: RSS 2.0 (with 0.9x and 1.0), Atom and JSON Feed (jsonfeed.org, 1 and 1.1).

Their entries are claims of a site.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

from recrawl.errors import InputError
from recrawl.formats.dates import w3c_time
from recrawl.formats.site_claims_format import ClaimedPage, EntryFault
from recrawl.formats.xml_stream import tell
from recrawl.urls import address

MAX_BYTES = 50 * 1024 * 1024
"""Longer feeds are read up to here."""
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
