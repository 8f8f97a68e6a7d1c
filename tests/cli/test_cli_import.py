"""``recrawl import`` and ``export``: what goes in comes out, and goes in again."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from recrawl.app.assess.archive_reading import KEPT
from recrawl.errors import ExitCode
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture, ChangeKind
from recrawl.store.open import open_store
from recrawl.time import VirtualClock

CDX = b""" CDX N b a m s k r M S V g
com,example)/ 20140101000000 http://example.com/ text/html 200 AYLWTCTP5Q6IQJS3ZLKZBRGIRXTTLGRG - - 100 0 a.warc.gz
com,example)/ 20140102000000 http://example.com/ text/html 200 AYLWTCTP5Q6IQJS3ZLKZBRGIRXTTLGRG - - 100 100 a.warc.gz
com,example)/ 20140103000000 http://example.com/ text/html 200 BYLWTCTP5Q6IQJS3ZLKZBRGIRXTTLGRG - - 100 200 a.warc.gz
com,example)/x 20140103000000 http://example.com/x text/html 404 CYLWTCTP5Q6IQJS3ZLKZBRGIRXTTLGRG - - 100 300 a.warc.gz
this line is broken
"""
SITEMAP = b"""<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>http://example.com/</loc><lastmod>2014-01-02</lastmod><changefreq>daily</changefreq></url>
<url><loc>http://example.com/new</loc></url></urlset>"""


@pytest.fixture
def workspace(run, tmp_path):
    assert run("init", tmp_path / "archive").returncode == 0
    return tmp_path / "archive"


def rows(workspace: Path):
    with open_store(str(workspace / "recrawl.db")) as store:
        visits = store.visits()
        columns = [column.tolist() for name, column in visits.columns().items() if name != "page"]
        return sorted(zip(store.urls(visits.page), *columns, strict=True))


def test_an_index_becomes_visits_and_broken_lines_are_told(run, workspace, tmp_path):
    (tmp_path / "a.cdx").write_bytes(CDX)
    done = run("import", tmp_path / "a.cdx", "-w", workspace)
    assert done.returncode == 0
    assert "a.cdx at byte" in done.stderr
    assert [(row[0], row[3]) for row in rows(workspace)] == [
        ("http://example.com/", 0),
        ("http://example.com/", 1),
        ("http://example.com/", 2),
        ("http://example.com/x", 0),
    ]
    before = rows(workspace)
    again = json.loads(run("import", tmp_path / "a.cdx", "-w", workspace, "--json").stdout)
    assert again["sources"][0]["why_skipped"] == "4 imported before"
    assert (again["sources"][0]["accepted"], again["visits_new"]) == (0, 0)
    assert rows(workspace) == before


def test_errors_are_told_with_their_place_and_many_go_to_a_file(run, workspace, tmp_path):
    file = tmp_path / "a.cdx"
    file.write_bytes(CDX)
    few = json.loads(run("import", file, "-w", workspace, "--json").stdout)
    assert (few["errors_count"], few["errors_file"]) == (1, None)
    [error] = few["errors"]
    assert error["source"] == str(file)
    assert error["position"] == CDX.index(b"this line is broken")
    assert str(error["position"]) in error["error"]
    assert (few["visits_new"], few["visits_reclassified"]) == (4, 0)

    file.write_bytes(CDX + b"so is this one\n" * 3 * KEPT)
    many = run("import", file, "-w", workspace)
    assert many.stderr.count("at byte") == KEPT
    [listed] = (workspace / "reports").glob("import-errors-*.jsonl")
    assert str(listed.name) in many.stderr
    everything = [json.loads(line) for line in listed.read_text().splitlines()]
    assert len(everything) == 3 * KEPT + 1
    assert everything[0] == error


PAGE = "http://example.com/"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
START = 1_400_000_000.0


def archive(folder, *, noise=b""):
    """A WARC file with three versions of a page, of which the second has a new link and the third another text."""
    bodies = [b"<p>one</p>", b"<p>one</p><a href=/x>x</a>", b"<p>two</p><a href=/x>x</a>"]
    with WarcWriter(folder, VirtualClock(START)) as writer:
        for day, body in enumerate(bodies):
            writer.write(Capture(PAGE, START + day * 86_400, 200, HEAD, body + noise))
    [file] = folder.glob("*.warc.gz")
    return file


