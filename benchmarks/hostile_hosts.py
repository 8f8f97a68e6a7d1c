"""Hosts that try to end, freeze, fill or mislead a crawl: a table of them, and servers on loopback that play them.

Each host has a name below ``.test`` and an address of its own in 127.7.0.0/16. A small DNS server on loopback tells the
addresses over UDP; the crawl is started with a resolver that asks it (:func:`resolve_with`), since the one of the
system cannot be pointed at another port.
"""

# ruff: noqa: E501 - the table has a line for each host

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np

Play = Callable[["Scene"], Awaitable[None]]
"""Writes the answer to one request."""

FETCHED, FAILED = frozenset({"fetched"}), frozenset({"unreachable"})
REFUSED = frozenset({"refused"})
SLOW_OR_FETCHED = FETCHED | FAILED
"""Of hosts that answer in the end: a machine that is busy may be too slow for them."""
ANY = frozenset({"fetched", "unreachable", "server_error", "gone", "redirected", "not_modified", "client_error"})
ZEROS = 128 << 20
"""Bytes that bombs unfold to, twice what is allowed."""


@dataclass(frozen=True)
class Host:
    """One host of the table."""

    name: str
    kind: str
    """Of attack: slow, endless, bomb, liar, trap, http2, tls or dns; healthy for the others."""
    does: str
    """What it does, for the report."""
    play: Play | None = None
    robots: Play | None = None
    """Plays robots.txt; without it there is none."""
    expected: frozenset[str] = ANY
    """Outcomes of the visit to its first page that are right."""
    door: str = "http"
    """Which port it listens on: http, tls, raw (TCP under an https URL), expired or wrong (certificates)."""
    answers: Callable[[int, str], Sequence[str] | int | None] | None = None
    """What DNS says to the n-th question, given the address of the host: addresses, an error code, or nothing."""


@dataclass
class Scene:
    """One request."""

    path: str
    head: bytes
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    host: Host
    web: Servers

    async def send(self, *pieces: bytes, wait: float = 0.0) -> None:
        """Write pieces, each after a wait in seconds."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            if wait:
                await asyncio.sleep(wait)

    async def forever(self, piece: bytes, wait: float = 0.0) -> None:
        """Write the same until nobody reads it any more; not so fast that this machine has time for nothing else."""
        while True:
            await self.send(piece, wait=wait or 0.001)

    def url(self, path: str = "/", name: str | None = None) -> str:
        """A URL of this host, or of another."""
        return self.web.url(name or self.host.name, path)


def ok(body: bytes, *headers: str, kind: str = "text/html", status: str = "200 OK") -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def always(answer: bytes) -> Play:
    """Sends the same answer to all."""

    async def play(scene: Scene) -> None:
        await scene.send(answer)

    return play


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LINES = b"<p>Some words of a page that does not end.</p>\n" * 400


# -- slow and endless ----------------------------------------------------------------------------------


def dripping(start: bytes, drip: bytes) -> Play:
    """Sends a start, then a drip every 200 ms for ever."""

    async def play(scene: Scene) -> None:
        await scene.send(start)
        await scene.forever(drip, wait=0.2)

    return play


def endless(start: bytes, more: bytes) -> Play:
    """Sends a start, then more as fast as it is read."""

    async def play(scene: Scene) -> None:
        await scene.send(start)
        await scene.forever(more)

    return play


async def silent(scene: Scene) -> None:
    """Says nothing."""
    await scene.reader.read()


async def resets(scene: Scene) -> None:
    """Breaks the connection off."""
    linger = struct.pack("ii", 1, 0)
    scene.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    scene.writer.transport.abort()


async def redirects(scene: Scene) -> None:
    """Leads from one page to the next for ever."""
    number = int(scene.path.strip("/") or 0) + 1
    await scene.send(ok(b"", f"Location: /{number}", status="302 Found"))


# -- bombs ---------------------------------------------------------------------------------------------


@cache
def packed(window: int, times: int = 1) -> bytes:
    """Zeros under N layers of zlib."""
    data = b""
    for layer in range(times):
        packer = zlib.compressobj(9, zlib.DEFLATED, window)
        if layer:
            data = packer.compress(data) + packer.flush()
            continue
        zeros = bytes(1 << 20)
        data = b"".join(packer.compress(zeros) for _ in range(ZEROS >> 20)) + packer.flush()
    return data


def zstd_bomb() -> bytes:
    """A zstd frame of blocks that each repeat one byte 128 KiB long (RFC 8878, 3.1.1.2)."""
    size = 128 << 10
    block = struct.pack("<I", size << 3 | 1 << 1)[:3] + b"\0"
    last = struct.pack("<I", size << 3 | 1 << 1 | 1)[:3] + b"\0"
    return b"\x28\xb5\x2f\xfd" + b"\x00\x58" + block * (ZEROS // size - 1) + last


def brotli_bomb() -> bytes:
    """Zeros in brotli, if the library is there; else some bytes that say they are."""
    with suppress(ImportError):
        import brotli  # type: ignore[import-untyped]

        return bytes(brotli.compress(bytes(ZEROS >> 2), quality=3))
    return b"\x0b\x02\x80"


def laughs(levels: int) -> bytes:
    """Entities of entities in RDF/XML."""
    names = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "lol"}">' for n in range(levels))
    return (
        f'<?xml version="1.0"?><!DOCTYPE r [{names}]><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        f'<rdf:Description rdf:about="a"><x xmlns="http://x/">&e{levels - 1};</x></rdf:Description></rdf:RDF>'
    ).encode()


def quadratic() -> bytes:
    """One large entity, used three thousand times."""
    return (
        f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "{"x" * 1_000_000}">]><rdf:RDF xmlns:rdf="http://www.w3.org/'
        f'1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="a"><x xmlns="http://x/">{"&a;" * 3_000}</x>'
        "</rdf:Description></rdf:RDF>"
    ).encode()


async def external(scene: Scene) -> None:
    """An entity that is a file of the crawler's machine, and one on a host it may not reach."""
    home = f"http://127.0.0.1:{scene.web.ports['http']}/entity"
    body = (
        f'<!DOCTYPE r [<!ENTITY f SYSTEM "file:///etc/passwd"><!ENTITY h SYSTEM "{home}">]><rdf:RDF xmlns:rdf='
        f'"http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="a"><x xmlns="http://x/">&f;&h;</x>'
        "</rdf:Description></rdf:RDF>"
    )
    await scene.send(ok(body.encode(), kind="application/rdf+xml"))


