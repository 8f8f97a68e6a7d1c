"""The statement about a capture, and the actual measures it is held against."""

import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.app.site_capture import statement_words
from recrawl.assess.blur_coherence import (
    SCHEMA,
    CapturedPages,
    RevisitResult,
    achieved_blur,
    actual_blur,
    actual_incoherence,
    average_blur,
    blur_bounds,
    capture_blur,
    changes_between,
    expected_coherence,
    incoherent,
    page_blur,
    statement,
    statement_json,
    worst_case_increase,
)
from recrawl.capture.single_visit import organ_pipes

rates = st.floats(0.0, 5.0)
quarters = st.integers(0, 80).map(lambda number: number / 4.0)


def urls(pages):
    return [f"http://a.org/{page}" for page in pages]


@given(st.lists(st.tuples(rates, quarters, st.floats(0.0, 9.0)), min_size=1, max_size=8))
@settings(max_examples=50, deadline=None)
def test_weights_count_pages_several_times(pages):
    rate, visit, weight = (np.array(column) for column in zip(*pages, strict=True))
    whole = np.round(weight).astype(int)
    doubled = (np.repeat(rate, whole), np.repeat(visit, whole), 0.0, 20.0)
    assert capture_blur(rate, visit, 0.0, 20.0, None, whole.astype(float)) == pytest.approx(capture_blur(*doubled))
    if whole.sum():
        assert average_blur(rate, visit, 0.0, 20.0, None, whole.astype(float)) == pytest.approx(average_blur(*doubled))
    low, high = blur_bounds(rate, 0.0, 20.0, weight)
    assert low - 1e-9 <= capture_blur(rate, visit, 0.0, 20.0, None, weight) <= high + 1e-9
    expected = expected_coherence(rate, visit, weight)
    assert -1e-9 <= expected <= weight.sum() + 1e-9


@given(st.lists(quarters, max_size=8), quarters, st.none() | quarters, quarters, st.integers(1, 40))
@settings(max_examples=50, deadline=None)
def test_actual_blur_is_the_mean_number_of_changes_in_between(changes, visit, revisit, start, length):
    times = np.sort(np.array(changes, dtype=float))
    end = start + length / 4.0
    observations = sorted([visit] if revisit is None else [visit, revisit])
    again = None if revisit is None else np.array([observations[-1]])
    blur = actual_blur(np.array([0, len(times)]), times, np.array([observations[0]]), start, end, again)[0]
    # All is constant between multiples of 1/8: the middles of these pieces are enough.
    moments = np.arange(start + 1 / 16, end, 1 / 8)
    met = []
    for t in moments:
        observation = min(observations, key=lambda one: abs(one - t))
        met.append(((times > min(t, observation)) & (times <= max(t, observation))).sum())
    assert blur == pytest.approx(np.mean(met))


def test_a_change_at_the_instant_of_a_look_was_seen_by_it():
    offsets, times = np.array([0, 1, 2, 2]), np.array([1.0, 3.0])
    visit, revisit = np.full(3, 1.0), np.full(3, 3.0)
    assert incoherent(offsets, times, visit, revisit).tolist() == [False, True, False]
    assert actual_incoherence(offsets, times, visit, revisit) == 1
    assert actual_incoherence(offsets, times, visit, revisit, np.array([1.0, 2.5, 1.0])) == 2.5
    assert changes_between(offsets, times, visit, visit).tolist() == [0, 0, 0]


@given(st.lists(rates, min_size=1, max_size=12), st.data())
@settings(max_examples=50, deadline=None)
def test_the_worst_case_is_the_difference_of_two_schedules(rate, data):
    misplaced = data.draw(st.integers(0, len(rate)))
    heat = np.sort(np.array(rate))
    increase = worst_case_increase(np.array(rate), misplaced, 2.0)
    length = 2.0 * (len(rate) - 1)
    best = capture_blur(heat, organ_pipes(heat).visit_times(0.0, 2.0), 0.0, max(length, 1e-9))
    low, high = blur_bounds(heat, 0.0, length)
    if length:
        assert increase >= -1e-9
        assert low - 1e-9 <= best + increase / length <= high + 1e-9


