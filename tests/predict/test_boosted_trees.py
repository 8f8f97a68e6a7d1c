"""Trees taken out of scikit-learn must say what they said there, in compiled code and without it."""

import numpy as np
import pytest

from recrawl.predict import count_prior
from recrawl.predict.count_prior import BoostedTrees, grow
from recrawl.predict.static_features import Feature, FeatureGroup, table_of


@pytest.fixture(scope="module")
def grown():
    rng = np.random.default_rng(1)
    name, size = rng.integers(0, 200, 900), rng.normal(size=900)
    gaps = np.where(rng.random(900) < 0.2, np.nan, rng.normal(size=900))
    columns = [
        (Feature("size", FeatureGroup.SP), size),
        (Feature("name", FeatureGroup.SP, categorical=True), np.where(rng.random(900) < 0.1, np.nan, name)),
        (Feature("gaps", FeatureGroup.SP), gaps),
        (Feature("silent", FeatureGroup.SP), np.full(900, np.nan)),
    ]
    table = table_of(np.arange(900), 0.0, columns)
    rate = rng.poisson(np.exp(size + (name % 3) - np.nan_to_num(gaps)))
    return table, grow(table, rate, np.ones(900), rounds=40, smallest_leaf=10, seed=1)


def test_what_tells_pages_apart_is_learned(grown):
    """That the answers are scikit-learn's own is checked whenever trees are grown."""
    table, trees = grown
    assert np.corrcoef(trees.log_mean(table.values), table.column("size"))[0, 1] > 0.4


def test_names_and_numbers_nobody_has_seen_are_taken_for_unknown(grown):
    table, trees = grown
    asked = np.repeat(table.values[:1], 5, axis=0)
    asked[:, 1] = [np.nan, 250.0, -3.0, 1e9, 251.0]
    assert len(np.unique(trees.log_mean(asked))) == 1


def test_both_ways_to_ask_say_the_same(grown, monkeypatch):
    table, trees = grown
    fast = trees.log_mean(table.values)
    monkeypatch.setattr(count_prior, "can_compile", lambda: False)
    np.testing.assert_allclose(trees.log_mean(table.values), fast, rtol=0, atol=1e-12)
    assert len(trees.log_mean(table.values[:0])) == 0


def test_they_come_back_from_arrays_and_nonsense_does_not(grown):
    table, trees = grown
    again = BoostedTrees.from_arrays(trees.arrays())
    np.testing.assert_array_equal(again.log_mean(table.values), trees.log_mean(table.values))
    for bad in ({"left": trees.left * 0}, {"right": trees.right + 10**6}, {"column": trees.column + 9}):
        with pytest.raises(ValueError, match="no trees"):
            BoostedTrees.from_arrays(trees.arrays() | bad)
    with pytest.raises(ValueError, match="4 features, not 3"):
        trees.log_mean(table.values[:, :3])


def test_names_must_be_whole_numbers_below_256():
    table = table_of(np.arange(50), 0.0, [(Feature("name", FeatureGroup.SP, categorical=True), np.arange(50) * 10)])
    with pytest.raises(ValueError, match="whole numbers below 256"):
        grow(table, np.arange(50.0), np.ones(50), rounds=3, smallest_leaf=5, seed=1)
