"""Feeds, real and malformed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.sitemap_feed import ClaimedPage, Feed, FeedItem, parse_feed

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "formats" / "crawler-commons"


def rss(*items: str) -> bytes:
    return f"<rss version='2.0'><channel><link>http://a.example/</link>{''.join(items)}</channel></rss>".encode()


def atom(*entries: str, attributes: str = "") -> bytes:
    home = '<link href="http://a.example/"/><updated>2020-01-01</updated><id>urn:feed</id>'
    return f'<feed xmlns="http://www.w3.org/2005/Atom" {attributes}>{home}{"".join(entries)}</feed>'.encode()


def urls(data: bytes) -> list[str]:
    return [item.url for item in parse_feed(data, "http://a.example/feed.xml").items]


def test_a_real_rss_feed():
    found = parse_feed((SAMPLES / "feed.rss").read_bytes(), "feed.rss")
    assert [item.url for item in found.items] == [
        "https://www.example.com/blog/post/1",
        "https://www.example.com/foo?q=a&l=en",
        "https://www.example.com/foo?q=a&l=fr",
    ]
    assert found.items[0].id == "7bd204c6-1655-4c27-aeee-53f933c5395f"
    assert found.items[0].published == 1252254000.0
    assert (found.skipped, found.broken) == (1, "")  # its only name is said to be no address


def test_a_real_atom_feed():
    found = parse_feed((SAMPLES / "atom.xml").read_bytes(), "atom.xml")
    name = "urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a"
    assert found.items == (FeedItem("http://example.org/2003/12/13/atom03", name, 1071340202.0, None),)
    assert found.entries() == (ClaimedPage("http://example.org/2003/12/13/atom03", 1071340202.0),)


def test_a_guid_is_an_address_unless_it_says_otherwise():
    assert urls(rss("<item><guid>http://a.example/1</guid></item>")) == ["http://a.example/1"]
    assert urls(rss('<item><guid isPermaLink="false">http://a.example/1</guid></item>')) == []


def test_an_id_serves_where_an_entry_has_no_link():
    assert urls(atom("<entry><id>http://a.example/1</id></entry>")) == ["http://a.example/1"]
    assert urls(atom("<entry><id>urn:x</id></entry>")) == []


def test_links_to_something_else_are_not_the_page():
    other = "".join(f'<link rel="{rel}" href="http://a.example/{rel}"/>' for rel in ("self", "edit", "enclosure"))
    assert urls(atom(f'<entry>{other}<link href="http://a.example/page"/></entry>')) == ["http://a.example/page"]


def test_media_extensions_are_not_the_page():
    media = '<m:link xmlns:m="http://search.yahoo.com/mrss/">http://a.example/film</m:link>'
    assert urls(rss(f"<item>{media}<link>http://a.example/1</link></item>")) == ["http://a.example/1"]


def test_an_entry_within_an_entry_is_its_own_affair():
    source = "<source><id>urn:s</id><link href='http://b.example/'/><updated>1999</updated></source>"
    (item,) = parse_feed(atom(f"<entry>{source}<id>http://a.example/1</id></entry>"), "x").items
    assert item == FeedItem("http://a.example/1", "http://a.example/1", None, None)


def test_relative_links_are_resolved():
    assert urls(rss("<item><link>/1</link></item>")) == ["http://a.example/1"]
    entry = '<entry xml:base="deep/"><link href="2"/></entry>'
    assert urls(atom(entry, attributes='xml:base="http://b.example/base/"')) == ["http://b.example/base/deep/2"]


def test_rss_1_has_its_items_beside_the_channel():
    space = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    item = "<item><link>http://a.example/1</link><dc:date>1970-01-02T00:00Z</dc:date></item>"
    (found,) = parse_feed(f"<rdf:RDF {space}><channel/>{item}</rdf:RDF>".encode(), "x").items
    assert found.updated == 86400.0


def test_updated_is_told_from_published():
    times = "<published>1970-01-02</published><updated>1970-01-03</updated>"
    (found,) = parse_feed(atom(f"<entry><id>http://a.example/1</id>{times}</entry>"), "x").items
    assert (found.updated, found.published) == (172800.0, 86400.0)


def test_an_outside_document_type_of_old_rss_is_not_fetched():
    doctype = b'<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://my.netscape.com/rss-0.91.dtd">'
    assert urls(doctype + rss("<item><link>http://a.example/1</link></item>")) == ["http://a.example/1"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a feed"),
        (b"<html/>", "begins with"),
        (b"<urlset/>", "begins with"),
        (b'<!DOCTYPE rss [<!ENTITY a "b">]><rss/>', "document type"),
        (b"<rss><channel>", "not a feed"),
        (gzip.compress(b"<rss></rss>", mtime=0)[:-12], "gzip"),
    ],
)
def test_bad_input_gets_its_sentence(data, reason):
    with pytest.raises(InputError, match=reason):
        parse_feed(data, "x")


def test_what_came_before_the_break_stands():
    whole = rss("<item><link>http://a.example/1</link></item><item><link>http://a.example/2</link></item>")
    found = parse_feed(gzip.compress(whole[: whole.rindex(b"</item>")]), "x")
    assert [item.url for item in found.items] == ["http://a.example/1"]
    assert found.broken


@given(
    st.binary(max_size=200) | st.text(max_size=100).map(lambda text: b"<rss><item>" + text.encode("utf-8", "replace"))
)
def test_any_bytes_end_in_a_feed_or_a_sentence(data):
    found, told = Feed(), "x"
    try:
        found = parse_feed(data, "x")
    except InputError as error:
        told = str(error)
    assert all(item.url.startswith("http") for item in found.items)
    assert told.startswith("x")
