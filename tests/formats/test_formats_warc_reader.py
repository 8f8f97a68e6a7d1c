"""What WARC files hold, in every compression, and each record again."""

from __future__ import annotations

import base64
import gzip
import hashlib
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import NO_SIZE, ReadReport, RecordKind, schema
from recrawl.formats.warc.archived_bytes import ArchivedBytes
from recrawl.formats.warc.warc_check import OPEN
from recrawl.formats.warc.warc_fields import head_of, parse_date
from recrawl.formats.warc.warc_reader import OUT_OF_RANGE, index_warc, read_capture
from recrawl.formats.warc.warc_stream import fastwarc
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture
from recrawl.time import VirtualClock

DATA = Path(__file__).parents[1] / "data" / "formats" / "warcio"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=utf-8\r\n\r\n"
PROFILE = "http://netpreserve.org/warc/{}/revisit/{}"


def record(block=HEAD + b"hello", *, version="1.0", **fields):
    named = {
        "WARC-Type": "response",
        "WARC-Target-URI": "http://example.org/",
        "WARC-Date": "2020-01-01T00:00:00Z",
        "WARC-Record-ID": "<urn:uuid:00000000-0000-0000-0000-000000000000>",
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block)),
    } | {name.replace("_", "-"): value for name, value in fields.items()}
    lines = [f"{name}: {value}" for name, value in named.items() if value is not None]
    head = "\r\n".join([f"WARC/{version}", *lines, "", ""]).encode("latin-1")
    return head + block + b"\r\n\r\n"


def page(number, body=b"hello"):
    return record(HEAD + body, **{"WARC-Target-URI": f"http://example.org/{number}"})


@pytest.fixture
def write(tmp_path):
    def to_file(*parts):
        path = tmp_path / "some.file"  # the name says nothing
        path.write_bytes(b"".join(parts))
        return path

    return to_file


def index(path, **options):
    """All rows of a file, and what was told of it."""
    told = []
    report = ReadReport(on_bad=told.append)
    batches = list(index_warc(path, report, **options))
    assert all(batch.schema == schema() for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()], report, told


def sha1(data):
    return base64.b32encode(hashlib.sha1(data).digest()).decode()


def test_a_response_in_columns(write):
    path = write(record(), record(b"", WARC_Type="request"))
    [row], report, _ = index(path)
    assert row == {
        "url": "http://example.org/",
        "key": "",
        "time": 1577836800.0,
        "kind": RecordKind.RESPONSE,
        "status": 200,
        "mime": "text/html",
        "digest": sha1(b"hello"),
        "size": 5,
        "file": "some.file",
        "offset": 0,
        "length": len(record()),
    }
    assert (report.bad, report.skipped) == (0, {"request": 1})


@pytest.mark.parametrize("version", ["0.17", "0.18", "1.0", "1.1"])
def test_every_version(write, version):
    rows, report, _ = index(write(record(version=version)))
    assert (len(rows), report.bad) == (1, 0)


def compressed(kind, parts, path):
    if kind == "plain":
        path.write_bytes(b"".join(parts))
    elif kind == "gzip":
        path.write_bytes(b"".join(map(gzip.compress, parts)))
    else:
        name = {"zstd": "ZstdWriter", "lz4": "Lz4Writer"}[kind]
        with path.open("wb") as file:
            writer = getattr(fastwarc().stream_io, name)(file)
            for part in parts:
                writer.write(part)
                writer.finish()
            writer.close()
    return path


@pytest.mark.parametrize("kind", ["plain", "gzip", "zstd", "lz4"])
def test_every_compression_gives_the_same_and_each_record_again(tmp_path, kind):
    bodies = [b"%d" % n * 3000 * n for n in range(5)]
    path = compressed(kind, [page(n, body) for n, body in enumerate(bodies)], tmp_path / "x.warc.gz")
    rows, report, _ = index(path)
    assert report.bad == 0
    assert [row["digest"] for row in rows] == [sha1(body) for body in bodies]
    assert [row["size"] for row in rows] == [len(body) for body in bodies]
    assert sum(row["length"] for row in rows) == path.stat().st_size
    for row, body in zip(rows, bodies, strict=True):
        capture = read_capture(path, row["offset"])
        assert (capture.url, capture.time, capture.status) == (row["url"], row["time"], 200)
        assert (capture.raw_head, capture.raw_body, capture.truncated) == (HEAD, body, "")
    with pytest.raises(InputError, match="no capture begins here"):
        read_capture(path, rows[1]["offset"] + 1)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_both_revisits_of_both_versions(write, version):
    fields = {"WARC_Type": "revisit", "WARC_Payload_Digest": "sha1:ABC"}
    same = record(HEAD, WARC_Profile=PROFILE.format(version, "identical-payload-digest"), **fields)
    not_modified = record(b"", WARC_Profile=PROFILE.format(version, "server-not-modified"), **fields)
    with_head = record(
        b"HTTP/1.1 304 Not Modified\r\n\r\n", WARC_Profile=PROFILE.format(version, "server-not-modified"), **fields
    )
    path = write(same, not_modified, with_head)
    rows, _, _ = index(path)
    assert [(row["kind"], row["status"], row["digest"], row["size"]) for row in rows] == [
        (RecordKind.REVISIT_IDENTICAL, 200, "ABC", NO_SIZE),
        (RecordKind.REVISIT_NOT_MODIFIED, 304, "ABC", NO_SIZE),
        (RecordKind.REVISIT_NOT_MODIFIED, 304, "ABC", NO_SIZE),
    ]
    captures = [read_capture(path, row["offset"]) for row in rows]
    assert [(c.raw_head, c.raw_body, c.status) for c in captures] == [
        (HEAD, b"", 200),
        (b"", b"", 304),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", b"", 304),
    ]


