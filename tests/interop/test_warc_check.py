"""``warcio check -v`` accepts our files (conventions W9)."""

from __future__ import annotations

import gzip
import threading
import urllib.request
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.detect import unchunked
from recrawl.formats.warc.warc_reader import read_capture
from recrawl.formats.warc.warc_records import payload_sha1, records_of, written
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture
from recrawl.store.open import open_store
from recrawl.time import VirtualClock, to_timestamp14

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


# -- chunked answers ---------------------------------------------------------------------------------


def chunks(*parts, end=b"0\r\n\r\n"):
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + end


PAGE = b"<!doctype html><title>A page in chunks</title><p>" + b"Some words. " * 40
WHOLE = chunks(PAGE[:100], PAGE[100:])
KINDS = {
    "one": (b"", chunks(PAGE)),
    "many": (b"", chunks(*(PAGE[n : n + 7] for n in range(0, len(PAGE), 7)))),
    "extension": (b"", b"5;name=value\r\nhello\r\n0;last\r\n\r\n"),
    "trailers": (b"Trailer: X-Sum\r\n", chunks(PAGE, end=b"0\r\nX-Sum: 12\r\nX-More: a: b\r\n\r\n")),
    "gzip": (b"Content-Encoding: gzip\r\n", chunks(gzip.compress(PAGE)[:50], gzip.compress(PAGE)[50:])),
    "empty": (b"", chunks()),
    "length-too": (b"Content-Length: 7\r\n", WHOLE),
    "hex-inside": (b"Content-Type: text/plain\r\n", chunks(b"42\r\n5\r\nhello\r\n0\r\n\r\n")),
    "bare-line-feeds": (b"", b"5\nhello\n0\n\n"),
    "no-end": (b"", chunks(PAGE, end=b"")),
    "cut-in-chunk": (b"", WHOLE[:-40]),
    "cut-in-size": (b"", chunks(PAGE, end=b"1f")),
    "no-chunks": (b"", b"<p>This is not chunked at all.</p>"),
    "negative": (b"", b"-5\r\nhello\r\n0\r\n\r\n"),
    "garbage-later": (b"", chunks(PAGE, end=b"zz\r\nmore\r\n")),
}
"""Headers beside Transfer-Encoding, and the body as sent."""
WHOLE_KINDS = ("one", "many", "trailers", "gzip", "hex-inside")


