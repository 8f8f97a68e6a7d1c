"""Sizes, dates and declarations that strangers write: no value of them raises, fills the memory or takes for ever.

Whatever hangs here does so for hours, so that a slow machine is no reason to fail.
"""

import gzip
import hashlib
import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recrawl.detect import classify_change, decoded
from recrawl.detect.body import MOST_CHUNKS
from recrawl.detect.data.rdf import canonical_rdf, canonical_results
from recrawl.errors import InputError
from recrawl.fetch.access.sparql import GraphPages, SelectPages, _cap
from recrawl.fetch.http.transfer import retry_after
from recrawl.formats.cdx.cdxj import read_zipnum
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.dates import w3c_time
from recrawl.formats.git_history import _commits
from recrawl.formats.sitemap_feed import read_sitemap
from recrawl.formats.sniff import SourceFormat, sniff_bytes
from recrawl.formats.timemap import read_timemap
from recrawl.formats.warc.arc import index_arc
from recrawl.formats.warc.warc_fields import ChunkedDecoder, parse_date
from recrawl.formats.warc.warc_reader import index_warc
from recrawl.model import Capture
from recrawl.model.nested_data import reason_not_to_parse
from recrawl.time import FIRST_SECOND, LAST_SECOND, from_http_date, to_http_date, to_iso, to_timestamp14
from recrawl_lab.experiments.experiment_crawl_time import read_fetches

SIZES = ["FFFFFFFFFFFFFFFF", "7FFFFFFFFFFFFFFF", "8000000000000000", "FFFFFFFFFFFFFFFE", "0FFFFFFFFFFFFFFFFFFF"]
DIGITS = "9" * 5_000
"""More than ``int`` takes."""
HTTP_DATES = [
    "Sun, 06 Nov 9999999999999999999999999 08:49:37 GMT",
    f"Sun, 06 Nov {DIGITS} 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 +99999999999999",
    "Sun, 06 Nov 1994 08:49:37 -9999",
    "Fri, 31 Dec 9999 23:59:59 -1200",
    "Mon, 01 Jan 0001 00:00:00 +1200",
    "Sun, 06 Nov 0 08:49:37 GMT",
    "Sun, 06 Nov -1 08:49:37 GMT",
    "99999999999999999999 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 99999999999999999999:49:37 GMT",
    "Sun, 06 Nov 1994 8.49.37.99999999999999999999 GMT",
    "²², ²² Nov ²²²² ²²:²²:²² GMT",
    ", " * 30,
]
W3C_DATES = ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "9999-12-31 23:59 -99:99", f"{DIGITS}-01-01"]


def answer(head, body, url="http://x/", status=200):
    return Capture(url, 0.0, status, f"HTTP/1.1 {status} OK\r\n{head}\r\n\r\n".encode("latin-1", "replace"), body)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("before", [b"", b"3\r\nabc\r\n"])
def test_a_chunk_of_any_size_is_a_chunk_that_is_cut(size, before):
    body = before + size.encode() + b"\r\nrest of it"
    capture = answer("Transfer-Encoding: chunked", body)
    fits = len(size) <= 16
    assert decoded(capture) == (b"abc" if before else b"") + (
        b"rest of it" if fits else size.encode() + b"\r\nrest of it"
    )
    classify_change(capture, None)
    digest = ChunkedDecoder(hashlib.sha1())
    digest.update(body)
    assert digest.finished().digest() == hashlib.sha1(decoded(capture)).digest()


def test_a_record_with_such_a_chunk_is_imported(tmp_path):
    block = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nrest"
    head = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://x/\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
    (tmp_path / "a.warc").write_bytes(head + b"Content-Length: %d\r\n\r\n" % len(block) + block + b"\r\n\r\n")
    [batch] = index_warc(tmp_path / "a.warc", ReadReport())
    assert batch.num_rows == 1


