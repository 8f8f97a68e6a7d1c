"""Intervals of ratios where some groups have nothing below the line."""

import numpy as np
import pytest

from recrawl.assess.prediction_scores import ratio_with_interval


def test_groups_with_a_numerator_alone_count_in_the_interval_as_they_do_in_the_ratio():
    above = np.repeat([1.0, 1.0, 3.0], 20)
    below = np.repeat([2.0, 1.0, 0.0], 20)
    found = ratio_with_interval(above, below, np.arange(60), np.random.default_rng(1))
    assert found.mean == pytest.approx(100 / 60)
    assert 1 < found.low < found.mean < found.high < 4


def test_draws_without_a_denominator_are_left_out():
    found = ratio_with_interval(np.ones(2), np.array([1.0, 0.0]), np.arange(2), np.random.default_rng(1))
    assert (found.mean, found.low, found.high) == (2.0, 1.0, 2.0)
