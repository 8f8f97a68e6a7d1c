"""Broken servers: whatever they send leaves a correct capture, judgement and archive record.

Each case is an answer, byte for byte, and what must be kept of it. The server closes the connection behind it.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import zlib
from dataclasses import dataclass

import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.detect import classify_change, decoded, unchunked
from recrawl.errors import InputError
from recrawl.fetch import FetchRequest, HttpFetcher, TransferLimits
from recrawl.fetch.robots_cache import RobotsCache
from recrawl.formats.sitemap_feed import read_sitemap
from recrawl.formats.warc.warc_records import head_without_chunks, is_chunked
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture, Outcome
from recrawl.model.visits import BROKEN_OFF, EMPTY, TOO_SLOW
from recrawl.time import VirtualClock

AGENT = "recrawl-test/1.0 (+https://example.org/bot)"
OK = b"HTTP/1.1 200 OK\r\n"
HI = b"Content-Length: 2\r\n\r\nhi"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Case:
    sent: bytes
    """By the server, at once; empty for a behaviour."""
    status: int = 200
    """0 if that is no answer."""
    outcome: Outcome = Outcome.FETCHED
    truncated: str = ""
    failure: int = 0
    words: str = ""
    """In the error."""
    kept: bytes | None = None
    """Head and body; all that was sent if nothing is said."""


def no_answer(sent, words="", failure=BROKEN_OFF):
    return Case(sent, 0, Outcome.UNREACHABLE, failure=failure, words=words, kept=b"")


def cut(sent):
    return Case(sent, 200, Outcome.UNREACHABLE, "disconnect")


def moved(location):
    return Case(b"HTTP/1.1 302 Found\r\n" + location + b"Content-Length: 0\r\n\r\n", 302, Outcome.REDIRECTED)


SENT = {
    # Heads that are wrong and can be read
    "space before a colon": Case(OK + b"X-Odd : 1\r\nContent-Length : 2\r\n\r\nhi"),
    "two equal lengths": Case(OK + b"Content-Length: 2\r\n" + HI),
    "a list of equal lengths": Case(OK + b"Content-Length: 2, 2\r\n\r\nhi"),
    "length and chunks": Case(OK + b"Content-Length: 99\r\n" + CHUNKED + b"2\r\nhi\r\n0\r\n\r\n"),
    "300 headers": Case(OK + b"".join(b"X-%d: y\r\n" % number for number in range(300)) + HI),
    "a folded header": Case(OK + b"X: a\r\n\tb\r\n" + HI, kept=OK + b"X: a b\r\n" + HI),
    "a header without a name": Case(OK + b": x\r\n" + HI),
    "a length beyond all numbers": cut(OK + b"Content-Length: 99999999999999999999\r\n\r\nhi"),
    "bytes that are no text": Case(b"HTTP/1.1 200 \xc3\xa9\r\nX: caf\xe9\r\n" + HI),
    "bare line feeds": Case(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi"),
    "two media types": Case(OK + b"Content-Type: text/html\r\nContent-Type: image/png\r\n" + HI),
    "HTTP in small letters": Case(b"http/1.1 200 ok\r\n" + HI),
    "HTTP/1.0 without a length": Case(b"HTTP/1.0 200 OK\r\n\r\nall of it"),
    "an unknown transfer-encoding": Case(OK + b"Transfer-Encoding: cow\r\n" + HI),
    "chunks twice": Case(OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"),
    "a trailer": Case(OK + CHUNKED + b"2\r\nhi\r\n0\r\nX-Trailer: 1\r\n\r\n"),
    "a second head in the body": Case(OK + b"\r\n" + OK + HI),
    "garbage behind the body": Case(OK + HI + b"HTTP/1.1 200 OK\r\ngarbage", kept=OK + HI),
    "a few interim answers": Case(b"HTTP/1.1 102 Processing\r\n\r\n" * 5 + OK + HI, kept=OK + HI),
    # Statuses that nobody defined
    "999": Case(b"HTTP/1.1 999 Denied\r\n" + HI, 999, Outcome.SERVER_ERROR),
    "600": Case(b"HTTP/1.1 600 Odd\r\n" + HI, 600, Outcome.SERVER_ERROR),
    "000": no_answer(b"HTTP/1.1 000 Odd\r\n" + HI, "no status line"),
    "four digits": no_answer(b"HTTP/1.1 2000 Odd\r\n" + HI, "no status line"),
    "two digits": no_answer(b"HTTP/1.1 20 Odd\r\n" + HI),
    "no status": no_answer(b"HTTP/1.1 OK\r\n" + HI),
    "HTTP/1.7": no_answer(b"HTTP/1.7 200 OK\r\n" + HI),
    "a switch of protocols": no_answer(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nwhatever"),
    "204 with a body": Case(b"HTTP/1.1 204 No\r\n" + HI, 204, kept=b"HTTP/1.1 204 No\r\n" + HI[:-2]),
    "304 that nobody asked for": Case(b"HTTP/1.1 304 No\r\n\r\n", 304, Outcome.NOT_MODIFIED),
    # Not HTTP
    "HTTP/0.9": no_answer(b"<html>nothing but a page</html>", "HTTP/0.9"),
    "ICY": no_answer(b"ICY 200 OK\r\n" + HI, "HTTP/0.9"),
    "a line without a colon": no_answer(OK + b"no colon here\r\n" + HI, "colon"),
    "different lengths": no_answer(OK + b"Content-Length: 5\r\n" + HI, "Content-Length"),
    "a length in words": no_answer(OK + b"Content-Length: two\r\n\r\nhi", "Content-Length"),
    "a length below zero": no_answer(OK + b"Content-Length: -2\r\n\r\nhi", "Content-Length"),
    "NUL in a header": no_answer(OK + b"X: a\0b\r\n" + HI, "NUL"),
    "a carriage return in a header": no_answer(OK + b"X: a\rb\r\n" + HI, "Carriage return"),
    "6,000 headers": no_answer(OK + b"".join(b"X-%d: y\r\n" % number for number in range(6_000)) + HI, "headers"),
    "a header of 1 MB": no_answer(OK + b"X: " + b"a" * 1_000_000 + b"\r\n" + HI, "A line of the head of the answer"),
    "a header of 100 KB": no_answer(OK + b"X: " + b"a" * 102_395 + b"\r\n" + HI, "has 102400 bytes or more"),
    "a header of almost 100 KB": Case(OK + b"X: " + b"a" * 102_394 + b"\r\n" + HI),
    "a head of 280 KB": no_answer(OK + (b"X: " + b"a" * 40_000 + b"\r\n") * 7 + HI, "is longer than 262144 bytes"),
    "a head of almost 256 KB": Case(OK + (b"X: " + b"a" * 40_000 + b"\r\n") * 6 + HI),
    "a storm of interim answers": no_answer(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000 + OK + HI, "20 interim answers"),
    "a length of 5,000 digits": cut(OK + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\nhi!"),
    "a length of 2^63": cut(OK + b"content-length:\t009223372036854775808\r\n\r\nhi!"),
    "a length of 5,000 digits, and chunks": Case(
        OK + b"Content-Length: " + b"9" * 5_000 + b"\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
    ),
    "only an interim answer": no_answer(b"HTTP/1.1 100 Continue\r\n\r\n", failure=EMPTY),
    "half a head": no_answer(OK + b"Content-Le"),
    "a head without an end": no_answer(OK + b"Content-Length: 2\r\n"),
    "nothing": no_answer(b"", "Empty reply", EMPTY),
    # Bodies that are wrong
    "a body cut short": cut(OK + b"Content-Length: 9\r\n\r\nhi"),
    "a chunk cut short": cut(OK + CHUNKED + b"9\r\nhi"),
    "no last chunk": cut(OK + CHUNKED + b"2\r\nhi\r\n"),
    "a chunk size in words": cut(OK + CHUNKED + b"2\r\nhi\r\nzz\r\nhi\r\n0\r\n\r\n"),
    "a chunk size beyond all numbers": cut(OK + CHUNKED + b"ffffffffffffffffff\r\nhi\r\n0\r\n\r\n"),
    "a chunk size below zero": cut(OK + CHUNKED + b"-2\r\nhi\r\n0\r\n\r\n"),
    "gzip that is none": Case(OK + b"Content-Encoding: gzip\r\n" + HI),
    "gzip cut short": Case(OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello " * 9, mtime=0)[:20]),
    "an encoding not asked for": Case(OK + b"Content-Encoding: br\r\n" + HI),
    # Redirects that lead nowhere
    "a redirect to nowhere": moved(b""),
    "a redirect to itself": moved(b"Location: /\r\n"),
    "a redirect to a script": moved(b"Location: javascript:alert(1)\r\n"),
    "a redirect to 90,000 letters": moved(b"Location: /" + b"a" * 90_000 + b"\r\n"),
    "two places to go": no_answer(b"HTTP/1.1 301 Moved\r\nLocation: /a\r\nLocation: /b\r\n\r\n", "Location"),
}


async def _reset(writer):
    writer.write(OK + b"Content-Length: 9\r\n\r\nhi")
    await writer.drain()
    await asyncio.sleep(0.1)
    linger = struct.pack("ii", 1, 0)  # closing then sends RST
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


async def _drip_head(writer):
    for byte in OK * 1_000:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.15)  # it takes longer than anybody waits to come to a line that is wrong


async def _drip_body(writer):
    writer.write(OK + b"Content-Length: 100\r\n\r\n")
    for _ in range(100):
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.3)


async def _endless_head(writer):
    writer.write(OK)
    while True:
        writer.write(b"X-More: and more\r\n" * 100)
        await writer.drain()


async def _endless_body(writer):
    writer.write(OK + b"\r\n")
    while True:
        writer.write(b"x" * 10_000)
        await writer.drain()


BEHAVED = {
    "a reset": (_reset, Case(OK + b"Content-Length: 9\r\n\r\nhi", 200, Outcome.UNREACHABLE, "disconnect")),
    "a head in drops": (_drip_head, no_answer(b"", failure=TOO_SLOW)),
    "a body in drops": (_drip_body, Case(OK + b"Content-Length: 100\r\n\r\nxxx", 200, Outcome.UNREACHABLE, "time")),
    "a head without end": (_endless_head, no_answer(b"", "head")),
    "a body without end": (_endless_body, Case(OK + b"\r\n" + b"x" * 200_000, 200, truncated="length")),
}
CASES = {**SENT, **{name: case for name, (_, case) in BEHAVED.items()}}


@pytest.fixture(scope="module")
def met(tmp_path_factory):
    """Captures by case, all made at once; and the records that warcio reads in one file with all."""
    folder = tmp_path_factory.mktemp("warc")
    captures = asyncio.run(_meet_all())
    with WarcWriter(folder, VirtualClock(1.79e9)) as writer:
        for capture in captures.values():
            if capture.raw_head:
                writer.write(capture)
    [file] = folder.glob("*.warc.gz")
    with file.open("rb") as stream:
        records = {
            record.rec_headers.get_header("WARC-Target-URI"): (record.rec_headers, record.raw_stream.read())
            for record in ArchiveIterator(stream, no_record_parse=True)
            if record.rec_type == "response"
        }
    return captures, records, file


async def _meet_all():
    names = list(CASES)

    async def answer(reader, writer):
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            name = names[int(request.split(b" ")[1][1:])]
            if name in BEHAVED:
                await BEHAVED[name][0](writer)
            else:
                writer.write(CASES[name].sent)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    home = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    clock, body = VirtualClock(1.79e9), 200_000
    async with (
        server,
        HttpFetcher(clock, AGENT, limits=TransferLimits(total=120.0, body=body)) as patient,
        HttpFetcher(clock, AGENT, limits=TransferLimits(total=3.0, body=body)) as impatient,
    ):
        fetching = [
            (impatient if name.endswith("in drops") else patient).fetch(FetchRequest(f"{home}{number}"))
            for number, name in enumerate(names)
        ]
        found = await asyncio.gather(*fetching)
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_a_broken_answer_is_kept_as_it_came(met, name):
    case, capture = CASES[name], met[0][name]
    if name == "a body in drops":  # how many drops fall in a second is not ours to say
        assert capture.raw_body
        assert not capture.raw_body.strip(b"x")
    else:
        assert capture.raw_head + capture.raw_body == (case.sent if case.kept is None else case.kept)
    assert (capture.status, capture.truncated, capture.failure) == (case.status, case.truncated, case.failure)
    assert case.words in capture.error
    assert bool(capture.error) == (case.status == 0)


@pytest.mark.parametrize("name", CASES)
def test_a_broken_answer_is_judged_for_what_it_is(met, name):
    judgement = classify_change(met[0][name], None)
    assert judgement.outcome == CASES[name].outcome
    assert not judgement.redirect_to.startswith("javascript")


@pytest.mark.parametrize("name", CASES)
def test_the_record_of_a_broken_answer_is_right(met, name):
    capture, records = met[0][name], met[1]
    if not CASES[name].status:
        assert capture.url not in records, "what is no answer is no record"
        return
    headers, block = records[capture.url]
    if is_chunked(capture):
        assert block == head_without_chunks(capture) + unchunked(capture)
    else:
        assert block == capture.raw_head + capture.raw_body
    assert headers.get_header("Content-Length") == str(len(block))
    assert (headers.get_header("WARC-Truncated") or "") == capture.truncated


def test_the_file_with_all_of_them_passes_the_check(met):
    with met[2].open("rb") as stream:
        for record in ArchiveIterator(stream, check_digests="log"):
            record.content_stream().read()
            assert record.digest_checker.passed is not False, record.digest_checker.problems


def deflated(data, times, window):
    for _ in range(times):
        packer = zlib.compressobj(9, zlib.DEFLATED, window)
        data = packer.compress(data) + packer.flush()
    return data


@pytest.mark.parametrize(("name", "window", "times"), [("gzip", 31, 1), ("gzip", 31, 3), ("deflate", 15, 2)])
def test_a_bomb_goes_off_nowhere(serving, name, window, times):
    """70 MB in some hundred kilobytes at most: kept as they came, judged by these bytes, never unpacked whole."""
    bomb = deflated(b"\0" * 70_000_000, times, window)
    assert len(bomb) < 250_000
    head = OK + b"Content-Encoding: %s\r\nContent-Type: text/html\r\n" % b", ".join([name.encode()] * times)
    answer = head + b"Content-Length: %d\r\n\r\n" % len(bomb) + bomb

    async def run():
        async with serving({"/": answer}) as server, HttpFetcher(VirtualClock(1.79e9), AGENT) as fetcher:
            return await fetcher.fetch(FetchRequest(server.url("/")))

    capture = asyncio.run(run())
    assert capture.raw_body == bomb
    judgement = classify_change(capture, None)
    assert (judgement.outcome, judgement.size, judgement.links) == (Outcome.FETCHED, len(bomb), ())
    with pytest.raises(InputError, match="more than"):
        decoded(capture)
    with pytest.raises(InputError, match="more than"):
        read_sitemap(capture)


def test_a_sitemap_that_is_a_bomb_twice_over_goes_off_nowhere():
    """A packed file, sent packed."""
    bomb = deflated(b"<urlset>" + b" " * 70_000_000, 2, 31)
    head = OK + b"Content-Encoding: gzip\r\nContent-Type: application/gzip\r\n\r\n"
    with pytest.raises(InputError, match="longer than"):
        read_sitemap(Capture("http://example.org/sitemap.xml.gz", 1.79e9, 200, head, bomb))


def test_rules_that_are_a_bomb_close_the_host():
    bomb = deflated(b"User-agent: *\nAllow: /\n" + b"#" * 70_000_000, 1, 31)
    head = OK + b"Content-Encoding: gzip\r\n\r\n"

    class Bomber:
        async def fetch(self, request):
            return Capture(request.url, 1.79e9, 200, head, bomb)

    rules = asyncio.run(RobotsCache(Bomber(), VirtualClock(1.79e9), AGENT, body_of=decoded).rules("http://x.example/"))
    assert not rules.available
    assert not rules.allowed("http://x.example/")
    assert "more than" in rules.reason
