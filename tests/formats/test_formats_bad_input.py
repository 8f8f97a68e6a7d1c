"""Bad input, item by item: each gets its sentence and its place, and the rest of the file is read."""

from __future__ import annotations

import gzip
import io
import re
import zlib

import pytest

from recrawl.errors import InputError
from recrawl.formats.cdx import cdx_lines as cdx_reader
from recrawl.formats.cdx.cdx_lines import read_cdx
from recrawl.formats.cdx.cdxj import read_cdxj
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.columnar.common_crawl import read_common_crawl
from recrawl.formats.sitemap_feed import read_claims
from recrawl.formats.timemap import read_timemap
from recrawl.formats.warc.warc_reader import index_warc

CDX = b"org,a)/%d 2020010203040%d http://a.org/%d text/html 200 ABC - - 5 0 x.warc.gz\n"
LINES = [CDX % (n, n, n) for n in range(6)]
DATE = "Sat, 02 Feb 2013 10:00:00 GMT"


def record(number: int, *, length: bytes = b"", date: bytes = b"2020-01-01T00:00:00Z", more: bytes = b"") -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello"
    return (
        b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.org/%d\r\nWARC-Date: %s\r\n%s"
        b"Content-Type: application/http\r\nContent-Length: %s\r\n\r\n%s\r\n\r\n"
    ) % (number, date, more, length or b"%d" % len(block), block)


def member(number: int, **odd: bytes) -> bytes:
    return gzip.compress(record(number, **odd), mtime=0)


@pytest.fixture
def warc(tmp_path):
    """Index a file: the numbers of its pages, what was told, what was skipped."""

    def read(data: bytes) -> tuple[list[int], list[InputError], dict[str, int]]:
        path = tmp_path / "x.warc.gz"
        path.write_bytes(data)
        told: list[InputError] = []
        report = ReadReport(on_bad=told.append)
        rows = [row for batch in index_warc(path, report) for row in batch.to_pylist()]
        assert all(error.source == str(path) for error in told)
        assert report.bad == len(told)
        return [int(row["url"].rpartition("/")[2]) for row in rows], told, report.skipped

    return read


def cdx(data: bytes) -> tuple[list[str], list[InputError], dict[str, int]]:
    told: list[InputError] = []
    report = ReadReport(on_bad=told.append)
    rows = [row for batch in read_cdx(io.BytesIO(data), "x.cdx", report) for row in batch.to_pylist()]
    return [row["url"] for row in rows], told, report.skipped


def urls(*numbers: int) -> list[str]:
    return [f"http://a.org/{n}" for n in numbers]


def test_truncated_gzip_in_an_archive(warc):
    pages, told, _ = warc(member(0) + member(1) + member(2)[:-30])
    assert pages[:2] == [0, 1]
    assert len(told) == 1
    assert told[0].position == len(member(0) + member(1))
    assert "ends after" in str(told[0]) or "cannot be read" in str(told[0])


def test_truncated_gzip_in_an_index():
    lines = [CDX % (n, n % 10, n) for n in range(2_000)]
    found, told, _ = cdx(gzip.compress(b"".join(lines))[:-200])
    assert found == urls(*range(len(found)))
    assert 0 < len(found) < 2_000
    assert "the gzip data break off" in str(told[0])


def test_one_stream_of_gzip_is_read_and_told_once(warc):
    pages, told, _ = warc(gzip.compress(b"".join(map(record, range(4)))))
    assert pages == [0, 1, 2, 3]
    assert [error.position for error in told] == [0]
    assert "share one compressed stream" in str(told[0])
    assert "Recompress" in told[0].remedy


@pytest.mark.parametrize("garbage", [b"garbage", b"\x1f\x8b\x08garbage", b"\xff" * 5000])
def test_garbage_between_records(warc, garbage):
    for make in (record, member):
        pages, told, _ = warc(make(0) + garbage + make(1) + make(2))
        assert pages == [0, 1, 2]
        assert len(told) == 1
        assert "cannot be read as WARC" in str(told[0]) or "ends" in str(told[0])


