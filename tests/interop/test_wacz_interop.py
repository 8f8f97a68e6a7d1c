"""The wacz tool and pywb accept the WACZ files we write (conventions Z1)."""

from __future__ import annotations

import io
import json
import urllib.request

import pytest

from recrawl.formats.cdx.cdxj import write_cdxj
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.wacz import WaczInfo, WaczPage, WaczReader, write_wacz
from recrawl.formats.warc.warc_reader import index_warc
from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
from recrawl.model import Capture
from recrawl.time import DAY, VirtualClock, to_timestamp14

START = 1_700_000_000.0
PAGES = [f"http://example.org/{number}" for number in range(3)]


def capture(url, day, text):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(text)
    return Capture(url, START + day * DAY, 200, head, text, b"GET / HTTP/1.1\r\n\r\n")


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A WACZ of two WARC files, with responses and a revisit of each page."""
    folder = tmp_path_factory.mktemp("packed")
    warcs, batches, refs = [], [], {}
    for day in (0, 1):
        with WarcWriter(folder, VirtualClock(START + day), WarcInfo(prefix=f"DAY{day}", host="crawler")) as writer:
            for url in PAGES:
                refs[url] = writer.write(capture(url, day, url.encode()), revisit_of=refs.get(url)).ref
        warcs.append(writer.path)
        batches += index_warc(writer.path, ReadReport(strict=True))
    index = io.BytesIO()
    assert write_cdxj(batches, index) == 6
    index.seek(0)
    pages = [WaczPage(url, START, title=f"Page {url}") for url in PAGES]
    path = folder / "ours.wacz"
    write_wacz(path, warcs, index, pages, WaczInfo(START, title="Ours", description="é", main_page=pages[0]))
    return path


def test_the_wacz_tool_accepts_it(tool, packed):
    done = tool("wacz", "validate", "-f", packed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Validation succeeded" in done.stdout


def test_the_wacz_tool_notices_a_changed_byte(tool, packed, tmp_path):
    """The judge judges."""
    data = bytearray(packed.read_bytes())
    data[data.index(b"DAY0-") + 400] ^= 1
    spoilt = tmp_path / "spoilt.wacz"
    spoilt.write_bytes(data)
    assert tool("wacz", "validate", "-f", spoilt).returncode != 0
    with WaczReader(spoilt, ReadReport()) as reader:
        report = ReadReport()
        reader.check(report)
    assert report.bad == 1


def test_pywb_makes_a_collection_of_it_and_replays_it(tool, wayback, packed, tmp_path):
    assert tool("wb-manager", "init", "judged", folder=tmp_path).returncode == 0
    done = tool("wb-manager", "add", "--unpack-wacz", "judged", packed, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (index,) = (tmp_path / "collections" / "judged" / "indexes").glob("*.cdxj")
    lines = [line for line in index.read_text().splitlines() if not line.startswith("!")]
    rows = [(line.split(" ")[1], json.loads(line.split(" ", 2)[2])) for line in lines]
    assert sorted({(when, row["url"]) for when, row in rows}) == sorted(
        (to_timestamp14(START + day * DAY), url) for day in (0, 1) for url in PAGES
    )
    warcs = {path.name for path in (tmp_path / "collections" / "judged" / "archive").iterdir()}
    assert {row["filename"] for _, row in rows} == warcs
    assert len(warcs) == 2
    with wayback(tmp_path) as base:
        for day in (0, 1):
            url = f"{base}/{to_timestamp14(START + day * DAY)}id_/{PAGES[1]}"
            with urllib.request.urlopen(url, timeout=30) as reply:
                assert reply.read() == PAGES[1].encode()
