"""The rules of :class:`recrawl.capture.strategy.Strategy` as tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from recrawl.capture.strategy import CaptureTerms, LinkGraph, Strategy, StrategyTraits, walk
from recrawl.model import FloatArray, IntArray
from recrawl.testing.checks import pickled

_SITES = 40
"""Random sites that each strategy captures."""


@dataclass(frozen=True, slots=True)
class RandomSite:
    """A small site: any links, also to oneself and twice; rates and weights with ties and zeros."""

    graph: LinkGraph
    seeds: IntArray
    rate: FloatArray
    weight: FloatArray | None

    def reachable(self) -> set[int]:
        """The pages that can be reached from the seeds."""
        found: set[int] = set()
        todo = set(self.seeds.tolist())
        while todo:
            page = todo.pop()
            found.add(page)
            todo |= set(self.graph.links(page).tolist()) - found
        return found


def random_sites(seed: int = 7) -> Iterator[RandomSite]:
    """Sites of one to nine pages; the same ones each time."""
    rng = np.random.default_rng(seed)
    for _ in range(_SITES):
        n = int(rng.integers(1, 10))
        count = rng.integers(0, 6, n)
        graph = LinkGraph(np.append(0, np.cumsum(count)), rng.integers(0, n, int(count.sum())))
        weight = rng.choice([0.0, 0.5, 1.0, 3.0], n) if rng.random() < 0.5 else None
        yield RandomSite(
            graph, rng.integers(0, n, int(rng.integers(1, 4))), rng.choice([0.0, 0.1, 0.5, 2.0, 7.0], n), weight
        )


class Witness:
    """A strategy that checks another one at every step."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.told: set[int] = set()
        self.named: list[int] = []

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Pass copies on, check that they are unchanged, and overwrite them: a strategy stores none of them."""
        self.told |= set(page.tolist())
        pages, rates, weights = page.copy(), rate.copy(), None if weight is None else weight.copy()
        self.strategy.discover(pages, rates, weights)
        for copy, given in ((pages, page), (rates, rate), (weights, weight)):
            if copy is not None and given is not None:
                assert (copy == given).all(), "rule 4: an argument was modified"
                copy[:] = -1

    def next_page(self) -> int | None:
        """Check rules 1 and 3."""
        page = self.strategy.next_page()
        if page is None:
            assert self.told == set(self.named), "rule 1: a page was never named"
            assert self.strategy.next_page() is None
        else:
            assert type(page) is int
            assert page in self.told, "rule 1: a page was named that nobody reported"
            assert page not in self.named, "rule 1: a page was named twice"
            self.named.append(page)
        return page

    def revisits(self) -> IntArray:
        """Check rules 5 and 6."""
        again = self.strategy.revisits()
        assert again.dtype == np.int64
        assert again.tolist() == self.strategy.revisits().tolist(), "asking for revisits changed them"
        assert len(set(again.tolist())) == len(again), "rule 5: a page is revisited twice"
        if len(again):
            assert set(self.named[:-1]) <= set(again.tolist()) <= set(self.named), "rules 5 and 6"
        return again


class Stammerer(Witness):
    """Reports everything twice, the second time with wrong rates and weights."""

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Twice."""
        super().discover(page, rate, weight)
        super().discover(page[::-1], 9.0 - rate[::-1], rate[::-1])


