"""New links by period, against counting one page and period at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.predict.feature_extraction import (
    LinkPeriods,
    change_rate,
    lags,
    link_targets,
    mean_known,
    period_counts,
)
from recrawl.predict.page_versions import PageVersions

rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 3), st.booleans()),
    max_size=25,
    unique_by=lambda row: row[:2],
)
PAGES = np.arange(4)


def of(observations, *, complete):
    page, time, new, changed = ([row[part] for row in observations] for part in range(4))
    return PageVersions.of(
        page, time, {"new_internal": new, "new_external": np.zeros(len(page)), "changed": changed}, complete=complete
    )


@given(rows, st.booleans())
def test_counts_are_those_of_the_looks_of_each_period(observations, complete):
    periods = LinkPeriods(end=50.0, length=10.0, count=4)
    assert periods.edges.tolist() == [10, 20, 30, 40, 50]
    found = period_counts(of(observations, complete=complete), PAGES, periods)
    for page in PAGES:
        times = [row[1] for row in observations if row[0] == page]
        for period, begin in enumerate(periods.edges[:-1]):
            inside = [row for row in observations if row[0] == page and begin <= row[1] < begin + 10]
            known = bool(times) and min(times) < begin and (complete or bool(inside))
            if not known:
                assert np.isnan(found.new_internal[page, period])
                assert np.isnan(found.changed[page, period])
            else:
                assert found.new_internal[page, period] == sum(row[2] for row in inside)
                assert found.changed[page, period] == any(row[3] for row in inside)


def test_a_look_that_could_not_count_leaves_its_period_unknown():
    versions = PageVersions.of([0, 0, 0], [1.0, 12.0, 13.0], {"new_internal": [0, np.nan, 2], "new_external": 0})
    found = period_counts(versions, np.array([0]), LinkPeriods(20.0, 10.0, 1))
    assert np.isnan(found.new_internal[0, 0])
    assert found.new_external[0, 0] == 0


def test_the_links_of_the_first_version_are_not_new():
    versions = PageVersions.of([0, 0], [12.0, 25.0], {"new_internal": [40, 1]}, complete=True)
    counts = period_counts(versions, np.array([0]), LinkPeriods(30.0, 10.0, 3)).new_internal[0]
    assert np.isnan(counts[:2]).all()
    assert counts[2] == 1


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_targets_of_complete_counts(counts):
    found = link_targets(np.array([counts], dtype=float))
    assert found.number[0] == counts[-1]
    assert found.presence[0] == (counts[-1] > 0)
    assert found.change_rate[0] == pytest.approx(sum(count > 0 for count in counts) / len(counts))


def test_targets_of_unknown_periods_are_unknown():
    found = link_targets(np.array([[1.0, 0.0, np.nan], [np.nan, np.nan, 2.0]]))
    assert np.isnan([found.number[0], found.presence[0]]).all()
    assert found.change_rate.tolist() == [0.5, 1.0]


def test_lags_and_means_of_nothing():
    assert np.isnan(lags(np.empty((2, 0)), 3)).all()
    assert lags(np.array([[1.0, 2.0]]), 3)[0, :2].tolist() == [2.0, 1.0]
    assert np.isnan(mean_known(np.empty((2, 0)))).all()
    assert np.isnan(change_rate(np.array([[np.nan]]))).all()
