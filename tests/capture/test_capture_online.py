"""Online strategies against their algorithms to the letter, and the structures that make them fast."""

from bisect import insort

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.assess.blur_coherence import expected_coherence
from recrawl.capture import STRATEGIES, CaptureTerms
from recrawl.capture.online_pages import RankedPages, SiteSize
from recrawl.capture.sharc_intervals import LARGEST, IntegerSet, confidence_slots
from recrawl.capture.sharc_selective import RankedByHeat, SharcSelectiveOnline, sharc_selective
from recrawl.capture.single_visit import organ_pipes
from recrawl.capture.strategy import LinkGraph, walk

UNLINKED = LinkGraph(np.zeros(200, dtype=np.int64), np.empty(0, dtype=np.int64))


@st.composite
def trees(draw):
    """(graph, rates): page 0 leads to all others; no two rates are equal."""
    n = draw(st.integers(1, 12))
    parents = [draw(st.integers(0, page - 1)) for page in range(1, n)]
    links = [[page for page in range(1, n) if parents[page - 1] == parent] for parent in range(n)]
    rates = draw(st.lists(st.integers(1, 400), min_size=n, max_size=n, unique=True))
    offsets = np.append(0, np.cumsum([len(row) for row in links]))
    targets = np.array([page for row in links for page in row], dtype=np.int64)
    return LinkGraph(offsets, targets), np.array(rates) / 100.0


def crawled(graph, choose):
    """The order in which ``choose(visited, known)`` takes pages from the home page on."""
    visited, known = [], [0]
    while known:
        page = choose(visited, known)
        known.remove(page)
        visited.append(page)
        known += [link for link in graph.links(page).tolist() if link not in known and link not in visited]
    return visited


def order_of(name, graph, rate, **terms):
    strategy = STRATEGIES[name](CaptureTerms(**{"delay": 1.0, "expected": len(rate)} | terms))
    return walk(strategy, graph, np.array([0]), rate).visited.tolist()


@given(trees())
@settings(max_examples=30)
def test_sharc_online_is_algorithm_2(tree):
    graph, rate = tree

    def choose(visited, known):
        rising = sorted(known, key=lambda page: rate[page])
        if len(visited) + len(known) <= len(rate) / 2:
            return rising[0]
        if len(visited) <= len(rate) / 2:
            return rising[len(visited)] if len(visited) < len(known) else rising[-1]
        return rising[-1]

    assert order_of("sharc-online", graph, rate) == crawled(graph, choose)


@given(trees(), st.sampled_from([0.02, 0.3]))
@settings(max_examples=30)
def test_selective_online_is_algorithm_6(tree, delay):
    graph, rate = tree

    def choose(visited, known):
        hottest = np.array(sorted(known, key=lambda page: -rate[page]))
        shortest = 2.0 * delay * (len(rate) - len(visited) - len(known))
        hopeless = RankedByHeat(rate[hottest], np.ones(len(hottest)), shortest, 2.0 * delay).selected()
        return int(hottest[np.argmax(hopeless)] if hopeless.any() else hottest[-1])

    assert order_of("sharc-selective-online", graph, rate, delay=delay) == crawled(graph, choose)


@given(trees(), st.sampled_from([0.02, 0.3]))
@settings(max_examples=30)
def test_outermost_threshold_gives_each_interval_to_the_hottest_page_that_can_stand_it(tree, delay):
    graph, rate = tree

    def choose(visited, known):
        length = (2 * (len(rate) - len(visited)) - 1) * delay
        hopeful = [page for page in known if np.exp(-rate[page] * length) > 0.9]
        return max(hopeful or known, key=lambda page: rate[page])

    assert order_of("sharc-threshold-outermost", graph, rate, delay=delay, threshold=0.9) == crawled(graph, choose)


@given(trees())
@settings(max_examples=30)
def test_intervals_online_is_algorithm_4(tree):
    graph, rate = tree
    length = confidence_slots(rate, 0.05, 0.6, LARGEST).tolist()
    taken = set()

    def choose(visited, known):
        slot = len(visited) - len(rate) + 1
        for page in sorted(known, key=lambda page: -length[page]):
            if slot + length[page] > 0 and slot + length[page] not in taken:
                taken.add(slot + length[page])
                return page
        return min(known, key=lambda page: length[page])

    assert order_of("sharc-intervals-online", graph, rate, delay=0.05, threshold=0.6) == crawled(graph, choose)


