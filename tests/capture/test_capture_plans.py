"""Offline plans: brute force where a plan is the best, the algorithm to the letter where it is one."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.assess.blur_coherence import capture_blur, expected_coherence
from recrawl.capture import STRATEGIES, CaptureTerms
from recrawl.capture.pyramid import (
    around_middle,
    best_valley,
    hopeful_pages,
    pyramid,
    pyramid_lengths,
    sharc_revisits,
    sharc_threshold,
)
from recrawl.capture.sharc_intervals import confidence_slots, schedule_intervals, sharc_intervals
from recrawl.capture.sharc_optimal import sharc_optimal
from recrawl.capture.sharc_selective import (
    RankedByHeat,
    best_sacrifice,
    hopeless_pages,
    sacrificed_coherence,
    sharc_selective,
)
from recrawl.capture.single_visit import centred_start, organ_pipes

RATE = st.floats(0.0, 3.0)
PAGES = st.lists(st.tuples(RATE, st.sampled_from([0.5, 1.0, 3.0])), min_size=1, max_size=6)


def columns(pages):
    return tuple(np.array(column) for column in zip(*pages, strict=True))


def lengths(plan):
    return (plan.revisit - plan.visit).astype(float)


@given(PAGES)
@settings(max_examples=30)
def test_no_order_has_less_weighted_blur_than_organ_pipes(pages):
    rate, weight = columns(pages)
    slots = np.arange(float(len(rate)))
    best = min(capture_blur(rate * weight, np.array(order), 0.0, slots[-1]) for order in permutations(slots))
    planned = organ_pipes(rate, weight).visit_times(0.0, 1.0)
    assert capture_blur(rate * weight, planned, 0.0, slots[-1]) == pytest.approx(best)


@given(PAGES, st.floats(-9.0, 9.0), st.floats(0.1, 9.0))
@settings(max_examples=30)
def test_no_order_in_fixed_slots_has_less_blur_than_hottest_next_to_the_middle(pages, start, length):
    rate, weight = columns(pages)
    slots = np.arange(float(len(rate)))
    best = min(capture_blur(rate * weight, np.array(order), start, start + length) for order in permutations(slots))
    planned = around_middle(rate, slots, start, start + length, weight).visit_times(0.0, 1.0)
    assert capture_blur(rate * weight, planned, start, start + length) == pytest.approx(best)


@given(st.lists(RATE, min_size=1, max_size=9, unique=True))
@settings(max_examples=30)
def test_fixed_slots_around_the_middle_give_organ_pipes(rates):
    rate = np.array(rates)
    times = centred_start(len(rate), 2.0, 0.0, 50.0) + 2.0 * np.arange(len(rate))
    assert around_middle(rate, times, 0.0, 50.0).visit.tolist() == organ_pipes(rate).visit.tolist()


def test_revisits_follow_visits_at_one_distance():
    plan = sharc_revisits(np.array([0.3, 0.1, 0.2]), np.array([1.0, 9.0, 1.0]))
    assert plan.visit.tolist() == organ_pipes(np.array([0.3, 0.9, 0.2])).visit.tolist()
    assert lengths(plan).tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("once", [True, False])
def test_a_pyramid_has_the_lengths_of_a_pyramid(once):
    plan = pyramid(np.array([3, 1, 0, 2]), once=once)
    assert lengths(plan)[[3, 1, 0, 2]].tolist() == pyramid_lengths(4, 1.0, once=once).tolist()


@given(PAGES, st.sampled_from([0.3, 0.7, 0.95]))
@settings(max_examples=30)
def test_no_pyramid_has_a_heavier_set_of_hopeful_pages_than_sharc_threshold(pages, threshold):
    rate, weight = columns(pages)
    possible = pyramid_lengths(len(rate), 0.2, once=False)

    def kept(length, value):
        return float(value[np.exp(-rate * length) > threshold].sum())

    for value in (np.ones(len(rate)), weight):
        hopeful = hopeful_pages(rate, 0.2, threshold, value)
        best = max(kept(np.array(order), value) for order in permutations(possible))
        assert float(value[hopeful].sum()) == pytest.approx(best)
        plan = sharc_threshold(rate, 0.2, threshold, value)
        assert (np.exp(-rate * 0.2 * lengths(plan))[hopeful] > threshold).all()


def intervals_to_the_letter(slots):
    """Algorithm 3 (reading 003.23): visits, revisits and the hopeful pages."""
    n = len(slots) - 1
    order = np.argsort(slots, kind="stable").tolist()
    visit, revisit = {order[0]: n}, {order[0]: n}
    free_v, free_r, hopeless = set(range(n)), set(range(n + 1, 2 * n + 1)), []
    for page in order[1:]:
        fitting = [(r - v, v, r) for v in free_v for r in free_r if r - v <= slots[page]]
        if fitting:
            _, visit[page], revisit[page] = max(fitting)
            free_v.remove(visit[page])
            free_r.remove(revisit[page])
        else:
            hopeless.append(page)
    for page in hopeless[::-1]:
        visit[page], revisit[page] = max(free_v), min(free_r)
        free_v.remove(visit[page])
        free_r.remove(revisit[page])
    return visit, revisit, set(order) - set(hopeless)


@given(st.lists(st.integers(0, 25), min_size=1, max_size=12))
@settings(max_examples=60)
def test_intervals_are_placed_as_in_algorithm_3(slots):
    visit, revisit, hopeful = intervals_to_the_letter(slots)
    schedule = schedule_intervals(np.array(slots))
    assert schedule.visit.tolist() == [visit[page] for page in range(len(slots))]
    assert schedule.revisit.tolist() == [revisit[page] for page in range(len(slots))]
    assert set(np.flatnonzero(schedule.hopeful).tolist()) == hopeful


@given(st.lists(st.integers(0, 25), min_size=1, max_size=12))
@settings(max_examples=30)
def test_shrinking_makes_no_hopeful_interval_longer(slots):
    schedule = schedule_intervals(np.array(slots))
    shrunk = schedule.shrunk()
    assert (lengths(shrunk) <= schedule.revisit - schedule.visit)[schedule.hopeful].all()
    assert sorted(shrunk.visit.tolist()) == list(range(len(slots)))
    assert sorted(shrunk.revisit.tolist()) == list(range(len(slots) - 1, 2 * len(slots) - 1))


def test_intervals_of_large_sites_are_placed_by_the_same_rules():
    rng = np.random.default_rng(3)
    slots = confidence_slots(rng.lognormal(-9.0, 1.5, 2_500), 1.0, 0.95, 5_000)
    schedule = schedule_intervals(slots)
    assert (schedule.revisit - schedule.visit <= slots)[schedule.hopeful].all()
    assert sorted(schedule.visit.tolist()) == list(range(2_500))
    assert sorted(schedule.revisit.tolist()) == list(range(2_499, 4_999))


def selective_to_the_letter(rate, delay):
    """Algorithm 5 (readings 003.28–003.31) for pages from the hottest on: the hopeless ones."""
    hopeful, hopeless = [0], []
    for page in range(1, len(rate)):
        length = 2.0 * delay * np.arange(len(hopeful), len(rate) - len(hopeless))
        left = np.arange(page, len(rate))
        as_hopeful = np.exp(-rate[left] * length).sum()
        as_hopeless = np.exp(-rate[np.append(left[1:], page)] * length).sum()
        (hopeful if as_hopeful >= as_hopeless * (1 - 1e-12) else hopeless).append(page)
    return hopeless


@given(st.lists(st.floats(0.0, 2.0), min_size=1, max_size=20), st.sampled_from([0.1, 1.0]))
@settings(max_examples=60)
def test_selective_gives_up_the_pages_of_algorithm_5(rates, delay):
    rate = np.sort(np.array(rates))[::-1]
    assert np.flatnonzero(hopeless_pages(rate, delay)).tolist() == selective_to_the_letter(rate, delay)


def test_the_hopeless_need_not_be_the_hottest():
    rate = np.array([0.26, 0.23, 0.20, 0.17, 0.11])
    assert np.flatnonzero(hopeless_pages(rate, 1.0)).tolist() == [2]


def test_pages_so_hot_that_nothing_can_be_saved_are_given_up_for_one_that_can():
    rate = np.append(np.full(30, 5_000.0), 1e-4)
    plan = sharc_selective(rate, 1.0)
    assert expected_coherence(rate, lengths(plan)) == pytest.approx(2.0, abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_number_of_hottest_pages_is_nearly_as_good_as_trying_each(seed):
    rng = np.random.default_rng(seed)
    rate = np.sort(rng.lognormal(np.log(0.02), 1.5, 300))[::-1]
    ranked = RankedByHeat(rate, np.ones(300), 0.0, 2.0)
    exact, fast = ranked.selected(), ranked.prefix(ranked.best_prefix())
    worth = [sacrificed_coherence(rate, np.ones(300), hopeless, 0.0, 2.0) for hopeless in (exact, fast)]
    assert worth[1] >= 0.9999 * worth[0]
    assert ranked.best_prefix(near=0) == pytest.approx(ranked.best_prefix(), abs=3)


def test_pages_that_matter_are_not_given_up_for_those_that_do_not():
    rate = np.array([0.5, 0.5, 0.5, 0.5])
    hopeless = best_sacrifice(rate, np.array([1.0, 0.01, 1.0, 0.0]), 0.0, 2.0)
    assert not hopeless[[0, 2]].any()


@pytest.mark.parametrize("name", ["sharc-selective", "sharc-optimal", "sharc-threshold", "sharc-intervals"])
def test_pages_found_after_the_plan_lie_inside_it(name):
    strategy = STRATEGIES[name](CaptureTerms(delay=1.0))
    strategy.discover(np.array([10, 11, 12]), np.array([0.3, 0.1, 0.2]))
    planned = [strategy.next_page()]
    strategy.discover(np.array([20, 21]), np.array([9.0, 0.0]))
    visited = planned + list(iter(strategy.next_page, None))
    assert visited[-2:] == [20, 21]
    innermost = [20] if name != "sharc-threshold" else [21, 20]
    assert strategy.revisits().tolist()[: len(innermost)] == innermost
    assert set(strategy.revisits().tolist()) >= {10, 11, 12, 20}


@pytest.mark.parametrize("pages", [0, 1])
@pytest.mark.parametrize(
    "plan",
    [
        organ_pipes,
        sharc_revisits,
        lambda rate: sharc_threshold(rate, 1.0, 0.9),
        lambda rate: sharc_intervals(rate, 1.0, 0.9),
        lambda rate: sharc_selective(rate, 1.0),
        lambda rate: sharc_optimal(rate, 1.0),
        lambda rate: pyramid(best_valley(rate, 1.0), once=True),
    ],
)
def test_no_page_and_one_page_have_a_plan(plan, pages):
    assert plan(np.full(pages, 0.5)).visit.tolist() == [0] * pages