def test_a_resource_has_no_http(write):
    path = write(record(b"HTTP/1.1 is my text", WARC_Type="resource", Content_Type="text/plain; a=b"))
    [row], _, _ = index(path)
    assert (row["kind"], row["status"], row["mime"], row["size"]) == (RecordKind.RESOURCE, 0, "text/plain", 19)
    assert row["digest"] == sha1(b"HTTP/1.1 is my text")
    assert read_capture(path, 0).raw_body == b"HTTP/1.1 is my text"


def test_what_is_no_capture_is_counted(write):
    kinds = ["warcinfo", "request", "metadata", "conversion", "continuation", "monkeys"]
    rows, report, _ = index(write(*(record(b"x", WARC_Type=kind) for kind in kinds)))
    assert rows == []
    assert report.skipped == dict.fromkeys(kinds[:-1], 1) | {"a record of no known type": 1}


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"


def test_a_missing_digest_is_of_the_body_without_chunks(write):
    [row], _, _ = index(write(record(CHUNKED)))
    assert row["digest"] == sha1(b"hello")


def test_a_given_digest_is_believed_unless_asked_to_verify(write):
    fine = [
        record(WARC_Payload_Digest="sha1:" + sha1(b"hello")),
        record(WARC_Payload_Digest="sha256:" + hashlib.sha256(b"hello").hexdigest()),
        record(CHUNKED, WARC_Payload_Digest="sha1:" + sha1(CHUNKED.partition(b"\r\n\r\n")[2])),  # as warcio does it
        record(WARC_Payload_Digest="whirl:abc"),  # nobody can tell
    ]
    wrong = record(WARC_Payload_Digest="sha1:" + sha1(b"other"))
    path = write(*fine, wrong)
    rows, report, _ = index(path)
    assert (len(rows), report.bad) == (5, 0)
    assert rows[-1]["digest"] == sha1(b"other")
    again, report, [told] = index(path, verify=True)
    assert again == rows
    assert told.position == rows[-1]["offset"]
    assert sha1(b"hello") in str(told)


@pytest.mark.parametrize(
    ("date", "time"),
    [
        ("2016-09-19T17:20:24Z", 1474305624.0),
        ("2016-09-19T17:20:24.123456789Z", 1474305624.123456),
        ("2016-09-19T17:20Z", 1474305600.0),
        ("2016-09-19", 1474243200.0),
        ("2016", 1451606400.0),
        ("20160919172024", 1474305624.0),
        ("2008-10-294T05:21:46-0700", 1224505306.0),  # ClueWeb counts days from New Year
        ("1989-01-01T00:00:00Z", None),
        ("2100-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59Z", None),
    ],
)
def test_dates_of_any_precision(write, date, time):
    rows, report, _ = index(write(record(WARC_Date=date)))
    assert [row["time"] for row in rows] == ([time] if time else [])
    assert report.bad == 0
    assert report.skipped == ({} if time else {OUT_OF_RANGE: 1})


@pytest.mark.parametrize("date", ["", "soon", "2016-13-01T00:00:00Z", "2016-02-30", "2016-10-12T99:00:00Z", "0000"])
def test_what_is_no_date_is_told(write, date):
    rows, _, [told] = index(write(record(WARC_Date=date), page(2)))
    assert [row["url"] for row in rows] == ["http://example.org/2"]
    assert "is no date" in str(told)
    assert parse_date(date) is None


@pytest.mark.parametrize(
    ("written", "url"),
    [
        (b"<http://example.org/a>", "http://example.org/a"),
        ("http://example.org/é".encode(), "http://example.org/é"),
        ("http://example.org/é".encode("latin-1"), "http://example.org/é"),
        (b"http://example.org/a b", "http://example.org/a b"),
        (b"dns:example.org", "dns:example.org"),
    ],
)
def test_urls_in_any_encoding(write, written, url):
    rows, _, _ = index(write(record().replace(b"http://example.org/", written, 1)))
    assert [row["url"] for row in rows] == [url]