def test_the_mean_of_the_achieved_blur_is_the_predicted_one():
    rate, visit, revisit = np.array([0.3]), np.array([2.0]), np.array([6.0])
    predicted = page_blur(rate, visit, 0.0, 10.0, revisit)
    chance = np.exp(-0.3 * 4.0)
    same, other = (
        achieved_blur(CapturedPages.of([1], visit, rate=rate, revisit=revisit, found=found), 0.0, 10.0)
        for found in (RevisitResult.UNCHANGED, RevisitResult.CHANGED)
    )
    assert chance * same + (1 - chance) * other == pytest.approx(predicted)
    assert same < predicted < other
    gone = achieved_blur(
        CapturedPages.of([1], visit, rate=rate, revisit=revisit, found=RevisitResult.MISSING), 0.0, 10.0
    )
    silent = achieved_blur(CapturedPages.of([1], visit, rate=rate, revisit=revisit), 0.0, 10.0)
    assert (gone, silent) == (pytest.approx(other), pytest.approx(predicted))


def test_achieved_blur_of_one_instant_and_of_a_page_that_never_changes():
    pages = CapturedPages.of([1, 2, 3], [0.0] * 3, rate=[0.5, 0.0, 0.5], revisit=4.0, found=[1, 2, 2])
    at_once = achieved_blur(pages, 1.0, 1.0)
    assert at_once == pytest.approx([0.0, 0.25, 0.5 / (1 - np.exp(-2.0))])
    assert achieved_blur(pages, 0.0, 4.0)[1] == pytest.approx(0.25)  # one change, somewhere: half way to it on average
    outside = achieved_blur(pages, 9.0, 9.0)
    assert outside == pytest.approx(page_blur(pages.rate, pages.visit, 9.0, 9.0, pages.revisit))


@st.composite
def captures(draw):
    size = draw(st.integers(1, 8))
    column = {
        "visit": draw(st.lists(quarters, min_size=size, max_size=size)),
        "rate": draw(st.lists(rates | st.just(np.nan), min_size=size, max_size=size)),
        "weight": draw(st.lists(st.floats(0.1, 3.0), min_size=size, max_size=size)),
        "found": draw(st.lists(st.sampled_from(list(RevisitResult)), min_size=size, max_size=size)),
    }
    after = draw(st.lists(quarters | st.just(np.nan), min_size=size, max_size=size))
    revisit = np.array(column["visit"]) + after
    return CapturedPages.of(np.arange(10, 10 + size), revisit=revisit, **column)


@given(captures())
@settings(max_examples=60, deadline=None)
def test_every_page_is_counted_once_and_every_number_is_within_its_bounds(pages):
    said = statement(pages)
    named = np.concatenate([said.coherent, said.changed, said.missing, said.unknown])
    assert sorted(named) == pages.page.tolist()
    assert said.expected_of <= said.rated <= said.pages
    assert -1e-9 <= said.expected_coherence <= said.expected_of + 1e-9
    assert said.coherent_weight <= said.weight + 1e-9
    if said.rated:
        assert said.predicted_blur.total >= 0
        assert said.achieved_blur is None or said.achieved_blur.total >= -1e-9
    inside = np.isin(pages.page, said.coherent) & ~np.isin(pages.page, said.apart())
    assert (pages.visit[inside] <= said.joint.start).all()
    assert (pages.revisit[inside] >= said.joint.end).all()
    text = json.dumps(statement_json(said, urls, most=2), allow_nan=False)
    assert json.loads(text)["schema"] == SCHEMA
    assert all(line.endswith(".") for line in statement_words(said, urls))


