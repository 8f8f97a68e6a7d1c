"""Damaged WARC files: what is whole comes through, each damage is told with its place, and nothing crashes."""

from __future__ import annotations

import gzip
import subprocess
import sys
import zlib
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import NO_SIZE, ReadReport
from recrawl.formats.warc.warc_reader import index_warc, read_capture

DATA = Path(__file__).parents[1] / "data" / "formats" / "warcio"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def page(number, body=b"hello", length=None):
    block = HEAD + body
    return (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/%d\r\n"
        b"WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n"
        b"Content-Length: %s\r\n\r\n%s\r\n\r\n"
    ) % (number, length if length is not None else b"%d" % len(block), block)


def index(path):
    told = []
    report = ReadReport(on_bad=told.append)
    return [row for batch in index_warc(path, report) for row in batch.to_pylist()], report, told


def numbers(rows):
    return [int(row["url"].rpartition("/")[2]) for row in rows]


def packings(*parts):
    """The parts plain and as gzip members; what is no record stays as it is."""
    yield b"".join(parts)
    yield b"".join(gzip.compress(part, mtime=0) if part.startswith(b"WARC/") else part for part in parts)


@pytest.fixture
def write(tmp_path):
    def to_file(data):
        path = tmp_path / "x.warc.gz"
        path.write_bytes(data)
        return path

    return to_file


@pytest.mark.parametrize(
    "garbage", [b"garbage\n\nmore", b"\0" * 3000, b"\x1f\x8b\x08garbage", b"WARC/1.0 is a format."]
)
def test_garbage_between_records(write, garbage):
    before = map(len, packings(page(1), page(2)))
    for data, place in zip(packings(page(1), page(2), garbage, page(3), page(4)), before, strict=True):
        path = write(data)
        rows, report, [told] = index(path)
        assert numbers(rows) == [1, 2, 3, 4]
        assert report.bad == 1
        assert str(path) in str(told)
        assert told.position == place
        assert [read_capture(path, row["offset"]).url for row in rows] == [row["url"] for row in rows]
        with pytest.raises(InputError, match="cannot be read as WARC"):
            list(index_warc(path, ReadReport(strict=True)))


@pytest.mark.parametrize("length", [b"-5", b"-99999999999999999999", b"abc", b"9" * 40, b""])
def test_lengths_that_are_none(write, length):
    for data in packings(page(1), page(2, length=length), page(3)):
        rows, _, told = index(write(data))
        assert numbers(rows) == [1, 3]
        assert len(told) == 1
        assert "Content-Length" in str(told[0])


@pytest.mark.parametrize("length", [b"5", b"60", b"400", b"4000000000"])
def test_lengths_that_are_wrong(write, length):
    for data in packings(page(1), page(2, length=length), page(3), page(4)):
        rows, report, _ = index(write(data))
        assert {1, 3, 4} <= set(numbers(rows))
        assert report.bad >= 1


@pytest.mark.parametrize("cut", [1, 5, 12, 40, 120, 200])
def test_a_cut_file_keeps_what_is_before_the_cut(write, cut):
    for data in packings(page(1), page(2), page(3, b"x" * 300)):
        rows, report, _ = index(write(data[:-cut]))
        assert numbers(rows)[:2] == [1, 2]
        assert report.bad == (len(rows) == 2 or rows[2]["digest"] == "")


def test_a_cut_body_is_given_as_far_as_it_goes(write):
    path = write(page(1, b"x" * 1000)[:-500])
    [row], _, [told] = index(path)
    assert "the record ends after" in str(told)
    assert row["digest"] == ""
    capture = read_capture(path, 0)
    assert (capture.raw_body, capture.truncated) == (b"x" * 504, "length")


def test_one_gzip_stream_is_read_in_order_but_not_by_place(write):
    sizes = [10, 100_000, 0, 300_000, 5, 7]
    path = write(gzip.compress(b"".join(page(n, b"%d" % n * size) for n, size in enumerate(sizes))))
    rows, _, [told] = index(path)
    assert numbers(rows) == list(range(6))
    assert "cannot be read alone" in str(told)
    assert {row["offset"] for row in rows[1:]} == {NO_SIZE}
    assert {row["length"] for row in rows[1:]} == {NO_SIZE}


def test_an_offset_that_is_given_is_right_where_members_hold_several_records(write):
    groups = [(1, 2), (3,), (4, 5, 6), (7,), (8, 9)]
    for body in (b"", b"x" * 200_000):
        path = write(b"".join(gzip.compress(b"".join(page(n, body) for n in group)) for group in groups))
        rows, _, _ = index(path)
        assert numbers(rows) == list(range(1, 10))
        placed = [row for row in rows if row["offset"] != NO_SIZE]
        assert [read_capture(path, row["offset"]).url for row in placed] == [row["url"] for row in placed]


def test_a_damaged_member_costs_only_itself(write):
    members = [gzip.compress(page(n, bytes(range(256)) * 20)) for n in range(5)]
    broken = bytearray(members[2])
    broken[150] ^= 0xFF
    rows, report, _ = index(write(b"".join([*members[:2], bytes(broken), *members[3:]])))
    assert {0, 1, 3, 4} <= set(numbers(rows))
    assert report.bad == 1


