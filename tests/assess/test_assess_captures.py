"""Blur and coherence against quadrature, and scores of choices and rankings against plain recomputation."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.assess.blur_coherence import (
    average_blur,
    blur_bounds,
    capture_blur,
    expected_coherence,
    page_blur,
    penalty,
)
from recrawl.assess.prediction_scores import (
    macro,
    micro,
    precision_area,
    precision_at_percent,
    spearman,
    weighted_precision_at_k,
)

TIMES = st.floats(-20.0, 20.0)


def by_midpoints(distance, start, end, pieces=20_000):
    step = (end - start) / pieces
    return sum(distance(start + step * (np.arange(pieces) + 0.5))) * step


@given(TIMES, TIMES, st.floats(0.1, 30.0), st.none() | TIMES)
def test_the_penalty_is_the_integral_of_the_distance_to_the_nearest_version(visit, start, length, revisit):
    def distance(t):
        away = np.abs(t - visit)
        return away if revisit is None else np.minimum(away, np.abs(t - max(visit, revisit)))

    later = None if revisit is None else np.array([max(visit, revisit)])
    got = penalty(np.array([visit]), start, start + length, later)
    assert got[0] == pytest.approx(by_midpoints(distance, start, start + length), rel=1e-6, abs=1e-5)


@given(st.lists(st.tuples(st.floats(0.0, 9.0), st.floats(0.0, 1.0)), min_size=1, max_size=8), st.floats(0.1, 50.0))
def test_blur_lies_within_the_bounds_of_theorem_4_1(pages, length):
    rate, place = (np.array(column) for column in zip(*pages, strict=True))
    low, high = blur_bounds(rate, 0.0, length)
    blur = capture_blur(rate, place * length, 0.0, length)
    assert low * (1 - 1e-12) - 1e-300 <= blur <= high * (1 + 1e-12) + 1e-300  # rates may be subnormal


def test_the_bounds_are_reached():
    rate = np.array([2.0, 5.0])
    low, high = blur_bounds(rate, 0.0, 4.0)
    assert capture_blur(rate, np.full(2, 2.0), 0.0, 4.0) == pytest.approx(low)
    assert capture_blur(rate, np.array([0.0, 4.0]), 0.0, 4.0) == pytest.approx(high)


def test_blur_is_proportional_to_the_delay_when_times_are_scaled():  # reading 003.3
    rate, slot = np.arange(6.0), np.arange(6.0)
    assert capture_blur(rate, 3.0 * slot, 0.0, 15.0) == pytest.approx(3.0 * capture_blur(rate, slot, 0.0, 5.0))


def test_example_5_1_with_revisits_page_by_page():
    rate, slot = np.arange(6.0), np.arange(6.0)
    blur = page_blur(rate, slot, 0.0, 11.0, slot + 6.0)
    assert blur == pytest.approx(np.array([0, 35, 62, 93, 140, 215]) / 22)


def test_a_revisit_at_the_visit_adds_nothing():
    rate, visit = np.array([0.5, 2.0]), np.array([1.0, 7.0])
    assert page_blur(rate, visit, 0.0, 9.0, visit).tolist() == page_blur(rate, visit, 0.0, 9.0).tolist()


def test_one_instant_of_observation_and_no_pages():
    assert page_blur(np.array([2.0]), np.array([4.0]), 1.0, 1.0).tolist() == [6.0]
    assert page_blur(np.array([2.0]), np.array([4.0]), 1.0, 1.0, np.array([2.0])).tolist() == [2.0]
    assert np.isnan(average_blur(np.empty(0), np.empty(0), 0.0, 1.0))


def test_blur_at_epoch_times_loses_nothing():
    rate, visit = np.array([0.25]), np.array([1.0])
    moved = page_blur(rate, visit + 2.0**31, 2.0**31, 2.0**31 + 8.0)
    assert moved.tolist() == page_blur(rate, visit, 0.0, 8.0).tolist()


@given(st.lists(st.tuples(st.floats(0.0, 3.0), st.floats(0.0, 9.0)), max_size=8))
def test_expected_coherence_is_a_number_of_pages(pages):
    rate, length = np.array(pages).reshape(-1, 2).T
    by_hand = sum(np.exp(-r * i) for r, i in pages)
    assert expected_coherence(rate, length) == pytest.approx(by_hand)
    assert 0.0 <= expected_coherence(rate, length) <= len(pages) + 1e-9


COUNTS = st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=1, max_size=6)


def scores_by_hand(tp, fp, fn):
    precision = tp / (tp + fp) if tp + fp else None
    recall = tp / (tp + fn) if tp + fn else None
    f1 = 2 * precision * recall / (precision + recall) if precision and recall else None
    return precision, recall, f1


@given(COUNTS)
def test_micro_pools_the_counts_and_macro_skips_what_is_undefined(rows):
    pooled = scores_by_hand(*(sum(row[i] for row in rows) for i in range(3)))
    got = micro(np.array(rows))
    assert [got.precision, got.recall, got.f1] == pytest.approx(
        [np.nan if value is None else value for value in pooled], nan_ok=True
    )
    got = macro(np.array(rows))
    for value, column in zip(
        (got.precision, got.recall, got.f1), zip(*(scores_by_hand(*row[:3]) for row in rows), strict=True), strict=True
    ):
        defined = [score for score in column if score is not None]
        expected = sum(defined) / len(defined) if defined else np.nan
        assert value == pytest.approx(expected, nan_ok=True)


@given(st.permutations(range(6)), st.permutations(range(6)), st.integers(1, 6))
def test_weighted_precision_at_k_by_sets(ranked, expected, length):
    expected = expected[:length]
    weight = [1 / np.log2(k + 1) for k in range(1, length + 1)]
    hits = [len(set(ranked[:k]) & set(expected[:k])) / k for k in range(1, length + 1)]
    by_hand = sum(w * h for w, h in zip(weight, hits, strict=True)) / sum(weight)
    assert weighted_precision_at_k(np.array(ranked), np.array(expected)) == pytest.approx(by_hand)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4),
    st.sampled_from([1, 10, 25, 40, 50, 75, 100]),
)
def test_precision_at_percent_is_the_mean_over_all_orders_of_ties(pages, percent):
    n = len(pages)
    top = max(1, int(percent * n / 100 + 0.5))
    truth, predicted = (np.array(column, dtype=float) for column in zip(*pages, strict=True))

    def tops(values):
        orders = [o for o in permutations(range(n)) if all(values[a] >= values[b] for a, b in pairwise(o))]
        return [set(order[:top]) for order in orders]

    shares = [len(a & b) / top for a in tops(truth) for b in tops(predicted)]
    assert precision_at_percent(truth, predicted, percent) == pytest.approx(np.mean(shares))


def test_a_perfect_ranking_without_ties_has_area_one():
    values = np.arange(30.0)
    assert precision_area(values, 5.0 * values) == pytest.approx(1.0)
    assert precision_area(values, -values) < 0.5


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=9))
def test_spearman_is_the_correlation_of_average_ranks(pairs):
    a, b = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    ranks = [[(v < x).sum() + ((v == x).sum() + 1) / 2 for x in v] for v in (a, b)]
    got = spearman(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert np.isnan(got)
    else:
        assert got == pytest.approx(np.corrcoef(ranks)[0, 1])


def test_rankings_of_nothing_are_no_number():
    nothing = np.empty(0)
    assert np.isnan(weighted_precision_at_k(np.array([1]), np.empty(0, dtype=np.int64)))
    assert np.isnan(precision_at_percent(nothing, nothing, 10))
