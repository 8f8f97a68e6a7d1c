"""HttpFetcher against a server whose every byte is known."""

from __future__ import annotations

import asyncio
import gzip

import psutil
import pytest

from recrawl.errors import ConfigError
from recrawl.fetch import FetchRequest, HttpFetcher, TransferLimits
from recrawl.model.visits import BROKEN_OFF, EMPTY, NO_CONNECTION, NO_NAME, NO_TRUST, NO_URL, TOO_SLOW
from recrawl.time import VirtualClock

AGENT = "recrawl-test/1.0 (+https://example.org/bot)"


def fetcher(**options):
    return HttpFetcher(VirtualClock(1_000.0), AGENT, **options)


def fetch_all(serving, answers, *requests, **options):
    """Captures of the requests (paths or Requests to ``{base}``), one after the other, and the server."""

    async def run():
        async with serving(answers) as server, fetcher(**options) as client:
            captures = []
            for request in requests:
                asked = request if isinstance(request, FetchRequest) else FetchRequest(server.url(request))
                captures.append(await client.fetch(asked))
            return captures, server

    return asyncio.run(run())


HEAD = b"HTTP/1.1 200 Fine by me\r\nX-oDD:   two  spaces \r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n"


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (HEAD + b"Content-Length: 5\r\n\r\n", b"hello"),
        (HEAD + b"Content-Length: 0\r\n\r\n", b""),
        (HEAD + b"\r\n", b"until the connection closes"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"5;name=value\r\nhello\r\n0\r\nX-Trailer: t\r\n\r\n"),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 25\r\n\r\n", gzip.compress(b"hello", mtime=0)),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n", b"nope"),
        (b"HTTP/1.1 200\nBare: line feeds\nContent-Length: 1\n\n", b"x"),
        (HEAD + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n", b"x"),
    ],
)
def test_bytes_arrive_as_they_were_sent(serving, head, body):
    [capture], server = fetch_all(serving, {"/a?b=c": head + body}, "/a?b=c")
    assert (capture.raw_head, capture.raw_body) == (head, body)
    assert capture.raw_request == server.requests[0]
    assert (capture.status, capture.error, capture.truncated) == (200, "", "")
    assert (capture.url, capture.time, capture.ip) == (server.url("/a?b=c"), 1_000.0, "127.0.0.1")
    assert capture.duration > 0


def test_the_request_says_who_asks_and_what_is_accepted(serving):
    [capture], server = fetch_all(serving, {}, "/")
    lines = capture.raw_request.split(b"\r\n")
    assert lines[0] == b"GET / HTTP/1.1"
    assert f"Host: 127.0.0.1:{server.port}".encode() in lines
    assert b"User-Agent: " + AGENT.encode() in lines
    assert b"Accept-Encoding: gzip" in lines
    assert not [line for line in lines if line.lower().startswith((b"cookie", b"if-", b"te:"))]


def test_requests_of_any_length_are_kept_as_sent(serving):
    paths = [f"/{'a' * length}" for length in (1, 50_000, 2, 2_500, 3)]
    captures, server = fetch_all(serving, {}, *paths)
    assert [capture.raw_request for capture in captures] == server.requests
    assert server.paths() == paths


def test_interim_answers_are_not_the_answer(serving):
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
    final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    [capture], _ = fetch_all(serving, {"/": hints + hints + final + b"ok"}, "/")
    assert (capture.status, capture.raw_head, capture.raw_body) == (200, final, b"ok")


def test_redirects_are_not_followed(serving):
    moved = b"HTTP/1.1 301 Moved\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"
    [capture], server = fetch_all(serving, {"/": moved}, "/")
    assert (capture.status, capture.header("location")) == (301, "/there")
    assert server.paths() == ["/"]


def test_cookies_are_not_kept(serving):
    answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: id=7\r\nContent-Length: 0\r\n\r\n"
    captures, _ = fetch_all(serving, {"/": answer}, "/", "/")
    assert b"ookie" not in captures[1].raw_request


def test_validators_make_the_request_conditional(serving):
    async def run():
        async with serving({"/": b'HTTP/1.1 304 Not Modified\r\nETag: "v\xe9"\r\n\r\n'}) as server, fetcher() as client:
            return await client.fetch(FetchRequest(server.url(), '"v\xe9"', "Sun, 06 Nov 1994 08:49:37 GMT"))

    capture = asyncio.run(run())
    assert capture.status == 304
    assert b'\r\nIf-None-Match: "v\xe9"\r\n' in capture.raw_request
    assert b"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n" in capture.raw_request


@pytest.mark.parametrize("etag", ['"a"\r\nX-Evil: 1', '"a"\nX-Evil: 1', '"a\0"', "\r", "\u2192"])
def test_a_stored_validator_cannot_add_headers(serving, etag):
    async def run():
        async with serving({}) as server, fetcher() as client:
            return await client.fetch(FetchRequest(server.url(), etag=etag))

    assert b"If-None-Match" not in asyncio.run(run()).raw_request


