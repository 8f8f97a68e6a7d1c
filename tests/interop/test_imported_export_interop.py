"""Archives of strangers, imported from where they lie: pywb and the wacz tool accept what we export of them."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.timemap import read_timemap
from recrawl.formats.wacz import WaczReader
from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
from recrawl.model import Capture
from recrawl.time import DAY, VirtualClock, to_timestamp14

START = 1_700_000_000.0
URL = "http://example.org/page"
SAMPLES = Path(__file__).parents[1] / "data" / "formats" / "warcio"
WHOLE = ("example.warc.gz", "example-iana.org-chunked.warc", "example-wget-bad-target-uri.warc.gz")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory, recrawl):
    """What two folders with files of the same name hold, and some samples; all stay where they are."""
    folder = tmp_path_factory.mktemp("imported")
    for day, name in enumerate(("old", "young")):
        with WarcWriter(folder / name, VirtualClock(START), WarcInfo(host="crawler")) as writer:
            body = f"as of {name}".encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
            writer.write(Capture(URL, START + day * DAY, 200, head, body, b"GET /page HTTP/1.1\r\n\r\n"))
        writer.path.rename(folder / name / "crawl.warc.gz")
    recrawl("init", folder / "archive")
    samples = [SAMPLES / name for name in WHOLE]
    recrawl("import", folder / "old", folder / "young", *samples, "-w", folder / "archive")
    return folder / "archive"


def test_the_wacz_tool_accepts_a_package_of_imported_files(workspace, tmp_path, tool, recrawl):
    recrawl("export", tmp_path / "all.wacz", "-w", workspace)
    judged = tool("wacz", "validate", "-f", tmp_path / "all.wacz")
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "Validation succeeded" in judged.stdout
    report = ReadReport()
    with WaczReader(tmp_path / "all.wacz", report) as package:
        assert len(package.warcs) == 5
        assert package.check(report) == len(package.names) - 1  # all but the digest of the list itself
        assert {page.url for page in package.pages(report)} >= {URL, "http://www.iana.org/"}
    assert report.bad == 0


def test_pywb_replays_a_package_of_imported_files(workspace, tmp_path, tool, wayback, recrawl):
    recrawl("export", tmp_path / "all.wacz", "-w", workspace)
    assert tool("wb-manager", "init", "judged", folder=tmp_path).returncode == 0
    done = tool("wb-manager", "add", "--unpack-wacz", "judged", tmp_path / "all.wacz", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    with wayback(tmp_path) as base:
        assert replayed(base) == [b"as of old", b"as of young"]


def test_pywb_replays_imported_files_where_they_lie(workspace, tmp_path, wayback, recrawl):
    """With our index, and with our list of where the files are."""
    recrawl("export", tmp_path / "all.cdxj", "--path-index", tmp_path / "paths.txt", "-w", workspace)
    (tmp_path / "config.yaml").write_text(
        "collections:\n  judged:\n    index_paths: ./all.cdxj\n    archive_paths: ./paths.txt\n", encoding="utf-8"
    )
    with wayback(tmp_path) as base:
        assert replayed(base) == [b"as of old", b"as of young"]


def test_pywb_shows_every_memento_of_our_timemap_where_it_says(workspace, tmp_path, tool, wayback, recrawl):
    """Its own map lists the same captures, under the same addresses but for the letters of its frames."""
    recrawl("export", tmp_path / "all.wacz", "-w", workspace)
    assert tool("wb-manager", "init", "judged", folder=tmp_path).returncode == 0
    assert tool("wb-manager", "add", "--unpack-wacz", "judged", tmp_path / "all.wacz", folder=tmp_path).returncode == 0
    with wayback(tmp_path) as base:
        recrawl("export", tmp_path / "map.link", "--url", URL, "--base-url", base, "-w", workspace)
        ours = read_timemap((tmp_path / "map.link").read_bytes(), "ours", ReadReport(strict=True))
        with urllib.request.urlopen(ours.self_uri, timeout=30) as answer:
            theirs = read_timemap(answer.read(), "theirs", ReadReport(strict=True))
        for memento in ours.mementos:
            with urllib.request.urlopen(memento.uri, timeout=30) as answer:
                assert answer.status == 200
        with urllib.request.urlopen(ours.timegate, timeout=30) as answer:
            assert 'rel="original"' in answer.headers["Link"]
    assert [(one.original, one.time) for one in ours.mementos] == [(one.original, one.time) for one in theirs.mementos]
    assert [one.uri for one in ours.mementos] == [one.uri.replace("mp_/", "/") for one in theirs.mementos]
    assert (ours.original, ours.self_uri) == (theirs.original, theirs.self_uri)


def replayed(base):
    """What the page was on both days."""
    found = []
    for day in (0, 1):
        with urllib.request.urlopen(f"{base}/{to_timestamp14(START + day * DAY)}id_/{URL}", timeout=30) as answer:
            found.append(answer.read())
    return found
