"""``recrawl assess``: what it says of archives that others made."""

from __future__ import annotations

import csv
import json
from xml.etree import ElementTree as ET

import pytest

from recrawl.errors import ExitCode
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture
from recrawl.time import DAY, VirtualClock, to_timestamp14

START = 1_700_000_000.0
DIGESTS = {"a": "AYLWTCTP5Q6IQJS3ZLKZBRGIRXTTLGRG", "b": "BYLWTCTP5Q6IQJS3ZLKZBRGIRXTTLGRG", "-": "-"}


def cdx(*captures: tuple[str, float, str, int]) -> bytes:
    """An index of captures: path, days after the start, digest, status."""
    lines = [" CDX N b a m s k r M S V g"]
    for path, day, digest, status in captures:
        time = to_timestamp14(START + day * DAY)
        key, url = f"org,site){path.lower()}", f"http://site.org{path}"
        lines.append(f"{key} {time} {url} text/html {status} {DIGESTS[digest]} - - 100 0 a.warc.gz")
    return "\n".join([*lines, ""]).encode()


@pytest.fixture
def weekly(tmp_path):
    """Three weekly crawls of four pages: one changes once, one goes, one appears."""
    file = tmp_path / "weekly.cdx"
    crawls = [
        *(("/", week * 7, "a", 200) for week in range(3)),
        ("/news/1", 0.01, "a", 200),
        ("/news/1", 7.01, "b", 200),
        ("/news/1", 14.01, "b", 200),
        ("/news/2", 0.02, "a", 200),
        ("/news/2", 7.02, "-", 404),
        ("/late", 14.02, "a", 200),
    ]
    file.write_bytes(cdx(*crawls))
    return file


def test_an_index_that_somebody_made_is_judged(run, weekly):
    done = run("assess", weekly)
    assert done.returncode == 0
    said = done.stdout
    assert "1 of 1 file holds captures." in said
    assert "8 captures of 4 pages on 1 site" in said
    assert "In addition, 1 observation found no page." in said
    assert "in 3 crawls." in said
    assert "   added later   " in said, "in the first crawl all pages are new, and none came later"
    assert "3 unchanged (coherent), 1 changed, 1 gone; 3 not observed again" in said
    assert "The last crawl of site.org with a later crawl:" in said
    assert said.index("Sections, worst first") < said.index("Pages, worst first")
    assert "http://site.org/news/" in said


def test_programs_get_the_same_as_json(run, weekly):
    told = json.loads(run("assess", weekly, "--json").stdout)
    assert told["schema"] == "recrawl-archive-quality/1"
    assert (told["captures"], told["looksInVain"], told["pages"], told["crawlsCount"]) == (8, 1, 4, 3)
    for table in ("sections", "worstPages"):  # every capture is in one of them once
        rows = told[table]
        assert sum(row["captures"] for row in rows) == 8
        judged = [sum(row[name] or 0 for name in ("coherent", "changed", "missing")) for row in rows]
        assert [count + row["unseen"] for count, row in zip(judged, rows, strict=True)] == [
            row["captures"] for row in rows
        ]
        blur = [row["blur_total"] for row in rows if row["blur_total"] is not None]
        assert blur == sorted(blur, reverse=True)
        assert all(row["blur_total"] is None for row in rows[len(blur) :])
    once = next(row for row in told["worstPages"] if row["url"].endswith("/late"))
    assert once["changes_per_day"] is once["blur"] is once["chance_unchanged"] is None  # captured once: not known
    assert told["files"] == [{"file": str(weekly), "format": "CDX", "captures": 9, "broken": 0}]
    by_time = sorted(told["crawls"], key=lambda crawl: crawl["from"])
    assert [(crawl["coherent"], crawl["changed"], crawl["missing"], crawl["new"]) for crawl in by_time] == [
        (1, 1, 1, 0),
        (2, 0, 0, 0),
        (None, None, None, 1),  # nothing of it was seen again
    ]
    assert told["worstPages"][0]["blur"] >= told["worstPages"][-2]["blur"]
    assert told["lastCrawlSeenAgain"]["coherence"]["coherent"] == 2


