"""The experiment classes on small data sets of both layouts, in which images or sizes tell how often a page changes."""

import csv
from contextvars import copy_context

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click import unstyle

from recrawl.app.progress import show_progress
from recrawl.cli.progress_bars import TerminalProgress
from recrawl.time import DAY
from recrawl_lab.experiments.experiment_classes import PUBLISHED_LEARNERS, run
from recrawl_lab.experiments.experiment_data import recorded_pages
from recrawl_lab.learners.class_learners import LEARNERS
from recrawl_lab.trials.class_trial import FEATURES

BEGIN = 1_600_000_000
GAPS = (2, 8, 40, 160)
EACH = 40


def events():
    """Page, time and kind of event; the pages of each gap change that often, on average, for 400 days."""
    rng = np.random.default_rng(1)
    page, time, kind = [], [], []
    for one in range(EACH * len(GAPS)):
        count = 400 // GAPS[one % len(GAPS)]
        times = BEGIN + np.sort(rng.uniform(DAY, 399 * DAY, count)).astype(int)
        page += [one] * (count + 2)
        time += [BEGIN, *times.tolist(), BEGIN + int(400 * DAY)]
        kind += ["add", *["mod"] * count, "del"]
    return np.array(page), np.array(time), kind


@pytest.fixture
def sites(tmp_path):
    page, time, kind = events()
    rng, pages = np.random.default_rng(2), np.arange(EACH * len(GAPS))
    names = np.where(pages % 8 < 4, "b", "a")
    table = {
        "site": names,
        "page_id": pages,
        "url": [f"http://{n}.test/{p}" for n, p in zip(names, pages, strict=True)],
    }
    pq.write_table(pa.table(table), tmp_path / "pages.parquet")
    order = np.argsort(names[page], kind="stable")
    none = np.zeros(len(page), bool)
    columns = {"site": names[page], "page_id": page, "t": time, "kind": np.array(kind), "bulk": none, "missing": none}
    for name in ("net_int", "net_ext", "size", "text_len", "n_links_int", "n_links_ext", "n_tables"):
        columns[name] = rng.integers(0, 9, len(page))
    columns["n_images"] = page % 4 * 3 + rng.integers(0, 2, len(page))
    pq.write_table(pa.table({name: column[order] for name, column in columns.items()}), tmp_path / "events.parquet")
    edges = {"site": ["a"], "src": [4], "dst": [5], "t_add": [BEGIN], "t_rem": pa.array([None], pa.int64())}
    pq.write_table(pa.table(edges), tmp_path / "edges.parquet")
    return tmp_path


@pytest.fixture
def sources(tmp_path):
    page, time, kind = events()
    number = np.arange(EACH * len(GAPS))
    names = np.where(number % 8 < 4, "b", "a")
    table = {"source_id": number + 7, "repo": names, "url": [f"http://x.test/{one}" for one in number]}
    pq.write_table(pa.table(table), tmp_path / "sources.parquet")
    order = np.argsort(names[page], kind="stable")
    columns = {"source_id": page + 7, "t": time, "kind": np.array(kind), "size": page}
    pq.write_table(pa.table({name: column[order] for name, column in columns.items()}), tmp_path / "events.parquet")
    return tmp_path


@pytest.mark.slow
def test_learners_and_starts_see_what_tells(sites, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # to rich that is a terminal
    terminal = copy_context()
    terminal.run(show_progress, TerminalProgress())
    terminal.run(run, sites, tmp_path / "out", seed=1, repeats=1, days=200)
    with (tmp_path / "out" / "classes-learners.csv").open(encoding="utf-8") as file:
        learned = list(csv.DictReader(file))
    assert {(row["learner"], row["features"]) for row in learned} == {(a, b) for a in LEARNERS for b in FEATURES}
    assert all(0.0 <= float(row["error_low"]) <= float(row["error"]) <= float(row["error_high"]) for row in learned)
    of_logs = {(row["learner"], row["features"]): float(row["error"]) for row in learned if "log" in row["classes"]}
    assert of_logs["tree", "chosen"] < 0.25
    text, waited = capsys.readouterr()
    assert "Starting" in waited
    assert "27/27" in unstyle(waited)  # reading; for both kinds of classes the starts, the learners, and 11 methods
    assert "Chosen: `images`" in text
    assert all(f"{error:.1%}" in text for error, _ in PUBLISHED_LEARNERS.values())
    with (tmp_path / "out" / "classes.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if "log" in row["classes"] and row["days"] == "0"]
    first = {row["method"]: float(row["error"]) for row in rows}
    assert first["tree"] < 0.25 < first["siblings"]
    assert {row["published"] for row in rows if row["method"] == "tree"} == {"0.2564"}


def test_pages_of_collections_have_their_own_looks(sites):
    found = recorded_pages(sites)
    assert [one.name for one in found.collections] == ["a", "b"]
    numbers = [int(url.rpartition("/")[2]) for one in found.collections for url in one.urls]
    table = found.observations(np.arange(len(numbers)), np.full(len(numbers), BEGIN + DAY))
    assert (table.column("images") // 3).tolist() == [number % 4 for number in numbers]
    assert table.column("inlinks")[numbers.index(5)] == 1.0


def test_sources_are_known_by_their_sizes(sources):
    found = recorded_pages(sources)
    numbers = [int(url.rpartition("/")[2]) for one in found.collections for url in one.urls]
    table = found.observations(np.arange(len(numbers)), np.full(len(numbers), BEGIN + DAY))
    assert table.column("content_size").tolist() == numbers
    assert np.isnan(table.column("images")).all()
