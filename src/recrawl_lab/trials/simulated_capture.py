"""Simulated site captures: run a strategy on a virtual site, and measure expected and actual quality.

One slot takes one delay; slot s is at start + s · delay. Links do not change during a capture. A change is visible to
observations at its time or later.

A virtual site has a link graph, true rates, and the times of all changes. The synthetic sites are those of the thesis
(SHARC 4.5.3): a complete tree of pages in breadth-first numbering, rates λ_i = scale/(i + 1)^skew by that number or in
reverse, and the links of a page in random order. The thesis states only the rates; the rest is chosen such that the
published numbers result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from recrawl.assess.blur_coherence import actual_blur, average_blur, expected_coherence
from recrawl.capture import OFFLINE, REVISITING, STRATEGIES, CaptureTerms, Strategy
from recrawl.capture.strategy import LinkGraph, walk
from recrawl.model import CapturePlan, ChangeKind, FloatArray, IntArray, Outcome, Verdict, Visits
from recrawl.simulate.sites import power_rates
from recrawl.simulate.virtual_web import ChangeProcess, EventTimes, PoissonProcess

Leaves = Literal["cold", "hot"]
"""Which end of the tree holds the pages that seldom change."""


@dataclass(frozen=True, slots=True)
class VirtualSite:
    """The pages of a site as a capture meets them. Times in seconds, rates per second."""

    graph: LinkGraph
    """Links as they are while the capture lasts."""
    seeds: IntArray
    """The pages that a capture from outside knows of."""
    rate: FloatArray
    """True rate of each page: what an oracle tells."""
    changes: EventTimes
    """When each page changed; one row per page. A page that goes away changes for the last time."""

    def __post_init__(self) -> None:
        if not len(self.graph) == len(self.rate) == len(self.changes):
            msg = f"{len(self.graph)} pages with links, {len(self.rate)} rates, {len(self.changes)} rows of changes"
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.rate)


def tree_graph(pages: int, outdegree: int, rng: np.random.Generator) -> LinkGraph:
    """A complete tree: page i > 0 is linked from page ⌊(i−1)/outdegree⌋, links in random order. O(n log n).

    >>> graph = tree_graph(5, 2, np.random.default_rng(0))
    >>> sorted(graph.links(0).tolist()), sorted(graph.links(1).tolist()), graph.links(2).tolist()
    ([1, 2], [3, 4], [])
    """
    child = np.arange(1, pages, dtype=np.int64)
    parent = (child - 1) // outdegree
    offsets = np.concatenate([[0], np.cumsum(np.bincount(parent, minlength=pages))]).astype(np.int64)
    return LinkGraph(offsets, child[np.lexsort((rng.random(len(child)), parent))])


def thesis_site(  # noqa: PLR0913 - what makes a site, by keyword
    pages: int,
    *,
    end: float,
    rng: np.random.Generator,
    skew: float = 1.2,
    outdegree: int = 400,
    leaves: Leaves = "cold",
    scale: float = 1.0,
    law: ChangeProcess | None = None,
) -> VirtualSite:
    """A synthetic site of the thesis with its changes from 0 to ``end``; page 0, the root, is the only seed.

    ``scale`` is the rate of the hottest page, per second. ``law`` is Poisson unless ``WholeGapProcess`` is wanted,
    which the published tables were made with. O(n log n) for n pages and changes.

    >>> site = thesis_site(3, end=10.0, skew=1.0, rng=np.random.default_rng(0))
    >>> site.rate.round(3).tolist(), site.seeds.tolist()
    ([1.0, 0.5, 0.333], [0])
    """
    graph = tree_graph(pages, outdegree, rng)
    rate = power_rates(pages, scale=scale, skew=skew, leaves=leaves)
    changes = (law or PoissonProcess()).times(rate, 0.0, end, rng)
    return VirtualSite(graph, np.zeros(min(pages, 1), dtype=np.int64), rate, changes)


@dataclass(frozen=True, slots=True)
class SimulatedQuality:
    """How good a capture is, by the true rates and by what really happened."""

    pages: int
    """Pages that were reached."""
    unreached: int
    """Pages that no path of links leads to."""
    expected_blur: float
    """Blur a page if the pages change at random with their true rates (SHARC 4.4); of one instant: 0."""
    actual_blur: float
    """Blur a page by the moments of its changes (SHARC 4.19, 4.20)."""
    expected_incoherence: float
    """Pages expected to change between visit and revisit (SHARC 5.6); 0 without revisits."""
    incoherence: int
    """Pages that did."""


@dataclass(frozen=True, slots=True)
class SimulatedCapture:
    """When each page of a site was seen. All columns have one row a reached page."""

    site: VirtualSite
    page: IntArray
    """Ascending."""
    plan: CapturePlan
    start: float
    """When the first page was asked for, seconds."""
    delay: float

    @property
    def visit(self) -> FloatArray:
        """When each page was visited, seconds."""
        return self.plan.visit_times(self.start, self.delay)

    @property
    def revisit(self) -> FloatArray:
        """When each page was seen for the last time; the visit itself where it was seen once."""
        return self.plan.revisit_times(self.start, self.delay)

    @property
    def end(self) -> float:
        """When the last page was asked for."""
        return float(self.revisit.max(initial=self.start))

    def visits(self) -> Visits:
        """All observations in the order of time, with the verdicts of a perfect detector. O(n log n)."""
        last, again = self.revisit, self.plan.revisit is not None
        seen = self.site.changes.until(self.page, self.visit)
        rows = np.flatnonzero(last > self.visit) if again else np.empty(0, dtype=np.int64)
        changed = self.site.changes.until(self.page[rows], last[rows]) > seen[rows]
        verdict = np.concatenate(
            [
                np.full(len(self.page), Verdict.UNKNOWN),
                np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED),
            ]
        )
        time = np.concatenate([self.visit, last[rows]])
        order = np.argsort(time, kind="stable")
        return Visits.of(
            np.concatenate([self.page, self.page[rows]])[order],
            time[order],
            outcome=Outcome.FETCHED,
            verdict=verdict[order],
            kinds=np.where(verdict[order] == Verdict.CHANGED, ChangeKind.TEXT, ChangeKind.NONE),
        )

    def quality(self) -> SimulatedQuality:
        """Expected by closed forms, actual from the change times. O(n log m) for n pages of at most m changes."""
        return SimulatedQuality(
            pages=len(self.page),
            unreached=len(self.site) - len(self.page),
            expected_blur=self.expected_blur(),
            actual_blur=self.actual_blur(),
            expected_incoherence=self.expected_incoherence(),
            incoherence=self.incoherence(),
        )

    def expected_blur(self) -> float:
        """See :attr:`Quality.expected_blur`; NaN without pages. O(n)."""
        return average_blur(self.site.rate[self.page], self.visit, self.start, self.end, self._confirmation())

    def actual_blur(self) -> float:
        """See :attr:`Quality.actual_blur`; NaN without pages. O(n + changes)."""
        if not len(self.page) or self.end <= self.start:
            return 0.0 if len(self.page) else float("nan")
        changes = self._changes()
        times = changes.offsets, changes.times
        return float(actual_blur(*times, self.visit, self.start, self.end, self._confirmation()).mean())

    def expected_incoherence(self) -> float:
        """See :attr:`Quality.expected_incoherence`. O(n)."""
        return len(self.page) - expected_coherence(self.site.rate[self.page], self.revisit - self.visit)

    def incoherence(self) -> int:
        """See :attr:`Quality.incoherence`. O(n log m)."""
        if self.plan.revisit is None:
            return 0
        changes = self.site.changes
        return int((changes.until(self.page, self.revisit) > changes.until(self.page, self.visit)).sum())

    def _confirmation(self) -> FloatArray | None:
        return None if self.plan.revisit is None else self.revisit

    def _changes(self) -> EventTimes:
        """The changes of the reached pages, one row each."""
        changes = self.site.changes
        return changes if len(self.page) == len(changes) else changes.take(self.page)


def simulate_capture(  # noqa: PLR0913 - a capture and what it may know, by keyword
    site: VirtualSite,
    strategy: Strategy,
    *,
    delay: float,
    start: float = 0.0,
    believed: FloatArray | None = None,
    weight: FloatArray | None = None,
    offline: bool = False,
) -> SimulatedCapture:
    """Capture a site from its seeds, or ``offline`` with all its pages known beforehand.

    ``believed`` are the rates given to the strategy, one per page; the true ones if not given. O(pages + links)
    beside the strategy's own work.

    >>> from recrawl_lab.trials.simulated_capture import thesis_site
    >>> site = thesis_site(5, end=9.0, outdegree=2, rng=np.random.default_rng(0))
    >>> simulate_capture(site, STRATEGIES["bfs-lifo"](CaptureTerms(delay=1.0)), delay=1.0).end
    9.0
    """
    seeds = np.arange(len(site), dtype=np.int64) if offline else site.seeds
    path = walk(strategy, site.graph, seeds, site.rate if believed is None else believed, weight)
    return SimulatedCapture(site, np.sort(path.visited), path.plan(), start, delay)


def capture_named(
    site: VirtualSite, name: str, terms: CaptureTerms, *, start: float = 0.0, believed: FloatArray | None = None
) -> SimulatedCapture:
    """Capture a site by the strategy of that name: those that plan offline know all pages, others the seeds."""
    return simulate_capture(
        site, STRATEGIES[name](terms), delay=terms.delay, start=start, believed=believed, offline=name in OFFLINE
    )


def slots(name: str, pages: int) -> int:
    """How many slots a strategy takes at most: one a page, or two."""
    return pages * (2 if name in REVISITING else 1)
