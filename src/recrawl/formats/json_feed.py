"""JSON Feed (jsonfeed.org, versions 1 and 1.1): what is new on a site, as it claims itself."""

from __future__ import annotations

import json

from recrawl.errors import InputError
from recrawl.formats.dates import w3c_time
from recrawl.formats.feed import Feed, Item
from recrawl.urls import address

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
    (Item(url='http://x.example/a', id='', updated=86400.0, published=None),)
    """
    try:
        feed = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not JSON ({error})", source=source) from error
    items = feed.get("items") if isinstance(feed, dict) else None
    if not isinstance(items, list) or _VERSION not in str(feed.get("version", "")):
        raise InputError("this is JSON, but no feed", source=source)
    found = [_item(item, source) for item in items]
    kept = tuple(item for item in found if item is not None)
    return Feed(kept, len(found) - len(kept))


def _item(item: object, source: str) -> Item | None:
    """An entry; ``None`` if it names no page. Its id is one where it has no URL and the id is written as one."""
    if not isinstance(item, dict):
        return None
    name = str(item.get("id") or "")
    link = item.get("url") or (name if "://" in name else "")
    page = address(link, base=source) if isinstance(link, str) and link else None
    if page is None:
        return None
    return Item(page.url, name, _time(item.get("date_modified")), _time(item.get("date_published")))


def _time(text: object) -> float | None:
    return w3c_time(text) if isinstance(text, str) else None
