"""``recrawl import`` and ``export``: what goes in comes out, and goes in again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from recrawl.store.open import open_store

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
    again = run("import", tmp_path / "a.cdx", "-w", workspace, "--json")
    assert json.loads(again.stdout)[0]["why_skipped"] == "4 imported before"
    assert rows(workspace) == before


def test_strict_stops_at_what_is_broken(run, workspace, tmp_path):
    (tmp_path / "a.cdx").write_bytes(CDX)
    done = run("import", tmp_path / "a.cdx", "-w", workspace, "--strict")
    assert done.returncode == 1
    assert "at byte" in done.stderr


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
    formats = {Path(row["source"]).name: row["format"] for row in json.loads(done.stdout)}
    assert formats == {"a.cdx": "CDX", "sitemap.xml": "sitemap", "notes.pdf": "unknown"}


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
    assert "--base-url" in missing.stderr
    assert run("import", site, "-w", workspace, "--base-url", "https://site.example/").returncode == 0
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


def test_a_path_that_is_not_there_is_an_error(run, workspace, tmp_path):
    done = run("import", tmp_path / "nothing", "-w", workspace)
    assert done.returncode == 1
    assert "Check the path" in done.stderr


@pytest.mark.big
def test_everything_at_hand_can_be_imported(run, workspace, data_folder):
    done = run("import", data_folder / "formats", "-w", workspace, "--json", "--digests-only")
    assert done.returncode == 0
    by_folder: dict[str, int] = {}
    for row in json.loads(done.stdout):
        folder = Path(row["source"]).relative_to(data_folder / "formats").parts[0]
        by_folder[folder] = by_folder.get(folder, 0) + row["accepted"]
    assert by_folder["warc"] > 500
    assert by_folder["cdx"] > 700
    assert by_folder["arc"] > 100
    assert by_folder["timemap"] > 100
    assert by_folder["sitemap"] > 100


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
