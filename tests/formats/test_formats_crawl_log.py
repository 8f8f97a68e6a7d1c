"""Heritrix's crawl.log, in the variants of its versions."""

from __future__ import annotations

import io
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import ReadReport, RecordKind, schema
from recrawl.formats.crawl_log import parse_line, read_crawl_log

GOOD = (
    "2024-05-01T10:00:00.500Z   200       1234 http://a.org/x LE http://a.org/ text/html "
    '#001 20240501095958123+250 sha1:ABC http://a.org/ 2t,lenTrunc {"contentSize":1500,"note":"a b"}'
)
FAILED = "2024-05-01T10:00:01.500Z    -2          - http://b.org/ - - no-type #012 - - - 3t,Connection:refused"
DNS = "2024-05-01T10:00:02.500Z     1         53 dns:a.org LP http://a.org/ text/dns #003 20240501100002100+40 - - -"


def rows(text: str, report: ReadReport | None = None) -> list[dict[str, object]]:
    batches = list(read_crawl_log(io.BytesIO(text.encode()), "crawl.log", report or ReadReport(strict=True)))
    assert all(batch.schema == schema() for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def test_all_fields_of_a_line():
    line = parse_line(GOOD)
    assert (line.timestamp, line.status, line.size, line.url, line.hops, line.hop_count) == (
        "20240501095958123", 200, 1234, "http://a.org/x", "LE", 2)  # fmt: skip
    assert (line.via, line.mime, line.worker, line.duration, line.digest, line.source) == (
        "http://a.org/", "text/html", "#001", 0.25, "sha1:ABC", "http://a.org/")  # fmt: skip
    assert line.annotations == ("2t", "lenTrunc")
    assert line.extra == {"contentSize": 1500, "note": "a b"}


def test_captures_failed_ones_too():
    report = ReadReport(strict=True)
    rules, other = DNS.replace("dns:a.org", "http://a.org/robots.txt"), DNS.replace("dns:a.org LP", "ftp://a.org/ L")
    good, failed = rows(f"{GOOD}\n{DNS}\n{rules}\n\n{other}\n{FAILED}\n", report)
    began = datetime(2024, 5, 1, 9, 59, 58, 123_000, tzinfo=UTC).timestamp()
    assert (good["time"], good["kind"], good["status"], good["size"], good["digest"]) == (
        began,
        RecordKind.RESPONSE,
        200,
        1234,
        "ABC",
    )
    logged = datetime(2024, 5, 1, 10, 0, 1, 500_000, tzinfo=UTC).timestamp()
    assert (failed["time"], failed["kind"], failed["status"], failed["size"]) == (logged, RecordKind.FAILED, -2, -1)
    assert report.skipped == {"prerequisites (robots.txt, DNS)": 2, "not http or https": 1}


@pytest.mark.parametrize(
    ("hops", "via", "notes", "is_page"),
    [
        ("M", "-", "-", False),
        ("M", "-", "duplicate:server-not-modified", False),
        ("PM", "http://a.org/robots.txt", "isSitemap,2t", False),
        ("PMM", "http://a.org/sitemap.xml", "2t", True),
        ("M", "http://a.org/sitemap.xml", "-", True),
        ("ML", "http://a.org/x", "-", True),
    ],
)
def test_sitemaps_are_passed_over_but_not_the_pages_they_list(hops, via, notes, is_page):
    report = ReadReport(strict=True)
    line = GOOD.replace(" LE http://a.org/ ", f" {hops} {via} ").replace("2t,lenTrunc", notes)
    assert len(rows(line, report)) == is_page
    assert report.skipped == ({} if is_page else {"sitemaps and feeds": 1})


@pytest.mark.parametrize(
    ("notes", "status", "kind"),
    [
        ("-", "200", RecordKind.RESPONSE),
        ("2t,duplicate:digest", "200", RecordKind.REVISIT_IDENTICAL),
        ("duplicate:server-not-modified", "304", RecordKind.REVISIT_NOT_MODIFIED),
        ("warcRevisit:notModified,2t", "304", RecordKind.REVISIT_NOT_MODIFIED),
        ("warcRevisit:digest", "404", RecordKind.REVISIT_IDENTICAL),
        ('duplicate:"http://b.org/,20230101000000"', "200", RecordKind.REVISIT_IDENTICAL),
        ("3t", "-9998", RecordKind.FAILED),
        ("-", "0", RecordKind.FAILED),
        ("-", "-5003", RecordKind.FAILED),
    ],
)
def test_annotations_and_statuses_say_what_it_is(notes, status, kind):
    (row,) = rows(GOOD.replace("   200 ", f" {status} ").replace("2t,lenTrunc", notes))
    assert (row["kind"], row["status"]) == (kind, int(status))


@pytest.mark.parametrize(
    ("old", "new", "name", "value"),
    [
        ("+250", ";250", "duration", 0.25),
        ("20240501095958123+250", "20240501095958", "timestamp", "20240501095958"),
        ("20240501095958123+250", "-", "timestamp", "20240501100000500"),
        ("00.500Z", "00Z", "status", 200),
        (" LE ", " 12+LLR ", "hop_count", 15),
        (" LE ", " - ", "hop_count", 0),
        (' 2t,lenTrunc {"contentSize":1500,"note":"a b"}', "", "annotations", ()),
    ],
)
def test_variants(old, new, name, value):
    assert getattr(parse_line(GOOD.replace(old, new)), name) == value


def test_a_line_without_duration_does_not_know_it():
    assert math.isnan(parse_line(FAILED).duration)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("   200 ", " two "),
        ("       1234", " 1k"),
        ("20240501095958123+250", "yesterday"),
        ("20240501095958123+250", "20240532095958123+250"),
        ("}", ""),
        (GOOD, "2024-05-01T10:00:00.500Z   200       1234 http://a.org/x LE"),
        (GOOD, "nonsense"),
    ],
)
def test_a_bad_line_is_told_with_its_place(old, new):
    told: list[InputError] = []
    bad = GOOD.replace(old, new)
    found = rows(f"{GOOD}\n{bad}\n{GOOD}\n", ReadReport(on_bad=told.append))
    assert len(found) == 2
    assert [error.position for error in told] == [len(GOOD) + 1]


@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from([*GOOD.split(), "-", "x", "{", "[1]", "²"]), max_size=14).map(
        lambda words: " ".join(words).encode()
    )
)
def test_no_bytes_can_stop_it(data):
    report = ReadReport()
    found = sum(batch.num_rows for batch in read_crawl_log(io.BytesIO(data), "crawl.log", report))
    assert found + report.bad + sum(report.skipped.values()) <= len(data.splitlines()) + 1
