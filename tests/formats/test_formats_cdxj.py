"""CDXJ and lines of JSON: cut by shape, or parsed one by one; the same either way."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.cdx import cdxj
from recrawl.formats.cdx.cdxj import cut_lines, parse_line, read_cdxj, write_cdxj
from recrawl.formats.cdx.line_blocks import LineBlock, clean
from recrawl.formats.columnar.capture_batches import ReadReport, RecordKind, schema

SAMPLES = Path(__file__).parents[1] / "data" / "formats"
PYWB = (
    b'org,a)/ 20200102030405 {"url": "http://a.org/", "mime": "text/html", "status": "200", "digest": "ABC", '
    b'"length": "11", "offset": "22", "filename": "a.warc.gz"}\n'
)
NUMBERS = (
    b'org,a)/ 20200102030405 {"url": "http://a.org/", "digest": "sha1:ABC", "mime": "text/html", '
    b'"filename": "a.warc.gz", "offset": 22, "length": 11, "status": 200}\n'
)
SERVER = (
    b'{"urlkey": "org,a)/", "timestamp": "20200102030405", "url": "http://a.org/", "mime": "text/html", '
    b'"mime-detected": "text/html", "status": "200", "digest": "ABC", "length": "11", "offset": "22", '
    b'"filename": "a.warc.gz", "languages": "eng", "encoding": "UTF-8"}\n'
)


def rows(data: bytes, report: ReadReport | None = None) -> list[dict[str, object]]:
    batches = list(read_cdxj(io.BytesIO(data), "x.cdxj", report or ReadReport(strict=True)))
    assert all(batch.schema == schema() for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "line", [PYWB, NUMBERS, SERVER, PYWB.replace(b": ", b":").replace(b", ", b","), NUMBERS.replace(b", ", b",")]
)
def test_all_dialects_say_the_same(line):
    assert rows(line) == [
        {
            "url": "http://a.org/",
            "key": "org,a)/",
            "time": datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp(),
            "kind": RecordKind.RESPONSE,
            "status": 200,
            "mime": "text/html",
            "digest": "ABC",
            "size": -1,
            "file": "a.warc.gz",
            "offset": 22,
            "length": 11,
        }
    ]


def test_regular_lines_are_never_parsed_one_by_one(monkeypatch):
    def never(line):
        raise AssertionError(line)

    monkeypatch.setattr(cdxj, "parse_line", never)
    revisit = PYWB.replace(b'"status": "200", ', b"").replace(b"text/html", b"warc/revisit")
    assert len(rows(b"".join([PYWB, revisit, NUMBERS, SERVER] * 100))) == 400


def test_times_may_have_fractions():
    assert [row["time"] % 1 for row in rows(PYWB.replace(b"0405 ", b"0405678 "))] == [pytest.approx(0.678, abs=1e-6)]


def test_revisits_may_lack_a_status():
    revisit = PYWB.replace(b'"status": "200", ', b"").replace(b"text/html", b"warc/revisit")
    (row,) = rows(revisit)
    assert (row["kind"], row["status"]) == (RecordKind.REVISIT_IDENTICAL, 0)
    (row,) = rows(PYWB.replace(b'"text/html", "status": "200"', b'"warc/revisit", "status": "304"'))
    assert (row["kind"], row["status"]) == (RecordKind.REVISIT_NOT_MODIFIED, 304)


@pytest.mark.parametrize(
    "bad",
    [
        b"org,a)/ 20200102030405\n",
        b"20200102030405 {}\n",
        b'org,a)/ 20200102030405 {"url": "http://a.org/"\n',
        b'org,a)/ 20200102030405 {"url": 5}\n',
        b'org,a)/ 20200102030405 {"url": "\\ud800"}\n',
        b'org,a)/ 20200102030405 {"url": "http://a.org/", "offset": 1.5}\n',
        b'org,a)/ 20200102030405 {"url": "http://a.org/", "offset": 007}\n',
        b'org,a)/ 20200102030405 {"url": "http://a.org/", "offset": -7}\n',
        b'org,a)/ 20200102030405 {"url": "http://a.org/", "status": "ok"}\n',
        b'org,a)/ 20200102030405 {"url": "http://a\t.org/"}\n',
        b'org,a)/ 20200232030405 {"url": "http://a.org/"}\n',
        b"org,a)/ 20200102030405 " + b'{"x":' * 100_000 + b"\n",
        b"\xff\xfe\x00\n",
    ],
)
def test_a_bad_line_is_told_with_its_place_and_the_rest_goes_on(bad):
    told: list[InputError] = []
    report = ReadReport(on_bad=told.append)
    assert len(rows(PYWB + b"\r\n" + bad + PYWB, report)) == 2
    assert (report.bad, told[0].position) == (1, len(PYWB) + 2)
    with pytest.raises(InputError):
        rows(bad)


def test_escapes_nulls_nested_values_and_repeated_names():
    data = (
        b'org,a)/ 20200102030405 {"url": "http://a.org/\\u00e9\\"", "mime": null, "status": "200"}\n'
        b'org,a)/ 20200102030405 {"url": "http://a.org/1", "x": {"url": "no", "l": [1, "2"]}, "offset": "3"}\n'
        b'org,a)/ 20200102030405 {"url": "http://a.org/1", "url": "http://a.org/2", "b": true, "f": 1e5}\n'
        b'org,a)/ 20200102030405 {"urlkey": "other", "original": "http://a.org/3", "url": "http://a.org/4"}\n'
    )
    found = rows(data)
    assert [row["url"] for row in found] == ['http://a.org/é"', "http://a.org/1", "http://a.org/2", "http://a.org/3"]
    assert [row["offset"] for row in found] == [-1, 3, -1, -1]
    assert {row["key"] for row in found} == {"org,a)/"}


def test_lines_of_the_interplanetary_wayback():
    found = {}
    for name, bad, about in (
        ("froggie_badHeaderHash", 0, 2),
        ("salam-home", 0, 2),
        ("sample-encrypted", 0, 0),
        ("5mementos", 5, 6),
    ):
        report = ReadReport()
        with (SAMPLES / "ipwb-indexes" / f"{name}.cdxj").open("rb") as file:
            found[name] = [row for batch in read_cdxj(file, name, report) for row in batch.to_pylist()]
        assert (report.bad, sum(report.skipped.values())) == (bad, about)
    assert [len(rows) for rows in found.values()] == [3, 1, 1, 0]
    (home,), (encrypted,) = found["salam-home"], found["sample-encrypted"]
    assert (home["url"], home["status"], home["digest"][:5]) == ("http://www.cs.odu.edu/~salam/", 200, "QmQr2")
    assert (encrypted["url"], encrypted["digest"]) == ("http://cs.odu.edu/~salam", "")


text = st.text(alphabet='ab /:{},"\\é\x01%', max_size=6)
value = st.one_of(
    text,
    st.integers(-3, 10**20),
    st.none(),
    st.booleans(),
    st.floats(0, 2),
    st.sampled_from(["http://a.org/", "200", "304", "7"]),
)
names = st.sampled_from(
    ["url", "original", "status", "mime", "offset", "length", "digest", "x", "urlkey", "timestamp", "locator"]
)
pairs = st.lists(st.tuples(names, value), max_size=5)


def written(pairs, gap, comma, ascii_only) -> str:
    inner = comma.join(f"{json.dumps(name)}{gap}{json.dumps(value, ensure_ascii=ascii_only)}" for name, value in pairs)
    return f"{{{inner}}}"


objects = st.builds(written, pairs, st.sampled_from([":", ": ", " : "]), st.sampled_from([",", ", "]), st.booleans())
regular = st.builds(
    lambda url, status, offset: f'{{"url": "http://{url}", "status": "{status}", "offset": {offset}}}',
    st.text(alphabet="ab/é {}", max_size=4),
    st.sampled_from(["200", "304", "", "x"]),
    st.sampled_from(["0", "7", "07", "", "-1", "1.5", "12345678901234567890", "null", '"7"']),
)
prefix = st.sampled_from(
    [
        "",
        "k 20200102030405 ",
        "k 2020 ",
        " 20200102030405 ",
        "k  20200102030405 ",
        "k ",
        '"k" 20200102030405 ',
        "{k 20200102030405 ",
        "! ",
    ]
)
lines = st.lists(
    st.one_of(
        st.tuples(prefix, st.one_of(objects, regular), st.sampled_from(["", " ", "x"])).map("".join).map(str.encode),
        st.sampled_from([PYWB, NUMBERS, SERVER]).map(bytes.strip),
        st.binary(max_size=30),
        st.text(alphabet='k2 {}":,\\0', max_size=20).map(str.encode),
    ).map(lambda line: line.replace(b"\n", b"")),
    max_size=25,
)


@given(lines)
def test_cutting_by_shape_is_parsing_line_by_line(lines):
    raw = b"".join(line + b"\n" for line in lines)
    if not raw:
        return
    report = ReadReport()
    texts, numbers = cut_lines(LineBlock(clean(raw), raw, 0, "x"), report)
    expected, bad, about = [], 0, 0
    for number, line in enumerate(clean(raw).split(b"\n")[:-1]):
        if line.startswith(b"!"):
            about += 1
        elif line:
            try:
                expected.append((number, parse_line(line)))
            except InputError:
                bad += 1
    assert list(numbers) == [number for number, _ in expected]
    for name, column in texts.items():
        assert column.to_pylist() == [found.get(name, "") for _, found in expected], name
    assert (report.bad, sum(report.skipped.values())) == (bad, about)


@given(st.binary(max_size=300))
def test_no_bytes_can_stop_it(data):
    report = ReadReport()
    found = rows(data, report)
    lines = [line for line in gunzipped(data).split(b"\n") if line.strip()]
    assert len(found) + report.bad + sum(report.skipped.values()) <= len(lines) + 1
    assert all(row["url"] for row in found)


def gunzipped(data: bytes) -> bytes:
    """What is in it, so far as it goes."""
    try:
        return zlib.decompressobj(31).decompress(data) if data.startswith(b"\x1f\x8b") else data
    except zlib.error:
        return b""


@pytest.mark.big
def test_every_real_file_has_as_many_captures_as_lines(data_folder):
    files = [
        *sorted((data_folder / "formats/cdxj").rglob("*.cdxj")),
        data_folder / "formats/cdx/webrecorder__pywb/example.cdx.gz",
    ]
    assert len(files) == 17
    for path in files:
        report = ReadReport()
        with path.open("rb") as file:
            count = sum(batch.num_rows for batch in read_cdxj(file, path.name, report))
        data = path.read_bytes()
        lines = (gzip.decompress(data) if path.suffix == ".gz" else data).split(b"\n")
        expected = sum(bool(line.strip()) and not line.startswith(b"!") for line in lines)
        if path.name == "5mementos.cdxj":  # a TimeMap: its lines have no key
            assert (count, report.bad) == (0, expected)
        else:
            assert (count, report.bad) == (expected, 0), path


@pytest.mark.big
def test_cdx_and_cdxj_of_the_same_archive_agree(data_folder):
    from recrawl.formats.cdx.cdx_lines import read_cdx

    folder = data_folder / "formats"
    for name in ("iana", "dupes"):
        with (folder / f"cdx/webrecorder__pywb/{name}.cdx").open("rb") as file:
            cdx = [row for batch in read_cdx(file, "a", ReadReport(strict=True)) for row in batch.to_pylist()]
        with (folder / f"cdxj/webrecorder__pywb/{name}.cdxj").open("rb") as file:
            cdxj = [row for batch in read_cdxj(file, "b", ReadReport(strict=True)) for row in batch.to_pylist()]
        assert cdx == cdxj


def test_what_is_written_looks_like_pywb_wrote_it():
    target = io.BytesIO()
    data = (
        PYWB
        + NUMBERS.replace(b"org,a", b"org,B")
        + PYWB.replace(b'"status": "200", ', b"").replace(b"text/html", b"warc/revisit")
    )
    assert write_cdxj(list(read_cdxj(io.BytesIO(data), "x", ReadReport(strict=True))), target) == 3
    expected = [
        PYWB,
        PYWB.replace(b"org,a", b"org,B"),
        PYWB.replace(b'"status": "200", ', b"").replace(b"text/html", b"warc/revisit"),
    ]
    assert target.getvalue() == b"".join(sorted(expected))


@given(st.lists(st.fixed_dictionaries({
    "url": st.text(alphabet='ab"\\é\x01 /', max_size=6).map("http://a.org/".__add__),
    "key": st.sampled_from(["", "org,a)/x"]),
    "time": st.integers(631_152_000, 4_000_000_000).map(float),
    "kind": st.sampled_from([0, 1, 2]),
    "status": st.sampled_from([0, 200, 304, -5]),
    "mime": st.sampled_from(["", "text/html"]),
    "digest": st.sampled_from(["", "ABC"]),
    "size": st.just(-1),
    "file": st.sampled_from(["", "a b.warc"]),
    "offset": st.integers(-1, 10**17),
    "length": st.integers(-1, 10**17),
}), max_size=10))  # fmt: skip
def test_what_is_written_is_read_again(captures):
    captures = [{**row, "kind": row["kind"] or 2 * (row["status"] == 304)} for row in captures]  # 304 has its kind
    target = io.BytesIO()
    write_cdxj([pa.RecordBatch.from_pylist(captures, schema())], target)
    found = rows(target.getvalue())
    again = io.BytesIO()
    write_cdxj([pa.RecordBatch.from_pylist(found, schema())], again)
    assert again.getvalue() == target.getvalue()
    for name in ("time", "status", "digest", "offset", "length"):
        assert sorted(row[name] for row in found) == sorted(row[name] for row in captures)


def test_pywb_reads_what_we_write():
    judge = pytest.importorskip("pywb.warcserver.index.cdxobject", reason="pywb is a judge at test time only")
    target = io.BytesIO()
    odd = PYWB.replace(b"http://a.org/", 'http://a.org/é\\"x'.encode())
    batches = list(read_cdxj(io.BytesIO(PYWB + odd), "x", ReadReport(strict=True)))
    write_cdxj(batches, target)
    found = [judge.CDXObject(line) for line in target.getvalue().splitlines()]
    assert sorted(one["url"] for one in found) == ["http://a.org/", "http://a.org/%C3%A9%22x"]  # pywb escapes
    for one in found:
        fields = ("urlkey", "timestamp", "mime", "status", "digest", "length", "offset", "filename")
        expected = ("org,a)/", "20200102030405", "text/html", "200", "ABC", "11", "22", "a.warc.gz")
        assert tuple(one[name] for name in fields) == expected


def test_a_file_of_nothing_but_nonsense_is_told_in_reasonable_time():
    report = ReadReport()
    assert rows(b"nonsense\n" * 200_000, report) == []
    assert report.bad == 200_000
