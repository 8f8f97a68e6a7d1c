"""The experiment lbla on a small data set in which one kind of pages keeps getting links."""

import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recrawl.errors import ExitCode
from recrawl.time import DAY

BEGIN = 1_600_000_000
WEEKS = 20
WORDS = (["wave", "tide", "ship"], ["loop", "type", "array"])


@pytest.fixture
def folder(tmp_path):
    """Three sites of 16 pages; every other page gets a link each week."""
    rng = np.random.default_rng(1)
    site, page = np.repeat(["a", "b", "c"], 16), np.tile(np.arange(16), 3)
    hot = page % 2 == 0
    pq.write_table(
        pa.table(
            {"site": site, "page_id": page, "url": [f"http://{s}.test/{p}" for s, p in zip(site, page, strict=True)]}
        ),
        tmp_path / "pages.parquet",
    )
    weeks = np.arange(WEEKS)
    size = len(site) * WEEKS
    new = (np.repeat(hot, WEEKS) & (rng.random(size) < 0.8)).astype(int)
    columns = {
        "site": np.repeat(site, WEEKS),
        "page_id": np.repeat(page, WEEKS),
        "t": np.tile(BEGIN + weeks * int(7 * DAY), len(site)),
        "kind": np.tile(["add", *["mod"] * (WEEKS - 1)], len(site)),
        "bulk": np.zeros(size, bool),
        "missing": np.zeros(size, bool),
        "net_int": new,
        "net_ext": np.zeros(size, int),
    }
    for name in ("size", "text_len", "n_links_int", "n_links_ext", "n_images", "n_tables"):
        columns[name] = rng.integers(0, 9, size)
    pq.write_table(pa.table(columns), tmp_path / "events.parquet")
    texts = {"site": site, "page_id": page, "t_ref": np.full(48, BEGIN), "title": ["" for _ in page]}
    texts["text"] = [" ".join(rng.choice(WORDS[int(one)], 5)) for one in hot]
    pq.write_table(pa.table(texts), tmp_path / "texts.parquet")
    edges = {"site": ["a"], "src": [0], "dst": [1], "t_add": [BEGIN], "t_rem": pa.array([None], pa.int64())}
    pq.write_table(pa.table(edges), tmp_path / "edges.parquet")
    return tmp_path


def rows_of(file):
    with file.open(encoding="utf-8") as text:
        return list(csv.DictReader(text))


def test_the_experiment(run, folder):
    output = folder / "out"
    options = ["--data", folder, "--output", output, "--at", "2021-01-10", "--period", "7d", "--trees", 10]
    result = run("experiment", "lbla", *options)
    assert result.returncode == 0, result.stderr
    rows = rows_of(output / "lbla.csv")
    assert {row["split"] for row in rows} == {"unseen pages of the same sites", "unseen sites"}
    found = {(row["split"], row["links"], row["method"], row["measure"]): row for row in rows}
    for split in ("unseen pages of the same sites", "unseen sites"):
        assert float(found[split, "internal", "LCR-ET-LBLA", "Spearman LCR"]["here"]) > 0.6
        assert float(found[split, "internal", "all, history 8", "balanced accuracy"]["here"]) > 0.7
        laws = {row["method"] for row in rows if row["table"] == "laws"}
        assert laws == {
            "NGBoost, Poisson",
            "NGBoost, negative binomial",
            "NGBoost, zero-inflated Poisson",
            "shrunken counts, negative binomial",
        }
    assert found["unseen sites", "internal", "SP+sem", "R²"]["published"] == "0.65"
    assert any(row["table"] == "importance" for row in rows)
    text = (output / "lbla.md").read_text(encoding="utf-8")
    assert "Of the truly related pages 100.0% were found." in text
    assert "published 0.65" in text
    assert "Spearman NNL" in text
    assert "Written:" in result.stdout
    for name in ("lbla.png", "lbla-history.png"):
        assert (output / name).read_bytes().startswith(b"\x89PNG")


def test_some_figures_alone(run, folder):
    output = folder / "out"
    options = ["--data", folder, "--output", output, "--at", "2021-01-10", "--period", "7d", "--trees", 2]
    result = run("experiment", "lbla", *options, "--only", "10, 9")
    assert result.returncode == 0, result.stderr
    assert {row["table"] for row in rows_of(output / "lbla.csv")} == {"data", "change rate"}
    text = (output / "lbla.md").read_text(encoding="utf-8")
    assert "means of 1 run, at 1 time with 1 draw of the evaluated pages" in text
    assert "published 0.65" in text
    assert "Spearman" not in text
    assert {file.name for file in output.iterdir()} == {"lbla.md", "lbla.csv", "lbla.csv-metadata.json"}

    refused = run("experiment", "lbla", *options, "--only", "9,11")
    assert refused.returncode == ExitCode.BAD_CONFIG
    assert "--only 11: there is no such figure. There are 9, 10, 12, 13, 14, 15." in " ".join(refused.stderr.split())


def test_lbla_alone_at_several_times_has_intervals_and_is_kept(run, folder):
    output, kept = folder / "out", folder / "kept"
    options = ["--data", folder, "--output", output, "--period", "7d", "--alone", "--repeats", 2, "--keep", kept]
    options += ["--at", "2021-01-03", "--at", "2021-01-10"]
    result = run("experiment", "lbla", *options)
    assert result.returncode == 0, result.stderr
    rows = rows_of(output / "lbla.csv")
    assert {(row["at"], row["draw"]) for row in rows} == {
        (at, draw) for at in ("2021-01-03", "2021-01-10") for draw in "01"
    }
    assert {row["method"] for row in rows} == {"all", "NNL-SC-LBLA", "NNL-Av", "NNL-Pr", "CCR"}
    text = (output / "lbla.md").read_text(encoding="utf-8")
    assert "of 4 |" in text
    assert len(list(kept.iterdir())) == 2
    for name in ("pages", "events", "texts", "edges"):
        (folder / f"{name}.parquet").unlink()
    assert run("experiment", "lbla", *options).returncode == 0
    assert (output / "lbla.md").read_text(encoding="utf-8") == text


def test_a_time_without_pages_is_told(run, folder):
    result = run("experiment", "lbla", "--data", folder, "--at", "2031-01-01")
    assert result.returncode == ExitCode.ERROR
    assert "Give another --at" in result.stderr


def test_what_is_no_date_is_told(run, folder):
    result = run("experiment", "lbla", "--data", folder, "--at", "soon")
    assert result.returncode == ExitCode.BAD_CONFIG
    assert "Give it as 2024-01-02" in result.stderr
