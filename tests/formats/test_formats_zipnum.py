"""ZipNum clusters: blocks by their index, missing parts, damage."""

from __future__ import annotations

import gzip
import io
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.cdx.cdx_lines import read_cdx
from recrawl.formats.cdx.cdxj import ZipNumBlock, read_entries, read_zipnum, write_zipnum
from recrawl.formats.columnar.capture_batches import ReadReport

LINES = [
    b"org,a)/%05d 20200102030405 http://a.org/%d text/html 200 ABC - - 11 22 a.warc.gz\n" % (n, n) for n in range(700)
]


@pytest.fixture
def cluster(tmp_path):
    with (tmp_path / "c.cdx.gz").open("wb") as data, (tmp_path / "c.idx").open("wb") as index:
        assert write_zipnum(LINES, data, index, "c", per_block=100) == 7
    return tmp_path / "c.idx"


def urls(index, report) -> list[str]:
    return [url for batch in read_zipnum(index, report) for url in batch.column("url").to_pylist()]


def test_a_cluster_is_written_and_read(cluster):
    assert urls(cluster, ReadReport(strict=True)) == [f"http://a.org/{number}" for number in range(700)]
    entries = list(read_entries(io.BytesIO(cluster.read_bytes()), "c.idx", ReadReport(strict=True)))
    assert [entry.first for entry in entries] == [b" ".join(line.split()[:2]).decode() for line in LINES[::100]]
    data = cluster.with_name("c.cdx.gz").read_bytes()
    for number, entry in enumerate(entries):
        block = gzip.decompress(data[entry.offset : entry.offset + entry.length])
        assert block == b"".join(LINES[100 * number : 100 * number + 100])


def test_lines_of_json_and_a_file_that_says_where_parts_are(tmp_path):
    lines = [b'org,a)/ 20200102030405 {"url": "http://a.org/%d"}\n' % number for number in range(5)]
    (tmp_path / "elsewhere").mkdir()
    with (tmp_path / "elsewhere/x").open("wb") as data, (tmp_path / "c.idx").open("wb") as index:
        write_zipnum(lines, data, index, "part-0", per_block=2)
    (tmp_path / "c.loc").write_text("part-0\telsewhere/x\n")
    assert urls(tmp_path / "c.idx", ReadReport(strict=True)) == [f"http://a.org/{number}" for number in range(5)]


def test_a_damaged_block_is_told_and_the_others_come(cluster):
    second = list(read_entries(io.BytesIO(cluster.read_bytes()), "c.idx", ReadReport(strict=True)))[1]
    part = cluster.with_name("c.cdx.gz")
    data = bytearray(part.read_bytes())
    data[second.offset + 20] ^= 0xFF
    part.write_bytes(data)
    told: list[InputError] = []
    found = urls(cluster, ReadReport(on_bad=told.append))
    assert len(found) == 600
    assert [error.position for error in told] == [second.offset]


def test_missing_parts_and_nonsense_are_told(cluster):
    with cluster.open("ab") as index:
        index.write(
            b"org,z)/ 20200102030405\tnowhere\t0\t10\t8\nno tabs\norg,z)/ 2020\t../c\t0\t10\nx\tc\t9999999\t10\t1\n"
        )
    report = ReadReport()
    assert len(urls(cluster, report)) == 700
    assert report.bad == 4  # two parts that are not there, a line that is none, a block behind the end
    assert report.skipped == {"in a part that is missing": 2}
    with pytest.raises(InputError):
        urls(cluster, ReadReport(strict=True))


def test_an_empty_index_names_no_url(tmp_path):
    (tmp_path / "e.idx").write_bytes(b"\n")
    assert urls(tmp_path / "e.idx", ReadReport(strict=True)) == []


@given(st.binary(max_size=200) | st.text(alphabet="ab \t019\n", max_size=60).map(str.encode))
def test_no_bytes_can_stop_the_small_index(data):
    for entry in read_entries(io.BytesIO(data), "x", ReadReport()):
        assert isinstance(entry, ZipNumBlock)


@pytest.mark.big
def test_the_real_cluster_has_the_same_lines_by_index_and_alone(data_folder, tmp_path):
    folder = data_folder / "formats/cdx/webrecorder__pywb"
    for name in ("zipnum-sample.idx", "zipnum-sample.cdx.gz", "zipnum-bad.idx"):
        shutil.copyfile(folder / name, tmp_path / name)
    data = (tmp_path / "zipnum-sample.cdx.gz").read_bytes()
    expected = 0
    for line in (tmp_path / "zipnum-sample.idx").read_text().splitlines():
        _, _, offset, length, _ = line.split("\t")
        expected += len(gzip.decompress(data[int(offset) : int(offset) + int(length)]).split(b"\n"))
    report = ReadReport()
    by_index = urls(tmp_path / "zipnum-sample.idx", report)
    assert len(by_index) == expected
    assert (report.bad, report.skipped) == (0, {})
    alone = [url for batch in read_cdx(io.BytesIO(data), "z", report) for url in batch.column("url").to_pylist()]
    assert alone == by_index
    assert report.bad == 0
    assert urls(tmp_path / "zipnum-bad.idx", report) == []
    assert report.bad == 3
