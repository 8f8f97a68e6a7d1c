"""The evaluation of change classes: rates as in eq. 1, classes from them, and errors that can be worked out."""

import csv
from pathlib import Path

import numpy as np
import pytest

from recrawl.errors import InputError
from recrawl.simulate.sampling import Events, collect
from recrawl.time import DAY
from recrawl_lab.experiments.experiment_classes import PUBLISHED, run
from recrawl_lab.trials.class_trial import SCALES, STARTS, classify, first_classes, grouped, methods, monitored, prepare

RECORDED = Path(__file__).parents[1] / "data" / "recorded"


def collection(gaps, days=400, rng=None):
    """Pages that change at gaps of so many days, on average if chance is given; each gap has its own directory."""
    page, time = [], []
    for row, gap in enumerate(gaps):
        when = np.arange(0.0, days, gap)
        if rng is not None:
            when[1:] = np.sort(rng.uniform(1.0, days - 1.0, len(when) - 1))
        page += [row] * (len(when) + 1)
        time += [*(when * DAY + 0.3 * DAY * (when > 0)), days * DAY]
    page, time = np.array(page), np.array(time)
    added = np.diff(page, prepend=-1) > 0
    none = np.zeros(len(page), dtype=np.bool_)
    urls = tuple(f"http://a.test/{gap:g}/{row}" for row, gap in enumerate(gaps))
    return collect("made up", urls, Events(page, time, added, none, none))


def test_rates_are_those_of_daily_visits():
    pages = monitored([collection([2.0, 10.0, 1000.0])], np.random.default_rng(1), days=100)
    changed = np.array([50, 10, 0])
    expected = np.maximum(-np.log((100 - changed + 0.5) / 100.5), 0.01)
    assert pages.rates() == pytest.approx(expected, rel=0.15)
    with pytest.raises(ValueError, match="1000 days"):
        monitored([collection([2.0])], np.random.default_rng(1), days=1000)


@pytest.mark.parametrize("scale", SCALES)
def test_classes_run_from_hot_to_cold_and_every_rate_has_the_nearest(scale):
    rate = np.array([1.0, 0.9, 0.3, 0.28, 0.05, 0.04, 0.01, 0.01])
    found = grouped(rate, scale=scale)
    assert (np.diff(found.classes.interval) > 0).all()
    measure = np.log if scale == SCALES[1] else np.asarray
    distance = np.abs(measure(rate)[:, None] - measure(DAY / found.classes.interval))
    assert found.of(rate).tolist() == np.argmin(distance, axis=1).tolist()
    with pytest.raises(ValueError, match="same rate"):
        grouped(np.full(3, 0.5), scale=scale)


@pytest.mark.slow
def test_most_pages_reach_their_class_whatever_they_began_in():
    gaps = np.repeat([1.0, 4.0, 20.0, 100.0], 30)
    rng = np.random.default_rng(2)
    trial = prepare(monitored([collection(gaps, days=900, rng=rng)], rng, days=600), rng, scale=SCALES[1])
    first = first_classes(trial)
    assert all(np.mean(first[start] == trial.true) > 0.8 for start in STARTS)
    assert np.mean(first["random"] == trial.true) < 0.5
    for method in methods(list(STARTS)):
        path = classify(trial, method, [0, 600])
        start = first[method.partition(" + ")[0].removesuffix(" chances")]
        assert path.assigned[0].tolist() == start.tolist()
        if method.endswith("Bayesian"):
            assert np.mean(path.assigned[600] == trial.true) > 0.7
        assert (path.visits > 0).all()


def test_any_learner_can_take_part():
    class Coldest:
        def chances(self, pages):
            return np.tile([0.1, 0.9], (len(pages), 1))

    rng = np.random.default_rng(3)
    pages = monitored([collection(np.repeat([2.0, 50.0], 6))], rng, days=100)
    trial = prepare(pages, rng, scale=SCALES[1], starts={"coldest": lambda *_: Coldest()})
    assert set(first_classes(trial)["coldest"].tolist()) == {1}
    assert set(classify(trial, "coldest chances + Bayesian", [0]).assigned[0].tolist()) == {1}


@pytest.mark.slow
def test_a_small_data_set_goes_through_whole(tmp_path, capsys):
    run(RECORDED, tmp_path, seed=1, repeats=2, days=365)
    with (tmp_path / "classes.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {*methods(list(STARTS)), "random", *STARTS, "commonest"}
    assert {row["classes"] for row in rows} == set(SCALES)
    for row in rows:
        assert float(row["error"]) == pytest.approx(float(row["too_frequent"]) + float(row["too_rare"]))
        assert float(row["error_low"]) <= float(row["error"]) <= float(row["error_high"])
    text = (tmp_path / "classes.md").read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    assert all(f"{value:.1%}" in text for value in PUBLISHED.values())
    assert "too few pages to compare learners" in text
    assert (tmp_path / "classes.png").stat().st_size > 10_000


def test_records_that_are_too_short_are_refused(tmp_path):
    with pytest.raises(InputError, match="no page was there for 99999 days"):
        run(RECORDED, tmp_path, seed=1, repeats=1, days=99_999)
