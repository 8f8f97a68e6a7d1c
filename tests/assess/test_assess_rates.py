import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.assess.rate_errors import coverage, rate_error
from recrawl.model import GammaBelief

RATES = st.floats(1e-9, 1e3)


@given(st.lists(st.tuples(RATES, RATES, st.floats(0.1, 9.0)), min_size=1, max_size=20))
def test_errors_equal_the_sum_by_hand(rows):
    estimate, truth, weight = (np.array(column) for column in zip(*rows, strict=True))
    got = rate_error(estimate, truth, weight=weight)
    off = [np.log(e / t) for e, t, _ in rows]
    total = sum(w for *_, w in rows)
    assert got.bias_log == pytest.approx(sum(w * o for (*_, w), o in zip(rows, off, strict=True)) / total, abs=1e-9)
    mean_square = sum(w * o * o for (*_, w), o in zip(rows, off, strict=True)) / total
    assert got.rmse_log == pytest.approx(np.sqrt(mean_square), abs=1e-9)
    assert (got.pages, got.left_out) == (len(rows), 0)


@given(st.floats(0.01, 100.0))
def test_a_constant_factor_is_all_bias(factor):
    truth = np.geomspace(1e-6, 1.0, 7)
    got = rate_error(factor * truth, truth)
    assert got.bias_log == pytest.approx(np.log(factor), abs=1e-9)
    assert got.rmse_log == pytest.approx(abs(np.log(factor)), abs=1e-9)
    assert got.median_factor == pytest.approx(max(factor, 1 / factor))


def test_zero_and_unknown_rates_are_left_out_and_counted_unless_there_is_a_floor():
    estimate, truth = np.array([0.0, np.nan, 1.0, 1.0]), np.array([1.0, 1.0, 0.0, 1.0])
    assert (rate_error(estimate, truth).pages, rate_error(estimate, truth).left_out) == (1, 3)
    floored = rate_error(estimate, truth, floor=0.5)
    assert (floored.pages, floored.left_out) == (3, 1)
    assert floored.rmse_log == pytest.approx(np.log(2.0) * np.sqrt(2 / 3))


def test_no_page_to_compare_is_no_number():
    nothing = rate_error(np.array([0.0]), np.array([0.0]))
    assert nothing.left_out == 1
    assert np.isnan(nothing.rmse_log)


def test_a_belief_drawn_from_itself_covers_as_often_as_it_says():
    rng = np.random.default_rng(11)
    a, b = rng.uniform(0.5, 5.0, 40_000), rng.uniform(0.1, 9.0, 40_000)
    levels = np.array([0.1, 0.5, 0.9, 0.99])
    got = coverage(GammaBelief(a, b), rng.gamma(a, 1.0 / b), levels)
    np.testing.assert_allclose(got, levels, atol=4 * np.sqrt(0.25 / 40_000))
    too_sure = coverage(GammaBelief(9.0 * a, 9.0 * b), rng.gamma(a, 1.0 / b), levels)
    assert (too_sure < got - 0.05)[1:3].all()


def test_unknown_true_rates_do_not_count_in_coverage():
    belief = GammaBelief(np.array([4.0, 4.0]), np.array([4.0, 4.0]))
    assert coverage(belief, np.array([1.0, np.nan]), np.array([0.9])).tolist() == [1.0]
    assert np.isnan(coverage(belief, np.full(2, np.nan), np.array([0.9]))[0])
