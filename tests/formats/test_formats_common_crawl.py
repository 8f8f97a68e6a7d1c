"""Common Crawl's columnar index, written and read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import ReadReport, RecordKind, schema
from recrawl.formats.columnar.common_crawl import COLUMNS, index_schema, read_common_crawl, write_common_crawl

CAPTURE = {
    "url": "https://www.example.co.uk:8080/a/b?x=1",
    "key": "uk,co,example:8080)/a/b?x=1",
    "time": 1_700_000_000.123456,
    "kind": 0,
    "status": 200,
    "mime": "text/html",
    "digest": "ABC",
    "size": 1000,
    "file": "a.warc.gz",
    "offset": 5_000_000_000,
    "length": 300,
}
OTHERS = [
    {**CAPTURE, "kind": int(RecordKind.REVISIT_IDENTICAL), "mime": "warc/revisit", "time": 1_700_000_100.0},
    {**CAPTURE, "url": "http://127.0.0.1/robots.txt", "key": "1,0,0,127)/robots.txt", "size": -1},
    {
        **CAPTURE,
        "kind": int(RecordKind.FAILED),
        "status": -2,
        "file": "",
        "offset": -1,
        "length": -1,
        "digest": "",
        "mime": "",
    },
]


def batch(*rows):
    return pa.RecordBatch.from_pylist(list(rows), schema())


def read(path, report: ReadReport | None = None) -> list[dict[str, object]]:
    batches = list(read_common_crawl(path, report or ReadReport(strict=True)))
    assert all(one.schema == schema() for one in batches)
    return [row for one in batches for row in one.to_pylist()]


def test_there_are_32_columns_and_two_of_ours():
    assert len(COLUMNS) == 32
    assert index_schema().names == [*COLUMNS, "record_kind", "payload_size"]


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "index.parquet"
    assert write_common_crawl([batch(CAPTURE), batch(*OTHERS)], path, "TEST-2024") == 4
    assert read(path) == [CAPTURE, *OTHERS]
    row = pq.read_table(path).to_pylist()[0]
    assert {name: row[name] for name in row if name.startswith("url_") and row[name] is not None} == {
        "url_surtkey": "uk,co,example:8080)/a/b?x=1",
        "url_host_name": "www.example.co.uk",
        "url_host_tld": "uk",
        "url_host_2nd_last_part": "co",
        "url_host_3rd_last_part": "example",
        "url_host_4th_last_part": "www",
        "url_host_name_reversed": "uk.co.example.www",
        "url_protocol": "https",
        "url_port": 8080,
        "url_path": "/a/b",
        "url_query": "x=1",
    }
    assert (row["crawl"], row["subset"], row["record_kind"]) == ("TEST-2024", "warc", "response")


def test_a_partitioned_table_is_one_table(tmp_path):
    assert write_common_crawl([batch(CAPTURE, *OTHERS)], tmp_path / "table", "TEST-2024", partitioned=True) == 4
    files = sorted((tmp_path / "table").rglob("*"))
    parts = [file for file in files if file.is_file()]
    assert [str(file.relative_to(tmp_path / "table")) for file in parts] == [
        f"crawl=TEST-2024/subset={subset}/part-00000.parquet" for subset in ("crawldiagnostics", "robotstxt", "warc")
    ]
    table = pyarrow.dataset.dataset(tmp_path / "table", partitioning="hive").to_table()
    assert table.num_rows == 4
    assert {*COLUMNS} <= {*table.column_names}
    rows = [row for file in parts for row in read(file)]
    assert sorted(rows, key=str) == sorted([CAPTURE, *OTHERS], key=str)


def test_a_write_that_fails_leaves_nothing(tmp_path):
    def batches():
        yield batch(CAPTURE)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_common_crawl(batches(), tmp_path / "x.parquet", "C")
    assert list(tmp_path.iterdir()) == []


def common_crawl(path, count=10, **changes):
    """A table as Common Crawl's own: 32-bit numbers, milliseconds, no columns of ours."""
    table = {
        "url_surtkey": pa.array(["org,a)/"] * count),
        "url": pa.array([f"http://a.org/{number}" for number in range(count)]).dictionary_encode(),
        "fetch_time": pa.array(np.arange(count) * 1000 + 1_600_000_000_000).cast(pa.timestamp("ms")),
        "fetch_status": pa.array([200] * count, pa.int16()),
        "content_digest": pa.array(["ABC"] * count),
        "content_mime_type": pa.array(["text/html"] * (count - 1) + [None]),
        "warc_filename": pa.array(["a.warc.gz"] * count),
        "warc_record_offset": pa.array(range(count), pa.int32()),
        "warc_record_length": pa.array([7] * count, pa.int32()),
        "content_languages": pa.array(["eng"] * count),
        **changes,
    }
    pq.write_table(
        pa.table({name: column for name, column in table.items() if column is not None}), path, row_group_size=4
    )
    return path


def test_a_table_as_common_crawl_writes_it(tmp_path):
    found = read(common_crawl(tmp_path / "cc.parquet"))
    assert [row["time"] for row in found] == [1_600_000_000.0 + number for number in range(10)]
    assert (found[3]["url"], found[3]["offset"], found[3]["length"], found[3]["size"]) == ("http://a.org/3", 3, 7, -1)
    assert found[-1]["mime"] == ""


def test_columns_may_be_missing_but_not_url_and_time(tmp_path):
    found = read(common_crawl(tmp_path / "cc.parquet", warc_filename=None, fetch_status=None))
    assert (found[0]["file"], found[0]["status"]) == ("", 0)
    for name in ("url", "fetch_time"):
        with pytest.raises(InputError, match=name):
            read(common_crawl(tmp_path / "cc.parquet", **{name: None}))


def test_kinds_follow_from_status_and_media_type(tmp_path):
    path = common_crawl(
        tmp_path / "cc.parquet", 3,
        fetch_status=pa.array([304, 200, 200], pa.int16()),
        content_mime_type=pa.array([None, "warc/revisit", "text/html"]),
    )  # fmt: skip
    assert [row["kind"] for row in read(path)] == [2, 1, 0]


def test_rows_that_are_no_captures(tmp_path):
    urls = pa.array(["http://a.org/", "ftp://a.org/", None, "http://a.org/", "HTTPS://a.org/"])
    times = pa.array([1_600_000_000, 1_600_000_000, 1_600_000_000, 0, 1_600_000_000]).cast(pa.timestamp("s"))
    report = ReadReport()
    found = read(common_crawl(tmp_path / "cc.parquet", 5, url=urls, fetch_time=times), report)
    assert [row["url"] for row in found] == ["http://a.org/", "HTTPS://a.org/"]
    assert (report.bad, report.skipped) == (1, {"not http or https": 1, "dated before 1990": 1})


@given(st.integers(0, 5_000), st.integers(0, 255))
def test_damage_never_ends_in_a_crash(tmp_path_factory, place, byte):
    path = tmp_path_factory.mktemp("cc") / "cc.parquet"
    data = bytearray(common_crawl(path).read_bytes())
    data[place % len(data)] = byte
    path.write_bytes(data)
    report = ReadReport()
    found, refused = [], str(path)
    try:
        found = read(path, report)
    except InputError as error:  # as a whole
        refused = str(error)
    assert all(row["url"] for row in found)
    assert str(path) in refused
