"""One table of figures: every aim has its row, the page is what the kept results give, and every command can be run."""

import argparse
import doctest
import importlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import figures
import figures_page
import pytest
from figures import Figure, note, options_of, read_notes
from hashes import hash_of, kept_hashes
from kept import Result, all_aims, kept_results, reached
from quality import EXPERIMENTS, FOLDER, quality_figures
from reasons import REASONS
from runs import RUNS
from targets import Aim

HERE = Path(__file__).resolve().parents[2] / "benchmarks"
DATA = HERE.parents[1] / "shared" / "data"


def cells(page):
    """All rows of all tables, headings too."""
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in page.splitlines() if line.startswith("|")]


@pytest.fixture(scope="module")
def page():
    return figures_page.page()


def test_the_page_is_what_the_kept_results_give(page):
    shown, made = figures_page.PAGE.read_text("utf-8").splitlines(), page.splitlines()
    assert [line for line in made if line not in shown] == [], "run: python benchmarks/all.py --write"
    assert shown == made, "run: python benchmarks/all.py --write"


def test_every_aim_has_a_row_and_no_cell_is_empty(page):
    rows = cells(page)
    for aim in all_aims():
        assert any(row[0].strip() == aim.what for row in rows), aim.key
    assert all(cell.strip() for row in rows for cell in row)
    assert not [row for row in rows if any("not measured" in cell or cell.strip() == "not noted" for cell in row)]


def test_what_is_not_reached_has_its_reason(page):
    assert figures_page.NO_REASON not in page
    assert set(REASONS) <= {aim.key for aim in all_aims()}


def test_aims_name_what_is_measured():
    runs, experiments = {run.name for run in RUNS}, {one.name for one in EXPERIMENTS}
    assert len(runs) == len(RUNS)
    assert not runs & experiments
    assert {aim.run for aim in all_aims()} >= runs
    for aim in all_aims():
        assert aim.run in runs or aim.figure in {one.name for one in quality_figures(aim.run)}
    assert max(Counter((aim.key, aim.of_ratio) for aim in all_aims()).values()) == 1


def test_kept_results_are_of_runs_and_note_what_aims_ask_for():
    runs = {run.name: run for run in RUNS}
    for name, result in kept_results().items():
        assert result.run == name
        words = runs[name].quick if result.quick else runs[name].command
        assert result.remark or result.command == f"python benchmarks/{words}"
        assert all(result.figure(aim.figure) for aim in all_aims() if aim.run == name)


def test_the_tables_are_those_whose_hashes_are_shown(page):
    kept = kept_hashes("tables")
    for one in EXPERIMENTS:
        assert hash_of(FOLDER / one.file) == kept[one.file]["sha256"], "run: python benchmarks/all.py --write"
        assert kept[one.file]["sha256"][:16] in page


@pytest.mark.big
@pytest.mark.skipif(not DATA.is_dir(), reason="the large data sets are not at hand")
def test_the_data_are_those_whose_hashes_are_shown():
    for name, told in kept_hashes("data").items():
        assert hash_of(DATA / name) == told["sha256"]


class Parsed(Exception):  # noqa: N818 - stops a command where it would begin to measure
    pass


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_command_is_understood_by_its_benchmark(run, monkeypatch):
    for words in filter(None, (run.command, run.quick)):
        file, *arguments = words.split()
        module = importlib.import_module(file.removesuffix(".py"))

        def parse(parser, arguments=arguments):
            options_of(parser, arguments)
            raise Parsed

        monkeypatch.setattr(module, "options_of", parse)
        with pytest.raises(Parsed):
            module.main()
        assert "note(" in (HERE / file).read_text("utf-8")


def test_every_benchmark_is_run_or_said_to_have_no_aim():
    commands = {file.name for file in HERE.glob("*.py") if "__main__" in file.read_text("utf-8")}
    run = {words.split()[0] for one in RUNS for words in (one.command, one.quick) if words}
    parts = {"all.py", "crawl_process.py", "hostile_hosts.py", "serve_ours.py", "serve_pywb.py"}
    without = set(re.findall(r"^- `(\w+\.py)`", (HERE / "README.md").read_text("utf-8"), re.MULTILINE))
    assert run | parts | without == commands
    assert not run & without


