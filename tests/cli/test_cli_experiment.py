"""``recrawl experiment``: a small data set goes through whole, and what is no data set is refused."""

import csv
from pathlib import Path

from recrawl.estimate.estimators import ESTIMATORS

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"


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
