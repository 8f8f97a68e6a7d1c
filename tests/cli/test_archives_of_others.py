"""What recrawl says of archives that another crawler made: real crawls by wget (see tests/data/wget/README.md)."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from recrawl.crawl.visit.change_classifier import ChangeClassifier, ClassifierRules
from recrawl.crawl.visit.recorder import recall
from recrawl.crawl.visit.visit_machine import NeedsConfirmation, VisitDone, VisitTarget
from recrawl.errors import ExitCode
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.warc.warc_reader import index_warc, read_capture
from recrawl.model import Verdict
from recrawl.store.open import open_store
from recrawl.time import to_http_date, to_iso

WGET = Path(__file__).parents[1] / "data" / "wget"


# -- indexes without revisit records ----------------------------------------------------------------


def test_an_index_that_leaves_repeats_out_proves_nothing_about_coherence(run, tmp_path):
    index = WGET / "deduplicated" / "all.cdx"
    said = run("assess", index).stdout
    assert "the index of site.example seems to be deduplicated" in said
    assert "6 changed, 0 gone; 15 not observed again. The number of unchanged (coherent) captures is not known." in said
    assert "The last crawl of site.example that was seen again" not in said  # its coherence is not known either
    told = json.loads(run("assess", index, "--json").stdout)
    # /news/3 and 4 are not listed once, the eleven pages that never change twice.
    assert told["deduplicated"] == [
        {"site": "site.example", "comparisons": 6, "repeats": 0, "absent": 24, "coherenceKnown": False}
    ]
    assert "of the 4 pages whose rates are known: " in said
    for table in ("crawls", "sections", "worstPages"):
        assert told[table]
        assert {row["coherent"] for row in told[table]} == {row["expected_coherent"] for row in told[table]} == {None}
    assert told["lastCrawlSeenAgain"] is None
    # The last captures of news/1 and 2 are of that time; what became of the others nobody knows.
    assert told["shown"]["expectedUnchanged"] is None
    expected = {row["url"].partition("/news/")[2]: row["expected_changes"] for row in told["worstPages"]}
    assert (expected["1.html"], expected["2.html"], expected["3.html"]) == (0.0, 0.0, None)
    assert run("report", index, "--output", tmp_path / "report.html").returncode == 0
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "seems to be deduplicated" in report
    assert "unchanged captures are not listed" in report  # in place of "0% coherent"


@pytest.mark.parametrize("source", ["counter/*.warc.gz", "quick/all.cdx"])
def test_where_no_page_was_seen_again_nothing_is_counted(run, source):
    told = json.loads(run("assess", *sorted(WGET.glob(source)), "--limit", "50", "--json").stdout)
    rows = [row for table in ("crawls", "sections", "worstPages") for row in told[table]]
    unseen = [row for row in rows if row["captures"] == row["unseen"]]
    assert unseen
    names = ("coherent", "changed", "links_changed", "missing")
    assert {row[name] for row in unseen for name in names} == {None}
    assert all(row[name] is not None for row in rows if row not in unseen for name in names)


def test_a_workspace_with_such_an_index_says_the_same(run, workspace):
    warning = "the index of site.example seems to be deduplicated"
    assert warning in run("import", WGET / "deduplicated" / "all.cdx", "-w", workspace).stdout
    assert warning in run("rates", "-w", workspace).stdout
    rates = run("rates", "-w", workspace, "--json")
    assert warning in rates.stderr
    assert {row["changes_per_day"] is None for row in json.loads(rates.stdout)} == {True, False}
    told = json.loads(run("assess", "-w", workspace, "--json").stdout)
    assert [one["coherenceKnown"] for one in told["deduplicated"]] == [False]


def test_an_index_does_not_prove_what_it_lists(run):
    said = run("assess", WGET / "quick" / "all.cdx").stdout
    assert "0 proved for that time." in said
    assert "For 15 pages more, the index lists the shown version at that time, or before and after it." in said


def test_archive_files_with_their_revisit_records_are_complete(run, workspace):
    words = run("import", *sorted((WGET / "deduplicated").glob("*.warc.gz")), "-w", workspace).stdout
    assert "Warning" not in words + run("rates", "-w", workspace).stdout
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
    assert {row["coherent"] for row in told["crawls"]} == {0, None}  # of the last crawl nothing was seen again


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


def quick_archive(path):
    """Four captures of three pages, ten seconds apart; each has other words."""
    start, html = 1_700_000_000.0, {"Content-Type": "text/html"}
    captures = [
        (to_iso(start + 10.0 * turn), f"http://a.example/{number}", f"<p>Edition {'abcd'[turn] * 30}".encode(), html)
        for turn, number in product(range(4), range(3))
    ]
    write_warc(path, captures)
    return path


@pytest.mark.parametrize("expected", [("0s", 12, 9), ("15s", 6, 3), ("60s", 3, 0)])
def test_captures_that_are_classified_again_stay_merged_as_imported(run, workspace, tmp_path, expected):
    within, captures, changed = expected
    archive, other = quick_archive(tmp_path / "a.warc.gz"), ("--set", "detect.min_change=0.1")
    files = json.loads(run("assess", archive, "--merge-within", within, *other, "--json").stdout)
    assert run("import", archive, "-w", workspace, "--merge-within", within).returncode == 0
    for options in ((), other):
        told = json.loads(run("assess", "-w", workspace, *options, "--json").stdout)
        assert told["captures"] == files["captures"] == captures
        assert told["merged"]["captures"] == files["merged"]["captures"] == 12 - captures
        assert [sum(row["changed"] or 0 for row in one["sections"]) for one in (told, files)] == [changed, changed]


def test_resetting_noise_merges_nothing(run, workspace, tmp_path):
    """Captures ten seconds apart are visits, since they were imported so, also when they are classified again."""
    start, html, archive = 1_700_000_000.0, {"Content-Type": "text/html"}, tmp_path / "a.warc.gz"
    page = "<p>All about the subject number {}, which never changes.</p><p>This site was visited {} times.</p>"
    times = [10.0 * turn for turn in range(4)]
    write_warc(
        archive,
        [
            (
                to_iso(start + t),
                f"http://a.example/{number}",
                page.format(number, 1000 + t + number).encode(),
                html,
            )
            for t, number in product(times, range(9))
        ],
    )
    zero = ("-w", workspace, "--merge-within", "0s")
    run("import", archive, *zero, "--set", "detect.learn_from_archives=no")
    with open_store(workspace / "recrawl.db") as store:
        expected = store.visits().verdict.tolist()
    run("import", archive, *zero, "--reimport")
    with open_store(workspace / "recrawl.db") as store:
        assert store.visits().verdict.tolist() != expected
    assert "classified again" in run("noise", "reset", "a.example", "-w", workspace).stdout
    with open_store(workspace / "recrawl.db") as store:
        assert store.visits().verdict.tolist() == expected


@pytest.mark.parametrize("command", ["assess", "report"])
def test_only_files_are_merged_when_they_are_assessed(run, workspace, command):
    refused = run(command, "-w", workspace, "--merge-within", "0s")
    assert refused.returncode == ExitCode.BAD_CONFIG
    assert "recrawl import FILES --merge-within DURATION" in refused.stderr


def test_files_and_workspace_give_the_same_rates_and_blur(run, workspace, tmp_path):
    """In both, when servers say that pages changed between captures is heard."""
    start, archive, captures = 1_700_000_000.0, tmp_path / "a.warc.gz", []
    for day, number in product(range(4), range(12)):
        time = start + 86_400.0 * day + number
        edition = int((time - start) / 52_000.0) if number < 6 else 0
        head = {"Content-Type": "text/html", "Last-Modified": to_http_date(start + 52_000.0 * edition)}
        captures.append((to_iso(time), f"http://a.example/{number}", f"<p>Edition {edition}".encode(), head))
    write_warc(archive, captures)
    assert run("import", archive, "-w", workspace).returncode == 0
    outside, files = pages_of(run, archive)
    inside, ours = pages_of(run, "-w", workspace)
    assert inside == outside
    files["words"] = [line for line in files["words"] if "holds captures" not in line]
    files["merged"]["within"] = None  # of a workspace, each import had its own
    for provenance in (files["provenance"], ours["provenance"]):  # what was asked, of what, and when, is not the same
        for name in ("sources", "as_of", "arguments"):
            del provenance[name]
    for name in set(files) - {"files"}:
        assert ours.get(name) == files[name], name
    assert any(row["changes_per_day"] for row in outside.values())
    said = []
    for place, asked in (("files", (archive,)), ("ours", ("-w", workspace))):
        assert run("report", *asked, "--output", tmp_path / f"{place}.html").returncode == 0
        text = (tmp_path / f"{place}.html").read_text(encoding="utf-8")
        said.append(re.findall(r"[^<>\n]*more expected[^<>\n]*", text))
    assert said[0] == said[1]


# -- settings ---------------------------------------------------------------------------------------


def test_archives_are_judged_by_the_settings_that_are_given(run, workspace):
    def changed(*more, files=tuple(sorted((WGET / "counter").glob("*.warc.gz")))):  # noqa: B008 - a constant
        told = json.loads(run("assess", *files, *more, "--json").stdout)
        return {row["url"] for row in told["worstPages"] if row["changed"]}

    news = {f"http://site.example/news/{number}.html" for number in range(1, 5)}
    assert changed("--set", "detect.ignore_selectors=p.count", "--limit", "50") == news
    # A tenth of the words is more than a counter, but on the start page, which has few, and less than a new text.
    assert changed("--set", "detect.min_change=0.1", "--limit", "50") - {"http://site.example/"} == news
    taken = run("import", *sorted((WGET / "counter").glob("*.warc.gz")), "-w", workspace)
    assert taken.returncode == 0
    assert changed("--set", "detect.min_change=0.1", "--limit", "50") == changed(
        "--set", "detect.min_change=0.1", "--limit", "50", files=("-w", workspace)
    )
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
    assert all(row["observations"] for row in listed)  # they have captures, which can be replayed
    with open_store(workspace / "recrawl.db") as store:
        assert set(store.urls(store.resources())) == RESOURCES
        assert store.capture_counts(store.resources()).min() == 3
    inside, told = pages_of(run, "-w", workspace)
    assert (set(inside) & RESOURCES, told["leftOut"]) == (set(), 4)
    outside, told = pages_of(run, *files)
    assert (set(outside), told["leftOut"]) == (set(inside), 4)
    status = json.loads(run("status", "-w", workspace, "--json").stdout)
    assert (status["pages"], status["seen"], status["resources"]) == (15, 15, 4)
    said = run("status", "-w", workspace).stdout
    assert "15 on 1 host, 15 of them seen" in said
    assert "4 of imported archives" in said
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
    assert run("import", *files, "-w", workspace, "--reimport").returncode == 0
    assert set(pages_of(run, "-w", workspace)[0]) & RESOURCES == {one}
    wanted = ("--set", "archive.resources=pages")
    outside, inside = (pages_of(run, *place, *wanted) for place in (files, ("-w", workspace)))
    assert set(outside[0]) > RESOURCES
    assert verdicts(outside[0]) == verdicts(inside[0])
    assert all(inside[0][url]["changes_per_day"] is not None for url in RESOURCES)
    assert set(pages_of(run, "-w", workspace)[0]) & RESOURCES == {one}
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
    # And without it, alike: everything changed. The workspace stays as it is.
    off = ("--set", "detect.learn_from_archives=no")
    asked, said = pages_of(run, "-w", workspace, *off)
    assert verdicts(asked) == dict.fromkeys(truth, (0, 2))
    assert said["noise"] == {}
    assert verdicts(pages_of(run, "-w", workspace)[0]) == truth
    again = json.loads(run("import", *files, "-w", workspace, "--reimport", "--json", *off).stdout)
    assert (again["visits_new"], again["visits_reclassified"]) == (0, 24)
    inside, known = pages_of(run, "-w", workspace)
    outside, told = pages_of(run, *files, *off)
    assert verdicts(inside) == verdicts(outside) == dict.fromkeys(truth, (0, 2))
    assert known["noise"] == told["noise"] == {}


def test_noise_that_captures_taught_is_shown_and_forgotten_like_any_other(run, workspace):
    files = sorted((WGET / "counter").glob("*.warc.gz"))
    assert run("import", *files, "-w", workspace).returncode == 0
    [row] = json.loads(run("list", "noise", "-w", workspace, "--json").stdout)
    assert (row["host"], row["where"], row["differed"]) == ("site.example", "all pages", "30 of 30")
    assert (row["learned_from"], row["text"][:22]) == ("captures in archives", "This site was visited ")
    [host] = json.loads(run("list", "hosts", "-w", workspace, "--json").stdout)
    assert host["masked"] == 1
    said = " ".join(run("explain", "http://site.example/docs/1.html", "-w", workspace).stdout.split())
    assert "another verdict" not in said
    assert "learned: it differed on 30 of the last 30 visits to this host" in said
    reset = run("noise", "reset", "site.example", "-w", workspace)
    assert "1 masked part reset" in reset.stdout
    assert "57 imported visits classified again" in reset.stdout
    assert json.loads(run("list", "noise", "-w", workspace, "--json").stdout) == []
    pages, told = pages_of(run, "-w", workspace)
    assert verdicts(pages) == dict.fromkeys(pages, (0, 2))
    assert told["noise"] == {}


@pytest.fixture
def live(run, workspace):
    """``live(url, counts, news)``: verdicts of live visits to a page of the imported archive; each has a new counter.

    ``counts`` are what the counter says at each request. A confirmation that is wanted is made.
    """
    files = sorted((WGET / "counter").glob("*.warc.gz"))
    assert run("import", *files, "-w", workspace).returncode == 0
    page_of = re.compile(rb"This site was visited \d+")
    with open_store(workspace / "recrawl.db", durable=False) as store:
        classifier = ChangeClassifier(store, ClassifierRules(check_share=0.0))
        bodies = {}
        for path in files:
            for batch in index_warc(path, ReadReport()):
                for row in batch.to_pylist():
                    if row["mime"] == "text/html" and row["status"] == 200:
                        bodies[row["url"]] = read_capture(path, row["offset"])

        def visited(url, time, count, said=b""):
            [page] = [page for page in store.pages().id.tolist() if store.urls(np.array([page]))[0] == url]
            [known] = recall(store, np.array([page]), store.validators(np.array([page])))
            host = int(store.pages(np.array([page])).host[0])
            body = page_of.sub(b"This site was visited %d" % count, bodies[url].raw_body).replace(b"<p>", b"<p>" + said)
            capture = replace(bodies[url], time=time, raw_body=body)
            classifier.prepare(np.array([host]), time)
            target = VisitTarget(page, host, url, time, known)
            return asyncio.run(classifier.classify(target, capture, conditional=False)), replace(capture, time=time + 5)

        yield classifier, sorted(set(bodies) - EVER_CHANGING - CHANGED_ONCE), visited


def test_a_live_run_starts_from_the_noise_of_imported_captures(live):
    classifier, urls, visited = live
    results = [visited(url, 2e9 + number, 7_000 + number)[0] for number, url in enumerate(urls)]
    assert len(results) > 9
    assert classifier.masked == 1
    quiet = [result for result in results if isinstance(result, VisitDone)]
    assert {result.visit.verdict for result in quiet} == {Verdict.UNCHANGED}
    assert 0 < len(results) - len(quiet) < len(results) / 2  # a quarter of them is audited
    changed, _ = visited(urls[0], 2e9 + 60.0, 8_000, b"News of today. ")
    assert isinstance(changed, NeedsConfirmation)  # the rest of the page is compared
    assert changed.target.seen.judgement.verdict == Verdict.CHANGED


@pytest.mark.parametrize("agrees", [True, False])
def test_noise_of_imported_captures_is_audited(live, agrees):
    classifier, urls, visited = live
    for number, url in enumerate(urls):
        result, again = visited(url, 2e9 + number, 7_000 + number)
        if isinstance(result, NeedsConfirmation):
            break
    other = again if agrees else replace(again, raw_body=again.raw_body.replace(b"visited 7", b"visited 9"))
    done = asyncio.run(classifier.classify(result.target, other, conditional=False))
    classifier.learn(classifier.learned_facts([done.first, done]))
    assert classifier.masked == (0 if agrees else 1)  # what agrees moments apart is content, and was edited


def test_a_live_run_compares_everything_if_archives_are_not_to_teach(live):
    classifier, urls, visited = live
    classifier.rules = replace(classifier.rules, archive_noise=False)
    results = [visited(url, 2e9 + number, 7_000 + number)[0] for number, url in enumerate(urls)]
    assert classifier.masked == 0
    found = {result.visit.verdict if isinstance(result, VisitDone) else Verdict.CHANGED for result in results}
    assert found == {Verdict.CHANGED}


def write_warc(path, captures):
    """An archive file of (time, URL, body, headers). Bytes that a URL had the last time are in a revisit record."""
    digests: dict[str, str] = {}
    with path.open("wb") as stream:
        for number, (time, url, body, headers) in enumerate(captures):
            digest = base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()
            repeats = digests.get(url) == digest
            digests[url] = digest
            http = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            block = f"HTTP/1.1 200 OK\r\n{http}\r\n".encode() + (b"" if repeats else body)
            about = {
                "WARC-Type": "revisit" if repeats else "response",
                "WARC-Record-ID": f"<urn:uuid:00000000-0000-0000-0000-{number:012}>",
                "WARC-Date": time,
                "WARC-Target-URI": url,
                "WARC-Payload-Digest": f"sha1:{digest}",
                "Content-Type": "application/http; msgtype=response",
                "Content-Length": str(len(block)),
            }
            if repeats:
                about["WARC-Profile"] = "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"
            head = "".join(f"{name}: {value}\r\n" for name, value in about.items())
            stream.write(gzip.compress(f"WARC/1.0\r\n{head}\r\n".encode() + block + b"\r\n\r\n"))
    return path


def news_of(day, number):
    """A page of fourteen: the paragraph of news is another every day on five of them."""
    latest = f"Latest: {'abcdef'[day - 1] * 6} {number}" if number < 5 else f"Latest: nothing on page {number}"
    return f"<h1>Page {number}</h1><p>{'words of it ' * 50}</p><p>{latest}</p>".encode()


@pytest.mark.parametrize("first", [1, 2])
def test_captures_that_are_known_to_be_equal_are_evidence_against_noise(run, tmp_path, first):
    """As Heritrix and wget write them: the second of equal captures is a revisit record."""
    html = {"Content-Type": "text/html"}
    days = {
        day: [
            (f"2024-01-{day:02}T00:00:00Z", f"http://m.example/{number}.html", news_of(day, number), html)
            for number in range(14)
        ]
        for day in range(1, 7)
    }
    files = [write_warc(tmp_path / "all.warc.gz", [one for day in days.values() for one in day])]
    if first > 1:  # the archive file with the bytes that never change is not here
        size = write_warc(tmp_path / "first.warc.gz", days[1]).stat().st_size
        (tmp_path / "later.warc.gz").write_bytes(files[0].read_bytes()[size:])
        files = [tmp_path / "later.warc.gz"]
    found, told = pages_of(run, *files)
    pairs = 6 - first
    truth = {f"http://m.example/{number}.html": (0, pairs) if number < 5 else (pairs, 0) for number in range(14)}
    assert verdicts(found) == truth
    assert told["noise"] == {}


def test_crawls_imported_one_after_the_other_are_judged_as_if_at_once(run, workspace):
    files = sorted((WGET / "counter").glob("*.warc.gz"))
    for file in files:
        assert run("import", file, "-w", workspace).returncode == 0
    assert verdicts(pages_of(run, "-w", workspace)[0]) == verdicts(pages_of(run, *files)[0])
