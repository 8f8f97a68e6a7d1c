"""Requests with a body, and with media types of their own: what goes over the wire is what is kept."""

from __future__ import annotations

import asyncio

from recrawl.fetch import FetchRequest, HttpFetcher
from recrawl.time import VirtualClock

AGENT = "recrawl-test/1.0 (+https://example.org/bot)"
FORM = b"query=SELECT+%2A"


def test_a_body_is_posted_as_a_form_and_kept_and_the_next_request_has_none():
    async def run():
        asked = []

        async def answer(reader, writer):
            for _ in range(2):
                head = await reader.readuntil(b"\r\n\r\n")
                length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"-Length" in line), 0)
                asked.append(head + await reader.readexactly(length))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/sparql"
        async with HttpFetcher(VirtualClock(0.0), AGENT) as fetcher:
            posted = await fetcher.fetch(FetchRequest(url, accept="text/turtle", body=FORM))
            got = await fetcher.fetch(FetchRequest(url))
        server.close()
        return posted, got, asked

    posted, got, asked = asyncio.run(run())
    assert [posted.raw_request, got.raw_request] == asked
    head, _, body = asked[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /sparql HTTP/1.1\r\n")
    assert body == FORM
    lines = head.lower().split(b"\r\n")
    assert b"accept: text/turtle" in lines
    assert b"content-type: application/x-www-form-urlencoded" in lines
    assert not any(line.startswith(b"expect") for line in lines)
    assert sum(line.startswith(b"accept:") for line in lines) == 1
    assert asked[1].startswith(b"GET /sparql HTTP/1.1\r\n")
    assert b"ontent-" not in asked[1]
    assert b"Accept: text/html" in asked[1]
