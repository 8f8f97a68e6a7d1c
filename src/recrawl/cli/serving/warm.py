"""First looks are slow: libraries are loaded, templates read, files of the store not yet in memory.

So the server looks at its own pages once as soon as it takes requests. What takes long is given up. And it reads the
file of the store once: a TimeGate looks into it in a dozen places, and each would wait for the disk.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from recrawl.store.read_ahead import read_ahead

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

PATIENCE = 10.0
"""Seconds after which looks are given up: by then others look."""


@contextmanager
def read_ahead_meanwhile(location: str) -> Iterator[None]:
    """Bring the file of a store into memory, as far as there is some, behind the scenes of what is done here."""
    over = threading.Event()
    reading = threading.Thread(target=read_ahead, args=(location, over.is_set), daemon=True, name="recrawl-ahead")
    reading.start()
    try:
        yield
    finally:
        over.set()
        reading.join()


class Looks(NamedTuple):
    """Paths of one application that are asked for, and the token that is shown there."""

    app: ASGIApp
    paths: Sequence[str]
    token: str = ""


async def look_first(looks: Sequence[Looks], patience: float = PATIENCE) -> int:
    """Ask for every path, applications at once, one path after the other; returns how many were answered in time."""
    answered: list[str] = []
    tasks = [asyncio.create_task(_all_of(one, answered)) for one in looks]
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=patience)
        for task in late:
            task.cancel()
    return len(answered)


async def _all_of(looks: Looks, answered: list[str]) -> None:
    shown = {"authorization": f"Bearer {looks.token}"} if looks.token else {}
    for path in looks.paths:
        if await _status(looks.app, path, shown) < 500:  # noqa: PLR2004 - HTTP
            answered.append(path)  # noqa: PERF401 - whoever gives up waiting counts what is there


async def _status(app: ASGIApp, path: str, headers: Mapping[str, str]) -> int:
    """The status of an answer that nobody reads."""
    found, over = [500], asyncio.Event()
    way, _, query = path.partition("?")
    given = {"host": "127.0.0.1", "accept": "text/html", **headers}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "root_path": "",
        "path": way,
        "raw_path": way.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }
    asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        if (message := next(asked, None)) is not None:
            return message
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            found.append(message["status"])

    try:
        await app(scope, receive, send)
    except Exception:  # noqa: BLE001 - whoever opens that page is told; the others are of use meanwhile
        return 500
    finally:
        over.set()
    return found[-1]
