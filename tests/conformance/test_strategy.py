"""What every capture strategy must keep, whatever it aims at (the rules of recrawl.capture.strategy)."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.capture import STRATEGIES
from recrawl.capture.revisited import Revisited, RevisitOrder
from recrawl.capture.walk import LinkGraph, walk


def revisited(make, order):
    return Revisited(make(), order)


# Revisits are one wrapper, whatever it wraps: one strategy that plans and one that does not are enough.
ALL = dict(STRATEGIES) | {
    f"{name}+{order.value}": partial(revisited, STRATEGIES[name], order)
    for name in ("bfs", "sharc-offline")
    for order in RevisitOrder
}


every_strategy = pytest.mark.parametrize("make", [pytest.param(ALL[name], id=name) for name in sorted(ALL)])


@st.composite
def sites(draw):
    """(graph, seeds, rates): any links, also to oneself and twice; rates with ties and zeros."""
    n = draw(st.integers(1, 9))
    links = draw(st.lists(st.lists(st.integers(0, n - 1), max_size=5), min_size=n, max_size=n))
    seeds = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3))
    rates = draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 2.0, 7.0]), min_size=n, max_size=n))
    offsets = np.append(0, np.cumsum([len(row) for row in links]))
    targets = np.array([target for row in links for target in row], dtype=np.int64)
    return LinkGraph(offsets, targets), np.array(seeds), np.array(rates)


def reachable(graph, seeds):
    found, todo = set(), set(seeds.tolist())
    while todo:
        page = todo.pop()
        found.add(page)
        todo |= set(graph.links(page).tolist()) - found
    return found


class Witness:
    """A strategy that checks another one at every step."""

    def __init__(self, strategy):
        self.strategy = strategy
        self.told, self.named = set(), []

    def discover(self, page, rate):
        self.told |= set(page.tolist())
        mine, my_rate = page.copy(), rate.copy()
        self.strategy.discover(mine, my_rate)
        assert (mine == page).all()
        assert (my_rate == rate).all()
        mine[:], my_rate[:] = -1, -1.0  # a strategy that kept the arrays would now be wrong

    def next_page(self):
        page = self.strategy.next_page()
        if page is None:
            assert self.told == set(self.named)
            assert self.strategy.next_page() is None
        else:
            assert type(page) is int
            assert page in self.told
            assert page not in self.named
            self.named.append(page)
        return page

    def revisits(self):
        again = self.strategy.revisits()
        assert len(set(again.tolist())) == len(again)
        assert set(again.tolist()) <= set(self.named)
        return again


@every_strategy
@given(site=sites())
def test_every_page_that_can_be_reached_is_visited_once_and_no_other(make, site):
    graph, seeds, rate = site
    done = walk(Witness(make()), graph, seeds, rate)
    assert sorted(done.visited.tolist()) == sorted(reachable(graph, seeds))


@every_strategy
@given(site=sites())
def test_offline_every_page_is_visited_once(make, site):
    graph, _, rate = site
    done = walk(Witness(make()), graph, np.arange(len(graph)), rate)
    assert sorted(done.visited.tolist()) == list(range(len(graph)))


@every_strategy
@given(site=sites())
def test_equal_calls_give_equal_answers(make, site):
    graph, seeds, rate = site
    first, second = (walk(make(), graph, seeds, rate) for _ in range(2))
    assert first.visited.tolist() == second.visited.tolist()
    assert first.revisited.tolist() == second.revisited.tolist()


@every_strategy
@given(site=sites())
def test_hearing_again_of_a_known_page_changes_nothing(make, site):
    class Stammerer(Witness):
        def discover(self, page, rate):
            super().discover(page, rate)
            super().discover(page[::-1], 9.0 - rate[::-1])

    graph, seeds, rate = site
    plain, stammered = walk(make(), graph, seeds, rate), walk(Stammerer(make()), graph, seeds, rate)
    assert plain.visited.tolist() == stammered.visited.tolist()
    assert plain.revisited.tolist() == stammered.revisited.tolist()


@every_strategy
def test_nothing_known_is_none_and_not_the_end(make):
    strategy = make()
    assert strategy.next_page() is None
    strategy.discover(np.array([8]), np.array([0.5]))
    assert strategy.next_page() == 8
    assert strategy.next_page() is None
    strategy.discover(np.array([3, 8]), np.array([0.5, 0.1]))
    assert strategy.next_page() == 3
    assert strategy.next_page() is None


@every_strategy
def test_page_ids_may_be_large_and_sparse(make):
    strategy = make()
    ids = np.array([2**62, 5, 2**40])
    strategy.discover(ids, np.array([0.1, 0.2, 0.3]))
    assert sorted(iter(strategy.next_page, None)) == sorted(ids.tolist())


@every_strategy
@given(site=sites())
def test_the_plan_of_a_walk_has_each_slot_once_and_visits_before_revisits(make, site):
    graph, _, rate = site
    done = walk(make(), graph, np.arange(len(graph)), rate)
    plan = done.plan()
    assert sorted(plan.visit.tolist()) == list(range(len(graph)))
    assert done.visited[plan.visit].tolist() == list(range(len(graph)))
    if plan.revisit is not None:
        assert sorted(plan.revisit.tolist()) == list(range(len(graph), 2 * len(graph)))