def test_a_moment_shows_what_was_valid_together_and_what_breaks_it(run, weekly):
    then = json.loads(run("assess", weekly, "--at", "2023-11-18", "--json").stdout)["shown"]  # after the first crawl
    # Only the first page is bracketed by equal captures; an index alone proves nothing.
    assert (then["pages"], then["agreedWithoutBytes"], then["proved"]) == (4, 1, 0)
    together = then["validTogether"]
    assert (together["pages"], together["all"]) == (
        2,
        False,
    )  # of pages seen once as they were, only an instant is known
    assert together["brokenBy"] == ["http://site.org/news/2", "http://site.org/late"]
    before = json.loads(run("assess", weekly, "--at", "2023-11-20", "--rule", "before", "--json").stdout)
    nearest = json.loads(run("assess", weekly, "--at", "2023-11-20", "--json").stdout)
    page = "http://site.org/news/1"
    copies = [next(row for row in told["worstPages"] if row["url"] == page)["shown"] for told in (before, nearest)]
    assert [copy[:10] for copy in copies] == ["2023-11-14", "2023-11-21"]


def test_only_pages_that_match_and_crawls_by_a_named_pause(run, weekly):
    told = json.loads(run("assess", weekly, "--match", "/news/", "--pause", "30d", "--json").stdout)
    assert (told["pages"], told["crawlsCount"]) == (2, 1)
    none = run("assess", weekly, "--match", "/nowhere/")
    assert none.returncode == ExitCode.ERROR
    assert "There is no capture to assess of a page like '/nowhere/'." in none.stderr


def test_everything_is_written_for_other_tools(run, weekly, tmp_path):
    folder = tmp_path / "quality"
    done = run("assess", weekly, "--output", folder, "--graphml", tmp_path / "tree.graphml")
    assert done.returncode == 0
    names = {file.name for file in folder.iterdir()}
    tables = {"crawls.csv", "sections.csv", "pages.csv", "composites.csv", "subsites.csv"}
    assert names == {"quality.md", "quality.json", *tables, *(f"{name}-metadata.json" for name in tables)}
    with (folder / "pages.csv").open(encoding="utf-8") as file:
        pages = {row["url"]: row for row in csv.DictReader(file)}
    assert pages["http://site.org/"]["coherent"] == "2"
    assert pages["http://site.org/news/2"]["missing"] == "1"
    assert (folder / "quality.md").read_text(encoding="utf-8").startswith("# Quality of the archive\n")
    assert json.loads((folder / "quality.json").read_text(encoding="utf-8"))["pages"] == 4


def test_a_picture_is_drawn(run, weekly, tmp_path):
    assert run("assess", weekly, "--plot", tmp_path / "quality.svg").returncode == 0
    assert "not observed again" in (tmp_path / "quality.svg").read_text(encoding="utf-8")
    wrong = run("assess", weekly, "--plot", tmp_path / "quality.txt")
    assert wrong.returncode == ExitCode.BAD_CONFIG
    assert "does not determine the format" in wrong.stderr


def html(body: str) -> bytes:
    return f"<html><body>{body}</body></html>".encode()