@pytest.mark.parametrize("text", HTTP_DATES)
def test_no_http_date_raises(text):
    when = from_http_date(text)
    assert when is None or FIRST_SECOND <= when <= LAST_SECOND
    for status in (429, 503):
        retry_after(answer(f"Retry-After: {text}", b"", status=status))
    classify_change(answer(f"Last-Modified: {text}\r\nDate: {text}", b"x"), None)


@given(
    st.text(max_size=60)
    | st.from_regex(r"\w{3}, \d{1,30} (Nov|Jan) [+-]?\d{1,30} \d{1,20}:\d\d:\d{1,20} [+-]?\d{1,20}")
)
@example("Fri, 31 Dec 9999 23:59:59 -1200")
@example("0001-01-01T00:00:00+12:00")
def test_every_date_that_is_read_can_be_written(text):
    """Or a page that shows it fails long after it was recorded."""
    for read in (from_http_date, w3c_time, parse_date):
        when = read(text)
        if when is not None:
            assert to_iso(when)
            assert to_http_date(when)
            assert to_timestamp14(when)


@pytest.mark.parametrize("text", [*W3C_DATES, *HTTP_DATES])
def test_dates_of_sitemaps_archives_and_timemaps(text):
    for read in (w3c_time, parse_date):
        when = read(text)
        assert when is None or FIRST_SECOND <= when <= LAST_SECOND
    page = f"<urlset><url><loc>http://x/a</loc><lastmod>{text}</lastmod></url></urlset>"
    read_sitemap(answer("Content-Type: text/xml", page.encode()))
    link = f'<http://x/>; rel="original", <http://a/1>; rel="memento"; datetime="{text}"'
    read_timemap(link.encode(), "map", ReadReport())


@pytest.mark.parametrize("said", [DIGITS, "²", "-1", "", "0", "999999999999999999999"])
def test_a_cap_that_is_no_number_is_none(said):
    assert _cap(answer(f"X-SPARQL-MaxRows: {said}", b"")) == 1 << 60


@pytest.mark.parametrize("length", ["9" * 60_000, "99999999999999999999", "-99999999999999999999"])
def test_an_arc_record_of_any_length_is_told(tmp_path, length):
    (tmp_path / "a.arc").write_text(f"http://x/ 1.2.3.4 20200101000000 text/html {length}\nhello\n")
    report = ReadReport()
    with suppress(InputError):
        assert list(index_arc(tmp_path / "a.arc", report)) == []
    assert report.bad


@pytest.mark.parametrize("line", ["1 " * 30_000, "- " * 30_000, "http://x/ " + "1.2.3.4 " * 8_000])
def test_an_arc_line_of_blanks_takes_no_time(tmp_path, line):
    (tmp_path / "a.arc").write_text(f"{line}x\n")
    with suppress(InputError):
        assert list(index_arc(tmp_path / "a.arc", ReadReport())) == []


@pytest.mark.parametrize("took", ["²", DIGITS, "-1"])
def test_the_time_of_a_fetch_may_be_anything(tmp_path, took):
    block = f"fetchTimeMs: {took}\r\n".encode()
    head = b"WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Target-URI: http://x/\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
    (tmp_path / "a.warc").write_bytes(head + b"Content-Length: %d\r\n\r\n" % len(block) + block + b"\r\n\r\n")
    assert list(read_fetches(tmp_path / "a.warc", ReadReport())) == []


@pytest.mark.parametrize(
    "head",
    [
        b"<!-- -->" * 8_000 + b"<x",
        b"<? ?>" * 8_000 + b"<x",
        b"<!DOCTYPE a>" * 5_000 + b"<x",
        b"\n#a\n" * 16_000 + b"x",
        b" " * 65_000 + b"x",
        b"a://" * 16_000,
        b"\n" * 65_000,
        b'{"a" ' * 13_000,
        b"!a [" + b"1" * 65_000,
        b"!a b\n" * 13_000,
    ],
)
def test_what_only_begins_like_a_format_is_told_at_once(head):
    assert sniff_bytes(head, "x") is SourceFormat.UNKNOWN