@pytest.mark.parametrize(
    ("block", "status", "mime", "size"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, "", 0),
        (b"HTTP/1.0 200\nContent-type:a/b\n\nbody\r\n\r\n", 200, "a/b", 8),
        (b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n", 200, "a/b", 0),
        (b"HTTP/1.1 abc\r\n\r\nx", 0, "", 1),
        (b"no head at all", 0, "", 14),
        (b"", 0, "", 0),
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000 + b"\r\nContent-Type: a/b\r\n\r\nbody", 200, "a/b", 4),
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 1_000_000 + b"\r\n\r\nbody", 0, "", 1_000_028),
    ],
)
def test_odd_heads(write, block, status, mime, size):
    rows, report, _ = index(write(record(block), page(2)))
    assert (rows[0]["status"], rows[0]["mime"], rows[0]["size"]) == (status, mime, size)
    assert (len(rows), report.bad) == (2, 0)


def test_a_head_may_end_later_than_the_bytes_at_hand():
    assert head_of(b"HTTP/1.1 200 OK\r\nContent-") is None


def test_a_body_beyond_the_limit_is_cut(write):
    path = write(page(1, b"x" * 5000))
    capture = read_capture(path, 0, max_body=1000)
    assert (capture.raw_body, capture.truncated) == (b"x" * 1000, "length")


def test_what_the_record_says_about_itself_is_kept(write):
    capture = read_capture(write(record(WARC_Truncated="time", WARC_IP_Address="192.0.2.7")), 0)
    assert (capture.truncated, capture.ip) == ("time", "192.0.2.7")


def test_our_own_files_come_back_as_they_went(tmp_path):
    time = 1_700_000_000.125
    first = Capture("http://example.org/a", time, 200, HEAD, b"\x00\xff" * 50_000, ip="192.0.2.7")
    with WarcWriter(tmp_path, VirtualClock(time)) as writer:
        place = writer.write(first)
        again = writer.write(first, revisit_of=place.ref)
    rows, report, _ = index(writer.path, verify=True)
    assert report.bad == 0
    assert [(row["offset"], row["length"], row["file"]) for row in rows] == [
        (where.offset, where.length, where.file) for where in (place, again)
    ]
    assert read_capture(writer.path, place.offset) == first


def test_batches_are_bounded_and_lose_nothing(write):
    rows, _, _ = index(write(*(page(n) for n in range(20_000))))
    assert [row["url"] for row in rows] == [f"http://example.org/{n}" for n in range(20_000)]
    sizes = [batch.num_rows for batch in index_warc(write(*(page(n) for n in range(20_000))), ReadReport())]
    assert sizes == [16_384, 20_000 - 16_384]


@pytest.mark.parametrize("name", ["example.warc.gz", "example.warc", "example-wget-bad-target-uri.warc.gz"])
def test_warcio_sees_the_same(name):
    with (DATA / name).open("rb") as file:
        iterator = ArchiveIterator(file)
        seen = [
            (r.rec_headers.get_header("WARC-Target-URI"), iterator.get_record_offset(), iterator.get_record_length())
            for r in iterator
            if r.rec_type in ("response", "revisit", "resource")
        ]
    rows, report, _ = index(DATA / name)
    ours = [(row["url"], row["offset"], row["length"]) for row in rows]
    if name.endswith(".gz"):
        assert ours == seen
    else:  # of plain records warcio leaves out the two new lines at the end
        assert [(url, offset) for url, offset, _ in ours] == [(url, offset) for url, offset, _ in seen]
    assert report.bad == 0


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        next(index_warc(tmp_path / "nothing", ReadReport()))


def test_captures_are_at_hand_while_their_file_is_written(tmp_path):
    """A killed crawl leaves such a file too: what was captured is then not missing."""
    (tmp_path / "warc").mkdir()
    (tmp_path / f"aside{OPEN}").touch()
    archived = ArchivedBytes(tmp_path / "warc", lambda _file: False)
    writer = WarcWriter(tmp_path / "warc", VirtualClock(1.6e9), durable=False)
    written = writer.write(Capture("http://example.org/", 1.6e9, 200, HEAD, b"hello"))
    assert not (tmp_path / "warc" / written.file).exists()
    for _ in range(2):
        assert archived.has(written.file)
        assert archived.read(written.file, written.offset).raw_body == b"hello"
        writer.close()
    assert not archived.has("../aside")
    assert archived.read("../aside", 0) is None
    assert not archived.has("never.warc.gz")
    assert archived.read("never.warc.gz", 0) is None
