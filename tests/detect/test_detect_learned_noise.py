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
    NEAR_ENOUGH,
    HostNoise,
    NoiseEvidence,
    audit_share,
    evidence,
    masked_parts,
    wants_second_look,
)
from recrawl.detect.noise_keys import Difference, hidden_rows, noise_key, split_key, without_largest
from recrawl.detect.parts import Parts
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
    # Where the noise happens to be the same in both looks it may pass for a change, until it is learned.
    assert wrong <= {sites.sometimes_a_notice: 8, sites.quote: 4, sites.box_of_few: 4}.get(site, 0)
    assert crawl.looks <= 0.25 * crawl.visits + FIRST_LOOKS


@pytest.mark.parametrize("site", QUIET, ids=lambda site: site.__name__)
@pytest.mark.parametrize("looks_twice", [True, False])
def test_what_changes_often_is_not_masked(site, looks_twice):
    crawl = Crawl(site, looks_twice=looks_twice, pages=2)
    for number in range(30):
        crawl.round(number, {0, 1})
    assert crawl.noise.masked == 0


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
    assert crawl.noise.masked == 0


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


KEY = noise_key(5, Difference.WORDS, 1)


def told(*comparisons: tuple[float, bool], page: int = 1, start: float = 0.0) -> NoiseEvidence:
    """Evidence on one part of one page, from gaps and whether it differed, each in another minute."""
    none, part = frozenset[int](), frozenset({KEY})
    return NoiseEvidence.concat(
        evidence(
            HOST,
            page,
            start + 60.0 * minute,
            Compared(part if differed else none, none if differed else part, gap),
            HostNoise(paged={page: part}),
        )
        for minute, (gap, differed) in enumerate(comparisons)
    )


def on_pages(pages: int, *comparisons: tuple[float, bool]) -> NoiseEvidence:
    """The same on several pages, in other minutes."""
    return NoiseEvidence.concat(told(*comparisons, page=page, start=600.0 * page) for page in range(1, pages + 1))


NOW, LATER = NEAR / 2, HOUR


@pytest.mark.parametrize(
    ("found", "is_noise"),
    [
        (on_pages(2, (NOW, True), (NOW, True)), False),  # of too few pages
        (on_pages(3, (NOW, True)), False),  # too few confirmations
        (on_pages(4, (NOW, True)), True),
        (NoiseEvidence.concat(told((NOW, True), page=page) for page in range(1, 9)), False),  # all in one minute
        (on_pages(4, (NOW, True), (NOW, True), (NOW, False)), True),
        (on_pages(4, (NOW, True), (NOW, False)), False),
        (on_pages(4, (NOW, True), (NOW, False), (NOW, False), *[(LATER, True), (LATER, False)] * 3), True),
        (on_pages(4, (NOW, True), *[(LATER, False)] * 4), False),  # it no longer differs from visit to visit
        (told(*[(NOW, True)] * 9), False),  # one page that ticks
        (NoiseEvidence.concat([on_pages(4, (NOW, True))] + [told((NOW, False), page=p) for p in range(20, 30)]), False),
        (on_pages(9, (LATER, True)), False),  # nobody looked twice
    ],
)
def test_when_a_part_is_noise_of_its_host(found, is_noise):
    assert (found.noise_of(HOST).mask == {KEY}) == is_noise
    assert found.noise_of(HOST + 1).mask == frozenset()
    assert found.noise_of(HOST).watched == {KEY}


@pytest.mark.parametrize(
    ("found", "is_noise"),
    [
        (on_pages(5, *[(LATER, True)] * 4), True),
        (on_pages(5, *[(2 * FAR_LIMIT, True)] * 4), False),
        (on_pages(FAR_ENOUGH - 1, (LATER, True)), False),
        (on_pages(2, *[(LATER, True)] * 9), False),
        (on_pages(3, *[(LATER, True)] * 9, *[(LATER, False)] * 2), False),
        (on_pages(3, *[(LATER, True)] * 9, (NOW, False)), False),
    ],
)
def test_archives_without_confirmations_have_noise_that_differs_on_every_visit(found, is_noise):
    assert (found.noise_of(HOST, unconfirmed=True).mask == {KEY}) == is_noise
    assert found.noise_of(HOST).mask == frozenset()