def test_seeds_and_sitemaps_with_comments_are_still_told():
    assert sniff_bytes(b"# one\n\n  # two\n \nhttp://a.org/\n") is SourceFormat.SEEDS
    begin = b'<?xml version="1.0"?>\n<!-- a --> <?b c?>\n<!DOCTYPE urlset [<!ENTITY a "b">]>\n'
    assert sniff_bytes(begin + b"<urlset>") is SourceFormat.SITEMAP
    assert sniff_bytes(b'<?xml version="1.0"?><!-- a --><x:feed>') is SourceFormat.FEED


RDF_HEAD = '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"><r:Description r:about="http://s/">'
LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
LAUGH = f'[<!ENTITY a0 "lol">{LAUGHS}]'


def rdf(declared, said):
    return f"{declared}{RDF_HEAD}<e:p>{said}</e:p></r:Description></r:RDF>"


BOMBS = {
    "billion laughs": rdf(f"<!DOCTYPE r {LAUGH}>", "&a9;"),
    "quadratic": rdf(f'<!DOCTYPE r [<!ENTITY a "{"x" * 100_000}">]>', "&a;" * 30_000),
    "small letters": rdf(f"<!doctype r {LAUGH}>", "&a9;"),
    "external": rdf('<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]>', "&a;"),
    "behind a comment": rdf(f"<!-- --><!DOCTYPE r {LAUGH}>", "&a9;"),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-8-sig", "utf-7"])
@pytest.mark.parametrize(
    "charset", ["", "; charset=utf-16", "; charset=utf-16le", "; charset=utf-7", "; charset=utf-8"]
)
def test_entities_are_never_expanded(name, encoding, charset):
    """The old code gave each of these to a parser that filled the memory of the machine."""
    body = BOMBS[name].encode(encoding)
    for mime in ("application/rdf+xml", "application/sparql-results+xml", "application/xml", "application/atom+xml"):
        judged = classify_change(answer(f"Content-Type: {mime}{charset}", body), None)
        assert judged.validators.digest
    for take in (GraphPages("http://e/"), SelectPages(ordered=False, distinct=False)):
        mime = "application/rdf+xml" if isinstance(take, GraphPages) else "application/sparql-results+xml"
        with pytest.raises(InputError):
            take.add(body, mime)
    with pytest.raises(InputError):
        read_sitemap(answer("Content-Type: text/xml", body))


@pytest.mark.parametrize("name", BOMBS)
def test_a_document_type_is_refused_by_name(name):
    assert "document type" in reason_not_to_parse(BOMBS[name], "application/rdf+xml")
    with pytest.raises(InputError, match="document type"):
        canonical_rdf(BOMBS[name], "application/rdf+xml", "http://x/")
    with pytest.raises(InputError, match="document type"):
        canonical_results(BOMBS[name], "application/sparql-results+xml", "http://x/")


@pytest.mark.parametrize(
    "codec", ["punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined", "zlib"]
)
def test_no_codec_that_is_no_encoding_reads_a_sitemap(codec):
    """Punycode takes quadratic time: this file would take hours."""
    page = f'<?xml version="1.0" encoding="{codec}"?><urlset>'.encode() + b"-" + b"a1b2" * 2_000_000
    with pytest.raises(InputError):
        read_sitemap(answer("Content-Type: text/xml", gzip.compress(page)))


def test_numbers_in_json_may_be_longer_than_python_reads():
    body = json.dumps({"a": 1}).replace("1", DIGITS).encode()
    judged = classify_change(answer("Content-Type: application/json", body), None)
    assert judged.validators.digest
    read_timemap(b'{"mementos": {"list": [{"datetime": %s, "uri": "x"}]}}' % DIGITS.encode(), "map", ReadReport())


def test_of_countless_chunks_the_first_are_taken_apart_and_the_rest_stays():
    """Sixty megabytes of chunks of one byte took eleven seconds, three times."""
    body = b"1\r\na\r\n" * (MOST_CHUNKS + 2) + b"0\r\n\r\n"
    found = decoded(answer("Transfer-Encoding: chunked", body))
    assert found == b"a" * MOST_CHUNKS + b"1\r\na\r\n" * 2 + b"0\r\n\r\n"
    for size in (7, 4_096, len(body)):
        digest = ChunkedDecoder(hashlib.sha1())
        for at in range(0, len(body), size):
            digest.update(body[at : at + size])
        assert digest.finished().digest() == hashlib.sha1(found).digest()


def test_empty_members_before_a_long_body_are_not_copied_again_and_again():
    long = gzip.compress(b"x" * 30_000_000, 0)
    body = gzip.compress(b"") * 90 + long
    assert decoded(answer("Content-Encoding: gzip", body)) == b"x" * 30_000_000
    with pytest.raises(InputError, match="members"):
        decoded(answer("Content-Encoding: gzip", gzip.compress(b"") * 100 + long))
    assert decoded(answer("Content-Encoding: gzip", gzip.compress(b"abc") + b"behind it")) == b"abc"
    with pytest.raises(InputError, match="too early"):
        decoded(answer("Content-Encoding: gzip", gzip.compress(b"abc") + long[:100_000]))


ARC = b"http://a/ 1.1.1.1 20200101000000 text/html 999999\nhello world\n"
WARC = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a/\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
    b"Content-Length: 999999\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhi\r\n\r\n"
)


