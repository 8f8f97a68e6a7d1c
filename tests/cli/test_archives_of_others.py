"""What recrawl says of archives that another crawler made: three real crawls by wget (see tests/data/wget/README.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
        f"org,site)/{page} 202601{day:02}000000 http://site.org/{page} text/html 200 {chr(65 + day) * 32} - - 9 0 a.warc"
        for page in range(pages)
        for day in range(1, days + 1)
    ]
    index.write_text("\n".join([" CDX N b a m s k r M S V g", *lines, ""]))
    said, told = run("assess", index).stdout, json.loads(run("assess", index, "--json").stdout)
    assert ("Either these pages differ at every download" in said) is suspected
    assert [one["coherenceKnown"] for one in told["deduplicated"]] == [True] * suspected
    assert all(row["coherent"] == 0 for row in told["crawls"])
