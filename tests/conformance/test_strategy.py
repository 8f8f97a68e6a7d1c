"""What every capture strategy must keep, whatever it aims at (the rules of recrawl.capture.strategy)."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.capture import OFFLINE, REVISITING, STRATEGIES, Terms
from recrawl.capture.walk import LinkGraph, walk
from recrawl.errors import ConfigError


def of_terms(name, expected=None):
    return partial(STRATEGIES[name], Terms(delay=1.0, expected=expected))


# The online ones also with guesses of the size that are far too low and far too high.
ALL = {name: of_terms(name) for name in STRATEGIES} | {
    f"{name} expecting {expected}": of_terms(name, expected)
    for name in STRATEGIES
    if name.startswith("sharc") and name not in OFFLINE
    for expected in (1, 100)
}
every_strategy = pytest.mark.parametrize("make", [pytest.param(ALL[name], id=name) for name in sorted(ALL)])
every_name = pytest.mark.parametrize("name", sorted(STRATEGIES))


@st.composite
def sites(draw):
    """(graph, seeds, rates, weights): any links, also to oneself and twice; rates with ties and zeros."""
    n = draw(st.integers(1, 9))
    links = draw(st.lists(st.lists(st.integers(0, n - 1), max_size=5), min_size=n, max_size=n))
    seeds = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3))
    rates = draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 2.0, 7.0]), min_size=n, max_size=n))
    weights = draw(st.none() | st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n).map(np.array))
    offsets = np.append(0, np.cumsum([len(row) for row in links]))
    targets = np.array([target for row in links for target in row], dtype=np.int64)
    return LinkGraph(offsets, targets), np.array(seeds), np.array(rates), weights


def everything_known(site):
    graph, _, rate, weight = site
    return graph, np.arange(len(graph)), rate, weight


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

    def discover(self, page, rate, weight=None):
        self.told |= set(page.tolist())
        mine = [None if column is None else column.copy() for column in (page, rate, weight)]
        self.strategy.discover(*mine)
        for column, given_column in zip(mine, (page, rate, weight), strict=True):
            if column is not None:
                assert (column == given_column).all()
                column[:] = -1  # a strategy that kept the arrays would now be wrong

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
        assert again.dtype == np.int64
        assert again.tolist() == self.strategy.revisits().tolist()
        assert len(set(again.tolist())) == len(again)
        if len(again):
            assert set(self.named[:-1]) <= set(again.tolist()) <= set(self.named)
        return again


class Stammerer(Witness):
    """One who tells everything twice, the second time wrong."""

    def discover(self, page, rate, weight=None):
        super().discover(page, rate, weight)
        super().discover(page[::-1], 9.0 - rate[::-1], rate[::-1])


@every_strategy
@given(site=sites())
@settings(max_examples=15, deadline=None)  # the first call may load scipy
def test_every_page_that_can_be_reached_is_visited_once_however_often_it_is_told(make, site):
    graph, seeds, *_ = site
    done, stammered = walk(Witness(make()), *site), walk(Stammerer(make()), *site)
    assert sorted(done.visited.tolist()) == sorted(reachable(graph, seeds))
    assert done.visited.tolist() == stammered.visited.tolist()
    assert done.revisited.tolist() == stammered.revisited.tolist()


@every_strategy
@given(site=sites())
@settings(max_examples=15, deadline=None)  # the first call may load scipy
def test_the_plan_of_a_walk_has_each_slot_once_and_visits_before_revisits(make, site):
    n = len(site[0])
    done = walk(Witness(make()), *everything_known(site))
    plan = done.plan()
    assert sorted(plan.visit.tolist()) == list(range(n))
    assert done.visited[plan.visit].tolist() == list(range(n))
    if plan.revisit is not None:
        once = plan.revisit == plan.visit
        assert plan.visit[once].tolist() in ([], [n - 1])
        assert sorted(plan.revisit[~once].tolist()) == list(range(n, 2 * n - once.sum()))


@every_strategy
def test_nothing_known_is_none_and_not_the_end(make):
    strategy = make()
    assert strategy.next_page() is None
    assert len(strategy.revisits()) == 0
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
def test_a_capture_that_ends_early_sees_again_only_what_it_saw(make):
    strategy = make()
    strategy.discover(np.arange(9), np.linspace(0.0, 1.0, 9))
    seen = {strategy.next_page() for _ in range(5)}
    assert set(strategy.revisits().tolist()) <= seen


@every_name
def test_a_strategy_sees_pages_again_if_it_is_said_to(name):
    strategy = STRATEGIES[name](Terms(delay=1.0))
    strategy.discover(np.arange(5), np.linspace(0.0, 1.0, 5))
    assert len(list(iter(strategy.next_page, None))) == 5
    assert (len(strategy.revisits()) > 0) == (name in REVISITING)


@every_name
def test_a_delay_of_nothing_is_possible(name):
    strategy = STRATEGIES[name](Terms(delay=0.0))
    strategy.discover(np.arange(5), np.linspace(0.0, 1.0, 5))
    assert sorted(iter(strategy.next_page, None)) == [0, 1, 2, 3, 4]
    strategy.revisits()


@pytest.mark.parametrize(
    "terms",
    [{"delay": -1.0}, {"delay": float("nan")}, {"delay": 1.0, "expected": 0}, {"delay": 1.0, "threshold": 1.0}],
)
def test_terms_that_make_no_sense_are_refused(terms):
    with pytest.raises(ConfigError):
        Terms(**terms)