def test_a_page_that_ticks_is_masked_alone():
    noise = told(*[(NOW, True)] * NEAR_ENOUGH, page=3).noise_of(HOST)
    assert (noise.mask_of(3), noise.mask_of(4), noise.masked) == ({KEY}, frozenset(), 1)
    assert masked_parts(noise) == [(3, KEY, split_key(KEY))]
    assert noise.why(KEY, 3) == "learned: it differed in 4 of the last 4 confirmations on this page"
    assert told(*[(NOW, True)] * NEAR_ENOUGH, *[(NOW, False)] * 3, page=3).noise_of(HOST).mask_of(3) == frozenset()
    shuffled = [(NOW, True), (NOW, False), (LATER, True), (LATER, False)]  # two links in any order
    assert told(*shuffled * 5, page=3).noise_of(HOST).mask_of(3) == {KEY}


def test_a_page_that_stays_keeps_what_is_noise_elsewhere():
    host = on_pages(4, *[(NOW, True)] * 3)
    noise = host.plus(told(*[(NOW, False)] * 3, page=9)).noise_of(HOST)
    assert noise.mask == noise.mask_of(1) == noise.mask_of(8) == {KEY}
    assert noise.mask_of(9) == frozenset()


def test_noise_is_withdrawn_when_confirmations_agree():
    found, looks = NoiseEvidence.empty(), 0
    for page in range(1, 90):
        more = Compared(frozenset({KEY}), frozenset(), NOW)
        found = found.plus(evidence(HOST, page % 4 + 1, 60.0 * page, more, found.noise_of(HOST)))
    assert found.noise_of(HOST).mask == {KEY}
    while found.noise_of(HOST).mask:
        found = found.plus(told((NOW, False), page=looks % 4 + 1))
        looks += 1
    assert 3 <= looks <= 12
    assert found.noise_of(HOST).masked == 0


def test_noise_is_withdrawn_when_it_stops_differing_from_visit_to_visit():
    found, visits = on_pages(4, *[(NOW, True), (LATER, True)] * 4), 0
    while found.noise_of(HOST).mask:
        found = found.plus(told((LATER, False), page=visits % 4 + 1))
        visits += 1
    assert visits < 300


def test_what_is_withdrawn_needs_evidence_of_its_own_again():
    found = on_pages(4, (NOW, True), (NOW, True))
    for turn in range(60):
        found = found.plus(told((NOW, False), page=turn % 4 + 1))
    for turn in range(3):
        assert found.noise_of(HOST).masked == 0
        found = found.plus(told((NOW, True), page=turn + 1, start=9000.0 + 600.0 * turn))
    assert found.noise_of(HOST).masked == 0


def test_content_that_changes_every_half_minute_is_no_noise():
    """It differs on every visit, and in a fifth of the confirmations."""
    chance, masked, visits = sites.dice_of("half a minute"), 0, 0
    for _ in range(20):
        found = NoiseEvidence.empty()
        for visit in range(60):
            page, time = visit % 11 + 1, 60.0 * visit
            found = found.plus(told((LATER, True), page=page, start=time))
            found = found.plus(told((NOW, bool(chance.random() < 0.2)), page=page, start=time))
            masked, visits = masked + found.noise_of(HOST).masked, visits + 1
    assert masked <= 0.03 * visits
    assert found.noise_of(HOST).content == {KEY}


@given(st.integers(0, 40), st.integers(3, 60))
def test_evidence_that_is_cut_keeps_what_is_noise(met_once, most):
    others = [
        evidence(HOST, 1, 0.0, Compared(frozenset({noise_key(99 + part, Difference.WORDS)}), frozenset(), HOUR))
        for part in range(met_once)
    ]
    found = NoiseEvidence.concat([told(*[(NOW, True)] * 4), *others])
    cut = found.take(found.kept(most))
    assert len(cut) == min(len(found), most)
    assert cut.noise_of(HOST).mask_of(1) == found.noise_of(HOST).mask_of(1) == {KEY}
    assert (np.diff(cut.part[cut.page == 0]) > 0).all()


