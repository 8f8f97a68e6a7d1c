"""The laws of known rates: their inverse, the golden allocations, and the penalties they make least."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from recrawl.schedule.objectives import OBJECTIVES
from recrawl.schedule.price.budget_price import allocate
from recrawl.schedule.price.known_rates import LAWS, KnownRates, age_value, g, h, inverse_g

FIVE = np.arange(1.0, 6.0)
ONES = np.ones(5)


@pytest.mark.parametrize("name", LAWS)
@given(log_y=st.floats(-60.0, 60.0))
@settings(deadline=None, max_examples=80)
def test_the_value_between_visits_is_what_was_asked_for(name, log_y):
    law = LAWS[name]
    y = np.exp(np.array([min(log_y, -1e-9) if law.drops else log_y]))
    x = law.changes_between(y)
    nearby = law.value(x * np.exp(1e-7 * np.array([-1.0, 1.0])))  # as exact as 1e-7 of x
    assert nearby[0] * (1 - 1e-9) <= y[0] <= nearby[1] * (1 + 1e-9) or x[0] == law.soonest


def test_edges_of_the_inverse():
    for law in LAWS.values():
        assert law.changes_between(np.array([0.0, np.inf])).tolist() == [law.soonest, np.inf]
        if law.drops:
            assert np.isinf(law.changes_between(np.array([1.0, 5.0]))).all()
    y = np.concatenate([10.0 ** -np.arange(1.0, 20.0), 1 - 10.0 ** -np.arange(1.0, 16.0)])
    np.testing.assert_allclose(LAWS["freshness"].changes_between(y), inverse_g(y), rtol=1e-11)


@given(st.floats(1e-9, 0.2))
def test_series_meet_the_closed_forms(x):
    at = np.array([x])
    exact = float(integrate.quad(lambda s: -np.expm1(-s), 0, x)[0])
    assert h(at)[0] == pytest.approx(exact, rel=1e-9)
    assert age_value(at)[0] == pytest.approx(float(integrate.quad(lambda s: -s * np.expm1(-s), 0, x)[0]), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("freshness", [1.149892, 1.358412, 1.353835, 1.137860, 0.0]),
        ("age", [0.834870, 0.967925, 1.033520, 1.070613, 1.093072]),
        ("harmonic", [0.716564, 0.920551, 1.044124, 1.128640, 1.190121]),
        ("poisson", [1.385971, 1.374272, 1.132623, 0.771942, 0.335193]),
        ("changes", FIVE / 3),
        ("blur", 5 * np.sqrt(FIVE) / np.sqrt(FIVE).sum()),
    ],
)
def test_golden_allocations(name, rates):
    found = allocate(KnownRates(LAWS[name], FIVE, ONES, ONES), 5.0)
    np.testing.assert_allclose(found.rate, rates, atol=1e-6)
    assert found.rate.sum() == pytest.approx(5.0, rel=1e-12)
    if name == "freshness":
        assert 1 - LAWS[name].reached(FIVE, ONES, found.rate) == pytest.approx(0.3738887, abs=1e-7)


@given(seed=st.integers(0, 10**6), budget=st.floats(0.05, 30.0))
@settings(deadline=None, max_examples=40)
def test_memoryless_freshness_is_what_sorting_gives(seed, budget):
    """Azar and others: sort by w/λ, keep the longest prefix whose pages all get something."""
    rng = np.random.default_rng(seed)
    rate, weight = np.exp(rng.normal(0, 1, 20)), np.exp(rng.normal(0, 1, 20))
    order = np.argsort(-weight / rate)
    root, sums = np.cumsum(np.sqrt(weight * rate)[order]), np.cumsum(rate[order])
    kept = np.flatnonzero((weight / rate)[order] * ((budget + sums) / root) ** 2 > 1).max()
    price = (root[kept] / (budget + sums[kept])) ** 2
    expected = np.maximum(np.sqrt(weight * rate / price) - rate, 0.0)
    found = allocate(KnownRates(LAWS["poisson"], rate, weight, np.ones(20)), budget)
    np.testing.assert_allclose(found.rate, expected, atol=1e-7 * budget)
    assert found.price == pytest.approx(price, rel=1e-6)


def test_lambda_crawl_forms():
    price, rate, weight = 0.7, np.array([0.2, 1.0, 9.0]), np.array([1.0, 2.0, 3.0])
    a = weight / price
    incomplete = KnownRates(LAWS["lambda-incomplete"], rate, weight, np.ones(3)).rates(price)
    np.testing.assert_allclose(incomplete, 2 * a / (1 + np.sqrt(1 + 4 * a / rate)), rtol=1e-8)
    complete = KnownRates(LAWS["lambda-complete"], rate, weight, np.ones(3)).rates(price)
    np.testing.assert_allclose(complete, rate * np.minimum(1, a / rate), rtol=1e-8)


def test_equal_spacing_beats_memoryless_visits():
    """Algorithms §2.2: the same budget, spaced, keeps more pages fresh, even with rates meant for memoryless visits."""
    rng = np.random.default_rng(1)
    rate, weight = np.exp(rng.normal(-3, 2, 500)), np.exp(rng.normal(0, 1, 500))
    poisson, spaced = (
        allocate(KnownRates(LAWS[name], rate, weight, np.ones(500)), 15.0).rate for name in ("poisson", "freshness")
    )
    memoryless = LAWS["poisson"].reached(rate, weight, poisson)
    same_rates = LAWS["freshness"].reached(rate, weight, poisson)
    assert LAWS["freshness"].reached(rate, weight, spaced) < same_rates < memoryless - 0.04


D = {
    "freshness": lambda s: -np.expm1(-s),
    "harmonic": lambda s: float(integrate.quad(lambda v: -np.expm1(-v) / v, 0, s)[0]) if s > 0 else 0.0,
    "age": lambda s: s + np.expm1(-s),
    "blur": lambda s: s,
}


@pytest.mark.parametrize("name", D)
@pytest.mark.parametrize("x", [0.01, 0.7, 6.0])
def test_penalties_are_means_over_an_interval(name, x):
    mean = integrate.quad(D[name], 0, x)[0] / x
    assert LAWS[name].penalty(np.array([x]))[0] == pytest.approx(mean, rel=1e-6)


def test_the_first_laws_are_the_objectives():
    known = {"freshness", "changes", "harmonic", "archive", "age", "blur"}
    assert known < set(LAWS)
    assert known == set(OBJECTIVES) - {"links"}
    assert float(g(np.array(1.0))) == LAWS["changes"].value(np.array(1.0))
