"""The floor of paper 004's idea, on recorded pages: who looks back and around must rank no worse than one feature.

Pinned by the hash of the data. Nine periods are judged, each learned from the four before it; no page is both learned
from and judged.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from recrawl.assess.prediction_scores import precision_area
from recrawl.predict.feature_extraction import PeriodCounts, count_columns, related_columns
from recrawl.predict.related_pages import RelatedPages
from recrawl.predict.static_features import BASELINES, FeatureSet, PredictionTarget, choose, stacked, table_of
from recrawl_lab.learners.link_learners import Learner, LearnerSettings, fit

DATA = Path(__file__).parents[1] / "data" / "links" / "links.npz"
HASH = "d43a31c1c75906677b934cfbd2c7f75bb97bb5fdddebc37ee39fee2fd5f2558d"
BACK, LEARNED, PERIODS = 8, 4, 21
DRAWS = 2
MEASURED = {
    "internal": {"LBLA": 0.5425, "NNL-Av": 0.5398, "NNL-Pr": 0.5206, "CCR": 0.5346},
    "external": {"LBLA": 0.5209, "NNL-Av": 0.5200, "NNL-Pr": 0.5119, "CCR": 0.5170},
}
"""Mean areas: a ranking by chance has 0.505."""


@pytest.fixture(scope="module")
def tables():
    """Features before each period, and the counts of all."""
    assert hashlib.sha256(DATA.read_bytes()).hexdigest() == HASH
    with np.load(DATA) as held:
        told = {name: held[name] for name in held.files}
    counts = {
        name: np.where(told[name] < 0, np.nan, told[name]) for name in ("new_internal", "new_external", "changed")
    }
    related = RelatedPages(
        told["related"].astype(np.int32), told["cosine"].astype(np.float32) / 255, recall=1.0, sampled=0
    )
    page = np.arange(len(related))
    found = {}
    for period in range(BACK, PERIODS):
        past = PeriodCounts(*(column[:, period - BACK : period] for column in counts.values()))
        columns = count_columns(past, BACK) + related_columns(past, related, BACK)
        found[period] = table_of(page, float(period), columns)
    return found, counts


def areas(tables, kind, period, judged):
    """The area of Precision@k% of LBLA alone, and of each baseline."""
    found, counts = tables
    truth = counts[f"new_{kind}"]
    before = range(period - LEARNED, period)
    chosen = {
        at: choose(found[at], FeatureSet.LBLA, PredictionTarget.NNL, internal=kind == "internal")
        for at in [*before, period]
    }
    taught = stacked([chosen[at].take(~judged) for at in before])
    wanted = np.concatenate([truth[~judged, at] for at in before])
    model = fit(
        taught, PredictionTarget.NNL, wanted, np.random.default_rng(1), LearnerSettings(learner=Learner.SHRUNKEN_COUNTS)
    )
    scores = {name: found[period].take(judged).column(column.format(kind=kind)) for name, column in BASELINES.items()}
    scores["LBLA"] = model.predict_links(chosen[period].take(judged))
    came = truth[judged, period]
    return {name: precision_area(came, np.nan_to_num(score.astype(np.float64))) for name, score in scores.items()}


@pytest.mark.parametrize("kind", ["internal", "external"])
def test_lbla_alone_ranks_no_worse_than_any_one_feature(tables, kind):
    """The mean over nine periods and two draws; a single period may go either way."""
    runs = []
    for draw in range(DRAWS):
        judged = np.random.default_rng(draw).random(len(tables[1]["changed"])) < 1 / 3
        runs += [areas(tables, kind, period, judged) for period in range(BACK + LEARNED, PERIODS)]
    mean = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
    assert set(mean) == {*BASELINES, "LBLA"}
    for baseline in BASELINES:
        assert mean["LBLA"] >= mean[baseline]
    assert mean == pytest.approx(MEASURED[kind], abs=1e-4)
