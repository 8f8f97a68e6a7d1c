"""What counts as a change is what the user says: how much, in what order, and what is left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.detect import ChangeCriteria, ChangeResult, classify_change, known_after
from recrawl.detect.change_criteria import LONGEST, NO_PAGE_RULES, IgnoreRules, checked, without_matches
from recrawl.errors import ConfigError
from recrawl.model import Capture, ChangeKind, Verdict

URL = "http://example.org/news/today"
WORDS = [f"word{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(400)]
CHANGED, UNCHANGED, UNKNOWN = Verdict.CHANGED, Verdict.UNCHANGED, Verdict.UNKNOWN


def answer(body: str, mime: str = "text/html", when: float = 0.0, url: str = URL) -> Capture:
    return Capture(url, when, 200, f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n".encode(), body.encode())


def last(*bodies: str, standards: ChangeCriteria, mime: str = "text/html", url: str = URL) -> ChangeResult:
    known, judged = None, None
    for number, body in enumerate(bodies):
        judged = classify_change(answer(body, mime, 3600.0 * number, url), known, standards)
        known = known_after(judged, known)
    assert judged is not None
    return judged


def edited(*places: int) -> str:
    return "<p>" + " ".join("edited" if place in places else word for place, word in enumerate(WORDS))


def test_any_edit_is_a_change_unless_a_threshold_says_otherwise():
    assert last(edited(), edited(200), standards=ChangeCriteria()).verdict == CHANGED
    small = last(edited(), edited(200), standards=ChangeCriteria(min_change=0.1))
    assert (small.verdict, small.kinds) == (UNCHANGED, ChangeKind.CONTENT | ChangeKind.TEXT)
    assert 0.0 < small.magnitude < 0.1
    large = last(edited(), edited(*range(0, 400, 20)), standards=ChangeCriteria(min_change=0.1))
    assert large.verdict == CHANGED
    assert large.magnitude > 0.4


def test_a_page_that_creeps_is_found_changed_in_the_end():
    steps = [edited(*range(0, 12 * number, 12)) for number in range(12)]
    known, verdicts = None, []
    for number, body in enumerate(steps):
        judged = classify_change(answer(body, when=3600.0 * number), known, ChangeCriteria(min_change=0.1))
        known = known_after(judged, known)
        verdicts.append(judged.verdict)
    assert verdicts[0] == UNKNOWN
    assert 2 <= verdicts.count(CHANGED) <= 6


@pytest.mark.parametrize(
    ("bodies", "mime", "magnitude"),
    [
        (["<p>a b c", "<p>a b c<br>"], "text/html", 0.0),
        (["<p>a b c", "<p>x y z"], "text/html", 1.0),
        (["a,b\n1,2\n3,4\n5,6\n", "a,b\n1,2\n3,4\n7,8\n"], "text/csv", 0.4),
        (['{"rows": [1, 2, 3], "n": 1}', '{"rows": [1, 2, 4], "n": 1}'], "application/json", 0.4),
        (["<x/> <y/> .", "<x/> <y/> <z/> . <x/> <y/> <w/> ."], "text/turtle", 1.0),
        (["<a><b>1</b><b>2</b></a>", "<a><b>1</b><b>3</b></a>"], "application/rss+xml", 0.4),
        (["one\ntwo\n", "one\ntwo\nthree\n"], "text/plain", 1.0),
        (["\x00\x01", "\x00\x02"], "image/png", -1.0),
    ],
)
def test_how_much_changed(bodies, mime, magnitude):
    assert last(*bodies, standards=ChangeCriteria(), mime=mime).magnitude == pytest.approx(magnitude)


def test_links_alone_have_a_magnitude_too():
    pages = ["<p>Go <a href=/a>there</a> or <a href=/b>there</a>", "<p>Go <a href=/a>there</a> or <a href=/c>there</a>"]
    judged = last(*pages, standards=ChangeCriteria())
    assert (judged.verdict, judged.magnitude) == (CHANGED, pytest.approx(2 / 3))
    assert last(*pages, standards=ChangeCriteria(min_change=0.1)).verdict == UNCHANGED


@pytest.mark.parametrize(
    ("one", "other", "mime"),
    [
        ("a,b\n1,2\n3,4\n", "a,b\n3,4\n1,2\n", "text/csv"),
        ('{"x": [3, {"k": [1, 2]}]}', '{"x": [{"k": [2, 1]}, 3]}', "application/json"),
    ],
)
def test_order_counts_unless_told_otherwise(one, other, mime):
    assert last(one, other, standards=ChangeCriteria(), mime=mime).verdict == CHANGED
    assert last(one, other, standards=ChangeCriteria(row_order=False), mime=mime).verdict == UNCHANGED


def test_the_head_of_a_table_keeps_its_place():
    swapped = last("b,a\na,b\n", "a,b\nb,a\n", standards=ChangeCriteria(row_order=False), mime="text/csv")
    assert swapped.verdict == CHANGED


PAGE = "<main><p>Text {}</p></main><aside class=weather><p>Rain {} <a href=/w{}>more</a></p></aside>"


@pytest.mark.parametrize(
    ("rules", "text", "weather"),
    [
        (IgnoreRules(), CHANGED, CHANGED),
        (IgnoreRules.parse(ignore_selectors=".weather"), CHANGED, UNCHANGED),
        (IgnoreRules.parse(ignore_selectors="p"), UNCHANGED, UNCHANGED),
        (IgnoreRules.parse(only_selectors=".weather p"), UNCHANGED, CHANGED),
        (IgnoreRules.parse(only_selectors="main ;; .weather"), CHANGED, CHANGED),
        (IgnoreRules.parse(only_selectors=".none"), UNCHANGED, UNCHANGED),
        (IgnoreRules.parse(ignore_selectors="http://example.org/news/* => .weather"), CHANGED, UNCHANGED),
        (IgnoreRules.parse(ignore_selectors="http://other.example/* => .weather"), CHANGED, CHANGED),
        (IgnoreRules.parse(ignore_selectors="main\n  .weather"), UNCHANGED, UNCHANGED),
    ],
)
def test_elements_are_left_out(rules, text, weather):
    standards = ChangeCriteria(rules=rules)
    before = PAGE.format("one", "now", 1)
    assert last(before, PAGE.format("two", "now", 1), standards=standards).verdict == text
    assert last(before, PAGE.format("one", "soon", 2), standards=standards).verdict == weather


def test_links_in_elements_left_out_are_still_found():
    judged = last(PAGE.format(1, 1, 1), standards=ChangeCriteria(rules=IgnoreRules.parse(ignore_selectors="body > *")))
    assert judged.links == ("http://example.org/w1",)
    later = last(
        *(PAGE.format(1, n, n) for n in (1, 2)),
        standards=ChangeCriteria(rules=IgnoreRules.parse(only_selectors="main")),
    )
    assert (later.verdict, later.new_internal, later.links) == (UNCHANGED, 0, ("http://example.org/w2",))


def test_text_is_left_out():
    standards = ChangeCriteria(rules=IgnoreRules.parse(ignore_text=r"level \w+ ;; http://example.org/* => (?i)today"))
    assert last("<p>At level low it rains", "<p>At level high it rains today", standards=standards).verdict == UNCHANGED
    assert last("<p>At level low it rains", "<p>At level high it snows", standards=standards).verdict == CHANGED
    rows = ChangeCriteria(rules=IgnoreRules.parse(ignore_text=r"checked \d+"))
    assert last("a,checked 1\n", "a,checked 2\n", standards=rows, mime="text/csv").verdict == UNCHANGED


def test_versions_under_other_rules_are_not_compared():
    first = classify_change(answer(PAGE.format(1, 1, 1)), None)
    known = known_after(first, None)
    ruled = ChangeCriteria(rules=IgnoreRules.parse(ignore_selectors=".weather"))
    judged = classify_change(answer(PAGE.format(1, 2, 1)), known, ruled)
    assert (judged.verdict, judged.magnitude, judged.kinds) == (UNKNOWN, -1.0, ChangeKind.NONE)
    assert classify_change(answer(PAGE.format(1, 3, 1)), known_after(judged, known), ruled).verdict == UNCHANGED
    assert classify_change(answer(PAGE.format(1, 1, 1)), known, ruled).verdict == UNCHANGED  # the bytes need no rules


@pytest.mark.parametrize("selector", ["..x", "p >", ":never(x)"])
def test_a_bad_selector_is_quoted(selector):
    with pytest.raises(ConfigError) as caught:
        IgnoreRules.parse(ignore_selectors=f".fine ;; {selector}")
    assert selector in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "(a+)+b",
        "(a|aa)*b",
        "(a|b|ab)*c",
        "(.*)*x",
        ".*.*.*x",
        "(a{0,99}){0,99}b",
        "(?:x?y?){30}z",
        "",
        "a*",
        "(?P<",
    ],
)
def test_a_pattern_that_may_run_away_is_quoted(pattern):
    with pytest.raises(ConfigError) as caught:
        checked(pattern)
    assert repr(pattern) in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d+ visitors",
        ".*sponsored.*",
        "(?i)updated: .{1,40}",
        "(?:Mon|Tue|Wed)day",
        r"v\d+(?:\.\d+)?",
        r"\bid=\w{8}\b",
    ],
)
def test_plain_patterns_pass(pattern):
    assert checked(pattern).pattern == pattern


@pytest.mark.parametrize("pattern", [".*b.*c", "a+a+b", "a.*a.*b", "(?:aa|a)a{0,20}a{0,20}b"])
def test_what_passes_ends_even_on_texts_made_against_it(pattern):
    text = "a" * 2 * LONGEST
    assert without_matches(checked(pattern), text) == text


@given(st.text("ab ", max_size=3000))
def test_long_texts_are_searched_piece_by_piece(text):
    assert without_matches(checked("b"), text) == text.replace("b", " ")


def test_no_rules_are_no_rules():
    assert IgnoreRules().of(URL) is NO_PAGE_RULES
    assert IgnoreRules.parse(" ;; \n") == IgnoreRules()
    assert NO_PAGE_RULES.number == 0
    assert IgnoreRules.parse(".a").of(URL).number != IgnoreRules.parse(".b").of(URL).number != 0