def kinds(workspace):
    return [ChangeKind(row[4]) for row in rows(workspace) if row[0] == PAGE]


def test_bytes_are_read_though_an_index_was_there_first(run, workspace, tmp_path):
    file = archive(tmp_path / "crawl")
    run("init", tmp_path / "index")
    run("import", file, "-w", tmp_path / "index", "--digests-only")
    run("export", tmp_path / "a.cdxj", "-w", tmp_path / "index")
    run("import", file, "-w", tmp_path / "index")
    expected = rows(tmp_path / "index")
    assert ChangeKind.LINKS in kinds(tmp_path / "index")[1]

    run("import", tmp_path / "a.cdxj", "-w", workspace)
    assert not any(kind & ChangeKind.LINKS for kind in kinds(workspace))
    assert run("import", file, "-w", workspace).returncode == 0
    assert rows(workspace) == expected


def test_an_archive_that_moved_is_found_at_its_new_place(run, workspace, tmp_path):
    file = archive(tmp_path / "crawl")
    run("import", file, "-w", workspace, "--digests-only")
    moved = file.rename(tmp_path / "elsewhere.warc.gz")
    done = json.loads(run("import", moved, "-w", workspace, "--json").stdout)
    assert (done["sources"][0]["new"], done["visits_compared_by_content"]) == (0, 3)
    assert ChangeKind.LINKS in kinds(workspace)[1]


def test_content_is_judged_after_digests_only(run, workspace, tmp_path):
    file = archive(tmp_path / "crawl")
    run("import", file, "-w", workspace, "--digests-only")
    assert kinds(workspace) == [ChangeKind.NONE, ChangeKind.CONTENT, ChangeKind.CONTENT]
    done = json.loads(run("import", file, "-w", workspace, "--json").stdout)
    assert done["sources"][0]["why_skipped"] == "3 imported before"
    assert done["visits_compared_by_content"] == 3
    assert ChangeKind.LINKS in kinds(workspace)[1]
    third = json.loads(run("import", file, "-w", workspace, "--json").stdout)
    assert third["visits_compared_by_content"] == 0
    again = json.loads(run("import", file, "-w", workspace, "--json", "--reimport").stdout)
    assert (again["sources"][0]["accepted"], again["sources"][0]["new"]) == (3, 0)
    assert again["visits_compared_by_content"] == 3


def test_content_is_judged_when_an_archive_that_was_away_is_back(run, workspace, tmp_path):
    file = archive(tmp_path / "crawl")
    run("import", file, "-w", workspace, "--digests-only")
    away = file.rename(tmp_path / "away.warc.gz")
    (tmp_path / "a.cdx").write_bytes(CDX.replace(b"example", b"other"))
    other = json.loads(run("import", tmp_path / "a.cdx", "-w", workspace, "--json").stdout)
    assert other["visits_compared_by_content"] == 0
    away.rename(file)
    assert json.loads(run("import", file, "-w", workspace, "--json").stdout)["visits_compared_by_content"] == 3


def test_a_better_record_of_a_known_capture_is_no_new_visit(run, workspace, tmp_path):
    file = archive(tmp_path / "crawl")
    run("init", tmp_path / "index")
    run("import", file, "-w", tmp_path / "index", "--digests-only")
    run("export", tmp_path / "a.cdxj", "-w", tmp_path / "index")
    text = (tmp_path / "a.cdxj").read_text(encoding="utf-8")
    (tmp_path / "a.cdxj").write_text(text.replace('"status": "200"', '"status": "500"'), encoding="utf-8")
    first = json.loads(run("import", tmp_path / "a.cdxj", "-w", workspace, "--json").stdout)
    second = json.loads(run("import", file, "-w", workspace, "--json").stdout)
    assert (first["visits_new"], second["visits_new"], second["visits_reclassified"]) == (3, 0, 3)


