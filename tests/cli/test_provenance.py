"""Tables that commands write say where they come from; pyarrow and pandas read it back."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import recrawl
from recrawl.app.provenance import KEY
from recrawl.model import Verdict, Visits
from recrawl.store.open import open_store
from recrawl.time import DAY

START = 1_700_000_000.0
AT = ("--at", "2024-01-13T00:00:00Z")


@pytest.fixture(scope="module")
def known(new_workspace, tmp_path_factory):
    """Forty pages of four hosts, visited daily for two months."""
    folder = shutil.copytree(new_workspace, tmp_path_factory.mktemp("origin") / "ws")
    rng = np.random.default_rng(1)
    with open_store(folder / "recrawl.db") as store:
        page = store.discover([f"http://h{n % 4}.org/{n}" for n in range(40)], START)
        at = START + np.arange(0.0, 60.0) * DAY
        verdict = np.where(rng.random((40, 60)) < 0.3, Verdict.CHANGED, Verdict.UNCHANGED)
        verdict[:, 0] = Verdict.UNKNOWN
        store.record(Visits.of(np.repeat(page, 60), np.tile(at, 40), verdict=verdict.ravel()))
    return folder


def beside(file):
    """The provenance of a CSV file, from the description beside it."""
    about = json.loads(file.with_name(f"{file.name}-metadata.json").read_text(encoding="utf-8"))
    assert about["url"] == file.name
    assert [column["name"] for column in about["tableSchema"]["columns"]] == list(pd.read_csv(file).columns)
    (notes,) = about["notes"]
    return notes


def inside(file):
    """The provenance of a Parquet file, from the metadata of its schema."""
    return json.loads(pq.read_schema(file).metadata[KEY.encode()])


@pytest.mark.parametrize(
    ("command", "seed"),
    [(("rates", "--by", "host"), None), (("rates", "diagnose", "--host", "h1.org"), 4), (("rates", "compare"), 4)],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_rates(run, known, tmp_path, command, seed):
    for name, read in (("t.csv", beside), ("t.parquet", inside)):
        done = run(*command, "-w", known, *AT, "--set", "schedule.budget=7", "-o", name)
        assert done.returncode == 0, done.stderr
        about = read(tmp_path / name)
        assert about["question"] == " ".join(word for word in command[:2] if not word.startswith("-"))
        assert about["version"] == recrawl.__version__
        assert about["sources"] == [str(known)]
        assert about["as_of"] == "2024-01-13T00:00:00Z"
        assert about["seed"] == seed
        assert (
            about["settings"]["schedule.budget"] == pytest.approx(7 / DAY) or about["settings"]["schedule.budget"] == 7
        )
        assert about["arguments"]["at"] == AT[1]
        assert not {"output", "workspace", "set"} & about["arguments"].keys()
        if command[2:]:
            assert about["arguments"][command[-2].lstrip("-")] == command[-1]
    assert len(pd.read_parquet(tmp_path / "t.parquet")) == len(pd.read_csv(tmp_path / "t.csv")) > 0


@pytest.mark.parametrize(
    ("command", "seed"),
    [
        (("plan",), None),
        (("plan", "slots", "2"), 1),
        (("plan", "crawl-time", "all"), 1),
        (("plan", "capacity"), None),
        (("rates", "diagnose"), 4),
        (("rates", "compare"), 4),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_json(run, known, command, seed):
    about = json.loads(run(*command, "-w", known, *AT, "--json").stdout)["provenance"]
    assert about["question"] == " ".join(command[:2])
    assert (about["seed"], about["as_of"], about["version"]) == (seed, "2024-01-13T00:00:00Z", recrawl.__version__)


def test_exported_tables(run, known, tmp_path):
    for what, name in (("visits", "v.parquet"), ("histories", "h.parquet"), ("dataset", "set")):
        done = run("export", name, "--what", what, "-w", known)
        assert done.returncode == 0, done.stderr
        for file in (tmp_path / name).glob("*.parquet") if what == "dataset" else [tmp_path / name]:
            about = inside(file)
            assert (about["question"], about["arguments"]) == ("export", {"what": what})
            assert about["as_of"] > "2026"
            assert len(pd.read_parquet(file)) >= 0
    # A file with provenance is still a file of visits.
    assert run("init", "other").returncode == 0
    assert run("import", "v.parquet", "-w", "other").returncode == 0


def test_assessments(run, known, tmp_path):
    done = run("assess", "-w", known, *AT, "--output", "quality")
    assert done.returncode == 0, done.stderr
    about = beside(tmp_path / "quality" / "pages.csv")
    assert (about["question"], about["as_of"]) == ("assess", "2024-01-13T00:00:00Z")
    assert json.loads((tmp_path / "quality" / "quality.json").read_text(encoding="utf-8"))["provenance"] == about


def test_features(run, known, tmp_path):
    for name, read in (("f.csv", beside), ("f.parquet", inside)):
        done = run("predict", "features", "-w", known, *AT, "--group", "SP", "--seed", 9, "-o", name)
        assert done.returncode == 0, done.stderr
        about = read(tmp_path / name)
        assert (about["question"], about["seed"]) == ("predict features", 9)
        assert about["arguments"]["group"] == ["SP"]


def test_comparisons_of_policies(run, known, tmp_path):
    options = ("--policy", "uniform", "--repeats", 1, "--seed", 3, "--jobs", 1, "--json")
    done = run("compare", "-w", known, *options, "-o", "out")
    assert done.returncode == 0, done.stderr
    about = beside(tmp_path / "out" / "compare.csv")
    assert about == json.loads(done.stdout)["provenance"]
    assert (about["question"], about["seed"]) == ("compare", 3)
    assert about["as_of"].startswith("2024-01-12")  # the end of the history that is replayed
    assert about["arguments"] == {"policy": ["uniform"], "repeats": 1}
