"""``warcio check -v`` accepts our files (conventions W9)."""

from __future__ import annotations

from recrawl.formats.warc import WarcWriter
from recrawl.model import Capture
from recrawl.time import VirtualClock

START = 1_700_000_000.25
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n"
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
REQUEST = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"


def pages(count):
    return [Capture(f"http://example.org/{n}", START + n, 200, HEAD, b"%05d" % n, REQUEST) for n in range(count)]


def test_warcio_accepts_responses_and_both_kinds_of_revisit(tool, tmp_path):
    with WarcWriter(tmp_path, VirtualClock(START)) as writer:
        for page in pages(20):
            original = writer.write(page).ref
            writer.write(page, revisit_of=original)
            not_modified = Capture(page.url, page.time + 60, 304, b"HTTP/1.1 304 Not Modified\r\n\r\n", b"", REQUEST)
            writer.write(not_modified, revisit_of=original)
    checked = tool("warcio", "check", "-v", *tmp_path.iterdir())
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count("digest present but not checked (revisit)") == 40
    assert checked.stdout.count("digest pass") == 1 + 20 * (1 + 3 + 1)  # warcinfo; response, requests, metadata


def test_warcio_disagrees_about_chunks_alone(tool, tmp_path):
    """W5 is the standard's digest; warcio takes another for chunked answers, and only its payload digest differs."""
    with WarcWriter(tmp_path, VirtualClock(START)) as writer:
        writer.write(Capture("http://example.org/", START, 200, CHUNKED_HEAD, b"5\r\nhello\r\n0\r\n\r\n", REQUEST))
    checked = tool("warcio", "check", "-v", *tmp_path.iterdir())
    assert checked.returncode == 1
    assert "payload digest failed" in checked.stdout
    assert "block digest failed" not in checked.stdout
