"""A model needs the feature that tells the truth, and no other."""

import numpy as np

from recrawl.predict.static_features import Feature, FeatureGroup, PredictionTarget, table_of
from recrawl_lab.learners.link_learners import LearnerSettings, fit, importances


def test_the_feature_that_tells_is_needed_most():
    rng = np.random.default_rng(1)
    truth = rng.poisson(3.0, 300).astype(float)
    columns = [
        (Feature("noise", FeatureGroup.SP), rng.normal(size=300)),
        (Feature("tells", FeatureGroup.DP), truth),
        (Feature("same", FeatureGroup.SP), np.ones(300)),
    ]
    table = table_of(np.arange(300), 0.0, columns)
    before = table.values.copy()
    model = fit(table, PredictionTarget.NNL, truth, rng, LearnerSettings(trees=20))
    found = importances(model, table, lambda said: -float(np.abs(said - truth).mean()), rng, repeats=3)
    by_name = {one.name: one for one in found}
    assert found[0].name == "tells"
    assert by_name["tells"].loss > 5 * abs(by_name["noise"].loss)
    assert (by_name["same"].loss, by_name["same"].spread) == (0.0, 0.0)
    assert np.array_equal(table.values, before)