class StrategyConformance:
    """Tests for one strategy. Override :meth:`make`, and :attr:`traits` where they are not on the maker."""

    def make(self, terms: CaptureTerms) -> Strategy:
        """A new strategy for these terms."""
        raise NotImplementedError

    @property
    def traits(self) -> StrategyTraits:
        """What the strategy claims of itself."""
        return StrategyTraits()

    def _new(self) -> Strategy:
        return self.make(CaptureTerms(delay=1.0))

    def test_it_is_a_strategy(self) -> None:
        """Members of the protocol."""
        assert isinstance(self._new(), Strategy)

    def test_every_reachable_page_is_visited_once_however_often_it_is_reported(self) -> None:
        """Rules 1, 2 and 4."""
        for site in random_sites():
            arguments = (site.graph, site.seeds, site.rate, site.weight)
            done, stammered = walk(Witness(self._new()), *arguments), walk(Stammerer(self._new()), *arguments)
            assert sorted(done.visited.tolist()) == sorted(site.reachable())
            assert done.visited.tolist() == stammered.visited.tolist()
            assert done.revisited.tolist() == stammered.revisited.tolist()

    def test_the_plan_of_a_walk_has_each_slot_once_and_visits_before_revisits(self) -> None:
        """Rules 5 and 6, with all pages known beforehand."""
        for site in random_sites(8):
            n = len(site.graph)
            done = walk(Witness(self._new()), site.graph, np.arange(n), site.rate, site.weight)
            plan = done.plan()
            assert sorted(plan.visit.tolist()) == list(range(n))
            assert done.visited[plan.visit].tolist() == list(range(n))
            if plan.revisit is not None:
                once = plan.revisit == plan.visit
                assert plan.visit[once].tolist() in ([], [n - 1])
                assert sorted(plan.revisit[~once].tolist()) == list(range(n, 2 * n - int(once.sum())))

    def test_nothing_known_is_none_and_not_the_end(self) -> None:
        """Rule 3."""
        strategy = self._new()
        assert strategy.next_page() is None
        assert len(strategy.revisits()) == 0
        strategy.discover(np.array([8]), np.array([0.5]))
        assert strategy.next_page() == 8
        assert strategy.next_page() is None
        strategy.discover(np.array([3, 8]), np.array([0.5, 0.1]))
        assert strategy.next_page() == 3
        assert strategy.next_page() is None

    def test_page_ids_may_be_large_and_sparse(self) -> None:
        """Ids are names, not positions."""
        strategy = self._new()
        ids = np.array([2**62, 5, 2**40])
        strategy.discover(ids, np.array([0.1, 0.2, 0.3]))
        assert sorted(iter(strategy.next_page, None)) == sorted(ids.tolist())

    def test_a_capture_that_ends_early_revisits_only_visited_pages(self) -> None:
        """Rule 5, where pages are left unvisited."""
        strategy = self._new()
        strategy.discover(np.arange(9), np.linspace(0.0, 1.0, 9))
        seen = {strategy.next_page() for _ in range(5)}
        assert set(strategy.revisits().tolist()) <= seen

    def test_it_revisits_as_its_traits_say(self) -> None:
        """:attr:`StrategyTraits.revisits`."""
        strategy = self._new()
        strategy.discover(np.arange(5), np.linspace(0.0, 1.0, 5))
        assert len(list(iter(strategy.next_page, None))) == 5
        assert (len(strategy.revisits()) > 0) == self.traits.revisits

    def test_a_delay_of_zero_is_possible(self) -> None:
        """A slot may take no time."""
        strategy = self.make(CaptureTerms(delay=0.0))
        strategy.discover(np.arange(5), np.linspace(0.0, 1.0, 5))
        assert sorted(iter(strategy.next_page, None)) == [0, 1, 2, 3, 4]
        strategy.revisits()

    def test_it_pickles_and_goes_on_with_the_same_answers(self) -> None:
        """Rule 7: new, and in the middle of a capture."""

        def rest(strategy: Strategy) -> tuple[list[int], list[int]]:
            strategy.discover(np.arange(6, 9), np.array([0.4, 0.0, 3.0]))
            named = list(iter(strategy.next_page, None))
            return named, strategy.revisits().tolist()

        def begun(through: Callable[[Strategy], Strategy]) -> Strategy:
            strategy = through(self._new())
            strategy.discover(np.arange(6), np.array([0.3, 0.1, 2.0, 0.0, 0.7, 0.1]))
            assert [strategy.next_page() for _ in range(3)]
            return through(strategy)

        assert rest(begun(pickled)) == rest(begun(lambda strategy: strategy))
