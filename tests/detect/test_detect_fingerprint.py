"""Fingerprints: what is stored of a version must be the same tomorrow, on any machine, and small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.detect import ChangeCriteria, PageState, classify_change, read_html
from recrawl.detect.comparison import compared_parts, differs, nothing_differed
from recrawl.detect.fingerprint import MOST_PARTS, Fingerprint, folded
from recrawl.detect.noise.noise_keys import Difference, noise_key, split_key
from recrawl.detect.text.shingles import SAMPLE, shingles, similarity
from recrawl.detect.text.text_parts import BETWEEN, PageParts, runs_of, template_of, text_in_lines
from recrawl.model import Capture
from recrawl.model.compiled import can_compile

URL = "http://example.org/"
PAGE = """<!doctype html><title>Ferries</title><body class="page-17"><nav id=menu><a href=/>Home</a></nav>
<div class="entry post-17"><h1>Ferries</h1><p>The first leaves at seven.</p><p>The last is  <b>never</b> late.</p></div>
<footer><p class=count>You are guest 10,293 today</p></footer>"""
PACKED = (
    "010000000000000440000000000900060501007aa8001ed299b56c90f2c8a85765bfb4d42e62b62f3e31c943c54ecaef3eb8da7000e5e802e9"
    "6e2f516a05a444fc70e3c8bef10f6c288eac000102030304a7952a36eea3e4d1a7952a36e59eac0e5bd3bd692e293d6d053a2ef705"
)


def fingerprint(html: str, time: float = 2.5) -> Fingerprint:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    found = Fingerprint.unpack(classify_change(Capture(URL, time, 200, head, html.encode()), None).fingerprint)
    assert found is not None
    return found


def test_the_bytes_are_these_forever():
    packed = fingerprint(PAGE).pack()
    assert packed.hex() == PACKED


def test_a_page_in_parts():
    text = read_html(PAGE, URL).parts
    assert text.said == [
        "Ferries",
        "Home",
        "Ferries",
        "The first leaves at seven.",
        "The last is never late.",
        "You are guest 10,293 today",
    ]
    assert text.path[3] == text.path[4]
    assert len(set(text.path)) == 5
    assert [bool(template) for template in text.parts().template] == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("<p class='a b'>x</p>", "<p class='b  a'>x</p>", True),
        ("<p id=post-1>x</p>", "<p id=post-22>x</p>", True),
        ("<body class=home><p>x</p>", "<p>x</p>", True),
        ("<div><p>x</p></div>", "<p>x</p>", False),
        ("<p class=a>x</p>", "<p class=b>x</p>", False),
        ("<p><b class=c>x</b></p>", "<p>x</p>", True),
        ("<p>x</p>", "<h1>Above</h1><p>x</p>", True),
        ("<p title='<div>'>x</p>", "<p>x</p>", True),
        ("<!-- <div> --><p>x</p>", "<p>x</p>", True),
    ],
)
def test_a_path_is_where_a_part_stands_without_its_position(one, other, same):
    paths = [read_html(html, URL).parts.path[-1] for html in (one, other)]
    assert (paths[0] == paths[1]) == same


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_any_page_has_the_text_it_had(html):
    page = read_html(html, URL)
    assert BETWEEN not in page.text
    assert all(said == " ".join(said.split()) != "" for said in page.parts.said)


@given(st.text(max_size=100))
def test_any_text_has_lines(text):
    assert all(text_in_lines(text, lambda lines: " ".join(lines.split())).said)


@given(st.text("<>/abdivp \"='!-&;", max_size=80))
def test_any_markup_has_runs(html):
    runs = runs_of(html)
    assert len(runs.path) == len(runs.html)


numbers = st.integers(0, 2**32 - 1)
parts = st.lists(st.tuples(st.integers(0, 60), st.one_of(st.just(0), numbers), numbers), max_size=600).map(
    lambda rows: PageParts(*(list(column) for column in zip(*rows, strict=True))) if rows else PageParts([], [], [])
)


@given(parts, st.lists(numbers, max_size=SAMPLE), st.floats(0, 1e11), numbers)
def test_what_is_packed_comes_out_again(some, sample, time, rules):
    few, whole = folded(some)
    one = Fingerprint(time, rules, np.unique(np.array(sample, np.uint32)), few, whole)
    packed = one.pack()
    again = Fingerprint.unpack(packed)
    assert again is not None
    assert len(packed) <= 4096
    assert (again.time, again.rules, again.folded) == (time, rules, whole)
    assert again.sample.tolist() == one.sample.tolist()
    assert [list(column) for column in again.parts] == [list(column) for column in few]


@pytest.mark.parametrize("data", [b"", b"\x00" * 40, b"\x01", b"\x63" * 99])
def test_bytes_of_another_format_are_passed_over(data):
    assert Fingerprint.unpack(data) is None
    page = Capture(URL, 0.0, 200, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"<p>two")
    first = classify_change(page, None)
    judged = classify_change(
        page, PageState(first.validators, fingerprint=data), ChangeCriteria(watched=frozenset({5}))
    )
    assert judged.compared is None


@given(parts)
def test_folding_keeps_what_is_rare_and_notices_every_change(some):
    few, whole = folded(some)
    assert len(few.path) <= MOST_PARTS
    assert (whole == frozenset()) == (few == some)
    rare = [path for path in set(some.path) if list(some.path).count(path) == 1 and path not in whole]
    assert set(rare) <= set(few.path) or 0 in whole
    for row in range(0, len(some.content), 97):
        other = list(some.content)
        other[row] ^= 1
        assert folded(PageParts(some.path, some.template, other))[0].content != few.content


def test_pages_of_ever_new_paths_are_folded_too():
    many = PageParts(list(range(1, 501)), [0] * 500, list(range(500)))
    few, whole = folded(many)
    assert (len(few.path), whole) == (MOST_PARTS, {0})


def page(*items: str, count: int = 1, motto: str = "Be kind.") -> Fingerprint:
    listed = "".join(f"<li>{item}</li>" for item in items)
    return fingerprint(f"<p class=motto>{motto}</p><ul class=news>{listed}</ul><p>Guest number {count}</p>")


def keys(of: Fingerprint) -> dict[str, int]:
    """Of the page above: its motto, the items of its list at each position, its counter, and an item with a number."""
    news = of.parts.path[1]
    return {
        "motto": noise_key(of.parts.path[0], Difference.WORDS, 1),
        "first": noise_key(news, Difference.WORDS, 1),
        "second": noise_key(news, Difference.WORDS, 2),
        "last": noise_key(news, Difference.WORDS, -1),
        "list": noise_key(news, Difference.ITEMS),
        "count": noise_key(of.parts.template[-1], Difference.NUMBERS, 1),
        "item": noise_key(template_of(news, "Item 1"), Difference.NUMBERS, 1),
    }


@pytest.mark.parametrize(
    ("before", "after", "differing"),
    [
        (page("a", "b", "c"), page("a", "b", "c"), set()),
        (page("a", "b", "c"), page("d", "a", "b"), set()),
        (page("a", "b", "c"), page("a", "b", "d"), {"last"}),
        (page("a", "b", "c"), page("x", "y", "z"), {"first", "second", "last"}),
        (page("a", "b", "c"), page("c", "a", "b"), {"list"}),
        (page("a"), page("x", "y", "z"), {"first", "list"}),
        (page("a", count=1), page("a", count=2), {"count"}),
        (page("a", motto="Be kind."), page("a", motto="Be brave."), {"motto"}),
        (page("Item 1", "b"), page("Item 2", "b"), {"item"}),
    ],
)
def test_what_a_comparison_teaches(before, after, differing):
    of = keys(before)
    told = compared_parts(before, after, frozenset(of.values()))
    assert told.differed == {of[name] for name in differing}
    stayed = {of[name] for name in ("motto", "count")} - told.differed
    assert stayed <= told.same
    assert not told.same & told.differed
    assert differs(before, after, frozenset()) == (before.pack() != after.pack())


def test_what_stayed_is_told_by_position():
    of = keys(page("a", "b", "c"))
    told = compared_parts(page("a", "b", "c"), page("a", "b", "d"), frozenset(of.values()))
    assert {of["first"], of["second"]} <= told.same
    assert of["list"] not in told.same  # it neither stayed nor is it another list
    assert nothing_differed(page("a", "b", "c"), frozenset(of.values()), 1.0).same == frozenset(of.values()) - {
        of["item"]
    }


def test_a_mask_hides_a_part_and_nothing_else():
    before, after = page("a", motto="Be kind.", count=3), page("a", motto="Be brave.", count=4)
    motto, count = (keys(before)[name] for name in ("motto", "count"))
    assert differs(before, after, frozenset({motto}))
    assert differs(before, after, frozenset({count}))
    assert not differs(before, after, frozenset({motto, count}))
    assert differs(before, page("b", motto="Be brave.", count=4), frozenset({motto, count}))


def test_a_mask_holds_for_one_position_and_one_kind_of_difference():
    before = page("a", "b", "c", count=3)
    of = keys(before)
    assert not differs(before, page("a", "b", "x", count=3), frozenset({of["last"]}))
    assert differs(before, page("a", "x", "c", count=3), frozenset({of["last"]}))
    assert not differs(before, page("a", "b", "c", count=9), frozenset({of["count"]}))
    other = fingerprint("<p class=motto>Be kind.</p><ul class=news><li>a<li>b<li>c</ul><p>No guests today</p>")
    assert differs(before, other, frozenset({of["count"]}))


def test_what_comes_and_goes_is_hidden_only_where_it_is_missing():
    """Its words are compared where both versions have it."""
    with_notice, without = fingerprint("<p>Text.<div class=n>Buy!</div>"), fingerprint("<p>Text.")
    [key] = compared_parts(without, with_notice, frozenset()).differed
    assert split_key(key).kind == Difference.PRESENCE
    mask = frozenset({key})
    assert not differs(without, with_notice, mask)
    assert not differs(with_notice, without, mask)
    assert differs(with_notice, fingerprint("<p>Text.<div class=n>Sell!</div>"), mask)


def test_positions_of_a_list_that_was_folded_are_not_hidden():
    """All of it lies under one number: a mask for its first item must not hide the rest."""
    long = [f"item number {word} of all" for word in range(400)]
    before, after = (page(*items) for items in (long, [*long[:300], "another", *long[301:]]))
    path = before.parts.path[1]
    assert path in before.folded
    assert differs(before, after, frozenset({noise_key(path, Difference.WORDS, 1)}))
    assert not differs(before, after, frozenset({noise_key(path, Difference.ITEMS)}))


@pytest.mark.skipif(not can_compile(), reason="numba is not installed")
@settings(deadline=None)  # the first call compiles
@given(st.text(max_size=400) | st.lists(st.sampled_from(["a", "bb", "ccc", "é" * 70, "\n"])).map(" ".join))
def test_compiled_code_finds_the_same_shingles(text):
    for most in (3, SAMPLE):
        assert shingles(text, most).tolist() == shingles(text, most, use_kernels=True).tolist()


def test_the_sample_tells_how_much_of_a_long_text_differs():
    rng, errors = np.random.default_rng(4), []
    for _ in range(40):
        words = rng.integers(0, 5000, 3000).astype(str)
        edited = words.copy()
        edited[rng.integers(0, 3000, 30)] = "edited"
        texts = " ".join(words), " ".join(edited)
        exact = similarity(*(shingles(text, 10_000) for text in texts), most=10_000)
        errors.append(similarity(*(shingles(text, SAMPLE) for text in texts), most=SAMPLE) - exact)
    assert abs(float(np.mean(errors))) < 0.015
    assert float(np.std(errors)) < 0.04