def test_looks_grow_with_the_logarithm_of_what_differed():
    found, looks = NoiseEvidence.empty(), 0
    for _ in range(60):
        found = found.plus(told((LATER, True)))
        compared = Compared(frozenset({KEY}), frozenset(), HOUR)
        if wants_second_look(found.noise_of(HOST), 1, compared, looks=0, visits=0):
            looks += 1
            found = found.plus(told((NOW, False)))
    assert 5 <= looks <= 8


@pytest.mark.parametrize(
    ("compared", "looks", "wanted"),
    [
        (None, 0, False),
        (Compared(frozenset({KEY}), frozenset(), HOUR), 0, True),
        (Compared(frozenset({KEY}), frozenset(), HOUR), FIRST_LOOKS, False),
        (Compared(frozenset({KEY}), frozenset(), NEAR / 2), 0, True),
        (Compared(frozenset(), frozenset({KEY}), HOUR), 0, False),
    ],
)
def test_when_a_second_look_is_wanted(compared, looks, wanted):
    noise = NoiseEvidence.empty().noise_of(HOST)
    assert wants_second_look(noise, 1, compared, looks=looks, visits=0) == wanted


def test_a_suspect_has_confirmations_left_when_others_have_none():
    noise, compared = told((NOW, True)).noise_of(HOST), Compared(frozenset({KEY}), frozenset(), HOUR)
    assert wants_second_look(noise, 1, compared, looks=FIRST_LOOKS, visits=0)
    assert not wants_second_look(noise, 1, compared, looks=2 * FIRST_LOOKS, visits=0)


def test_audits_never_stop():
    """However much evidence there is, a share of what is hidden and of what is found goes on to be confirmed."""
    noisy = on_pages(9, *[(NOW, True)] * 99).noise_of(HOST)
    settled = on_pages(9, *[(NOW, False), (LATER, True)] * 99).noise_of(HOST)
    differed = Compared(frozenset({KEY}), frozenset(), HOUR)
    assert noisy.mask == {KEY}
    assert audit_share(noisy, 1, differed, changed=False) == 0.05
    assert audit_share(settled, 1, differed, changed=True) == 0.02
    young = on_pages(4, (NOW, True)).noise_of(HOST)
    assert audit_share(young, 1, differed, changed=False) == 0.25
    assert audit_share(noisy, 1, Compared(frozenset(), frozenset({KEY}), HOUR), changed=False) == 0.0


@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.integers(0, 2), st.integers(1, 60)), min_size=1, max_size=20),
    st.sets(st.integers(0, 2), min_size=1),
)
def test_a_mask_never_hides_most_of_a_page(rows, masked):
    parts = Parts([path + 7 for path, _, _ in rows], [number * 99 for _, number, _ in rows], [0] * len(rows))
    lengths = [length for _, _, length in rows]
    kinds = (Difference.ITEMS, Difference.PRESENCE, Difference.WORDS)
    mask = frozenset(
        noise_key(path + 8, kind, 1 if kind == Difference.WORDS else 0) for path in masked for kind in kinds
    )
    left = without_largest(parts, lengths, mask, 0.5)
    assert left <= mask
    hidden = sum(length for length, is_hidden in zip(lengths, hidden_rows(parts, left), strict=True) if is_hidden)
    assert hidden <= 0.5 * sum(lengths)
    assert without_largest(parts, lengths, mask, 1.0) == mask