@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 2.0]), min_size=1, max_size=12))
@settings(max_examples=30)
def test_with_everything_known_sharc_online_is_sharc_offline(rates):
    rate = np.array(rates)
    done = walk(STRATEGIES["sharc-online"](CaptureTerms(delay=1.0)), UNLINKED, np.arange(len(rate)), rate)
    assert done.plan().visit.tolist() == organ_pipes(rate).visit.tolist()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("patience", [0.0, 1.0 / 32.0])
def test_with_everything_known_selective_online_is_about_as_good_as_offline(seed, patience):
    rate = np.random.default_rng(seed).lognormal(np.log(0.02), 1.5, 199)
    strategy = SharcSelectiveOnline(CaptureTerms(delay=1.0), patience)
    online = walk(strategy, UNLINKED, np.arange(199), rate).plan()
    offline = sharc_selective(rate, 1.0)
    reached, planned = (expected_coherence(rate, 1.0 * (plan.revisit - plan.visit)) for plan in (online, offline))
    assert reached == pytest.approx(planned, rel=2e-3)


def test_the_page_visited_last_is_its_own_revisit_and_hopeless_ends_come_last():
    # The golden case of Algorithm 4: pages 0 and 5 are given up.
    graph = LinkGraph(np.array([0, 2, 3, 5, 5, 5, 5]), np.array([1, 3, 2, 4, 5]))
    rate = np.log(1.0 / 0.95) / (np.array([3, 6, 7, 5, 5, 4]) + 0.5)
    strategy = STRATEGIES["sharc-intervals-online"](CaptureTerms(delay=1.0, expected=6))
    assert walk(strategy, graph, np.array([0]), rate).revisited.tolist() == [1, 3, 2, 5, 0]
    assert strategy.given_up().tolist() == [0, 5]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 10**6)), max_size=120), st.booleans())
@settings(max_examples=40)
def test_ranked_pages_are_a_sorted_list(steps, tiny_blocks):
    with pytest.MonkeyPatch.context() as patch:
        if tiny_blocks:
            patch.setattr("recrawl.capture.online_pages._BLOCK", 2)
        ranked, plain = RankedPages(), []
        for number, (add, heat, pick) in enumerate(steps):
            if add or not plain:
                ranked.add([float(heat)], [number])
                insort(plain, (float(heat), number))
            else:
                rank = pick % len(plain)
                assert ranked.take(rank if pick % 3 else -1) == plain.pop(rank if pick % 3 else -1)[1]
            assert len(ranked) == len(plain)
            assert ranked.colder_than(5.0) == sum(entry[0] < 5.0 for entry in plain)


def test_many_pages_at_once_rank_among_those_there():
    rng = np.random.default_rng(0)
    ranked, heat = RankedPages(), rng.uniform(0.0, 1.0, 5_000)
    for part in (slice(0, 10), slice(10, 4_000), slice(4_000, None)):
        ranked.add(heat[part].tolist(), list(range(5_000))[part])
    assert [ranked.take(0) for _ in range(5_000)] == np.argsort(heat).tolist()


@given(st.sets(st.integers(0, LARGEST) | st.integers(0, 3_000), max_size=30), st.lists(st.integers(0, LARGEST)))
@settings(max_examples=40)
def test_an_integer_set_finds_its_neighbours(numbers, asked):
    found = IntegerSet()
    for number in numbers:
        found.add(number)
    for number in [*asked, *numbers, LARGEST, 2 * LARGEST, 0]:
        assert found.at_most(number) == max((one for one in numbers if one <= number), default=-1)
    for number in sorted(numbers):
        assert found.smallest() == number
        found.remove(number)
    assert not found


def test_the_size_given_is_taken_until_more_pages_are_known():
    size = SiteSize(10)
    size.discovered(4)
    assert size.estimate() == 10
    size.discovered(20)
    assert size.estimate() == 24


def test_a_site_known_at_the_start_is_as_large_as_known():
    size = SiteSize()
    size.discovered(50)
    for _ in range(49):
        assert size.estimate() == 50
        size.visit()


def test_a_site_whose_pages_lead_to_ever_fewer_new_ones_is_estimated_better_than_by_what_is_known():
    size, total = SiteSize(), 2_000
    found = total * (1.0 - np.exp(-np.arange(2_000) / 700.0))
    for new in np.diff(np.floor(found), prepend=-1.0).astype(int)[:1_000].tolist():
        size.discovered(new)
        size.visit()
    known = size.visited + size.waiting
    assert abs(size.estimate() - total) < abs(known - total)
