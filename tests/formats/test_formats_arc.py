"""ARC files, whole and damaged, against warcio where it can read them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import subprocess
import sys
import zlib
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import NO_SIZE, ReadReport, RecordKind, schema
from recrawl.formats.warc.arc import index_arc, read_arc_capture
from recrawl.formats.warc.warc_reader import OUT_OF_RANGE

DATA = Path(__file__).parents[1] / "data" / "formats" / "warcio"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=utf-8\r\n\r\n"
BODY = b"1 1 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n"
FIRST = b"filedesc://x.arc 0.0.0.0 20080430204825 text/plain %d\n%s\n" % (len(BODY), BODY)


def page(number, body=b"hello", *, date=b"20080430204826", length=None, head=HEAD):
    block = head + body
    size = length if length is not None else b"%d" % len(block)
    return b"http://example.org/%d 192.0.2.7 %s text/plain %s\n%s\n" % (number, date, size, block)


def index(path):
    told = []
    report = ReadReport(on_bad=told.append)
    batches = list(index_arc(path, report))
    assert all(batch.schema == schema() for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()], report, told


def numbers(rows):
    return [int(row["url"].rpartition("/")[2]) for row in rows]


def packings(*parts):
    yield b"".join(parts)
    yield b"".join(gzip.compress(part, mtime=0) for part in parts)


@pytest.fixture
def write(tmp_path):
    def to_file(data):
        path = tmp_path / "some.file"
        path.write_bytes(data)
        return path

    return to_file


def sha1(data):
    return base64.b32encode(hashlib.sha1(data).digest()).decode()


def test_plain_and_packed_give_the_same_and_each_record_again(write):
    bodies = [b"%d" % n * 40_000 * n for n in range(5)]
    for data in packings(FIRST, *(page(n, body) for n, body in enumerate(bodies))):
        path = write(data)
        rows, report, _ = index(path)
        assert (report.bad, report.skipped) == (0, {"filedesc": 1})
        assert numbers(rows) == list(range(5))
        assert {(row["kind"], row["status"], row["mime"], row["time"]) for row in rows} == {
            (RecordKind.RESPONSE, 200, "text/html", 1209588506.0)
        }
        assert [(row["digest"], row["size"]) for row in rows] == [(sha1(body), len(body)) for body in bodies]
        for row, body in zip(rows, bodies, strict=True):
            capture = read_arc_capture(path, row["offset"])
            assert (capture.url, capture.time, capture.status) == (row["url"], row["time"], 200)
            assert (capture.raw_head, capture.raw_body, capture.ip) == (HEAD, body, "192.0.2.7")
            assert capture.truncated == ""
        with pytest.raises(InputError, match="no capture begins here"):
            read_arc_capture(path, rows[2]["offset"] + 1)


def test_what_has_no_http_is_a_resource(write):
    [row], _, _ = index(write(FIRST + b"dns:example.org 192.0.2.7 20080430204825 text/dns 3\nabc\n"))
    assert (row["kind"], row["status"], row["mime"], row["size"]) == (RecordKind.RESOURCE, 0, "text/dns", 3)


def test_a_body_beyond_the_limit_is_cut(write):
    capture = read_arc_capture(write(page(1, b"x" * 5000)), 0, max_body=10)
    assert (capture.raw_body, capture.truncated) == (b"x" * 10, "length")


def test_dates(write):
    dates = [b"20080430204826", b"200804302048", b"19700101000000", b"99991231235959", b"null", b"20081330000000"]
    rows, report, told = index(write(FIRST + b"".join(page(n, date=date) for n, date in enumerate(dates))))
    assert numbers(rows) == [0, 1]
    assert report.skipped == {"filedesc": 1, OUT_OF_RANGE: 2}
    assert len(told) == 2


@pytest.mark.parametrize("name", ["example.arc", "example.arc.gz"])
def test_warcio_sees_the_same(name):
    with (DATA / name).open("rb") as file:
        iterator = ArchiveIterator(file)
        seen = [
            (r.rec_headers.get_header("uri"), iterator.get_record_offset(), iterator.get_record_length())
            for r in iterator
            if r.rec_type == "response"
        ]
    rows, report, _ = index(DATA / name)
    assert [(row["url"], row["offset"], row["length"]) for row in rows] == seen
    assert report.bad == 0


def test_a_bad_file_gives_what_is_good_in_it():
    rows, report, _ = index(DATA / "bad.arc")
    assert [(row["url"], row["offset"]) for row in rows] == [("http://example.com/", 202)]
    assert report.bad == 2  # lengths of -1 with a date of 18 digits, and of "abc"


@pytest.mark.parametrize("length", [b"-5", b"abc", b"9" * 40, b"3", b"150", b"400000"])
def test_wrong_lengths_cost_at_most_their_record(write, length):
    for data in packings(FIRST, page(1), page(2, length=length), page(3), page(4)):
        rows, report, _ = index(write(data))
        assert {1, 3, 4} <= set(numbers(rows))
        assert len(rows) == len(set(numbers(rows)))
        if data.startswith(b"filedesc"):
            assert report.bad >= 1


def test_garbage_between_records(write):
    for data in (
        FIRST + page(1) + b"garbage\nof two lines\n" + page(2),
        b"".join([gzip.compress(FIRST), gzip.compress(page(1)), b"garbage", gzip.compress(page(2))]),
    ):
        path = write(data)
        rows, _, [told] = index(path)
        assert numbers(rows) == [1, 2]
        assert str(path) in str(told)
        with pytest.raises(InputError):
            list(index_arc(path, ReadReport(strict=True)))


def test_one_gzip_stream_is_read_in_order_but_not_by_place(write):
    rows, _, [told] = index(write(gzip.compress(FIRST + b"".join(page(n, b"x" * 90_000) for n in range(4)))))
    assert numbers(rows) == list(range(4))
    assert "cannot be read alone" in str(told)
    assert {row["offset"] for row in rows} == {NO_SIZE}


@pytest.mark.parametrize("cut", [3, 9, 30, 90])
def test_a_cut_file_keeps_what_is_before_the_cut(write, cut):
    for data in packings(FIRST, page(1), page(2), page(3, b"x" * 200)):
        rows, _, _ = index(write(data[:-cut]))
        assert numbers(rows)[:2] == [1, 2]


@pytest.mark.parametrize("data", [b"", b"x", b"\x1f\x8b\x08", b"x" * 100_000])
def test_what_is_no_archive_is_told(write, data):
    rows, report, _ = index(write(data))
    assert (rows, report.bad) == ([], 1)


MEMORY = """
import resource, sys
from pathlib import Path
from recrawl.formats.warc.arc import index_arc
from recrawl.formats.columnar.capture_batches import ReadReport
list(index_arc(Path(sys.argv[2]), ReadReport()))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = ReadReport()
rows = sum(batch.num_rows for batch in index_arc(Path(sys.argv[1]), report))
print(rows, report.bad, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize(
    ("start", "rows", "bad"),
    [
        (b"http://example.org/1 192.0.2.7 20080430204826 text/plain 314572800\n", 2, 0),
        (b"http://example.org/", 1, 1),
    ],
    ids=["body", "line"],
)
def test_bombs_do_not_fill_the_memory(tmp_path, start, rows, bad):
    pytest.importorskip("resource", reason="this system does not tell how much memory a process took")
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    with (tmp_path / "bomb").open("wb") as file:
        file.write(packer.compress(start))
        for _ in range(300):
            file.write(packer.compress(b"a" * (1 << 20)))
        file.write(packer.compress(b"\n") + packer.flush() + gzip.compress(page(2)))
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "bomb"), str(DATA / "example.arc.gz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found, told, megabytes = map(int, done.stdout.split())
    assert (found, told) == (rows, bad)
    assert megabytes < 60


WHOLE = [FIRST, *(page(n, bytes([n]) * (40 * n)) for n in range(6))]
MEMBERS = [gzip.compress(part, mtime=0) for part in WHOLE]
in_a_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)


