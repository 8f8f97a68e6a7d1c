"""Versions of pages in time, against a search one page at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.predict.page_versions import PageVersions, picked

observations = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20)), max_size=30)


@given(observations, st.integers(-1, 22))
def test_the_valid_version_is_the_last_one_strictly_before(rows, time):
    versions = PageVersions.of([page for page, _ in rows], [float(at) for _, at in rows])
    page = np.arange(6)
    found = versions.valid_at(page, float(time))
    for one in page:
        earlier = np.flatnonzero((versions.page == one) & (versions.time < time))
        assert found[one] == (earlier[-1] if len(earlier) else -1)


@given(observations, st.lists(st.integers(-1, 22), min_size=6, max_size=6))
def test_each_page_may_have_a_time_of_its_own(rows, times):
    versions = PageVersions.of([page for page, _ in rows], [float(at) for _, at in rows])
    page = np.arange(6)
    found = versions.valid_at(page, np.array(times, dtype=float))
    assert found.tolist() == [versions.valid_at(page, float(time))[one] for one, time in enumerate(times)]


@given(observations, st.integers(0, 20))
def test_what_is_cut_off_is_all_that_is_not_before(rows, time):
    versions = PageVersions.of([page for page, _ in rows], [float(at) for _, at in rows], complete=True)
    cut = versions.before(float(time))
    assert sorted(zip(cut.page, cut.time, strict=True)) == sorted((page, at) for page, at in rows if at < time)
    assert cut.complete


def test_columns_follow_their_rows():
    versions = PageVersions.of([2, 1, 2], [3.0, 9.0, 1.0], {"images": [30, 90, 10], "changed": [True, False, False]})
    assert versions.page.tolist() == [1, 2, 2]
    assert versions.images.tolist() == [90, 10, 30]
    assert versions.changed.tolist() == [False, False, True]
    assert np.isnan(versions.tables).all()
    assert versions.mime.tolist() == [-1, -1, -1]


def test_unknown_columns_are_refused():
    with pytest.raises(KeyError, match="smell"):
        PageVersions.of([1], [0.0], {"smell": [1]})


def test_no_row_gives_no_value():
    assert np.isnan(picked(np.array([], dtype=float), np.array([-1]))).all()
