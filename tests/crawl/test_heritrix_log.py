"""What we write as crawl.log, our own reader of Heritrix's reads back."""

from dataclasses import replace
from io import StringIO

import pytest

from recrawl.crawl.control.heritrix_log import HeritrixLog, log_lines
from recrawl.crawl.visit.visit_machine import VisitDone, VisitTarget
from recrawl.detect import PageState, classify_change
from recrawl.formats.columnar.capture_batches import RecordKind
from recrawl.formats.crawl_log import parse_line
from recrawl.model import Capture, Visit

URL = "http://a.org/a page"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWER = Capture(URL, 1_700_000_000.25, 200, HEAD, b"5\r\nhello\r\n0\r\n\r\n", duration=0.5)


def visited(capture: Capture, known: PageState | None = None) -> VisitDone:
    judgement = classify_change(capture, known)
    visit = Visit(
        1,
        capture.time,
        judgement.outcome,
        judgement.verdict,
        judgement.kinds,
        capture.status,
        len(capture.raw_body),
        capture.duration,
    )
    return VisitDone(VisitTarget(1, 1, capture.url, 0.0, known), visit, judgement, capture)


def line_of(one: VisitDone) -> str:
    [line] = log_lines([one])
    return line


def known() -> PageState:
    first = classify_change(ANSWER, None)
    return PageState(replace(first.validators, mime=first.mime), mime=first.mime)


def test_every_field_is_read_back():
    line = parse_line(line_of(visited(ANSWER)))
    assert (line.url, line.status, line.size) == ("http://a.org/a%20page", 200, len(ANSWER.raw_body))
    assert (line.timestamp, line.duration, line.mime) == ("20231114221320250", 0.5, "text/html")
    assert line.digest == "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N", "of the body without its chunks (conventions W5)"
    assert line.kind is RecordKind.RESPONSE


@pytest.mark.parametrize(
    ("capture", "kind"),
    [
        (
            replace(ANSWER, status=304, raw_head=b"HTTP/1.1 304 No\r\n\r\n", raw_body=b""),
            RecordKind.REVISIT_NOT_MODIFIED,
        ),
        (ANSWER, RecordKind.REVISIT_IDENTICAL),
        (replace(ANSWER, raw_body=b"3\r\nnew\r\n0\r\n\r\n"), RecordKind.RESPONSE),
        (Capture(URL, 0.0, 0, error="refused"), RecordKind.FAILED),
    ],
)
def test_what_repeats_what_was_known_says_so(capture, kind):
    assert parse_line(line_of(visited(capture, known()))).kind is kind


def test_a_cut_is_noted():
    assert parse_line(line_of(visited(replace(ANSWER, truncated="length")))).annotations == ("lenTrunc",)


@pytest.mark.parametrize(
    ("capture", "status", "size", "digest", "annotations"),
    [
        (ANSWER, 200, len(ANSWER.raw_body), "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N", ()),
        (
            replace(ANSWER, truncated="time"),
            200,
            len(ANSWER.raw_body),
            "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N",
            ("timeTrunc",),
        ),
        (
            replace(ANSWER, status=304, raw_head=b"HTTP/1.1 304 No\r\n\r\n", raw_body=b""),
            304,
            0,
            "",
            ("duplicate:server-not-modified",),
        ),
        (Capture(URL, 5.0, 0, error="refused", failure=-2), -2, -1, "", ()),
    ],
)
def test_what_belongs_to_no_page_has_its_line_too(capture, status, size, digest, annotations):
    stream = StringIO()
    HeritrixLog(stream).write_auxiliary(capture, "P")
    line = parse_line(stream.getvalue())
    assert (line.url, line.status, line.hops) == ("http://a.org/a%20page", status, "P")
    assert (line.size, line.digest, line.annotations) == (size, digest, annotations)


def test_what_a_server_says_does_not_break_a_line():
    odd = replace(ANSWER, raw_head=HEAD.replace(b"text/html; charset=utf-8", b"text/ html\tfoo; x"))
    stream = StringIO()
    HeritrixLog(stream).write_auxiliary(odd, "P")
    assert parse_line(stream.getvalue()).mime == parse_line(line_of(visited(odd))).mime == "text/htmlfoo"


def test_a_visit_is_told_by_the_url_that_answered():
    """With a method of its own a page may be asked for elsewhere."""
    elsewhere = replace(visited(ANSWER), capture=replace(ANSWER, url="http://a.org/data.ttl"))
    assert parse_line(line_of(elsewhere)).url == "http://a.org/data.ttl"
