"""The evaluation of HACS: lively pages are told from quiet ones; data are read as they are meant."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from recrawl.errors import InputError
from recrawl.simulate.sampling import PageTruth, RegularVisits
from recrawl.simulate.virtual_web import EventTimes
from recrawl.time import DAY, WEEK
from recrawl_lab.experiments.experiment_hacs import PUBLISHED, run, updates
from recrawl_lab.trials.hacs_trial import evaluate

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
LIVELY, QUIET, WEEKS = 6, 10, 40


@pytest.fixture(scope="module")
def judged():
    """Some pages update every three days, the others never; all are captured twice a week."""
    times = np.arange(1.0, WEEKS * 7, 3.0) * DAY
    changes = EventTimes.of(np.repeat(np.arange(LIVELY), len(times)), np.tile(times, LIVELY), LIVELY + QUIET)
    n = LIVELY + QUIET
    truth = PageTruth(np.zeros(n), np.full(n, WEEKS * WEEK), changes, 0.0, WEEKS * WEEK)
    return evaluate(
        truth, RegularVisits(3.5 * DAY), np.random.default_rng(1), windows=(1, 4), thresholds=(0.0, 0.5, 1.0)
    )


def test_lively_pages_are_chosen_and_quiet_ones_left(judged):
    at = {(one.weeks, one.theta): one for one in judged.choices}
    scores = at[4, 0.5].micro("hacs")
    assert scores.precision == 1.0
    assert scores.recall > 0.95
    assert at[4, 0.5].micro("brute force").precision == pytest.approx(LIVELY / (LIVELY + QUIET), abs=0.05)
    assert at[4, 0.5].micro("random").precision == pytest.approx(LIVELY / (LIVELY + QUIET), abs=0.15)
    assert at[4, 0.5].macro("hacs").f1 > 0.95


def test_models_choose_from_the_same_pages(judged):
    for one in judged.choices:
        sizes = [table.sum(axis=1) for table in one.counts.values()]
        assert all(np.array_equal(size, sizes[0]) for size in sizes)
        hacs, random = (one.counts[model][:, :2].sum(axis=1) for model in ("hacs", "random"))
        assert np.array_equal(hacs, random)
    everything = next(one for one in judged.choices if one.theta == 0.0)
    assert everything.micro("hacs") == everything.micro("brute force")


def test_rankings_are_judged_by_who_updates_first(judged):
    """Lively pages all update at once, so that their order is chance; quiet ones, longest without update, never do."""
    assert judged.precision_at_k["hacs", 4] > judged.precision_at_k["random", 4] + 0.05
    assert judged.precision_at_k["random", 4] > 0.1
    assert judged.precision_at_k["last-obs", 4] < 0.05


def test_the_best_threshold_has_the_highest_f1(judged):
    best = judged.best(4)
    assert best.theta == 0.5
    assert best.micro("hacs").f1 == max(
        one.micro("hacs").f1 for one in judged.choices if one.weeks == 4 and one.theta < 1
    )


def write_data(folder, days=200):
    """Two sites; of site a the home page gets links every day, of b only a page below."""
    pages = {"site": ["a", "a", "b", "b"], "page_id": [0, 1, 0, 1]}
    pages |= {"is_home": [True, False, True, False], "in_d2": [True, True, True, True]}
    rows = [("a", 0, 0.0, "add", 3, 3), ("b", 0, 0.0, "add", 3, 3), ("b", 1, 0.0, "add", 0, 0)]
    for day in range(1, days):
        rows += [
            ("a", 0, day * DAY, "mod", 1, 0),
            ("a", 0, day * DAY + 60, "mod", 1, 0),
            ("b", 1, day * DAY, "mod", 1, 1),
        ]
    names = ("site", "page_id", "t", "kind", "new_int", "site_new_int")
    events = {name: [row[place] for row in sorted(rows)] for place, name in enumerate(names)}
    folder.mkdir()
    pq.write_table(pa.table(pages), folder / "pages.parquet")
    pq.write_table(pa.table(events), folder / "events.parquet")


def test_home_pages_and_sites_update_when_links_are_new(tmp_path):
    write_data(tmp_path / "data")
    found = updates(tmp_path / "data")
    assert found["home page"].changes.counts().tolist() == [199, 0]
    assert found["web site"].changes.counts().tolist() == [0, 199]


def test_published_and_own_values_stand_side_by_side(tmp_path, capsys):
    write_data(tmp_path / "data", days=120)
    run(tmp_path / "data", tmp_path / "out", seed=1, repeats=2, median=3.0)
    text = (tmp_path / "out" / "hacs.md").read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    assert "| 0.603 / " in text.replace("| 1 | 0.8 / ", "")
    assert all(len(values) == 12 for values in PUBLISHED.values())
    for plot in ("hacs.png", "hacs-thresholds.png"):
        assert (tmp_path / "out" / plot).stat().st_size > 10_000


def test_what_is_undefined_is_a_dash(tmp_path, capsys):
    """Nothing is ever new, so nobody hits anything."""
    write_data(tmp_path / "data", days=2)
    events = pq.read_table(tmp_path / "data" / "events.parquet")
    late = pa.table({**{name: events[name] for name in events.column_names}, "t": pc.multiply(events["t"], 100.0)})
    pq.write_table(late, tmp_path / "data" / "events.parquet")
    run(tmp_path / "data", tmp_path / "out", seed=1, repeats=1, median=3.0)
    printed = capsys.readouterr().out
    assert "/ – | – | – |" in printed
    assert "nan" not in printed


def test_a_data_set_without_home_pages_is_refused():
    with pytest.raises(InputError, match="is_home"):
        updates(RECORDED)
