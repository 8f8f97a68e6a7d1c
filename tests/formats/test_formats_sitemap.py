"""Sitemaps, real and malformed."""

from __future__ import annotations

import gzip
import math
import re
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.dates import w3c_time
from recrawl.formats.sitemap_feed import (
    FREQUENCIES,
    MAX_BYTES,
    MAX_URLS,
    ChangeFrequency,
    ClaimedPage,
    Sitemap,
    parse_sitemap,
    read_claims,
    read_sitemap,
    schema,
)
from recrawl.model import Capture

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*urls: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {NAMESPACE}>{"".join(urls)}</urlset>'.encode()


ONE = "<url><loc>http://a.example/1</loc><lastmod>2026-11-15</lastmod><changefreq> Daily </changefreq></url>"
FIRST = ClaimedPage("http://a.example/1", datetime(2026, 11, 15, tzinfo=UTC).timestamp(), "daily")


def test_a_list_of_pages():
    found = parse_sitemap(urlset(ONE, "<url><loc> http://a.example/2#x </loc></url>"), "x")
    assert found.entries == (FIRST, ClaimedPage("http://a.example/2", None, ""))
    assert (found.children, found.skipped, found.broken) == ((), 0, "")


def test_a_list_of_sitemaps():
    index = f"<sitemapindex {NAMESPACE}><sitemap><loc>http://a.example/s.xml</loc></sitemap></sitemapindex>"
    found = parse_sitemap(index.encode(), "x")
    assert found.children == (ClaimedPage("http://a.example/s.xml", None, ""),)
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
        (gzip.compress(b" " * (MAX_BYTES + 1)), "longer"),
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


def test_it_says_where_it_broke():
    data = b"\n\n" + urlset(ONE, "<url><loc>http://a.example/&lt;</wrong></url>")
    for packed in (data, b"\xef\xbb\xbf" + data):
        found = parse_sitemap(packed, "x")
        assert found.broken_at == pytest.approx(packed.index(b"wrong"), abs=2)


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
    assert all(entry.changefreq in FREQUENCIES.keys() | {""} for entry in found.entries)


@given(st.binary(max_size=300) | st.binary(max_size=40).map(lambda tail: urlset(ONE)[:-12] + tail))
def test_any_bytes_end_in_a_sitemap_or_a_sentence(data):
    found, told = Sitemap(), "x"
    try:
        found = parse_sitemap(data, "x")
    except InputError as error:
        told = str(error)
    assert all(entry.url.startswith("http") for entry in (*found.entries, *found.children))
    assert told.startswith("x")


@given(st.integers(-(10**10), 10**11))
def test_times_come_back(seconds):
    moment = datetime.fromtimestamp(seconds, UTC)
    assert w3c_time(moment.isoformat()) == seconds
    assert w3c_time(moment.replace(tzinfo=None).isoformat()) == seconds
    assert w3c_time(moment.date().isoformat()) == seconds // 86_400 * 86_400


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026", "2026-01-01T00:00:00Z"),
        ("2026-11", "2026-11-01T00:00:00Z"),
        ("2026-11-15T09:14Z", "2026-11-15T09:14:00Z"),
        ("2026-11-15T09:14:07.123456789+01:00", "2026-11-15T08:14:07.123456Z"),
        ("2026-11-15T09:14:07-0330", "2026-11-15T12:44:07Z"),
        ("2026-11-15 09:14:07", "2026-11-15T09:14:07Z"),
        ("2026-11-15 09:14:07 UTC", "2026-11-15T09:14:07Z"),
        ("2026-11-15t09:14:07z", "2026-11-15T09:14:07Z"),
        ("2026/1/5", "2026-01-05"),
        ("20261115", "2026-11-15"),
        ("20261115T091407Z", "2026-11-15T09:14:07Z"),
        ("Sun, 15 Nov 2026 09:14:07 +0100", "2026-11-15T08:14:07Z"),
        ("15 Nov 2026 09:14:07 GMT", "2026-11-15T09:14:07Z"),
        (" 2026-11-15\n", "2026-11-15"),
    ],
)
def test_times_in_all_their_forms(text, same):
    assert w3c_time(text) is not None
    assert w3c_time(text) == w3c_time(same)


