"""Bytes that a real pywb serves come home: by its CDX server and by its TimeMaps, as they were captured."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from recrawl.detect import decoded
from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
from recrawl.formats.warc.warc_records import payload_sha1
from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
from recrawl.model import Capture
from recrawl.store.open import open_store
from recrawl.time import DAY, VirtualClock

START = 1_700_000_000.0
HOME, OTHER = "http://example.org/", "http://example.org/other?b=1&a=2"
HTML = b"HTTP/1.1 200 OK\r\nServer: Original/1\r\nContent-Type: text/html\r\n"
QUICK = ("--set", "politeness.min_delay=0s", "--set", "politeness.factor=0", "--set", "fetch.contact=a@example.org")


def page(url, day, *names):
    body = b"".join(b'<a href="/%s">x</a>' % name.encode() for name in names)
    return Capture(url, START + day * DAY, 200, HTML + b"Content-Length: %d\r\n\r\n" % len(body), body)


WRITTEN = [
    page(HOME, 0, "one"),
    page(HOME, 1, "one"),  # becomes a revisit
    page(HOME, 2, "one", "two"),
    page(HOME, 3, "one"),
    page(OTHER, 1, "three"),
    page(OTHER, 4, "three", "four"),
]


@pytest.fixture(scope="session")
def theirs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theirs")
    with WarcWriter(folder, VirtualClock(START), WarcInfo(prefix="THEIRS", host="crawler")) as writer:
        last = {}
        for capture in WRITTEN:
            last[capture.url] = writer.write(capture, revisit_of=last.get(capture.url)).ref
    return folder


@pytest.fixture
def theirs_served(pywb, theirs):
    return pywb(theirs)


@pytest.fixture
def workspace(recrawl, tmp_path):
    recrawl("init", tmp_path / "ws")
    return tmp_path / "ws"


def recrawl_json(*words):
    done = subprocess.run(
        [sys.executable, "-m", "recrawl", *map(str, words)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("question", "fetched"), [("/cdx?url=example.org/*", 4), (f"/timemap/link/{HOME}", 4)], ids=["CDX", "TimeMap"]
)
def test_what_pywb_holds_comes_home(workspace, theirs_served, tool, question, fetched):
    url = theirs_served + question
    words = ("import", url, "--bytes", "-w", workspace, "--json", *QUICK)
    few = recrawl_json(*words, "--limit", 1)
    assert (few["bytes"]["captures"], few["bytes"]["waiting"], few["bytes"]["ended_by"]) == (1, fetched - 1, "captures")
    rest = recrawl_json(*words)
    assert (rest["bytes"]["captures"], rest["bytes"]["waiting"]) == (fetched - 1, 0)
    assert (rest["bytes"]["differing"], rest["bytes"]["missing"], rest["errors"]) == (0, 0, [])
    with open_store(workspace / "recrawl.db") as store:
        assert store.visits(pages=np.array([store.find(HOME).id])).new_internal.tolist()[1:] == [0, 1, 0]
        archived = ArchivedBytes(workspace / "warc", imported_into(store))
        captures = store.captures(np.array([store.find(HOME).id]))
        ours = [(one, archived.read(one.warc_file, one.warc_offset)) for one in captures if archived.has(one.warc_file)]
    written = {one.time: one for one in WRITTEN if one.url == HOME}
    assert {one.time for one, _ in ours} <= set(written)
    assert len(ours) == (2 if "cdx" in question else 4)
    for one, capture in ours:
        assert decoded(capture) == decoded(written[one.time])
        assert capture.header("server") == "Original/1"
        assert one.digest == payload_sha1(written[one.time])
    for path in (workspace / "warc").glob("*.warc.gz"):
        checked = tool("warcio", "check", "-v", path)
        assert checked.returncode == 0, checked.stdout
    known = recrawl_json("rates", "--kind", "new-links", "-w", workspace, "--json")
    assert [row["changes"] for row in known if row["url"] == HOME] == [1]


def test_bytes_are_asked_of_archives_only(recrawl, tmp_path):
    recrawl("init", tmp_path / "ws")
    for words, said in (
        (("nothing.cdx", "--bytes"), "There is no file"),
        (("http://127.0.0.1:9/CC-MAIN-2025-33-index?url=x.org", "--bytes"), "--replay"),
        (("http://127.0.0.1:9/coll/cdx?url=x.org", "--limit", "3"), "--bytes"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "recrawl", "import", *words, "-w", str(tmp_path / "ws")],
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode != 0
        assert said in done.stderr