def test_a_depth_holds_for_whatever_is_imported(run, workspace, tmp_path):
    deep = SITEMAP.replace(b"/new<", b"/a/b/c/new<")
    (tmp_path / "sitemap.xml").write_bytes(deep)
    done = json.loads(run("import", tmp_path / "sitemap.xml", "--depth", 1, "-w", workspace, "--json").stdout)
    assert done["sources"][0]["why_skipped"] == "1 deeper than 1"
    recorded = Path(__file__).resolve().parents[1] / "data" / "recorded"
    sites = json.loads(run("import", recorded, "--depth", 1, "-w", workspace, "--json").stdout)["sources"][0]
    everything = json.loads(run("import", recorded, "-w", workspace, "--json").stdout)["sources"][0]
    assert "deeper than 1" in sites["why_skipped"]
    assert 0 < sites["accepted"] < everything["accepted"]
    run("export", tmp_path / "visits.parquet", "-w", workspace)
    run("init", tmp_path / "other")
    run("import", tmp_path / "visits.parquet", "--depth", 1, "-w", tmp_path / "other")
    assert {url.count("/") for url, *_ in rows(tmp_path / "other")} <= {3, 4, 5}
    assert 0 < len(rows(tmp_path / "other")) < len(rows(workspace))


def test_a_workspace_may_move_with_its_archives(run, workspace, tmp_path):
    archive(workspace / "warc")
    run("import", workspace / "warc", "-w", workspace, "--digests-only")
    moved = workspace.rename(tmp_path / "moved")
    done = json.loads(run("import", moved / "warc", "-w", moved, "--json").stdout)
    assert done["visits_compared_by_content"] == 3