@given(st.text(max_size=40) | st.from_regex(r"[0-9T:+ .Zz/-]{1,30}", fullmatch=True))
def test_any_text_is_a_time_or_none(text):
    time = w3c_time(text)
    assert time is None or math.isfinite(time)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-13",
        "2026-11-15T25:00",
        "0000",
        "99999",
        "0000-00-00",
        "15.11.2026",
        "2026-11-15T09:14 noon",
        "sometime in May 2026",
        "2026-11-15T",
        "\u0661\u0662\u0663\u0664",
    ],
)
def test_what_is_no_time_claims_nothing(text):
    assert w3c_time(text) is None


SAMPLES = Path(__file__).resolve().parents[1] / "data" / "formats" / "crawler-commons"


def counted(path: Path) -> int:
    """How many addresses a real file names, counted without a parser."""
    data = path.read_bytes()
    data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    if b"<rss" in data:  # an item whose only name is said to be no address has none
        items = re.findall(rb"<item>.*?</item>", data, re.DOTALL)
        return sum(b"<link>http" in item or b'isPermaLink="false"' not in item for item in items)
    if b"<feed" in data:
        return data.count(b"<entry>")
    if b"<sitemapindex" in data:
        return len(re.findall(rb"<sitemap>\s*http|<loc>", data))
    if b"<urlset" in data or b":urlset" in data:
        return len(re.findall(rb"<(?:sit:)?loc>", data))
    return len(re.findall(rb"https?://", data))


def check_all(folder: Path, at_least: int) -> None:
    files = [path for path in sorted(folder.iterdir()) if path.name != "README.md"]
    assert len(files) >= at_least
    for path in files:
        found = parse_sitemap(path.read_bytes(), path.name)
        assert (len(found.entries) + len(found.children), found.broken) == (counted(path), ""), path.name


def test_the_samples_are_read():
    check_all(SAMPLES, 17)


@pytest.mark.big
def test_all_real_files_are_read(data_folder):
    check_all(data_folder / "formats" / "sitemap" / "crawler-commons__crawler-commons", 20)


def test_an_index_may_forget_its_loc():
    found = parse_sitemap((SAMPLES / "sitemap.index.xml").read_bytes(), "x")
    assert len(found.children) == 15
    assert found.children[0].url == "https://example.com/sitemap.jss?portalCode=10260&lang=en"


def test_text_in_one_url_a_line():
    text = "\ufeffhttp://a.example/1\r\n\r\n  http://a.example/2  \nnot a url\nmailto:x@y.example\n"
    expected = (ClaimedPage("http://a.example/1"), ClaimedPage("http://a.example/2"))
    for data in (text.encode(), gzip.compress(text.encode()), text.removeprefix("\ufeff").encode("utf-16")):
        found = parse_sitemap(data, "x")
        assert (found.entries, found.skipped, found.broken) == (expected, 2, "")


def test_feeds_are_sitemaps_too():
    found = parse_sitemap((SAMPLES / "xmlRss_pubDate.xml").read_bytes(), "x")
    assert found.entries[0] == ClaimedPage("http://www.example.com/article_1", 1483619691.0)
    assert found.entries[1].lastmod == 1483619692.0
    assert found.entries[6].lastmod is None


@pytest.mark.parametrize("encoding", ["shift_jis", "gb18030", "windows-1252", "iso-8859-1", "utf-8-sig", "koi8-r"])
def test_any_encoding_that_is_declared(encoding):
    name = "utf-8" if encoding == "utf-8-sig" else encoding
    data = urlset(ONE, "<url><loc>http://a.example/2</loc></url>").decode().replace("UTF-8", name).encode(encoding)
    assert [entry.url for entry in parse_sitemap(data, "x").entries] == ["http://a.example/1", "http://a.example/2"]


def test_letters_of_a_multi_byte_encoding_arrive():
    data = (
        urlset("<url><loc>http://a.example/日本</loc></url>").decode().replace("UTF-8", "Shift_JIS").encode("shift_jis")
    )
    assert parse_sitemap(data, "x").entries[0].url == "http://a.example/%E6%97%A5%E6%9C%AC"


def test_a_wrong_claim_of_utf_16_is_seen_through():
    data = urlset(ONE).decode().replace("UTF-8", "utf-16").encode()
    assert parse_sitemap(data, "x").entries == (FIRST,)


