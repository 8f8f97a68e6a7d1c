"""Verdicts: what is a change, what is noise, and what says nothing."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.detect import ChangeResult, PageState, classify_change, known_after
from recrawl.detect.version import MAX_READ
from recrawl.model import UNCOUNTED, Capture, ChangeKind, Outcome, Validators, Verdict

URL = "http://example.org/page"
CONTENT, TEXT, LINKS, NEW_LINKS = ChangeKind.CONTENT, ChangeKind.TEXT, ChangeKind.LINKS, ChangeKind.NEW_LINKS
NO_KIND = ChangeKind.NONE


def answer(
    body: bytes | str = b"", mime: str = "text/html", *headers: str, status: int = 200, truncated: str = ""
) -> Capture:
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} X", *([f"Content-Type: {mime}"] if mime else []), *headers, "", ""]
    return Capture(URL, 0.0, status, "\r\n".join(lines).encode(), body, truncated=truncated)


def evaluate_splits(*captures: Capture) -> list[ChangeResult]:
    known, judgements = None, []
    for capture in captures:
        judgements.append(classify_change(capture, known))
        if judgements[-1].outcome <= Outcome.GONE or known is not None:
            known = known_after(judgements[-1], known)
    return judgements


def second(first: Capture, then: Capture) -> ChangeResult:
    return evaluate_splits(first, then)[1]


def said(judged: ChangeResult) -> tuple[Outcome, Verdict, ChangeKind]:
    return judged.outcome, judged.verdict, judged.kinds


PAGE = "<title>T</title><p>Some text</p><a href=/one>one</a><a href=http://other.example/>two</a>"


def test_the_first_answer_opens_a_history():
    judged = classify_change(
        answer(PAGE, "text/html", 'ETag: "1"', "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"), None
    )
    assert said(judged) == (Outcome.FETCHED, Verdict.UNKNOWN, NO_KIND)
    assert judged.links == ("http://example.org/one", "http://other.example/")
    assert (judged.validators.etag, judged.validators.last_modified) == ('"1"', "Sun, 06 Nov 1994 08:49:37 GMT")
    assert (len(judged.validators.digest), len(judged.validators.text_digest)) == (20, 20)
    assert (judged.mime, judged.size, judged.new_internal, judged.links_read) == (
        "text/html",
        len(PAGE),
        UNCOUNTED,
        True,
    )


@pytest.mark.parametrize("known", [None, PageState()])
def test_nothing_known_is_nothing_known(known):
    assert classify_change(answer(PAGE), known).verdict == Verdict.UNKNOWN
    assert classify_change(answer(status=404), known).verdict == Verdict.UNKNOWN
    assert classify_change(answer(status=304), known).verdict == Verdict.UNKNOWN


def test_the_same_bytes_are_unchanged():
    judged = second(answer(PAGE), answer(PAGE, "text/html", 'ETag: "2"'))
    assert said(judged) == (Outcome.FETCHED, Verdict.UNCHANGED, NO_KIND)
    assert not judged.links_read
    assert (judged.new_internal, judged.new_external, judged.added_internal, judged.added_external) == (0, 0, 0, 0)
    assert judged.validators.etag == '"2"'


def test_the_same_page_in_other_wrapping_is_unchanged():
    wrapped = answer(gzip.compress(PAGE.encode()), "text/html", "Content-Encoding: gzip")
    assert said(second(answer(PAGE), wrapped)) == (Outcome.FETCHED, Verdict.UNCHANGED, NO_KIND)
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in PAGE.encode()) + b"0\r\n\r\n"
    assert second(answer(PAGE), answer(chunks, "text/html", "Transfer-Encoding: chunked")).verdict == Verdict.UNCHANGED


@pytest.mark.parametrize(
    "noise",
    [
        "<p>Served at 2026-11-15 09:14:0{}</p>",
        "<!-- rendered {} -->",
        "<script>var nonce = {}</script>",
        "<input type=hidden name=csrf value={}>",
        "<div class=banner>Offer number {} <a href=http://ads.example/{}>now</a></div>",
        "<a href='/form?token=0123456789abcdef012345678{}'></a>",
        "<p>   </p>" * 2 + "<br class=x{}>",
    ],
)
def test_noise_is_no_change_but_is_remembered(noise):
    judged = second(answer(PAGE + noise.format(1, 1)), answer(PAGE + noise.format(2, 2)))
    assert said(judged) == (Outcome.FETCHED, Verdict.UNCHANGED, CONTENT)
    assert (judged.new_internal, judged.new_external, judged.added_internal, judged.added_external) == (0, 0, 0, 0)


def test_another_text_is_a_change():
    judged = second(answer(PAGE), answer(PAGE.replace("Some", "Other")))
    assert said(judged) == (Outcome.FETCHED, Verdict.CHANGED, CONTENT | TEXT)


def test_links_are_counted_by_side_and_by_memory():
    def page(*hrefs):
        return answer("".join(f"<a href='{href}'></a>" for href in hrefs))

    first, added, removed, back = evaluate_splits(
        page("/a"),
        page("/a", "/b", "http://other.example/", "http://www.example.org/"),
        page("/a"),
        page("/a", "/b", "/c"),
    )
    assert first.kinds == NO_KIND
    assert said(added) == (Outcome.FETCHED, Verdict.CHANGED, CONTENT | LINKS | NEW_LINKS)
    assert (added.new_internal, added.new_external, added.added_internal, added.added_external) == (1, 2, 1, 2)
    assert said(removed) == (Outcome.FETCHED, Verdict.CHANGED, CONTENT | LINKS)
    assert (removed.new_internal, removed.new_external, removed.added_internal, removed.added_external) == (0, 0, 0, 0)
    assert said(back) == (Outcome.FETCHED, Verdict.CHANGED, CONTENT | LINKS | NEW_LINKS)
    assert (back.new_internal, back.new_external, back.added_internal, back.added_external) == (1, 0, 2, 0)


def test_a_link_known_from_before_is_added_but_not_new():
    _, gone, back = evaluate_splits(answer("<a href=/a></a>"), answer("<i>"), answer("<a href=/a></a>"))
    assert gone.kinds & LINKS
    assert said(back) == (Outcome.FETCHED, Verdict.CHANGED, CONTENT | LINKS)
    assert (back.new_internal, back.added_internal) == (0, 1)


def test_304_is_unchanged_and_may_renew_validators():
    first = answer(PAGE, "text/html", 'ETag: "1"', "Last-Modified: then")
    judged = second(first, answer(b"", "", 'ETag: "1b"', status=304))
    assert said(judged) == (Outcome.NOT_MODIFIED, Verdict.UNCHANGED, NO_KIND)
    assert (judged.validators.etag, judged.validators.last_modified) == ('"1b"', "then")
    assert judged.validators.digest == classify_change(first, None).validators.digest
    assert (judged.mime, judged.links_read, judged.new_internal) == ("text/html", False, 0)


@pytest.mark.parametrize("status", [404, 410])
def test_going_and_coming_back_are_changes_once(status):
    gone = answer("not here", status=status)
    _, left, still, back, same = evaluate_splits(answer(PAGE), gone, gone, answer(PAGE), answer(PAGE))
    assert said(left) == (Outcome.GONE, Verdict.CHANGED, ChangeKind.EXISTENCE)
    assert (left.links_read, left.links) == (True, ())
    assert said(still) == (Outcome.GONE, Verdict.UNCHANGED, NO_KIND)
    assert said(back) == (Outcome.FETCHED, Verdict.CHANGED, ChangeKind.EXISTENCE)
    assert (back.new_internal, back.added_internal) == (0, 1)
    assert said(same) == (Outcome.FETCHED, Verdict.UNCHANGED, NO_KIND)


def test_a_page_that_was_never_there_can_appear():
    assert said(evaluate_splits(answer(status=404), answer(PAGE))[1]) == (
        Outcome.FETCHED,
        Verdict.CHANGED,
        ChangeKind.EXISTENCE,
    )


def test_304_for_a_page_that_was_gone_is_a_return():
    known = PageState(Validators(etag='"1"'), gone=True)
    assert said(classify_change(answer(status=304), known)) == (
        Outcome.NOT_MODIFIED,
        Verdict.CHANGED,
        ChangeKind.EXISTENCE,
    )


FAILURES = [
    (Capture(URL, 0.0, 0, error="refused"), Outcome.UNREACHABLE),
    (answer("cut", truncated="disconnect"), Outcome.UNREACHABLE),
    (answer("cut", truncated="time"), Outcome.UNREACHABLE),
    (answer("cut", truncated="unspecified"), Outcome.UNREACHABLE),
    (answer("cut", status=404, truncated="time"), Outcome.UNREACHABLE),
    (answer("oops", status=500), Outcome.SERVER_ERROR),
    (answer("busy", status=503), Outcome.SERVER_ERROR),
    (answer("slow down", status=429), Outcome.SERVER_ERROR),
    (answer("no", status=403), Outcome.REJECTED),
    (answer("no", status=451), Outcome.REJECTED),
    (answer("what", status=999), Outcome.SERVER_ERROR),
]


@pytest.mark.parametrize(("failure", "outcome"), FAILURES)
def test_failures_say_nothing_and_forget_nothing(failure, outcome):
    first, failed, same, changed = evaluate_splits(answer(PAGE), failure, answer(PAGE), answer(PAGE + "<p>more"))
    assert said(failed) == (outcome, Verdict.UNKNOWN, NO_KIND)
    assert (failed.validators, failed.mime, failed.links_read) == (first.validators, "text/html", False)
    assert same.verdict == Verdict.UNCHANGED
    assert changed.verdict == Verdict.CHANGED


@pytest.mark.parametrize(("failure", "outcome"), FAILURES)
def test_a_failure_first_leaves_the_history_closed(failure, outcome):
    failed = classify_change(failure, None)
    assert (failed.outcome, failed.verdict, failed.validators) == (outcome, Verdict.UNKNOWN, Validators())


def moved(to: str | None, status: int = 301) -> Capture:
    return answer("<a href=/x>moved</a>", "text/html", *([f"Location: {to}"] if to is not None else []), status=status)


def test_a_redirect_is_judged_by_its_target():
    first, same, other, page = evaluate_splits(
        moved("/a"), moved("http://example.org/a", 302), moved("/b"), answer(PAGE)
    )
    assert said(first) == (Outcome.REDIRECTED, Verdict.UNKNOWN, NO_KIND)
    assert (first.redirect_to, first.links, first.links_read) == ("http://example.org/a", (), True)
    assert said(same) == (Outcome.REDIRECTED, Verdict.UNCHANGED, NO_KIND)
    assert said(other) == (Outcome.REDIRECTED, Verdict.CHANGED, CONTENT | TEXT)
    assert page.outcome == Outcome.FETCHED
    assert page.kinds & TEXT


def test_a_page_that_becomes_a_redirect_changed():
    judged = second(answer(PAGE), moved("/elsewhere"))
    assert (judged.outcome, judged.verdict) == (Outcome.REDIRECTED, Verdict.CHANGED)
    assert judged.kinds & TEXT


def test_a_session_in_the_target_is_noise():
    judged = second(moved("/login?s=0123456789abcdef0"), moved("/login?s=fedcba98765432100"))
    assert said(judged) == (Outcome.REDIRECTED, Verdict.UNCHANGED, CONTENT)


@pytest.mark.parametrize("to", [None, "", "mailto:a@b.example", "http://["])
def test_a_redirect_to_nowhere_is_still_an_answer(to):
    judged = classify_change(moved(to), None)
    assert (judged.outcome, judged.redirect_to) == (Outcome.REDIRECTED, "")


@pytest.mark.parametrize(
    ("mime", "one", "same", "other"),
    [
        ("application/json", '{"a": 1, "b": [1, 2]}', '{"b":[1,2],\n"a":1}', '{"a": 1, "b": [2, 1]}'),
        ("application/ld+json", '{"a": "é"}', '{"a": "\\u00e9"}', '{"a": "e"}'),
        (
            "application/json",
            '{"generated": "a", "took": 3, "x": 1}',
            '{"generated": "b", "took": 4, "x": 1}',
            '{"x": 2}',
        ),
        ("text/csv", "a,b\r\n1,2\r\n", "a,b\n1,2", "a,b\n2,1"),
        ("text/csv", "a\n1\n# generated 2026-11-15T09:14:07Z\n", "a\n1\n# generated 2026-11-16T09:14:07Z\n", "a\n2\n"),
        ("text/turtle", "# at 9\n<a> <b> 'c' .\n", "# at 10\n<a> <b> 'c' .\n", "<a> <b> 'd' ."),
        ("application/rss+xml", "<rss>\n<a/>  \n</rss>", "<rss>\n<a/>\n</rss>\n", "<rss>\n<b/>\n</rss>"),
    ],
)
def test_data_is_compared_by_what_it_says(mime, one, same, other):
    assert said(second(answer(one, mime), answer(same, mime))) == (Outcome.FETCHED, Verdict.UNCHANGED, CONTENT)
    changed = second(answer(one, mime), answer(other, mime))
    assert said(changed) == (Outcome.FETCHED, Verdict.CHANGED, CONTENT | ChangeKind.DATA)


def test_dates_in_data_are_data():
    judged = second(*(answer(json.dumps({"begins": f"2026-11-15T09:14:0{n}Z"}), "application/json") for n in (1, 2)))
    assert judged.kinds == CONTENT | ChangeKind.DATA


def test_plain_text_is_compared_without_noise():
    assert said(second(answer("at 09:14:07 all  well", "text/plain"), answer("at 09:14:08 all well", "text/plain")))[
        1:
    ] == (Verdict.UNCHANGED, CONTENT)
    assert second(answer("all well", "text/plain"), answer("all ill", "text/plain")).kinds == CONTENT | TEXT


@pytest.mark.parametrize("mime", ["image/png", "application/pdf", "application/octet-stream", ""])
def test_other_bytes_are_compared_as_bytes(mime):
    judged = second(answer(b"\x00\x01", mime), answer(b"\x00\x02", mime))
    assert said(judged) == (Outcome.FETCHED, Verdict.CHANGED, CONTENT)


def test_a_page_without_a_type_is_looked_at():
    assert classify_change(answer("\ufeff <!DOCTYPE HTML><a href=/x>", ""), None).links == ("http://example.org/x",)


def test_another_type_is_a_change():
    judged = second(answer("same", "text/plain"), answer("same", "text/markdown"))
    assert said(judged) == (Outcome.FETCHED, Verdict.CHANGED, ChangeKind.TYPE)


def test_a_type_that_is_forgotten_once_is_no_change():
    page = "<!doctype html>" + PAGE
    assert second(answer(page), answer(page, "")).verdict == Verdict.UNCHANGED


BROKEN = [
    ("Content-Encoding: gzip", b"no gzip"),
    ("Content-Encoding: br", b"\x0b\x02\x80"),
    ("Content-Encoding: gzip", gzip.compress(bytes(70 * 1024 * 1024))),
]


@pytest.mark.parametrize(("header", "body"), BROKEN)
def test_what_cannot_be_decoded_is_judged_by_its_bytes(header, body):
    first, same, other = evaluate_splits(
        answer(body, "text/html", header), answer(body, "text/html", header), answer(body + b"!", "text/html", header)
    )
    assert (first.verdict, first.links_read) == (Verdict.UNKNOWN, False)
    assert same.verdict == Verdict.UNCHANGED
    assert said(other) == (Outcome.FETCHED, Verdict.CHANGED, CONTENT)


def test_a_body_longer_than_we_keep_is_judged_by_its_beginning():
    first, same, other = evaluate_splits(*(answer(body, truncated="length") for body in ("abc", "abc", "abd")))
    assert said(same) == (Outcome.FETCHED, Verdict.UNCHANGED, NO_KIND)
    assert said(other) == (Outcome.FETCHED, Verdict.CHANGED, CONTENT)
    assert not first.links_read


def test_broken_json_is_judged_by_its_bytes():
    assert second(answer("{", "application/json"), answer("{ ", "application/json")).verdict == Verdict.CHANGED
    deep = answer("[" * 100_000, "application/json")
    assert classify_change(deep, None).outcome == Outcome.FETCHED


captures = st.builds(
    answer,
    st.sampled_from(
        [b"", b"<a href=/x>x</a>", b"<a href=/y>y</a>", b"{}", b"[1]", b"a,b", b"\xff\xfe", b"12:00:01", b"12:00:02"]
    )
    | st.binary(max_size=20),
    st.sampled_from(["text/html", "application/json", "text/csv", "text/plain", "image/png", "text/turtle", ""]),
    st.sampled_from(["X: y", "Content-Encoding: gzip", "Transfer-Encoding: chunked", "Location: /z", 'ETag: "1"']),
    status=st.sampled_from([200, 200, 200, 301, 304, 403, 404, 410, 429, 500, 0]),
    truncated=st.sampled_from(["", "", "", "length", "time", "disconnect"]),
)


@given(st.lists(captures, max_size=8))
def test_any_sequence_of_answers_makes_sense(sequence):
    known = None
    for capture in sequence:
        judged = classify_change(capture, known)
        failed = judged.outcome > Outcome.GONE
        assert judged.size == len(capture.raw_body)
        assert (judged.verdict == Verdict.CHANGED) <= bool(judged.kinds)
        assert (judged.verdict == Verdict.UNKNOWN) == (failed or known is None)
        assert (judged.verdict != Verdict.UNCHANGED) or judged.kinds in (NO_KIND, CONTENT)
        counts = (judged.new_internal, judged.new_external, judged.added_internal, judged.added_external)
        assert counts == (UNCOUNTED,) * 4 or min(counts) >= 0
        assert judged.new_internal <= judged.added_internal
        assert judged.new_external <= judged.added_external
        assert bool(judged.links) <= judged.links_read
        assert classify_change(replace(capture), known) == judged  # a function of its arguments
        unasked = judged.outcome == Outcome.NOT_MODIFIED and (known is None or known.validators == Validators())
        if not failed and not unasked:
            known = known_after(judged, known)
            repeated = classify_change(capture, known)
            assert repeated.verdict == Verdict.UNCHANGED
            assert repeated.kinds == NO_KIND


def test_a_page_too_long_to_take_apart_is_judged_by_its_bytes():
    long = PAGE + "<p>x" * (MAX_READ // 4)
    first, same, other = evaluate_splits(answer(long), answer(long), answer(long.replace("Some", "Same", 1)))
    assert not first.links_read
    assert first.validators.text_digest == b""
    assert same.verdict == Verdict.UNCHANGED
    assert said(other) == (Outcome.FETCHED, Verdict.CHANGED, CONTENT)


@pytest.mark.parametrize(
    "page", ["<div>" * 300_000, "</div>" * 300_000 + "<section><UL>" * 200_000 + "</ul>" * 400_000]
)
def test_a_page_too_deep_to_take_apart_is_judged_by_its_bytes(page):
    first, other = evaluate_splits(answer(page), answer(page + "x"))
    assert not first.links_read
    assert first.validators.text_digest == b""
    assert said(other) == (Outcome.FETCHED, Verdict.CHANGED, CONTENT)


def test_a_long_page_is_not_taken_for_a_deep_one():
    judged = classify_change(
        answer("<ul>" + "<li><div>item</div>" * 30_000 + "</div>" * 9 + "<a href=/end>end</a>"), None
    )
    assert judged.links == ("http://example.org/end",)
