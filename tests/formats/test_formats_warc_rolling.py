"""WARC files roll at their size, and what a killed process left open is finished by the next writer."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from recrawl.errors import DiskFullError
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.warc.warc_check import repair
from recrawl.formats.warc.warc_reader import index_warc, read_capture
from recrawl.formats.warc.warc_records import payload_sha1, records_of, written
from recrawl.formats.warc.warc_writer import ROLL_SIZE, WarcInfo, WarcWriter
from recrawl.model import Capture
from recrawl.time import VirtualClock

INFO = WarcInfo(prefix="ROLL", host="crawler", port=7)
START = 1_700_000_000.25
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"


def page(number, size=1000):
    body = (b"%08d" % number) + os.urandom(size)
    return Capture(f"http://example.org/{number}", START + number, 200, HEAD, body, b"GET / HTTP/1.1\r\n\r\n")


def urls(path):
    report = ReadReport(strict=True)
    return [url for batch in index_warc(path, report) for url in batch.column("url").to_pylist()]


def kinds(path):
    with path.open("rb") as file:
        return [record.rec_type for record in ArchiveIterator(file)]


def test_a_gigabyte_is_the_usual_size():
    assert ROLL_SIZE == 1_000_000_000


def test_files_roll_and_every_place_is_where_it_says(tmp_path):
    captures = [page(number) for number in range(20)]
    with WarcWriter(tmp_path, VirtualClock(START), INFO, roll_size=4000) as writer:
        places = [writer.write(capture) for capture in captures]
    files = sorted(tmp_path.iterdir())
    assert len(files) > 4
    assert [path.name.split("-")[2] for path in files] == [f"{serial:05}" for serial in range(len(files))]
    assert all(re.fullmatch(r"ROLL-20231114221320250-\d{5}-\d+~crawler~7\.warc\.gz", path.name) for path in files)
    assert all(kinds(path)[0] == "warcinfo" for path in files)
    assert [url for path in files for url in urls(path)] == [capture.url for capture in captures]
    for place, capture in zip(places, captures, strict=True):
        assert read_capture(tmp_path / place.file, place.offset).raw_body == capture.raw_body
    sizes = [path.stat().st_size for path in files]
    assert all(4000 <= size < 4000 + 2500 for size in sizes[:-1])


@pytest.mark.parametrize(("at_once", "roll_size"), [(1, 4000), (3000, 4000), (1 << 20, 4000), (1 << 20, 1 << 20)])
def test_many_captures_are_written_as_if_one_by_one(tmp_path, monkeypatch, at_once, roll_size):
    monkeypatch.setattr("recrawl.formats.warc.warc_writer._AT_ONCE", at_once)
    captures = [page(number) for number in range(20)]
    records = [records_of(capture, *written([payload_sha1(capture)]), None, {})[1] for capture in captures]
    with WarcWriter(tmp_path / "many", VirtualClock(START), INFO, roll_size=roll_size) as many:
        goes = list(many.append(records))
    with WarcWriter(tmp_path / "single", VirtualClock(START), INFO, roll_size=roll_size) as single:
        alone = [single.write(capture) for capture in captures]
    places = [place for go in goes for place in go]
    assert [place.file for place in places] == [place.file for place in alone]
    for place, capture in zip(places, captures, strict=True):
        assert read_capture(tmp_path / "many" / place.file, place.offset).raw_body == capture.raw_body
    if roll_size == at_once:
        assert len(goes) == 1


def test_a_file_that_was_abandoned_is_left_to_the_next_start(tmp_path):
    with WarcWriter(tmp_path, VirtualClock(START), INFO) as writer:
        writer.write(page(1))
        writer.hold()
        writer.write(page(2))
        writer.abandon()
        writer.write(page(3))
        writer.sync()
    [closed] = tmp_path.glob("*.warc.gz")
    assert urls(closed) == [page(3).url]
    [path] = repair(tmp_path)
    assert urls(path) == [page(1).url, page(2).url]


def test_each_record_points_to_the_warcinfo_of_its_own_file(tmp_path):
    with WarcWriter(tmp_path, VirtualClock(START), INFO, roll_size=1) as writer:
        for number in range(3):
            writer.write(page(number))
    for path in tmp_path.iterdir():
        with path.open("rb") as file:
            headers = [record.rec_headers for record in ArchiveIterator(file)]
        assert headers[0].get_header("WARC-Filename") == path.name
        info = headers[0].get_header("WARC-Record-ID")
        assert {header.get_header("WARC-Warcinfo-ID") for header in headers[1:]} == {info}


def test_only_the_file_that_is_written_is_open(tmp_path):
    writer = WarcWriter(tmp_path, VirtualClock(START), INFO, roll_size=1)
    for number in range(3):
        place = writer.write(page(number))
        assert [path.name for path in tmp_path.glob("*.open")] == [place.file + ".open"]
    writer.close()
    assert len(list(tmp_path.glob("*.warc.gz"))) == 3


def test_a_revisit_may_refer_to_another_file(tmp_path):
    capture = page(1)
    with WarcWriter(tmp_path, VirtualClock(START), INFO, roll_size=1) as writer:
        first = writer.write(capture)
        second = writer.write(capture, revisit_of=first.ref)
    assert first.file != second.file
    assert second.ref == first.ref


def test_what_is_known_of_a_capture_is_written_beside_it(tmp_path):
    with WarcWriter(tmp_path, VirtualClock(START), INFO) as writer:
        writer.write(page(1), about={"via": "http://example.org/", "hopsFromSeed": "L"})
        with pytest.raises(ValueError, match="via"):
            writer.write(page(2), about={"via": "a\r\nb"})
    with writer.path.open("rb") as file:
        found = {record.rec_type: record.raw_stream.read() for record in ArchiveIterator(file, no_record_parse=True)}
    assert found["metadata"] == b"via: http://example.org/\r\nhopsFromSeed: L\r\nfetchTimeMs: 0\r\n"
    assert urls(writer.path) == ["http://example.org/1"]


ENDLESS = """
import itertools, os, sys
from pathlib import Path
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture
from recrawl.time import VirtualClock
head = b"HTTP/1.1 200 OK\\r\\n\\r\\n"
writer = WarcWriter(Path(sys.argv[1]), VirtualClock(1.7e9), roll_size=3_000_000)
for number in itertools.count():
    writer.write(Capture(f"http://example.org/{number}", 1.7e9, 200, head, os.urandom(200_000)))
    print(number, flush=True)
