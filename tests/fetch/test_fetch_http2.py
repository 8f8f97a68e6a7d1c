"""HTTP/2 over TLS against a real server: what comes is kept so that every reader of archives takes it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived, StreamEnded
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from recrawl.fetch import FetchRequest, HttpFetcher, TransferLimits
from recrawl.formats.warc.warc_reader import read_capture
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.time import VirtualClock

AGENT = "recrawl-test/2.0 (+https://example.org/bot)"
HOST = "two.test"


class Http2Server:
    """Answers each path with listed headers and pieces of a body; a number among the pieces resets the stream."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []
        self.connections = 0

    async def serve(self, reader, writer):
        self.connections += 1
        connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        paths = {}
        try:
            while True:
                writer.write(connection.data_to_send())
                await writer.drain()
                data = await reader.read(65_536)
                if not data:
                    break
                for event in connection.receive_data(data):
                    if isinstance(event, RequestReceived):
                        paths[event.stream_id] = dict(event.headers)
                    elif isinstance(event, StreamEnded):
                        self.asked.append(paths[event.stream_id])
                        self.answer(connection, event.stream_id, paths[event.stream_id][":path"])
        except ConnectionError:
            pass
        finally:
            writer.close()

    def answer(self, connection, stream, path):
        headers, *pieces = self.answers[path]
        connection.send_headers(stream, headers, end_stream=not pieces)
        for number, piece in enumerate(pieces):
            if isinstance(piece, int):
                connection.reset_stream(stream, piece)
                return
            connection.send_data(stream, piece, end_stream=number == len(pieces) - 1)


@asynccontextmanager
async def serving_http2(answers, context):
    server = Http2Server(answers)
    running = set()

    def connected(reader, writer):
        task = asyncio.ensure_future(server.serve(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    listening = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    try:
        yield server, listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


OK = [(":status", "200"), ("content-type", "text/html"), ("x-odd", "a"), ("set-cookie", "a=1"), ("set-cookie", "b=2")]


def ask(certificate, tls, answers, *paths, **options):
    file = certificate(HOST)

    async def run():
        async with serving_http2(answers, tls(file, "h2", "http/1.1")) as (server, port):
            pins = {f"{HOST}:{port}": "127.0.0.1"}
            async with HttpFetcher(VirtualClock(1.79e9), AGENT, resolve=pins, ca_file=str(file), **options) as fetcher:
                return server, [await fetcher.fetch(FetchRequest(f"https://{HOST}:{port}{path}")) for path in paths]

    return asyncio.run(run())


def test_http2_is_spoken_and_kept_as_a_head_that_all_readers_take(certificate, tls):
    server, [capture, again] = ask(certificate, tls, {"/a?b": (OK, b"hello ", b"two")}, "/a?b", "/a?b")
    assert capture.protocol == "h2"
    assert capture.raw_head == (
        b"HTTP/1.1 200 \r\ncontent-type: text/html\r\nx-odd: a\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n\r\n"
    )
    assert (capture.status, capture.raw_body, capture.truncated, capture.error) == (200, b"hello two", "", "")
    assert capture.raw_request.startswith(b"GET /a?b HTTP/1.1\r\nHost: two.test:")
    assert capture.raw_request.endswith(b"\r\n\r\n")
    assert server.asked[0]["user-agent"] == AGENT
    assert "cookie" not in server.asked[1]
    assert again.raw_body == b"hello two"
    assert server.connections == 1


def test_only_the_version_is_rewritten(certificate, tls):
    path = "/HTTP/2/HTTP/2?HTTP/2"
    _, [capture] = ask(certificate, tls, {path: ([*OK, ("x", "HTTP/2")], b"HTTP/2")}, path)
    assert capture.raw_request.startswith(b"GET /HTTP/2/HTTP/2?HTTP/2 HTTP/1.1\r\n")
    assert capture.raw_head.startswith(b"HTTP/1.1 200 \r\n")
    assert capture.raw_head.endswith(b"x: HTTP/2\r\n\r\n")


def test_http1_can_be_asked_for(serving, certificate, tls):
    file = certificate(HOST)

    async def run():
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"
        async with serving({"/": answer}, tls(file, "h2", "http/1.1")) as server:
            pins = {f"{HOST}:{server.port}": "127.0.0.1"}
            clock = VirtualClock(1.79e9)
            async with HttpFetcher(clock, AGENT, resolve=pins, ca_file=str(file), http2=False) as fetcher:
                return await fetcher.fetch(FetchRequest(f"https://{HOST}:{server.port}/"))

    capture = asyncio.run(run())
    assert (capture.protocol, capture.raw_body) == ("", b"one")
    assert capture.raw_head.startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_host_that_offers_no_http2_is_asked_by_http1(serving, certificate, tls):
    file = certificate(HOST)

    async def run():
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"
        async with serving({"/": answer}, tls(file, "http/1.1")) as server:
            pins = {f"{HOST}:{server.port}": "127.0.0.1"}
            async with HttpFetcher(VirtualClock(1.0), AGENT, resolve=pins, ca_file=str(file)) as fetcher:
                return await fetcher.fetch(FetchRequest(f"https://{HOST}:{server.port}/"))

    capture = asyncio.run(run())
    assert (capture.status, capture.protocol, capture.raw_body) == (200, "", b"one")


@pytest.mark.parametrize(
    ("pieces", "limits", "kept", "truncated"),
    [
        ((b"half", 2), TransferLimits(), b"half", "disconnect"),
        ((b"x" * 300, b"y" * 300), TransferLimits(body=400), b"x" * 300 + b"y" * 100, "length"),
    ],
    ids=["stream reset", "too long"],
)
def test_a_body_that_is_cut_keeps_its_bytes(certificate, tls, pieces, limits, kept, truncated):  # noqa: PLR0913, PLR0917 - the case
    headers = [*OK, ("content-length", "600")]
    _, [capture] = ask(certificate, tls, {"/": (headers, *pieces)}, "/", limits=limits)
    assert (capture.status, capture.raw_body, capture.truncated) == (200, kept, truncated)


def test_the_archive_file_of_http2_is_read_by_others(certificate, tls, tmp_path):
    _, [capture] = ask(certificate, tls, {"/": (OK, b"<p>hello two</p>")}, "/")
    with WarcWriter(tmp_path, VirtualClock(1.79e9)) as writer:
        place = writer.write(capture)
    [file] = tmp_path.glob("*.warc.gz")
    with file.open("rb") as stream:
        records = [(one.rec_type, one.rec_headers, one.http_headers, one.content_stream().read()) for one in
                   ArchiveIterator(stream, verify_http=True)]  # fmt: skip
    _, (kind, head, http, body), (_, _, request, _) = records
    assert (kind, http.get_statuscode(), body) == ("response", "200", b"<p>hello two</p>")
    assert head.get_header("WARC-Protocol") == "h2"
    assert request.get_header("User-Agent") == AGENT
    assert _check(file) == 0
    read = read_capture(file, place.offset)
    assert (read.status, read.raw_head, read.protocol) == (200, capture.raw_head, "h2")


def _check(file):
    checker = Checker(_Arguments([str(file)]))
    checker.process_all()
    return checker.exit_value


class _Arguments:
    """As the command line of ``warcio check`` gives them."""

    verbose = False

    def __init__(self, inputs):
        self.inputs = inputs