@pytest.mark.parametrize(
    ("aim", "measured", "baseline", "good"),
    [
        (Aim("r", "f", "w", 3.0, at_least=True), 3.0, 1.0, True),
        (Aim("r", "f", "w", 3.0, at_least=True), 2.9, 0.1, False),
        (Aim("r", "f", "w", 3.0, at_least=True, of_ratio=True), 2.9, 0.9, True),
        (Aim("r", "f", "w", 3.0, at_least=True, of_ratio=True), 2.9, None, False),
        (Aim("r", "f", "w", 2.0, at_least=False, of_ratio=True), 30.0, 16.0, True),
        (Aim("r", "f", "w", 2.0, at_least=False), 30.0, 16.0, False),
        (Aim("r", "f", "w", 0.0, at_least=False), 0.0, None, True),
    ],
)
def test_when_an_aim_is_reached(aim, measured, baseline, good):
    assert reached(aim, Figure("f", measured, "s", "all", baseline, "other")) is good


def test_notes_are_kept_only_where_a_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(figures._Notes, "file", None)
    file = tmp_path / "notes.jsonl"
    note("lost", 1.0, "s", "none")
    assert read_notes(file) == []
    options_of(argparse.ArgumentParser(), ["--json", str(file)])
    note("one", 1, "s", "5 pages", baseline=2, beside="another way")
    note("two", 3.5, "ms", "λ")
    assert read_notes(file) == [Figure("one", 1.0, "s", "5 pages", 2.0, "another way"), Figure("two", 3.5, "ms", "λ")]


def kept(folder, **changes):
    values = {"run": "start", "command": "python benchmarks/start.py help", "quick": False, "date": "2026-01-02"}
    values |= {"load": 0.5, "cores": 2, "seconds": 1.0, "figures": (Figure("help", 0.2, "s", "one"),)}
    result = Result(**(values | changes))
    result.keep(folder)
    return result


def test_a_result_is_read_as_it_was_kept(tmp_path):
    result = kept(tmp_path / "results", remark="a word")
    assert kept_results(tmp_path / "results") == {"start": result}


def test_the_page_says_what_is_missing_small_or_too_slow(tmp_path):
    kept(tmp_path, figures=(Figure("help", 0.9, "s", "one"),))
    small = (Figure("frontier", 9e9, "decisions/s", "3 pages", 1.0, "heaps"),)
    kept(tmp_path, run="schedule", quick=True, figures=small)
    rows = {row[0].strip(): [cell.strip() for cell in row] for row in cells(figures_page.page(tmp_path))}
    assert rows["decisions of the frontier"][5] == "not known yet (small sizes)"
    assert rows["ranking 10 million pages"][5] == "not measured yet"
    assert rows["recrawl --help, processor time"][-1] == figures_page.NO_REASON  # the last table is that of the missed


def run_all(tmp_path, *words):
    command = [sys.executable, str(HERE / "all.py"), "--results", str(tmp_path / "results")]
    command += ["--page", str(tmp_path / "page.md"), *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def test_a_run_is_kept_and_shown(tmp_path):
    done = run_all(tmp_path, "--only", "start")
    assert done.returncode == 0, done.stderr
    [figure] = kept_results(tmp_path / "results")["start"].figures
    assert figure.baseline is not None
    assert 0 < figure.baseline < figure.measured
    assert f"| {figures_page.said(figure.measured)} s |" in (tmp_path / "page.md").read_text("utf-8")
    again = run_all(tmp_path, "--only", "start", "--missing")
    assert "[1/" not in again.stdout
    assert f"load {kept_results(tmp_path / 'results')['start'].load}" in run_all(tmp_path, "--list").stdout


def test_one_that_fails_is_named_and_what_was_kept_stays(tmp_path):
    before = kept(tmp_path / "results", run="import", command="python benchmarks/formats.py --pages DATA/formats/warc")
    done = run_all(tmp_path, "--only", "import", "--data", str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "import" in done.stderr.splitlines()[-1]
    assert kept_results(tmp_path / "results")["import"] == before
    assert (tmp_path / "page.md").exists()


def test_nothing_is_begun_that_would_not_end_in_time_and_small_sizes_replace_nothing(tmp_path):
    before = kept(tmp_path / "results")
    late = run_all(tmp_path, "--only", "tests", "--within", "1")
    assert "left for another time" in late.stdout
    small = run_all(tmp_path, "--quick", "--only", "start")
    assert "[1/" not in small.stdout
    assert kept_results(tmp_path / "results") == {"start": before}


def test_numbers_are_said_as_the_docstring_says():
    tried = doctest.testmod(figures_page)
    assert tried.attempted
    assert not tried.failed
