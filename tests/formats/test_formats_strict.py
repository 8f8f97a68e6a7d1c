"""A strict reader stops at the first broken record, and gives all that stand before it and none behind it."""

from __future__ import annotations

import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.cdx.cdx_lines import read_cdx
from recrawl.formats.cdx.cdx_responses import read_answer
from recrawl.formats.cdx.cdxj import read_cdxj, read_zipnum, write_zipnum
from recrawl.formats.cdx.line_blocks import BLOCK
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.crawl_log import read_crawl_log
from recrawl.formats.sitemap_feed import read_claims
from recrawl.formats.timemap import read_timemap_file
from recrawl.formats.warc.arc import index_arc
from recrawl.formats.warc.warc_reader import index_warc

COUNT, BAD = 30, 17


def taken(batches):
    """The numbers of the pages that were given, and the error in the end."""
    found = []
    try:
        for batch in batches:
            found += [int(url.rpartition("/")[2]) for url in batch.column("url").to_pylist()]
    except InputError as error:
        return found, error
    return found, None


def stopped(batches):
    """What was given before the error, and where that was; the error must come."""
    found, error = taken(batches)
    assert error is not None
    return found, error.position


ALL_BEFORE = list(range(BAD))


def warc(number, date=b"2020-01-01T00:00:00Z"):
    return (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.org/%d\r\nWARC-Date: %s\r\n"
        b"Content-Length: 24\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhello\r\n\r\n"
    ) % (number, date)


def arc(number, date=b"20200101000000"):
    return b"http://a.org/%d 1.2.3.4 %s text/html 24\nHTTP/1.1 200 OK\r\n\r\nhello\n" % (number, date)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("damage", [warc(BAD, b"soon"), b"garbage", warc(BAD).replace(b"24", b"-4")])
def test_warc(tmp_path, pack, damage):
    before = b"".join(pack(warc(n)) for n in range(BAD))
    damage = pack(damage) if damage.startswith(b"WARC") else damage
    path = tmp_path / "x.warc"
    path.write_bytes(before + damage + b"".join(pack(warc(n)) for n in range(BAD + 1, COUNT)))
    assert stopped(index_warc(path, ReadReport(strict=True))) == (ALL_BEFORE, len(before))
    rows = [row for batch in index_warc(path, ReadReport()) for row in batch.to_pylist()][:BAD]
    assert sum(row["length"] for row in rows) >= len(before)


def test_a_record_that_is_itself_cut_is_not_given(tmp_path):
    path = tmp_path / "x.warc"
    path.write_bytes(b"".join(map(warc, range(BAD))) + warc(BAD)[:-8])
    assert stopped(index_warc(path, ReadReport(strict=True))) == (ALL_BEFORE, len(b"".join(map(warc, range(BAD)))))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("damage", [arc(BAD, b"soon"), b"garbage\n"])
def test_arc(tmp_path, pack, damage):
    start = b"filedesc://x.arc 0.0.0.0 20200101000000 text/plain 4\n1 0\n\n"
    before = b"".join(map(pack, [start, *map(arc, range(BAD))]))
    damage = pack(damage) if damage.startswith(b"http") else damage
    path = tmp_path / "x.arc"
    path.write_bytes(before + damage + b"".join(pack(arc(n)) for n in range(BAD + 1, COUNT)))
    assert stopped(index_arc(path, ReadReport(strict=True))) == (ALL_BEFORE, len(before))


def cdx(n):
    return b"org,a)/%d 20200102030405 http://a.org/%d text/html 200 ABC - - 5 0 x.warc.gz\n" % (n, n)


def cdxj(n):
    return b'org,a)/%d 20200102030405 {"url": "http://a.org/%d", "status": "200"}\n' % (n, n)


def row(n):
    return b'["org,a)/%d","20200102030405","http://a.org/%d"],\n' % (n, n)


def log(n):
    return (
        b"2020-05-01T10:00:00.500Z   200       1234 http://a.org/%d L - text/html #001 20200501100000123+250 - - -\n"
        % n
    )


def in_cdxj_map(n):
    return b'20200102030405 {"uri": "http://m/20200102030405/http://a.org/%d"}\n' % n


def link(n):
    uri = b"http://m/20200102030405/http://a.org/%d" % n
    return b'<%s>; rel="memento"; datetime="Thu, 02 Jan 2020 03:04:05 GMT",\n' % uri


LINES = {
    "cdx": (
        read_cdx,
        b"",
        cdx,
        [b"one two\n", cdx(BAD).replace(b"200 A", b"ok A"), cdx(BAD).replace(b"0102", b"1302")],
    ),
    "cdxj": (read_cdxj, b"", cdxj, [b"one two\n", cdxj(BAD).replace(b"}", b""), cdxj(BAD).replace(b"0102", b"1302")]),
    "answer": (
        read_answer,
        b'[["urlkey","timestamp","original"],\n',
        row,
        [b'["a"],\n', b'["a,\n', row(BAD).replace(b"0102", b"1302")],
    ),
    "log": (read_crawl_log, b"", log, [b"one two\n", log(BAD).replace(b"200", b"abc", 1)]),
    "cdxj map": (read_timemap_file, b"!meta {}\n", in_cdxj_map, [b"one two\n"]),
    "link map": (read_timemap_file, b"", link, [b"<http://x\n>,\n"]),
}


