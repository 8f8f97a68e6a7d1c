"""The Strategy seam: a state machine without I/O that orders the visits of a site capture.

A driver reports pages to a strategy as it finds them and asks which to visit next; when no page is left, it asks which
to revisit. Simulator and live crawler drive the same object; :func:`walk` drives it over a static link graph. A
strategy does not know the time: one visit takes one slot, slots follow each other, and the revisits take the slots
behind the visits.

Every implementation passes :class:`recrawl.testing.StrategyConformance`. Packages register strategies as entry points
of the group ``recrawl.strategies``: a callable that takes :class:`CaptureTerms` and returns a strategy. It may have an
attribute ``traits`` (:class:`StrategyTraits`).

A strategy may also report which pages it gave up (:class:`GivesUpPages`) and what it can prove of its plan
(:class:`ProvesBound`). The quality statement of a capture includes both. A strategy that has nothing to report leaves
the methods out, or returns ``None``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from recrawl.errors import ConfigError
from recrawl.model import BoolArray, CapturePlan, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureTerms:
    """What a strategy may know of a capture beforehand, beside the pages themselves."""

    delay: float
    """Seconds of one slot: the politeness delay from one request to the next."""
    expected: int | None = None
    """How many pages the site is believed to have; ``None``: estimate it as the capture goes on."""
    threshold: float = 0.95
    """τ, the probability of staying unchanged from visit to revisit that makes a page hopeful (SHARC 5.3, 5.4)."""
    observe: tuple[float, float] | None = None
    """Start and end of a given observation interval, in seconds from the earliest start of the capture; ``None``: the
    interval is that of the capture."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.delay < float("inf"):
            raise ConfigError(f"a delay of {self.delay} seconds is not possible", "Give seconds, 0 or more.")
        if self.expected is not None and self.expected < 1:
            raise ConfigError(f"no site has {self.expected} pages", "Expect at least 1, or leave the number out.")
        if not 0.0 < self.threshold < 1.0:
            raise ConfigError(f"a threshold of {self.threshold} is no probability", "Choose one between 0 and 1.")
        if self.observe is not None and not self.observe[0] <= self.observe[1]:
            raise ConfigError("the observation interval ends before it begins", "Give the earlier time first.")


@dataclass(frozen=True, slots=True)
class StrategyTraits:
    """What a driver must know of a strategy before it makes one. A maker states it in an attribute ``traits``."""

    revisits: bool = False
    """Whether it visits every page twice, for coherence; otherwise once, for low blur."""
    needs_all_pages: bool = False
    """Whether its plan needs all pages beforehand: pages found later come behind it."""
    reads_expected: bool = False
    """Whether it reads :attr:`CaptureTerms.expected`."""
    reads_threshold: bool = False
    """Whether it reads :attr:`CaptureTerms.threshold`."""
    reads_observe: bool = False
    """Whether it reads :attr:`CaptureTerms.observe`."""


