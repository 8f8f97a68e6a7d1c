"""Headers that WARC allows and fastwarc does not read: any case, folded lines, UTF-8. And what nobody can read."""

from __future__ import annotations

import gzip
import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import NO_SIZE, ReadReport
from recrawl.formats.warc.warc_reader import index_warc, read_capture
from recrawl.formats.warc.warc_stream import PLAIN, ReadWindow, RecordFields, fastwarc, records

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
NAME = re.compile(rb"^(WARC/1\.1|[\w-]+(?=:))", re.MULTILINE)


def page(number, body=b"hello", length=None):
    block = HEAD + body
    return (
        b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/%d\r\n"
        b"WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n"
        b"Content-Length: %s\r\n\r\n%s\r\n\r\n"
    ) % (number, length or b"%d" % len(block), block)


def cased(record, change):
    """The record with its version and names of fields written otherwise."""
    headers, gap, block = record.partition(b"\r\n\r\n")
    return NAME.sub(lambda found: change(found[0]), headers) + gap + block


def small_length(name):
    return name.replace(b"Length", b"length")


def small_but_version(name):
    return name if name.startswith(PLAIN) else name.lower()


def folded(record):
    headers, gap, block = record.partition(b"\r\n\r\n")
    return headers.replace(b": ", b": \r\n\t") + gap + block


ODD = {
    "length": lambda record: cased(record, small_length),
    "small": lambda record: cased(record, small_but_version),
    "small version": lambda record: cased(record, bytes.lower),
    "capitals": lambda record: cased(record, bytes.upper),
    "folded": folded,
    "bare": lambda record: cased(record, small_length).replace(b"\r\n", b"\n", 6).replace(b"\n\r\n", b"\n\n", 1),
}


def packed_by_fastwarc(writer, data, path):
    with path.open("ab") as file, getattr(fastwarc().stream_io, writer)(file) as packer:
        packer.write(data)


def index(path):
    told = []
    report = ReadReport(on_bad=told.append)
    return [row for batch in index_warc(path, report) for row in batch.to_pylist()], told


def numbers(rows):
    return [int(row["url"].rpartition("/")[2]) for row in rows]


def is_whole(path, rows):
    for row in rows:
        capture = read_capture(path, row["offset"])
        assert (capture.url, capture.status, capture.truncated) == (row["url"], 200, "")
        assert capture.raw_body == b"hello" * numbers([row])[0]
        assert (row["status"], row["mime"], row["size"]) == (200, "text/html", len(capture.raw_body))


@pytest.mark.parametrize("how", ODD)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_headers_in_any_case_and_fold_are_read_like_others(tmp_path, how, pack):
    odd = ODD[how]
    for mixed in (
        (odd, odd, odd, odd),
        (bytes, odd, bytes, odd),
        (odd, bytes, bytes, bytes),
        (bytes, bytes, bytes, odd),
    ):
        parts = [pack(change(page(n, b"hello" * n))) for n, change in enumerate(mixed)]
        path = tmp_path / "x.warc"
        path.write_bytes(b"".join(parts))
        rows, told = index(path)
        assert told == []
        assert numbers(rows) == [0, 1, 2, 3]
        assert [row["length"] for row in rows] == list(map(len, parts))
        assert len({row["digest"] for row in rows}) == 4
        is_whole(path, rows)


@pytest.mark.parametrize("how", ["length", "small", "folded"])
@pytest.mark.parametrize("writer", ["ZstdWriter", "Lz4Writer"])
def test_every_compression(tmp_path, how, writer):
    path = tmp_path / "x.warc"
    for n in range(4):
        packed_by_fastwarc(writer, ODD[how](page(n, b"hello" * n)), path)
    rows, told = index(path)
    assert (numbers(rows), told) == ([0, 1, 2, 3], [])
    is_whole(path, rows)


