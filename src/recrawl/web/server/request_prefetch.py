"""First requests are slow: libraries are loaded, templates read, store files not yet in memory.

So the server requests its own pages once when it starts, and gives up slow ones. It also reads the store file once: a
TimeGate reads it in a dozen places, and each would wait for the disk.

Reading the store file fills the page cache of the system.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message


_PIECE = 1 << 20
SHARE = 4
"""This part of the machine's memory is taken at most: others need theirs."""


def read_ahead(location: str | Path, over: Callable[[], bool], most: int | None = None) -> int:
    """Read the file of an SQLite store once from its beginning; return how many bytes, 0 for any other store.

    It ends early when it is ``over``, or after ``most`` bytes: a quarter of the machine's memory if not given. The
    interpreter is free meanwhile, so this is for a thread behind the scenes.
    """
    scheme, separator, rest = str(location).partition("://")
    if separator and scheme != "sqlite":
        return 0
    return _read(rest.removeprefix("/") if separator else str(location), over, _share() if most is None else most)


def _read(path: str, over: Callable[[], bool], most: int) -> int:
    import apsw

    # SQLite's own way to the file: to close it in any other way would undo the locks that this process has on it.
    try:
        file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    except apsw.Error:  # the request itself will report why it cannot be read
        return 0
    try:
        end, done = min(file.xFileSize(), most), 0
        while done < end and not over():
            read = len(file.xRead(min(_PIECE, end - done), done))
            if not read:  # it was cut short meanwhile
                break
            done += read
        return done
    finally:
        file.xClose()


def _share() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE


PATIENCE = 10.0
"""Seconds after which prefetching is given up: by then users send requests."""


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


class PrefetchPaths(NamedTuple):
    """Paths of one application to prefetch, and its token."""

    app: ASGIApp
    paths: Sequence[str]
    token: str = ""


async def look_first(observations: Sequence[PrefetchPaths], patience: float = PATIENCE) -> int:
    """Request every path, applications in parallel, one path after the other; returns how many responded in time."""
    answered: list[str] = []
    tasks = [asyncio.create_task(_all_of(one, answered)) for one in observations]
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=patience)
        for task in late:
            task.cancel()
    return len(answered)


async def _all_of(observations: PrefetchPaths, answered: list[str]) -> None:
    shown = {"authorization": f"Bearer {observations.token}"} if observations.token else {}
    for path in observations.paths:
        if await _status(observations.app, path, shown) < 500:  # noqa: PLR2004 - HTTP
            answered.append(path)  # noqa: PERF401 - a caller that gives up counts what is there


async def _status(app: ASGIApp, path: str, headers: Mapping[str, str]) -> int:
    """The status of a discarded response."""
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
    except Exception:  # noqa: BLE001 - a request for that page reports it; the other pages still work
        return 500
    finally:
        over.set()
    return found[-1]
