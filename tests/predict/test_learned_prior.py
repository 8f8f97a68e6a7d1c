"""A prior from features: it beats the population's where features tell, and does not lose where they do not."""

import numpy as np
import pytest

from recrawl.errors import InputError
from recrawl.estimate import gamma
from recrawl.estimate.empirical_bayes import fit_prior
from recrawl.model import Histories, Verdict, Visits
from recrawl.predict.feature_table import Feature, Group, table_of
from recrawl.predict.learned_prior import learn_prior
from recrawl.predict.link_learners import Settings
from recrawl.time import DAY

QUICK = Settings(rounds=40, rate=0.1, boosted_leaf=15)


def pages(rng, n=500, *, telling=True, looks=12):
    """Pages of rates between one change in 2 and in 200 days, by a feature or by nothing; looked at each week."""
    depth = rng.uniform(0.0, 1.0, n)
    rate = np.exp(np.log(1 / 200) + (depth if telling else rng.uniform(0.0, 1.0, n)) * np.log(100)) / DAY
    rate *= rng.gamma(3.0, 1 / 3.0, n)
    gaps = rng.uniform(4.0, 10.0, (n, looks)) * DAY
    changed = rng.random((n, looks)) < -np.expm1(-rate[:, None] * gaps)
    page = np.repeat(np.arange(n), looks + 1)
    time = np.concatenate([np.zeros((n, 1)), np.cumsum(gaps, axis=1)], axis=1)
    verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
    verdict = np.concatenate([np.full((n, 1), Verdict.UNKNOWN), verdict], axis=1)
    histories = Histories.from_visits(Visits.of(page, time.ravel(), verdict=verdict.ravel()))
    columns = [
        (Feature("depth", Group.SP), depth),
        (Feature("noise", Group.SP), rng.normal(size=n)),
        (Feature("mime", Group.SP, categorical=True), rng.integers(0, 3, n)),
        (Feature("emails", Group.SP), np.full(n, np.nan)),
    ]
    return table_of(np.arange(n), 0.0, columns), histories


def loss_of_look(belief, histories, place):
    """Mean log loss of the look at this place of each page."""
    at = histories.offsets[:-1] + place
    stays = belief.survival(histories.gaps[at])
    return float(-np.log(np.where(histories.changed[at], 1.0 - stays, stays)).mean())


@pytest.mark.parametrize("telling", [True, False])
def test_first_looks_at_unseen_pages(telling):
    table, histories = pages(np.random.default_rng(1), telling=telling)
    unseen, came = pages(np.random.default_rng(2), telling=telling)
    prior = learn_prior(table, histories, np.random.default_rng(3), settings=QUICK)
    everywhere = fit_prior(histories).take(np.zeros(len(unseen), np.int64))
    ours, flat = loss_of_look(prior.of(unseen), came, 0), loss_of_look(everywhere, came, 0)
    if telling:
        assert ours < 0.9 * flat
        assert prior.power > 0.5
    else:
        assert ours < 1.01 * flat
        assert prior.power <= 0.25


def test_prior_times_history_beats_either_alone():
    table, histories = pages(np.random.default_rng(1))
    unseen, came = pages(np.random.default_rng(2), n=1500)
    prior = learn_prior(table, histories, np.random.default_rng(3), settings=QUICK).of(unseen)
    everywhere = fit_prior(histories).take(np.zeros(len(unseen), np.int64))
    known = Histories.from_visits(_first_looks(came, 4)).align(came.page)
    both, history_alone = gamma.fit(known, prior), gamma.fit(known, everywhere)
    assert loss_of_look(both, came, 4) < loss_of_look(history_alone, came, 4)
    assert loss_of_look(both, came, 4) < loss_of_look(prior, came, 4)


def _first_looks(histories, most):
    """The visits of each page up to its ``most``-th gap."""
    place = np.arange(len(histories.gaps)) - np.repeat(histories.offsets[:-1], histories.counts())
    row, keep = histories.row_of_gap(), place < most
    page = np.concatenate([histories.page, histories.page[row[keep]]])
    time = np.concatenate([histories.first_visit, histories.look_times()[keep]])
    verdict = np.where(histories.changed[keep], Verdict.CHANGED, Verdict.UNCHANGED)
    return Visits.of(page, time, verdict=np.concatenate([np.full(len(histories), Verdict.UNKNOWN), verdict]))


def test_whole_groups_can_be_kept_apart():
    """A feature that names the group tells rates of known groups, and nothing about a new one."""
    rng = np.random.default_rng(5)
    _, histories = pages(rng, telling=True)
    table, _ = pages(rng)
    order = np.argsort(histories.changes(), kind="stable")
    group = np.empty(500, np.int64)
    group[order] = np.arange(500) // 50  # ten groups, each of pages of like rates
    label = np.random.default_rng(1).permutation(10)[group].astype(np.float32)
    named = table_of(table.page, 0.0, [(Feature("site", Group.SP), label)])
    by_page = learn_prior(named, histories, np.random.default_rng(3), settings=QUICK)
    by_group = learn_prior(named, histories, np.random.default_rng(3), group=group, settings=QUICK)
    assert by_page.power == 1.0
    assert by_group.power < 0.5


def test_too_few_pages_share_the_prior_of_all():
    table, histories = pages(np.random.default_rng(1), n=20)
    prior = learn_prior(table, histories, np.random.default_rng(1))
    assert prior.power == 0.0
    assert prior.of(table).mean() == pytest.approx(np.full(20, fit_prior(histories).mean()[0]))


def test_pages_that_never_change():
    table, histories = pages(np.random.default_rng(1), n=100)
    still = Histories.from_visits(Visits.of(histories.page, histories.first_visit)).align(histories.page)
    assert len(learn_prior(table, still, np.random.default_rng(1)).of(table)) == 100
    calm = Histories(
        histories.page,
        histories.offsets,
        histories.gaps,
        np.zeros_like(histories.changed),
        histories.first_visit,
        histories.last_visit,
        np.full(100, np.nan),
    )
    mean = learn_prior(table, calm, np.random.default_rng(1), settings=QUICK).of(table).mean()
    assert ((mean > 0) & (mean < 1 / (100 * DAY))).all()


def test_what_does_not_fit_is_refused():
    table, histories = pages(np.random.default_rng(1), n=100)
    with pytest.raises(ValueError, match="different pages"):
        learn_prior(table.take(slice(50)), histories, np.random.default_rng(1))
    prior = learn_prior(table, histories, np.random.default_rng(1), settings=QUICK)
    with pytest.raises(InputError, match="other features"):
        prior.of(table.only({"depth"}))
    assert len(prior.of(table.take(slice(0)))) == 0
