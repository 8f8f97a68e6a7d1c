"""The belief on a grid: its own arithmetic, in compiled code and in numpy, and what only it can do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from recrawl.model import GridBelief, belief
from recrawl.model.belief import LOWEST_RATE, doubling, half_octaves
from recrawl.schedule.objectives import FreshnessObjective
from recrawl.time import DAY


def random_belief(pages, seed=0, rates=None):
    rates = half_octaves() if rates is None else rates
    return GridBelief.of(rates, np.random.default_rng(seed).dirichlet(np.full(len(rates), 0.3), pages) + 1e-15)


@pytest.fixture(params=["compiled code", "numpy"])
def both_paths(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(belief, "can_compile", lambda: False)


@pytest.mark.usefixtures("both_paths")
@pytest.mark.parametrize("pages", [0, 1, 16, 33])
def test_sums_are_exact_in_both_paths(pages):
    belief = random_belief(pages)
    t = np.random.default_rng(1).lognormal(10.0, 6.0, pages)
    weights = belief.weights.astype(np.longdouble)
    weights /= weights.sum(axis=1, keepdims=True)
    rates = belief.rates.astype(np.longdouble)
    x = t[:, None].astype(np.longdouble) * rates
    for found, values in (
        (belief.survival(t), np.exp(-x)),
        (belief.p_change(t), -np.expm1(-x)),
        (belief.unchanged_time(t), -np.expm1(-x) / rates),
        (belief.change_density(t), rates * np.exp(-x)),
    ):
        np.testing.assert_allclose(found, (weights * values).sum(axis=1).astype(np.float64), rtol=2e-12, atol=1e-300)


@pytest.mark.usefixtures("both_paths")
def test_index_golden():
    """Algorithms §9: λ = .1, w = 2, t = 10 has the value 5.284822353142."""
    certain = GridBelief.of([0.05, 0.1, 0.2], [0.0, 1.0, 0.0])
    assert 2 * FreshnessObjective().value(certain, np.array([10.0]))[0] == pytest.approx(5.284822353142, rel=1e-12)


def test_the_usual_grid_spans_what_it_should():
    rates = half_octaves() * DAY
    assert len(rates) == 36
    assert rates[0] == pytest.approx(3e-4)
    assert rates[-1] > 30
    np.testing.assert_allclose(rates[2:], 2 * rates[:-2], rtol=1e-15)


@given(st.floats(1e-15, 1e9), st.floats(1e-15, 1e9))
def test_longer_grids_are_pieces_of_one_lattice(one, other):
    rates = half_octaves(min(one, other), max(one, other))
    assert rates[0] <= min(one, other) * (1 + 1e-9)
    assert rates[-1] >= max(one, other) * (1 - 1e-9)
    assert np.isclose(rates, LOWEST_RATE, rtol=1e-15).any()
    assert doubling(rates) == 2


def test_doubling_is_found_or_not():
    assert doubling(np.array([3.0])) == 1
    assert doubling(np.geomspace(1.0, 64.0, 7)) == 1
    assert doubling(np.geomspace(1.0, 64.0, 19)) == 3
    assert doubling(np.geomspace(1.0, 64.0, 20)) == 20


@given(st.integers(0, 10**6), st.floats(0.001, 0.999))
@settings(deadline=None)
def test_cumulative_is_the_inverse_of_quantile(seed, q):
    belief = random_belief(7, seed)
    np.testing.assert_allclose(belief.cumulative(belief.quantile(q)), q, atol=2e-6)


def test_quantiles_are_no_stairs():
    fine = random_belief(1)
    found = np.array([fine.quantile(q)[0] for q in np.linspace(0.0, 1.0, 400)])
    assert (np.diff(found) > 0).all()
    assert found[0] >= fine.rates[0] / 1.2
    assert found[-1] <= fine.rates[-1] * 1.2


def test_quantiles_follow_the_distribution_the_weights_came_from():
    rates = half_octaves()
    law = stats.norm(np.log(1 / (30 * DAY)), 1.5)
    edges = np.log(rates)[:, None] + np.array([-0.25, 0.25]) * np.log(2.0)
    belief = GridBelief.of(rates, np.diff(law.cdf(edges), axis=1)[:, 0])
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert np.log(belief.quantile(q)[0]) == pytest.approx(law.ppf(q), abs=0.03)  # a cell is 0.35 wide
        assert belief.cumulative(np.array([np.exp(law.ppf(q))]))[0] == pytest.approx(q, abs=0.005)


def test_cumulative_beyond_the_ends():
    belief = random_belief(2)
    assert belief.cumulative(np.array([0.0, np.inf])).tolist() == [0.0, 1.0]


def test_a_mixture_expects_the_mean_of_what_its_parts_expect():
    parts = random_belief(4, 5)
    share = np.random.default_rng(6).dirichlet(np.ones(4), 100)
    mixed = GridBelief.mixture(share, parts)
    t = np.full(100, 10 * DAY)
    np.testing.assert_allclose(mixed.p_change(t), share @ parts.p_change(t[:4]), rtol=1e-6)
    assert mixed.weights.dtype == np.float32
    with pytest.raises(ValueError, match="4 components"):
        GridBelief.mixture([[1.0]], parts)


@pytest.mark.parametrize(
    ("rates", "weights", "complaint"),
    [
        ([2.0, 1.0], [1.0, 1.0], "ascending"),
        ([0.0, 1.0], [1.0, 1.0], "positive"),
        ([1.0, np.inf], [1.0, 1.0], "finite"),
        ([], [], "rates"),
        ([1.0, 2.0], [1.0], "2 rates"),
        ([1.0, 2.0], [0.0, 0.0], "not all 0"),
        ([1.0, 2.0], [-1.0, 2.0], ">= 0"),
        ([1.0, 2.0], [np.nan, 2.0], "not all 0"),
    ],
)
def test_bad_grids_are_refused(rates, weights, complaint):
    with pytest.raises(ValueError, match=complaint):
        GridBelief.of(rates, weights)


@pytest.mark.usefixtures("both_paths")
def test_many_pages_are_one_page_many_times():
    many = random_belief(20_000)
    some = np.array([0, 1, 16_383, 16_384, 19_999])
    t = np.full(20_000, 9 * DAY)
    np.testing.assert_allclose(many.survival(t)[some], many.take(some).survival(t[some]), rtol=1e-14)
    np.testing.assert_array_equal(many.quantile(0.4)[some], many.take(some).quantile(0.4))
    np.testing.assert_allclose(many.mean()[some], many.take(some).mean(), rtol=1e-14)