@pytest.fixture
def warcs(tmp_path):
    """Two crawls of a site as WARC files, in which one page gets a link and one another text."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    links = '<a href="/a">one</a> <a href="/b">two</a> <a href="/c">three</a> and some words to read'
    first = {"/": links, "/a": "words that stay as they are", "/b": "words that change", "/c": "words that stay too"}
    second = {**first, "/": f'{links} <a href="/d">four</a>', "/b": "other words than before"}
    for crawl, pages in enumerate((first, second)):
        with WarcWriter(tmp_path / "crawls" / str(crawl), VirtualClock(START)) as writer:
            for number, (path, body) in enumerate(pages.items()):
                time = START + crawl * 7 * DAY + number
                writer.write(Capture(f"http://site.org{path}", time, 200, head, html(body)))
    return tmp_path / "crawls"


def test_only_what_can_be_read_is_provably_as_it_was(run, warcs, tmp_path):
    """Bytes prove; a file that is gone, an index alone and a line that names another record do not."""

    def shown(*what):
        done = run("assess", *what, "--at", "2023-11-18", "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        rows = {row["url"].rpartition("/")[2]: row["proved"] for row in told["worstPages"]}
        return told["shown"], {path for path, proved in rows.items() if proved}, " ".join(told["words"])

    files = sorted(warcs.rglob("*.warc.gz"))
    found, proved, words = shown(*files)
    assert (found["proved"], found["agreedWithoutBytes"], proved) == (2, 0, {"a", "c"})
    assert "2 proved for that time" in words
    assert "not a proof" not in words
    found, proved, words = shown(*files, "--digests-only")  # nothing was read, so nothing is proved
    assert (found["proved"], found["agreedWithoutBytes"], proved) == (0, 2, set())

    place = tmp_path / "archive"
    assert run("init", place).returncode == 0
    assert run("import", *files, "-w", place).returncode == 0
    assert shown("-w", place)[1] == {"a", "c"}
    planted = cdx(("/planted", 0, "a", 200), ("/planted", 7, "a", 200)).replace(b"a.warc.gz", str(files[0]).encode())
    (tmp_path / "planted.cdx").write_bytes(planted)
    assert run("import", tmp_path / "planted.cdx", "-w", place).returncode == 0
    found, proved, words = shown("-w", place)
    assert (found["agreedWithoutBytes"], proved) == (1, {"a", "c"})
    assert "For 1 page more, the index lists the shown version at that time, or before and after it" in words
    for file in files:
        file.unlink()
    found, proved, words = shown("-w", place)
    assert (found["proved"], found["agreedWithoutBytes"], proved) == (0, 3, set())


def test_all_pages_of_an_index_were_valid_together_only_as_far_as_it_says(run, warcs, tmp_path):
    (tmp_path / "site.cdx").write_bytes(cdx(*((path, day, "a", 200) for path in ("/a", "/c") for day in (0, 7))))
    for what, proved in ((tmp_path / "site.cdx", False), (warcs, True)):
        told = json.loads(run("assess", what, "--match", "*org/[ac]", "--at", "2023-11-18", "--json").stdout)
        together = told["shown"]["validTogether"]
        assert (together["pages"], together["all"], together["proved"]) == (2, True, proved)
        assert any("according to the index" in line for line in told["words"]) is not proved


def test_the_tree_of_a_crawl_shows_what_changed_and_folds_the_rest(run, warcs, tmp_path):
    done = run("assess", warcs, "--graphml", tmp_path / "tree.graphml", "--json")
    assert done.returncode == 0, done.stderr
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    graph = ET.parse(tmp_path / "tree.graphml").getroot()
    names = {key.get("id"): key.get("attr.name") for key in graph.findall("g:key", space)}
    nodes = {}
    for node in graph.iterfind(".//g:node", space):
        values = {names[data.get("key")]: data.text for data in node.findall("g:data", space)}
        nodes[node.get("id")] = (values["label"], values["class"], values["colour"], int(values["pages"]))
    assert sorted(nodes.values()) == [
        ("2 unchanged", "unchanged", "green", 2),
        ("http://site.org/", "links", "red", 1),
        ("http://site.org/b", "content", "yellow", 1),
    ]
    edges = {(edge.get("source"), edge.get("target")) for edge in graph.iterfind(".//g:edge", space)}
    assert {tuple(nodes[end][0] for end in edge) for edge in edges} == {
        ("http://site.org/", "http://site.org/b"),
        ("http://site.org/", "2 unchanged"),
    }


def test_the_whole_tree_of_a_crawl_has_every_page(run, warcs, tmp_path):
    done = run("assess", warcs, "--graphml", tmp_path / "changes.graphml", "--tree", tmp_path / "site.graphml")
    assert f"Wrote {tmp_path / 'changes.graphml'}.\nWrote {tmp_path / 'site.graphml'}." in done.stdout
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    graph = ET.parse(tmp_path / "site.graphml").getroot()
    labels = {data.text for data in graph.iterfind(".//g:node/g:data", space)}
    assert {f"http://site.org/{path}" for path in ("", "a", "b", "c")} <= labels
    assert len(graph.findall(".//g:node", space)) == 4
    assert len(graph.findall(".//g:edge", space)) == 3


def test_files_for_crawlers_are_no_pages(run, tmp_path):
    paths = ("/", "/robots.txt", "/sitemap.xml", "/news/sitemap-2.xml.gz", "/about/robots.txt", "/sitemap.html")
    (tmp_path / "site.cdx").write_bytes(cdx(*((path, day, "a", 200) for path in paths for day in (0, 7))))
    told = json.loads(run("assess", tmp_path / "site.cdx", "--json").stdout)
    assert (told["pages"], told["leftOut"], told["captures"]) == (3, 3, 6)
    assert any(words.startswith("Left out: 3 resources (robots.txt") for words in told["words"])


def test_each_file_can_be_a_crawl(run, warcs):
    told = json.loads(run("assess", warcs, "--by-file", "--pause", "99d", "--json").stdout)
    assert [(crawl["captures"], crawl["coherent"], crawl["changed"]) for crawl in told["crawls"]] == [
        (4, 2, 2),
        (4, None, None),
    ]
    assert json.loads(run("assess", warcs, "--pause", "99d", "--json").stdout)["crawlsCount"] == 1


def test_a_workspace_is_judged_by_its_visits(run, weekly, tmp_path):
    assert run("init", tmp_path / "archive").returncode == 0
    assert run("import", weekly, "-w", tmp_path / "archive").returncode == 0
    from_workspace, from_file = (
        json.loads(run("assess", *what, "--json").stdout) for what in (("-w", tmp_path / "archive"), (weekly,))
    )
    assert from_workspace["files"] == []
    assert from_workspace["crawls"] == from_file["crawls"]
    assert from_workspace["worstPages"] == from_file["worstPages"]


def test_broken_files_are_named_and_the_rest_goes_on(run, weekly, tmp_path):
    (tmp_path / "broken.warc").write_bytes(b"WARC/1.0\r\nWARC-Type: response\r\nnonsense")
    (tmp_path / "notes.txt").write_bytes(b"\x00\x01 nothing of interest")
    done = run("assess", weekly, tmp_path / "broken.warc", tmp_path / "notes.txt")
    assert done.returncode == 0
    assert "broken.warc" in done.stderr
    assert "notes.txt: no capture in it" in done.stderr
    assert "1 of 3 files holds captures." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.warc",), "There is no file nowhere.warc."),
        (("https://web.archive.org/cdx?url=a.org",), "is not a file"),
        (("weekly.cdx", "--at", "yesterday"), "'yesterday' is not a time."),
        (("weekly.cdx", "--output", "weekly.cdx"), "is not a folder"),
        (("weekly.cdx", "--estimator", "best"), "There is no estimator 'best'."),
        ((), "There is no workspace"),
    ],
)
def test_what_cannot_be_done_is_told_with_a_remedy(run, weekly, arguments, said):
    done = run("assess", *arguments)
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize("verb", ["assess", "report"])
def test_a_workspace_is_not_read_as_files(run, weekly, verb):
    assert run("init", "archive").returncode == 0
    done = run(verb, weekly, "archive")
    assert done.returncode == ExitCode.ERROR
    assert "archive is a workspace." in done.stderr
    assert f"Write: recrawl {verb} -w archive" in done.stderr


def test_captures_that_cannot_be_compared_prove_nothing(run, tmp_path):
    (tmp_path / "bare.cdx").write_bytes(cdx(("/", 0, "-", 200), ("/", 9, "-", 200)))
    said = run("assess", tmp_path / "bare.cdx").stdout
    assert "no two captures of a page could be compared" in said
    assert "no page is proved coherent" in said


def test_sections_that_change_by_themselves_are_proposed_as_captures(run, tmp_path):
    captures = []
    for number in range(30):
        section = ("/news", "/blog", "/docs")[number % 3]
        changes = {"/news": (1, 2, 5), "/blog": (3, 4, 6), "/docs": ()}[section]
        for week in range(8):
            digest = "b" if sum(change <= week for change in changes) % 2 else "a"
            captures.append((f"{section}/{number}", week * 7 + number * 0.05, digest, 200))
    (tmp_path / "site.cdx").write_bytes(cdx(*captures))
    told = json.loads(run("assess", tmp_path / "site.cdx", "--delay", "1d", "--json").stdout)
    proposed = told["subsites"]
    assert {part["sections"] for part in proposed[:2]} == {"http://site.org/news/", "http://site.org/blog/"}
    assert all(part["gain"] >= 1.0 and part["pages"] == 10 for part in proposed)
    assert all(part["coherent_alone"] < 10 for part in proposed)
    assert run("assess", tmp_path / "site.cdx", "--delay", "1d").stdout.count("Sub-sites, best gain first") == 1
    assert "Sub-sites" not in run("assess", tmp_path / "site.cdx", "--delay", "1s").stdout


def test_the_sample_archives_give_a_statement(run, data_folder):
    done = run("assess", data_folder / "formats" / "warc" / "webrecorder__warcio", "--digests-only")
    assert done.returncode == 0
    assert "captures of" in done.stdout
    assert "example-bad.warc.gz.bad" in done.stderr
