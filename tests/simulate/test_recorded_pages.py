"""Pages at a moment of their own: what is later stays unknown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.predict.feature_extraction import FeatureEvidence
from recrawl.predict.page_versions import PageVersions, TimedLinks
from recrawl_lab.trials.rate_training import known_only, observations_at

URLS = tuple(f"http://a.test/{place}/" for place in range(4))
observations = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 9)), max_size=20)
edges = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 20), st.integers(0, 9)), max_size=20)


def evidence(rows, links):
    page, time, images = (np.array(column, dtype=float) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    source, target, added, length = np.array(links, dtype=float).reshape(-1, 4).T
    timed = TimedLinks(
        source.astype(int), target.astype(int), added, added + length, np.ones(len(source), dtype=np.bool_)
    )
    return FeatureEvidence(np.arange(4), URLS, PageVersions.of(page, time, {"images": images}), timed)


@given(observations, edges, st.lists(st.integers(0, 20), min_size=4, max_size=4))
def test_each_page_is_seen_just_before_its_own_time(rows, links, times):
    told = evidence(rows, links)
    table = observations_at(told, np.arange(4), np.array(times, dtype=float))
    versions = told.versions
    for page, time in enumerate(times):
        before = np.flatnonzero((versions.page == page) & (versions.time < time))
        images = versions.images[before[-1]] if len(before) else np.nan
        np.testing.assert_equal(float(table.column("images")[page]), float(images))
        there = [a < time <= a + length for s, t, a, length in links if t == page and s != t]
        assert table.column("inlinks")[page] == sum(there)


@given(observations, edges, observations, edges, st.lists(st.integers(0, 20), min_size=4, max_size=4))
def test_what_comes_later_moves_nothing(rows, links, more_rows, more_links, times):
    time = np.array(times, dtype=float)
    later = [(page, times[page] + after, 9) for page, after, _ in more_rows]
    new = [(source, target, times[target] + after, length) for source, target, after, length in more_links]
    plain, planted = (
        observations_at(evidence(*both), np.arange(4), time) for both in ((rows, links), (rows + later, links + new))
    )
    np.testing.assert_array_equal(plain.values, planted.values)


def test_some_pages_only():
    told = evidence([(1, 0, 5), (2, 0, 6)], [(0, 2, 0, 9), (2, 1, 0, 9)])
    table = observations_at(told, np.array([2]), np.array([1.0]))
    assert table.page.tolist() == [2]
    assert table.column("images").tolist() == [6.0]
    assert table.column("inlinks").tolist() == [1.0]
    assert table.as_of == pytest.approx(1.0)
    assert not len(observations_at(told, np.empty(0, np.int64), np.empty(0)))


def test_features_that_nobody_knows_are_left_out():
    table = observations_at(evidence([(1, 0, 5)], []), np.arange(4), np.full(4, 1.0))
    kept = known_only(table)
    assert "images" in kept.names
    assert {"mime", "tables", "emails"} <= set(table.names) - set(kept.names)