def test_conditions_do_not_leak_into_the_next_request(serving):
    async def run():
        async with serving({}) as server, fetcher() as client:
            await client.fetch(FetchRequest(server.url(), etag='"a"'))
            return await client.fetch(FetchRequest(server.url())), server.connections

    capture, connections = asyncio.run(run())
    assert b"If-None-Match" not in capture.raw_request
    assert connections == 1


@pytest.mark.parametrize(
    ("limit", "kept", "truncated"), [(3, b"hel", "length"), (4, b"hell", "length"), (5, b"hello", "")]
)
def test_a_long_body_is_cut_at_the_limit(serving, limit, kept, truncated):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    captures, _ = fetch_all(serving, {"/": answer}, "/", "/", limits=TransferLimits(body=limit))
    assert [(c.status, c.raw_body, c.truncated, c.error) for c in captures] == [(200, kept, truncated, "")] * 2


def test_an_endless_body_ends_at_the_limit(serving):
    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()

    [capture], _ = fetch_all(serving, {"/": endless}, "/", limits=TransferLimits(body=100_000))
    assert (capture.status, len(capture.raw_body), capture.truncated) == (200, 100_000, "length")


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nab", b"5\r\nhello\r\n5\r\nab"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", b"5\r\nhello\r\n"),
    ],
)
def test_a_body_cut_by_the_server_keeps_its_bytes(serving, sent, body):
    async def cut(writer):
        writer.write(sent)
        await writer.drain()

    [capture], _ = fetch_all(serving, {"/": cut}, "/")
    assert (capture.status, capture.raw_body, capture.truncated, capture.error) == (200, body, "disconnect", "")


