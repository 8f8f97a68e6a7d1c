"""Answers of CDX servers in all their forms."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.cdx.cdx_responses import CdxResponse, read_answer
from recrawl.formats.columnar.capture_batches import ReadReport

SAMPLES = Path(__file__).parents[1] / "data" / "formats"
NAMES = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
ROWS = [
    ["org,a)/", "20200102030405", "http://a.org/", "text/html", "200", "ABC", "11"],
    ["org,a)/", "20200103030405", "http://a.org/", "warc/revisit", "-", "ABC", "5"],
    ["org,a)/b", "20200103030405", "http://a.org/b", "text/html", "404", "DEF", "7"],
]


def read(data: bytes, report: ReadReport | None = None) -> tuple[list[dict[str, object]], str]:
    answer = CdxResponse(io.BytesIO(data), "answer", report or ReadReport(strict=True))
    return [row for batch in answer for row in batch.to_pylist()], answer.resume_key


def as_archive(rows, key="", line_end="\n") -> bytes:
    """As the Internet Archive writes it."""
    texts = [json.dumps(row, separators=(",", ":")) for row in [NAMES, *rows, *([[], [key]] if key else [])]]
    return f"[{f',{line_end}'.join(texts)}]{line_end}".encode()


def as_objects(rows) -> bytes:
    names = ["urlkey", "timestamp", "url", "mime", "status", "digest", "length"]
    return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows).encode()


def as_text(rows, key="") -> bytes:
    return ("".join(" ".join(row) + "\n" for row in rows) + (f"\n{key}\n" if key else "")).encode()


@pytest.mark.parametrize("line_end", ["\n", "", "\r\n"])
@pytest.mark.parametrize("key", ["", "org%2Ca%29%2Fc+20200104"])
def test_arrays_with_and_without_a_key_to_go_on(line_end, key):
    found, resume = read(as_archive(ROWS, key, line_end))
    assert resume == key
    assert [(row["status"], row["kind"], row["length"], row["digest"]) for row in found] == [
        (200, 0, 11, "ABC"),
        (0, 1, 5, "ABC"),
        (404, 0, 7, "DEF"),
    ]


def test_all_forms_say_the_same():
    expected, _ = read(as_archive(ROWS))
    assert read(as_objects(ROWS)) == (expected, "")
    assert read(as_text(ROWS)) == (expected, "")
    assert read(as_text(ROWS, "next-key")) == (expected, "next-key")
    assert read(json.dumps([NAMES, *ROWS], indent=None).encode()) == (expected, "")


@pytest.mark.parametrize("data", [b"", b"\n", b"[]", b"[]\n", as_archive([])])
def test_nothing_is_an_answer_too(data):
    assert read(data) == ([], "")


def test_messages_of_the_server_are_counted():
    report = ReadReport(strict=True)
    assert read(b'{"message": "No Captures found for: a.org"}\n', report) == ([], "")
    assert read(b'[{"id": "CC-MAIN-2025-33", "cdx-api": "https://x.org"}]', ReadReport())[0] == []
    assert report.skipped == {"a message of the server": 1}


def test_bad_rows_are_told_with_their_place():
    told: list[InputError] = []
    data = as_archive([ROWS[0], ROWS[1][:-1], ["k", "2020", "http://a.org/", "", "", "", ""], ROWS[2]]).replace(
        b"DEF", b'"'
    )
    found, _ = read(data, ReadReport(on_bad=told.append))
    assert len(found) == 1
    assert len(told) == 3
    assert {data[error.position :].split(b'","')[1] for error in told} == {b"20200103030405", b"2020"}


@pytest.mark.parametrize("line_end", ["\n", ""])
def test_short_rows_are_told_with_their_place_and_the_rest_goes_on(line_end):
    told: list[InputError] = []
    data = as_archive([ROWS[0], [], ROWS[1], ["alone"], ROWS[2], ROWS[2][:2]], "key", line_end)
    found, resume = read(data, ReadReport(on_bad=told.append))
    assert (len(found), resume) == (3, "key")
    assert [error.what.rpartition(": ")[2] for error in told] == [
        "the row is empty",
        "the row has 1 values, not 7",
        "the row has 2 values, not 7",
    ]
    if line_end:
        assert [data[error.position :].split(b",\n")[0] for error in told] == [
            b"[]",
            b'["alone"]',
            b'["org,a)/b","20200103030405"]',
        ]


def test_recorded_answers():
    for name, count in (("test_basics", 10), ("test_multi_ia", 10)):
        report = ReadReport()
        with (SAMPLES / "cdx_toolkit" / f"{name}.jsonl").open("rb") as file:
            found = [row for batch in read_answer(file, name, report) for row in batch.to_pylist()]
        assert (len(found), report.bad) == (count, 0)
        assert {row["key"].partition("/")[0] for row in found} == {"org,commoncrawl)"}


@pytest.mark.big
def test_every_recorded_answer_has_as_many_captures_as_rows(data_folder):
    files = sorted((data_folder / "formats/cdx_api_responses").rglob("*.jsonl"))
    assert len(files) == 4
    for path in files:
        expected = 0
        for line in path.read_text("utf-8").splitlines():
            text = json.loads(line)["response_text"]
            if text.startswith("[["):
                expected += sum(len(row) > 1 for row in json.loads(text)) - 1
            elif not text.startswith("["):
                expected += sum('"timestamp"' in one for one in text.splitlines())
        report = ReadReport()
        with path.open("rb") as file:
            assert sum(batch.num_rows for batch in read_answer(file, path.name, report)) == expected, path
        assert report.bad == 0


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=8),
    max_leaves=20,
)


@given(
    st.binary(max_size=200)
    | values.map(lambda value: json.dumps(value).encode())
    | st.lists(values, max_size=5).map(as_archive)
    | st.text(alphabet='[]{}",\n a1', max_size=40).map(str.encode)
)
def test_no_bytes_can_stop_it(data):
    told: list[InputError] = []
    report = ReadReport(on_bad=told.append)
    with suppress(InputError):  # it is refused as a whole
        found, _ = read(data, report)
        assert all(row["url"] for row in found)
    assert report.bad == len(told)
    assert all(0 <= error.position <= len(data) for error in told)
