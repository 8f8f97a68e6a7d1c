"""PageRank and TrustRank against the linear equations they solve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.predict.page_versions import PageGraph, TimedLinks
from recrawl.predict.static_features import DAMPING, link_ranks

graphs = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda link: link[0] != link[1])),
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
    )
)


def graph_of(n, links):
    source, target = np.array(links, dtype=np.int64).reshape(-1, 2).T
    return PageGraph(n, source, target, np.ones(len(source), np.bool_))


def solved(graph, restart):
    """r = d (Pᵀ r + u Σ_dangling r) + (1 − d) u by elimination."""
    n = graph.pages
    links = np.zeros((n, n))
    np.add.at(links, (graph.source, graph.target), 1.0)
    out = links.sum(axis=1, keepdims=True)
    step = np.where(out > 0, links / np.where(out > 0, out, 1.0), restart)
    return np.linalg.solve(np.eye(n) - DAMPING * step.T, (1 - DAMPING) * restart)


@given(graphs)
def test_ranks_solve_their_equations(drawn):
    n, links, weight = drawn
    graph = graph_of(n, links)
    uniform = np.full(n, 1.0 / n)
    assert link_ranks(graph).rank == pytest.approx(solved(graph, uniform), abs=2e-8)
    restart = np.array(weight, dtype=float)
    trusted = restart / restart.sum() if restart.sum() else uniform
    assert link_ranks(graph, restart=restart).rank == pytest.approx(solved(graph, trusted), abs=2e-8)


@given(graphs, st.integers(0, 1000))
def test_the_start_changes_the_work_and_not_the_result(drawn, seed):
    n, links, _ = drawn
    graph = graph_of(n, links)
    cold = link_ranks(graph)
    anywhere = link_ranks(graph, start=np.random.default_rng(seed).random(n))
    assert anywhere.rank == pytest.approx(cold.rank, abs=2e-8)
    assert link_ranks(graph, start=cold.rank).rounds <= 2


def test_a_small_change_takes_fewer_rounds():
    rng = np.random.default_rng(4)
    links = rng.integers(0, 2000, (10_000, 2))
    links = links[links[:, 0] != links[:, 1]]
    before, after = graph_of(2000, links), graph_of(2000, np.vstack([links, [[3, 5]]]))
    cold, warm = link_ranks(after), link_ranks(after, start=link_ranks(before).rank)
    assert warm.rounds < cold.rounds
    assert warm.rank == pytest.approx(cold.rank, abs=1e-8)


def test_no_pages_have_no_ranks():
    assert len(link_ranks(graph_of(0, [])).rank) == 0


def test_untrusted_islands_get_no_trust():
    found = link_ranks(graph_of(4, [(0, 1), (1, 0), (2, 3), (3, 2)]), restart=np.array([1.0, 0, 0, 0]))
    assert found.rank[2:] == pytest.approx([0, 0], abs=1e-8)
    assert found.rank[0] > found.rank[1] > 0.4


def test_a_graph_holds_what_was_known_just_before_its_time():
    links = TimedLinks(
        source=np.array([10, 10, 20, 20, 99, 30]),
        target=np.array([20, 30, 30, 10, 10, 30]),
        added=np.array([1.0, 2.0, 5.0, 1.0, 1.0, 1.0]),
        removed=np.array([np.inf, np.nan, np.inf, 4.0, np.inf, np.inf]),
        internal=np.array([True, True, False, False, True, True]),
    )
    page = np.array([10, 20, 30])
    early, middle, late = links.graphs_at([2.0, 5.0, 6.0], page)
    assert list(zip(early.source, early.target, strict=True)) == [(0, 1), (1, 0)]
    assert list(zip(middle.source, middle.target, strict=True)) == [(0, 1), (0, 2)]
    assert list(zip(late.source, late.target, strict=True)) == [(0, 1), (0, 2), (1, 2)]
    assert late.inlinks(internal=True).tolist() == [0, 1, 1]
    assert late.inlinks(internal=False).tolist() == [0, 0, 1]
    assert np.isinf(links.before(4.0).removed).all()