@pytest.mark.parametrize(
    "namespace", ["", 'xmlns="http://www.google.com/schemas/sitemap/0.84"', 'xmlns="http://example.org/wrong"']
)
def test_namespaces_right_wrong_and_missing(namespace):
    assert parse_sitemap(f"<urlset {namespace}>{ONE}</urlset>".encode(), "x").entries == (FIRST,)


def test_a_field_of_an_extension_is_not_ours():
    page = '<url xmlns:v="http://www.google.com/schemas/sitemap-video/1.1"><v:loc>http://a.example/v</v:loc></url>'
    found = parse_sitemap(urlset(page, ONE), "x")
    assert (found.entries, found.skipped) == ((FIRST,), 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.8", 0.8), ("1", 1.0), (" 0,5 ", 0.5), ("2.0", None), ("-1", None), ("high", None), ("nan", None)],
)
def test_priorities(text, value):
    page = f"<url><loc>http://a.example/1</loc><priority>{text}</priority></url>"
    assert parse_sitemap(urlset(page), "x").entries[0].priority == value


def test_of_too_many_urls_the_first_are_kept():
    pages = "".join(f"<url><loc>http://a.example/{n}</loc></url>" for n in range(MAX_URLS + 5))
    text = "".join(f"http://a.example/{n}\n" for n in range(MAX_URLS + 5))
    for data in (urlset(pages), text.encode()):
        found = parse_sitemap(data, "x")
        assert len(found.entries) == MAX_URLS
        assert found.entries[-1].url == f"http://a.example/{MAX_URLS - 1}"
        assert "more than 50000" in found.broken


def test_of_a_file_that_is_too_long_the_first_part_is_kept():
    data = urlset(ONE, "<!-- " + " " * MAX_BYTES + "-->", ONE)
    for packed in (data, gzip.compress(data, 1)):
        found = parse_sitemap(packed, "x")
        assert found.entries == (FIRST,)
        assert "longer than" in found.broken


def test_of_a_torn_gzip_the_first_part_is_kept():
    pages = [f"<url><loc>http://a.example/{n}</loc></url>" for n in range(30_000)]
    found = parse_sitemap(gzip.compress(urlset(*pages))[:-100], "x")
    assert 20_000 < len(found.entries) < 30_000
    assert "gzip" in found.broken


def test_claims_are_columns():
    pages = f"{ONE}<url><loc>http://a.example/2</loc><priority>0.3</priority></url><url><loc>nowhere</loc></url>"
    report = ReadReport()
    (batch,) = read_claims(urlset(pages), "http://a.example/s.xml", 7.0, report)
    assert batch.schema == schema()
    first, second = batch.to_pylist()
    assert first["source"] == "http://a.example/s.xml"
    assert (first["time"], first["lastmod"], first["changefreq"]) == (7.0, FIRST.lastmod, ChangeFrequency.DAILY)
    assert math.isnan(first["priority"])
    assert (second["url"], second["changefreq"], second["priority"]) == (
        "http://a.example/2",
        ChangeFrequency.UNSAID,
        0.3,
    )
    assert math.isnan(second["lastmod"])
    assert (report.skipped, report.bad) == ({"not an http(s) URL": 1}, 0)


def test_claims_of_broken_files_are_reported():
    told = []
    report = ReadReport(on_bad=told.append)
    assert list(read_claims(BOMB.encode(), "s.xml", 0.0, report)) == []
    torn = urlset(ONE)[:-5]
    assert [batch.num_rows for batch in read_claims(torn, "t.xml", 0.0, report)] == [1]
    assert report.bad == 2
    assert str(told[0]).startswith("s.xml: it has a document type")
    assert (told[1].source, told[1].position) == ("t.xml", torn.rindex(b"</"))
    with pytest.raises(InputError):
        list(read_claims(torn, "t.xml", 0.0, ReadReport(strict=True)))


def test_an_index_is_no_claim():
    report = ReadReport()
    index = (SAMPLES / "sitemap.index.xml").read_bytes()
    assert list(read_claims(index, "i.xml", 0.0, report)) == []
    assert report.skipped == {"a further sitemap": 15}
