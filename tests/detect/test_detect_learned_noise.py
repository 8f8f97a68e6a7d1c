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

from recrawl.detect import ChangeCriteria, classify_change, known_after
from recrawl.detect.comparison import NEAR, PartComparison, link_kind
from recrawl.detect.detector import classify_confirmed
from recrawl.detect.noise.learned_noise import (
    FAR_ENOUGH,
    FAR_LIMIT,
    FIRST_CONFIRMATIONS,
    NEAR_ENOUGH,
    NO_NOISE,
    HostNoise,
    NoiseEvidence,
    audit_share,
    evidence,
    masked_parts,
    wants_confirmation,
)
from recrawl.detect.noise.noise_keys import Difference, hidden_rows, noise_key, split_key, without_largest
from recrawl.detect.text.text_parts import PageParts
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
    right, wrong, missed = sites.trial(crawl, sites.rng_of("edits"))
    assert missed == 0
    assert right > 20
    # Where the noise happens to be the same in both looks it may pass for a change, until it is learned.
    assert wrong <= {sites.sometimes_a_notice: 8, sites.quote: 4, sites.box_of_few: 4}.get(site, 0)
    assert crawl.observations <= 0.25 * crawl.visits + FIRST_CONFIRMATIONS


@pytest.mark.parametrize("site", QUIET, ids=lambda site: site.__name__)
@pytest.mark.parametrize("confirms_changes", [True, False])
def test_what_changes_often_is_not_masked(site, confirms_changes):
    crawl = Crawl(site, confirms_changes=confirms_changes, pages=2)
    for number in range(30):
        crawl.round(number, {0, 1})
    assert crawl.noise.masked == 0


@pytest.mark.parametrize(
    "site",
    [sites.query_count, sites.view_count, sites.related_box, sites.plain_counter],
    ids=lambda site: site.__name__,
)
def test_without_second_looks_what_differs_on_every_visit_is_learned(site):
    crawl = Crawl(site, confirms_changes=False)
    sites.trial(crawl, sites.rng_of("edits"), rounds=6)
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


def test_random_class_names_do_not_make_parts_of_their_own():
    """Drupal 7 names a block by a new token at each request; a counter stands beside it."""

    def drupal(page, version, seeded):
        blocks = "".join(
            f"<div class='view view-dom-id-{seeded.bytes(16).hex()}'><p>{sites.prose((page, block))}</p></div>"
            for block in range(4)
        )
        return f"<main>{sites.article(page, version)}</main>{blocks}<p class=count>{seeded.integers(10**6)} readers</p>"

    crawl = Crawl(drupal)
    found = [crawl.round(number, {number % 3} if number > 1 else set()) for number in range(8)]
    assert found == [set(), set(), *({number % 3} for number in range(2, 8))]
    assert crawl.noise.masked == 1  # the counter alone


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
    known = known_after(classify_change(before, None), None)
    once, _ = classify_confirmed(first, second, known, ChangeCriteria())
    assert once.verdict == verdict


def test_a_second_look_that_fails_leaves_the_first_as_it_was():
    crawl = Crawl(sites.quote, pages=1)
    crawl.round(0, set())
    first, known = crawl.capture(0, HOUR), crawl.known[0]
    failed = replace(first, status=503, time=HOUR + 20)
    once, again = classify_confirmed(first, failed, known, ChangeCriteria())
    assert once == classify_change(first, known)
    assert again.verdict == Verdict.UNKNOWN


def test_a_page_that_is_gone_is_not_called_noise():
    crawl = Crawl(sites.quiet, pages=1)
    crawl.round(0, set())
    gone = replace(crawl.capture(0, HOUR), status=404)
    once, again = classify_confirmed(gone, replace(gone, time=HOUR + 20), crawl.known[0], ChangeCriteria())
    assert (once.verdict, once.kinds) == (Verdict.CHANGED, ChangeKind.EXISTENCE)
    assert again.verdict == Verdict.UNCHANGED


KEY = noise_key(5, Difference.WORDS, 1)


