"""JSON Feed, well written and not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.sitemap_feed import FeedItem, parse_json_feed

SOURCE = "http://blog.example/feed.json"


def feed(*items, version="https://jsonfeed.org/version/1.1"):
    return json.dumps({"version": version, "title": "Blog", "items": list(items)}).encode()


def test_items_have_urls_and_dates():
    found = parse_json_feed(
        feed(
            {"id": "1", "url": "/a", "date_published": "1970-01-02T00:00:00Z", "date_modified": "1970-01-03T00:00:00Z"},
            {"id": "http://blog.example/b", "date_published": "1970-01-02T00:00:00Z"},
            {"id": "3", "external_url": "http://other.example/"},
            {"url": 5, "id": None},
            "nothing",
        ),
        SOURCE,
    )
    assert found.items == (
        FeedItem("http://blog.example/a", "1", 172_800.0, 86_400.0),
        FeedItem("http://blog.example/b", "http://blog.example/b", None, 86_400.0),
    )
    assert found.skipped == 3
    assert [entry.lastmod for entry in found.entries()] == [172_800.0, 86_400.0]


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b'{"items": []}', feed(version="2"), b"\xff{", feed()[:-3], b"[" * 100_000]
)
def test_what_is_no_feed_is_refused(data):
    with pytest.raises(InputError):
        parse_json_feed(data, SOURCE)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_json_is_read_or_refused(value):
    parse_json_feed(feed(value, {"url": value, "id": value, "date_modified": value}), SOURCE)
    with pytest.raises(InputError):
        parse_json_feed(json.dumps(value).encode(), SOURCE)
