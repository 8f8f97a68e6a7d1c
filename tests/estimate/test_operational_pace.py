"""Factors are switched on where they predict, and only there; nothing is known before it was seen."""

import numpy as np
import pytest

from recrawl.estimate.operational.factor_state import (
    MARGIN,
    PageGroups,
    TimeFactor,
    choose,
    fit,
    held_out_loss,
    mean_and_error,
)
from recrawl.estimate.operational.operational_factors import ClosedGaps
from recrawl.model import Histories, Visits
from recrawl.simulate.sampling import IrregularVisits, PageTruth, RegularVisits, sample
from recrawl.simulate.virtual_web import PoissonProcess
from recrawl.time import DAY

START = 18_000 * DAY
END = START + 400 * DAY
PAGES = 300


def steady(seed: int, pages: int = PAGES) -> tuple[Histories, PageGroups]:
    """Pages that are Poisson clocks and nothing else, some of them born later."""
    rng = np.random.default_rng(seed)
    born = np.where(rng.random(pages) < 0.5, START, START + rng.uniform(2, 300, pages) * DAY)
    rate = rng.lognormal(0.0, 1.0, pages) / (30 * DAY)
    truth = PageTruth(born, np.full(pages, np.inf), PoissonProcess().times(rate, START, END, rng), START, END)
    histories = Histories.from_visits(sample(truth, IrregularVisits(8 * DAY, 0.8), rng)).align(np.arange(pages))
    births = np.where(born > START + DAY, born, np.nan)
    return histories, PageGroups(np.arange(pages) // 20, np.zeros(pages // 20, np.int64), births)


def edited_together(seed: int) -> tuple[Histories, PageGroups]:
    """Clusters of twenty pages, all of which change within a day, now and then."""
    rng = np.random.default_rng(seed)
    clusters = PAGES // 20
    edits = PoissonProcess().times(np.full(clusters, 1 / (60 * DAY)), START, END, rng)
    cluster = np.arange(PAGES) // 20
    counts = edits.counts()[cluster]
    row = np.repeat(np.arange(PAGES), counts)
    when = np.concatenate([edits.row(c) for c in cluster]) + rng.uniform(0, DAY, len(row))
    single = PoissonProcess().times(np.full(PAGES, 1 / (200 * DAY)), START, END, rng)
    changes = type(edits).of(np.concatenate([row, single.row_of_event()]), np.concatenate([when, single.times]), PAGES)
    truth = PageTruth(np.full(PAGES, START), np.full(PAGES, np.inf), changes, START, END)
    histories = Histories.from_visits(sample(truth, RegularVisits(10 * DAY), rng)).align(np.arange(PAGES))
    return histories, PageGroups(cluster, np.zeros(clusters, np.int64), np.full(PAGES, np.nan))


def test_pages_edited_together_switch_their_clusters_on():
    histories, places = edited_together(1)
    found = choose(histories, places)
    assert found.factors[0] == TimeFactor.CLUSTERS
    first = next(trial for trial in found.trials if trial.factor == TimeFactor.CLUSTERS)
    assert first.taken
    assert first.gain > 0.05
    assert first.gain > MARGIN * first.error
    assert fit(histories, places, found.factors).time().calendar is not None
    assert found.loss > 0


@pytest.mark.parametrize("factor", [TimeFactor.CLUSTERS, TimeFactor.AGE, TimeFactor.BURSTS])
def test_on_pure_poisson_pages_a_factor_does_little_harm(factor):
    histories, places = steady(2)
    split = START + 240 * DAY
    plain = held_out_loss(histories, places, (), split)
    with_factor = held_out_loss(histories, places, [factor], split)
    assert with_factor.mean() - plain.mean() < 0.03 * plain.mean()


def test_what_is_chosen_on_pure_poisson_pages_does_not_hurt():
    histories, places = steady(3)
    split = START + 280 * DAY
    chosen = choose(histories.window(-np.inf, split), places).factors
    plain = held_out_loss(histories, places, (), split)
    assert held_out_loss(histories, places, chosen, split).mean() - plain.mean() < 0.005 * plain.mean()


def test_nothing_is_known_before_it_was_seen():
    """Later looks, turned upside down, change neither the fit at t nor the loss of looks before them."""
    histories, places = edited_together(4)
    now = START + 250 * DAY
    times = histories.observation_times()
    upside_down = Histories(
        histories.page,
        histories.offsets,
        histories.gaps,
        np.where(times > now, ~histories.changed, histories.changed),
        histories.first_visit,
        histories.last_visit,
        histories.last_change,
    )
    pasts = [h.window(-np.inf, now) for h in (histories, upside_down)]
    one, other = (choose(past, places) for past in pasts)
    assert one.factors == other.factors
    assert one.trials == other.trials
    calendars = [fit(past, places, one.factors).time().calendar for past in pasts]
    assert np.array_equal(calendars[0].factor, calendars[1].factor)
    split = START + 200 * DAY
    later = times[times > split]
    losses = [held_out_loss(h, places, tuple(TimeFactor), split) for h in (histories, upside_down)]
    assert np.array_equal(losses[0][later <= now - DAY], losses[1][later <= now - DAY])
    assert not np.array_equal(losses[0], losses[1])


def test_looks_folded_in_one_batch_a_day_come_close_to_the_fit_over_all():
    histories, places = edited_together(5)
    whole = fit(histories, places, [TimeFactor.CLUSTERS])
    observations = ClosedGaps.of(histories)
    streamed = fit(histories.window(-np.inf, START + 60 * DAY), places, [TimeFactor.CLUSTERS])
    later = observations.take(observations.end > START + 60 * DAY)
    for day in np.unique(np.floor(later.end / DAY)):
        batch = later.take(np.floor(later.end / DAY) == day)
        streamed.fold(batch, np.full(len(batch), 1 / (46 * DAY)))
    row, start, end = later.row, later.start, later.end
    at_once, in_turn = (np.log(t.time().elapsed(row, start, end)) for t in (whole, streamed))
    assert np.corrcoef(at_once, in_turn)[0, 1] > 0.85


def test_without_looks_it_is_wall_time():
    nothing = Histories.concatenate([]).align(np.arange(3))
    places = PageGroups(np.array([0, 1, 1]), np.array([0, 0]), np.full(3, np.nan))
    found = choose(nothing, places)
    assert found.factors == ()
    assert np.isnan(found.loss)
    assert fit(nothing, places, found.factors).time().is_wall()
    nobody, nowhere = Histories.concatenate([]), PageGroups(*(np.empty(0, np.int64),) * 2, np.empty(0))
    assert len(fit(nobody, nowhere, choose(nobody, nowhere).factors).time()) == 0
    for factor in TimeFactor:
        time = fit(nothing, places, [factor]).time()
        assert np.isfinite(time.elapsed(np.arange(3), np.full(3, START), np.full(3, END))).all()


@pytest.mark.parametrize("gap", [1e-6, 1.0, DAY, 20 * 365 * DAY])
def test_every_scale_and_lone_pages_give_finite_positive_time(gap):
    rng = np.random.default_rng(6)
    pages, observations = 5, 8
    when = 1e8 + np.arange(observations) * gap + np.zeros((pages, 1))
    visits = Visits.of(
        np.repeat(np.arange(pages), observations), when.ravel(), verdict=rng.integers(1, 3, pages * observations)
    )
    histories = Histories.from_visits(visits)
    born = np.array([np.nan, np.inf, -np.inf, 1e8, 1e8 + gap])
    places = PageGroups(np.arange(pages), np.arange(pages), born)
    told = fit(histories, places, tuple(TimeFactor)).time().stretch(histories)
    assert np.isfinite(told.gaps).all()
    assert (told.gaps > 0).all()


@pytest.mark.parametrize("verdict", [1, 2])
def test_all_changed_and_none_changed_are_defined(verdict):
    visits = Visits.of(np.repeat(np.arange(4), 30), np.tile(START + np.arange(30) * DAY, 4), verdict=verdict)
    histories = Histories.from_visits(visits)
    places = PageGroups(np.array([0, 0, 1, 1]), np.array([0, 0]), np.full(4, START))
    told = fit(histories, places, tuple(TimeFactor)).time().stretch(histories)
    assert np.isfinite(told.gaps).all()
    assert (told.gaps > 0).all()
    assert choose(histories, places).factors == ()


def test_places_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="cluster"):
        PageGroups(np.array([0, 2]), np.array([0, 0]), np.full(2, np.nan))
    with pytest.raises(ValueError, match="3 rows"):
        fit(
            Histories.concatenate([]).align(np.arange(3)),
            PageGroups(np.zeros(2, np.int64), np.zeros(1, np.int64), np.zeros(2)),
            [],
        )


def test_errors_count_clusters_not_looks():
    values = np.repeat([1.0, -1.0, 0.5, 0.3], 100)
    unit = np.repeat(np.arange(4), 100)
    mean, error = mean_and_error(values, unit)
    assert mean == pytest.approx(0.2)
    assert error == pytest.approx(np.std([1.0, -1.0, 0.5, 0.3], ddof=1) / 2)
    assert mean_and_error(values, np.zeros(400, np.int64))[1] == np.inf


def test_blocks_of_looks_give_what_all_looks_at_once_give(monkeypatch):
    histories, places = steady(7)
    whole = fit(histories, places, tuple(TimeFactor)).time()
    monkeypatch.setattr("recrawl.estimate.operational.factor_state._BLOCK", 1_000)
    parts = fit(histories, places, tuple(TimeFactor)).time()
    np.testing.assert_allclose(parts.calendar.factor, whole.calendar.factor, rtol=1e-6)
    np.testing.assert_allclose(parts.age.factor, whole.age.factor, rtol=1e-6)
    np.testing.assert_allclose(parts.bursts.factor, whole.bursts.factor, rtol=1e-6)
    np.testing.assert_allclose(parts.week.hourly, whole.week.hourly, rtol=1e-6)
