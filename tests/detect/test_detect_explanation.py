"""What people are told of a verdict is what the judge looked at."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.detect import ChangeCriteria, read_html
from recrawl.detect.change_criteria import IgnoreRules
from recrawl.detect.comparison import PartComparison
from recrawl.detect.explanation import explain, reasons
from recrawl.detect.noise.learned_noise import NoiseEvidence, evidence
from recrawl.detect.noise.noise_keys import Difference, noise_key
from recrawl.detect.noise.text_noise import noisy_pieces, without_noise
from recrawl.detect.text.text_parts import template_of
from recrawl.model import Capture, Verdict


def page(text: str, mime: str = "text/html", status: int = 200) -> Capture:
    head = f"HTTP/1.1 {status} OK\r\nContent-Type: {mime}\r\n\r\n".encode()
    return Capture("http://x.example/", 0.0, status, head, text.encode())


def test_a_clock_is_named_and_no_change():
    told = explain(page("<p>Hello.<p>It is 09:14:07"), page("<p>Hello.<p>It is 10:00:00"))
    assert told.judgement.verdict == Verdict.UNCHANGED
    assert (told.same_bytes, told.similarity, told.diff()) == (False, 1.0, [])
    assert told.after.noise == (("clock with seconds", "10:00:00"),)
    assert dict(reasons(told))["noise"] == "1 piece left out"
    assert dict(reasons(told))["content"].startswith("the same")


def test_a_sentence_that_changed_is_shown_as_a_sentence():
    told = explain(page("<p>All is well. We open at nine."), page("<p>All is well. We open at ten."))
    assert told.judgement.verdict == Verdict.CHANGED
    assert told.diff(0)[1:] == ["-We open at nine.", "+We open at ten."]


def test_links_that_came_and_went_are_named():
    told = explain(page("<a href=/a>one</a><a href=/b>two</a>"), page("<a href=/b>one</a><a href=/c>two</a>"))
    assert (told.links_added, told.links_removed) == (("http://x.example/c",), ("http://x.example/a",))
    assert ("links", "1 added, 1 removed") in reasons(told)


def test_data_is_shown_in_its_canonical_form():
    told = explain(
        page('{"b": 1, "a": {"d": 2}}', "application/json"), page('{"a": {"d": 3}, "b": 1}', "application/json")
    )
    assert told.diff(0)[1:] == ['-  "d": 2', '+  "d": 3']


@pytest.mark.parametrize("mime", ["image/png", "text/html", "application/json", "text/turtle", ""])
def test_the_same_bytes_are_told_as_the_same(mime):
    told = explain(page("<p>hi", mime), page("<p>hi", mime))
    assert told.same_bytes
    assert told.judgement.verdict == Verdict.UNCHANGED
    assert told.diff() == []
    assert dict(reasons(told))["bytes"] == "the same 5"


def test_what_was_learned_to_be_noise_is_named_with_its_evidence():
    pages = [page(f"<p>Text, and more of it.</p><p>Guest number {number}") for number in (1, 2)]
    part = template_of(read_html("<p>Text.", "http://x.example/").parts.path[0], "Guest number 1")
    key = noise_key(part, Difference.NUMBERS, -1)
    observations = [
        evidence(7, page, 60.0 * page, PartComparison(frozenset({key}), frozenset(), 20.0)) for page in range(1, 6)
    ]
    noise = NoiseEvidence.concat(observations).noise_of(7)
    told = explain(*pages, ChangeCriteria(mask=noise.mask_of(1)), noise, 1)
    assert told.judgement.verdict == Verdict.UNCHANGED
    why = "learned: it differed in 5 of the last 5 confirmations on this host"
    assert told.after.left_out == (("Guest number 2", why, key),)
    assert (told.diff(), told.after.lines) == ([], ("Text, and more of it.",))
    assert dict(reasons(told))["not compared"] == "1 part"


def test_what_rules_leave_out_is_named():
    standards = ChangeCriteria(rules=IgnoreRules.parse(".weather", "late"))
    told = explain(*(page(f"<p>Well {word}.</p><p class=weather>{word}") for word in ("late", "rain")), standards)
    assert told.diff(0)[1:] == ["-Well .", "+Well rain."]
    assert [one.text for one in told.before.left_out] == ["Well late.", "late"]
    assert [one.text for one in told.after.left_out] == ["rain"]


def test_magnitude_is_told_beside_the_threshold():
    told = explain(page("<p>One"), page("<p>Two"), ChangeCriteria(min_change=0.25))
    assert dict(reasons(told))["magnitude"] == "1.000; above detect.min_change = 0.25"
    assert dict(reasons(explain(page("<p>One"), page("<p>Two"))))["magnitude"].endswith("any visible difference counts")


def test_a_page_that_is_gone_is_explained_too():
    told = explain(page("<p>hi"), page("not here", status=404))
    assert told.judgement.verdict == Verdict.CHANGED


@settings(max_examples=50)
@given(st.text(), st.text(), st.sampled_from(["text/html", "application/json", "text/plain", "text/csv"]))
def test_any_two_texts_can_be_explained(one, other, mime):
    told = explain(page(one, mime), page(other, mime))
    assert reasons(told)
    assert told.same_bytes == (one == other)


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            ["at 09:14:07", "2026-11-15 09:14:07 UTC", "visitors: 12", "3 days ago", "token: abcd1234", "hello", "9:00"]
        ),
        max_size=8,
    )
)
def test_what_is_named_as_noise_is_what_is_cut(pieces):
    text = " and ".join(pieces)
    left = without_noise(text)
    assert sum(len(piece.replace(" ", "")) for _, piece in noisy_pieces(text)) == len(text.replace(" ", "")) - len(
        left.replace(" ", "")
    )
