"""pywb shows what our writer wrote, each visit at its own time (conventions W6, W7, W9)."""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import pytest

from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
from recrawl.model import Capture
from recrawl.time import VirtualClock, to_timestamp14

FIRST, SAME, NOT_MODIFIED = 1_700_000_000.25, 1_700_086_400.5, 1_700_172_800.75
BODY = "<!doctype html><title>é</title><p>The first and only version.</p>".encode()
CHUNKED_BODY = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (BODY[:20], BODY[20:])) + b"0\r\n\r\n"
PLAIN, CHUNKED = "http://example.org/plain?b=1", "http://example.org/chunked"
ENDPOINT, WHOLE = "http://example.org/sparql", "http://example.org/sparql?query-sha256=00"
REQUEST = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"


@dataclass(frozen=True)
class Memento:
    status: int
    time: float
    body: bytes


def answer(url, time, *, chunked=False):
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(BODY)
    body = CHUNKED_BODY if chunked else BODY
    return Capture(url, time, 200, HTML + framing + b"\r\n\r\n", body, REQUEST, "192.0.2.7")


def not_modified(url):
    return Capture(url, NOT_MODIFIED, 304, b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n', b"", REQUEST)


@pytest.fixture(scope="session")
def our_warcs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    with WarcWriter(folder, VirtualClock(FIRST), WarcInfo(prefix="JUDGED", host="crawler")) as writer:
        for url, chunked in ((PLAIN, False), (CHUNKED, True)):
            original = writer.write(answer(url, FIRST, chunked=chunked)).ref
            writer.write(answer(url, SAME, chunked=chunked), revisit_of=original)
            writer.write(not_modified(url), revisit_of=original)
        posted = b"POST /sparql HTTP/1.1\r\nHost: example.org\r\nContent-Length: 7\r\n\r\nquery=x"
        rows = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
        writer.write(Capture(ENDPOINT, FIRST, 200, rows, b"[]", posted))
        made = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
        writer.write(Capture(WHOLE, FIRST, 200, made, b"[1, 2]", made=True))
    return folder


def replayed(base, when, url):
    with urllib.request.urlopen(f"{base}/{to_timestamp14(when)}id_/{url}", timeout=30) as reply:
        said = parsedate_to_datetime(reply.headers["Memento-Datetime"]).timestamp()
        return Memento(reply.status, said, reply.read())


@pytest.mark.parametrize("url", [PLAIN, CHUNKED])
@pytest.mark.parametrize("when", [FIRST, SAME, NOT_MODIFIED], ids=["response", "same-payload", "not-modified"])
def test_pywb_replays_every_visit_at_its_own_time(pywb, our_warcs, when, url):
    assert replayed(pywb(our_warcs), when, url) == Memento(200, float(int(when)), BODY)


def test_pywb_replays_what_was_put_together(pywb, our_warcs):
    assert replayed(pywb(our_warcs), FIRST, WHOLE) == Memento(200, float(int(FIRST)), b"[1, 2]")


def test_pywb_lists_three_visits(pywb, our_warcs):
    with urllib.request.urlopen(f"{pywb(our_warcs)}/cdx?url={PLAIN}", timeout=30) as reply:
        lines = reply.read().decode().splitlines()
    assert [line.split()[1] for line in lines] == ["20231114221320", "20231115221320", "20231116221320"]
