"""The evaluation of datamonitor: classes as in Table 2, and counts that can be worked out."""

import csv
from pathlib import Path

import numpy as np
import pytest

from recrawl.simulate.sampling import Events, collect
from recrawl.time import DAY
from recrawl_lab.experiments.experiment_datamonitor import run
from recrawl_lab.trials.datamonitor_trial import CLASSES, YEAR, documents, try_strategy

RECORDED = Path(__file__).parents[1] / "data" / "recorded"


def collection(gaps, years=4):
    """Pages that change at equal gaps of so many days, in the middle of a day."""
    page, time = [], []
    for row, gap in enumerate(gaps):
        when = np.arange(0.0, years * YEAR, gap * DAY)
        page += [row] * (len(when) + 1)
        time += [*(when + 0.5 * DAY * (when > 0)), years * YEAR]
    page, time = np.array(page), np.array(time)
    added = np.diff(page, prepend=-1) > 0
    none = np.zeros(len(page), dtype=np.bool_)
    return collect(
        "made up", tuple(f"http://a.test/{n}" for n in range(len(gaps))), Events(page, time, added, none, none)
    )


def test_documents_are_sorted_into_the_classes_of_the_paper():
    found = documents([collection([3, 10, 20, 45, 90, 150, 300])], np.random.default_rng(1))
    assert found.kind.tolist() == list(range(len(CLASSES)))
    assert 1 / found.rate / DAY == pytest.approx(np.array([3, 10, 20, 45, 90, 150, 300]), rel=0.25)
    assert found.field.truth.end == 3 * YEAR


def test_short_records_and_quiet_pages_are_left_out_and_classes_bounded():
    with pytest.raises(ValueError, match="a record of 1,095 days; the longest record has 730 days"):
        documents([collection([10], years=2)], np.random.default_rng(1))
    assert documents([collection([10], years=2)], np.random.default_rng(1), length=730 * DAY).length == 730 * DAY
    assert len(documents([collection([10] * 9)], np.random.default_rng(1), most=4)) == 4


def test_weekly_visits_catch_each_change_of_a_page_that_changes_monthly():
    found = documents([collection([28])], np.random.default_rng(1))
    everything = try_strategy(found, "week", np.random.default_rng(1))[0]
    assert (everything.kind, everything.year) == ("all", 0)
    assert everything.observed == everything.changes == pytest.approx(3 * 365 / 28, abs=1)
    assert everything.downloads == pytest.approx(3 * 365 / 7, abs=1)
    assert everything.recall.mean == 1.0
    assert everything.precision.mean == pytest.approx(0.25, abs=0.01)


def test_gold_downloads_as_often_as_pages_change():
    found = documents([collection([20, 50, 100])], np.random.default_rng(1))
    gold = try_strategy(found, "gold", np.random.default_rng(1))[0]
    assert gold.downloads == pytest.approx(gold.changes, rel=0.05)


def test_years_add_up():
    found = documents([collection([5, 30, 70])], np.random.default_rng(1))
    outcomes = [one for one in try_strategy(found, "dyn", np.random.default_rng(1)) if one.kind == "all"]
    for count in ("changes", "downloads", "observed"):
        assert getattr(outcomes[0], count) == sum(getattr(one, count) for one in outcomes[1:])


@pytest.mark.slow
def test_a_recorded_site_goes_through_whole(tmp_path, capsys):
    run(RECORDED, tmp_path, seed=1, days=3 * 365)
    text = (tmp_path / "datamonitor.md").read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    assert "Fig. 4: week has the worst precision | yes" in text
    assert "nan" not in text
    with (tmp_path / "datamonitor.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row["changes"]) and int(row["downloads"])]
    assert all(0 <= float(row[name]) <= 1 for row in rows for name in ("recall", "precision"))
    assert (tmp_path / "datamonitor-recorded.png").stat().st_size > 10_000
