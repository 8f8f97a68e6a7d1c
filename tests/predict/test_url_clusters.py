"""Clusters of pages by URL: deep enough, large enough, not too large, and stable."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.predict.related_pages import UrlClusters


def test_the_deepest_directory_with_enough_pages():
    urls = [f"http://a.test/x/y/{i}.html" for i in range(12)] + [f"http://a.test/x/{i}" for i in range(10)]
    found = UrlClusters().add(urls)
    assert len(set(found[:12])) == len(set(found[12:])) == 1
    assert found[0] != found[12]


def test_too_few_pages_are_handed_up():
    urls = [f"http://a.test/x/{sub}/{i}" for sub in "abcd" for i in range(3)]
    assert len(set(UrlClusters().add(urls).tolist())) == 1


def test_pages_left_over_at_the_root_are_one_cluster_of_their_host():
    clusters = UrlClusters()
    found = clusters.add([*(f"http://a.test/x/{i}" for i in range(10)), "http://a.test/", "http://b.test/x/1"])
    assert found.tolist() == [0] * 10 + [1, 2]
    assert clusters.host.tolist() == [0, 0, 1]


def test_large_clusters_are_cut_in_order_of_discovery():
    found = UrlClusters().add([f"http://a.test/x/{i}" for i in range(650)])
    assert found.tolist() == [0] * 300 + [1] * 300 + [2] * 50


def test_later_pages_join_and_numbers_stay():
    clusters = UrlClusters(fewest=3)
    first = clusters.add([f"http://a.test/x/{i}" for i in range(3)])
    later = clusters.add(["http://a.test/x/9", "http://a.test/x/deep/9", "http://a.test/other", "http://c.test/"])
    assert first.tolist() == [0, 0, 0]
    assert later.tolist() == [0, 0, 1, 2]


def test_file_names_queries_and_case_of_the_host_do_not_count():
    clusters = UrlClusters(fewest=2)
    assert clusters.add(["http://A.test/x/?q=/1/2", "http://a.test/x/z#/f/", "a.test/x/w"]).tolist() == [0, 0, 0]


def test_no_pages():
    clusters = UrlClusters()
    assert len(clusters.add([])) == len(clusters.host) == 0


paths = st.lists(st.sampled_from("ab"), max_size=4).map(lambda parts: "http://h.test/" + "/".join(parts))


@given(st.lists(paths, max_size=80), st.integers(1, 6), st.integers(6, 20))
def test_every_page_has_a_cluster_no_cluster_is_too_large(urls, fewest, most):
    clusters = UrlClusters(fewest, most)
    found = clusters.add(urls)
    assert len(found) == len(urls)
    sizes = np.bincount(found, minlength=len(clusters.host)) if len(found) else np.empty(0)
    assert (sizes > 0).all()
    assert (sizes <= most).all()