def test_records_with_bare_line_ends_among_others(write):
    bare = page(2).replace(b"\r\n", b"\n").replace(b"Content-Length: 49", b"Content-Length: 46")
    assert bare != page(2)
    for data in packings(page(1), bare, bare.replace(b"/2", b"/3"), page(4)):
        rows, _, _ = index(write(data))
        assert numbers(rows)[:3] == [1, 2, 3]


def test_an_embedded_archive_is_not_taken_for_the_outer_one(write):
    rows, _, _ = index(write(page(1, page(99) * 3) + page(2) + b"garbage" + page(3)))
    assert numbers(rows) == [1, 2, 3]


@pytest.mark.parametrize("data", [b"", b"x", b"\x1f\x8b", b"\x1f\x8b\x08", b"WARC/", b"WARC/1.0\r\n", b"\n" * 5000])
def test_what_is_no_archive_is_told(write, data):
    rows, report, _ = index(write(data))
    assert (rows, report.bad) == ([], 1)


BOUNDED = """
import resource, sys
from pathlib import Path
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.warc.warc_reader import index_warc, read_capture
from recrawl.formats.warc.arc import index_arc
import pyarrow
path = Path(sys.argv[1])
list(index_warc(Path(sys.argv[2]), ReadReport()))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = ReadReport(on_bad=lambda error: print(str(error)[-80:], file=sys.stderr))
rows = [row for batch in {"warc": index_warc, "arc": index_arc}[sys.argv[3]](path, report) for row in batch.to_pylist()]
print(len(rows), report.bad, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def bomb(start, middle, times, end, path):
    """A gzip file of ``start``, many times ``middle``, and ``end``, made without holding it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        file.write(packer.compress(start))
        for _ in range(times):
            file.write(packer.compress(middle))
        file.write(packer.compress(end) + packer.flush())
        file.write(gzip.compress(page(2)))


MEGABYTE = b"a" * (1 << 20)


@pytest.mark.parametrize(
    ("start", "count", "bad"),
    [
        (page(1, b"", b"%d" % (len(HEAD) + (300 << 20))).rstrip(b"\r\n") + b"\r\n\r\n", 2, 0),  # a body of 300 MB
        (b"WARC/1.0\r\nWARC-Type: response\r\nX-Long: ", 1, 1),  # a header line of 300 MB
    ],
    ids=["body", "header"],
)
def test_bombs_do_not_fill_the_memory(tmp_path, start, count, bad):
    pytest.importorskip("resource", reason="this system does not tell how much memory a process took")
    bomb(start, MEGABYTE, 300, b"\r\n\r\n", tmp_path / "bomb")
    command = [sys.executable, "-c", BOUNDED, str(tmp_path / "bomb"), str(DATA / "example.warc.gz"), "warc"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    rows, told, megabytes = map(int, result.stdout.split())
    assert (rows, told) == (count, bad), result.stderr
    assert megabytes < 60


WHOLE = [page(n, bytes([n]) * (40 * n)) for n in range(6)]
MEMBERS = [gzip.compress(part, mtime=0) for part in WHOLE]
in_a_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)


def reads_again(path, rows, whole=0):
    """All that have a place, but for those behind the first ``whole`` ones of which not even the status was read."""
    for number, row in enumerate(rows):
        if row["offset"] == NO_SIZE:
            continue
        try:
            capture = read_capture(path, row["offset"])
        except InputError:
            assert number >= whole
            assert row["status"] == 0
        else:
            assert (capture.url, capture.time) == (row["url"], row["time"])


@in_a_folder
@given(
    parts=st.sampled_from([WHOLE, MEMBERS]),
    where=st.floats(0, 1, exclude_max=True),
    cut=st.integers(0, 60),
    put=st.binary(max_size=60),
)
@example(parts=WHOLE, where=0.5, cut=0, put=b"WARC/1.0\r\n\r\n")
@example(parts=MEMBERS, where=0.5, cut=0, put=b"\x1f\x8b\x08")
def test_no_record_before_the_damage_is_lost(tmp_path, parts, where, cut, put):
    data = b"".join(parts)
    place = int(where * len(data))
    path = tmp_path / "fuzzed"
    path.write_bytes(data[:place] + put + data[place + cut :])
    rows, report, told = index(path)
    whole_before = sum(end <= place for end in accumulate(map(len, parts)))
    assert numbers(rows[:whole_before]) == list(range(whole_before))
    assert report.bad == len(told)
    reads_again(path, rows, whole_before)


real_files = st.sampled_from([path.read_bytes() for path in sorted(DATA.glob("*.warc*"))])


@in_a_folder
@given(
    data=real_files,
    changes=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 30), st.binary(max_size=30)), max_size=4
    ),
)
def test_mutated_real_files_never_crash(tmp_path, data, changes):
    for where, cut, put in changes:
        place = int(where * len(data))
        data = data[:place] + put + data[place + cut :]
    path = tmp_path / "fuzzed"
    path.write_bytes(data)
    rows, report, told = index(path)
    assert report.bad == len(told)
    reads_again(path, rows)


@in_a_folder
@given(
    data=st.binary(max_size=300),
    start=st.sampled_from([b"", b"WARC/1.0\r\n", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"]),
)
def test_noise_never_crashes(tmp_path, data, start):
    path = tmp_path / "noise"
    path.write_bytes(start + data)
    rows, report, told = index(path)
    assert rows == []
    assert report.bad == len(told)
    assert told or report.skipped
