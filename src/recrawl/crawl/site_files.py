"""Reading what sites announce of themselves, sitemaps and feeds, within a budget."""

from __future__ import annotations

from http import HTTPStatus

from recrawl.crawl.parse_pool import OverBudgetError, ParsePool
from recrawl.detect import decoded
from recrawl.errors import InputError
from recrawl.formats.json_feed import is_json, parse_json_feed
from recrawl.formats.sitemap import MAX_BYTES, Sitemap, parse_sitemap
from recrawl.formats.xml_stream import GZIP
from recrawl.model import Capture

_MOST = 64 * 1024
"""Bytes of a plain file up to which it is cheap to read."""


async def read_announced(capture: Capture, pool: ParsePool | None) -> Sitemap | str:
    """What a sitemap or feed of any kind announces, or why it cannot be read. The pool reads what is not cheap."""
    if capture.status == HTTPStatus.NOT_MODIFIED:
        return ""
    try:
        return announced(capture) if pool is None or _is_cheap(capture) else await pool.run(announced, capture)
    except (InputError, OverBudgetError) as unreadable:
        return str(unreadable)


def announced(capture: Capture) -> Sitemap:
    """What a sitemap or feed of any kind announces.

    Raises:
        InputError: it is none.
    """
    data = decoded(capture, MAX_BYTES)
    if is_json(data):
        feed = parse_json_feed(data, capture.url)
        return Sitemap(feed.entries(), skipped=feed.skipped)
    return parse_sitemap(data, capture.url)


def _is_cheap(capture: Capture) -> bool:
    """Whether it is short, and nothing in it is packed."""
    body = capture.raw_body
    return len(body) <= _MOST and not capture.header("content-encoding") and GZIP not in body[:_MOST]
