"""What recrawl says of archives that another crawler made: real crawls by wget (see tests/data/wget/README.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recrawl.errors import ExitCode
from recrawl.store.open import open_store

WGET = Path(__file__).parents[1] / "data" / "wget"


# -- indexes without revisit records ----------------------------------------------------------------


def test_an_index_that_leaves_repeats_out_proves_nothing_about_coherence(run, tmp_path):
    index = WGET / "deduplicated" / "all.cdx"
    said = run("assess", index).stdout
    assert "the index of site.example seems to be deduplicated" in said
    assert "6 changed, 0 gone; 15 not seen again. How many were unchanged in between (coherent) is not known." in said
    assert "The last crawl of site.example that was seen again" not in said  # its coherence is not known either
    told = json.loads(run("assess", index, "--json").stdout)
    # /news/3 and 4 are not listed once, the eleven pages that never change twice.
    assert told["deduplicated"] == [
        {"site": "site.example", "comparisons": 6, "repeats": 0, "absent": 24, "coherenceKnown": False}
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
    assert sum(row["coherent"] for row in told["sections"]) == 24
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
    assert "Merged: 30 captures of 15 pages, since downloads of a page within 1 min count as one visit: " in said
    assert "http://site.example/ (2)" in said
    files = json.loads(run("assess", index, "--json").stdout)
    taken = json.loads(run("import", index, "-w", workspace, "--json").stdout)
    ours = json.loads(run("assess", "-w", workspace, "--json").stdout)
    # Four resources are imported, and are no pages.
    assert (taken["merged"]["captures"], taken["merged"]["pages"], taken["merged"]["within"]) == (38, 19, 60.0)
    assert taken["sources"][0]["new"] == taken["visits_new"] + taken["merged"]["captures"] == 57
    assert (files["merged"]["captures"], files["merged"]["pages"], files["merged"]["within"]) == (30, 15, 60.0)
    assert ours["merged"] == {**files["merged"], "within": None}
    assert files["captures"] == ours["captures"] == 15
    assert {"url": "http://site.example/docs/1.html", "captures": 2} in files["merged"]["most"]
    again = run("import", index, "-w", workspace, "--merge-within", "0s").stdout
    assert "Merged" not in again
    all_of_them = json.loads(run("assess", index, "--merge-within", "0s", "--json").stdout)
    assert (all_of_them["captures"], all_of_them["merged"]["captures"]) == (45, 0)
    by_file = json.loads(run("assess", index, "--by-file", "--json").stdout)  # a crawl may follow another at once
    assert (by_file["captures"], by_file["crawlsCount"]) == (45, 3)


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


# -- resources --------------------------------------------------------------------------------------

RESOURCES = {f"http://site.example/{name}" for name in ("robots.txt", "style.css", "app.js", "logo.png")}


def pages_of(run, *arguments):
    """What assess says of each page, by URL."""
    told = json.loads(run("assess", *arguments, "--limit", "50", "--json").stdout)
    assert len(told["worstPages"]) == told["pages"]
    return {row["url"]: row for row in told["worstPages"]}, told


@pytest.mark.parametrize("source", ["counter/*.warc.gz", "quick/*.cdx"])
def test_what_pages_embed_is_kept_but_nothing_to_come_back_to(run, workspace, source):
    files = sorted(WGET.glob(source))
    taken = json.loads(run("import", *files, "-w", workspace, "--json").stdout)
    assert taken["resources"] == 4
    listed = json.loads(run("list", "pages", "-w", workspace, "--limit", "50", "--json").stdout)
    assert {row["url"] for row in listed if row["importance"] == 0} == RESOURCES
    assert {row["url"] for row in listed if row["next_due"] is None} == RESOURCES
    assert all(row["looks"] for row in listed)  # they have captures, which can be replayed
    with open_store(workspace / "recrawl.db") as store:
        assert set(store.urls(store.resources())) == RESOURCES
        assert store.capture_counts(store.resources()).min() == 3
    inside, told = pages_of(run, "-w", workspace)
    assert (set(inside) & RESOURCES, told["leftOut"]) == (set(), 4)
    outside, told = pages_of(run, *files)
    assert (set(outside), told["leftOut"]) == (set(inside), 4)
    rates = json.loads(run("rates", "-w", workspace, "--limit", "50", "--json").stdout)
    assert {row["url"] for row in rates} == set(inside)
    planned = json.loads(run("plan", "-w", workspace, "--limit", "50", "--json").stdout)
    assert not RESOURCES & {row["url"] for row in planned["next"]}


def test_resources_are_pages_if_somebody_wants_them(run, workspace):
    files = sorted((WGET / "counter").glob("*.warc.gz"))
    assert run("import", *files, "-w", workspace).returncode == 0
    one = "http://site.example/logo.png"
    assert run("add", one, "-w", workspace).returncode == 0
    assert set(pages_of(run, "-w", workspace)[0]) & RESOURCES == {one}
    # Importing it anew takes nothing away from what was asked for.
    assert run("import", *files, "-w", workspace, "--again").returncode == 0
    assert set(pages_of(run, "-w", workspace)[0]) & RESOURCES == {one}
    wanted = ("--set", "archive.resources=pages")
    assert set(pages_of(run, *files, *wanted)[0]) > RESOURCES
    assert run("import", *files, "-w", workspace, *wanted).returncode == 0
    assert set(pages_of(run, "-w", workspace)[0]) > RESOURCES
    listed = json.loads(run("list", "pages", "-w", workspace, "--limit", "50", "--json").stdout)
    assert {row["importance"] for row in listed} == {1}


def test_the_order_of_sources_does_not_make_a_resource(run, workspace, tmp_path):
    """What no source called a picture at first becomes one, and what one source called a page is a page."""

    def index(name, *captures):
        lines = [
            f"org,site)/{path} 202601{day:02}000000 http://site.org/{path} {mime} 200 {'A' * 32} - - 9 0 a.gz"
            for day, path, mime in captures
        ]
        file = tmp_path / name
        file.write_text("\n".join([" CDX N b a m s k r M S V g", *lines, ""]))
        return file

    first = index("1.cdx", (1, "a", "-"), (1, "b", "image/png"), (1, "c", "text/html"), (1, "d.png", "-"))
    second = index("2.cdx", (2, "a", "image/png"), (2, "b", "text/html"), (2, "c", "image/png"), (2, "e", "-"))
    for number, files in enumerate(((first, second), (second, first))):
        place = tmp_path / f"ws{number}"
        assert run("init", place).returncode == 0
        assert run("import", *files, "-w", place).returncode == 0
        listed = json.loads(run("list", "pages", "-w", place, "--json").stdout)
        found = {row["url"].rpartition("/")[2]: row["importance"] for row in listed}
        assert found == {"a": 0, "b": 1, "c": 1, "d.png": 0, "e": 1}


# -- noise that an archive shows itself -------------------------------------------------------------

EVER_CHANGING = {f"http://site.example/news/{number}.html" for number in (1, 2)}
CHANGED_ONCE = {f"http://site.example/news/{number}.html" for number in (3, 4)}


def verdicts(pages):
    return {url: (row["coherent"], row["changed"]) for url, row in pages.items()}


def test_what_differs_in_every_capture_of_every_page_is_noise_in_files_and_workspace_alike(run, workspace):
    files = sorted((WGET / "counter").glob("*.warc.gz"))
    outside, told = pages_of(run, *files)
    # A counter is in the footer of all 15 pages. The truth is what happened beside it.
    truth = dict.fromkeys(outside, (2, 0)) | dict.fromkeys(EVER_CHANGING, (0, 2)) | dict.fromkeys(CHANGED_ONCE, (1, 1))
    assert verdicts(outside) == truth
    [part] = told["noise"]["site.example"]
    assert (part["pages"], part["pages_read"], part["differed"], part["compared"]) == (15, 15, 30, 30)
    assert part["text"].startswith("This site was visited ")
    said = " ".join(run("assess", *files).stdout.split())
    assert "Not compared on site.example" in said
    assert "on 15 of 15 pages read, in 30 of 30 comparisons" in said
    imported = run("import", *files, "-w", workspace)
    assert "Not compared on site.example" in imported.stdout
    inside, known = pages_of(run, "-w", workspace)
    assert verdicts(inside) == truth
    assert known["noise"] == told["noise"]
    # And without it, alike: everything changed.
    off = ("--set", "detect.learn_from_archives=no")
    assert run("import", *files, "-w", workspace, "--again", *off).returncode == 0
    inside, known = pages_of(run, "-w", workspace)
    outside, told = pages_of(run, *files, *off)
    assert verdicts(inside) == verdicts(outside) == dict.fromkeys(truth, (0, 2))
    assert known["noise"] == told["noise"] == {}


def test_crawls_imported_one_after_the_other_are_judged_as_if_at_once(run, workspace):
    files = sorted((WGET / "counter").glob("*.warc.gz"))
    for file in files:
        assert run("import", file, "-w", workspace).returncode == 0
    assert verdicts(pages_of(run, "-w", workspace)[0]) == verdicts(pages_of(run, *files)[0])
