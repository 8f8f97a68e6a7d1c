"""The Gamma belief against its own definition by quadrature and against sampling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model import GammaBelief

shapes = st.floats(0.05, 200.0)
scales = st.floats(1e-2, 1e8)
times = st.floats(1e-3, 1e9)


def one(a: float, b: float) -> GammaBelief:
    return GammaBelief(np.array([a]), np.array([b]))


@given(shapes, scales, st.floats(1e-3, 3.0))
def test_closed_forms_equal_expectations(a, b, x):
    belief = one(a, b)
    t = np.array([x * b / a])  # x changes are expected within t
    assert belief.expect(lambda rate: np.exp(-rate * t[0])) == pytest.approx(belief.survival(t), rel=1e-6)
    assert belief.expect(lambda rate: -np.expm1(-rate * t[0]) / rate) == pytest.approx(
        belief.unchanged_time(t), rel=1e-6
    )
    assert belief.expect(lambda rate: rate * np.exp(-rate * t[0])) == pytest.approx(belief.change_density(t), rel=1e-6)
    assert belief.expect(lambda rate: rate) == pytest.approx(belief.mean(), rel=1e-6)


@given(shapes, scales, times)
def test_changed_and_unchanged_are_all_there_is(a, b, t):
    belief = one(a, b)
    assert belief.p_change(np.array([t])) + belief.survival(np.array([t])) == pytest.approx(1.0)


@given(shapes, scales, times, times)
def test_more_time_brings_more_change(a, b, t, u):
    belief, times_ = one(a, b), sorted((t, u))
    early, late = (np.array([time]) for time in times_)
    assert belief.p_change(early) <= belief.p_change(late)
    assert belief.unchanged_time(early) <= belief.unchanged_time(late) * (1 + 1e-12)


@given(shapes, scales, st.floats(0.01, 0.99))
def test_quantiles_hold_their_share(a, b, q):
    belief = one(a, b)
    rate = belief.quantile(q)[0]
    sample = np.random.default_rng(0).gamma(a, 1 / b, 20_000)
    assert np.mean(sample <= rate) == pytest.approx(q, abs=0.02)


def test_unit_shape_is_the_limit_of_its_neighbours():
    t = np.array([3.0, 3.0, 3.0])
    near = GammaBelief(np.array([1 - 1e-9, 1.0, 1 + 1e-9]), np.full(3, 2.0)).unchanged_time(t)
    assert near == pytest.approx(2.0 * np.log(2.5), rel=1e-8)


def test_many_pages_are_one_page_many_times():
    rng = np.random.default_rng(1)
    many = GammaBelief(rng.random(20_000) + 0.1, rng.random(20_000) + 0.1)
    some = np.array([0, 1, 16_383, 16_384, 19_999])
    assert many.expect(np.sqrt)[some] == pytest.approx(many.take(some).expect(np.sqrt))