# -- traps ---------------------------------------------------------------------------------------------


def linking(make: Callable[[Scene, Callable[[], str]], list[str]]) -> Play:
    """Pages whose links never end."""

    async def play(scene: Scene) -> None:
        rng = np.random.default_rng(list(scene.path.encode()))
        links = "".join(f'<a href="{link}">more</a> ' for link in make(scene, lambda: rng.bytes(16).hex()))
        await scene.send(ok(f"<title>{scene.path}</title><p>{links}".encode()))

    return play


def leads(target: Callable[[Scene], str]) -> Play:
    """Redirects to a place, and links to it."""

    async def play(scene: Scene) -> None:
        place = target(scene)
        await scene.send(ok(f'<a href="{place}">x</a>'.encode(), f"Location: {place}", status="302 Found"))

    return play


async def names_sitemaps(scene: Scene) -> None:
    """A robots.txt that names a sitemap."""
    await scene.send(ok(f"User-agent: *\nAllow: /\nSitemap: {scene.url('/map0.xml')}\n".encode(), kind="text/plain"))


async def sitemaps_without_end(scene: Scene) -> None:
    """Sitemaps that name further ones, which name further ones."""
    if not scene.path.endswith(".xml"):
        await scene.send(ok(b"<p>Home.</p>"))
        return
    here = scene.path[1:-4]
    more = "".join(f"<sitemap><loc>{scene.url(f'/{here}-{n}.xml')}</loc></sitemap>" for n in range(3))
    body = f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{more}</sitemapindex>'
    await scene.send(ok(body.encode(), kind="application/xml"))


async def sitemap_bomb(scene: Scene) -> None:
    """A sitemap that unfolds to far more than is read."""
    if scene.path.endswith(".xml"):
        await scene.send(ok(packed(31), kind="application/gzip"))
    else:
        await scene.send(ok(b"<p>Home.</p>"))


async def sitemap_laughs(scene: Scene) -> None:
    """A sitemap with entities of entities."""
    if scene.path.endswith(".xml"):
        await scene.send(ok(laughs(9), kind="application/xml"))
    else:
        await scene.send(ok(b"<p>Home.</p>"))


async def robots_redirects(scene: Scene) -> None:
    """Rules that redirect for ever."""
    number = int(scene.path.rpartition("-")[2] or 0) + 1 if "-" in scene.path else 1
    await scene.send(ok(b"", f"Location: /robots-{number}", status="301 Moved"))


