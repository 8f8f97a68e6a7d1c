"""PageRank and TrustRank: how likely a surfer who follows links is to be on a page.

With probability ``damping`` the surfer follows a link of the page, each as likely as the other, else restarts: anywhere
(PageRank, Brin and Page 1998), or on a trusted page (TrustRank, Gyöngyi, Garcia-Molina and Pedersen 2004). On a page
without links the surfer restarts too. The ranks r solve

    r = d (Pᵀ r + u · Σ_{dangling} r) + (1 − d) u

with restart distribution u, and are found by power iteration: each round shrinks the error by d.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from recrawl.model import FloatArray
from recrawl.predict.page_graph import PageGraph

DAMPING = 0.85
TOLERANCE = 1e-8
"""Sum of the absolute errors of all ranks, which themselves sum up to 1."""
ROUNDS = 500
"""Enough for any damping up to 0.95; what is not exact by then is a bug."""


@dataclass(frozen=True, slots=True)
class LinkRanks:
    """Ranks of all pages, summing up to 1."""

    rank: FloatArray
    rounds: int
    """Rounds of the iteration: few where it started from ranks of a graph that hardly differs."""


def link_ranks(
    graph: PageGraph, *, restart: FloatArray | None = None, start: FloatArray | None = None, damping: float = DAMPING
) -> LinkRanks:
    """The ranks of a graph. O(links) a round.

    Args:
        graph: links; of several between the same pages each counts.
        restart: how likely each page is at a restart, up to a factor; equally likely if not given, and if all are 0.
        start: ranks to begin with, such as those of the week before; the result is the same, found sooner.
        damping: probability d of following a link.
    """
    n = graph.pages
    if not n:
        return LinkRanks(np.empty(0), 0)
    u = _distribution(restart, n)
    links = np.bincount(graph.source, minlength=n).astype(np.float64)
    dangling = links == 0
    share = damping / np.where(dangling, 1.0, links)
    step = sparse.csr_array((share[graph.source], (graph.target, graph.source)), shape=(n, n))
    rank = _distribution(start, n)
    # The error after a round is at most d/(1 − d) times what the round moved.
    enough = TOLERANCE * (1.0 - damping) / damping if damping > 0 else np.inf
    for rounds in range(1, ROUNDS + 1):
        moved = step @ rank
        moved += (damping * float(rank[dangling].sum()) + 1.0 - damping) * u
        moved /= moved.sum()
        difference = float(np.abs(moved - rank).sum())
        rank = moved
        if difference <= enough:
            return LinkRanks(rank, rounds)
    msg = f"ranks still move by {difference:.2g} after {ROUNDS} rounds"
    raise ArithmeticError(msg)


def _distribution(weight: FloatArray | None, n: int) -> FloatArray:
    if weight is None or not weight.sum() > 0:
        return np.full(n, 1.0 / n)
    return np.asarray(weight / weight.sum(), dtype=np.float64)
