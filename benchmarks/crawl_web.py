"""The web that the crawl benchmark fetches: many loopback hosts with pages of 20 KB, served as fast as Python can.

A process of its own, so that its processor time is not the crawler's. Every answer differs from the one before in one
visible number, so that no crawler gets away with comparing digests. ``/robots.txt`` is not there. The times of all
requests are logged.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import cast

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl_testweb.page_render import PLAIN, sentence

PAGE_BYTES = 20_000
LINKS = 60
DOCUMENTS = 200
"""Different pages; a host has them all."""
_PLACE = b"@@@@@@@@@@"
"""Where each answer puts its own number."""


def hosts(count: int) -> list[str]:
    """N loopback addresses."""
    return [f"127.0.{number // 250}.{number % 250 + 1}" for number in range(count)]


def page_urls(count: int, pages: int, port: int) -> list[str]:
    """The URLs of N pages on each of N hosts; neighbours lie on different hosts."""
    return [f"http://{host}:{port}/page/{number}.html" for number in range(pages) for host in hosts(count)]


def small_document(number: int, pages: int) -> bytes:
    """A page of three sentences and a link, which stays as it is."""
    text = " ".join(sentence(number * 31 + step, PLAIN) for step in range(3))
    return f'<!DOCTYPE html><title>{number}</title><p>{text} <a href="{(number + 1) % pages}.html">Next</a>'.encode()


def document(number: int, pages: int) -> bytes:
    """A page of 20 KB: a menu, prose of about 2,000 words with links in it, a number that changes."""
    rng = np.random.default_rng(number)
    menu = "".join(f'<li><a href="/page/{one}.html">Part {one}</a></li>' for one in range(min(20, pages)))
    others = iter(rng.choice(pages, LINKS, replace=pages < LINKS).tolist())
    head = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Page {number}</title>'
        '<link rel="stylesheet" href="/style.css"><script>window.started = Date.now();</script></head>'
        f'<body><header><ul class="menu">{menu}</ul></header><main><h1>Page {number}</h1>'
        f"<p>Edition {_PLACE.decode()} of this page.</p>"
    )
    parts, size, key = [head], len(head), number * 1_000_003
    for place in range(10_000):
        text = " ".join(sentence(key + 31 * place + step, PLAIN) for step in range(3))
        link = next(others, None) if place < LINKS - 20 else None
        more = f' See <a class="see" href="/page/{link}.html">page {link}</a>.' if link is not None else ""
        part = f'<p class="text">{text}{more}</p>\n'
        if size + len(part) > PAGE_BYTES and link is None:
            break
        parts.append(part)
        size += len(part)
    body = "".join([*parts, "</main><footer>The end.</footer></body></html>"]).encode()
    return body + b"<!-- " + b"." * max(0, PAGE_BYTES - len(body) - 9) + b" -->"


class Log:
    """When requests arrived and answers left, and at which host."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, int]] = []
        """Arrival, departure (monotonic seconds), host."""


class _Server(asyncio.Protocol):
    """One connection; requests come one at a time."""

    def __init__(self, bodies: list[tuple[bytes, bytes]], log: Log) -> None:
        self._bodies, self._log = bodies, log

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer, and at which address we were asked."""
        self._transport = cast("asyncio.Transport", transport)
        *_, high, low = transport.get_extra_info("sockname")[0].split(".")
        self._host = int(high) * 250 + int(low) - 1

    def data_received(self, data: bytes) -> None:
        """Answer a request."""
        arrived = time.perf_counter()
        path = data[4 : data.index(b" ", 4)]
        if not path.startswith(b"/page/"):
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        before, after = self._bodies[int(path[6:-5]) % len(self._bodies)]
        leaves = time.perf_counter()  # read before: who is put to sleep in between would note that it left later
        self._transport.write(before + b"%010d" % len(self._log.rows) + after if after else before)
        self._log.rows.append((arrived, leaves, self._host))


def _serve(pipe: Connection, pages: int, written: Callable[[int, int], bytes]) -> None:
    """Serve until told to end. Asked for the log, send and forget it."""
    import uvloop

    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    bodies = []
    for number in range(pages):
        body = written(number, pages)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
        before, _, after = (head.encode() + body).partition(_PLACE)
        bodies.append((before, after))

    async def serve() -> None:
        loop, log = asyncio.get_running_loop(), Log()
        server = await loop.create_server(lambda: _Server(bodies, log), "0.0.0.0", 0, backlog=4096)
        pipe.send(server.sockets[0].getsockname()[1])
        ended = loop.create_future()

        def told() -> None:
            if pipe.recv() == "end":
                ended.set_result(None)
                return
            os.set_blocking(pipe.fileno(), True)  # the loop made it otherwise; a log may be longer than a pipe holds
            pipe.send((time.process_time(), np.array(log.rows or np.empty((0, 3)))))
            log.rows.clear()

        loop.add_reader(pipe.fileno(), told)
        await ended

    uvloop.run(serve())


class Web:
    """The server, from outside."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.port: int = pipe.recv()

    def log(self) -> tuple[float, FloatArray, FloatArray, IntArray]:
        """Processor seconds of the server so far; arrival, departure and host of the requests since the last call."""
        self._pipe.send("log")
        seconds, rows = self._pipe.recv()
        return seconds, rows[:, 0], rows[:, 1], rows[:, 2].astype(np.int64)


@contextmanager
def web(pages: int = DOCUMENTS, written: Callable[[int, int], bytes] = document) -> Iterator[Web]:
    """A server that runs until the block ends; ``written`` gives the bytes of each page."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, pages, written), daemon=True)
    process.start()
    try:
        yield Web(ours)
    finally:
        ours.send("end")
        process.join()