@pytest.mark.parametrize(("most", "verdict"), [(0.5, Verdict.CHANGED), (1.0, Verdict.UNCHANGED)])
def test_a_page_that_is_all_noise_changes_unless_one_wants_otherwise(most, verdict):
    pages = [
        sites.answer("http://x/", time, f"<h1>Now</h1><p>{sites.prose(time)}</p>") for time in (0.0, HOUR, HOUR + 9)
    ]
    known = known_after(judge(pages[0], None), None)
    once, again = looked_twice(pages[1], pages[2], known, Standards(most_masked=most))
    assert once.verdict == verdict
    assert again.compared.fresh > 0.5
    mask = again.compared.differed
    assert mask
    assert judge(pages[1], known, Standards(mask=mask, most_masked=most)).verdict == verdict


def test_a_page_that_loses_most_of_its_text_changed_though_that_was_noise():
    """What is left is a small part in the place of the text."""
    text = " ".join(sites.prose(number) for number in range(9))
    pages = [f"<h1>Now</h1><ul><li>One item of a list</ul><p>{said}</p>" for said in (text, "Moved.")]
    before, after = (sites.answer("http://x/", HOUR * time, html) for time, html in enumerate(pages))
    known = known_after(judge(before, None), None)
    [key] = judge(after, known).compared.differed
    assert judge(after, known, Standards(mask=frozenset({key}))).verdict == Verdict.CHANGED


def test_what_is_known_to_be_content_was_edited_between_two_looks():
    pages = [
        sites.answer("http://x/", time, f"<h1>{sites.prose(1)}</h1><p>{sites.prose(time, 1)}</p>")
        for time in (0.0, HOUR, HOUR + 9)
    ]
    known = known_after(judge(pages[0], None), None)
    once, again = looked_twice(pages[1], pages[2], known, Standards())
    assert once.verdict == Verdict.UNCHANGED
    content = again.compared.differed
    once, _ = looked_twice(pages[1], pages[2], known, Standards(content=content))
    assert once.verdict == Verdict.CHANGED


def test_an_audit_compares_the_two_looks_with_each_other():
    """And not with what was known before them: noise that no longer differs agrees."""
    pages = [
        sites.answer("http://x/", time, f"<h1>{sites.prose(1)}</h1><p>{sites.prose(said, 1)}</p>")
        for time, said in ((0.0, 0), (HOUR, 1), (HOUR + 9, 1), (HOUR + 10, 2))
    ]
    known = known_after(judge(pages[0], None), None)
    mask = judge(pages[1], known).compared.differed
    for second, differed in ((pages[2], frozenset()), (pages[3], mask)):
        once, again = looked_twice(pages[1], second, known, Standards(mask=mask, watched=mask))
        assert once.verdict == Verdict.UNCHANGED
        assert abs(again.compared.gap) < NEAR
        assert (again.compared.differed, again.compared.same) == (differed, mask - differed)


rows = st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(1, 99), st.booleans(), st.sampled_from([10.0, HOUR]))


@given(st.lists(rows, max_size=30), st.integers(0, 30))
def test_evidence_adds_up_in_any_portions(told_rows, cut):
    def found(some):
        none = frozenset[int]()
        return NoiseEvidence.concat(
            evidence(
                host,
                page,
                60.0 * page,
                Compared(frozenset({part}) if differed else none, none if differed else frozenset({part}), gap),
            )
            for host, part, page, differed, gap in some
        )

    whole, parts = found(told_rows), NoiseEvidence.concat([found(told_rows[cut:]), found(told_rows[:cut])])
    for name in NoiseEvidence.__slots__:
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    of_hosts = whole.take(whole.page == 0)
    assert (of_hosts.near + of_hosts.far).sum() == len(told_rows)
    assert (np.bitwise_count(of_hosts.near_pages) <= of_hosts.near_differed).all()


def test_links_with_a_session_are_learned_only_from_looks_moments_apart():
    crawl = Crawl(sites.session_links, pages=3)
    sites.trial(crawl, sites.dice_of("edits"))
    kinds = {link_kind("example,site)/home?s=1"), link_kind("example,site)/map?s=1")}
    assert crawl.noise.mask == kinds
    assert crawl.evidence.take(np.isin(crawl.evidence.part, list(kinds))).far.sum() == 0
    assert crawl.round(99, set()) == set()