def test_links_of_the_file_system_and_pipes(run, workspace, tmp_path):
    """A link to a file is the file; one to a folder is not followed, it could lead back; nobody waits for a pipe."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    (tmp_path / "a.cdx").write_bytes(CDX)
    (folder / "link.cdx").symlink_to(tmp_path / "a.cdx")
    (folder / "round").symlink_to(folder, target_is_directory=True)
    (folder / "nowhere.cdx").symlink_to(tmp_path / "nothing.cdx")
    (folder / ".hidden.cdx").write_bytes(CDX)
    os.mkfifo(folder / "pipe.cdx")
    done = json.loads(run("import", folder, "-w", workspace, "--json").stdout)
    found = {Path(row["source"]).name: (row["accepted"], row["why_skipped"]) for row in done["sources"]}
    strange = (0, "1 not in a format that recrawl reads")
    assert found == {
        "link.cdx": (4, ""),
        "nowhere.cdx": strange,
        "pipe.cdx": strange,
        "round": (0, "1 a link to a folder; name the folder to import it"),
        ".hidden.cdx": (0, "1 hidden; name it to import it"),
    }
    named = json.loads(run("import", folder / "round", folder / "pipe.cdx", "-w", workspace, "--json").stdout)
    assert [row["why_skipped"] for row in named["sources"]].count("4 imported before") == 1


@pytest.mark.parametrize("what", ["package", "errors"])
def test_a_full_disk_ends_an_import_with_its_exit_code(what, run, workspace, tmp_path):
    """A limit of the operating system on the size of a file stands for a full disk."""
    room = 1_500_000
    if what == "package":
        run("init", tmp_path / "other")
        noise = np.random.default_rng(1).bytes(room)
        archive(tmp_path / "other" / "warc", noise=noise.hex().encode())
        run("import", tmp_path / "other" / "warc", "-w", tmp_path / "other", "--digests-only")
        source = tmp_path / "a.wacz"
        assert run("export", source, "-w", tmp_path / "other").returncode == 0
    else:
        source = tmp_path / "a.cdx"
        source.write_bytes(CDX + b"so is this one\n" * 20_000)
    script = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}));"
        f"sys.argv = ['recrawl', 'import', {str(source)!r}, '-w', {str(workspace)!r}];"
        "from recrawl.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == ExitCode.DISK_FULL, done.stderr
    assert "disk is full" in done.stderr
    assert not list((workspace / "warc").iterdir())


def test_strict_stops_at_what_is_broken(run, workspace, tmp_path):
    (tmp_path / "a.cdx").write_bytes(CDX)
    done = run("import", tmp_path / "a.cdx", "-w", workspace, "--strict")
    assert done.returncode == 1
    assert "at byte" in done.stderr
    told = json.loads(run("import", tmp_path / "a.cdx", "-w", workspace, "--strict", "--json").stdout)
    assert told["errors_count"] == 1
    assert told["errors"][0]["source"].endswith("a.cdx")


def test_sitemaps_are_discovery_and_claims_not_visits(run, workspace, tmp_path):
    (tmp_path / "sitemap.xml").write_bytes(SITEMAP)
    assert run("import", tmp_path / "sitemap.xml", "-w", workspace).returncode == 0
    with open_store(str(workspace / "recrawl.db")) as store:
        assert len(store.visits()) == 0
        assert len(store.pages()) == 2
        claims = store.claims(store.pages().id)
        assert claims.lastmod.tolist() == [1_388_620_800.0]
        assert claims.changefreq.tolist() == [3]


def test_a_folder_is_read_whole_and_what_is_nothing_is_counted(run, workspace, tmp_path):
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "a.cdx").write_bytes(CDX)
    (folder / "sitemap.xml").write_bytes(SITEMAP)
    (folder / "notes.pdf").write_bytes(b"%PDF-1.4")
    done = run("import", folder, "-w", workspace, "--json")
    formats = {Path(row["source"]).name: row["format"] for row in json.loads(done.stdout)["sources"]}
    assert formats == {"a.cdx": "CDX", "sitemap.xml": "sitemap", "notes.pdf": "unknown"}


def test_a_log_of_our_own_is_no_answer_of_a_cdx_server(run, workspace, tmp_path):
    event = {"timestamp": "2026-01-02T03:04:05.678Z", "logLevel": "info", "context": "run", "message": "began"}
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "recrawl.log").write_text(f"{json.dumps(event)}\n" * 3)
    (tmp_path / "logs" / "a.cdx").write_bytes(CDX)
    done = json.loads(run("import", tmp_path / "logs", "-w", workspace, "--json").stdout)
    told = {Path(row["source"]).name: (row["format"], row["broken"], row["why_skipped"]) for row in done["sources"]}
    assert told["recrawl.log"] == ("log of recrawl", 0, "1 a log of events, not of captures")


@pytest.mark.parametrize("folder", ["other", "."], ids=["named", "in a folder"])
def test_of_a_workspace_the_archive_files_are_taken(run, tmp_path, folder):
    home = tmp_path / "home"
    home.mkdir()
    assert run("init", home / "other").returncode == 0
    archive(home / "other" / "warc")
    line = (
        "2014-05-13T16:53:20.500Z   200   9 http://example.com/ - - text/html #001 20140513165320000+500 sha1:A - -\n"
    )
    (home / "other" / "crawl.log").write_text(line)
    assert run("init", tmp_path / "archive").returncode == 0
    done = json.loads(run("import", home / folder, "-w", tmp_path / "archive", "--json").stdout)
    assert [(row["format"], row["accepted"]) for row in done["sources"]] == [("workspace of recrawl", 0), ("WARC", 3)]
    assert done["sources"][0]["why_skipped"] == "1 a workspace; only its warc/ is read"


def test_a_repository_becomes_exact_changes(run, workspace, tmp_path):
    site = tmp_path / "site"
    subprocess.run(["git", "init", "-q", site], check=True)
    for day, text in (("01", "one"), ("02", "two")):
        (site / "page.md").write_text(text)
        dates = {"GIT_AUTHOR_DATE": f"2024-01-{day}T00:00:00Z", "GIT_COMMITTER_DATE": f"2024-01-{day}T00:00:00Z"}
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", site, "add", "."], check=True)
        subprocess.run(
            ["git", "-C", site, *who, "commit", "-qm", text], check=True, env={"PATH": "/usr/bin:/bin", **dates}
        )
    missing = run("import", site, "-w", workspace)
    assert missing.returncode == ExitCode.BAD_CONFIG
    assert "--base-url" in missing.stderr
    told = ("import", site, "-w", workspace, "--base-url", "https://site.example/", "--json")
    first, second = (json.loads(run(*told).stdout) for _ in range(2))
    assert (first["visits_new"], first["sources"][0]["accepted"]) == (2, 2)
    assert (second["visits_new"], second["sources"][0]["why_skipped"]) == (0, "2 imported before")
    assert [(row[0], row[3]) for row in rows(workspace)] == [
        ("https://site.example/page/", 0),
        ("https://site.example/page/", 2),
    ]


def test_what_is_exported_is_imported_as_it_was(run, workspace, tmp_path):
    (tmp_path / "a.cdx").write_bytes(CDX)
    run("import", tmp_path / "a.cdx", "-w", workspace)
    assert run("export", tmp_path / "visits.parquet", "-w", workspace).returncode == 0
    run("init", tmp_path / "other")
    assert run("import", tmp_path / "visits.parquet", "-w", tmp_path / "other").returncode == 0
    assert rows(tmp_path / "other") == rows(workspace)


QUICK = ("--set", "politeness.min_delay=10ms", "--set", "fetch.contact=me@example.org")


@pytest.fixture
def archive_server():
    """``archive_server(address)`` starts a CDX server there that redirects to ``leads_to`` once that is set.

    The first ``fails`` requests are answered with 503.
    """
    with contextlib.ExitStack() as servers:

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.server.asked += 1
                body = b'{"urlkey": "org,example)/", "timestamp": "20240101000000", "url": "http://example.org/"}\n'
                failed = self.server.asked <= self.server.fails
                self.send_response(503 if failed else 302 if self.server.leads_to else 200)
                self.send_header("Location", f"{self.server.leads_to}{self.path}")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        def start(address):
            server = servers.enter_context(ThreadingHTTPServer((address, 0), Handler))
            server.asked, server.fails, server.leads_to = 0, 0, ""
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            servers.callback(thread.join)
            servers.callback(server.shutdown)
            return server

        yield start


def test_an_archive_leads_nowhere_but_where_it_was_named_or_allowed(run, workspace, archive_server):
    named, elsewhere = archive_server("127.0.0.1"), archive_server("127.0.0.2")
    ask = ("import", f"http://localhost:{named.server_port}/cdx?url=example.org/", "-w", workspace, *QUICK)
    done = run(*ask)
    assert (done.returncode, named.asked) == (0, 2), done.stderr
    named.leads_to = f"http://127.0.0.2:{elsewhere.server_port}"
    refused = run(*ask)
    assert (refused.returncode, named.asked, elsewhere.asked) == (ExitCode.ERROR, 3, 0)
    assert f"{named.leads_to}/cdx" in refused.stderr
    assert "fetch.allow_networks" in refused.stderr
    allowed = run(*ask, "--set", "fetch.allow_networks=127.0.0.2")
    assert (allowed.returncode, elsewhere.asked) == (0, 2), allowed.stderr


def test_who_waits_for_an_archive_is_told(run, workspace, archive_server):
    sick = archive_server("127.0.0.1")
    sick.fails = 1
    url = f"http://localhost:{sick.server_port}/cdx?url=example.org/"
    done = run("import", url, "-w", workspace, *QUICK)
    assert (done.returncode, sick.asked) == (0, 3)
    assert f"localhost:{sick.server_port}: the archive answered 503; again in 5 s." in done.stderr


@pytest.mark.parametrize("verb", ["import", "assess", "report"])
@pytest.mark.parametrize("what", ["x.bin", "empty"])
def test_nothing_that_can_be_read_is_an_error(run, workspace, tmp_path, verb, what):
    (tmp_path / "x.bin").write_bytes(bytes(range(256)))
    (tmp_path / "empty").mkdir()
    done = run(verb, what, "-w", workspace)
    assert done.returncode == ExitCode.ERROR
    assert f"There is nothing in {what} that recrawl reads." in done.stderr
    (tmp_path / "a.cdx").write_bytes(CDX)
    assert run(verb, what, "a.cdx", "-w", workspace).returncode == 0


def test_a_path_that_is_not_there_is_an_error(run, workspace, tmp_path):
    done = run("import", tmp_path / "nothing", "-w", workspace)
    assert done.returncode == 1
    assert "Check the path" in done.stderr


@pytest.mark.big
def test_everything_at_hand_can_be_imported(run, workspace, data_folder):
    done = run("import", data_folder / "formats", "-w", workspace, "--json", "--digests-only")
    assert done.returncode == 0
    found, unread = {}, set()
    for row in json.loads(done.stdout)["sources"]:
        path = Path(row["source"]).relative_to(data_folder / "formats").as_posix()
        if row["why_skipped"] == "1 not in a format that recrawl reads":
            unread.add(path.split("/")[0])
        else:
            found[path] = (str(row["accepted"]), str(row["broken"]), row["why_skipped"])
    lines = (Path(__file__).parents[1] / "data" / "at_hand.tsv").read_text().splitlines()
    known = {path: tuple(counts) for path, *counts, _ in (line.split("\t") for line in lines if line[0] != "#")}
    assert found == known  # tests/formats/test_formats_counts.py has each of these counted by somebody else
    assert unread == {"README.md", "gzip", "rdf", "robots_weird", "url"}


@pytest.mark.parametrize("what", ["cdxj", "cdx", "index"])
def test_an_exported_index_is_imported_as_it_was(what, run, workspace, tmp_path):
    (tmp_path / "a.cdx").write_bytes(CDX)
    run("import", tmp_path / "a.cdx", "-w", workspace)
    file = tmp_path / f"out.{'parquet' if what == 'index' else what}"
    assert run("export", file, "--what", what, "-w", workspace).returncode == 0
    run("init", tmp_path / "other")
    done = run("import", file, "-w", tmp_path / "other")
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "other") == rows(workspace)


@pytest.mark.parametrize("ending", ["link", "json", "cdxj"])
def test_an_exported_timemap_is_imported_as_it_was(ending, run, workspace, tmp_path):
    (tmp_path / "a.cdx").write_bytes(CDX)
    run("import", tmp_path / "a.cdx", "-w", workspace)
    file = tmp_path / f"map.{ending}"
    assert run("export", file, "--what", "timemap", "--url", "http://example.com/", "-w", workspace).returncode == 0
    run("init", tmp_path / "other")
    assert run("import", file, "-w", tmp_path / "other").returncode == 0
    assert [row[:2] for row in rows(tmp_path / "other")] == [
        row[:2] for row in rows(workspace) if row[0].endswith(".com/")
    ]


def test_seeds_and_graph_name_every_page(run, workspace, tmp_path):
    (tmp_path / "a.cdx").write_bytes(CDX)
    run("import", tmp_path / "a.cdx", "-w", workspace)
    for what in ("seeds", "seeds-heritrix", "seeds-nutch", "seeds-browsertrix", "graph"):
        assert run("export", tmp_path / what, "--what", what, "-w", workspace).returncode == 0
        text = (tmp_path / what).read_text()
        assert "http://example.com/x" in text


def test_what_cannot_be_exported_is_said_with_a_remedy(run, workspace, tmp_path):
    assert "--url" in run("export", tmp_path / "m.link", "--what", "timemap", "-w", workspace).stderr
    assert run("export", tmp_path / "a.wacz", "--what", "wacz", "-w", workspace).returncode == 1
    assert not (tmp_path / "a.wacz").exists()
    missing = run("export", tmp_path / "no" / "where.cdx", "--what", "cdx", "-w", workspace)
    assert "Check the folder" in missing.stderr


@pytest.mark.parametrize("name", ["x" * 5_000, "a/" * 3_000 + "b", r"a\u0000b", "y" * 300 + "/b.warc"])
def test_an_index_may_name_what_no_file_can_be_called(run, workspace, tmp_path, name):
    line = '{"url": "http://example.com/", "digest": "AYLWTCTP5Q6IQJS3ZLKZBRGIRXTTLGRG", "filename": "%s"}'
    times = ("20240101000000", "20240201000000")
    (tmp_path / "a.cdxj").write_text("".join(f"com,example)/ {time} {line % name}\n" for time in times))
    assert run("import", tmp_path / "a.cdxj", "-w", workspace).returncode == 0
    assert len(rows(workspace)) == 2
    assert run("verify", "-w", workspace).returncode == 0
    packed = run("export", tmp_path / "a.wacz", "-w", workspace)
    assert (packed.returncode, "2 captures in no file" in packed.stderr) == (ExitCode.ERROR, True)


def test_parquet_whose_column_metadata_is_damaged_does_not_end_the_process(run, workspace):
    """The library that reads it throws past all handlers if it is asked for the metadata of that column."""
    file = Path(__file__).parents[1] / "data" / "damaged-histogram.parquet"
    done = run("import", file, "-w", workspace)
    assert done.returncode == 0
    assert "row group 1 of 1: it cannot be read" in done.stderr
