"""Several hosts at once: brute force over the orders of all hosts together."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.assess.blur_coherence import capture_blur
from recrawl.capture.pyramid import side_by_side
from recrawl.capture.sharc_optimal import sharc_optimal
from recrawl.capture.single_visit import organ_pipes

HOST = np.array([0, 1, 0, 1, 0])
DELAY = np.array([1.0, 2.5])
RATES = st.lists(st.floats(0.0, 2.0), min_size=5, max_size=5).map(np.array)
WEIGHTS = st.lists(st.sampled_from([0.5, 1.0, 4.0]), min_size=5, max_size=5).map(np.array)


def every_order(times_of_host):
    """The times of all pages, for every order of each host."""
    for of_hosts in product(*(permutations(times) for times in times_of_host)):
        times = np.empty(len(HOST))
        for number, of_host in enumerate(of_hosts):
            times[number == HOST] = of_host
        yield times


@given(RATES, WEIGHTS)
@settings(max_examples=20)
def test_no_orders_of_the_hosts_have_less_blur_around_the_common_middle(rate, weight):
    found = side_by_side(HOST, DELAY, lambda rates, _, weights: organ_pipes(rates, weights), rate, weight)
    orders = every_order([np.array([-1.0, 0.0, 1.0]), np.array([-1.25, 1.25])])
    assert (found.begin, found.end) == (-1.25, 1.25)
    best = min(capture_blur(rate, times, -1.25, 1.25, None, weight) for times in orders)
    assert capture_blur(rate, found.visit, found.begin, found.end, None, weight) == pytest.approx(best)


@given(RATES, WEIGHTS)
@settings(max_examples=20, deadline=None)  # the first call loads scipy
def test_no_schedules_of_the_hosts_around_one_moment_have_a_higher_expected_coherence(rate, weight):
    found = side_by_side(HOST, DELAY, sharc_optimal, rate, weight)
    visits = list(every_order([np.array([-2.0, -1.0, 0.0]), np.array([-2.5, 0.0])]))
    # A page seen once, at the middle, is its own revisit.
    best = max(
        float((weight * np.exp(-rate * (revisit - visit))).sum())
        for visit in visits
        for revisit in (-mirrored for mirrored in visits)
        if ((visit == 0.0) == (revisit == 0.0)).all()
    )
    assert float((weight * np.exp(-rate * (found.revisit - found.visit))).sum()) == pytest.approx(best)


def test_all_intervals_hold_the_common_middle():
    rng = np.random.default_rng(0)
    host, rate = rng.integers(0, 5, 60), rng.lognormal(-3.0, 1.0, 60)
    found = side_by_side(host, rng.uniform(0.5, 3.0, 5), sharc_optimal, rate)
    assert (found.visit <= 0.0).all()
    assert (found.revisit >= 0.0).all()


def test_no_pages_take_no_time():
    nothing = np.empty(0, dtype=np.int64)
    found = side_by_side(nothing, DELAY, sharc_optimal, np.empty(0))
    assert (found.begin, found.end) == (0.0, 0.0)
