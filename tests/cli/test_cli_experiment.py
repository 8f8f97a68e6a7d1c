"""``recrawl experiment``: a small data set goes through whole, and what is no data set is refused."""

import csv
from pathlib import Path

import numpy as np
import pytest
from click import unstyle

from recrawl.estimate.estimators import ESTIMATORS
from recrawl_lab.experiments.experiment_hacs import report
from recrawl_lab.trials.hacs_trial import MODELS, RANKINGS, WINDOWS, HacsChoices, HacsEvaluation

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"


@pytest.mark.slow
def test_rates_writes_tables_and_a_picture(run, tmp_path):
    result = run("experiment", "rates", "--data", RECORDED, "--output", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    with (tmp_path / "out" / "scores.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["schedule"] for row in rows} == {"all", "regular", "irregular", "adaptive"}
    assert {row["method"] for row in rows} == set(ESTIMATORS)
    asked = [row for row in rows if int(row["predictions"])]
    bounds = [[float(row[f"log_loss{end}"]) for end in ("_low", "", "_high")] for row in asked]
    assert all(low - 1e-12 <= mean <= high + 1e-12 for low, mean, high in bounds)
    for row in asked:
        if row["schedule"] == "all" and row["gaps"] == "0":
            parts = [r for r in asked if r["gaps"] == "0" and r["method"] == row["method"] and r["schedule"] != "all"]
            assert int(row["predictions"]) == sum(int(part["predictions"]) for part in parts)
    assert (tmp_path / "out" / "rates.png").stat().st_size > 10_000
    assert (tmp_path / "out" / "rates.md").read_text(encoding="utf-8") in result.stdout


def test_a_folder_without_a_data_set_is_refused(run, tmp_path):
    result = run("experiment", "rates", "--data", tmp_path)
    assert result.returncode == 1
    assert "there is no data set here" in result.stderr
    assert "events.parquet" in result.stderr


def test_hacs_says_at_how_many_points_updates_came():
    hits = np.array([[1, 3, 5, 2], [0, 3, 2, 0], [0, 0, 0, 5]])
    choices = [HacsChoices(weeks, 0.5, dict.fromkeys(MODELS, hits)) for weeks in WINDOWS]
    evaluation = HacsEvaluation(choices, {(name, weeks): 0.5 for name in RANKINGS for weeks in WINDOWS})
    text = report({"home page": evaluation}, "Captures are drawn.", {"home page": 54})
    micro, macro = text.split("## Table I, ")[1:]
    assert "| w | θ̂ | P | R | F1 | F1 random | F1 brute force |" in micro
    assert "| 2 | 0.7 / 0.5 | 0.367 / 0.143 | 0.332 / 0.125 | 0.349 / 0.133 | 0.133 | 0.133 |" in micro
    assert "| w | θ̂ | P | R | F1 | F1 random | F1 brute force | points with updates |\n" in macro
    assert "| 2 | 0.8 / 0.5 | 0.647 / 0.125 | 0.321 / 0.083 | 0.420 / 0.100 | 0.100 | 0.100 | 2 of 3 |\n" in macro


def test_hacs_has_a_threshold_of_its_own_for_each_average():
    """Pooled, a lax threshold is best here; averaged over the points, a strict one."""
    lax, strict = np.array([[50, 50, 0, 0], [0, 9, 1, 0]]), np.array([[10, 0, 40, 0], [1, 0, 0, 9]])
    choices = [HacsChoices(1, theta, {"hacs": counts}) for theta, counts in ((0.1, lax), (0.9, strict))]
    evaluation = HacsEvaluation(choices, {})
    assert evaluation.best(1).theta == 0.1
    assert evaluation.best(1, "macro").theta == 0.9


def test_hacs_does_not_choose_a_threshold_by_one_lucky_week():
    """A hit in 1 of 28 weeks, and nothing found in the others, is no F1 of 1."""
    lucky, steady = np.array([[1, 0, 0, 9], *[[0, 0, 1, 9]] * 27]), np.array([[1, 1, 0, 8]] * 28)
    evaluation = HacsEvaluation([HacsChoices(1, 0.9, {"hacs": lucky}), HacsChoices(1, 0.1, {"hacs": steady})], {})
    best = evaluation.best(1, "macro")
    assert best.theta == 0.1
    assert lucky[:, 0].mean() == evaluation.choices[0].macro("hacs").f1 == evaluation.choices[0].macro("hacs").recall


def test_hacs_says_that_it_reads_and_what_it_cannot_read(run, tmp_path):
    result = run("experiment", "hacs", "--data", tmp_path, env={"FORCE_COLOR": "1"})  # to rich that is a terminal
    assert result.returncode == 1
    assert "Reading the data" in result.stderr
    assert "pages.parquet is missing" in unstyle(result.stderr)
