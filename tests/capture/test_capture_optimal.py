"""SHARC-Optimal: brute force over all schedules, exact assignment, and bounds that hold."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from recrawl.assess.blur_coherence import expected_coherence
from recrawl.capture import pyramid as nested
from recrawl.capture import sharc_optimal
from recrawl.capture.pyramid import best_valley as valley_of
from recrawl.capture.sharc_optimal import (
    alike,
    coherence_bound,
    converged_prices,
    improved_prices,
    knots,
    optimal,
    share_of_knots,
)
from recrawl.capture.sharc_selective import sharc_selective

RATE = st.floats(0.0, 3.0)
WEIGHT = st.sampled_from([0.0, 0.5, 1.0, 3.0])


def columns(pages):
    return tuple(np.array(column) for column in zip(*pages, strict=True))


def all_lengths(pages):
    """Of every schedule: each order of visits, and each order of revisits of all but the page visited last."""
    for visited in permutations(range(pages)):
        for revisited in permutations(visited[:-1]):
            slot = {page: pages + place for place, page in enumerate(revisited)} | {visited[-1]: pages - 1}
            yield [slot[page] - visited.index(page) for page in range(pages)]


@given(st.lists(st.tuples(RATE, WEIGHT), min_size=1, max_size=5))
@settings(max_examples=20, deadline=None)  # the first call loads scipy
def test_no_schedule_at_all_has_a_higher_expected_coherence(pages):
    rate, weight = columns(pages)
    best = max(float((weight * np.exp(-rate * 0.4 * np.array(length))).sum()) for length in all_lengths(len(rate)))
    found = optimal(rate, 0.4, weight)
    assert found.expected_coherence == pytest.approx(best)
    assert found.bound == pytest.approx(best)
    length = 0.4 * (found.plan.revisit - found.plan.visit)
    assert float((weight * np.exp(-rate * length)).sum()) == pytest.approx(best)


@given(st.lists(st.tuples(RATE, WEIGHT), min_size=6, max_size=6))
@settings(max_examples=30, deadline=None)  # the first call loads scipy
def test_no_pyramid_of_six_pages_has_a_higher_expected_coherence(pages):
    """Some pyramid is the best of all schedules, so these 720 orders are enough."""
    rate, weight = columns(pages)
    length = 2.0 * 0.4 * np.argsort(np.array(list(permutations(range(6)))), axis=1)
    best = float((weight * np.exp(-rate * length)).sum(axis=1).max())
    found = optimal(rate, 0.4, weight)
    assert found.expected_coherence == pytest.approx(best)
    assert found.bound == pytest.approx(best)
    planned = 0.4 * (found.plan.revisit - found.plan.visit)
    assert float((weight * np.exp(-rate * planned)).sum()) == pytest.approx(best)


def test_no_schedule_at_all_of_six_pages_is_better_than_the_best_pyramid():
    """All 86,400 of them, for rates that make hopeless, hopeful and middling pages."""
    rate, weight = np.array([3.0, 0.02, 0.6, 0.1, 1.2, 0.3]), np.array([1.0, 1.0, 3.0, 0.5, 1.0, 1.0])
    lengths = np.array(list(all_lengths(6)), np.int8)
    best = float((weight * np.exp(-rate * 0.4 * lengths)).sum(axis=1).max())
    assert optimal(rate, 0.4, weight).expected_coherence == pytest.approx(best)


def exact(rate, delay, weight):
    worth = weight[:, None] * np.exp(-np.outer(rate, 2.0 * delay * np.arange(len(rate))))
    return float(worth[linear_sum_assignment(worth, maximize=True)].sum())


def sites():
    rng = np.random.default_rng(5)
    pages = 240
    yield "log-normal", rng.lognormal(np.log(3 / pages), 1.5, pages), np.ones(pages)
    yield "power law", 1.0 / np.arange(1.0, pages + 1), np.ones(pages)
    yield "very hot", 100.0 / np.arange(1.0, pages + 1) ** 1.2, np.ones(pages)
    yield "three rates", rng.choice([1.0, 10 / pages, 0.1 / pages], pages), rng.choice([0.2, 1.0, 5.0], pages)
    yield "any weights", rng.lognormal(np.log(3 / pages), 1.5, pages), rng.lognormal(0.0, 1.0, pages)
    yield "some without weight", rng.uniform(0.0, 10 / pages, pages), rng.choice([0.0, 1.0, 2.0], pages)


@pytest.mark.parametrize(("rate", "weight"), [pytest.param(*site, id=name) for name, *site in sites()])
def test_a_site_too_large_to_be_exact_comes_near_and_says_how_near(rate, weight, monkeypatch):
    best = exact(rate, 1.0, weight)
    monkeypatch.setattr(sharc_optimal, "EXACT_PAGES", 0)
    monkeypatch.setattr(sharc_optimal, "GROUPS", 60)
    found = optimal(rate, 1.0, weight)
    assert found.expected_coherence <= best * (1 + 1e-12)
    assert best <= found.bound * (1 + 1e-12)
    assert found.expected_coherence >= 0.99 * best
    assert found.gap < 0.02
    greedy = sharc_selective(rate, 1.0, weight)
    assert found.expected_coherence >= float((weight * np.exp(-rate * (greedy.revisit - greedy.visit))).sum()) - 1e-9


@given(st.lists(st.tuples(RATE, WEIGHT), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_any_prices_bound_what_can_be_reached(pages, seed):
    rate, weight = columns(pages)
    rng = np.random.default_rng(seed)
    for knot in (np.arange(len(rate)), np.array([0, len(rate) - 1]) if len(rate) > 1 else np.array([0])):
        price = np.sort(rng.uniform(-1.0, 4.0, len(knot)))[::-1]
        assert coherence_bound(rate, weight, 0.7, knot, price) >= exact(rate, 0.35, weight) - 1e-9


def test_settled_prices_prove_an_exact_assignment():
    rng = np.random.default_rng(2)
    worth = np.exp(-np.outer(rng.uniform(0.0, 0.5, 30), 2.0 * np.arange(30)))
    place = linear_sum_assignment(worth, maximize=True)[1]
    price = converged_prices(worth, place, np.zeros(30), rounds=1_000)
    dual = price.sum() + (worth - price).max(axis=1).sum()
    assert dual == pytest.approx(worth[np.arange(30), place].sum(), rel=1e-9)


def test_improving_prices_never_raises_the_bound_of_the_rows():
    rng = np.random.default_rng(4)
    worth, mass = rng.uniform(0.0, 1.0, (40, 12)), rng.uniform(0.5, 2.0, 40)
    supply = np.full(12, mass.sum() / 12)

    def bound(price):
        return float(supply @ price + mass @ (worth - price).max(axis=1))

    lists = [rng.uniform(0.0, 1.0, 12)]
    for _ in range(3):
        lists.append(improved_prices(worth, mass, supply, lists[-1]))
    assert all(bound(after) <= bound(before) + 1e-9 for before, after in pairwise(lists))
    assert bound(lists[-1]) < bound(lists[0])


def test_knots_hold_both_ends_and_stand_for_everything():
    knot = knots(1_000, 20)
    assert knot[[0, -1]].tolist() == [0, 999]
    assert share_of_knots(1_000, knot).sum() == pytest.approx(1_000)


def test_pages_of_a_group_are_alike():
    rate, weight = np.tile([1.0, 2.0, 3.0], 40), np.repeat([1.0, 5.0], 60)
    order = alike(rate, weight, 20)
    assert sorted(order.tolist()) == list(range(120))
    assert np.ptp(rate[order].reshape(-1, 20), axis=1).max() == 0.0
    assert np.ptp(weight[order].reshape(-1, 20), axis=1).max() == 0.0


def test_without_weights_pages_are_grouped_by_falling_rate():
    rate = np.random.default_rng(0).uniform(0.0, 1.0, 50)
    assert alike(rate, np.ones(50), 7).tolist() == np.argsort(-rate).tolist()


@given(st.lists(RATE, min_size=1, max_size=7))
@settings(max_examples=30)
def test_no_valley_is_better_than_the_best_one(rates):
    rate = np.sort(np.array(rates))[::-1]
    pages, length = len(rate), 0.6 * np.arange(len(rates))

    def coherence(inside):
        order = np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)[::-1]])
        return expected_coherence(rate[order], length)

    best = max(coherence(np.array(choice)) for choice in product([False, True], repeat=pages))
    assert expected_coherence(rate[valley_of(rate, 0.3)], length) == pytest.approx(best)


def test_the_loop_for_large_sites_chooses_as_the_columns_do():
    rng = np.random.default_rng(1)
    rate = np.sort(rng.lognormal(-3.0, 1.0, 60))[::-1]
    weight = rng.uniform(0.5, 2.0, 60)
    by_columns, by_loop = (
        nested._followed(choose(rate, weight, 2.0)) for choose in (nested._choose, nested._choose_in_a_loop)
    )
    assert by_columns.tolist() == by_loop.tolist()


def test_the_optimum_need_not_be_a_valley():
    rate, length = np.array([0.5, 1.0, 0.01]), np.array([2.0, 3.0, 4.0])
    assert expected_coherence(rate, length) == pytest.approx(1.3785, abs=1e-4)
    by_falling_rate = [(1, 0, 2), (1, 2, 0), (0, 2, 1), (2, 0, 1)]
    assert max(expected_coherence(rate[list(order)], length) for order in by_falling_rate) == pytest.approx(
        1.3566, abs=1e-4
    )