class Chunked(BaseHTTPRequestHandler):
    """Serves the kinds; each at a path of its own, all linked from the first page."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        kind = self.path.strip("/")
        if kind == "robots.txt":
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(b"User-agent: *\nAllow: /")
            )
            return
        links = b"".join(b"<a href=/%s>x</a>" % name.encode() for name in KINDS)
        headers, body = KINDS[kind] if kind else (b"", chunks(links))
        kind_of = b"" if b"Content-Type" in headers else b"Content-Type: text/html\r\n"
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + kind_of + headers + b"\r\n"
        self.wfile.write(head + body)
        self.close_connection = True

    def log_message(self, *_):
        pass


def times_of(store, url):
    """When a page was visited."""
    return store.visits(pages=np.array([store.find(url).id])).time.tolist()


@pytest.fixture(scope="module")
def chunked_crawl(tmp_path_factory, recrawl):
    """A workspace after two visits of each page of a server that sends everything in chunks, and the site."""
    folder = tmp_path_factory.mktemp("chunked") / "ws"
    with ThreadingHTTPServer(("127.0.0.1", 0), Chunked) as server:
        threading.Thread(target=server.serve_forever).start()
        site = f"http://127.0.0.1:{server.server_port}"
        quick = ["politeness.min_delay=10ms", "politeness.factor=0", "politeness.ip_delay=0", "politeness.retry=1s"]
        settings = [*quick, "fetch.allow_networks=127.0.0.1", "fetch.contact=me@example.org", "schedule.budget=1000/s"]
        settings += ["schedule.policy=uniform"]
        options = [word for setting in settings for word in ("--set", setting)]
        try:
            recrawl("init", folder)
            recrawl("add", "-w", folder, f"{site}/", *(f"{site}/{kind}" for kind in KINDS))
            for times in range(30):
                recrawl("run", "-w", folder, "--for", f"{6 + 3 * times}s", *options)  # a busy machine starts slowly
                with open_store(folder / "recrawl.db") as store:
                    store.set_host(store.hosts().id, ready_at=np.zeros(len(store.hosts().id)))
                    if all(len(times_of(store, f"{site}/{kind}")) > 1 for kind in WHOLE_KINDS):
                        break
        finally:
            server.shutdown()
    return folder, site


def test_warcio_finds_no_fault_in_a_crawl_of_chunked_answers(tool, chunked_crawl):
    folder, site = chunked_crawl
    checked = tool("warcio", "check", "-v", *(folder / "warc").iterdir())
    assert checked.returncode == 0, checked.stdout
    assert "failed" not in checked.stdout
    kept = records(folder)
    assert {url.removeprefix(site).strip("/") for url, kind in kept if kind == "response"} >= {"", *KINDS, "robots.txt"}
    assert any(kind == "revisit" for _, kind in kept)


def records(folder):
    """Head, body and trailers of each record of the archive by URL and type; of several the first."""
    found = {}
    for file in sorted((folder / "warc").iterdir()):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                fields = record.rec_headers
                where = fields.get_header("WARC-Target-URI"), fields.get_header("WARC-Type")
                headers = dict(record.http_headers.headers) if record.http_headers else {}
                found.setdefault(where, (headers, record.content_stream().read()))
    return found


def test_chunks_are_taken_off_and_named_where_they_were(chunked_crawl):
    folder, site = chunked_crawl
    kept = records(folder)
    for kind in ("one", "many", "trailers", "length-too", "no-end"):
        headers, body = kept[f"{site}/{kind}", "response"]
        assert (headers["X-Orig-Transfer-Encoding"], body) == ("chunked", PAGE), kind
        assert not {"Transfer-Encoding", "Content-Length"} & set(headers)
    assert kept[f"{site}/length-too", "response"][0]["X-Orig-Content-Length"] == "7"
    assert kept[f"{site}/hex-inside", "response"][1] == b"42\r\n5\r\nhello\r\n0\r\n\r\n"
    assert kept[f"{site}/no-chunks", "response"][1] == KINDS["no-chunks"][1]
    said = kept[f"{site}/trailers", "metadata"][1]
    assert b"httpTrailer: X-Sum: 12\r\nhttpTrailer: X-More: a: b\r\n" in said


def test_pywb_replays_chunked_answers_and_their_revisits(pywb, chunked_crawl):
    folder, site = chunked_crawl
    expected = dict.fromkeys(WHOLE_KINDS, PAGE)
    expected["hex-inside"] = b"42\r\n5\r\nhello\r\n0\r\n\r\n"
    with open_store(folder / "recrawl.db") as store:
        for kind, body in expected.items():
            times = times_of(store, f"{site}/{kind}")
            assert len(times) > 1
            for when in (times[0], times[1], times[-1]):
                asked = f"{pywb(folder / 'warc')}/{to_timestamp14(when)}id_/{site}/{kind}"
                with urllib.request.urlopen(asked, timeout=30) as reply:
                    said = reply.read()
                    gzipped = reply.headers.get("Content-Encoding") == "gzip"
                    assert (gzip.decompress(said) if gzipped else said) == body, (kind, when)


def test_what_was_written_is_imported_and_exported_again(tool, recrawl, chunked_crawl, tmp_path):
    folder, site = chunked_crawl
    recrawl("export", "-w", folder, tmp_path / "out.wacz")
    done = tool("wacz", "validate", "-f", tmp_path / "out.wacz")
    assert done.returncode == 0, done.stdout + done.stderr
    recrawl("init", tmp_path / "again")
    recrawl("import", "-w", tmp_path / "again", *(folder / "warc").iterdir())
    with open_store(folder / "recrawl.db") as ours, open_store(tmp_path / "again" / "recrawl.db") as again:
        for kind in KINDS:
            before, after = (store.captures(np.array([store.find(f"{site}/{kind}").id])) for store in (ours, again))
            assert [capture.digest for capture in before] == [capture.digest for capture in after], kind


def test_chunks_of_archives_written_before_are_still_read(tool, tmp_path):
    """The old form: chunks as received, the digest of what is in them. A revisit of it keeps the head that it needs."""
    url, head = "http://example.org/", CHUNKED_HEAD
    capture = Capture(url, START, 200, head, chunks(PAGE), REQUEST)
    [digest] = written([payload_sha1(capture)])
    ref, [response, *rest] = records_of(capture, digest, None, {})
    old = response._replace(block=(head, chunks(PAGE)))
    with WarcWriter(tmp_path, VirtualClock(START)) as writer:
        [[place]] = writer.append([[old, *rest]])
        for later, chunked in ((60, True), (120, False)):
            writer.write(replace(capture, time=START + later), revisit_of=ref._replace(chunked=chunked))
    read = read_capture(tmp_path / place.file, place.offset)
    assert (read.raw_head, read.raw_body, unchunked(read)) == (head, chunks(PAGE), PAGE)
    with (tmp_path / place.file).open("rb") as stream:
        heads = [dict(each.http_headers.headers) for each in ArchiveIterator(stream) if each.rec_type == "revisit"]
    assert heads == [{"Transfer-Encoding": "chunked"}, {"X-Orig-Transfer-Encoding": "chunked"}]
    assert "payload digest failed" in tool("warcio", "check", "-v", tmp_path / place.file).stdout