def test_in_one_stream_no_record_is_given_twice(tmp_path):
    path = tmp_path / "x.warc.gz"
    parts = [page(0), page(1), cased(page(2), bytes.lower), page(3), cased(page(4), small_length), page(5)]
    path.write_bytes(gzip.compress(b"".join(parts)))
    rows, told = index(path)
    assert numbers(rows)[:2] == [0, 1]
    assert len(numbers(rows)) == len(set(numbers(rows)))
    parts[2] = page(2)
    path.write_bytes(gzip.compress(b"".join(parts)))
    rows, told = index(path)
    assert numbers(rows) == [0, 1, 2, 3, 4, 5]
    assert {row["status"] for row in rows} == {200}
    assert {row["offset"] for row in rows[1:]} == {NO_SIZE}
    assert ["cannot be read alone" in str(error) for error in told] == [True]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_damage_among_such_records_is_told_with_its_place_and_passed(tmp_path, pack):
    odd = ODD["small"]
    for damaged in (b"garbage", pack(odd(page(9, length=b"-5"))), pack(odd(page(9, length=b"9" * 15)))):
        path = tmp_path / "x.warc"
        path.write_bytes(pack(odd(page(0))) + damaged + pack(odd(page(1))) + pack(page(2)))
        rows, [told] = index(path)
        assert numbers(rows) == [0, 1, 2]
        assert told.position == len(pack(odd(page(0))))


def test_a_length_that_is_too_large_swallows_no_other_record(tmp_path):
    odd = ODD["small"]
    path = tmp_path / "x.warc"
    path.write_bytes(odd(page(0)) + odd(page(1, length=b"500")) + b"".join(odd(page(n)) for n in range(2, 6)))
    rows, told = index(path)
    assert numbers(rows) == [0, 1, 2, 3, 4, 5]
    assert len(told) == 1


def test_the_last_record_may_be_cut(tmp_path):
    path = tmp_path / "x.warc"
    path.write_bytes((ODD["small"](page(0)) + ODD["small"](page(1, b"x" * 100)))[:-50])
    rows, [told] = index(path)
    assert numbers(rows) == [0, 1]
    assert "the record ends after" in str(told)
    capture = read_capture(path, rows[1]["offset"])
    assert (capture.raw_body, capture.truncated) == (b"x" * 54, "length")


def test_what_cannot_be_read_is_no_empty_page(tmp_path):
    path = tmp_path / "x.warc"
    whole = page(0, b"body")
    start = whole.index(HEAD)
    for end in (start, start + 20):
        path.write_bytes(page(1) + whole[:end])
        rows, told = index(path)
        assert (numbers(rows), len(told)) == ([1, 0], 1)
        with pytest.raises(InputError, match="no capture begins here"):
            read_capture(path, rows[1]["offset"])
    for length in (b"-5", b"many", b"9" * 16):
        path.write_bytes(page(1, length=length))
        with pytest.raises(InputError, match="no capture begins here"):
            read_capture(path, 0)


def test_ordinary_records_take_the_quick_way(tmp_path):
    path = tmp_path / "x.warc"
    path.write_bytes(b"".join(page(n) for n in range(3)) + cased(page(3), small_length) + page(4))
    with path.open("rb") as file:
        kinds = [type(record).__module__.split(".")[0] for record, _ in records(ReadWindow(file), "x", ReadReport())]
    assert kinds == ["fastwarc"] * 3 + ["recrawl"] * 2


def test_fields():
    found = RecordFields(
        [b"A: 1", b"a: 2", b" more", b"Caf\xc3\xa9: \xc3\xbc", b"b:", b"\t x ", b"  y", b"no field", b" z"]
    )
    assert (found.get("a"), found.get(b"B"), found.get("Café"), found.get("c", "-")) == ("1", "x y", "ü", "-")
    assert found.get_bytes("Café") == "ü".encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
@given(
    packed=st.booleans(),
    where=st.floats(0, 1, exclude_max=True),
    cut=st.integers(0, 60),
    put=st.binary(max_size=60),
)
@example(packed=False, where=0.5, cut=0, put=b"warc/1.0\r\n\r\n")
def test_no_such_record_before_the_damage_is_lost(tmp_path, packed, where, cut, put):
    parts = [ODD["small version"](page(n, b"hello" * n)) for n in range(5)]
    parts = [gzip.compress(part, mtime=0) for part in parts] if packed else parts
    data = b"".join(parts)
    place = int(where * len(data))
    path = tmp_path / "fuzzed"
    path.write_bytes(data[:place] + put + data[place + cut :])
    rows, _ = index(path)
    before = sum(len(b"".join(parts[: n + 1])) <= place for n in range(5))
    assert numbers(rows[:before]) == list(range(before))
    is_whole(path, [row for row in rows[: max(before - 1, 0)] if row["offset"] != NO_SIZE])
