"""Assigned classes of change rate against true ones."""

import numpy as np
import pytest

from recrawl.assess.prediction_scores import ratio_with_interval
from recrawl.assess.rate_errors import class_error


def test_errors_are_counted_by_their_side():
    found = class_error(np.array([0, 0, 1, 2, 2]), np.array([0, 2, 1, 0, 2]), 3)
    assert found.too_frequent == pytest.approx(0.2)
    assert found.too_rare == pytest.approx(0.2)
    assert found.error_rate == pytest.approx(0.4)
    assert found.confusion.tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]


def test_weights_count_and_no_pages_say_nothing():
    assert class_error(np.array([0, 1]), np.array([0, 0]), 2, np.array([3.0, 1.0])).error_rate == pytest.approx(0.25)
    assert np.isnan(class_error(np.empty(0, np.int64), np.empty(0, np.int64), 2).error_rate)


def test_ratios_resample_whole_groups():
    """Ten groups of equal pages: the interval is that of ten values, not of a thousand."""
    group = np.repeat(np.arange(10), 100)
    value = (group % 2).astype(float)
    found = ratio_with_interval(value, np.ones(1000), group, np.random.default_rng(1))
    alone = ratio_with_interval(value, np.ones(1000), np.arange(1000), np.random.default_rng(1))
    assert found.mean == alone.mean == 0.5
    assert found.high - found.low > 5 * (alone.high - alone.low)


def test_a_ratio_without_denominators_is_no_number():
    assert np.isnan(ratio_with_interval(np.ones(3), np.zeros(3), np.arange(3), np.random.default_rng(1)).mean)
