"""A server that answers with exactly the bytes it was told, on loopback, and certificates for it, good and bad."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

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


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """``certificate(name, days)``: a file with key and certificate; it signs itself and ends in so many days."""
    folder = tmp_path_factory.mktemp("tls")

    def write(name, days=2):
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)  # noqa: TID251 - TLS goes by the machine's clock
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=30))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .sign(key, hashes.SHA256())
        )
        plain = serialization.NoEncryption()
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        file = folder / f"{name}-{days}.pem"
        file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
        return file

    return write


@pytest.fixture(scope="session")
def tls():
    """``tls(file, *protocols)``: how a server with this certificate speaks TLS, and what it offers."""

    def context(file, *protocols):
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(file)
        if protocols:
            made.set_alpn_protocols(list(protocols))
        return made

    return context