@pytest.mark.parametrize("limits", [TransferLimits(total=3.0), TransferLimits(idle=1.0)])
def test_a_body_cut_by_time_keeps_its_bytes(serving, limits):
    async def stall(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        await writer.drain()
        await asyncio.sleep(60)

    [capture], _ = fetch_all(serving, {"/": stall}, "/", limits=limits)
    assert (capture.status, capture.raw_body, capture.truncated, capture.error) == (200, b"hello", "time", "")


async def _silence(writer):
    await asyncio.sleep(60)


async def _hang_up(writer):
    writer.close()


async def _half_a_head(writer):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    await writer.drain()


@pytest.mark.parametrize(
    ("answer", "words", "failure"),
    [
        (_silence, "timed out", TOO_SLOW),
        (_hang_up, "Empty reply", EMPTY),
        (_half_a_head, "", BROKEN_OFF),
        (b"not http at all\r\n\r\n", "HTTP/0.9", BROKEN_OFF),
        (b"HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 0\r\n\r\n", "colon", BROKEN_OFF),
    ],
)
def test_no_answer_is_a_capture_that_says_why(serving, answer, words, failure):
    limits = TransferLimits(total=0.5) if failure == TOO_SLOW else TransferLimits()
    [capture], _ = fetch_all(serving, {"/": answer}, "/", limits=limits)
    assert (capture.status, capture.raw_head, capture.raw_body, capture.truncated) == (0, b"", b"", "")
    assert capture.error
    assert words in capture.error
    assert capture.failure == failure


@pytest.mark.parametrize(
    ("url", "failure"),
    [
        ("http://nowhere.invalid/", NO_NAME),
        ("http://127.0.0.1:1/", NO_CONNECTION),
        ("http://[::1", NO_URL),
        ("ftp://127.0.0.1/", NO_URL),
        ("file:///etc/hosts", NO_URL),
        ("", NO_URL),
    ],
)
def test_what_cannot_be_reached_is_a_capture_too(serving, url, failure):
    [capture], _ = fetch_all(serving, {}, FetchRequest(url))
    assert (capture.status, capture.raw_body, capture.failure) == (0, b"", failure)
    assert capture.error


def test_hosts_are_pinned_to_addresses(serving):
    async def run():
        async with serving({"/": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"}) as server:
            pins = {f"one.test:{server.port}": "127.0.0.1", f"two.test:{server.port}": "127.0.0.1"}
            async with fetcher(resolve=pins) as client:
                urls = [f"http://{name}.test:{server.port}/" for name in ("one", "two")]
                return server, [await client.fetch(FetchRequest(url)) for url in urls]

    server, captures = asyncio.run(run())
    assert [capture.ip for capture in captures] == ["127.0.0.1"] * 2
    assert [
        b"Host: %s.test:%d\r\n" % (name, server.port) in request
        for name, request in zip((b"one", b"two"), server.requests, strict=True)
    ] == [True, True]


def test_a_proxy_in_the_environment_is_not_asked(serving, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    [capture], _ = fetch_all(serving, {}, "/")
    assert capture.status == 404


@pytest.mark.parametrize("epoll", [True, False])
def test_many_at_once_do_not_mix(serving, epoll, monkeypatch):
    if not epoll:  # as on systems that have none
        monkeypatch.delattr("select.epoll", raising=False)
    paths = [f"/{n}" for n in range(200)]
    answers = {p: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(p) + p.encode() for p in paths}

    async def run():
        async with serving(answers) as server, fetcher() as client:
            return await asyncio.gather(*(client.fetch(FetchRequest(server.url(p))) for p in paths))

    captures = asyncio.run(run())
    assert [capture.raw_body.decode() for capture in captures] == paths
    assert [capture.raw_request.split(b" ")[1].decode() for capture in captures] == paths


def test_a_cancelled_fetch_does_not_spoil_the_next(serving):
    async def run():
        async with serving({"/slow": _silence}) as server, fetcher() as client:
            await client.fetch(FetchRequest(server.url("/")))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.fetch(FetchRequest(server.url("/slow"))), 0.1)
            return [await client.fetch(FetchRequest(server.url(f"/{n}"))) for n in range(3)]

    captures = asyncio.run(run())
    assert [capture.status for capture in captures] == [404] * 3
    assert [capture.raw_request.split(b" ")[1] for capture in captures] == [b"/0", b"/1", b"/2"]


def test_a_connection_that_died_idle_is_replaced(serving):
    async def once(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    captures, server = fetch_all(serving, {"/": once}, "/", "/", "/")
    assert [capture.raw_body for capture in captures] == [b"ok"] * 3
    assert captures[2].raw_request == server.requests[2]


@pytest.mark.parametrize(
    "agent", ["", "recrawl", "recrawl/1.0 (me)", "recrawl\r\nX: 1 http://a.example", "ré http://a.example"]
)
def test_an_agent_without_contact_is_refused(agent):
    with pytest.raises(ConfigError, match="User-Agent") as caught:
        HttpFetcher(VirtualClock(), agent)
    assert "example.org" in caught.value.remedy


@pytest.mark.parametrize(
    "agent", ["recrawl (+http://a.example)", "recrawl (someone@a.example)", "x/1 https://a.example/bot"]
)
def test_an_agent_with_contact_is_taken(serving, agent):
    async def ask():
        async with serving({}) as server, HttpFetcher(VirtualClock(1_000.0), agent) as client:
            return await client.fetch(FetchRequest(server.url("/")))

    assert b"User-Agent: " + agent.encode() in asyncio.run(ask()).raw_request.split(b"\r\n")


@pytest.mark.parametrize(
    ("name", "days", "trusted", "words"),
    [
        ("secure.test", 2, True, ""),
        ("secure.test", 2, False, "certificate"),
        ("secure.test", -1, True, "expired"),
        ("other.test", 2, True, "no alternative certificate subject name"),
    ],
    ids=["good", "self-signed", "expired", "of another host"],
)
def test_tls_is_checked(serving, certificate, tls, name, days, trusted, words):  # noqa: PLR0913, PLR0917 - the case
    file = certificate(name, days)

    async def run():
        async with serving({"/": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"}, tls(file)) as server:
            options = {"ca_file": str(file)} if trusted else {}
            async with fetcher(resolve={f"secure.test:{server.port}": "127.0.0.1"}, **options) as client:
                return server, await client.fetch(FetchRequest(f"https://secure.test:{server.port}/"))

    server, capture = asyncio.run(run())
    if words:
        assert (capture.status, capture.failure, server.requests) == (0, NO_TRUST, [])
        assert words in capture.error
    else:
        assert (capture.status, capture.failure, capture.raw_body) == (200, 0, b"ok")


def test_a_server_that_speaks_no_tls_is_not_trusted():
    async def plain(_reader, writer):
        writer.write(b"HTTP/1.1 400 This is HTTP\r\n\r\n")
        writer.close()

    async def run():
        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        async with server, fetcher() as client:
            return await client.fetch(FetchRequest(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))

    assert asyncio.run(run()).failure == NO_TRUST


def test_a_server_that_says_nothing_to_a_handshake_is_too_slow(serving):
    async def run():
        async with serving({}) as server, fetcher(limits=TransferLimits(connect=2.0)) as client:
            return await client.fetch(FetchRequest(f"https://127.0.0.1:{server.port}/"))

    assert asyncio.run(run()).failure == TOO_SLOW


def test_nothing_is_left_open(serving):
    fetch_all(serving, {}, "/")  # what libraries open once for good
    before = psutil.Process().num_fds()
    fetch_all(serving, {}, "/", "/a")
    assert psutil.Process().num_fds() == before


def test_a_folded_header_is_the_one_thing_libcurl_rewrites(serving):
    answer = b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 1\r\n\r\nx"
    [capture], _ = fetch_all(serving, {"/": answer}, "/")
    assert capture.raw_head == b"HTTP/1.1 200 OK\r\nX: a folded\r\nContent-Length: 1\r\n\r\n"