@pytest.mark.parametrize("length", [b"-5", b"many", b"999999999999999", b"99999999999999999999"])
def test_negative_and_absurd_content_lengths(warc, length):
    for make in (record, member):
        pages, told, _ = warc(make(0) + make(1, length=length) + make(2))
        assert [page for page in pages if page != 1] == [0, 2]
        assert len(told) == 1
        assert told[0].position == len(make(0))
        assert "Content-Length" in str(told[0]) or "ends after" in str(told[0])


def test_a_gzip_bomb_in_an_index_is_one_line_that_is_too_long():
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(b"x" * (1 << 20)) for _ in range(64)) + packer.flush()
    found, told, _ = cdx(gzip.compress(LINES[0]) + bomb + gzip.compress(b"\n" + LINES[1]))
    assert found == urls(0, 1)
    assert [error.position for error in told] == [len(LINES[0])]
    assert "a line is longer than 1,048,576 bytes" in str(told[0])


def test_a_header_line_of_100_megabytes(warc):
    packer = zlib.compressobj(1, wbits=31)
    long = [packer.compress(b"WARC/1.1\r\nX-Long: "), *(packer.compress(b"x" * (1 << 20)) for _ in range(100))]
    pages, told, _ = warc(member(0) + b"".join([*long, packer.flush()]) + member(1))
    assert pages == [0, 1]
    assert len(told) == 1
    assert "cannot be read as WARC" in str(told[0])


@pytest.mark.parametrize("date", [b"1989-12-31T23:59:59Z", b"2100-01-01T00:00:00Z", b"9999-01-01T00:00:00Z"])
def test_dates_before_1990_and_after_2100_in_an_archive(warc, date):
    assert warc(member(0) + member(1, date=date) + member(2)) == ([0, 2], [], {"dated before 1990 or after 2100": 1})


def test_dates_before_1990_and_after_2100_in_indexes_and_maps():
    odd = [LINES[0].replace(b"2020", b"1980"), LINES[1], LINES[2].replace(b"2020", b"2121")]
    assert cdx(b"".join(odd)) == (urls(1), [], {"dated before 1990": 1, "dated after 2100": 1})
    link = '<http://m/{}>; rel="memento"; datetime="' + DATE + '",'
    text = '<http://a/>; rel="original",' + "".join(
        link.format(year).replace("2013", year) for year in ("1980", "2013", "2121")
    )
    report = ReadReport(strict=True)
    assert [one.uri for one in read_timemap(text.encode(), "x", report).mementos] == ["http://m/2013"]
    assert report.skipped == {"dated before 1990": 1, "dated after 2100": 1}


def test_an_unsorted_index_gives_the_same_captures():
    assert cdx(b"".join(reversed(LINES))) == (urls(5, 4, 3, 2, 1, 0), [], {})


def test_mixed_encodings_in_one_index():
    data = b"".join(
        line.replace(b"a.org/%d " % n, b"a.org/" + name + b" ")
        for n, (line, name) in enumerate(zip(LINES, ["é".encode(), b"\xe9", "漢".encode(), b"\xff\xfe"], strict=False))
    )
    assert cdx(data) == ([f"http://a.org/{name}" for name in ("é", "%E9", "漢", "%FF%FE")], [], {})


ENTITIES = b'<!DOCTYPE urlset [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize("data", [b"%s<urlset>&b;</urlset>", b"<?xml version='1.0'?>%s<rss>&b;</rss>"])
def test_entity_bombs_in_sitemaps_and_feeds(data):
    told: list[InputError] = []
    report = ReadReport(on_bad=told.append)
    assert list(read_claims(data % ENTITIES, "x.xml", 0.0, report)) == []
    assert report.bad == 1
    assert "document type" in str(told[0])
    with pytest.raises(InputError, match="document type"):
        list(read_claims(data % ENTITIES, "x.xml", 0.0, ReadReport(strict=True)))


