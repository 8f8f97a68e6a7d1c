"""CDX of all ages, against a reader that takes one line after the other."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.cdx.cdx_lines import HEADER, parse_timestamps, read_cdx, write_cdx, write_sorted
from recrawl.formats.columnar.capture_batches import ReadReport, RecordKind, schema

SAMPLES = Path(__file__).parents[1] / "data" / "formats"
LINE = b"org,a)/ 20200102030405 http://a.org/ text/html 200 ABC - - 11 22 a.warc.gz\n"


def rows(data: bytes, report: ReadReport | None = None) -> list[dict[str, object]]:
    batches = list(read_cdx(io.BytesIO(data), "x.cdx", report or ReadReport(strict=True)))
    assert all(batch.schema == schema() for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def test_every_field_finds_its_column():
    (row,) = rows(HEADER.encode() + b"\n" + LINE)
    assert row == {
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


@pytest.mark.parametrize(
    "line",
    [
        b"org,a)/ 20200102030405 http://a.org/ text/html 200 ABC - 22 a.warc.gz\n",
        b"org,a)/ 20200102030405 http://a.org/ text/html 200 ABC - - 22 a.warc.gz\n",
        LINE,
        LINE[:-1] + b" 1 2 orig.warc.gz\n",
    ],
)
def test_without_names_the_number_of_fields_decides(line):
    (row,) = rows(line)
    assert (row["digest"], row["offset"], row["file"], row["status"]) == ("ABC", 22, "a.warc.gz", 200)


def test_a_line_may_name_the_fields_in_any_order_and_with_any_separator():
    (row,) = rows(b"\tCDX a b g V s\nhttp://a.org/ x\t20200102030405\tf.arc\t7\t404\n")
    assert (row["url"], row["file"], row["offset"], row["status"], row["key"]) == (
        "http://a.org/ x",
        "f.arc",
        7,
        404,
        "",
    )


def test_files_put_together_name_their_fields_again():
    nine = b" CDX N b a m s k r V g\norg,a)/ 20200102030405 http://a.org/ text/html 200 ABC - 22 a.warc.gz\n"
    told: list[InputError] = []
    data = HEADER.encode() + b"\n" + LINE + nine + b"broken\n" + HEADER.encode() + b"\n" + LINE
    found = rows(data, ReadReport(on_bad=told.append))
    assert [(row["offset"], row["length"]) for row in found] == [(22, 11), (22, -1), (22, 11)]
    assert data[told[0].position :].startswith(b"broken\n")


@pytest.mark.parametrize(
    ("mime", "status", "kind"),
    [
        (b"text/html", b"200", RecordKind.RESPONSE),
        (b"warc/revisit", b"-", RecordKind.REVISIT_IDENTICAL),
        (b"warc/revisit", b"200", RecordKind.REVISIT_IDENTICAL),
        (b"warc/revisit", b"304", RecordKind.REVISIT_NOT_MODIFIED),
        (b"-", b"304", RecordKind.REVISIT_NOT_MODIFIED),
    ],
)
def test_kinds(mime, status, kind):
    (row,) = rows(LINE.replace(b"text/html 200", mime + b" " + status))
    assert row["kind"] == kind


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b"20200102030405", b"20200230030405", "is not a time"),
        (b"20200102030405", b"20201302030405", "is not a time"),
        (b"20200102030405", b"20200102250405", "is not a time"),
        (b"20200102030405", b"2020010203040", "is not a time"),
        (b"20200102030405", b"202001020304056789", "is not a time"),
        (b"20200102030405", b"2020010203040x", "is not a time"),
        (b" 200 ", b" 2oo ", "status"),
        (b" 200 ", b" 99999 ", "status"),
        (b" 22 ", b" 0x16 ", "is not a number"),
        (b" 22 ", b" -5 ", "is not a number"),
        (b" 22 ", b" 99999999999999999999 ", "is not a number"),
        (b"http://a.org/", b"http://a.org/ b", "12 fields"),
        (b" - - ", b" - ", "10 fields"),
    ],
)
def test_a_bad_line_is_told_with_its_place_and_the_rest_goes_on(old, new, what):
    told: list[InputError] = []
    bad = LINE.replace(old, new)
    report = ReadReport(on_bad=told.append)
    assert len(rows(LINE + b"\r\n" + bad + LINE, report)) == 2
    assert report.bad == 1
    assert told[0].position == len(LINE) + 2
    assert "x.cdx at byte" in str(told[0])
    assert what in str(told[0])
    with pytest.raises(InputError):
        rows(LINE + bad)


def test_what_is_no_capture_of_a_web_page_is_counted():
    report = ReadReport()
    lines = (
        LINE.replace(b"http://a.org/", b"dns:a.org") + LINE.replace(b"2020", b"1980") + LINE.replace(b"2020", b"2150")
    )
    assert rows(lines + LINE, report)[0]["url"] == "http://a.org/"
    assert report.skipped == {"not http or https": 1, "dated before 1990": 1, "dated after 2100": 1}


def test_what_old_indexes_leave_out_is_put_back():
    found = rows(
        LINE.replace(b"http://a.org/", b"a.org:80/x")
        + LINE.replace(b"http://a.org/", b"-")
        + LINE.replace(b" ABC", b" sha1:ABC")
    )
    assert [row["url"] for row in found] == ["http://a.org:80/x", "http://a.org/", "http://a.org/"]
    assert [row["digest"] for row in found] == ["ABC"] * 3


def test_something_else_is_refused():
    with pytest.raises(InputError, match="not CDX"):
        rows(b"hello world\n")


word = st.text(alphabet="ab/-:.?é%\"'{}\\", max_size=6)
line = st.one_of(
    st.just(LINE[:-1]),
    st.lists(
        st.one_of(word, st.sampled_from(["20200102030405", "20200102030405123", "http://a.org/", "200", "7", "-"])),
        max_size=13,
    )
    .map(" ".join)
    .map(str.encode),
    st.binary(max_size=40),
    st.tuples(
        word,
        st.sampled_from(["2020010203040", "20210304050607", "19700101000000"]),
        st.sampled_from(["200", "304", "-", "x"]),
        word,
    ).map(lambda v: f"{v[0]} {v[1]} http://{v[3]} warc/revisit {v[2]} D - - 1 2 f".encode()),
)


def one_by_one(lines: list[bytes]) -> tuple[list[tuple], int, int]:
    """Rows, bad and skipped lines, each line judged for itself."""
    found, bad, skipped = [], 0, 0
    for raw in lines:
        text = raw.removesuffix(b"\r").decode("utf-8", errors="recrawl-percent")
        if not text:
            continue
        fields = ["" if field == "-" else field for field in text.split(" ")]
        if len(fields) != 11:
            bad += 1
            continue
        key, stamp, url, mime, status, digest, _, _, length, offset, file = fields
        digits = [(text.isascii() and text.isdigit() and len(text) < 19) or not text for text in (length, offset)]
        bare = status.removeprefix("-")
        code = (bare.isascii() and bare.isdigit() and len(bare) < 6) or not status
        sound = stamp.isascii() and stamp.isdigit() and 14 <= len(stamp) <= 17
        try:
            when = datetime.strptime(stamp[:14] if sound else "", "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        except ValueError:
            bad += 1
            continue
        if not all(digits) or not code or abs(int(status or 0)) > 32767:
            bad += 1
            continue
        if not url.startswith("http://") or not 1990 <= when.year <= 2100:
            skipped += 1
            continue
        status, length, offset = int(status or 0), int(length or -1), int(offset or -1)
        time = when.timestamp() + (int(stamp[14:]) / 10 ** len(stamp[14:]) if stamp[14:] else 0)
        kind = 2 if status == 304 else 1 if mime == "warc/revisit" else 0
        digest = digest.removeprefix("sha1:")
        found.append((url, key, time, kind, status, mime, digest, -1, file, offset, length))
    return found, bad, skipped


@given(st.lists(line.map(lambda text: text.replace(b"\n", b"")), max_size=30))
def test_columns_say_the_same_as_line_by_line(lines):
    lines = [one for one in lines if b"CDX" not in one and b" a." not in one]
    if any(
        len(one.split(b" ")) == 11
        and (one.split(b" ")[2] in (b"-", b"") or b"." in one.split(b" ")[2].split(b"://")[0])
        for one in lines
    ):
        return  # URLs that are put right have a test of their own
    report = ReadReport()
    found = rows(HEADER.encode() + b"\n" + b"".join(one + b"\n" for one in lines), report)
    expected, bad, skipped = one_by_one(lines)
    assert [tuple(row.values()) for row in found] == expected
    nothing = not any(one.strip() for one in lines)
    assert (report.bad, sum(report.skipped.values())) == (bad, skipped + nothing)


@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_can_stop_it(data, named):
    try:
        rows((HEADER.encode() + b"\n" if named else b"") + data, ReadReport())
    except InputError:
        assert not named or b"CDX" in data


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), st.integers(0, 3))  # noqa: DTZ001 - naive on purpose
def test_times_are_those_of_the_calendar(when, more):
    text = f"{when.year:04}{when:%m%d%H%M%S}" + "123"[:more]
    seconds, wrong = parse_timestamps(pa.array([text]))
    assert not wrong[0]
    exact = (when.replace(microsecond=0) - datetime(1970, 1, 1)).total_seconds()  # noqa: DTZ001 - as above
    assert seconds[0] == exact + (int("123"[:more]) / 10**more if more else 0)


def test_the_small_copy_of_a_real_file_is_read():
    report = ReadReport()
    with (SAMPLES / "outbackcdx" / "test1.cdx").open("rb") as file:
        found = [row for batch in read_cdx(file, "test1.cdx", report) for row in batch.to_pylist()]
    assert [(row["key"], row["length"], row["offset"]) for row in found] == [
        ("uk,org,webarchive,data)/crawl-test-site", 3113, 862)
    ]
    assert (report.bad, report.skipped) == (0, {"not http or https": 2})


@pytest.mark.big
def test_every_real_file_has_as_many_captures_as_lines(data_folder):
    files = sorted((data_folder / "formats/cdx").rglob("*.cdx"))
    assert len(files) == 13
    for path in files:
        report = ReadReport()
        with path.open("rb") as file:
            count = sum(batch.num_rows for batch in read_cdx(file, path.name, report))
        lines = path.read_bytes().split(b"\n")
        expected = sum(bool(text.strip()) and not text.lstrip().startswith(b"CDX ") for text in lines)
        assert count + sum(report.skipped.values()) == expected, path
        assert report.bad == 0


@pytest.mark.big
def test_the_same_captures_in_nine_and_eleven_fields(data_folder):
    with (data_folder / "formats/cdx/derived/iana-9field.cdx").open("rb") as file:
        nine = [row for batch in read_cdx(file, "9", ReadReport()) for row in batch.to_pylist()]
    with (data_folder / "formats/cdx/webrecorder__pywb/iana.cdx").open("rb") as file:
        eleven = [row for batch in read_cdx(file, "11", ReadReport()) for row in batch.to_pylist()]
    assert nine == [{**row, "length": -1} for row in eleven]


def test_what_is_written_is_read_again_and_sorted_by_bytes():
    lines = [
        LINE,
        LINE.replace(b"org,a)/", b"org,B)/"),
        LINE.replace(b"text/html 200", b"warc/revisit 304"),
        LINE.replace(b"org,a)/", "org,é)/".encode()),
    ]
    batches = list(read_cdx(io.BytesIO(b"".join(lines)), "x", ReadReport(strict=True)))
    target = io.BytesIO()
    assert write_cdx(batches, target) == 4
    header, *written, last = target.getvalue().split(b"\n")
    assert (header, last) == (HEADER.encode(), b"")
    assert written == sorted(one[:-1] for one in lines)


def test_written_fields_never_hold_white_space_and_failed_fetches_are_left_out():
    row = rows(LINE)[0]
    odd = [
        {**row, "url": "http://a.org/x y", "key": "", "mime": "text/html; charset=x"},
        {**row, "kind": int(RecordKind.FAILED), "status": -2},
    ]
    target = io.BytesIO()
    assert write_cdx([pa.RecordBatch.from_pylist(odd, schema())], target) == 1
    line = target.getvalue().split(b"\n")[1]
    assert line == b"org,a)/x%20y 20200102030405 http://a.org/x%20y text/html 200 ABC - - 11 22 a.warc.gz"


@given(st.lists(st.lists(st.text(alphabet="abÀ\x7f{", max_size=5), max_size=20), max_size=8), st.integers(1, 200))
def test_sorting_through_files_is_sorting(parts, at_once):
    target = io.BytesIO()
    count = write_sorted((pa.array(part, pa.string()) for part in parts), target, at_once=at_once)
    expected = sorted(text.encode() for part in parts for text in part)
    assert target.getvalue() == b"".join(text + b"\n" for text in expected)
    assert count == len(expected)