def test_hopeless_pages_are_those_the_strategy_named_or_those_that_were_unlikely():
    column = {"rate": [1.0, 0.01, 3.0], "revisit": [4.0, 4.0, 4.0], "found": [2, 1, 2]}
    unlikely = statement(CapturedPages.of([7, 8, 9], [0.0] * 3, **column))
    assert (unlikely.hopeless.tolist(), unlikely.hopeless_named) == ([9, 7], False)
    named = statement(CapturedPages.of([7, 8, 9], [0.0] * 3, hopeless=np.array([False, True, False]), **column))
    assert (named.hopeless.tolist(), named.hopeless_named) == ([8], True)
    said = statement_json(named, urls)
    assert said["hopeless"] == {"count": 1, "by": "strategy", "pages": ["http://a.org/8"]}
    assert "abandoned by the strategy" in " ".join(statement_words(named, urls))


def test_coherent_pages_that_were_never_valid_together_are_named():
    pages = CapturedPages.of([1, 2, 3], [0.0, 1.0, 9.0], revisit=[4.0, 5.0, 12.0], found=1)
    said = statement(pages)
    assert (said.joint.start, said.joint.end, said.apart().tolist()) == (1.0, 4.0, [3])
    assert said.achieved_blur is None
    told = statement_json(said, urls)
    assert told["validTogether"] == {
        "from": "1970-01-01T00:00:01.000000Z",
        "until": "1970-01-01T00:00:04.000000Z",
        "pages": 2,
        "allCoherentPages": False,
        "apart": ["http://a.org/3"],
    }
    assert told["blur"]["predicted"] == {"total": 0.0, "average": None}
    assert "2 of the coherent pages were valid together" in " ".join(statement_words(said, urls))


def test_a_capture_of_nothing_says_so():
    said = statement(CapturedPages.of([], []))
    assert statement_words(said, urls) == ["The capture has no pages."]
    assert statement_json(said, urls)["from"] is None


def test_names_are_bounded_and_counts_are_not():
    said = statement(CapturedPages.of(np.arange(9), np.zeros(9), rate=0.1, revisit=1.0, found=RevisitResult.MISSING))
    told = statement_json(said, urls, most=3)
    assert (len(told["missingPages"]), told["coherence"]["missing"]) == (3, 9)
    assert "and 4 more" in " ".join(statement_words(said, urls))


@given(st.lists(rates, min_size=2, max_size=5))
@settings(max_examples=20, deadline=None)
def test_with_every_page_out_of_place_the_worst_case_is_the_worst_of_all_orders(rate):
    heat, last = np.sort(np.array(rate)), float(len(rate) - 1)
    best = capture_blur(heat, organ_pipes(heat).visit_times(0.0, 1.0), 0.0, last)
    worst = max(capture_blur(heat, np.array(order, dtype=float), 0.0, last) for order in permutations(range(len(rate))))
    assert best + worst_case_increase(heat, len(rate), 1.0) / last == pytest.approx(worst)
    assert worst_case_increase(heat, 0, 1.0) == 0.0


def test_a_page_that_is_its_own_revisit_and_instants_within_a_second_are_told_apart():
    said = statement(CapturedPages.of([1, 2], [0.25, 0.5], revisit=[0.75, 0.5], found=RevisitResult.UNCHANGED))
    assert said.seen_once == 1
    words = " ".join(statement_words(said, lambda pages: [f"/{page}" for page in pages]))
    assert "2 pages unchanged from visit to revisit (1 of them observed once, which needs no revisit)" in words
    assert "1970-01-01T00:00:00.250Z to 1970-01-01T00:00:00.750Z" in words
    both = statement(CapturedPages.of([1, 2], [0.25, 0.5], revisit=[0.75, 0.625], found=RevisitResult.UNCHANGED))
    words = " ".join(statement_words(both, lambda pages: [f"/{page}" for page in pages]))
    assert "valid together from 1970-01-01T00:00:00.500Z to 1970-01-01T00:00:00.625Z" in words
    assert "observed once" not in words
