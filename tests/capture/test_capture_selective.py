"""Which pages a strategy says it gave up: those that its rule calls hopeless, online as offline."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.capture import REVISITING, STRATEGIES, CaptureTerms
from recrawl.capture.pyramid import hopeful_pages
from recrawl.capture.sharc_intervals import confidence_slots, schedule_intervals, shrinking
from recrawl.capture.sharc_optimal import optimal
from recrawl.capture.sharc_selective import SharcSelectiveOnline, hopeless_pages
from recrawl.capture.strategy import GivesUpPages, LinkGraph, ProvesBound, walk

THAT_GIVE_UP = (
    "sharc-threshold",
    "sharc-threshold-outermost",
    "sharc-intervals",
    "sharc-intervals-online",
    "sharc-selective",
    "sharc-selective-online",
)
TERMS = CaptureTerms(delay=0.5, threshold=0.8)
RATES = st.lists(st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.9, 4.0]), min_size=1, max_size=12).map(np.array)


def carried_out(strategy, rate):
    """All pages known and visited; ids that are not their places, so that the two cannot be mixed up."""
    pages = 100 + np.arange(len(rate))
    strategy.discover(pages, rate)
    visited = []
    while (page := strategy.next_page()) is not None:
        visited.append(page)
    return visited


@given(rate=RATES)
@settings(max_examples=30, deadline=None)  # the first call may load scipy
def test_plans_name_the_pages_that_their_rule_calls_hopeless(rate):
    slots = confidence_slots(rate, 0.5, 0.8, 2 * len(rate))
    rules = {
        "sharc-selective": hopeless_pages(rate, 0.5),
        "sharc-threshold": ~hopeful_pages(rate, 0.5, 0.8),
        "sharc-intervals": ~schedule_intervals(slots).hopeful,
    }
    for name, hopeless in rules.items():
        strategy = STRATEGIES[name](TERMS)
        assert strategy.given_up() is None  # there is no plan yet
        carried_out(strategy, rate)
        assert strategy.given_up().tolist() == (100 + np.flatnonzero(hopeless)).tolist()


def test_selective_online_gives_up_what_the_first_judgement_of_all_pages_did():
    rate = np.array([1e-9, 30.0, 2e-9, 40.0, 3e-9, 50.0])
    strategy = SharcSelectiveOnline(CaptureTerms(delay=0.5, expected=len(rate)), drift=0.0)
    visited = carried_out(strategy, rate)
    assert (100 + np.flatnonzero(hopeless_pages(rate, 0.5))).tolist() == [101, 103]
    assert strategy.given_up().tolist() == visited[:2] == [103, 101]


@pytest.mark.parametrize("name", THAT_GIVE_UP)
def test_pages_given_up_were_visited_and_are_not_the_cold_ones(name):
    rate = np.repeat([1e-9, 50.0], [30, 10])
    strategy = STRATEGIES[name](TERMS)
    visited = carried_out(strategy, rate)
    given_up = strategy.given_up().tolist()
    assert 8 <= len(given_up) == len(set(given_up))  # the last one or two are visited in the middle
    assert set(given_up) <= set(visited)
    assert min(given_up) >= 130


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_who_does_not_decide_it_says_nothing(name):
    strategy = STRATEGIES[name](TERMS)
    carried_out(strategy, np.array([0.1, 0.2, 9.0]))
    said = strategy.given_up() if isinstance(strategy, GivesUpPages) else None
    assert (said is not None) == (name in THAT_GIVE_UP)
    proven = strategy.proven() if isinstance(strategy, ProvesBound) else None
    assert (proven is not None) == (name == "sharc-optimal")


def test_the_optimum_proves_what_it_computed():
    rate = np.random.default_rng(1).lognormal(-3.0, 1.5, 50)
    strategy = STRATEGIES["sharc-optimal"](TERMS)
    carried_out(strategy, rate)
    best, proven = optimal(rate, 0.5), strategy.proven()
    assert (proven.pages, proven.expected_coherence, proven.bound) == (50, best.expected_coherence, best.bound)
    assert proven.gap == best.gap == 0.0


@given(rate=RATES)
@settings(max_examples=30)
def test_coherence_after_shrinking_is_that_of_the_strategy(rate):
    everything = LinkGraph(np.zeros(len(rate) + 1, np.int64), np.empty(0, np.int64))
    plan = walk(STRATEGIES["sharc-intervals"](TERMS), everything, np.arange(len(rate)), rate).plan()
    last = plan.visit if plan.revisit is None else plan.revisit
    found = shrinking(rate, 0.5, 0.8)
    assert found.after == pytest.approx(np.exp(-rate * 0.5 * (last - plan.visit)).sum())
    schedule = schedule_intervals(confidence_slots(rate, 0.5, 0.8, 2 * len(rate)))
    assert found.before == pytest.approx(np.exp(-rate * 0.5 * (schedule.revisit - schedule.visit)).sum())


def test_every_strategy_that_gives_up_sees_pages_twice():
    assert set(THAT_GIVE_UP) < REVISITING