@pytest.mark.parametrize(("index", "record"), [(index_arc, ARC), (index_warc, WARC)])
def test_records_that_each_claim_the_rest_of_a_file_do_not_have_it_read_for_each(tmp_path, index, record):
    """The old readers took quadratic time: two minutes for these five megabytes."""
    path = tmp_path / "x"
    path.write_bytes(record * (5_000_000 // len(record)))
    with pytest.raises(InputError, match="claim more bytes"):
        list(index(path, ReadReport()))
    path.write_bytes(record * 3)
    report = ReadReport()
    assert sum(batch.num_rows for batch in index(path, report)) == 3
    assert report.bad == 3


@pytest.mark.parametrize(
    "head", [b"", b"a", b"a b c", b"a 1", b"a 1 2 3", b"a \xb2 1", b"a " + b"9" * 5_000 + b" 1", b"\xff\xfe 1 2 3"]
)
def test_no_answer_of_git_raises_anything_else(head):
    with suppress(InputError):
        list(_commits(iter([b"\x01" + head]), "here"))


def test_commits_of_any_time_are_moved_into_our_years():
    [late, early] = _commits(iter([b"\x01a 99999999999999999999 1", b"\x01b -5 0"]), "here")
    assert (late.committed, early.committed) == (int(LAST_SECOND), 0)


@pytest.mark.parametrize("part", ["x" * 5_000, "a\0b"])
def test_a_part_whose_name_no_file_can_have_is_missing(tmp_path, part):
    (tmp_path / "a.idx").write_text(f"org,a)/ 20200101000000\t{part}\t0\t100\t1\n")
    report = ReadReport()
    assert list(read_zipnum(tmp_path / "a.idx", report)) == []
    assert report.bad


@pytest.mark.parametrize("half", ["original_uri", "uri"])
def test_half_a_character_in_a_timemap_costs_its_memento_only(half):
    good = {"uri": "http://archive.example/20200101000000/http://a.example/", "datetime": "2020-01-01T00:00:00Z"}
    mementos = {"list": [good | ({"uri": "http://x/20200101000000/http://\ud800/"} if half == "uri" else {}), good]}
    whole = {"original_uri": "http://\ud800/" if half == "original_uri" else "", "mementos": mementos}
    report = ReadReport()
    found = read_timemap(json.dumps(whole).encode(), "fuzz", report).mementos
    assert [one.original for one in found] == ["http://a.example/"] * (half == "uri")
    assert report.bad == 2 - len(found)