@pytest.mark.parametrize(
    ("kind", "damage"), [(kind, bad) for kind, (_, _, _, all_bad) in LINES.items() for bad in all_bad]
)
def test_lines(kind, damage):
    read, start, line, _ = LINES[kind]
    before = start + b"".join(map(line, range(BAD)))
    after = b"".join(map(line, range(BAD + 1, COUNT)))
    # What is found first in a column is not always what stands first in the file.
    for data in (before + damage + after, before + damage + after + damage):
        assert stopped(read(io.BytesIO(data), "x", ReadReport(strict=True))) == (ALL_BEFORE, len(before))


@pytest.mark.parametrize("kind", [kind for kind in LINES if kind != "link map"])
def test_a_torn_gzip_gives_the_lines_before_it(kind):
    read, start, line, _ = LINES[kind]
    data = gzip.compress(start + b"".join(map(line, range(2_000))))
    found, error = taken(read(io.BytesIO(data[:-100]), "x", ReadReport(strict=True)))
    assert found == list(range(len(found)))
    assert 1_000 < len(found) < 2_000
    assert "the gzip data break off" in str(error)


def test_json_map():
    entry = '{"uri": "http://m/%d", "datetime": "2020-01-02T03:04:05Z"}'
    many = [entry % n for n in range(BAD)] + ['"bad"'] + [entry % n for n in range(BAD + 1, COUNT)]
    data = '{"original_uri": "http://a.org/7", "mementos": {"list": [' + ",".join(many) + "]}}"
    found, error = taken(read_timemap_file(io.BytesIO(data.encode()), "x", ReadReport(strict=True)))
    assert found == [7] * BAD
    assert "is no object" in str(error)


def test_a_map_that_would_name_its_original_behind_the_damage_ends_in_that_damage():
    data = b'<http://m/1>; rel="memento"; datetime="Thu, 02 Jan 2020 03:04:05 GMT",<bad\n>,<http://a/1>; rel="original"'
    found, error = taken(read_timemap_file(io.BytesIO(data), "x", ReadReport(strict=True)))
    assert found == []
    assert "a link begins" in str(error)


def test_recorded_answers():
    lines = [
        json.dumps({"response_text": json.dumps([["timestamp", "original"], ["20200102030405", f"http://a.org/{n}"]])})
        for n in range(BAD)
    ]
    data = "\n".join([*lines, "bad", *lines]).encode()
    assert stopped(read_answer(io.BytesIO(data), "x", ReadReport(strict=True))) == (ALL_BEFORE, data.index(b"bad"))


def cluster(folder, lines):
    with (folder / "x.cdx.gz").open("wb") as data, (folder / "x.idx").open("wb") as small:
        write_zipnum(lines, data, small, "x.cdx.gz", per_block=4)
    return folder / "x.idx"


def test_zipnum(tmp_path):
    after = [cdx(n) for n in range(BAD + 1, COUNT)]
    found, error = taken(
        read_zipnum(cluster(tmp_path, [*map(cdx, range(BAD)), b"bad\n", *after]), ReadReport(strict=True))
    )
    assert found == list(range(BAD))
    assert "1 fields" in str(error)
    index = cluster(tmp_path, list(map(cdx, range(COUNT))))
    index.write_bytes(index.read_bytes() + b"bad line\n")
    found, error = taken(read_zipnum(index, ReadReport(strict=True)))
    assert found == list(range(COUNT))
    assert "separated by tabs" in str(error)


def test_sitemaps_and_lists():
    urls = "".join(f"<url><loc>http://a.org/{n}</loc></url>" for n in range(BAD))
    found, error = taken(read_claims(f"<urlset>{urls}<url></bad>".encode(), "x", 0.0, ReadReport(strict=True)))
    assert found == list(range(BAD))
    assert "the rest is not read" in str(error)
    long = b"".join(b"http://a.org/%d\n" % n for n in range(BAD)) + b"http://a.org/" + b"x" * BLOCK + b"\n"
    found, error = taken(read_claims(long, "x", 0.0, ReadReport(strict=True)))
    assert found == list(range(BAD))
    assert "a line is longer" in str(error)


@given(st.lists(st.sampled_from(["good", "skipped", "short", "no time", "no status"]), max_size=12))
def test_a_strict_index_is_the_loose_one_up_to_its_first_broken_line(kinds):
    makes = {
        "good": cdx,
        "skipped": lambda n: cdx(n).replace(b"2020", b"1980"),
        "short": lambda n: b"%d\n" % n,
        "no time": lambda n: cdx(n).replace(b"0102", b"1302"),
        "no status": lambda n: cdx(n).replace(b" 200 ", b" ok "),
    }
    lines = [cdx(99), *(makes[kind](n) for n, kind in enumerate(kinds))]
    broken = next((n for n, kind in enumerate(kinds) if kind not in ("good", "skipped")), len(kinds))
    strict, loose = ReadReport(strict=True), ReadReport()
    found, error = taken(read_cdx(io.BytesIO(b"".join(lines)), "x", strict))
    assert found == taken(read_cdx(io.BytesIO(b"".join(lines[: broken + 1])), "x", loose))[0]
    assert strict.skipped == loose.skipped
    assert (error.position if error else None) == (sum(map(len, lines[: broken + 1])) if broken < len(kinds) else None)
