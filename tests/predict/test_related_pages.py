"""Related pages against the full table of cosines, and approximate searches that say how far they are off."""

import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.predict.related_pages import (
    RelatedPages,
    compare_all,
    descend,
    learn_text_space,
    related_pages,
    within_clusters,
)


def topics(n, rng, *, count=20, dimensions=16):
    """Vectors around a few topics, as texts are."""
    centre = rng.normal(size=(count, dimensions))
    rows = centre[rng.integers(0, count, n)] + 0.4 * rng.normal(size=(n, dimensions))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@given(st.integers(0, 12), st.integers(1, 5), st.integers(0, 99), st.integers(0, 3))
def test_all_pairs(n, k, seed, silent):
    rng = np.random.default_rng(seed)
    vectors = topics(n, rng, dimensions=3)
    vectors[:silent] = 0
    found = compare_all(vectors, k=k)
    assert found.row.shape == (n, k)
    for one in range(n):
        others = [other for other in range(n) if other != one and vectors[other].any()]
        if not vectors[one].any():
            others = []
        cosine = np.sort(np.array([vectors[one] @ vectors[other] for other in others], dtype=float))[::-1][:k]
        there = found.row[one] >= 0
        assert there.sum() == len(cosine)
        assert found.similarity[one][there] == pytest.approx(cosine, abs=1e-5)
        assert set(found.row[one][there]) <= set(others)
        assert len(set(found.row[one][there])) == len(cosine)


def test_an_approximate_search_measures_its_recall():
    vectors = topics(3000, np.random.default_rng(5))
    vectors[::100] = 0
    exact, found = compare_all(vectors, k=10), within_clusters(vectors, np.random.default_rng(1), k=10)
    shared = np.mean([len(np.intersect1d(a, b)) for a, b in zip(found.row, exact.row, strict=True) if a[0] >= 0]) / 10
    assert found.sampled == 1000
    assert found.recall == pytest.approx(shared, abs=0.02)
    assert found.recall > 0.9
    assert (found.row[::100] == -1).all()
    assert not (found.row == np.arange(3000)[:, None]).any()
    there = found.row >= 0
    cosine = np.einsum("nkd,nd->nk", vectors[found.row], vectors)
    assert found.similarity[there] == pytest.approx(cosine[there], abs=1e-5)


def test_a_poor_search_says_so():
    vectors = topics(2000, np.random.default_rng(5))
    poor = within_clusters(vectors, np.random.default_rng(1), k=10, clusters=200, probes=1)
    good = within_clusters(vectors, np.random.default_rng(1), k=10, clusters=200, probes=40)
    assert poor.recall < 0.8 < good.recall


def test_clusters_are_those_of_the_topics_and_none_is_empty(monkeypatch):
    """With plain numpy: the cheaper way needs no library beside it."""
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    rng = np.random.default_rng(3)
    topic = np.repeat(np.eye(8, dtype=np.float32), 50, axis=0)
    vectors = topic + 0.01 * rng.standard_normal(topic.shape, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = within_clusters(vectors, rng, k=10, clusters=40, probes=40)
    assert found.recall == 1.0
    assert (found.row // 50 == np.arange(400)[:, None] // 50).all()
    copies = within_clusters(np.repeat(np.eye(4, dtype=np.float32), 30, axis=0), rng, k=29, clusters=20, probes=1)
    assert (copies.similarity == 1.0).all()


def test_few_pages_are_compared_exactly():
    assert related_pages(topics(50, np.random.default_rng(1)), np.random.default_rng(1)).recall == 1.0


@pytest.mark.parametrize("n", [0, 1, 2])
def test_clusters_of_hardly_any_pages(n):
    found = within_clusters(topics(n, np.random.default_rng(1)), np.random.default_rng(1), k=3)
    assert (found.row >= 0).sum() == (2 if n == 2 else 0)


def test_copies_of_one_page_count_as_found():
    vectors = np.tile(np.array([[1.0, 0.0]], np.float32), (100, 1))
    assert within_clusters(vectors, np.random.default_rng(1), k=5, clusters=3, probes=3).recall == 1.0


def test_weights_are_cosines_clipped_at_zero():
    row = np.array([[1, 2], [0, 2], [1, -1], [-1, -1]], np.int32)
    similarity = np.array([[0.6, 0.2], [0.4, -0.4], [-0.1, 0.0], [0.0, 0.0]], np.float32)
    weight = RelatedPages(row, similarity, 1.0, 0).weights()
    assert weight == pytest.approx(np.array([[0.75, 0.25], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]))


@given(st.integers(2, 10), st.integers(0, 99))
def test_means_over_related_pages(n, seed):
    rng = np.random.default_rng(seed)
    related = compare_all(topics(n, rng, dimensions=3), k=3)
    values = rng.normal(size=(n, 2))
    values[rng.random((n, 2)) < 0.3] = np.nan
    found, weight = related.mean_of(values), related.weights()
    for page in range(n):
        for column in range(2):
            pairs = [
                (weight[page, place], values[row, column])
                for place, row in enumerate(related.row[page])
                if row >= 0 and not np.isnan(values[row, column])
            ]
            whole = sum(one for one, _ in pairs)
            if whole > 0:
                assert found[page, column] == pytest.approx(sum(one * value for one, value in pairs) / whole)
            else:
                assert np.isnan(found[page, column])


@pytest.mark.slow
@pytest.mark.big
def test_searches_on_real_texts(data_folder):
    """Nearest-neighbour descent finds nearly all, and clusters fewer; both say how many. Mostly it compiles."""
    told = pq.read_table(data_folder / "scholarly" / "texts.parquet", columns=["text"]).column("text").to_pylist()[::6]
    rng = np.random.default_rng(1)
    vectors = learn_text_space(told, rng, dimensions=64).vectors(told)
    exact = compare_all(vectors, k=10)
    by_descent, by_clusters = descend(vectors, rng, k=10), within_clusters(vectors, rng, k=10, probes=2)
    assert by_descent.recall > 0.95
    assert by_descent.recall > by_clusters.recall > 0.3
    for found in (by_descent, by_clusters):
        # Copies of one text are as near as each other: compare how near the found ones are, not which they are.
        hit = found.similarity >= exact.similarity[:, -1:] - 1e-5
        assert hit[exact.row[:, 0] >= 0].mean() == pytest.approx(found.recall, abs=0.03)
        assert ((found.row >= 0).any(axis=1) == vectors.any(axis=1)).all()
