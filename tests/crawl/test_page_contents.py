"""Captures read for their features: what is on a page, and what is new on it."""

import numpy as np
import pytest

from recrawl.model import Capture
from recrawl.parse.parse_pool import MIB, ParseLimits, ParsePool
from recrawl.predict.feature_extraction import page_features
from recrawl.predict.static_features import bucket
from recrawl.time import DAY
from recrawl.transfer import page_contents
from recrawl.transfer.page_contents import ContentReader, page_evidence, read_content

HOME = "https://www.a.test/"
PAGE = """<!doctype html><title>t</title><p>To be or not to be. Write to me@a.test, ME@a.test or you@b.test.
<img src=x.png><img src=y.png><table><tr><td>1</table><script>var hidden = 1</script>
<a href=/one>one</a> <a href=https://a.test/two#part>two</a> <a href=http://a.test/two>old two</a>
<a href=//c.test/>c</a>"""


def capture(body, *, url=HOME, time=0.0, status=200, head="Content-Type: text/html; charset=utf-8", **options):
    written = f"HTTP/1.1 {status} x\r\n{head}\r\n\r\n".encode()
    return Capture(url, time, status, written, body.encode(), **options)


def links(*targets):
    return " ".join(f'<a href="{target}">x</a>' for target in targets)


def test_what_is_on_a_page():
    found = read_content(capture(PAGE, head="Content-Type: text/html\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT"))
    counts = found.counts
    assert counts["content_size"] == len(PAGE.encode())
    assert (counts["images"], counts["tables"], counts["emails"]) == (2, 1, 2)
    # The two addresses of "two" are one page: keys leave the scheme out, and the first one written stands.
    assert (counts["internal_links"], counts["external_links"]) == (2, 1)
    assert counts["has_last_modified"] == 1
    assert 0 < counts["text_quality"] < 1
    assert "hidden" not in found.text
    assert counts["text_size"] == len(found.text)
    assert found.mime == bucket("text/html")


@pytest.mark.parametrize(
    "answer",
    [
        capture(PAGE, status=404),
        capture(PAGE, status=301),
        capture(PAGE, head="Content-Type: image/png"),
        capture(PAGE, truncated="length"),
        Capture(HOME, 0.0, 0, error="refused"),
    ],
)
def test_what_is_no_page(answer):
    assert read_content(answer) is None


@pytest.mark.parametrize("body", ["", "<", "\x00" * 50, "<a href='http://['>", "<p>" * 1000])
def test_odd_pages_are_read(body):
    assert read_content(capture(body)).counts["internal_links"] == 0


def test_new_links_are_those_the_look_before_did_not_have():
    urls = {7: HOME, 3: "https://www.a.test/one", 5: "https://www.a.test/two"}
    observations = [
        (7, capture(links("/one", "//b.test/"), time=1 * DAY)),
        (3, capture("<p>alone", url=urls[3], time=1 * DAY)),
        (7, capture(links("/two", "//b.test/", "//c.test/", "//d.test/"), time=2 * DAY)),
        (7, capture("gone", status=404, time=3 * DAY)),
        (7, capture(links("/two", "/one", "//b.test/"), time=4 * DAY)),
    ]
    evidence = page_evidence(urls, observations)
    assert evidence.page.tolist() == [3, 5, 7]
    seen = evidence.versions
    assert not seen.complete
    assert seen.page.tolist() == [3, 7, 7, 7]
    assert seen.time.tolist() == [1 * DAY, 1 * DAY, 2 * DAY, 4 * DAY]
    assert seen.new_internal.tolist() == [0, 0, 1, 1]
    assert seen.new_external.tolist() == [0, 0, 2, 0]
    assert seen.internal_links.tolist() == [0, 1, 1, 2]
    assert seen.external_links.tolist() == [0, 1, 3, 1]
    rows = zip(
        *(getattr(evidence.links, name).tolist() for name in ("source", "target", "added", "removed")), strict=True
    )
    assert sorted(rows) == [(7, 3, DAY, 2 * DAY), (7, 3, 4 * DAY, np.inf), (7, 5, 2 * DAY, np.inf)]
    assert evidence.links.internal.all()
    assert evidence.texts.last_of(np.array([3, 5, 7])) == ["alone", "", "x x x"]


def test_a_change_is_one_of_the_text():
    same, other = capture("<p>a<!-- 1 -->", time=2.0), capture("<p>b", time=3.0)
    evidence = page_evidence({1: HOME}, [(1, capture("<p>a", time=1.0)), (1, same), (1, other)])
    assert evidence.versions.changed.tolist() == [False, False, True]


def test_features_can_be_made_of_it():
    evidence = page_evidence({1: HOME}, [(1, capture(PAGE, time=DAY)), (1, capture(links("/x"), time=9 * DAY))])
    table = page_features(evidence, 10 * DAY)
    assert table.column("images").tolist() == [0.0]
    assert table.column("new_internal_1").tolist() == [1.0]
    assert table.column("images_1").tolist() == [2.0]


def test_nothing_captured_is_nothing_known():
    evidence = page_evidence({1: HOME}, [])
    assert (len(evidence.versions), len(evidence.links), len(evidence.texts)) == (0, 0, 0)


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12)
)
HOSTILE = {
    "text": capture("1:" * 3_000_000, head="Content-Type: text/plain", url=f"{HOME}text"),
    "numbers": capture("<p>" + "1:" * 3_000_000, url=f"{HOME}numbers"),
    "letters": capture("<p>" + "a" * 12_000_000, url=f"{HOME}letters"),  # as if an address of a mail were to follow
    "nested": capture("<div>" * 400_000, url=f"{HOME}nested"),
    "laughs": capture(f"{LAUGHS}]><x>&m;</x>", head="Content-Type: application/xhtml+xml", url=f"{HOME}laughs"),
}


def test_what_is_made_to_harm_costs_its_own_reading_and_nothing_else():
    """The budget is one CPU second; without a budget the letters alone take several."""
    urls = {number: one.url for number, one in enumerate(HOSTILE.values())} | {99: f"{HOME}good"}
    good = capture("<p>good " + "word " * 60_000, url=f"{HOME}good")  # too long to be read here
    observations = [*enumerate(HOSTILE.values()), (99, good)]
    with ParsePool(ParseLimits(cpu=1.0, memory=256 * MIB)) as pool:
        reader = ContentReader(pool)
        found = page_evidence(urls, observations, read=reader)
    assert 99 in found.versions.page.tolist()
    unread = dict(reader.unread)
    assert f"{HOME}letters" in unread
    assert reader.failures == len(unread) <= 3  # on any machine the letters, on a slow one others, too
    assert {0, 3}.isdisjoint(found.versions.page.tolist())  # no HTML, and what is told before it is parsed
    assert next(reader.sentences()).endswith("of pages could not be read:")


def test_a_page_that_our_own_code_fails_on_costs_no_other(monkeypatch):
    real = page_contents.text_quality

    def fails(text):
        if "poison" in text:
            raise OverflowError("poison")
        return real(text)

    monkeypatch.setattr(page_contents, "text_quality", fails)
    observations = [(1, capture("<p>poison")), (2, capture("<p>good", url=f"{HOME}good"))]
    with ParsePool(ParseLimits()) as pool:
        reader = ContentReader(pool)
        found = page_evidence({1: HOME, 2: f"{HOME}good"}, observations, read=reader)
    assert found.versions.page.tolist() == [2]
    assert reader.unread == [(HOME, "OverflowError('poison')")]
