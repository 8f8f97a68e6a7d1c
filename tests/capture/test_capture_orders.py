"""The orders themselves: worked examples, closed forms and brute force."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.assess.blur_coherence import capture_blur
from recrawl.capture import STRATEGIES, CaptureTerms
from recrawl.capture.pyramid import RevisitedStrategy, RevisitOrder
from recrawl.capture.single_visit import BreadthFirst, DepthFirst, HottestFirst, HottestLast, centred_start, organ_pipes
from recrawl.capture.strategy import LinkGraph, walk

# The site of SHARC Figure 4.1: p0 → p1, p2; p1 → p3, p4; p2 → p5.
SITE = LinkGraph(np.array([0, 2, 4, 5, 5, 5, 5]), np.array([1, 2, 3, 4, 5]))
RATES = st.lists(st.floats(0.0, 10.0), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("make", "order"),
    [
        (BreadthFirst, [0, 1, 2, 3, 4, 5]),
        (DepthFirst, [0, 1, 3, 4, 2, 5]),
        (HottestFirst, [0, 2, 5, 1, 4, 3]),
        (HottestLast, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_the_orders_on_the_site_of_the_thesis(make, order):
    assert walk(make(), SITE, np.array([0]), np.arange(6.0)).visited.tolist() == order


def test_depth_first_takes_links_in_their_order_on_the_page_not_by_number():
    graph = LinkGraph(np.array([0, 2, 2, 3, 3]), np.array([2, 1, 3]))
    assert walk(DepthFirst(), graph, np.array([0]), np.zeros(4)).visited.tolist() == [0, 2, 3, 1]


@given(RATES)
def test_no_order_is_less_blurred_than_organ_pipes(rates):
    rate = np.array(rates)
    slots = np.arange(float(len(rate)))
    best = min(capture_blur(rate, np.array(order), 0.0, slots[-1]) for order in permutations(slots))
    assert capture_blur(rate, organ_pipes(rate).visit_times(0.0, 1.0), 0.0, slots[-1]) == pytest.approx(best)


@given(RATES, st.floats(0.1, 5.0), st.floats(-50.0, 50.0), st.floats(0.5, 90.0), st.integers(-9, 9))
def test_no_beginning_whole_delays_away_is_better_than_the_centred_one(rates, delay, start, length, shift):
    rate, end = np.array(rates), start + length
    best = centred_start(len(rate), delay, start, end)
    plan = organ_pipes(rate)
    centred, moved = (
        capture_blur(rate, plan.visit_times(begin, delay), start, end) for begin in (best, best + shift * delay)
    )
    assert centred <= moved * (1 + 1e-9) + 1e-9


def test_half_a_delay_earlier_can_be_better_than_theorem_4_4():
    rate, plan = np.array([0.0, 1.0]), organ_pipes(np.array([0.0, 1.0]))
    start = centred_start(2, 1.0, 0.0, 10.0)
    centred, earlier = (capture_blur(rate, plan.visit_times(s, 1.0), 0.0, 10.0) for s in (start, start - 0.5))
    assert earlier < centred


@given(RATES)
def test_sharc_offline_visits_by_its_plan(rates):
    rate = np.array(rates)
    graph = LinkGraph(np.zeros(len(rate) + 1, dtype=np.int64), np.empty(0, dtype=np.int64))
    done = walk(STRATEGIES["sharc-offline"](CaptureTerms(delay=1.0)), graph, np.arange(len(rate)), rate)
    assert done.plan().visit.tolist() == organ_pipes(rate).visit.tolist()


def test_pages_found_after_the_plan_was_made_come_behind_it():
    strategy = STRATEGIES["sharc-offline"](CaptureTerms(delay=1.0))
    strategy.discover(np.array([10, 11, 12]), np.array([3.0, 1.0, 2.0]))
    assert strategy.next_page() == 11
    strategy.discover(np.array([20, 21]), np.array([9.0, 0.0]))
    assert list(iter(strategy.next_page, None)) == [10, 12, 20, 21]


@pytest.mark.parametrize(("order", "lengths"), [(RevisitOrder.FIFO, [6] * 6), (RevisitOrder.LIFO, [11, 9, 7, 5, 3, 1])])
def test_revisits_are_equidistant_or_nested(order, lengths):
    plan = walk(RevisitedStrategy(BreadthFirst(), order), SITE, np.array([0]), np.arange(6.0)).plan()
    assert (plan.revisit - plan.visit).tolist() == lengths


def test_a_page_without_a_revisit_is_seen_for_the_last_time_at_its_visit():
    class OnlyThree(BreadthFirst):
        def revisits(self):
            return np.array([3])

    plan = walk(OnlyThree(), SITE, np.array([0]), np.arange(6.0)).plan()
    assert plan.revisit.tolist() == [0, 1, 2, 6, 4, 5]


def test_the_plan_covers_only_pages_that_were_reached():
    assert walk(BreadthFirst(), SITE, np.array([2]), np.arange(6.0)).plan().visit.tolist() == [0, 1]
