"""SN: what the links of all pages at one moment say about a page (paper 004, §5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.predict.link_ranks import link_ranks
from recrawl.predict.page_graph import PageGraph

NETWORK: Final = ("internal_inlinks", "external_inlinks", "pagerank", "trustrank")


@dataclass(frozen=True, slots=True)
class NetworkState:
    """Where n pages stand in the graph at one moment."""

    internal_inlinks: IntArray
    external_inlinks: IntArray
    pagerank: FloatArray
    """Times the number of pages, so that 1 is the average in a small web and in a large one."""
    trustrank: FloatArray
    """The same with restarts on trusted pages only."""


def network_state(graph: PageGraph, trusted: BoolArray, before: NetworkState | None = None) -> NetworkState:
    """The state of a graph, found sooner from the state of an earlier one of the same pages. O(links) a round.

    Without any trusted page all are trusted alike.
    """
    page = link_ranks(graph, start=None if before is None else before.pagerank)
    trust = link_ranks(graph, restart=trusted.astype(float), start=None if before is None else before.trustrank)
    return NetworkState(
        graph.inlinks(internal=True),
        graph.inlinks(internal=False),
        page.rank * graph.pages,
        trust.rank * graph.pages,
    )
