"""What recrawl says of archives that another crawler made: real crawls by wget (see tests/data/wget/README.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recrawl.errors import ExitCode

WGET = Path(__file__).parents[1] / "data" / "wget"


# -- indexes without revisit records ----------------------------------------------------------------


def test_an_index_that_leaves_repeats_out_proves_nothing_about_coherence(run, tmp_path):
    index = WGET / "deduplicated" / "all.cdx"
    said = run("assess", index).stdout
    assert "the index of site.example seems to be deduplicated" in said
    assert "6 changed, 0 gone; 18 not seen again. How many were unchanged in between (coherent) is not known." in said
    assert "The last crawl of site.example that was seen again" not in said  # its coherence is not known either
    told = json.loads(run("assess", index, "--json").stdout)
    # /news/3 and 4 are not listed once, the other 14 pages twice.
    assert told["deduplicated"] == [
        {"site": "site.example", "comparisons": 6, "repeats": 0, "absent": 30, "coherenceKnown": False}
    ]
    for table in ("crawls", "sections", "worstPages"):
        assert told[table]
        assert {row["coherent"] for row in told[table]} == {row["expected_coherent"] for row in told[table]} == {None}
    assert told["lastCrawlSeenAgain"] is None
    assert run("report", index, "--output", tmp_path / "report.html").returncode == 0
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "seems to be deduplicated" in report
    assert "captures that found a page unchanged are not listed" in report  # in place of "0% coherent"


def test_a_workspace_with_such_an_index_says_the_same(run, workspace):
    assert run("import", WGET / "deduplicated" / "all.cdx", "-w", workspace).returncode == 0
    told = json.loads(run("assess", "-w", workspace, "--json").stdout)
    assert [one["coherenceKnown"] for one in told["deduplicated"]] == [False]


def test_archive_files_with_their_revisit_records_are_complete(run):
    told = json.loads(run("assess", *sorted((WGET / "deduplicated").glob("*.warc.gz")), "--json").stdout)
    assert told["deduplicated"] == []
    assert sum(row["coherent"] for row in told["sections"]) == 30
    assert sum(row["changed"] for row in told["sections"]) == 6


@pytest.mark.parametrize(("days", "pages", "suspected"), [(5, 1, True), (2, 4, True), (2, 2, False)])
def test_pages_that_differ_at_every_download_may_be_an_index_that_leaves_repeats_out(
    run, tmp_path, days, pages, suspected
):
    index = tmp_path / "a.cdx"
    lines = [
        f"org,site)/{page} 202601{day:02}000000 http://site.org/{page} text/html 200 {chr(65 + day) * 32} - - 9 0 a.gz"
        for page in range(pages)
        for day in range(1, days + 1)
    ]
    index.write_text("\n".join([" CDX N b a m s k r M S V g", *lines, ""]))
    said, told = run("assess", index).stdout, json.loads(run("assess", index, "--json").stdout)
    assert ("Either these pages differ at every download" in said) is suspected
    assert [one["coherenceKnown"] for one in told["deduplicated"]] == [True] * suspected
    assert all(row["coherent"] == 0 for row in told["crawls"])


# -- downloads of a page in quick succession --------------------------------------------------------


def test_assess_and_import_merge_alike_and_tell(run, workspace):
    index = WGET / "quick" / "all.cdx"  # three crawls of 19 addresses within seconds
    said = run("assess", index).stdout
    assert "Merged: 36 captures of 18 pages, since downloads of a page within 1 min count as one visit: " in said
    assert "http://site.example/ (2)" in said
    files = json.loads(run("assess", index, "--json").stdout)
    taken = json.loads(run("import", index, "-w", workspace, "--json").stdout)
    ours = json.loads(run("assess", "-w", workspace, "--json").stdout)
    # robots.txt is among what is imported.
    assert (taken["merged"]["captures"], taken["merged"]["pages"], taken["merged"]["within"]) == (38, 19, 60.0)
    assert taken["sources"][0]["new"] == taken["visits_new"] + taken["merged"]["captures"] == 57
    assert (files["merged"]["captures"], files["merged"]["pages"], files["merged"]["within"]) == (36, 18, 60.0)
    assert (ours["merged"]["captures"], ours["merged"]["pages"], ours["merged"]["within"]) == (38, 19, None)
    assert (files["captures"], ours["captures"]) == (18, 19)
    assert {"url": "http://site.example/docs/1.html", "captures": 2} in files["merged"]["most"]
    again = run("import", index, "-w", workspace, "--merge-within", "0s").stdout
    assert "Merged" not in again
    all_of_them = json.loads(run("assess", index, "--merge-within", "0s", "--json").stdout)
    assert (all_of_them["captures"], all_of_them["merged"]["captures"]) == (54, 0)
    by_file = json.loads(run("assess", index, "--by-file", "--json").stdout)  # a crawl may follow another at once
    assert (by_file["captures"], by_file["crawlsCount"]) == (54, 3)


# -- settings ---------------------------------------------------------------------------------------


def test_files_are_judged_by_the_settings_that_are_given(run):
    def changed(*more):
        told = json.loads(run("assess", *sorted((WGET / "counter").glob("*.warc.gz")), *more, "--json").stdout)
        return {row["url"] for row in told["worstPages"] if row["changed"]}

    news = {f"http://site.example/news/{number}.html" for number in range(1, 5)}
    assert changed("--set", "detect.ignore_selectors=p.count", "--limit", "50") == news
    # A tenth of the words is more than a counter, but on the start page, which has few, and less than a new text.
    assert changed("--set", "detect.min_change=0.1", "--limit", "50") - {"http://site.example/"} == news
    wrong = run("assess", *(WGET / "counter").glob("*.warc.gz"), "--set", "detect.min_chance=0.1")
    assert wrong.returncode == ExitCode.BAD_CONFIG
