"""Experiments on archives of one's own: real captures as observations, and the data-set form they go through."""

import base64
import csv
import hashlib
import shutil

import numpy as np
import pytest

from recrawl.detect.change_verdict import classify_change, is_publication, known_after
from recrawl.errors import ExitCode
from recrawl.model import Capture, ChangeKind, Outcome, Verdict, Visits
from recrawl.store.open import open_store
from recrawl.time import DAY, WEEK, to_timestamp14
from recrawl.transfer.exporter import write_dataset
from recrawl.urls import home_of
from recrawl_lab.experiments.experiment_classes import _ends, _share_wrong
from recrawl_lab.experiments.experiment_hacs import captured

START = 1_500_000_000.0
AUTHORS, WEEKS = 12, 40


@pytest.fixture(scope="module")
def archive(new_workspace, tmp_path_factory):
    """Authors' home pages and their publications: half of the authors add a link most weeks, the others hardly ever."""
    folder = shutil.copytree(new_workspace, tmp_path_factory.mktemp("own") / "ws")
    rng = np.random.default_rng(5)
    names = [f"http://foo.edu/~a{number}/{page}" for number in range(AUTHORS) for page in ("", "pubs/", "old/x/y/deep")]
    busy = np.repeat(np.arange(AUTHORS) < AUTHORS // 2, 3)
    with open_store(folder / "recrawl.db") as store:
        page = store.discover(names, START)
        for row, number in enumerate(page.tolist()):
            count = WEEKS * 4
            time = START + np.sort(rng.random(count)) * WEEKS * WEEK
            changed = rng.random(count) < (0.4 if busy[row] else 0.01)
            changed[0] = False
            verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
            verdict[0] = Verdict.UNKNOWN
            published = changed & (rng.random(count) < 0.5)
            kinds = np.where(changed, ChangeKind.TEXT | ChangeKind.LINKS | ChangeKind.NEW_LINKS, 0)
            kinds = np.where(published, kinds | ChangeKind.NEW_PUBLICATIONS, kinds)
            links = np.where(changed, 1, 0)
            counted = {"new_internal": links, "added_internal": links, "new_external": 0, "added_external": 0}
            store.record(Visits.of(np.full(count, number), time, verdict=verdict, kinds=kinds, **counted))
    return folder


def rows(file):
    with file.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_hacs_on_a_workspace_and_on_its_export_say_the_same(run, archive, tmp_path):
    """Table I with published numbers beside it, both averages with thresholds of their own, and P@K."""
    done = run("experiment", "hacs", "-w", archive, "-o", tmp_path / "own")
    assert done.returncode == 0, done.stderr
    for level in ("home page", "web site"):
        assert f"## Table I, {level}, micro average ({AUTHORS} sites): published / here" in done.stdout
        assert f"## Table I, {level}, macro average ({AUTHORS} sites): published / here" in done.stdout
    assert "points with updates" in done.stdout
    assert run("export", tmp_path / "set", "--what", "dataset", "-w", archive).returncode == 0
    again = run("experiment", "hacs", "--data", tmp_path / "set", "-o", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert rows(tmp_path / "own" / "hacs.csv") == rows(tmp_path / "again" / "hacs.csv")
    best = {}
    for row in rows(tmp_path / "own" / "hacs.csv"):
        if row["level"] == "home page" and row["weeks"] == "2":
            best[row["model"]] = max(best.get(row["model"], 0.0), float(row["micro_f1"] or 0))
    assert best["hacs"] > best["random"] + 0.1, "who added links does so again"


def test_new_publications_are_updates_of_their_own(archive, tmp_path):
    with open_store(archive / "recrawl.db") as store:
        write_dataset(store, tmp_path / "set")
    updates = {kind: captured(tmp_path / "set", kind) for kind in (ChangeKind.NEW_LINKS, ChangeKind.NEW_PUBLICATIONS)}
    links, published = (one["home page"].changes().sum() for one in updates.values())
    assert 0.3 * links < published < 0.7 * links
    site = updates[ChangeKind.NEW_LINKS]["web site"]
    home = updates[ChangeKind.NEW_LINKS]["home page"]
    assert len(site) == len(home) == AUTHORS
    # Two of the three pages of each author are within two directories of the home page.
    assert site.counts().sum() == pytest.approx(2 * home.counts().sum(), rel=0.02)


def test_an_index_tells_changes_and_no_links(run, tmp_path):
    """Digests say nothing about links: not known, and what to do about it."""
    lines = [
        f"edu,foo)/~bar {20150101 + 100 * month + day}000000 http://foo.edu/~bar/ text/html 200 {digit * 32} - - 9 0 x"
        for month, digit in enumerate("ABCDEFGHIJ")
        for day in (0, 6, 13, 20)
    ]
    (tmp_path / "a.cdx").write_text(" CDX N b a m s k r M S V g\n" + "\n".join(lines))
    refused = run("experiment", "hacs", tmp_path / "a.cdx", "-o", tmp_path / "out")
    assert refused.returncode == ExitCode.ERROR
    assert "new links are not known" in refused.stderr
    assert "import --bytes" in refused.stderr
    done = run("experiment", "hacs", tmp_path / "a.cdx", "--kind", "content", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "micro average (1 sites)" in done.stdout
    (tmp_path / "short.cdx").write_text(" CDX N b a m s k r M S V g\n" + "\n".join(lines[:2]))
    short = run("experiment", "hacs", tmp_path / "short.cdx", "--kind", "content", "-o", tmp_path / "out")
    assert short.returncode == ExitCode.ERROR
    assert "less than two weeks" in short.stderr


def test_hacs_refuses_an_archive_without_home_pages(new_workspace, run, tmp_path):
    """As a site kept in git often is: pages with names, and none at the root."""
    folder = shutil.copytree(new_workspace, tmp_path / "ws")
    with open_store(folder / "recrawl.db") as store:
        page = store.discover(["http://git.example/p1.html", "http://git.example/docs/p2.html"], START)
        kinds = ChangeKind.TEXT | ChangeKind.NEW_LINKS | ChangeKind.EXACT
        for number in page.tolist():
            time = START + np.arange(40) * WEEK
            store.record(Visits.of(np.full(40, number), time, verdict=Verdict.CHANGED, kinds=kinds, new_internal=1))
    for kind in ("new-links", "content"):
        refused = run("experiment", "hacs", "-w", folder, "--kind", kind, "-o", tmp_path / "out")
        assert refused.returncode == ExitCode.ERROR
        assert "no home page was captured twice" in refused.stderr
        assert "bug" not in refused.stderr


def test_classes_and_datamonitor_take_a_workspace(run, archive, tmp_path):
    done = run("experiment", "classes", "-w", archive, "--days", 100, "-o", tmp_path / "classes")
    assert done.returncode == 0, done.stderr
    assert "Figure 2" in done.stdout
    assert run("export", tmp_path / "ws", "--what", "dataset", "-w", archive).returncode == 0
    again = run("experiment", "classes", "--data", tmp_path / "ws", "--days", 100, "-o", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert rows(tmp_path / "classes" / "classes.csv") == rows(tmp_path / "again" / "classes.csv")
    short = run("experiment", "datamonitor", "-w", archive, "-o", tmp_path / "dm")
    assert short.returncode == ExitCode.ERROR, "three years are needed, and there are forty weeks"
    assert "the longest record has 2" in short.stderr
    assert "Give a shorter time with --days" in short.stderr
    assert f"recrawl: {archive}: " in short.stderr, "the archive is named, not the folder that was made of it"


def test_datamonitor_takes_records_as_long_as_they_are(run, archive, tmp_path):
    done = run("experiment", "datamonitor", "-w", archive, "--days", 200, "-o", tmp_path / "dm")
    assert done.returncode == 0, done.stderr
    assert "Recall / precision over 200 days; the years of the paper are thirds of this time" in done.stdout
    found = rows(tmp_path / "dm" / "datamonitor.csv")
    weekly = [int(row["downloads"]) for row in found if (row["strategy"], row["class"]) == ("week", "all")]
    assert weekly[0] == sum(weekly[1:])
    documents = int(next(row["documents"] for row in found if row["class"] == "all"))
    assert weekly[0] == pytest.approx(documents * 200 / 7, rel=0.05)


def test_classes_and_datamonitor_take_the_captures_of_an_index(run, tmp_path):
    lines = [
        f"org,a)/{page} {to_timestamp14(START + day * DAY)} http://a.org/{page} text/html 200 "
        f"{base64.b32encode(hashlib.sha1(b'%d %d' % (page, day // every)).digest()).decode()} - - 9 0 x"
        for page, every in enumerate((3, 3, 4, 9, 10, 12, 25, 28, 40, 45))
        for day in range(120)
    ]
    (tmp_path / "a.cdx").write_text(" CDX N b a m s k r M S V g\n" + "\n".join(lines))
    for name in ("classes", "datamonitor"):
        done = run("experiment", name, tmp_path / "a.cdx", "--days", 90, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert "## a.cdx" in done.stdout
    found = rows(tmp_path / "datamonitor" / "datamonitor.csv")
    assert {row["documents"] for row in found if row["class"] == "7d > λ > 2d"} == {"3"}
    both = run("experiment", "classes", tmp_path / "a.cdx", "-w", tmp_path)
    assert "Name one of them" in both.stderr


def test_an_error_of_pages_of_one_directory_has_no_interval():
    """Whole directories are resampled: one of them says nothing of how others would differ."""
    rng, wrong = np.random.default_rng(1), np.array([1.0, 0.0, 1.0])
    alone, several = (_share_wrong(wrong, np.array(cluster), rng) for cluster in ([0, 0, 0], [0, 1, 2]))
    assert alone.mean == several.mean == pytest.approx(2 / 3)
    assert _ends(alone) == "–"
    assert several.low < several.mean < several.high
    assert "%–" in _ends(several)


def test_what_was_exported_is_not_taken_for_a_log_of_exact_changes(run, archive, workspace, tmp_path):
    assert run("export", tmp_path / "set", "--what", "dataset", "-w", archive).returncode == 0
    refused = run("import", tmp_path / "set", "-w", workspace)
    assert "change times are not exact" in refused.stderr


def test_a_page_that_went_and_came_back_is_deleted_and_added(new_workspace, tmp_path):
    import pyarrow.parquet as pq

    folder = shutil.copytree(new_workspace, tmp_path / "ws")
    with open_store(folder / "recrawl.db") as store:
        page = store.discover(["http://a.org/"], START)
        outcome = [Outcome.FETCHED, Outcome.GONE, Outcome.GONE, Outcome.FETCHED, Outcome.FETCHED]
        verdict = [Verdict.UNKNOWN, Verdict.CHANGED, Verdict.UNCHANGED, Verdict.CHANGED, Verdict.CHANGED]
        kinds = [0, ChangeKind.EXISTENCE, 0, ChangeKind.EXISTENCE, ChangeKind.TEXT | ChangeKind.EXACT]
        time = START + DAY * np.array([0, 2, 4, 6, 8])
        store.record(Visits.of(np.repeat(page, 5), time, outcome=outcome, verdict=verdict, kinds=kinds))
        write_dataset(store, tmp_path / "set")
    events = pq.read_table(tmp_path / "set" / "events.parquet").to_pydict()
    assert events["kind"] == ["add", "del", "add", "mod"]
    assert ((np.array(events["t"]) - START) / DAY).tolist() == [0, 1, 5, 8], "in the middle, unless it was logged"


@pytest.mark.parametrize(
    ("url", "site", "depth"),
    [
        ("http://www.foo.edu/~bar", "foo.edu/~bar/", 0),
        ("http://foo.edu/~bar/index.html", "foo.edu/~bar/", 0),
        ("https://foo.edu/~bar/baz", "foo.edu/~bar/", 1),
        ("http://foo.edu/%7ebar/baz/qux/quux", "foo.edu/~bar/", 3),
        ("http://foo.edu/", "foo.edu/", 0),
        ("http://foo.edu:8080/a/b", "foo.edu:8080/", 2),
    ],
)
def test_home_pages_are_those_of_the_paper(url, site, depth):
    assert home_of(url) == (site, depth)


def page(*links):
    body = "<html><body><p>Hello</p>" + "".join(f'<a href="{link}">x</a>' for link in links) + "</body></html>"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    return Capture("http://foo.edu/~bar/", START, 200, raw_head=head, raw_body=body.encode())


def test_a_new_link_to_a_pdf_is_a_new_publication():
    first = classify_change(page("a.html"), None)
    known = known_after(first, None)
    assert classify_change(page("a.html", "b.html"), known).kinds & ChangeKind.NEW_LINKS
    assert not classify_change(page("a.html", "b.html"), known).kinds & ChangeKind.NEW_PUBLICATIONS
    assert classify_change(page("a.html", "paper.pdf"), known).kinds & ChangeKind.NEW_PUBLICATIONS
    assert not classify_change(page("a.html", "papers/pdf/"), known).kinds & ChangeKind.NEW_PUBLICATIONS
    assert is_publication("https://arxiv.org/abs/2012.00777")
