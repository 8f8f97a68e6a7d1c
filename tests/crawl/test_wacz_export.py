"""Packages of what the store's captures lie in."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

from recrawl.errors import InputError
from recrawl.formats.wacz import WaczInfo
from recrawl.formats.warc.warc_reader import read_capture
from recrawl.formats.warc.warc_stream import fastwarc
from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
from recrawl.model import Capture
from recrawl.store.open import open_store
from recrawl.store.store_values import CaptureColumns, ImportMark
from recrawl.time import VirtualClock
from recrawl.transfer.wacz_export import FileLocation, pack, pages_of, sentences

START = 1_700_000_000.0
INFO = WaczInfo(START)


@pytest.fixture
def store(tmp_path):
    with open_store(str(tmp_path / "store.db"), create=True) as opened:
        yield opened


def note(store, urls, file):
    """One capture of each URL in a file, as an import notes it."""
    count = len(urls)
    store.set_import_mark(ImportMark(str(file), "fingerprint", count, finished=True))
    page = store.discover(urls, START)
    numbers = np.arange(count)
    store.add_captures(
        CaptureColumns(
            page, START + numbers, np.full(count, 200), ["text/html"] * count, [b""] * count, np.full(count, -1),
            [str(file)] * count, numbers, numbers + 1,
        )
    )  # fmt: skip


def archive(folder, urls, mime="text/html"):
    """A WARC file with one capture of each URL."""
    with WarcWriter(folder, VirtualClock(START), WarcInfo(host="crawler")) as writer:
        for number, url in enumerate(urls):
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: 1\r\n\r\n".encode()
            writer.write(Capture(url, START + number, 200, head, b"x", b"GET / HTTP/1.1\r\n\r\n"))
    return writer.path


def test_what_is_done_is_told(store, tmp_path):
    path = archive(tmp_path / "out", ["http://a.org/", "http://a.org/b"])
    note(store, ["http://a.org/", "http://a.org/b"], path)
    told = {}
    pack(
        store,
        tmp_path / "warc",
        tmp_path / "a.wacz",
        INFO,
        progress=lambda *one: told.setdefault(one[0], []).append(one[1:]),
    )
    size = path.stat().st_size
    assert {work: steps[-1] for work, steps in told.items()} == {
        "pages looked through": (2, 2),
        "bytes indexed": (size, size),
        "bytes packed": (size, size),
    }
    for steps in told.values():
        done = [step[0] for step in steps]
        assert done == sorted(done)


def test_files_of_the_workspace_are_packed_though_no_page_lies_in_them(store, tmp_path):
    ours = archive(tmp_path / "warc", ["http://a.org/robots.txt"], "text/plain")
    packed = pack(store, tmp_path / "warc", tmp_path / "a.wacz", INFO)
    assert (packed.warcs, packed.records, packed.pages) == (1, 1, 0)
    with zipfile.ZipFile(tmp_path / "a.wacz") as parts:
        assert parts.read(f"archive/{ours.name}") == ours.read_bytes()


@pytest.mark.parametrize("ending", ["gz", "lz4", "zst"])
def test_a_file_in_an_odd_packing_is_packed_so_that_all_can_replay_it(ending, store, tmp_path):
    """One long stream of gzip, LZ4 or zstd; the records stay as they are."""
    urls = ["http://a.org/", "http://a.org/b"]
    text = gzip.decompress(archive(tmp_path / "out", urls).read_bytes())
    odd = tmp_path / f"odd.warc.{ending}"
    writer = {"gz": "GzipWriter", "lz4": "Lz4Writer", "zst": "ZstdWriter"}[ending]
    with odd.open("wb") as file:
        packing = getattr(fastwarc(), writer)(file)
        packing.write(text)
        packing.close()
    note(store, urls, odd)
    packed = pack(store, tmp_path / "warc", tmp_path / "a.wacz", INFO)
    assert (packed.warcs, packed.records, packed.repacked, packed.not_alone, packed.elsewhere) == (1, 2, 1, 0, {})
    assert any("record by record" in said for said in sentences(packed))
    with zipfile.ZipFile(tmp_path / "a.wacz") as parts:
        parts.extract("archive/odd.warc.gz", tmp_path)
        index = gzip.decompress(parts.read("indexes/index.cdx.gz")).splitlines()
    assert gzip.decompress((tmp_path / "archive" / "odd.warc.gz").read_bytes()) == text
    for line, url in zip(index, urls, strict=True):
        place = json.loads(line.split(b" ", 2)[2])
        assert read_capture(tmp_path / "archive" / "odd.warc.gz", int(place["offset"])).url == url == place["url"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_nothing_at_hand_is_said_with_the_reason(store, tmp_path):
    note(store, ["http://a.org/"], "far.warc.gz")
    with pytest.raises(InputError, match="1 capture in files that are not here"):
        pack(store, tmp_path / "warc", tmp_path / "a.wacz", INFO)
    assert not (tmp_path / "a.wacz").exists()


def test_a_file_that_is_still_written_is_left_out(store, tmp_path):
    archive(tmp_path / "warc", ["http://a.org/"])
    with WarcWriter(tmp_path / "warc", VirtualClock(START + 1), WarcInfo(host="crawler")) as writer:
        note(store, ["http://a.org/b"], writer.path.name)
        packed = pack(store, tmp_path / "warc", tmp_path / "a.wacz", INFO)
    assert packed.warcs == 1
    assert packed.elsewhere == {FileLocation.OPEN: 1}


def line(url, when, **fields):
    text = json.dumps({"url": url, "mime": "text/html", "status": "200"} | fields)
    return f"org,a)/{url[13:]} {when} {text}\n".encode()


def test_pages_are_the_last_good_captures_of_what_stands_alone():
    lines = [
        line("http://a.org/", 20240101000000),
        line("http://a.org/", 20240102000000),
        line("http://a.org/", 20240103000000, status="404"),
        line("http://a.org/", 20240104000000, mime="warc/revisit"),
        line("http://a.org/data.csv", 20240101000000, mime="text/csv"),
        line("http://a.org/gone", 20240101000000, status="404"),
        line("http://a.org/logo", 20240101000000, mime="image/png"),
        line("http://a.org/robots.txt", 20240101000000, mime="text/plain"),
        line("http://a.org/style", 20240101000000, mime="text/css"),
    ]
    assert [(page.url, page.fields()["ts"]) for page in pages_of(iter(lines))] == [
        ("http://a.org/", "2024-01-02T00:00:00Z"),
        ("http://a.org/data.csv", "2024-01-01T00:00:00Z"),
    ]


def test_memory_does_not_grow_with_the_index():
    """Ten thousand lines are passed through, not held."""
    lines = (line(f"http://a.org/{number:06}", 20240101000000) for number in range(10_000))
    tracemalloc.start()
    try:
        assert sum(1 for _ in pages_of(lines)) == 10_000
        assert tracemalloc.get_traced_memory()[1] < 1 << 19
    finally:
        tracemalloc.stop()