def told(
    *comparisons: tuple[float, bool], page: int = 1, start: float = 0.0, known: HostNoise = NO_NOISE
) -> NoiseEvidence:
    """Evidence on one part of one page, from gaps and whether it differed, each in another minute."""
    none, part = frozenset[int](), frozenset({KEY})
    return NoiseEvidence.concat(
        evidence(
            HOST,
            page,
            start + 60.0 * minute,
            PartComparison(part if differed else none, none if differed else part, gap, in_question=part),
            replace(known, paged={page: part}),
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
    noise = host.plus(told(*[(NOW, False)] * 3, page=9, known=host.noise_of(HOST))).noise_of(HOST)
    assert noise.mask == noise.mask_of(1) == noise.mask_of(8) == {KEY}
    assert noise.mask_of(9) == frozenset()


def test_noise_is_withdrawn_when_confirmations_agree():
    found, observations = NoiseEvidence.empty(), 0
    for page in range(1, 90):
        more = PartComparison(frozenset({KEY}), frozenset(), NOW)
        found = found.plus(evidence(HOST, page % 4 + 1, 60.0 * page, more, found.noise_of(HOST)))
    assert found.noise_of(HOST).mask == {KEY}
    while found.noise_of(HOST).mask:
        found = found.plus(told((NOW, False), page=observations % 4 + 1))
        observations += 1
    assert 3 <= observations <= 12
    assert found.noise_of(HOST).masked == 0


@pytest.mark.parametrize(("pattern", "most"), [([True], 3), ([True, False], 9)], ids=["ticking", "two variants"])
def test_noise_is_withdrawn_after_agreements_that_chance_does_not_explain(pattern, most):
    """However often it is found to differ from the version before, since that is not replaced while it is hidden."""
    found, observations = (
        on_pages(4, *[(NOW, differed) for differed in pattern * 6], *[(LATER, True), (LATER, False)] * 6),
        0,
    )
    found = found.plus(told((NOW, True)))
    assert found.noise_of(HOST).mask == {KEY}
    while found.noise_of(HOST).mask:
        assert (
            audit_share(found.noise_of(HOST), 1, PartComparison(frozenset({KEY}), frozenset(), HOUR), changed=False) > 0
        )
        found = found.plus(told((LATER, True), (NOW, False), page=observations % 4 + 1))
        observations += 1
    assert observations <= most
    if observations == 3:
        assert found.plus(told((NOW, True))).noise_of(HOST).mask == frozenset()  # it needs all its evidence again


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
    chance, masked, visits = sites.rng_of("half a minute"), 0, 0
    for _ in range(20):
        found = NoiseEvidence.empty()
        for visit in range(60):
            page, time = visit % 11 + 1, 60.0 * visit
            found = found.plus(told((LATER, True), page=page, start=time))
            found = found.plus(told((NOW, bool(chance.random() < 0.2)), page=page, start=time))
            masked, visits = masked + found.noise_of(HOST).masked, visits + 1
    assert masked <= 0.03 * visits
    assert found.noise_of(HOST).content == {KEY}


def test_where_a_part_never_differs_confirmations_say_nothing_about_other_pages():
    """A box with one link agrees in every confirmation; one in the same markup has two links in any order."""
    none, part = frozenset[int](), frozenset({KEY})
    agreed, met = PartComparison(none, part, NOW), PartComparison(part, none, LATER)
    found = NoiseEvidence.concat(evidence(HOST, 1, 60.0 * minute, agreed) for minute in range(9))
    found = found.plus(evidence(HOST, 2, HOUR, met))
    noise = found.noise_of(HOST)
    assert noise.content == none
    assert wants_confirmation(noise, 2, met, observations=0, visits=0)
    tested = replace(agreed, in_question=part)
    found = found.plus(NoiseEvidence.concat(evidence(HOST, 2, 60.0 * minute, tested) for minute in range(4)))
    assert not wants_confirmation(found.noise_of(HOST), 2, met, observations=0, visits=0)


def test_edits_between_two_looks_on_few_pages_are_no_noise_though_the_others_stay():
    """Two of eleven pages change every half minute. That the part stays elsewhere must not make agreements cheap."""
    stays = NoiseEvidence.concat(told(*[(LATER, False)] * 5, page=page) for page in range(3, 12))
    edited = [(LATER, True), (NOW, False)] * 3 + [(LATER, True), (NOW, True)]
    found = stays.plus(NoiseEvidence.concat(told(*edited, page=page, start=600.0 * page) for page in (1, 2)))
    noise = found.noise_of(HOST)
    assert (noise.masked, noise.probable_on(1), noise.probable_on(3)) == (0, frozenset(), frozenset())
    assert noise.content_of(1) == {KEY}  # by its own evidence: it is edited when it differs moments apart
    assert not wants_confirmation(
        noise, 1, PartComparison(frozenset({KEY}), frozenset(), HOUR), observations=0, visits=0
    )


def test_few_agreements_do_not_make_content_of_what_differs_on_every_second_visit():
    seldom = on_pages(2, *[(NOW, False)] * 2, *[(LATER, True), (LATER, False)] * 4)
    always = on_pages(2, *[(NOW, False)] * 2, *[(LATER, True)] * 8)
    assert seldom.noise_of(HOST).content == frozenset()
    assert seldom.plus(told(*[(NOW, False)] * 2)).noise_of(HOST).content == {KEY}
    assert always.noise_of(HOST).content == {KEY}


def test_a_page_with_one_difference_in_four_confirmations_is_confirmed_further():
    """With two links in any order that happens by chance in every fourth case."""
    others = on_pages(3, *[(NOW, False)] * 4, *[(LATER, True)] * 2)
    mine = told((NOW, True), *[(NOW, False)] * 3, *[(LATER, True), (LATER, False)] * 4, page=9)
    compared = PartComparison(frozenset({KEY}), frozenset(), HOUR)
    noise = others.plus(mine).noise_of(HOST)
    assert wants_confirmation(noise, 9, compared, observations=0, visits=0)
    more = told(*[(NOW, False)] * 8, page=9)
    assert not wants_confirmation(others.plus(mine).plus(more).noise_of(HOST), 9, compared, observations=0, visits=0)


def test_what_is_probably_noise_and_the_same_in_both_looks_is_no_change():
    """It differed on many pages, all in one minute: not enough for a mask, and enough to call this chance."""
    pages = [
        sites.answer("http://x/", time, f"<h1>{sites.prose(1)}</h1><p>{sites.prose(said, 1)}</p>")
        for time, said in ((0.0, 0), (HOUR, 1), (HOUR + 9, 1))
    ]
    known = known_after(classify_change(pages[0], None), None)
    [key] = classify_change(pages[1], known).compared.differed
    minute = [PartComparison(frozenset({key}), frozenset(), NOW)] * 8
    found = NoiseEvidence.concat(evidence(HOST, page, 0.0, one) for page, one in enumerate(minute, 1))
    noise = found.noise_of(HOST)
    assert (noise.mask, noise.probable_on(9)) == (frozenset(), {key})
    for probable, verdict in ((noise.probable_on(9), Verdict.UNCHANGED), (frozenset(), Verdict.CHANGED)):
        once, _ = classify_confirmed(pages[1], pages[2], known, ChangeCriteria(probable=probable))
        assert once.verdict == verdict


@pytest.mark.parametrize(
    ("orders", "suspected", "verdict"),
    [
        (("abcdef", "fbcade", "fbcade"), False, Verdict.CHANGED),  # somebody sorted it
        (("abcdef", "fbcade", "edcfba"), False, Verdict.UNCHANGED),  # shuffled
        (("abcdef", "fbcade", "fbcade"), True, Verdict.UNCHANGED),  # met shuffled before
        (("ab", "ba", "ba"), False, Verdict.UNCHANGED),  # by chance in every second case: the next visits will tell
    ],
)
def test_a_list_in_another_order_changed_if_both_looks_have_it_so(orders, suspected, verdict):
    pages = [
        sites.answer(
            "http://x/",
            time,
            f"<h1>{sites.prose(1)}</h1><ul>{''.join(f'<li><a href=/{one}>Item {one}</a>' for one in order)}</ul>",
        )
        for time, order in zip((0.0, HOUR, HOUR + 9), orders, strict=True)
    ]
    known = known_after(classify_change(pages[0], None), None)
    suspects = classify_change(pages[1], known).compared.differed if suspected else frozenset[int]()
    assert classify_change(pages[1], known).verdict == Verdict.CHANGED
    once, _ = classify_confirmed(pages[1], pages[2], known, ChangeCriteria(suspects=suspects))
    assert once.verdict == verdict


@given(st.integers(0, 40), st.integers(3, 60))
def test_evidence_that_is_cut_keeps_what_is_noise(met_once, most):
    others = [
        evidence(HOST, 1, 0.0, PartComparison(frozenset({noise_key(99 + part, Difference.WORDS)}), frozenset(), HOUR))
        for part in range(met_once)
    ]
    found = NoiseEvidence.concat([told(*[(NOW, True)] * 4), *others])
    cut = found.take(found.kept(most))
    assert len(cut) == min(len(found), most)
    assert cut.noise_of(HOST).mask_of(1) == found.noise_of(HOST).mask_of(1) == {KEY}
    assert (np.diff(cut.part[cut.page == 0]) > 0).all()


def test_looks_grow_with_the_logarithm_of_what_differed():
    found, observations = NoiseEvidence.empty(), 0
    for _ in range(60):
        found = found.plus(told((LATER, True)))
        compared = PartComparison(frozenset({KEY}), frozenset(), HOUR)
        if wants_confirmation(found.noise_of(HOST), 1, compared, observations=0, visits=0):
            observations += 1
            found = found.plus(told((NOW, False)))
    assert 4 <= observations <= 8


@pytest.mark.parametrize(
    ("compared", "observations", "wanted"),
    [
        (None, 0, False),
        (PartComparison(frozenset({KEY}), frozenset(), HOUR), 0, True),
        (PartComparison(frozenset({KEY}), frozenset(), HOUR), FIRST_CONFIRMATIONS, False),
        (PartComparison(frozenset({KEY}), frozenset(), NEAR / 2), 0, True),
        (PartComparison(frozenset(), frozenset({KEY}), HOUR), 0, False),
    ],
)
def test_when_a_second_look_is_wanted(compared, observations, wanted):
    noise = NoiseEvidence.empty().noise_of(HOST)
    assert wants_confirmation(noise, 1, compared, observations=observations, visits=0) == wanted


def test_a_suspect_has_confirmations_left_when_others_have_none():
    noise, compared = told((NOW, True)).noise_of(HOST), PartComparison(frozenset({KEY}), frozenset(), HOUR)
    assert wants_confirmation(noise, 1, compared, observations=FIRST_CONFIRMATIONS, visits=0)
    assert not wants_confirmation(noise, 1, compared, observations=2 * FIRST_CONFIRMATIONS, visits=0)


def test_audits_never_stop():
    """However much evidence there is, a share of what is hidden and of what is found goes on to be confirmed."""
    noisy = on_pages(9, *[(NOW, True)] * 99).noise_of(HOST)
    settled = on_pages(9, *[(NOW, False), (LATER, True)] * 99).noise_of(HOST)
    differed = PartComparison(frozenset({KEY}), frozenset(), HOUR)
    assert noisy.mask == {KEY}
    assert audit_share(noisy, 1, differed, changed=False) == 0.05
    assert audit_share(settled, 1, differed, changed=True) == 0.02
    uncertain = on_pages(9, *[(NOW, True)] * 99).plus(told((NOW, False))).noise_of(HOST)  # has it stopped?
    assert audit_share(uncertain, 1, differed, changed=False) == 0.25
    assert audit_share(noisy, 1, PartComparison(frozenset(), frozenset({KEY}), HOUR), changed=False) == 0.0


@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.integers(0, 2), st.integers(1, 60)), min_size=1, max_size=20),
    st.sets(st.integers(0, 2), min_size=1),
)
def test_a_mask_never_hides_most_of_a_page(rows, masked):
    parts = PageParts([path + 7 for path, _, _ in rows], [number * 99 for _, number, _ in rows], [0] * len(rows))
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
    known = known_after(classify_change(pages[0], None), None)
    once, again = classify_confirmed(pages[1], pages[2], known, ChangeCriteria(most_masked=most))
    assert once.verdict == verdict
    assert again.compared.fresh > 0.5
    mask = classify_change(pages[1], known).compared.differed
    assert mask
    assert again.compared.differed == (mask if most == 1.0 else frozenset())  # else it would be learned to be noise
    assert classify_change(pages[1], known, ChangeCriteria(mask=mask, most_masked=most)).verdict == verdict