# -- HTTP/2 --------------------------------------------------------------------------------------------

_DATA, _HEADERS, _RESET, _SETTINGS, _PUSH, _PING, _AWAY, _CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 9


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2 (RFC 9113, 4.1)."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


OK_FIELDS = b"\x88"
"""``:status: 200`` in HPACK."""


def flood(start: Callable[[int], bytes], more: Callable[[int], bytes]) -> Play:
    """Sends frames for a stream, then more for ever."""

    async def play(scene: Scene) -> None:
        stream = int(scene.head)
        await scene.send(start(stream))
        await scene.forever(more(stream) * 64)

    return play


def hpack_bomb(stream: int) -> bytes:
    """One field of 4,000 bytes in the table, then named sixteen thousand times: 64 MB of head in 20 KB."""
    field_ = b"\x40\x01a\x7f" + bytes([0xA1, 0x1E]) + b"b" * 4_000
    references = b"\xbe" * 12_000
    return frame(_HEADERS, 0, stream, OK_FIELDS + field_) + frame(_CONTINUATION, 4, stream, references)


async def hpack(scene: Scene) -> None:
    """Sends the bomb."""
    await scene.send(hpack_bomb(int(scene.head)))
    await scene.reader.read()


async def rapid_reset(scene: Scene) -> None:
    """Refuses each stream at once, so that it can be asked for again."""
    await scene.send(frame(_RESET, 0, int(scene.head), struct.pack(">I", 7)))


async def goes_away(scene: Scene) -> None:
    """Ends each connection before it answers."""
    await scene.send(frame(_AWAY, 0, 0, struct.pack(">II", 0, 0)))


async def ignores_windows(scene: Scene) -> None:
    """Sends far more than the window allows."""
    stream = int(scene.head)
    await scene.send(frame(_HEADERS, 4, stream, OK_FIELDS))
    await scene.forever(frame(_DATA, 0, stream, bytes(16_384)))


# -- the table -----------------------------------------------------------------------------------------


def _rdf(body: bytes) -> Play:
    return always(ok(body, kind="application/rdf+xml"))


def _encoded(name: str, make: Callable[[], bytes]) -> Play:
    """Sends a body under a content encoding; it is made when it is first asked for, since that may take a second."""

    async def play(scene: Scene) -> None:
        body = await asyncio.get_running_loop().run_in_executor(None, make)
        await scene.send(ok(body, f"Content-Encoding: {name}"))

    return play


def _rules(text: bytes) -> Play:
    return always(ok(text, kind="text/plain"))


def _robots_host(name: str, does: str, robots: Play, expected: frozenset[str]) -> Host:
    return Host(name, "liar", does, always(ok(b"<p>Home.</p>")), robots, expected)


