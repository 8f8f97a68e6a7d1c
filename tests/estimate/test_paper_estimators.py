"""HACS eq. 4 and eq. 5, their special cases, and the belief that takes a rate as known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from recrawl.estimate import mle
from recrawl.estimate.point_estimators import bias_reduced_rate, bias_reduced_rates
from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import Histories
from recrawl.model.arrays import offsets_of


def ragged(*rows):
    """Histories from (changed gaps, unchanged gaps) of each page."""
    gaps = np.array([gap for changed, unchanged in rows for gap in (*changed, *unchanged)], dtype=float)
    flags = np.array([flag for c, u in rows for flag in [True] * len(c) + [False] * len(u)], dtype=bool)
    row = np.repeat(np.arange(len(rows)), [len(c) + len(u) for c, u in rows])
    nothing = np.full(len(rows), np.nan)
    return Histories(np.arange(len(rows)), offsets_of(row, len(rows)), gaps, flags, nothing, nothing, nothing)


@pytest.mark.parametrize(
    ("changed", "unchanged", "expected"),
    [
        ([1, 2, 5], [4], 0.429131690530026),
        ([7, 7, 7], [14], np.log(2.5) / 7),
        ([10] * 3, [10] * 7, np.log(10 / 7) / 10),
        ([5, 7], [], 0.26823965207235007),
        ([], [5, 7], 0.0),
        ([], [], np.nan),
        ([2.1712, 48.499], [9.7594, 3.4986, 38.7819, 28.1499, 61.8233, 9.8091], 0.011433597008260772),
    ],
)
def test_golden_mle(changed, unchanged, expected):
    assert mle.rates(ragged((changed, unchanged)))[0] == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_golden_bias_reduced():
    assert bias_reduced_rate(3, 9, 170.352) == pytest.approx(0.020049113572744276, rel=1e-12)
    np.testing.assert_array_equal(bias_reduced_rates(ragged(([], []))), [np.nan])


gap = st.floats(1e-4, 1e4)
page = st.tuples(st.lists(gap, min_size=1, max_size=8), st.lists(gap, min_size=1, max_size=8))


@given(st.lists(page, min_size=1, max_size=8))
@settings(deadline=None)
def test_mle_is_the_root_that_a_bracketing_solver_finds(pages):
    found = mle.rates(ragged(*pages))
    for (changed, unchanged), rate in zip(pages, found, strict=True):
        tau, quiet = np.array(changed), float(np.sum(unchanged))

        def slope(x, tau=tau, quiet=quiet):
            with np.errstate(over="ignore"):
                return float((tau / np.expm1(x * tau)).sum()) - quiet

        low = len(tau) / (quiet + tau.sum() / 2) * (1 - 1e-9)
        high = len(tau) / quiet * (1 + 1e-9)
        assert rate == pytest.approx(optimize.brentq(slope, low, high, xtol=1e-300, rtol=1e-13), rel=1e-10)


@given(st.lists(page, min_size=1, max_size=8), st.floats(1e-3, 1e3))
@settings(deadline=None)
def test_mle_scales_with_time_and_does_not_mind_the_order(pages, factor):
    base = mle.rates(ragged(*pages))
    scaled = mle.rates(ragged(*[([g * factor for g in c], [g * factor for g in u]) for c, u in pages]))
    turned = mle.rates(ragged(*[(c[::-1], u[::-1]) for c, u in pages]))
    np.testing.assert_allclose(scaled * factor, base, rtol=1e-9)
    np.testing.assert_allclose(turned, base, rtol=1e-11)


def test_gaps_from_microseconds_to_decades():
    rate = mle.rates(ragged(([1e-6, 1e9], [1e-3, 1e8]), ([1e9] * 3, [1e-6])))
    assert np.isfinite(rate).all()
    assert (rate > 0).all()


def test_point_belief_is_the_exponential_law():
    belief = PointBelief(np.array([0.0, 0.2]))
    t = np.array([3.0, 3.0])
    np.testing.assert_allclose(belief.survival(t), [1.0, np.exp(-0.6)])
    np.testing.assert_allclose(belief.p_change(t), [0.0, 1 - np.exp(-0.6)])
    np.testing.assert_allclose(belief.unchanged_time(t), [3.0, (1 - np.exp(-0.6)) / 0.2])
    np.testing.assert_allclose(belief.change_density(t), [0.0, 0.2 * np.exp(-0.6)])
    np.testing.assert_allclose(belief.expect(np.square), [0.0, 0.04])
    np.testing.assert_array_equal(belief.quantile(0.9), belief.mean())
    assert len(belief.take(np.array([1]))) == 1