"""


def killed_writer(folder, captures):
    """A real process that writes, killed after it said that so many captures are written."""
    with subprocess.Popen([sys.executable, "-c", ENDLESS, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= captures:
                break
        process.send_signal(signal.SIGKILL)
        acknowledged = int(line)
        for line in process.stdout:  # what it said between the last look and its death
            acknowledged = int(line) if line.endswith("\n") else acknowledged
    return acknowledged


@pytest.mark.parametrize("captures", [0, 7, 20])
def test_a_kill_costs_nothing_that_was_acknowledged(tmp_path, captures):
    acknowledged = killed_writer(tmp_path, captures)
    assert len(list(tmp_path.glob("*.open"))) == 1
    with WarcWriter(tmp_path, VirtualClock(1.8e9), INFO):
        pass
    assert list(tmp_path.glob("*.open")) == []
    found = [url for path in tmp_path.glob("RECRAWL*") for url in urls(path)]
    assert {f"http://example.org/{number}" for number in range(acknowledged + 1)} <= set(found)
    assert len(found) == len(set(found)) <= acknowledged + 2


def test_a_file_that_is_written_is_left_alone(tmp_path):
    with WarcWriter(tmp_path, VirtualClock(START), INFO) as writer:
        writer.write(page(1))
        assert repair(tmp_path) == []
        with WarcWriter(tmp_path, VirtualClock(START), INFO) as second:  # starts with a repair
            second.write(page(2))
        writer.write(page(3))
    assert urls(writer.path) == ["http://example.org/1", "http://example.org/3"]
    assert urls(second.path) == ["http://example.org/2"]


def abandoned(folder, data):
    path = folder / "LEFT-00000.warc.gz.open"
    path.write_bytes(data)
    return path


def whole_file(folder, count):
    with WarcWriter(folder, VirtualClock(START), INFO) as writer:
        places = [writer.write(page(number)) for number in range(count)]
    data = writer.path.read_bytes()
    writer.path.unlink()
    return data, places


fixture_is_only_a_folder = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)


@fixture_is_only_a_folder
@given(keep=st.floats(0, 1), tail=st.sampled_from([b"", b"\0" * 5000, b"\x1f\x8b\x08\x00", b"noise"]))
def test_a_cut_anywhere_leaves_whole_records(tmp_path, keep, tail):
    data, places = whole_file(tmp_path, 4)
    cut = int(keep * len(data))
    abandoned(tmp_path, data[:cut] + tail)
    finished = repair(tmp_path)
    assert list(tmp_path.glob("*.open")) == []
    whole = [number for number, place in enumerate(places) if place.offset + place.length <= cut]
    if finished:
        [path] = finished
        assert urls(path) == [f"http://example.org/{number}" for number in whole]
        assert data.startswith(path.read_bytes())
        path.unlink()
    else:
        assert whole == []


def test_damage_in_the_middle_is_no_reason_to_cut_what_follows(tmp_path):
    data, places = whole_file(tmp_path, 4)
    broken = bytearray(data)
    broken[places[1].offset + 100] ^= 0xFF
    abandoned(tmp_path, bytes(broken) + b"\x1f\x8b\x08half a record")
    [path] = repair(tmp_path)
    assert path.read_bytes() == bytes(broken)


def test_a_name_that_is_taken_is_not_overwritten(tmp_path):
    data, _ = whole_file(tmp_path, 1)
    left = abandoned(tmp_path, data)
    taken = tmp_path / left.name.removesuffix(".open")
    taken.write_bytes(b"mine")
    assert repair(tmp_path) == []
    assert taken.read_bytes() == b"mine"
    assert left.read_bytes() == data


def test_a_folder_without_files_needs_no_repair(tmp_path):
    assert repair(tmp_path) == []
    assert repair(Path(tmp_path / "nothing")) == []


NO_ROOM = """
import resource, sys
from pathlib import Path
from recrawl.errors import DiskFullError
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture
from recrawl.time import VirtualClock
head = b"HTTP/1.1 200 OK\\r\\n\\r\\n"
with WarcWriter(Path(sys.argv[1]), VirtualClock(1.7e9), roll_size=1) as writer:
    writer.write(Capture("http://example.org/1", 1.7e9, 200, head, b"first"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    try:
        writer.write(Capture("http://example.org/2", 1.7e9, 200, head, b"second"))
    except DiskFullError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    writer.write(Capture("http://example.org/3", 1.7e9, 200, head, b"third"))
"""


def test_a_disk_that_is_full_when_a_file_rolls_can_be_waited_out(tmp_path):
    pytest.importorskip("resource", reason="file size limits stand in for a full disk, and this system has none")
    done = subprocess.run([sys.executable, "-c", NO_ROOM, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "disk is full" in done.stdout
    found = [urls(path) for path in sorted(tmp_path.iterdir())]
    assert found == [["http://example.org/1"], ["http://example.org/3"]]


def test_a_full_file_that_could_not_be_followed_by_another_is_named_once(tmp_path, monkeypatch):
    """No room for the next file, twice, while what is in the full one is not acknowledged yet."""
    left, begin = [2], WarcWriter._begin
    with WarcWriter(tmp_path, VirtualClock(START), INFO, roll_size=1000) as writer:

        def failing(writer):
            if left[0]:
                left[0] -= 1
                raise DiskFullError("full")
            begin(writer)

        monkeypatch.setattr(WarcWriter, "_begin", failing)
        writer.hold()
        writer.write(page(1))
        for _ in range(2):
            with pytest.raises(DiskFullError):
                writer.write(page(2))
        writer.write(page(2))
        writer.sync()
        writer.release()
        assert len(list(tmp_path.glob("*.warc.gz"))) == 1
    assert sorted(url for path in tmp_path.iterdir() for url in urls(path)) == [page(1).url, page(2).url]


def test_a_disk_without_room_for_what_it_took_is_told_as_full(tmp_path, monkeypatch):
    def full(_file):
        raise OSError(errno.ENOSPC, "no room")

    with WarcWriter(tmp_path, VirtualClock(START), INFO) as writer:
        writer.write(page(1))
        with monkeypatch.context() as patch:
            patch.setattr("recrawl.formats.warc.warc_writer._fdatasync", full)
            with pytest.raises(DiskFullError, match="disk is full"):
                writer.sync()
        writer.sync()