def table() -> list[Host]:
    """All hostile hosts, made again: some answers are large."""
    home = always(ok(b"<p>Home.</p>"))
    many_members = gzip.compress(b"<p>word</p>") * 5_000
    explosive = b"User-agent: *\n" + b"Disallow: /*a*a*a*a*a*a*a*a*b$\n" * 15_000
    return [
        Host("drip-head", "slow", "its head comes byte by byte", dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x"), expected=FAILED),
        Host("drip-body", "slow", "its body comes byte by byte", dripping(HEAD + b"\r\n", b"x")),
        Host("drip-chunks", "slow", "a chunk of one byte at a time", dripping(CHUNKED, b"1\r\nx\r\n")),
        Host("stall-head", "slow", "accepts, then says nothing", silent, expected=FAILED),
        Host("stall-body", "slow", "stops in the middle of a body", dripping(HEAD + b"Content-Length: 99\r\n\r\nx", b"")),
        Host("stall-robots", "slow", "its robots.txt never comes", home, silent, FAILED),
        Host("reset", "slow", "breaks the connection off", resets, expected=FAILED),
        Host("endless-body", "endless", "a body without end", endless(HEAD + b"\r\n", LINES)),
        Host("endless-head", "endless", "headers without end", endless(HEAD, b"X-More: of this\r\n" * 99), expected=FAILED),
        Host("endless-line", "endless", "one header without end", endless(HEAD + b"X: ", b"y" * 4096), expected=FAILED),
        Host("endless-chunks", "endless", "chunks without end", endless(CHUNKED, b"1000\r\n" + b"z" * 4096 + b"\r\n")),
        Host("endless-extension", "endless", "a chunk extension without end", endless(CHUNKED + b"5;a=", b"b" * 4096)),
        Host("endless-trailers", "endless", "trailers without end", endless(CHUNKED + b"0\r\n", b"X-T: t\r\n" * 99)),
        Host("endless-interim", "endless", "100 Continue without end", endless(b"", b"HTTP/1.1 100 Go on\r\n\r\n" * 50), expected=FAILED),
        Host("endless-hints", "endless", "103 with links without end", endless(b"", b"HTTP/1.1 103 Hint\r\nLink: </a>\r\n\r\n"), expected=FAILED),
        Host("endless-redirects", "endless", "each page leads to the next", redirects),
        Host("redirect-loop", "endless", "leads to itself", leads(lambda scene: scene.url("/"))),
        Host("endless-zero", "endless", "nothing but zero bytes", endless(b"", bytes(4096)), expected=FAILED),
        Host("bomb-gzip", "bomb", "128 MB in gzip", _encoded("gzip", lambda: packed(31))),
        Host("bomb-deflate", "bomb", "128 MB in raw deflate", _encoded("deflate", lambda: packed(-15))),
        Host("bomb-twice", "bomb", "gzip in gzip", _encoded("gzip, gzip", lambda: packed(31, 2))),
        Host("bomb-ten-times", "bomb", "ten layers of gzip", _encoded(", ".join(["gzip"] * 10), lambda: packed(31, 3))),
        Host("bomb-zstd", "bomb", "128 MB in zstd, which was not asked for", _encoded("zstd", zstd_bomb)),
        Host("bomb-brotli", "bomb", "32 MB in brotli, which was not asked for", _encoded("br", brotli_bomb)),
        Host("bomb-members", "bomb", "5,000 gzip members", _encoded("gzip", lambda: many_members)),
        Host("bomb-cut", "bomb", "gzip that ends too early", _encoded("gzip", lambda: gzip.compress(LINES)[:-20])),
        Host("bomb-nesting", "bomb", "HTML 300,000 deep", always(ok(b"<div>" * 300_000))),
        Host("bomb-formatting", "bomb", "formatting that is never closed", always(ok(b"<b><i><p>" * 60_000))),
        Host("bomb-attributes", "bomb", "a tag with 100,000 attributes", always(ok(b"<p " + b"".join(b"a%d=1 " % n for n in range(100_000)) + b">"))),
        Host("bomb-json", "bomb", "JSON 500,000 deep", always(ok(b"[" * 500_000, kind="application/json"))),
        Host("bomb-digits", "bomb", "2 MB of times as text", always(ok(b"1:" * 1_000_000, kind="text/plain"))),
        Host("bomb-numbers", "bomb", "a JSON number of 1 MB", always(ok(b'{"a": ' + b"9" * 1_000_000 + b"}", kind="application/json"))),
        Host("bomb-csv", "bomb", "a table with one cell of 4 MB", always(ok(b'a,b\n"' + b"x" * 4_000_000, kind="text/csv"))),
        Host("xml-laughs", "bomb", "a billion laughs in RDF/XML", _rdf(laughs(10))),
        Host("xml-quadratic", "bomb", "an entity of 1 MB, used 3,000 times", _rdf(quadratic())),
        Host("xml-external", "bomb", "entities that are files and other hosts", external),
        Host("length-too-long", "liar", "promises more than it sends", always(HEAD + b"Content-Length: 999999\r\n\r\n<p>short")),
        Host("length-too-short", "liar", "sends more than it promises", always(HEAD + b"Content-Length: 5\r\n\r\n<p>more than five")),
        Host("length-twice", "liar", "two lengths", always(HEAD + b"Content-Length: 5\r\nContent-Length: 9\r\n\r\n<p>hello</p>")),
        Host("length-negative", "liar", "a length below zero", always(HEAD + b"Content-Length: -1\r\n\r\n<p>hello")),
        Host("chunk-giant", "liar", "a chunk of 2^64-1 bytes", always(CHUNKED + b"FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n")),
        Host("chunk-words", "liar", "a chunk size in words", always(CHUNKED + b"five\r\nhello\r\n0\r\n\r\n")),
        Host("type-lie", "liar", "noise that says it is HTML", always(ok(np.random.default_rng(1).bytes(200_000)))),
        Host("charset-lie", "liar", "a character set that nobody knows", always(ok(b"<p>caf\xe9", kind="text/html; charset=klingon-9"))),
        Host("encoding-lie", "liar", "plain text that says it is gzip", _encoded("gzip", lambda: b"<p>not gzip at all")),
        Host("validator-lie", "liar", "an ETag of 100 KB", always(ok(b"<p>x", f'ETag: "{"e" * 100_000}"'))),
        Host("date-lie", "liar", "a date of a far year", always(ok(b"<p>x", "Last-Modified: Sun, 06 Nov 9999999999999999999999999 08:49:37 GMT"))),
        Host("retry-lie", "liar", "Retry-After beyond all numbers", always(ok(b"", "Retry-After: " + "9" * 400, status="503 Busy"))),
        Host("status-lie", "liar", "the status 999", always(ok(b"<p>x", status="999 Odd"))),
        Host("no-http", "liar", "speaks SSH", always(b"SSH-2.0-OpenSSH_9.6\r\n"), expected=FAILED),
        Host("nul-head", "liar", "zero bytes in its head", always(b"HTTP/1.1 200 OK\r\nX: \0\0\r\nContent-Length: 4\r\n\r\n<p>x")),
        _robots_host("robots-loop", "rules that redirect for ever", robots_redirects, SLOW_OR_FETCHED),
        _robots_host("robots-endless", "rules without end", endless(HEAD + b"\r\n", b"Disallow: /x\n" * 300), ANY),
        _robots_host("robots-bomb", "rules that are a bomb", _encoded("gzip", lambda: packed(31)), FAILED),
        _robots_host("robots-patterns", "15,000 patterns with eight wildcards each", _rules(explosive), SLOW_OR_FETCHED),
        _robots_host("robots-delay", "a Crawl-delay of 1e400", _rules(b"User-agent: *\nCrawl-delay: 1e400\n"), SLOW_OR_FETCHED),
        Host("lead-home", "trap", "leads to this machine", leads(lambda scene: f"http://127.0.0.1:{scene.web.ports['http']}/secret")),
        Host("lead-metadata", "trap", "leads to a cloud's metadata", leads(lambda _scene: "http://169.254.169.254/latest/meta-data/")),
        Host("lead-file", "trap", "leads to a file", leads(lambda _scene: "file:///etc/passwd")),
        Host("calendar", "trap", "a calendar without end", linking(lambda scene, _rng: [f"/calendar/{int(scene.path.strip('/').split('/')[-1] if scene.path[-1].isdigit() else 2026) + n}" for n in (1, 2)])),
        Host("farm", "trap", "2,000 new links on each page", linking(lambda _scene, rng: [f"/p/{rng()}" for _ in range(2_000)])),
        Host("sessions", "trap", "a session in each link", linking(lambda _scene, rng: [f"/s?PHPSESSID={rng()}" for _ in range(50)])),
        Host("deep", "trap", "folders within folders", linking(lambda scene, _rng: [f"{scene.path.rstrip('/')}/a/b/a/b/"])),
        Host("long-urls", "trap", "links of 100 KB", linking(lambda _scene, rng: ["/" + rng() * 3_000])),
        Host("sitemaps", "trap", "sitemaps of sitemaps of sitemaps", sitemaps_without_end, names_sitemaps, SLOW_OR_FETCHED),
        Host("sitemap-bomb", "trap", "a sitemap that is a bomb", sitemap_bomb, names_sitemaps, SLOW_OR_FETCHED),
        Host("sitemap-laughs", "trap", "a sitemap with a billion laughs", sitemap_laughs, names_sitemaps, SLOW_OR_FETCHED),
        Host("h2-reset", "http2", "refuses each stream at once", rapid_reset, door="tls", expected=FAILED),
        Host("h2-away", "http2", "ends each connection before it answers", goes_away, door="tls", expected=FAILED),
        Host("h2-settings", "http2", "settings without end", flood(lambda _s: b"", lambda _s: frame(_SETTINGS, 0, 0)), door="tls", expected=FAILED),
        Host("h2-ping", "http2", "pings without end", flood(lambda _s: b"", lambda _s: frame(_PING, 0, 0, bytes(8))), door="tls", expected=FAILED),
        Host("h2-continuation", "http2", "a head that goes on for ever", flood(lambda s: frame(_HEADERS, 0, s, OK_FIELDS), lambda s: frame(_CONTINUATION, 0, s, b"\x00\x01a\x01b" * 200)), door="tls", expected=FAILED),
        Host("h2-hpack", "http2", "a head of 64 MB in 20 KB", hpack, door="tls", expected=FAILED),
        Host("h2-empty", "http2", "empty frames of data without end", flood(lambda s: frame(_HEADERS, 4, s, OK_FIELDS), lambda s: frame(_DATA, 0, s)), door="tls"),
        Host("h2-window", "http2", "sends more than the window allows", ignores_windows, door="tls"),
        Host("h2-push", "http2", "pushes what nobody asked for", flood(lambda _s: b"", lambda s: frame(_PUSH, 4, s, struct.pack(">I", 2) + OK_FIELDS)), door="tls", expected=FAILED),
        Host("tls-expired", "tls", "a certificate of last month", home, door="expired", expected=FAILED),
        Host("tls-other", "tls", "a certificate of somebody else", home, door="wrong", expected=FAILED),
        Host("tls-stall", "tls", "stops in the middle of the handshake", silent, door="raw", expected=FAILED),
        Host("tls-plain", "tls", "speaks HTTP where TLS is due", always(ok(b"<p>x")), door="raw", expected=FAILED),
        Host("tls-noise", "tls", "sends noise instead of a handshake", endless(b"", np.random.default_rng(2).bytes(4096)), door="raw", expected=FAILED),
        Host("dns-none", "dns", "has no name", answers=lambda _n, _a: 3, expected=FAILED),
        Host("dns-failure", "dns", "its name server fails", answers=lambda _n, _a: 2, expected=FAILED),
        Host("dns-silent", "dns", "its name server never answers", answers=lambda _n, _a: None, expected=FAILED),
        Host("dns-private", "dns", "its address is private", answers=lambda _n, _a: ["10.1.2.3"], expected=REFUSED),
        Host("dns-here", "dns", "its address is this machine", answers=lambda _n, _a: ["127.0.0.1"], expected=REFUSED),
        Host("dns-mixed", "dns", "one address of two is this machine", home, answers=lambda _n, a: ["127.0.0.1", a]),
        Host("dns-rebind", "dns", "names this machine from the second question on", home, answers=lambda n, a: [a] if n == 0 else ["127.0.0.1"]),
        Host("dns-many", "dns", "has 200 addresses", home, answers=lambda _n, a: [a, *(f"127.7.200.{n}" for n in range(1, 200))]),
    ]  # fmt: skip


def healthy(count: int) -> list[Host]:
    """Hosts with five pages each, which link each other."""

    async def play(scene: Scene) -> None:
        links = "".join(f'<a href="/{n}">page {n}</a> ' for n in range(1, 5))
        await scene.send(ok(f"<title>{scene.host.name}{scene.path}</title><p>{links} Words of a page.</p>".encode()))

    return [
        Host(f"healthy-{n}", "healthy", "nothing bad", play, expected=FETCHED, door="tls" if n % 3 == 2 else "http")
        for n in range(count)
    ]


# -- the servers ---------------------------------------------------------------------------------------


def address_of(number: int) -> str:
    """The address of a host by its place among all."""
    return f"127.7.{number // 200}.{number % 200 + 1}"


class HostileWeb:
    """All servers: a process for hostile hosts, one for the healthy, so that floods slow nobody down, and DNS.

    A context manager. ``folder`` takes the certificates.
    """

    def __init__(self, hosts: Sequence[Host], folder: Path) -> None:
        self.hosts, self.folder = hosts, folder
        self.address = {host.name: address_of(number) for number, host in enumerate(hosts)}
        self.asked: dict[str, list[str]] = {}
        """Paths asked for, by host; once it is over."""
        self.trespasses: list[str] = []
        """Requests to addresses that nobody may reach, as this machine itself; once it is over."""
        self.questions: dict[str, int] = {}
        """Questions to DNS, by name."""
        self._down_for = 0.0
        self._ports: dict[bool, dict[str, int]] = {}
        self._processes: dict[bool, subprocess.Popen[str]] = {}
        self._dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    @property
    def trusted(self) -> Path:
        """The certificate that the crawler should trust."""
        return self.folder / "good.pem"

    @property
    def dns_port(self) -> int:
        """Where DNS listens on loopback."""
        return int(self._dns.getsockname()[1])

    def url(self, name: str, path: str = "/") -> str:
        """A URL of a host by its name."""
        host = next(host for host in self.hosts if host.name == name)
        return _url(host, self._ports[host.kind == "healthy"], path)

    def __enter__(self) -> Self:
        names = [f"{host.name}.test" for host in self.hosts]
        certificate(self.trusted, names)
        certificate(self.folder / "expired.pem", names, days=-1)
        certificate(self.folder / "wrong.pem", ["somebody.else"])
        self._dns.bind(("127.0.0.1", 0))
        threading.Thread(target=self._answer_questions, daemon=True).start()
        for well in (True, False):
            process = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            self._processes[well] = process
            addresses = {self.address[host.name]: host.name for host in self.hosts if (host.kind == "healthy") == well}
            self._tell(process, {"folder": str(self.folder), "hosts": addresses})
            self._ports[well] = self._hear(process)
        return self

    @staticmethod
    def _tell(process: subprocess.Popen[str], what: object) -> None:
        if process.stdin is not None:
            process.stdin.write(json.dumps(what) + "\n")
            process.stdin.flush()

    @staticmethod
    def _hear(process: subprocess.Popen[str]) -> Any:  # noqa: ANN401 - JSON
        return json.loads(process.stdout.readline()) if process.stdout is not None else None

    def close(self) -> None:
        """End the servers, and take over what they saw."""
        while self._processes:
            _, process = self._processes.popitem()
            self._tell(process, "end")
            seen = self._hear(process)
            self.asked |= seen["asked"]
            self.trespasses += seen["trespasses"]
            process.communicate()
        self._dns.close()

    def __exit__(self, *_error: object) -> None:
        self.close()

    def be_down(self, seconds: float) -> None:
        """Let DNS answer nothing in the first seconds after it is first asked."""
        self._down_for = seconds

    def _answer_questions(self) -> None:
        first = 0.0
        while True:
            try:
                data, address = self._dns.recvfrom(512)
            except OSError:
                return
            first = first or time.perf_counter()
            answer = self._answer(data)
            if answer and time.perf_counter() >= first + self._down_for:
                self._dns.sendto(answer, address)

    def _answer(self, data: bytes) -> bytes:
        """What DNS says to a question for A records, by the table; nothing if it does not answer."""
        name, end = _name_in(data, 12)
        number = self.questions.get(name, 0)
        self.questions[name] = number + 1
        host = next((host for host in self.hosts if f"{host.name}.test" == name), None)
        own = self.address[host.name] if host else ""
        said: Sequence[str] | int | None = 3 if host is None else host.answers(number, own) if host.answers else [own]
        if said is None:
            return b""
        addresses, code = ([], said) if isinstance(said, int) else (said, 0)
        head = data[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(addresses), 0, 0) + data[12 : end + 4]
        rows = (b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(one) for one in addresses)
        return head + b"".join(rows)


def _url(host: Host, ports: Mapping[str, int], path: str) -> str:
    return f"{'http' if host.door == 'http' else 'https'}://{host.name}.test:{ports[host.door]}{path}"


class Servers:
    """The servers of one process."""

    def __init__(self, folder: Path, hosts: Mapping[str, str]) -> None:
        """``hosts`` are names by address."""
        known = {host.name: host for host in (*table(), *healthy(100))}
        self.folder = folder
        self.by_address = {address: known[name] for address, name in hosts.items()}
        self.ports: dict[str, int] = {}
        self.asked: dict[str, list[str]] = {}
        self.trespasses: list[str] = []

    def url(self, name: str, path: str = "/") -> str:
        """A URL of a host by its name."""
        return _url(next(host for host in self.by_address.values() if host.name == name), self.ports, path)

    async def serve(self) -> None:
        """Start, say which ports, and end when told to."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, _context: None)  # what clients do to us says nothing
        await self._start()
        print(json.dumps(self.ports), flush=True)
        await loop.run_in_executor(None, sys.stdin.readline)
        print(json.dumps({"asked": self.asked, "trespasses": self.trespasses}), flush=True)
        os._exit(0)

    async def _start(self) -> None:
        ip_gate: dict[str, ssl.SSLContext | None] = {
            "http": None,
            "raw": None,
            "tls": self._tls(self.folder / "good.pem", "h2", "http/1.1"),
            "expired": self._tls(self.folder / "expired.pem"),
            "wrong": self._tls(self.folder / "wrong.pem"),
        }
        for door, context in ip_gate.items():
            server = await asyncio.start_server(self._connected, "0.0.0.0", 0, ssl=context, backlog=512, limit=1 << 16)
            self.ports[door] = server.sockets[0].getsockname()[1]

    @staticmethod
    def _tls(file: Path, *protocols: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = writer.get_extra_info("sockname")[0]
        host = self.by_address.get(address)
        tls = writer.get_extra_info("ssl_object")
        try:
            if host is None:
                self.trespasses.append(f"{address}: {(await reader.readline()).decode('latin-1')}")
            elif host.door == "raw" and host.play is not None:
                self.asked.setdefault(host.name, []).append("(handshake)")
                await host.play(Scene("/", b"", writer, reader, host, self))
            elif tls is not None and tls.selected_alpn_protocol() == "h2":
                await self._speak_http2(host, reader, writer)
            else:
                await self._speak_http1(host, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ssl.SSLError, TimeoutError):
            pass
        finally:
            with suppress(Exception):
                writer.close()

    async def _speak_http1(self, host: Host, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ")[1].decode("latin-1")
        await self._play(host, path, head, reader, writer)

    async def _play(
        self, host: Host, path: str, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.asked.setdefault(host.name, []).append(path)
        scene = Scene(path, head, writer, reader, host, self)
        if path.startswith("/robots"):
            await (host.robots or always(ok(b"", status="404 None")))(scene)
        elif host.play is not None:
            await host.play(scene)

    async def _speak_http2(self, host: Host, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from h2.config import H2Configuration
        from h2.connection import H2Connection
        from h2.events import RequestReceived

        connection = H2Connection(H2Configuration(client_side=False, header_encoding="latin-1"))
        connection.initiate_connection()
        while True:
            writer.write(connection.data_to_send())
            await writer.drain()
            data = await reader.read(65_536)
            if not data:
                return
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    await self._answer_http2(connection, event, host, reader, writer)

    async def _answer_http2(
        self,
        connection: Any,  # noqa: ANN401 - of h2, which has no types
        event: Any,  # noqa: ANN401
        host: Host,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        path = dict(event.headers)[":path"]
        if host.kind == "http2" and not path.startswith("/robots"):
            writer.write(connection.data_to_send())
            await self._play(host, path, str(event.stream_id).encode(), reader, writer)
            return
        self.asked.setdefault(host.name, []).append(path)
        found = not path.startswith("/robots")
        connection.send_headers(
            event.stream_id, [(":status", "200" if found else "404"), ("content-type", "text/html")]
        )
        links = "".join(f'<a href="/{n}">page {n}</a> ' for n in range(1, 5))
        body = f"<title>{host.name}{path}</title><p>{links} Words of a page.</p>" if found else ""
        connection.send_data(event.stream_id, body.encode(), end_stream=True)


def _name_in(data: bytes, at: int) -> tuple[str, int]:
    labels = []
    while size := data[at]:
        labels.append(data[at + 1 : at + 1 + size].decode("latin-1"))
        at += size + 1
    return ".".join(labels).lower(), at + 1


def resolve_with(port: int, patience: float = 2.0) -> None:
    """Let this process ask the DNS server at a port of loopback for all names, and nobody else."""

    def getaddrinfo(host: str, *_arguments: object, **_more: object) -> list[tuple[Any, ...]]:
        try:
            addresses = [socket.inet_ntoa(socket.inet_aton(host))]
        except OSError:
            addresses = _asked(host, port, patience)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]

    socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]


def _asked(host: str, port: int, patience: float) -> list[str]:
    question = b"".join(bytes([len(label)]) + label.encode() for label in host.split(".")) + b"\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(patience)
        asking.sendto(b"\x12\x34\x01\x00\0\1\0\0\0\0\0\0" + question, ("127.0.0.1", port))
        try:
            said = asking.recv(65_535)
        except TimeoutError:
            raise socket.gaierror(socket.EAI_AGAIN, "no name server answers") from None
    code, count = said[3] & 15, struct.unpack(">H", said[6:8])[0]
    if code:
        none = 3
        raise socket.gaierror(socket.EAI_NONAME if code == none else socket.EAI_AGAIN, f"DNS says {code}")
    at = 12 + len(question)
    return [socket.inet_ntoa(said[at + 16 * n + 12 : at + 16 * n + 16]) for n in range(count)]


def certificate(file: Path, names: Sequence[str], days: int = 30) -> None:
    """Write a key and a certificate for names, signed by itself, that ends in N days."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)  # noqa: TID251 - TLS goes by the clock of the machine
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=60))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))


if __name__ == "__main__":
    told = json.loads(sys.stdin.readline())
    asyncio.run(Servers(Path(told["folder"]), told["hosts"]).serve())