@runtime_checkable
class Strategy(Protocol):
    """Decides the order of a whole-site capture.

    The driver calls ``discover`` with the seeds, then ``next_page`` and ``discover`` in turn, and ``revisits`` at the
    end. Rates are per second, slots are counted from 0. No method raises.

    Rules for all implementations:
     1. ``next_page`` names each reported page exactly once, and no other page.
     2. Reporting a known page again changes nothing, whatever rate and weight come with it.
     3. ``None`` means that no known page is left: after more discoveries there may be more.
     4. Equal calls give equal answers, and the given arrays are neither stored nor modified. So a capture that was
        killed goes on by replaying its calls.
     5. Revisits name visited pages only, each at most once, and only after the last visit.
     6. If there are revisits, every page is revisited, except that the page visited last may be its own revisit
        (reading 003.17). So every interval from visit to revisit holds the moment of the last visit.
     7. A strategy pickles, and the copy goes on as the original.
     8. ``discover`` is O(pages of the argument) and ``next_page`` O(log n), amortised; a plan over all n pages may
        take O(n log n) once.
    """

    def discover(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> None:
        """Report pages in the order they were found (on one page: in the order of its links).

        ``rate`` is the estimated change rate of each, per second, ≥ 0; ``weight`` how much it matters, as a factor of
        its blur and of its coherence (``None``: 1 each). Offline, this is called once with all pages; online, first
        with the seeds and then after each visit with the links of the page visited.
        """
        ...

    def next_page(self) -> int | None:
        """The page to visit now, or ``None`` if every page reported so far has been named."""
        ...

    def revisits(self) -> IntArray:
        """The pages to revisit, in order. Empty for a single-visit capture. Calling it changes nothing."""
        ...


class NewPages(NamedTuple):
    """Pages never seen before, as columns."""

    page: list[int]
    rate: list[float]
    weight: list[float]

    def heat(self) -> list[float]:
        """Rate times weight of each: the slope of its blur."""
        return [rate * weight for rate, weight in zip(self.rate, self.weight, strict=True)]


class KnownPages:
    """The pages that were reported to a strategy; keeps rule 2 for all of them."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def __len__(self) -> int:
        return len(self._known)

    def admit(self, page: IntArray, rate: FloatArray, weight: FloatArray | None = None) -> NewPages:
        """The pages never seen before with their rates and weights, in order, from now on known. O(len(page)).

        >>> import numpy as np
        >>> known = KnownPages()
        >>> known.admit(np.array([4, 2, 4]), np.array([0.1, 0.2, 0.3]))
        NewPages(page=[4, 2], rate=[0.1, 0.2], weight=[1.0, 1.0])
        """
        known = self._known
        new = NewPages([], [], [])
        weights = [1.0] * len(page) if weight is None else weight.tolist()
        for one, its_rate, its_weight in zip(page.tolist(), rate.tolist(), weights, strict=True):
            if one not in known:
                known.add(one)
                new.page.append(one)
                new.rate.append(its_rate)
                new.weight.append(its_weight)
        return new


@runtime_checkable
class GivesUpPages(Protocol):
    """A strategy that gives pages up, and says which."""

    def given_up(self) -> IntArray | None:
        """The pages it gave up so far; ``None`` if it does not decide that."""
        ...


@runtime_checkable
class ProvesBound(Protocol):
    """A strategy that knows how far from the best its plan can be."""

    def proven(self) -> ProvenBound | None:
        """What is proven of its plan; ``None`` if nothing is, or there is no plan yet."""
        ...


@dataclass(frozen=True, slots=True)
class ProvenBound:
    """What the plan of a capture is worth, and what no plan exceeds."""

    pages: int
    """Pages in the plan; those found later are outside of it."""
    expected_coherence: float
    """Expected weight of the pages that are the same at visit and revisit, by the rates believed (SHARC 5.6)."""
    bound: float
    """No order of visits and revisits of these pages has more."""

    @property
    def gap(self) -> float:
        """How far from the optimum the plan can be, as a share of the bound.

        >>> ProvenBound(3, 1.5, 2.0).gap
        0.25
        """
        return (self.bound - self.expected_coherence) / self.bound if self.bound else 0.0


@dataclass(frozen=True, slots=True)
class PlanDecision:
    """A plan of all pages, and what there is to say of it."""

    plan: CapturePlan
    hopeless: BoolArray | None = None
    """Which pages it gives up, one value a page; ``None`` if it does not decide that."""
    proven: ProvenBound | None = None


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """Pages 0..n−1 and their links, as columns."""

    offsets: IntArray
    """Page p links to ``targets[offsets[p]:offsets[p+1]]``. Shape (n + 1,)."""
    targets: IntArray
    """In the order of the links on the page."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def links(self, page: int) -> IntArray:
        """The pages that ``page`` links to."""
        return self.targets[self.offsets[page] : self.offsets[page + 1]]


@dataclass(frozen=True, slots=True)
class StrategyWalk:
    """What a strategy did."""

    visited: IntArray
    """Pages in the order of their visits, one a slot."""
    revisited: IntArray
    """Pages in the order of their revisits, in the slots that follow."""

    def plan(self) -> CapturePlan:
        """The slots of the visited pages, by ascending page number; of all pages, if all were reached.

        A page without a revisit in a capture that has some keeps the slot of its visit.
        """
        by_page = np.argsort(self.visited)
        visit = by_page.astype(np.int64)
        if not len(self.revisited):
            return CapturePlan(visit)
        revisit = visit.copy()
        rows = np.searchsorted(self.visited[by_page], self.revisited)
        revisit[rows] = len(self.visited) + np.arange(len(self.revisited))
        return CapturePlan(visit, revisit)


def walk(
    strategy: Strategy, graph: LinkGraph, seeds: IntArray, rate: FloatArray, weight: FloatArray | None = None
) -> StrategyWalk:
    """Capture what can be reached from ``seeds``: visit, follow the links, visit on; then the revisits.

    ``rate`` and ``weight`` have one value a page of the graph. With all pages as seeds this is the offline case.
    O(pages + links) beside the strategy's own work.

    >>> from recrawl.capture.single_visit import BreadthFirst
    >>> graph = LinkGraph(np.array([0, 2, 2, 2]), np.array([2, 1]))
    >>> walk(BreadthFirst(), graph, np.array([0]), np.zeros(3)).visited.tolist()
    [0, 2, 1]
    """
    visited: list[int] = []
    strategy.discover(seeds, rate[seeds], None if weight is None else weight[seeds])
    while (page := strategy.next_page()) is not None:
        visited.append(page)
        links = graph.links(page)
        if len(links):
            strategy.discover(links, rate[links], None if weight is None else weight[links])
    return StrategyWalk(np.array(visited, dtype=np.int64), strategy.revisits())
