"""A server that answers with exactly the bytes it was told, on loopback."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]
NOT_FOUND = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"


@dataclass
class WireServer:
    """``answers`` maps a path to the bytes of the whole answer, or to a coroutine that writes it."""

    answers: dict[str, Answer]
    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def paths(self) -> list[str]:
        return [request.split(b" ")[1].decode() for request in self.requests]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(request)
                answer = self.answers.get(request.split(b" ")[1].decode(), NOT_FOUND)
                if callable(answer):
                    await answer(writer)
                    break
                writer.write(answer)
                await writer.drain()
                if b"content-length:" not in answer.lower() and b"chunked" not in answer.lower():
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def _serving(answers: dict[str, Answer], tls: ssl.SSLContext | None = None) -> AsyncIterator[WireServer]:
    wire = WireServer(answers)
    running: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(wire.answer(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@pytest.fixture
def serving():
    return _serving
