"""Learners of new links: each learns what can be learned, and none falls over odd data."""

import sys

import numpy as np
import pytest

from recrawl.errors import InputError, MissingExtraError
from recrawl.predict.static_features import (
    Feature,
    FeatureGroup,
    FeatureSet,
    PredictionTarget,
    choose,
    lbla_names,
    table_of,
)
from recrawl_lab.learners.link_learners import Learner, LearnerSettings, fit

SMALL = {"trees": 30, "rounds": 40, "rate": 0.1, "boosted_leaf": 10}
EVERY = [
    (learner, target)
    for learner in Learner
    for target in PredictionTarget
    if target is PredictionTarget.NNL or learner not in {Learner.NATURAL_BOOSTING, Learner.SHRUNKEN_COUNTS}
]


def pages(rng, n=400):
    """Pages of which one feature tells the new links, one is a name, one noise, one never known."""
    past = rng.poisson(2.0, n).astype(float)
    unknown = np.where(rng.random(n) < 0.1, np.nan, past)
    columns = [
        (Feature("new_internal_1", FeatureGroup.DP), unknown),
        (Feature("mime", FeatureGroup.SP, categorical=True), rng.integers(0, 4, n)),
        (Feature("noise", FeatureGroup.SP), rng.normal(size=n)),
        (Feature("emails", FeatureGroup.SP), np.full(n, np.nan)),
    ]
    truth = {
        PredictionTarget.NNL: past + 1.0,
        PredictionTarget.NL: (past > 1).astype(float),
        PredictionTarget.LCR: np.minimum(past / 6.0, 1.0),
    }
    return table_of(np.arange(n), 0.0, columns), truth


def predicted(learner, target, *, seed=1):
    train, truth = pages(np.random.default_rng(5))
    unseen, wanted = pages(np.random.default_rng(6))
    model = fit(train, target, truth[target], np.random.default_rng(seed), LearnerSettings(learner=learner, **SMALL))
    return model.predict_links(unseen), wanted[target]


@pytest.mark.parametrize(("learner", "target"), EVERY)
def test_what_a_feature_tells_is_learned(learner, target):
    said, true = predicted(learner, target)
    assert np.corrcoef(said, true)[0, 1] > 0.8
    assert said.dtype == np.float64
    if target is PredictionTarget.NL:
        assert ((said >= 0) & (said <= 1)).all()


@pytest.mark.parametrize("learner", Learner)
def test_the_seed_decides_all(learner):
    assert np.array_equal(predicted(learner, PredictionTarget.NNL)[0], predicted(learner, PredictionTarget.NNL)[0])


@pytest.mark.parametrize("learner", Learner)
def test_a_constant_target_is_foretold_as_it_is(learner):
    table, _ = pages(np.random.default_rng(1), 20)
    model = fit(
        table, PredictionTarget.NNL, np.full(20, 3.0), np.random.default_rng(1), LearnerSettings(learner=learner)
    )
    assert model.predict_links(table).tolist() == [3.0] * 20


def test_pages_of_unknown_target_teach_nothing():
    table, truth = pages(np.random.default_rng(1))
    wanted = truth[PredictionTarget.NNL].copy()
    wanted[200:] = np.nan
    some = fit(table, PredictionTarget.NNL, wanted, np.random.default_rng(1), LearnerSettings(**SMALL))
    first = fit(
        table.take(slice(200)), PredictionTarget.NNL, wanted[:200], np.random.default_rng(1), LearnerSettings(**SMALL)
    )
    assert np.array_equal(some.predict_links(table), first.predict_links(table))
    with pytest.raises(ValueError, match="no page has a known target"):
        fit(table, PredictionTarget.NNL, np.full(400, np.nan), np.random.default_rng(1))


def test_without_any_known_feature_the_mean_is_foretold():
    table = table_of(np.arange(3), 0.0, [(Feature("emails", FeatureGroup.SP), np.full(3, np.nan))])
    model = fit(table, PredictionTarget.NNL, np.array([0.0, 1.0, 5.0]), np.random.default_rng(1))
    assert model.predict_links(table).tolist() == [2.0, 2.0, 2.0]


def test_pages_of_another_schema_are_refused():
    table, truth = pages(np.random.default_rng(1))
    model = fit(
        table, PredictionTarget.NNL, truth[PredictionTarget.NNL], np.random.default_rng(1), LearnerSettings(**SMALL)
    )
    with pytest.raises(InputError, match="other features"):
        model.predict_links(table.only({"noise", "mime"}))
    assert len(model.predict_links(table.take(slice(0)))) == 0


def test_counts_cannot_be_learned_as_rates():
    table, truth = pages(np.random.default_rng(1))
    with pytest.raises(ValueError, match="only predict the number"):
        fit(
            table,
            PredictionTarget.LCR,
            truth[PredictionTarget.LCR],
            np.random.default_rng(1),
            LearnerSettings(learner=Learner.NATURAL_BOOSTING),
        )


@pytest.mark.parametrize(
    ("learner", "module", "extra"),
    [
        (Learner.EXTRA_TREES, "sklearn.ensemble", "predict"),
        (Learner.LIGHT_BOOSTING, "lightgbm", "boost"),
        (Learner.NATURAL_BOOSTING, "ngboost", "boost"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(monkeypatch, learner, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"{module}.*recrawl\[{extra}\]"):
        predicted(learner, PredictionTarget.NNL)


def test_feature_sets():
    names = {
        "text_size": FeatureGroup.SP,
        "semantic_00": FeatureGroup.SP,
        "pagerank": FeatureGroup.SN,
        "new_internal_1": FeatureGroup.DP,
        "new_internal_mean": FeatureGroup.DP,
        "new_internal_per_day": FeatureGroup.DP,
        "new_external_1": FeatureGroup.DP,
        "near_new_internal_1": FeatureGroup.DN,
        "near_internal_link_change_rate": FeatureGroup.DN,
        "near_external_link_change_rate": FeatureGroup.DN,
    }
    table = table_of(np.array([1]), 0.0, [(Feature(name, group), [0.0]) for name, group in names.items()])

    def chosen(features, target=PredictionTarget.NNL):
        return list(choose(table, features, target, internal=True).names)

    assert chosen(FeatureSet.SP) == ["text_size"]
    assert chosen(FeatureSet.SP_SEM) == ["text_size", "semantic_00"]
    assert chosen(FeatureSet.SP_SN) == ["text_size", "pagerank"]
    assert chosen(FeatureSet.STATIC) == ["text_size", "semantic_00", "pagerank"]
    assert chosen(FeatureSet.ALL) == list(names)
    around = ["near_new_internal_1", "near_internal_link_change_rate"]
    assert chosen(FeatureSet.LBLA) == ["new_internal_1", "new_internal_mean", *around]
    assert chosen(FeatureSet.LBLA, PredictionTarget.LCR) == around
    assert not any(name.startswith("new_") for name in chosen(FeatureSet.ALL, PredictionTarget.LCR))
    assert lbla_names(table, internal=False) == ["new_external_1", "near_external_link_change_rate"]
