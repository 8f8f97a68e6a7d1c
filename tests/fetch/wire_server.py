"""A server that answers with exactly the bytes it was told, on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Answer = bytes | Callable[[asyncio.StreamWriter], "asyncio.Future[None] | object"]


@dataclass
class WireServer:
    """``answers`` maps a path to the bytes of the whole answer, or to a coroutine that writes it."""

    answers: dict[str, Answer]
    port: int = 0
    requests: list[bytes] = field(default_factory=list)

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(request)
                answer = self.answers.get(request.split(b" ")[1].decode(), b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
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
async def serving(answers: dict[str, Answer]) -> AsyncIterator[WireServer]:
    wire = WireServer(answers)
    connections: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(wire._serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
