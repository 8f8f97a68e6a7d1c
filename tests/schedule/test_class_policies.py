"""Change classes: the best clustering, Algorithm 1, Bayes' rule, and the policies made of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model import Pages, Verdict, Visits
from recrawl.schedule.policies.historic_classes import (
    CLASS,
    TABLE_2,
    TABLE_4,
    ChangeClasses,
    bayes_classes,
    historic_classes,
    kmeans_1d,
    reclassified,
    updated,
)
from recrawl.time import DAY

START = 1_750_000_000.0
PAGE = np.array([4])


def fixed(number):
    return lambda pages: np.full(len(pages), number)


def taught(policy, gaps, results):
    """One page, looked at after these gaps in days; the classes after each look."""
    policy.add(Pages.of(PAGE))
    policy.tell(Visits.of(PAGE, [START]))
    found = []
    for time, changed in zip(START + np.cumsum(gaps) * DAY, results, strict=True):
        policy.tell(Visits.of(PAGE, [time], verdict=Verdict.CHANGED if changed else Verdict.UNCHANGED))
        found.append(int(policy.state(PAGE, CLASS)[0]))
    return found


numbers = st.lists(st.integers(-20, 20).map(lambda n: n / 4), min_size=1, max_size=9)


@given(numbers, st.integers(1, 4))
def test_no_clustering_is_better(values, k):
    found = kmeans_1d(values, k)
    ordered, n = np.sort(values), len(values)
    runs = (
        np.split(ordered, cuts) for most in range(1, k + 1) for cuts in itertools.combinations(range(1, n), most - 1)
    )
    least = min(sum(((run - run.mean()) ** 2).sum() for run in split) for split in runs)
    assert found.squares == pytest.approx(least, abs=1e-9)
    assert (np.diff(found.centres) > 0).all()
    assert len(found.centres) == min(k, len(set(values)))
    for label, centre in enumerate(found.centres):
        assert np.array(values)[found.labels == label].mean() == pytest.approx(centre)


@given(numbers, st.integers(1, 4), st.floats(0.1, 10.0), st.floats(-1e6, 1e6))
def test_clusters_move_with_the_numbers(values, k, scale, shift):
    before, after = kmeans_1d(values, k), kmeans_1d(np.array(values) * scale + shift, k)
    assert after.squares == pytest.approx(before.squares * scale**2, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(("values", "k"), [([], 2), ([1.0], 0), ([1.0, np.nan], 1)])
def test_nothing_to_cluster_is_refused(values, k):
    with pytest.raises(ValueError, match="clusters need"):
        kmeans_1d(values, k)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ChangeClasses.of([]),
        lambda: ChangeClasses.of([2.0, 1.0]),
        lambda: ChangeClasses.of([0.0, 1.0]),
        lambda: ChangeClasses.of([1.0], window=0),
    ],
)
def test_classes_in_disorder_are_refused(make):
    with pytest.raises(ValueError, match="ascending"):
        make()


@given(
    st.sampled_from([TABLE_2, TABLE_4]),
    st.integers(0, 3),
    st.lists(st.booleans(), max_size=60),
)
def test_the_historic_classifier_is_algorithm_1(classes, start, results):
    policy = historic_classes(classes=classes, first_class=fixed(start))
    current, changes, visits, expected = start, 0, 0, []
    for changed in results:
        changes, visits = changes + changed, visits + 1
        if visits == classes.window[current]:
            share = changes / classes.window[current]
            if share < classes.lowest[current]:
                current = min(current + 1, 3)
            elif share > classes.highest[current]:
                current = max(current - 1, 0)
            changes = visits = 0
        expected.append(current)
    assert taught(policy, np.ones(len(results)), results) == expected
    assert policy.intervals(PAGE)[0] == classes.interval[current]


@given(st.lists(st.tuples(st.floats(0.05, 300.0), st.booleans()), min_size=1, max_size=20))
def test_the_bayesian_estimator_is_bayes_rule(observations):
    gaps, results = zip(*observations, strict=True)
    found = taught(bayes_classes(first_class=fixed(1)), gaps, results)
    chance = np.full(4, 0.25)
    with np.errstate(all="ignore"):
        for (gap, changed), number in zip(observations, found, strict=True):
            chance = updated(chance, TABLE_4.interval / DAY, gap, changed=changed)
            if np.isfinite(chance).all():
                assert chance[number] >= chance.max() * (1 - 1e-6)


def test_no_class_becomes_impossible():
    """After three years of silence (e^−1152 for a daily page) daily changes are in time believed again."""
    found = taught(bayes_classes(first_class=fixed(3)), [96.0] * 12 + [1.0] * 1100, [False] * 12 + [True] * 1100)
    assert found[11] == 3
    assert found[-1] == 0


@pytest.mark.parametrize("make", [historic_classes, bayes_classes])
def test_without_a_prediction_classes_are_drawn_evenly_and_again_the_same(make):
    pages = Pages.of(np.arange(8000))

    def drawn(seed):
        policy = make(seed=seed)
        policy.add(pages)
        return policy.state(pages.id, CLASS)

    assert (np.abs(np.bincount(drawn(1)) - 2000) < 200).all()
    np.testing.assert_array_equal(drawn(1), drawn(1))
    assert (drawn(1) != drawn(2)).mean() == pytest.approx(0.75, abs=0.03)


def test_a_page_begins_at_the_interval_of_its_class():
    policy = historic_classes(first_class=lambda pages: pages.id % 4)
    policy.add(Pages.of([0, 1, 2, 3]))
    assert (policy.intervals(np.arange(4)) / DAY).tolist() == [1.0, 3.0, 31.0, 96.0]


def test_only_a_full_window_moves():
    assert reclassified(TABLE_4, np.array([2, 2, 0, 3]), np.array([0, 0, 3, 0]), np.array([1, 2, 3, 1])).tolist() == [
        2,
        3,
        0,
        3,
    ]
