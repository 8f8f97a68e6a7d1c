"""Features that are known of no page, or of hardly any, do not stop a prior from being learned."""

import numpy as np
import pytest

from recrawl.predict.count_prior import train
from recrawl.predict.static_features import Feature, FeatureGroup, table_of
from recrawl.time import DAY


@pytest.mark.parametrize("known", [0, 1, 9, 10, 300])
def test_a_feature_known_of_few_pages(known):
    rng = np.random.default_rng(1)
    rare = np.full(300, np.nan)
    rare[:known] = rng.random(known)
    depth = rng.random(300)
    columns = [(Feature("depth", FeatureGroup.SP), depth), (Feature("emails", FeatureGroup.SP), rare)]
    table = table_of(np.arange(300), 0.0, columns)
    exposure = np.full(300, 100 * DAY)
    count = rng.poisson(1.0 + 20.0 * depth).astype(float)
    model = train(table, count, exposure, np.zeros(300, np.int64), seed=1)
    mean = model.prior(table, np.zeros(300, np.int64)).mean()
    assert np.corrcoef(mean, depth)[0, 1] > 0.9