def test_a_page_that_loses_most_of_its_text_changed_though_that_was_noise():
    """What is left is a small part in the place of the text."""
    text = " ".join(sites.prose(number) for number in range(9))
    pages = [f"<h1>Now</h1><ul><li>One item of a list</ul><p>{said}</p>" for said in (text, "Moved.")]
    before, after = (sites.answer("http://x/", HOUR * time, html) for time, html in enumerate(pages))
    known = known_after(classify_change(before, None), None)
    [key] = classify_change(after, known).compared.differed
    assert classify_change(after, known, ChangeCriteria(mask=frozenset({key}))).verdict == Verdict.CHANGED


def test_what_is_known_to_be_content_was_edited_between_two_looks():
    pages = [
        sites.answer("http://x/", time, f"<h1>{sites.prose(1)}</h1><p>{sites.prose(time, 1)}</p>")
        for time in (0.0, HOUR, HOUR + 9)
    ]
    known = known_after(classify_change(pages[0], None), None)
    once, again = classify_confirmed(pages[1], pages[2], known, ChangeCriteria())
    assert once.verdict == Verdict.UNCHANGED
    content = again.compared.differed
    once, _ = classify_confirmed(pages[1], pages[2], known, ChangeCriteria(content=content))
    assert once.verdict == Verdict.CHANGED


