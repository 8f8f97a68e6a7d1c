"""Feeds: RSS 2.0 (with its relatives 0.9x and 1.0) and Atom. What is new on a site, and when, as it claims itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from recrawl.errors import InputError
from recrawl.formats.claims import Entry
from recrawl.formats.dates import w3c_time
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


class Item(NamedTuple):
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

    items: tuple[Item, ...] = ()
    skipped: int = 0
    """Items without an http(s) URL."""
    broken: str = ""
    """Why reading stopped before the end, empty if it did not. What came before stands."""

    def entries(self) -> tuple[Entry, ...]:
        """The items as claims."""
        return tuple(
            Entry(item.url, item.updated if item.updated is not None else item.published) for item in self.items
        )


def parse_feed(data: bytes, source: str) -> Feed:
    """The feed in a file's bytes, plain or gzipped.

    Raises:
        InputError: it is none, or it has a document type of its own.

    >>> rss = b"<rss><channel><item><link>http://a.example/1</link><pubDate>1970-01-02</pubDate></item></channel></rss>"
    >>> parse_feed(rss, "x").items
    (Item(url='http://a.example/1', id='', updated=86400.0, published=86400.0),)
    """
    reader = FeedReader(source)
    stop = tell(data, reader, source, MAX_BYTES)
    if stop.why and not reader.items:
        raise InputError(f"this is not a feed ({stop.why})", source=source, position=stop.position)
    return Feed(tuple(reader.items), reader.skipped, stop.why)


class FeedReader:
    """What the XML parser tells its findings to."""

    def __init__(self, source: str) -> None:
        self.items: list[Item] = []
        self.skipped = 0
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
        self._bases.append(self._within(attributes.get(_BASE)))
        self._text = None
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
        if self._text is not None:
            text = "".join(self._text).strip()
            if text:
                self._fields.setdefault(tag.rpartition("}")[2].lower(), text)
            self._text = None
        if self._depth == self._item_depth:
            self._add()
            self._item_depth = 0
        self._depth -= 1
        self._bases.pop()

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

    def _add(self) -> None:
        fields = self._fields
        name = fields.get("guid") or fields.get("id", "")
        link = fields.get("link") or ("" if "opaque" in fields else name)
        found = (address(link) or address(link, self._bases[-1])) if link else None
        if found is None:
            self.skipped += 1
            return
        self.items.append(Item(found.url, name, _first(fields, _UPDATED), _first(fields, _PUBLISHED)))


def _first(fields: dict[str, str], names: tuple[str, ...]) -> float | None:
    return next((when for name in names if (when := w3c_time(fields.get(name, ""))) is not None), None)
