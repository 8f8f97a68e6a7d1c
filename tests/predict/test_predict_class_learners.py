"""Learners of change classes: each must learn what can be learned, and say so in chances."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.errors import InputError
from recrawl.predict.class_tree import fit_tree, pessimism
from recrawl.predict.static_features import Feature, FeatureGroup, FeatureTable, table_of
from recrawl_lab.learners.class_learners import LEARNERS, cross_validated, wrapper_selection

CLASSES = 3
COLUMNS = (
    Feature("size", FeatureGroup.SP),
    Feature("segment", FeatureGroup.SP, categorical=True),
    Feature("nothing", FeatureGroup.SP),
)


def pages(count: int, seed: int, *, told: float = 0.95) -> tuple[FeatureTable, np.ndarray]:
    """Pages whose size tells class 2, and whose segment tells 0 from 1; a few of them lie."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, count)
    seen = np.where(rng.random(count) < told, label, rng.integers(0, CLASSES, count))
    size = np.where(seen == 2, 100.0, 10.0) + rng.normal(0.0, 3.0, count)
    segment = np.where(seen == 0, rng.choice([3, 90, 200], count), rng.choice([7, 50, 130], count))
    size[rng.random(count) < 0.02] = np.nan
    columns = zip(COLUMNS, (size, segment, rng.random(count)), strict=True)
    return table_of(np.arange(count), 0.0, list(columns)), label


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_finds_what_tells_classes_apart(name: str) -> None:
    table, label = pages(600, seed=1)
    fresh, truth = pages(300, seed=2)
    chances = LEARNERS[name](table, label, CLASSES).chances(fresh)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert (np.argmax(chances, axis=1) == truth).mean() > 0.85


@pytest.mark.parametrize("name", LEARNERS)
def test_pages_may_come_in_any_order_and_a_class_may_be_missing(name: str) -> None:
    table, label = pages(300, seed=3)
    fresh, _ = pages(50, seed=4)
    some = label != 1
    chances = LEARNERS[name](table.take(some), label[some], CLASSES).chances(fresh)
    assert chances.shape == (50, CLASSES)
    assert (np.argmax(chances, axis=1) != 1).all()
    # Of equal neighbours the first met counts, so only chances without ties can be compared.
    if "nearest" not in name:
        turned = FeatureTable(table.page, table.columns, table.values[::-1].copy(), table.as_of)
        backwards = LEARNERS[name](turned, label[::-1].copy(), CLASSES).chances(fresh)
        forwards = LEARNERS[name](table, label, CLASSES).chances(fresh)
        np.testing.assert_allclose(backwards, forwards, atol=1e-6)


def test_a_tree_does_not_learn_names_that_only_one_page_has() -> None:
    rng = np.random.default_rng(8)
    columns = (Feature("hint", FeatureGroup.SP), Feature("own", FeatureGroup.SP, categorical=True))
    label = rng.integers(0, 2, 220)
    hint = np.where(rng.random(220) < 0.9, label, 1 - label)
    table = table_of(np.arange(220), 0.0, list(zip(columns, (hint, np.arange(220)), strict=True)))
    model = LEARNERS["tree"](table.take(slice(0, 110)), label[:110], 2)
    said = np.argmax(model.chances(table.take(slice(110, 220))), axis=1)
    np.testing.assert_array_equal(said, hint[110:])


@pytest.mark.parametrize("name", LEARNERS)
def test_names_never_met_and_values_not_known_have_chances_too(name: str) -> None:
    table, label = pages(300, seed=5)
    values = np.array([[np.nan, np.nan, np.nan], [10.0, 251.0, 0.5], [10.0, -1.0, 0.5]], dtype=np.float32)
    chances = LEARNERS[name](table, label, CLASSES).chances(FeatureTable(np.arange(3), table.columns, values, 0.0))
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_refuses_features_it_does_not_know(name: str) -> None:
    table, label = pages(60, seed=6)
    model = LEARNERS[name](table, label, CLASSES)
    with pytest.raises(InputError, match="trained on other features"):
        model.chances(table.only(["size"]))


def test_pruning_leaves_few_leaves_where_little_can_be_learned() -> None:
    rng = np.random.default_rng(7)
    values = rng.random((500, 4), dtype=np.float32)
    label = (rng.random(500) < 0.1).astype(np.int64)
    grown, pruned = (fit_tree(values, label, 2, prune=prune).leaves for prune in (False, True))
    assert grown > 20
    assert pruned < grown / 4


def test_a_tree_that_is_right_everywhere_is_not_cut() -> None:
    values = np.repeat(np.arange(8, dtype=np.float32), 30)[:, None]
    label = (np.arange(240) // 30) % 2
    tree = fit_tree(values, label, 2)
    assert tree.leaves == 8
    assert (np.argmax(tree.chances(values), axis=1) == label).all()


def test_pessimism_falls_with_the_number_of_pages_and_grows_with_confidence() -> None:
    size = np.array([4.0, 16.0, 64.0, 256.0])
    share = pessimism(size, size / 4, 0.25) / size
    assert (np.diff(share) < 0).all()
    assert (pessimism(size, size / 4, 0.05) > pessimism(size, size / 4, 0.25)).all()


def test_wrapper_selection_keeps_what_tells_and_drops_what_does_not() -> None:
    table, label = pages(400, seed=8, told=1.0)
    assert set(wrapper_selection(table, label, CLASSES, np.random.default_rng(1))) == {"size", "segment"}


def test_cross_validation_never_judges_a_page_by_a_model_that_saw_it() -> None:
    """Random classes of pages that are all different: a model that remembers would be right."""
    rng = np.random.default_rng(9)
    table = table_of(np.arange(300), 0.0, [(Feature("name", FeatureGroup.SP), rng.random(300))])
    label = rng.integers(0, 2, 300)
    wrong = cross_validated(table, label, 2, np.arange(300) % 10, LEARNERS["1 nearest"])
    assert 0.35 < wrong < 0.65
