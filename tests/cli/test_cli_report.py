"""``recrawl report``: one file about a workspace, a capture, or files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from recrawl.app.workspace.workspace import make_workspace, open_workspace
from recrawl.cli.collect.report_command import DASHBOARD, report_of_workspace
from recrawl.errors import ExitCode
from recrawl.model import Outcome, Verdict, Visits
from recrawl.store.store_values import ClaimColumns
from recrawl.time import DAY, to_timestamp14
from recrawl.web.report.report_page import report_json

START = 1_700_000_000.0


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """Sixty pages on two hosts, looked at daily; every third changes often. One visit failed, one change was missed."""
    folder = tmp_path_factory.mktemp("report") / "archive"
    place = make_workspace(folder, {"fetch.contact": "https://example.org/"})
    rng = np.random.default_rng(2)
    with place.open_store() as store:
        urls = [f"http://{host}.org/{path}" for host in "ab" for path in ["", *(f"s{n % 3}/p{n}" for n in range(29))]]
        pages = store.discover(urls, START)
        page, time = np.repeat(pages, 20), START + np.tile(np.arange(20) * DAY, 60) + np.repeat(np.arange(60), 20)
        changes = rng.random(1_200) < np.where(np.repeat(np.arange(60) % 3 == 0, 20), 0.5, 0.03)
        verdict = np.where(changes, Verdict.CHANGED, Verdict.UNCHANGED)
        verdict[::20] = Verdict.UNKNOWN
        store.record(Visits.of(page, time, verdict=verdict))
        store.record(Visits.of(pages[:1], [START + 0.5 * DAY], outcome=Outcome.SERVER_ERROR))
        said = START + np.array([0.3, 0.6, 0.6]) * DAY
        dated = np.append(said[:2] - 60.0, START - DAY)  # the last of another page, from before anybody looked at it
        nothing = np.zeros(3, np.int64)
        store.add_claims(ClaimColumns(pages[[0, 0, 1]], said, ["sitemap"] * 3, dated, nothing, np.full(3, -1.0)))
        counted = int(changes.reshape(60, 20)[:, 1:].sum())
    return folder, counted


@pytest.fixture(scope="module")
def told(workspace):
    """Sections of the report on it, by anchor: what ``--json`` prints, made once for all."""
    place = open_workspace(workspace[0], {})
    with place.open_store() as store:
        made = report_json(report_of_workspace(place, store))
    return {section["anchor"]: section for section in made["sections"]}


def sections_of(done):
    assert done.returncode == 0, done.stderr
    return {section["anchor"]: section for section in json.loads(done.stdout)["sections"]}


def tiles_of(section):
    return {tile["title"]: tile["value"] for tile in section["tiles"]}


def test_a_workspace_in_one_file(run, workspace):
    folder, _ = workspace
    done = run("report", "-w", folder)
    assert done.returncode == 0, done.stderr
    text = (folder / "reports" / "report.html").read_text("utf-8")
    for title in ("Contents", "Quality", "How pages change", "Site graph"):
        assert f"<h2>{title}</h2>" in text
    assert "report.html" in done.stdout


def test_its_numbers_are_those_of_the_store(run, workspace):
    folder, changes = workspace
    sections = sections_of(run("report", "-w", folder, "--json"))
    assert sections["graph"]["figures"][0]["data"]["versions"] == DASHBOARD
    tiles = tiles_of(sections["holdings"])
    assert tiles["pages"] == "60"
    assert tiles["observations"] == "1,200"
    assert tiles["observed changes"] == f"{changes:,}"
    assert tiles["failed visits"] == "1"
    assert tiles["certainly missed"] == "1"
    assert "Of 2 changes that sites dated themselves during" in sections["holdings"]["words"][-1]
    bars = {figure["name"]: figure for figure in sections["holdings"]["figures"]}["visits-over-time"]["data"]["series"]
    assert sum(sum(one["y"]) for one in bars) == 1_201
    rates = next(table for table in sections["behaviour"]["tables"] if table["name"] == "rates-pages")
    assert sum(rates["columns"][-1]["values"]) == changes
    pages = next(table for table in sections["quality"]["tables"] if table["name"] == "pages")
    assert len(pages["columns"][0]["values"]) == 60


def test_it_says_the_same_as_assess(run, workspace, told):
    folder, _ = workspace
    said = json.loads(run("assess", "-w", folder, "--json").stdout)
    assert told["quality"]["words"]
    for line in told["quality"]["words"]:
        assert line in said["words"]


def test_predictions_are_held_against_what_came(told):
    [figure] = told["calibration"]["figures"]
    found = figure["data"]["series"][0]
    assert found["x"] == sorted(found["x"])
    assert np.abs(np.array(found["x"]) - np.array(found["y"])).mean() < 0.15


def test_an_empty_workspace_is_told_what_to_do(run, tmp_path):
    make_workspace(tmp_path / "empty", {"fetch.contact": "https://example.org/"})
    done = run("report", "-w", "empty", "-o", "page.html")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "Nothing to assess yet" in text
    assert "recrawl import" in text


@pytest.mark.parametrize("observations", [1, 2])
def test_a_single_page_is_spoken_of_in_sentences(run, tmp_path, observations):
    place = make_workspace(tmp_path / "tiny", {"fetch.contact": "https://example.org/"})
    with place.open_store() as store:
        page = store.discover(["http://a.org/"], START)
        store.record(
            Visits.of(
                np.repeat(page, observations), START + np.arange(observations) * DAY, verdict=[0, 1][:observations]
            )
        )
    sections = sections_of(run("report", "-w", "tiny", "--json", "--versions", "none"))
    assert "1 page on 1 host" in sections["holdings"]["words"][0]
    assert "too few" in sections["calibration"]["words"][0]
    often = sections["behaviour"]["words"]
    assert often[0].startswith(
        "No page was observed twice" if observations == 1 else "None of 1 page with two observations"
    )
    assert often[-1].startswith(
        "No site was observed twice on different days" if observations == 1 else "None of 1 site with"
    )
    assert not sections["poisson"]["figures"]
    assert not sections["rhythm"]["figures"]
    assert sections["graph"]["figures"][0]["data"]["versions"] is None
    assert run("report", "-w", "tiny").returncode == 0


def test_files_that_somebody_made(run, tmp_path):
    lines = [" CDX N b a m s k r M S V g"]
    for week in range(4):
        for number in range(12):
            digest = (
                "AYLWTCTP5Q6IQJS3ZLKZBRGIRXTTLGRG"
                if number or not week
                else f"{'BCD'[week - 1]}YLWTCTP5Q6IQJS3ZLKZBRGIRXTTLGRG"
            )
            time = to_timestamp14(START + week * 7 * DAY + number)
            lines.append(f"org,site)/{number} {time} http://site.org/{number} text/html 200 {digest} - - 9 0 a.warc.gz")
    quick = to_timestamp14(START + 1.0)
    lines.insert(
        1, f"org,site)/0 {quick} http://site.org/0 text/html 200 EYLWTCTP5Q6IQJS3ZLKZBRGIRXTTLGRG - - 9 0 a.warc.gz"
    )
    (tmp_path / "index.cdx").write_text("\n".join([*lines, ""]))
    done = run("report", "index.cdx")
    assert done.returncode == 0, done.stderr
    assert "Report on index.cdx" in (tmp_path / "report.html").read_text("utf-8")
    sections = sections_of(run("report", "index.cdx", "--json"))
    assert tiles_of(sections["holdings"])["pages"] == "12"
    assert tiles_of(sections["holdings"])["observed changes"] == "3"
    merged = "Merged: 1 capture of 1 page, since downloads of a page within 1 min count as one visit"
    assert any(merged in words for words in sections["quality"]["words"])
    sections = sections_of(run("report", "index.cdx", "--merge-within", "0s", "--json"))
    assert tiles_of(sections["holdings"])["observed changes"] == "4"
    rates = next(table for table in sections["behaviour"]["tables"] if table["name"] == "rates-pages")
    # The page was downloaded twice in a second once. Who wants every download to count gets what a workspace would say.
    assert run("init", "ours").returncode == 0
    assert run("import", "index.cdx", "-w", "ours", "--merge-within", "0s").returncode == 0
    ours = sections_of(run("report", "-w", "ours", "--json"))["behaviour"]["tables"]
    inside = next(table for table in ours if table["name"] == "rates-pages")
    assert inside["columns"][1]["values"] == rates["columns"][1]["values"]
    files = {table["name"]: table for table in sections["holdings"]["tables"]}["formats"]
    assert [column["values"] for column in files["columns"]] == [["CDX"], [1]]


def test_a_capture_that_is_not_there(run, workspace):
    folder, _ = workspace
    done = run("report", "-w", folder, "--capture", "7")
    assert done.returncode == ExitCode.ERROR
    assert f"recrawl capture list -w {folder}" in done.stderr
    assert run("report", "x.cdx", "--capture", "7").returncode == ExitCode.BAD_CONFIG


@pytest.mark.parametrize("link", ["javascript:alert('{url}')", "https://a.org/"])
def test_a_link_to_versions_that_is_none(run, workspace, link):
    done = run("report", "-w", workspace[0], "--versions", link)
    assert done.returncode == ExitCode.BAD_CONFIG
    assert "{url}" in done.stderr


def test_what_is_printed_goes_to_no_file(run, workspace):
    done = run("report", "-w", workspace[0], "--json", "-o", "told.json")
    assert done.returncode == ExitCode.BAD_CONFIG
    assert "> FILE" in done.stderr


def test_pages_of_files_have_no_number(run, tmp_path):
    (tmp_path / "index.cdx").write_text(" CDX N b a m s k r M S V g\n")
    done = run("report", "index.cdx", "--versions", "https://a.org/{id}")
    assert done.returncode == ExitCode.BAD_CONFIG
    assert "Write {url}" in done.stderr