@in_a_folder
@given(
    parts=st.sampled_from([WHOLE, MEMBERS]),
    where=st.floats(0, 1, exclude_max=True),
    cut=st.integers(0, 60),
    put=st.binary(max_size=60),
)
@example(parts=MEMBERS, where=0.5, cut=0, put=b"\x1f\x8b\x08")
def test_no_record_before_the_damage_is_lost(tmp_path, parts, where, cut, put):
    data = b"".join(parts)
    place = int(where * len(data))
    path = tmp_path / "fuzzed"
    path.write_bytes(data[:place] + put + data[place + cut :])
    rows, _, _ = index(path)
    whole_before = max(sum(end <= place for end in accumulate(map(len, parts))) - 1, 0)
    assert numbers(rows[:whole_before]) == list(range(whole_before))
    for number, row in enumerate(rows):
        if row["offset"] == NO_SIZE:
            continue
        try:
            assert read_arc_capture(path, row["offset"]).url == row["url"]
        except InputError:
            assert (number >= whole_before, row["status"]) == (True, 0)


@in_a_folder
@given(
    data=st.sampled_from([path.read_bytes() for path in sorted(DATA.glob("*.arc*"))]) | st.binary(max_size=300),
    where=st.floats(0, 1, exclude_max=True),
    put=st.binary(max_size=30),
)
@example(data=b"\n", where=0.0, put=b"")
def test_mutated_files_never_crash(tmp_path, data, where, put):
    place = int(where * len(data))
    path = tmp_path / "fuzzed"
    path.write_bytes(data[:place] + put + data[place + len(put) :])
    rows, report, told = index(path)
    assert report.bad == len(told)
    assert rows or told or report.skipped
    assert all(error.source == str(path) for error in told)
