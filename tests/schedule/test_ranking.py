"""Ranking: the index at known rates, and the best of many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.estimate.point_evidence import PointBelief
from recrawl.schedule.objectives import OBJECTIVES
from recrawl.schedule.price.due_times import VisitDemand
from recrawl_lab.trials import ranking
from recrawl_lab.trials.ranking import best, index


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_index_is_the_worth_of_a_visit(name, monkeypatch):
    rng = np.random.default_rng(0)
    rate, weight, cost = (np.exp(rng.normal(0, s, 500)) for s in (3.0, 1.0, 0.5))
    rate[:3], elapsed = 0.0, rng.exponential(1.0, 500)
    elapsed[3] = 0.0
    fast = index(OBJECTIVES[name], rate, weight, cost, elapsed)
    worth = VisitDemand(OBJECTIVES[name], PointBelief(rate), weight, cost, 1.0, 2.0).worth(elapsed)
    np.testing.assert_allclose(fast, worth, rtol=1e-6, atol=1e-14)
    monkeypatch.setattr(ranking, "can_compile", lambda: False)
    np.testing.assert_allclose(index(OBJECTIVES[name], rate, weight, cost, elapsed), worth)


@given(
    values=st.lists(st.integers(0, 5).map(float), max_size=60),
    most=st.integers(-1, 70),
)
def test_best_is_sorting_and_taking_the_first(values, most):
    at = np.array(values)
    expected = sorted(range(len(values)), key=lambda place: (-values[place], place))[: max(most, 0)]
    assert best(at, most).tolist() == expected


@pytest.mark.parametrize("kind", ["smooth", "few", "equal", "sorted"])
@pytest.mark.parametrize("most", [0, 1, 700, 60_000, 200_000])
def test_best_of_many(kind, most):
    rng = np.random.default_rng(2)
    values = {
        "smooth": rng.lognormal(0, 2, 200_000),
        "few": np.where(rng.uniform(size=200_000) < 1e-3, 5.0, 1.0),
        "equal": np.ones(200_000),
        "sorted": np.arange(200_000.0),
    }[kind]
    expected = np.lexsort((np.arange(200_000), -values))[:most]
    np.testing.assert_array_equal(best(values, most), expected)
