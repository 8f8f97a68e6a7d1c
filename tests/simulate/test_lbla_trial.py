"""The comparison of paper 004 on a web in which new links follow a known law."""

import numpy as np
import pytest

from recrawl.assess.prediction_scores import precision_area
from recrawl.predict.feature_extraction import FeatureEvidence, FeatureOptions, look_around
from recrawl.predict.page_versions import PageTexts, PageVersions
from recrawl.predict.related_pages import learn_semantics
from recrawl.predict.static_features import FeatureSet, PredictionTarget
from recrawl.time import DAY
from recrawl_lab.learners.link_learners import Learner, LearnerSettings
from recrawl_lab.trials.lbla_trial import CONTESTANTS, LblaTrial, examples, pooled

WEEK = 7 * DAY
WEEKS = 14
TOPICS = ("wave tide ship harbour sail", "loop compiler type thread array", "bread butter oven flour yeast")
OPTIONS = FeatureOptions(period=WEEK, history=4, rate_periods=4)
SETTINGS = LearnerSettings(trees=40, rounds=40)


def web(seed, pages=240):
    """Pages on three topics, which get links nearly each week, seldom, and never; and their true rates."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 3, pages)
    rate = np.array([3.0, 0.3, 0.0])[topic] * rng.uniform(0.7, 1.3, pages)
    new = rng.poisson(rate[:, None], (pages, WEEKS)).astype(float)
    page, week = (part.ravel() for part in np.mgrid[:pages, :WEEKS])
    versions = PageVersions.of(
        page,
        (week + 0.5) * WEEK,
        {"new_internal": new.ravel(), "new_external": np.zeros(new.size), "changed": new.ravel() > 0},
    )
    words = [TOPICS[one].split() for one in topic]
    texts = PageTexts.of(np.arange(pages), np.zeros(pages), [" ".join(rng.choice(one, 8)) for one in words])
    urls = tuple(f"http://a.test/{one}" for one in range(pages))
    return FeatureEvidence(np.arange(pages), urls, versions, texts=texts), rate


@pytest.fixture(scope="module")
def trial():
    evidence, _ = web(1)
    rng = np.random.default_rng(1)
    semantics = learn_semantics(evidence.texts.text, rng)

    def at(week):
        return examples(evidence, week * WEEK, look_around(evidence, week * WEEK, semantics, rng), OPTIONS)

    return LblaTrial(pooled([at(8), at(9)]), at(12), SETTINGS, seed=1)


def test_targets_are_of_the_period_that_follows(trial):
    evidence, _ = web(1)
    versions = evidence.versions
    following = versions.new_internal[(versions.time >= 12 * WEEK) & (versions.time < 13 * WEEK)]
    assert np.array_equal(trial.test.truth("internal", PredictionTarget.NNL), following)
    assert np.array_equal(trial.test.truth("internal", PredictionTarget.NL), following > 0)
    assert trial.train.table.values.shape[0] == 480


@pytest.mark.slow
def test_the_law_is_found(trial):
    found = {(one.target, one.name): one for one in trial.ranked("internal")}
    assert {name for _, name in found} == {one.name for one in CONTESTANTS} | {"NNL-Av", "NNL-Pr", "CCR"}
    _, rate = web(1)
    best = precision_area(
        trial.test.truth("internal", PredictionTarget.NNL), rate
    )  # who knows the law cannot rank better
    assert found[PredictionTarget.NNL, "NNL-ET-LBLA"].area > best - 0.05
    assert found[PredictionTarget.NNL, "NNL-ET-LBLA"].area > found[PredictionTarget.NNL, "NNL-Pr"].area
    assert found[PredictionTarget.LCR, "LCR-ET-LBLA"].spearman > 0.8
    assert trial.presence("internal", FeatureSet.ALL, Learner.EXTRA_TREES).balanced_accuracy > 0.85
    assert trial.presence_as_before("internal").recall > 0.7


def test_looking_around_tells_rates_that_urls_do_not(trial):
    alone = trial.quantity("internal", PredictionTarget.LCR, FeatureSet.SP, Learner.HISTOGRAM_BOOSTING)
    around = trial.quantity("internal", PredictionTarget.LCR, FeatureSet.LBLA, Learner.HISTOGRAM_BOOSTING)
    assert around.r2 > 0.7 > alone.r2


def test_links_that_never_come_are_foretold_as_none(trial):
    assert (trial.predicted("external", PredictionTarget.NNL, FeatureSet.ALL, Learner.EXTRA_TREES) == 0).all()
    assert np.isnan(trial.presence("external", FeatureSet.ALL, Learner.EXTRA_TREES).recall)


def test_unseen_sites_can_be_kept_apart(trial):
    some = trial.train.take(trial.train.table.page < 100)
    assert set(some.table.page.tolist()) == set(range(100))
    assert len(some.truth("internal", PredictionTarget.NL)) == 200