def test_a_map_that_names_itself_as_its_next_page_has_none():
    text = f'<http://t/1>; rel="self",<http://t/1>; rel="timemap next",<http://m/1>; rel="memento"; datetime="{DATE}"'
    found = read_timemap(f'{text},<http://a/>; rel="original"'.encode(), "x", ReadReport(strict=True))
    assert (found.pages, len(found.mementos)) == ((), 1)


def test_an_index_with_nothing_in_it_says_so():
    for data in (b"", b"\n\n", gzip.compress(b"")):
        for read in (read_cdx, read_cdxj):
            report = ReadReport(strict=True)  # an export of nothing is such a file: it is not broken
            assert list(read(io.BytesIO(data), "x.cdx", report)) == []
            assert report.skipped == {"an index without captures": 1}
    fields = b" CDX N b a m s k r M S V g\n"
    assert cdx(fields) == ([], [], {"an index without captures": 1})
    assert cdx(fields + LINES[0]) == (urls(0), [], {})
    assert cdx(LINES[0] + fields) == (urls(0), [], {})


def test_the_place_of_garbage_is_where_it_begins(warc):
    for make in (record, member):
        before = make(0) + make(1)
        _, [told], _ = warc(before + b"garbage" + make(2))
        assert told.position == len(before)
        _, [told], _ = warc(b"garbage" + make(2)) if make is record else warc(before + b"\xff" * 40)
        assert told.position == (0 if make is record else len(before))


def test_a_line_that_our_own_code_fails_on_is_named_with_its_place_and_the_rest_is_read(monkeypatch):
    real = cdx_reader._captures

    def fails(block, **more):
        if b"/3 " in block.text:
            raise OverflowError("poison")
        return real(block, **more)

    monkeypatch.setattr(cdx_reader, "_captures", fails)
    told: list[InputError] = []
    report = ReadReport(on_bad=told.append)
    batches = read_cdx(io.BytesIO(b" CDX N b a m s k r M S V g\n" + b"".join(LINES)), "x.cdx", report)
    urls = [url for batch in batches for url in batch.column("url").to_pylist()]
    assert urls == [f"http://a.org/{n}" for n in (0, 1, 2, 4, 5)]
    [error] = told
    assert error.position == 27 + sum(map(len, LINES[:3]))
    assert "OverflowError('poison')" in str(error)


def test_elements_that_are_nested_without_end_are_not_remembered():
    told: list[InputError] = []
    deep = b"<urlset><url><loc>http://a.org/</loc></url>" + b"<a>" * 100_000
    list(read_claims(io.BytesIO(deep), "x.xml", 0.0, ReadReport(on_bad=told.append)))
    assert any("nested more than" in str(error) for error in told)


def test_texts_that_stand_in_every_row_are_not_unfolded_all_at_once(tmp_path):
    """Ten kilobytes that would take terabytes."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = 200_000
    zeros = pa.array([0] * rows, pa.int32())
    for name, size in (("long", 2 << 20), ("many", 60_000)):
        texts = pa.DictionaryArray.from_arrays(zeros, pa.array(["http://a.org/" + "a" * size]))
        table = pa.table(
            {"url": texts, "fetch_time": pa.array([1_600_000_000_000_000] * rows, pa.timestamp("us", tz="UTC"))}
        )
        parquet.write_table(table, tmp_path / f"{name}.parquet", row_group_size=rows)
    told: list[InputError] = []
    assert list(read_common_crawl(tmp_path / "long.parquet", ReadReport(on_bad=told.append))) == []
    counts = [re.search(r"(\d+) rows of the row group are longer", str(error)) for error in told]
    assert sum(int(count[1]) for count in counts if count) == rows
    before = pa.total_allocated_bytes()
    first = next(iter(read_common_crawl(tmp_path / "many.parquet", ReadReport())))
    assert 0 < first.num_rows < 2_000
    assert pa.total_allocated_bytes() - before < 1 << 29
