"""Run servers on sockets of their own until somebody interrupts."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from recrawl.cli.serving.warm import Looks, look_first
from recrawl.crawl import event_loop
from recrawl.crawl.garbage import long_running
from recrawl.errors import ConfigError, InputError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what a user may ask for
LAST_PORT = 65_535
GRACE = 3
"""Seconds that answers under way get when the server ends."""


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens at this address; port 0 takes any that is free.

    Raises:
        InputError: the address is in use.
        ConfigError: it is not this machine's, or there is no such port.
    """
    if port > LAST_PORT:
        raise ConfigError(f"There is no port {port} to serve archived pages at.", "Give a lower one with --port.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigError(f"{host} is no address of this machine.", "Give another with --host.") from error
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError as error:
        found.close()
        raise InputError(
            f"Nothing can be served at {host} port {port}: {error.strerror}.", "Give another with --port; 0 takes any."
        ) from error
    return found


def address_of(listening: socket.socket, host: str) -> str:
    """The address that a browser opens."""
    return address_at(host, listening.getsockname()[1])


def address_at(host: str, port: int) -> str:
    """The address that a browser opens; of a server that listens everywhere, by the name of the machine.

    >>> address_at("127.0.0.1", 8080), address_at("::1", 8080)
    ('http://127.0.0.1:8080', 'http://[::1]:8080')
    >>> address_at("0.0.0.0", 8080) == address_at(socket.gethostname(), 8080)
    True
    """
    if host in _EVERYWHERE:
        host = socket.gethostname()
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def serve_all(
    apps: Sequence[tuple[ASGIApp, socket.socket]],
    ready: Callable[[], None],
    first: Sequence[Looks] = (),
    *,
    over: Callable[[], bool] = lambda: False,
) -> None:
    """Serve each application on its socket until a signal comes; not at all if it is ``over`` before it began.

    ``ready`` is called when all take requests. Then we look at what is to be looked at ``first``, before others do.
    """
    with long_running():
        event_loop.run(_serve_all(apps, ready, first, over))


async def _serve_all(
    apps: Sequence[tuple[ASGIApp, socket.socket]],
    ready: Callable[[], None],
    first: Sequence[Looks],
    over: Callable[[], bool],
) -> None:
    servers = [_server(app) for app, _ in apps]
    with _ended_by_signals(servers):
        if over():
            return
        tasks = [
            asyncio.create_task(server.serve(sockets=[listening]))
            for server, (_, listening) in zip(servers, apps, strict=True)
        ]
        # uvicorn tells nobody when it is ready.
        while not all(server.started or task.done() for server, task in zip(servers, tasks, strict=True)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        ready()
        looking = asyncio.create_task(_settle(first))
        await asyncio.gather(*tasks)
        looking.cancel()


@contextmanager
def heard_before() -> Iterator[Callable[[], bool]]:
    """Within the block Ctrl-C and SIGTERM are noted; what is given tells whether one came.

    For the time from when an address is printed to when its server takes signals itself: to end in the middle of
    loading would leave half of it behind. Whoever cannot wait interrupts again.
    """
    heard: list[int] = []

    def note(number: int, frame: object) -> None:  # noqa: ARG001 - as handlers of signals are called
        heard.append(number)
        if len(heard) > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(heard)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _settle(first: Sequence[Looks]) -> None:
    """Look at what is to be looked at first. What was loaded for it stays, so garbage is not looked for there again."""
    await look_first(first)
    gc.collect()
    gc.freeze()


def _server(app: ASGIApp) -> uvicorn.Server:
    import uvicorn

    from recrawl.cli.serving.connections import protocol

    class Quiet(uvicorn.Server):
        """Leaves signals to us: one interrupt ends all servers of the process."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Quiet(
        uvicorn.Config(
            app,
            http=protocol(),
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=GRACE,
        )
    )


@contextmanager
def _ended_by_signals(servers: Sequence[uvicorn.Server]) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def end() -> None:
        for server in servers:
            server.force_exit = server.should_exit
            server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
