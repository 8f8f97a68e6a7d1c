"""The SHARC experiments go through whole on small sites, and write what they print."""

import csv
from pathlib import Path

import pytest

from recrawl.assess.blur_coherence import capture_blur
from recrawl.capture.single_visit import organ_pipes
from recrawl.errors import ExitCode
from recrawl_lab.experiments.sharc_worst_case import pair_rates

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"


def rows_of(file):
    with file.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize(
    ("name", "table", "columns"),
    [("sharc-blur", "4.6b", 7), ("sharc-coherence", "5.14", 12)],
    ids=["blur", "coherence"],
)
def test_synthetic_tables_are_made_on_smaller_sites_if_asked(run, tmp_path, name, table, columns):
    out = tmp_path / "out"
    asked = ("--only", table, "--pages", 200, "--repeats", 2, "--jobs", 1, "--output", out)
    result = run("experiment", name, *asked)
    assert result.returncode == 0, result.stderr
    rows = rows_of(out / f"{name}.csv")
    settings = {row["skew"] for row in rows}
    assert len(rows) == columns * len(settings)
    assert {row["pages"] for row in rows} == {"200"}
    assert {row["published"] for row in rows} == {""}
    for row in rows:
        assert float(row["expected_least"]) <= float(row["expected_greatest"])
        assert float(row["actual_least"]) <= float(row["actual_mean"]) <= float(row["actual_greatest"])
    best = "sharc-offline" if name == "sharc-blur" else "sharc-optimal"
    for skew in settings:
        values = {row["strategy"]: float(row["expected_least"]) for row in rows if row["skew"] == skew}
        assert values[best] <= min(values.values()) + 1e-9
    assert (out / f"{name}.md").read_text(encoding="utf-8") in result.stdout
    assert (out / f"{name}.png").stat().st_size > 10_000


def test_what_people_wrote_above_the_tables_is_kept(run, tmp_path):
    page = tmp_path / "sharc-threshold.md"
    page.write_text("# Ours\n\n<!-- written by recrawl experiment -->\nold tables\n", encoding="utf-8")
    result = run("experiment", "sharc-threshold", "--pages", 60, "--repeats", 1, "--jobs", 1, "--output", tmp_path)
    assert result.returncode == 0, result.stderr
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Ours\n\n<!-- written by recrawl experiment -->\n\nPages expected to change")
    assert "old tables" not in text
    rows = rows_of(tmp_path / "sharc-threshold.csv")
    assert len(rows) == 3 * (4 * 10 + 3)
    assert all(0.0 <= float(row["expected"]) <= 60.0 for row in rows)


def test_the_worst_case_grows_with_the_misplaced_pages_and_never_doubles_the_blur(run, tmp_path):
    result = run("experiment", "sharc-worst-case", "--output", tmp_path)
    assert result.returncode == 0, result.stderr
    rows = rows_of(tmp_path / "sharc-worst-case.csv")
    curves = {}
    for row in rows:
        curves.setdefault((row["skew"], row["pages"]), {})[int(row["misplaced"])] = float(row["relative"])
    assert len(curves) == 4 + 3
    for curve in curves.values():
        values = [curve[count] for count in sorted(curve)]
        assert values[0] == pytest.approx(0.0, abs=1e-12)
        assert values == sorted(values)
        assert values[-1] < 1.0
    # The worst order of all pages is the best one turned round: the hottest outside.
    rate = pair_rates(102, 1.0)
    worst = organ_pipes(-rate).visit_times(0.0, 1.0)
    best = organ_pipes(rate).visit_times(0.0, 1.0)
    turned = capture_blur(rate, worst, 0.0, 101.0) / capture_blur(rate, best, 0.0, 101.0)
    assert 1.0 + curves["1.0", "102"][102] == pytest.approx(turned)


def test_recorded_sites_are_captured_with_all_that_may_be_believed(run, tmp_path):
    result = run(
        "experiment",
        "sharc-real",
        "--data",
        RECORDED,
        "--starts",
        2,
        "--duration",
        "30d",
        "--jobs",
        1,
        "--output",
        tmp_path,
    )
    assert result.returncode == 0, result.stderr
    rows = rows_of(tmp_path / "sharc-real.csv")
    assert {row["source"] for row in rows} == {"oracle", "learned", "sitemap", "sitemap-corrected"}
    expected = {
        (row["site"], row["strategy"]): float(row["expected_incoherence"]) for row in rows if row["source"] == "oracle"
    }
    for site in {site for site, _ in expected}:
        assert expected[site, "sharc-optimal"] <= expected[site, "sharc-selective"] + 1e-6
        assert expected[site, "sharc-selective"] <= expected[site, "hottest-last-lifo"] + 1e-6
    timed = rows_of(tmp_path / "sharc-real-durations.csv")
    assert {row["duration"] for row in timed} == {"2592000.0"}
    assert all(int(row["better"]) + int(row["worse"]) <= int(row["captures"]) <= 2 for row in timed)
    assert (tmp_path / "sharc-real.md").read_text(encoding="utf-8") in result.stdout
    assert all((tmp_path / name).stat().st_size > 10_000 for name in ("sharc-real.png", "sharc-real-blur.png"))


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (("sharc-blur", "--only", "5.9"), ExitCode.BAD_CONFIG, "There are: 4.4a"),
        (("sharc-real", "--data", RECORDED, "--only", "nowhere"), ExitCode.ERROR, "There is no site 'nowhere'"),
        (("sharc-real", "--data", RECORDED, "--duration", "10ms"), ExitCode.BAD_CONFIG, "--duration is below 1s."),
    ],
)
def test_tables_and_sites_that_are_not_there_are_named(run, tmp_path, asked, code, said):
    result = run("experiment", *asked, "--output", tmp_path / "out")
    assert result.returncode == code
    assert said in result.stderr
    assert not (tmp_path / "out").exists()
