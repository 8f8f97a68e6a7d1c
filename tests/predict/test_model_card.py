"""The note of a model comes back as it was, and its card says what people must know."""

from dataclasses import replace

import numpy as np
import pytest

from recrawl.errors import InputError
from recrawl.model import GammaBelief
from recrawl.predict.feature_extraction import ObservationCounts
from recrawl.predict.prior_model import ModelCard, ModelScore, contributions, model_card
from recrawl.predict.prior_scores import ModelDrift, ModelFit, PriorTally, tally_counts, worst
from recrawl.predict.static_features import Feature, FeatureGroup, table_of
from recrawl.time import DAY

PRIORS = {"model": 0.3, "all pages": 0.5, "host": 0.4}
NOTE = ModelCard(
    name="trial",
    schema="0123456789ab",
    features=("path_depth", "images"),
    events=("changes",),
    since=0.0,
    until=100 * DAY,
    pages=1234,
    out_of=1234,
    looked_into=1000,
    observations=9999,
    sites=3,
    source="workspace",
    seed=7,
    versions={"recrawl": "1", "numpy": "2"},
    scores=(ModelScore("pages", 400, PRIORS, PRIORS, 0.6, 1.1, 0.91),),
)


def test_a_note_comes_back_from_json():
    assert ModelCard.from_json(NOTE.to_json()) == NOTE
    assert NOTE.scores[0].gain == pytest.approx(0.2)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', "nothing"])
def test_what_is_no_note_is_refused(text):
    with pytest.raises(InputError, match="does not describe a model"):
        ModelCard.from_json(text)
    with pytest.raises(InputError, match="has format 1, this version reads 2"):
        ModelCard.from_json(replace(NOTE, format=1).to_json())


def test_the_card_says_it_all():
    card = model_card(NOTE)
    for part in ("1,234 pages of 3 sites", "`0123456789ab`", "seed | 7", "numpy 2", "0.300", "`images`", "| 91% |"):
        assert part in card
    assert "Too few pages" in model_card(replace(NOTE, scores=()))
    assert "1,234 pages, chosen at random among 5,000, of 3 sites" in model_card(replace(NOTE, out_of=5000))


def told(expected, found, observations, deviation=2.0):
    return PriorTally(expected, found, observations, deviation)


@pytest.mark.parametrize("event", ["changes", "new-internal-links"])
@pytest.mark.parametrize(
    ("said", "bound", "fit"),
    [
        (told(10.0, 30, 29), 2.0, ModelFit.UNJUDGED),
        (told(10.0, 11, 100), 2.0, ModelFit.GOOD),
        (told(10.0, 30, 100), 2.0, ModelFit.LOST),
        (told(30.0, 8, 100), 2.0, ModelFit.LOST),
        (told(10.0, 30, 100), 0.0, ModelFit.GOOD),
        (told(10.0, 30, 100, deviation=9.0), 2.0, ModelFit.GOOD),
        (told(0.1, 0, 100), 2.0, ModelFit.GOOD),
    ],
)
def test_a_model_is_lost_if_it_is_far_off_and_not_by_chance(event, said, bound, fit):
    drift = ModelDrift(said, bound, event)
    assert drift.fit is fit
    assert ("Train it again" in drift.sentence()) == (fit is ModelFit.LOST)
    assert ("new internal links" in drift.sentence()) == (event != "changes")


def test_a_loss_is_told_before_all_else():
    lost, good, unjudged = (
        ModelDrift(told(10.0, found, observations), 2.0) for found, observations in ((30, 99), (10, 99), (10, 2))
    )
    assert worst([unjudged, good, lost]) is lost
    assert worst([unjudged, good]) is good
    assert worst([unjudged]) is unjudged


def links_on(rate, rng, pages=400):
    """Links counted for ten days on pages of these rates a day, and what a prior of one a day expected."""
    counts = ObservationCounts(rng.poisson(10 * rate, pages).astype(float), np.full(pages, 10 * DAY))
    return tally_counts(GammaBelief(np.full(pages, 2.0), np.full(pages, 2 * DAY)), counts)


def test_links_that_come_as_believed_are_no_surprise():
    rng = np.random.default_rng(1)
    found = [links_on(rng.gamma(2.0, 0.5, 400), rng) for _ in range(50)]
    assert np.std([one.surprise for one in found]) == pytest.approx(1.0, abs=0.3)
    assert {ModelDrift(one, 2.0, "new-external-links").fit for one in found} == {ModelFit.GOOD}


@pytest.mark.parametrize("factor", [0.2, 5.0])
def test_a_prior_of_links_that_is_far_off_is_lost(factor):
    rng = np.random.default_rng(2)
    told = links_on(factor * rng.gamma(2.0, 0.5, 400), rng)
    assert told.calibration == pytest.approx(1 / factor, rel=0.2)
    assert ModelDrift(told, 2.0, "new-internal-links").fit is ModelFit.LOST


def test_one_page_with_very_many_links_does_not_make_a_model_lost():
    rate = np.full(400, 1.0)
    rate[7] = 4000.0
    told = links_on(rate, np.random.default_rng(3))
    assert told.calibration < 0.2
    assert ModelDrift(told, 2.0, "new-internal-links").fit is ModelFit.GOOD


def test_pages_without_time_count_for_nothing():
    counts = ObservationCounts(np.array([0.0, 3.0]), np.array([0.0, DAY]))
    assert tally_counts(GammaBelief(np.ones(2), np.full(2, DAY)), counts).observations == 1


def test_a_feature_that_matters_has_a_factor_and_others_have_none():
    columns = [
        (Feature("images", FeatureGroup.SP), np.arange(50.0)),
        (Feature("tables", FeatureGroup.SP), np.arange(50.0)),
    ]
    table = table_of(np.arange(50), 0.0, columns)

    def ask(asked):
        rate = np.exp(asked.column("images").astype(float) / 10)
        return GammaBelief(np.ones(len(asked)), 1.0 / rate)

    factor = contributions(ask, table.take(slice(49, 50)), table)
    assert factor == pytest.approx([np.exp(4.9 - 2.45), 1.0])
