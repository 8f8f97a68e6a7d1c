"""The bias of the estimators of the papers, as the literature has it."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.assess.rate_errors import bias_curve, simulated_bias_curve
from recrawl.estimate import mle
from recrawl.estimate.point_estimators import bias_reduced_rates, lln_rates, naive_rates

LOOKS = [1, 2, 3, 5, 10, 20, 30, 50]


def test_more_looks_do_not_help_the_naive_estimator():
    for ratio in (0.1, 0.5, 1.0, 2.0):
        curve = bias_curve(naive_rates, LOOKS, ratio)
        np.testing.assert_allclose(curve.mean, -np.expm1(-ratio) / ratio, rtol=1e-12)
        assert (np.diff(curve.deviation) < 0).all()


def test_the_bias_of_eq_4_vanishes_with_the_looks():
    curve = bias_curve(bias_reduced_rates, LOOKS, [0.1, 0.5, 1.0])
    off = np.abs(curve.mean - 1).reshape(3, len(LOOKS))
    assert (off[:, LOOKS.index(10)] < 0.03).all()
    assert (off[:, LOOKS.index(50)] < 0.005).all()
    by_hand = sum(
        p * np.log(2.5 / (2.5 - x))
        for x, p in enumerate([np.exp(-2), 2 * np.exp(-1) * (1 - np.exp(-1)), (1 - np.exp(-1)) ** 2])
    )
    assert bias_curve(bias_reduced_rates, 2, 1.0).mean[0] == pytest.approx(by_hand)


def test_a_page_much_faster_than_its_visits_stays_underestimated():
    curve = bias_curve(bias_reduced_rates, [10, 50], 3.0)
    assert curve.mean[0] < 0.9
    assert curve.mean[1] > curve.mean[0]


def test_synthetic_histories_agree_with_the_sum():
    rng = np.random.default_rng(11)
    for formula in (naive_rates, bias_reduced_rates, mle.rates):
        exact = bias_curve(formula, [3, 20], [0.3, 1.5])
        drawn = simulated_bias_curve(formula, [3, 20], [0.3, 1.5], rng, pages=4000, gaps="equal")
        np.testing.assert_array_equal(drawn.observations, exact.observations)
        assert (np.abs(drawn.mean - exact.mean) < 4.5 * drawn.error).all()
        np.testing.assert_allclose(drawn.deviation, exact.deviation, rtol=0.15)


def test_at_random_visits_eq_4_is_low_and_the_law_of_large_numbers_is_not():
    rng = np.random.default_rng(12)
    low, lln, likely = (
        simulated_bias_curve(formula, 50, 1.0, rng, pages=3000)
        for formula in (bias_reduced_rates, lln_rates, mle.rates)
    )
    assert low.mean[0] < 0.75
    assert abs(lln.mean[0] - 1) < 5 * lln.error[0] + 0.01
    assert abs(likely.mean[0] - 1) < 0.05


@pytest.mark.parametrize(("observations", "ratio"), [(0, 1.0), (3, 0.0), (3, -1.0), (3, np.nan)])
def test_what_gives_no_curve_is_refused(observations, ratio):
    with pytest.raises(ValueError, match="at least one observation"):
        bias_curve(naive_rates, observations, ratio)
