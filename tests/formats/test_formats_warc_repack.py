"""A WARC file packed anew has the same records, each to be read alone."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from recrawl.formats.columnar.capture_batches import NO_SIZE, ReadReport
from recrawl.formats.warc.warc_reader import index_warc
from recrawl.transfer.wacz_export import is_common, repack

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "formats" / "warcio"


def rows(path):
    places = ("file", "offset", "length")
    found = [row for batch in index_warc(path, ReadReport()) for row in batch.to_pylist()]
    return [{name: value for name, value in row.items() if name not in places} for row in found], found


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.warc*")), ids=lambda path: path.name)
def test_captures_stay_what_they_are(path, tmp_path):
    target = tmp_path / "new.warc.gz"
    with target.open("wb") as file:
        count = repack(path, file, ReadReport())
    before, _ = rows(path)
    after, placed = rows(target)
    assert after == before
    assert count >= len(after) > 0
    assert all(row["offset"] != NO_SIZE for row in placed)
    assert is_common(target)


def test_not_a_byte_of_a_sound_file_changes(tmp_path):
    target = tmp_path / "new.warc.gz"
    with target.open("wb") as file:
        repack(SAMPLES / "example.warc", file, ReadReport(strict=True))
    assert gzip.decompress(target.read_bytes()) == (SAMPLES / "example.warc").read_bytes()


def test_damage_is_told(tmp_path):
    told = []
    with (tmp_path / "new.warc.gz").open("wb") as file:
        repack(SAMPLES / "example-trunc.warc", file, ReadReport(on_bad=told.append))
    assert len(told) == 1


@pytest.mark.parametrize(
    ("name", "common"),
    [("example.warc", True), ("example.warc.gz", True), ("example-bad-non-chunked.warc.gz", False)],
)
def test_a_long_stream_of_gzip_is_not_common(name, common):
    assert is_common(SAMPLES / name) is common


def test_a_file_of_one_record_is_common(tmp_path):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(b"WARC/1.1\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n"))
    assert is_common(path)
