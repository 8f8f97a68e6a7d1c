"""Visits sampled from known changes say exactly what a look would have said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model import Histories, Verdict
from recrawl.simulate.sampling import AdaptiveVisits, IrregularVisits, PageTruth, RegularVisits, sample
from recrawl.simulate.virtual_web import EventTimes, PoissonProcess
from recrawl.time import DAY

SCHEDULES = [RegularVisits(7 * DAY), IrregularVisits(10 * DAY, 1.0), AdaptiveVisits()]


def truth_of(seed: int, pages: int = 20, days: float = 300.0) -> PageTruth:
    rng = np.random.default_rng(seed)
    end = days * DAY
    born = np.where(rng.random(pages) < 0.5, 0.0, rng.uniform(0, end, pages))
    died = np.where(rng.random(pages) < 0.7, np.inf, born + rng.uniform(0, end, pages))
    return PageTruth(
        born, died, PoissonProcess().times(rng.lognormal(0, 1, pages) / (20 * DAY), 0.0, end, rng), 0.0, end
    )


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
@given(st.integers(0, 2**32 - 1))
def test_a_look_says_whether_there_was_a_change_since_the_one_before(schedule, seed):
    truth = truth_of(seed)
    visits = sample(truth, schedule, np.random.default_rng(seed))
    for page in range(len(truth)):
        mine = visits.take(visits.page == page)
        assert (np.diff(mine.time) > 0).all()
        assert (mine.time >= max(truth.born[page], truth.start)).all()
        assert (mine.time < min(truth.died[page], truth.end)).all()
        if len(mine):
            assert mine.verdict[0] == Verdict.UNKNOWN
        changes = truth.changes.row(page)
        for before, after, verdict in zip(mine.time[:-1], mine.time[1:], mine.verdict[1:], strict=True):
            changed = bool(((changes > before) & (changes <= after)).any())
            assert verdict == (Verdict.CHANGED if changed else Verdict.UNCHANGED)


def test_regular_looks_are_spread_over_the_interval():
    truth = truth_of(1, pages=500)
    histories = Histories.from_visits(sample(truth, RegularVisits(7 * DAY), np.random.default_rng(1)))
    np.testing.assert_allclose(histories.gaps, 7 * DAY)
    assert len(np.unique(np.floor(histories.first_visit % (7 * DAY) / DAY))) == 7


def test_irregular_gaps_are_log_normal():
    truth = truth_of(2, pages=200, days=3_000.0)
    gaps = Histories.from_visits(sample(truth, IrregularVisits(10 * DAY, 0.5), np.random.default_rng(2))).gaps
    assert np.median(gaps) == pytest.approx(10 * DAY, rel=0.05)
    assert np.log(gaps).std() == pytest.approx(0.5, rel=0.05)


def test_adaptive_looks_come_sooner_to_pages_that_change():
    pages, end = 40, 1_000 * DAY
    rate = np.where(np.arange(pages) < 20, 1 / (2 * DAY), 1 / (400 * DAY))
    changes = PoissonProcess().times(rate, 0.0, end, np.random.default_rng(3))
    truth = PageTruth(np.zeros(pages), np.full(pages, np.inf), changes, 0.0, end)
    counts = Histories.from_visits(sample(truth, AdaptiveVisits(), np.random.default_rng(4))).counts()
    assert counts[:20].min() > 3 * counts[20:].max()


def test_chains_are_merged_into_their_last_change():
    changes = EventTimes.of([0, 0, 0, 1], [10.0, 14.0, 30.0, 31.0], 2)
    merged = PageTruth(np.zeros(2), np.full(2, np.inf), changes, 0.0, 100.0).merged(5.0)
    assert merged.changes.row(0).tolist() == [14.0, 30.0]
    assert merged.changes.row(1).tolist() == [31.0]


def test_taking_pages_takes_their_changes():
    truth = truth_of(5)
    some = truth.take(np.array([7, 3]))
    assert np.array_equal(some.changes.row(0), truth.changes.row(7))
    assert np.array_equal(some.changes.row(1), truth.changes.row(3))


def test_no_pages():
    nobody = PageTruth(np.empty(0), np.empty(0), EventTimes.of([], [], 0), 0.0, 1.0)
    for schedule in SCHEDULES:
        assert len(sample(nobody, schedule, np.random.default_rng(0))) == 0
