"""What is noise is learned from looking twice, and only what is noise."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.detect import Standards, judge, known_after
from recrawl.detect.comparison import NEAR, Compared, link_kind
from recrawl.detect.learned_noise import (
    FAR_ENOUGH,
    FAR_LIMIT,
    FIRST_LOOKS,
    LOOKS_SHARE,
    NoiseBook,
    evidence,
    wants_second_look,
)
from recrawl.detect.second_look import looked_twice
from recrawl.model import ChangeKind, Verdict

HOUR = 3600.0


def load_sites() -> ModuleType:
    """The sites that the benchmark crawls too; its folder is no package."""
    path = Path(__file__).parents[2] / "benchmarks" / "noisy_sites.py"
    spec = spec_from_file_location("recrawl_noisy_sites", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sites = load_sites()
HOST, NOISY, QUIET, Crawl = sites.HOST, sites.NOISY, sites.QUIET, sites.Crawl


@pytest.mark.parametrize("site", [*NOISY, *QUIET], ids=lambda site: site.__name__)
def test_every_change_found_is_one_and_none_is_missed(site):
    crawl = Crawl(site)
    right, wrong, missed = sites.trial(crawl, sites.dice_of("edits"))
    assert missed == 0
    assert right > 20
    # Half of the requests show the notice: until two looks differed it may pass for a change.
    assert wrong <= (8 if site is sites.sometimes_a_notice else 0)
    assert crawl.looks <= FIRST_LOOKS + LOOKS_SHARE * crawl.visits + 1


@pytest.mark.parametrize("site", QUIET, ids=lambda site: site.__name__)
@pytest.mark.parametrize("looks_twice", [True, False])
def test_what_changes_often_is_not_masked(site, looks_twice):
    crawl = Crawl(site, looks_twice=looks_twice, pages=2)
    for number in range(30):
        crawl.round(number, {0, 1})
    assert crawl.book.mask(HOST) == frozenset()


@pytest.mark.parametrize(
    "site",
    [sites.query_count, sites.view_count, sites.related_box, sites.plain_counter],
    ids=lambda site: site.__name__,
)
def test_without_second_looks_what_differs_on_every_visit_is_learned(site):
    crawl = Crawl(site, looks_twice=False)
    sites.trial(crawl, sites.dice_of("edits"), rounds=6)
    found = [crawl.round(number, {2}) for number in range(6, 12)]
    assert found == [{2}] * 6


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sets(st.integers(0, 3)), min_size=2, max_size=12), st.sampled_from(QUIET))
def test_without_noise_nothing_is_masked(edits, site):
    crawl = Crawl(site, pages=4)
    for number, edited in enumerate(edits):
        found = crawl.round(number, edited)
        assert found == (edited if number else set())
    assert crawl.book.mask(HOST) == frozenset()


def test_the_very_first_meeting_with_noise_is_no_change():
    crawl = Crawl(sites.related_box, pages=1)
    crawl.round(0, set())
    judged = crawl.visit(0, HOUR)
    assert (judged.verdict, judged.kinds, judged.magnitude) == (Verdict.UNCHANGED, ChangeKind.CONTENT, 0.0)
    assert judged.fingerprint == b""


def test_a_change_beside_noise_is_found_at_the_first_meeting():
    crawl = Crawl(sites.related_box, pages=1)
    crawl.round(0, set())
    assert crawl.round(1, {0}) == {0}


@pytest.mark.parametrize(
    ("paragraphs", "verdict"), [(2, Verdict.UNCHANGED), (1, Verdict.CHANGED)], ids=["only noise", "a paragraph went"]
)
def test_boxes_whose_words_come_again_with_other_numbers(paragraphs, verdict):
    """Both looks have the same words with other numbers, the version before had other words."""
    pages = [
        "".join(f"<p>{sites.prose(place)}</p>" for place in range(count))
        + f"<div class=offers>{''.join(f'<p>{word} now {price} euro</p>' for word, price in offers)}</div>"
        for count, offers in (
            (2, [("Hats", 1.5), ("Coats", 2.5), ("Socks", 3.5)]),
            (paragraphs, [("Shoes", 4.5), ("Shoes", 5.5), ("Belts", 6.5)]),
            (paragraphs, [("Shoes", 7.5), ("Belts", 8.5), ("Shoes", 9.5)]),
        )
    ]
    before, first, second = (
        sites.answer("http://x/", time, html) for time, html in zip((0.0, HOUR, HOUR + 20), pages, strict=True)
    )
    known = known_after(judge(before, None), None)
    once, _ = looked_twice(first, second, known, Standards())
    assert once.verdict == verdict


def test_a_second_look_that_fails_leaves_the_first_as_it_was():
    crawl = Crawl(sites.quote, pages=1)
    crawl.round(0, set())
    first, known = crawl.capture(0, HOUR), crawl.known[0]
    failed = replace(first, status=503, time=HOUR + 20)
    once, again = looked_twice(first, failed, known, Standards())
    assert once == judge(first, known)
    assert again.verdict == Verdict.UNKNOWN


def test_a_page_that_is_gone_is_not_called_noise():
    crawl = Crawl(sites.quiet, pages=1)
    crawl.round(0, set())
    gone = replace(crawl.capture(0, HOUR), status=404)
    once, again = looked_twice(gone, replace(gone, time=HOUR + 20), crawl.known[0], Standards())
    assert (once.verdict, once.kinds) == (Verdict.CHANGED, ChangeKind.EXISTENCE)
    assert again.verdict == Verdict.UNCHANGED


def told(*comparisons: tuple[float, bool], page: int = 1) -> NoiseBook:
    """A book on part 5 of one page, from gaps and whether it differed."""
    none, part = frozenset[int](), frozenset({5})
    rows = [Compared(part if differed else none, none if differed else part, gap) for gap, differed in comparisons]
    return NoiseBook.concat(evidence(HOST, page, row) for row in rows)


@pytest.mark.parametrize(
    ("book", "is_noise"),
    [
        (told((NEAR / 2, True)), False),
        (told((NEAR / 2, True), (NEAR / 2, True)), True),
        (told(*[(NEAR / 2, True)] * 2, *[(NEAR / 2, False)] * 8), True),
        (told(*[(NEAR / 2, True)] * 2, *[(NEAR / 2, False)] * 9), False),
        (told(*[(HOUR, True)] * 50), False),
        (NoiseBook.concat(told(*[(HOUR, True)] * 4, page=page) for page in range(5)), True),
        (NoiseBook.concat(told(*[(2 * FAR_LIMIT, True)] * 4, page=page) for page in range(5)), False),
        (NoiseBook.concat(told(HOUR and (HOUR, True), page=page) for page in range(FAR_ENOUGH - 1)), False),
        (
            NoiseBook.concat(
                [told(*[(HOUR, True)] * 9, page=page) for page in range(3)] + [told(*[(HOUR, False)] * 2)]
            ),
            False,
        ),
        (
            NoiseBook.concat([told(*[(HOUR, True)] * 9, page=page) for page in range(3)] + [told((NEAR / 2, False))]),
            False,
        ),
    ],
)
def test_when_a_part_is_noise(book, is_noise):
    assert (book.mask(HOST) == {5}) == is_noise
    assert book.mask(HOST + 1) == frozenset()
    assert book.watched(HOST) == {5}


@given(st.integers(0, 40), st.integers(3, 60))
def test_a_book_that_is_cut_keeps_what_is_noise(met_once, most):
    noise = NoiseBook.concat([told((20.0, True)), told((20.0, True))])
    others = [evidence(HOST, 1, Compared(frozenset({1000 + part}), frozenset(), HOUR)) for part in range(met_once)]
    often = [evidence(HOST, 1, Compared(frozenset({9}), frozenset(), HOUR))] * 3
    book = NoiseBook.concat([noise, *others, *often])
    cut = book.at_most(most)
    assert len(cut) == min(len(book), most)
    assert cut.mask(HOST) == book.mask(HOST) != frozenset()
    assert 9 in cut.watched(HOST)
    assert (np.diff(cut.part) > 0).all()


def test_noise_is_unlearned():
    book = told((20.0, True), (20.0, True))
    assert book.mask(HOST) == {5}
    assert book.plus(told(*[(20.0, False)] * 9)).mask(HOST) == frozenset()


def test_looks_grow_with_the_logarithm_of_what_differed():
    book, looks = NoiseBook.empty(), 0
    for _ in range(1000):
        seen = told((HOUR, True))
        if wants_second_look(book.plus(seen), HOST, Compared(frozenset({5}), frozenset(), HOUR), looks=0, visits=0):
            looks += 1
            book = book.plus(told((20.0, False)))
        book = book.plus(seen)
    assert 8 <= looks <= 12


@pytest.mark.parametrize(
    ("compared", "looks", "wanted"),
    [
        (None, 0, False),
        (Compared(frozenset({5}), frozenset(), HOUR), 0, True),
        (Compared(frozenset({5}), frozenset(), HOUR), FIRST_LOOKS, False),
        (Compared(frozenset({5}), frozenset(), NEAR / 2), 0, True),
        (Compared(frozenset(), frozenset({5}), HOUR), 0, False),
    ],
)
def test_when_a_second_look_is_wanted(compared, looks, wanted):
    assert wants_second_look(NoiseBook.empty(), HOST, compared, looks=looks, visits=0) == wanted


rows = st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 99), st.booleans(), st.sampled_from([10.0, HOUR]))


@given(st.lists(rows, max_size=30), st.integers(0, 30))
def test_evidence_adds_up_in_any_portions(told_rows, cut):
    def book(some):
        none = frozenset[int]()
        return NoiseBook.concat(
            evidence(
                host,
                page,
                Compared(frozenset({part}) if differed else none, none if differed else frozenset({part}), gap),
            )
            for host, part, page, differed, gap in some
        )

    whole, parts = book(told_rows), book(told_rows[cut:]).plus(book(told_rows[:cut]))
    for name in NoiseBook.__slots__:
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    assert (whole.near + whole.far).sum() == len(told_rows)
    assert (np.bitwise_count(whole.pages) <= whole.near + whole.far).all()


def test_links_with_a_session_are_learned_only_from_looks_moments_apart():
    crawl = Crawl(sites.session_links, pages=3)
    sites.trial(crawl, sites.dice_of("edits"))
    kinds = {link_kind("example,site)/home?s=1"), link_kind("example,site)/map?s=1")}
    assert crawl.book.mask(HOST) == kinds
    rows = crawl.book.of(HOST)
    assert rows.far.sum() == 0
    assert crawl.round(99, set()) == set()