def test_an_audit_compares_the_two_looks_with_each_other():
    """And not with what was known before them: noise that no longer differs agrees."""
    pages = [
        sites.answer("http://x/", time, f"<h1>{sites.prose(1)}</h1><p>{sites.prose(said, 1)}</p>")
        for time, said in ((0.0, 0), (HOUR, 1), (HOUR + 9, 1), (HOUR + 10, 2))
    ]
    known = known_after(classify_change(pages[0], None), None)
    mask = classify_change(pages[1], known).compared.differed
    for second, differed in ((pages[2], frozenset()), (pages[3], mask)):
        once, again = classify_confirmed(pages[1], second, known, ChangeCriteria(mask=mask, watched=mask))
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
                PartComparison(frozenset({part}) if differed else none, none if differed else frozenset({part}), gap),
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
    sites.trial(crawl, sites.rng_of("edits"))
    kinds = {link_kind("example,site)/home?s=1"), link_kind("example,site)/map?s=1")}
    assert crawl.noise.mask == kinds
    assert crawl.evidence.take(np.isin(crawl.evidence.part, list(kinds))).far.sum() == 0
    assert crawl.round(99, set()) == set()


def test_two_variants_drawn_at_random_are_learned_and_stay_so():
    """An A/B test: a part differs in every second confirmation and on every second visit."""
    chance, masked, alarms, visits = sites.rng_of("variants"), 0, 0, 0
    for _ in range(10):
        found = NoiseEvidence.empty()
        for visit in range(60):
            page, time = visit % 8 + 1, 60.0 * visit
            far, near = chance.random(2) < 0.5
            noise = found.noise_of(HOST)
            confirmed = far and wants_confirmation(
                noise, page, PartComparison(frozenset({KEY}), frozenset(), HOUR), observations=visit // 6, visits=visit
            )
            alarms += far and KEY not in noise.mask_of(page) | (noise.probable_on(page) if confirmed else frozenset())
            alarms -= confirmed and near and KEY not in noise.probable_on(page)
            found = found.plus(told((LATER, bool(far)), page=page, start=time))
            if confirmed or (far and visit % 20 == 0):
                found = found.plus(told((NOW, bool(near)), page=page, start=time))
            masked, visits = masked + (KEY in noise.mask), visits + 1
    assert masked > 0.6 * visits
    assert alarms <= 0.1 * visits
