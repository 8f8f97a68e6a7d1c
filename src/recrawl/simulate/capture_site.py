"""A virtual site to capture: its link graph, its true rates, and every moment at which each page changed.

The synthetic sites are those of the thesis (SHARC 4.5.3): a complete tree of pages in breadth-first numbering, rates
λ_i = scale/(i + 1)^skew by that number or in reverse, and the links of a page in random order. Only the rates are
told there; the rest is what gives the published numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from recrawl.capture.walk import LinkGraph
from recrawl.model import FloatArray, IntArray
from recrawl.simulate.laws import Law, Poisson
from recrawl.simulate.sites import power_rates
from recrawl.simulate.web_events import EventTimes

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
    """When each page changed; one row a page. A page that goes away changes for the last time."""

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
    law: Law | None = None,
) -> VirtualSite:
    """A synthetic site of the thesis with its changes from 0 to ``end``; page 0, the root, is the only seed.

    ``scale`` is the rate of the hottest page, per second. ``law`` is Poisson unless ``WholeGaps`` is wanted, which
    the published tables were made with. O(n log n) for n pages and changes.

    >>> site = thesis_site(3, end=10.0, skew=1.0, rng=np.random.default_rng(0))
    >>> site.rate.round(3).tolist(), site.seeds.tolist()
    ([1.0, 0.5, 0.333], [0])
    """
    graph = tree_graph(pages, outdegree, rng)
    rate = power_rates(pages, scale=scale, skew=skew, leaves=leaves)
    changes = (law or Poisson()).times(rate, 0.0, end, rng)
    return VirtualSite(graph, np.zeros(min(pages, 1), dtype=np.int64), rate, changes)
