"""Sitemaps, real and malformed."""

from __future__ import annotations

import gzip
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.sitemap import FREQUENCIES, MAX_BYTES, Entry, parse_sitemap, read_sitemap, w3c_time
from recrawl.model import Capture

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*urls: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {NAMESPACE}>{"".join(urls)}</urlset>'.encode()


ONE = "<url><loc>http://a.example/1</loc><lastmod>2026-11-15</lastmod><changefreq> Daily </changefreq></url>"
FIRST = Entry("http://a.example/1", datetime(2026, 11, 15, tzinfo=UTC).timestamp(), "daily")


def test_a_list_of_pages():
    found = parse_sitemap(urlset(ONE, "<url><loc> http://a.example/2#x </loc></url>"), "x")
    assert found.entries == (FIRST, Entry("http://a.example/2", None, ""))
    assert (found.children, found.skipped, found.broken) == ((), 0, "")


def test_a_list_of_sitemaps():
    index = f"<sitemapindex {NAMESPACE}><sitemap><loc>http://a.example/s.xml</loc></sitemap></sitemapindex>"
    found = parse_sitemap(index.encode(), "x")
    assert found.children == (Entry("http://a.example/s.xml", None, ""),)
    assert found.entries == ()


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(urlset(ONE)),
        b"\n \n" + urlset(ONE),
        urlset(ONE).decode().replace("UTF-8", "utf-16").encode("utf-16"),
    ],
)
def test_it_may_be_packed_padded_or_in_another_encoding(data):
    assert parse_sitemap(data, "x").entries == (FIRST,)


def test_it_comes_out_of_a_capture():
    body = gzip.compress(gzip.compress(urlset(ONE)))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
    assert read_sitemap(Capture("http://a.example/sitemap.xml.gz", 0.0, 200, head, body)).entries == (FIRST,)


def test_extensions_speak_of_something_else():
    image = "<image:image><image:loc>http://a.example/i.png</image:loc></image:image>"
    page = f'<url xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">{image}<loc>http://a.example/1</loc>{image}</url>'
    assert [entry.url for entry in parse_sitemap(urlset(page), "x").entries] == ["http://a.example/1"]


@pytest.mark.parametrize("loc", ["", "mailto:a@b.example", "/relative", "http://", "javascript:x"])
def test_what_is_no_url_is_counted(loc):
    found = parse_sitemap(urlset(f"<url><loc>{loc}</loc></url>", ONE, "<url></url>"), "x")
    assert (found.entries, found.skipped) == ((FIRST,), 2)


BOMB = '<!DOCTYPE b [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><urlset><url><loc>http://a.example/&b;</loc></url></urlset>'


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a sitemap"),
        (b"\x00\x01\x02", "not a sitemap"),
        (b"User-agent: *", "not a sitemap"),
        (b"<html><body>no such page</body></html>", "urlset"),
        (b"<urlset", "not a sitemap"),
        (b'<?xml version="1.0" encoding="no-such"?><urlset/>', "not a sitemap"),
        (b"<urlset><url><loc>http://a.example/\xff</loc></url></urlset>", "not a sitemap"),
        (BOMB.encode(), "document type"),
        (f'<?xml version="1.0" encoding="utf-16"?>{BOMB}'.encode("utf-16"), "document type"),
        (b'<!DOCTYPE urlset SYSTEM "http://a.example/x.dtd"><urlset/>', "document type"),
        (b"<urlset><url><loc>&undefined;</loc></url></urlset>", "not a sitemap"),
        (b"\x1f\x8bnot gzip", "gzip"),
        (gzip.compress(urlset(ONE))[:-20], "gzip"),
        (gzip.compress(b" " * (MAX_BYTES + 1)), "more than"),
        (b" " * (MAX_BYTES + 1), "longer"),
    ],
)
def test_bad_input_gets_its_sentence(data, reason):
    with pytest.raises(InputError, match=reason) as caught:
        parse_sitemap(data, "http://a.example/sitemap.xml")
    assert "http://a.example/sitemap.xml" in str(caught.value)


def test_what_came_before_the_break_stands():
    found = parse_sitemap(urlset(ONE, ONE, "<url><loc>http://a.ex")[:-9], "x")
    assert found.entries == (FIRST, FIRST)
    assert found.broken


def test_memory_does_not_grow_with_what_is_not_asked_for():
    page = "<url><loc>http://a.example/1</loc><note>" + "x" * 10_000 + "</note></url>"
    data = urlset(page * 1_000)
    tracemalloc.start()
    try:
        assert len(parse_sitemap(data, "x").entries) == 1_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(data) / 4


texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="<&\ufffe\uffff"), max_size=20
)


@given(st.lists(st.tuples(st.integers(0, 99), texts, texts), max_size=10))
def test_any_claims_can_be_read(rows):
    pages = [
        f"<url><loc>http://a.example/{n}</loc><lastmod>{mod}</lastmod><changefreq>{freq}</changefreq></url>"
        for n, mod, freq in rows
    ]
    found = parse_sitemap(urlset(*pages), "x")
    assert [entry.url for entry in found.entries] == [f"http://a.example/{n}" for n, _, _ in rows]
    assert all(entry.changefreq in FREQUENCIES | {""} for entry in found.entries)


@given(st.binary(max_size=300) | st.binary(max_size=40).map(lambda tail: urlset(ONE)[:-12] + tail))
def test_any_bytes_end_in_a_sitemap_or_a_sentence(data):
    with suppress(InputError):
        parse_sitemap(data, "x")


@given(st.integers(-(10**10), 10**11))
def test_times_come_back(seconds):
    moment = datetime.fromtimestamp(seconds, UTC)
    assert w3c_time(moment.isoformat()) == seconds
    assert w3c_time(moment.replace(tzinfo=None).isoformat()) == seconds
    assert w3c_time(moment.date().isoformat()) == seconds // 86_400 * 86_400


@pytest.mark.parametrize(
    "text",
    ["", "2026-13", "2026-11-15T25:00", "0000", "99999", "15.11.2026", "2026-11-15T", "\u0661\u0662\u0663\u0664"],
)
def test_what_is_no_time_claims_nothing(text):
    assert w3c_time(text) is None


@pytest.mark.big
def test_real_files_are_read(data_folder):
    counts = {}
    for path in sorted((data_folder / "formats" / "sitemap").rglob("*")):
        if path.suffix in (".xml", ".gz") and path.is_file():
            try:
                found = parse_sitemap(path.read_bytes(), path.name)
                counts[path.name] = len(found.entries)
            except InputError as error:
                counts[path.name] = str(error)
    assert counts["hebdenbridgetimes-articles-sitemap.xml"] == 74
    assert counts["sitemap-images.xml"] == 1
    assert counts["sitemap.badns.xml"] == counts["sitemap.ns.xml"] == 2
    assert counts["xmlSitemap.gz"] == 5
    assert "'feed'" in counts["atom.xml"]
