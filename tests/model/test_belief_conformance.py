"""What every belief must keep, whatever it is made of: one suite over all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import GammaBelief, GridBelief
from recrawl.model.belief import half_octaves
from recrawl.time import DAY, HOUR

PAGES = 23
KINDS = ("point", "gamma", "grid", "odd grid")


def some_belief(kind, seed):
    rng = np.random.default_rng(seed)
    rate = np.exp(rng.normal(0.0, 2.0, PAGES)) / (30 * DAY)
    match kind:
        case "point":
            return PointBelief(rate)
        case "gamma":
            a = np.exp(rng.normal(0.0, 1.0, PAGES)) + 0.05
            return GammaBelief(a, a / rate)
        case "grid":
            return GridBelief.of(half_octaves(), rng.dirichlet(np.full(36, 0.3), PAGES) + 1e-12)
        case _:
            rates = np.geomspace(0.01, 20.0, 7) / DAY
            return GridBelief.of(rates, rng.dirichlet(np.ones(7), PAGES))


beliefs = st.builds(some_belief, st.sampled_from(KINDS), st.integers(0, 10**6))
times = st.floats(HOUR, 3_000 * DAY)


def at(t):
    return np.full(PAGES, t)


@given(beliefs, times)
@settings(deadline=None)
def test_the_methods_are_expectations_of_what_they_say(belief, t):
    close = {"rtol": 1e-5, "atol": 1e-15}
    np.testing.assert_allclose(belief.survival(at(t)), belief.expect(lambda r: np.exp(-r * t)), **close)
    np.testing.assert_allclose(belief.p_change(at(t)), belief.expect(lambda r: -np.expm1(-r * t)), **close)
    np.testing.assert_allclose(belief.unchanged_time(at(t)), belief.expect(lambda r: -np.expm1(-r * t) / r), **close)
    np.testing.assert_allclose(belief.change_density(at(t)), belief.expect(lambda r: r * np.exp(-r * t)), **close)
    np.testing.assert_allclose(belief.mean(), belief.expect(lambda r: r), **close)


@given(beliefs, times)
@settings(deadline=None)
def test_changed_and_unchanged_are_all_there_is(belief, t):
    np.testing.assert_allclose(belief.p_change(at(t)) + belief.survival(at(t)), 1.0, rtol=1e-12)


@given(beliefs, times, times)
@settings(deadline=None)
def test_more_time_brings_more_change(belief, t, u):
    early, late = sorted((t, u))
    slack = 1 + 1e-12
    assert (belief.p_change(at(early)) <= belief.p_change(at(late)) * slack).all()
    assert (belief.survival(at(late)) <= belief.survival(at(early)) * slack).all()
    assert (belief.unchanged_time(at(early)) <= belief.unchanged_time(at(late)) * slack).all()
    assert (belief.unchanged_time(at(late)) <= late * slack).all()


@given(beliefs, times)
@settings(deadline=None)
def test_the_integral_and_the_derivative_are_those_of_survival(belief, t):
    step = t * 1e-4
    above, below = at(t + step), at(t - step)
    slope = (belief.unchanged_time(above) - belief.unchanged_time(below)) / (2 * step)
    np.testing.assert_allclose(slope, belief.survival(at(t)), rtol=1e-4, atol=1e-9)
    fall = (belief.p_change(above) - belief.p_change(below)) / (2 * step)
    np.testing.assert_allclose(fall * t, belief.change_density(at(t)) * t, rtol=1e-4, atol=1e-9)


@given(beliefs, st.floats(0.001, 0.999), st.floats(0.001, 0.999))
@settings(deadline=None)
def test_quantiles_rise(belief, p, q):
    low, high = sorted((p, q))
    assert (belief.quantile(low) <= belief.quantile(high)).all()
    assert (belief.quantile(low) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_at_once_nothing_changes_and_tiny_times_keep_their_digits(kind):
    belief = some_belief(kind, 1)
    assert (belief.p_change(at(0.0)) == 0).all()
    assert (belief.unchanged_time(at(0.0)) == 0).all()
    np.testing.assert_allclose(belief.survival(at(0.0)), 1.0, rtol=1e-15)
    tiny = 1e-9
    np.testing.assert_allclose(belief.p_change(at(tiny)), belief.mean() * tiny, rtol=1e-9)
    np.testing.assert_allclose(belief.unchanged_time(at(tiny)), tiny, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_choice_of_pages_is_the_same_pages(kind):
    belief = some_belief(kind, 2)
    t = np.linspace(1.0, 90.0, PAGES) * DAY
    for rows in (np.array([5, 0, 22, 5]), slice(3, 20, 2), np.arange(PAGES) % 3 == 0, np.empty(0, np.int64)):
        some = belief.take(rows)
        assert len(some) == len(t[rows])
        for method in ("survival", "p_change", "unchanged_time", "change_density"):
            np.testing.assert_array_equal(getattr(some, method)(t[rows]), getattr(belief, method)(t)[rows])
        np.testing.assert_array_equal(some.mean(), belief.mean()[rows])
        np.testing.assert_array_equal(some.quantile(0.3), belief.quantile(0.3)[rows])
        np.testing.assert_allclose(some.expect(np.sqrt), belief.expect(np.sqrt)[rows], rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_float64_and_finite_for_any_time(kind):
    belief = some_belief(kind, 3)
    for t in (0.0, 1e-12, 1.0, 1e9, 1e15):
        for method in ("survival", "p_change", "unchanged_time", "change_density"):
            answer = getattr(belief, method)(at(t))
            assert answer.dtype == np.float64
            assert np.isfinite(answer).all(), (method, t)
            assert (answer >= 0).all()
