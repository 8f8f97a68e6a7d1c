"""Trials of estimators: the truth wins, nobody sees the future, and a small data set goes through whole."""

from dataclasses import replace

import numpy as np
import pytest

from recrawl.estimate.estimators import ESTIMATORS
from recrawl.estimate.operational.factor_state import PageGroups
from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import Verdict
from recrawl.simulate.sampling import IrregularVisits, PageTruth, sample
from recrawl.simulate.virtual_web import PoissonProcess
from recrawl.time import DAY
from recrawl_lab.trials.rate_trials import InWallTime, RatePopulation, method_of, run_trial, score

PAGES, SPAN = 400, 600 * DAY


@pytest.fixture(scope="module")
def web():
    """A population of Poisson pages, its true rates, and visits to it."""
    rng = np.random.default_rng(5)
    rate = np.exp(rng.normal(np.log(1 / 30), 1.2, PAGES)) / DAY
    changes = PoissonProcess().times(rate, 0.0, SPAN, rng)
    cluster = np.arange(PAGES) // 20
    places = PageGroups(cluster, np.arange(PAGES // 20) // 5, np.full(PAGES, np.nan))
    population = RatePopulation(places, np.zeros(PAGES), np.full(PAGES, SPAN), changes)
    truth = PageTruth(np.zeros(PAGES), np.full(PAGES, np.inf), changes, 0.0, SPAN)
    return population, rate, sample(truth, IrregularVisits(), rng)


class Oracle:
    """Knows the true rates: nobody can do better on average."""

    name = "oracle"

    def __init__(self, rate):
        self.rate = rate

    def __call__(self, _evidence):
        return PointBelief(self.rate)


def test_the_truth_has_the_lowest_loss_and_is_calibrated_and_more_history_helps(web):
    population, rate, visits = web
    methods = [InWallTime(Oracle(rate)), InWallTime(ESTIMATORS["posterior"])]
    found = run_trial(population, visits, methods, np.random.default_rng(1), lengths=(0, 20), cuts=(0.6, 0.7, 0.8))
    scores = {(one.method, one.length): one for one in score(found, np.random.default_rng(2), repeats=100)}
    for length in (0, 20):
        assert scores["oracle", length].log_loss.mean < scores["posterior", length].log_loss.mean
        assert scores["oracle", length].behind_best.mean == 0.0
        assert scores["oracle", length].calibration_error < 0.08
    assert scores["posterior", 20].log_loss.mean < scores["posterior", 0].log_loss.mean - 0.05
    assert scores["posterior", 20].rank_correlation > scores["posterior", 0].rank_correlation + 0.3


@pytest.mark.parametrize("method", [method_of(estimator) for estimator in ESTIMATORS.values()], ids=lambda m: m.name)
def test_no_method_sees_what_comes_after_the_cut(web, method):
    population, _, visits = web
    cut = 0.5 * SPAN
    flipped = np.where(visits.verdict == Verdict.CHANGED, Verdict.UNCHANGED, Verdict.CHANGED)
    verdict = np.where((visits.time > cut) & (visits.verdict != Verdict.UNKNOWN), flipped, visits.verdict)
    other = replace(visits, verdict=verdict.astype(visits.verdict.dtype))
    before, after = (
        run_trial(population, seen, [method], np.random.default_rng(1), lengths=(5,), cuts=(0.5,))[0]
        for seen in (visits, other)
    )
    assert len(before.p) > 50
    assert before.p.tolist() == after.p.tolist()
    assert before.rate.tolist() == after.rate.tolist()
    assert (before.happened != after.happened).all()


@pytest.mark.parametrize("length", [0, 1, 3])
def test_only_newcomers_with_so_much_past_are_asked_about(web, length):
    population, _, visits = web
    told = []

    class Spy:
        name = "spy"

        def prepare(self, _population, known):
            told.append(known)

            def answer(question):
                told.append(question.evidence.histories)
                asked = question.evidence.histories.take(question.rows)
                assert (asked.counts() == length).all()
                assert (question.next > question.last).all()
                return InWallTime(ESTIMATORS["gamma"]).prepare(_population, known)(question)

            return answer

    run_trial(population, visits, [Spy()], np.random.default_rng(1), lengths=(length,), cuts=(0.5,))
    known, evidence = told
    residents = known.counts() > 0
    assert 0.3 < residents.mean() < 0.7
    assert (evidence.counts()[residents] == known.counts()[residents]).all()
    assert evidence.counts()[~residents].max() == length
