"""How many files does one visit of ``recrawl run`` pass?

uv run python benchmarks/visit_path.py           files, functions and switches between packages; the goal is 45 files
uv run python benchmarks/visit_path.py --list    also the files, with the functions that ran in each
uv run python benchmarks/visit_path.py --same    the page is as it was at the visit before, byte by byte

A worker as ``recrawl run`` assembles it crawls a small test web over real HTTP until every page was visited. Then one
page becomes due, and every call of a function in ``src/recrawl`` is recorded from its lease to its acknowledgement, in
all threads of the process. Ends with 1 if a visit passes more files than the goal.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType

import numpy as np

import recrawl
from recrawl.app.workspace.workspace import make_workspace, open_workspace
from recrawl.app.workspace.workspace_wiring import LiveSettings, WorkspaceFits, crawl_settings_of, policy_of
from recrawl.crawl.clock import RealClock
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.visit.visit_machine import VisitDone
from recrawl.crawl.worker.crawl_assembly import live_crawl
from recrawl.time import DAY, HOUR

GOAL = 45
"""Files of one visit, at most."""
PAGES = 4
_HERE = str(Path(recrawl.__file__).parent)


class CallRecorder:
    """Records calls of functions in ``src/recrawl`` while it is on, in every thread."""

    def __init__(self) -> None:
        self.on = False
        self.functions: dict[str, set[str]] = defaultdict(set)
        """By file."""
        self.switches = 0
        """Calls from one package of recrawl into another."""
        self._last = ""

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Record a call."""
        code = frame.f_code
        if not self.on or event != "call" or not code.co_filename.startswith(_HERE):
            return
        file = code.co_filename[len(_HERE) + 1 :]
        self.functions[file].add(code.co_qualname)
        package = file.partition("/")[0]
        self.switches += package != self._last
        self._last = package


async def answer(changes: CallRecorder | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request with a page of the test web; it says something else from when calls are recorded."""
    head = await reader.readuntil(b"\r\n\r\n")
    path = head.split(b" ", 2)[1].decode()
    more = b" and news of today" if changes is not None and changes.on else b""
    body = b"".join(b'<p>Some text of page %d%s.</p><a href="/%d">next</a>' % (n, more, n) for n in range(PAGES))
    said = b"404 None" if path == "/robots.txt" else b"200 OK"
    body = b"" if path == "/robots.txt" else b"<html><body><h1>%s</h1>%s</body></html>" % (path.encode(), body)
    writer.write(
        b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
        % (said, len(body), body)
    )
    await writer.drain()
    writer.close()


async def crawl(folder: Path, recorder: CallRecorder, *, same: bool) -> None:
    """Crawl until all pages are known, then record one visit."""
    server = await asyncio.start_server(partial(answer, None if same else recorder), "127.0.0.1", 0)
    host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    flags = {
        "fetch.contact": "me@example.org",
        "fetch.allow_networks": "127.0.0.0/8",
        "politeness.min_delay": "0s",
        "politeness.ip_delay": "0",
        "schedule.budget": "100/s",
    }
    place = open_workspace(folder, flags)
    said, live, clock = place.configuration.settings, LiveSettings(place), RealClock()
    settings = crawl_settings_of(said, part_of="visit path")
    visited: list[VisitDone] = []

    def on_visits(batch: Sequence[VisitDone]) -> None:
        visited.extend(batch)
        if recorder.on:
            asyncio.get_running_loop().call_soon(end)

    def end() -> None:
        recorder.on = False  # the parts that hear of an acknowledged visit have done so; the end of the run is no visit
        driver.stop()

    with place.open_store() as store:
        store.discover([f"http://{host}/{number}" for number in range(PAGES)], clock.now())
        async with live_crawl(
            "one",
            policy_of(said.schedule, store.urls),
            clock=clock,
            store=store,
            folder=folder,
            scope=HostScope(frozenset({host})),
            settings=settings,
            orders=live.orders,
            fits=WorkspaceFits(folder, flags),
            on_visits=on_visits,
        ) as driver:
            running = asyncio.create_task(driver.run(clock.now() + HOUR))
            while len({one.visit.page for one in visited}) < PAGES or driver.load().made:  # noqa: ASYNC110 - a state, not an event
                await asyncio.sleep(0.1)
            every = store.pages().id
            store.reschedule(every, np.full(len(every), clock.now() + DAY))
            await asyncio.sleep(3.0)  # nothing is due any more
            store.reschedule(every[:1], np.array([clock.now()]))
            recorder.on = True
            await running
    server.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="list the files and their functions")
    parser.add_argument("--same", action="store_true", help="the page did not change")
    asked = parser.parse_args()
    recorder = CallRecorder()
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "workspace"
        make_workspace(place, {})
        asyncio.run(crawl(place, recorder, same=asked.same))
    sys.setprofile(None)
    if asked.list:
        for file, functions in sorted(recorder.functions.items()):
            print(f"{file}: {', '.join(sorted(functions))}")
    count = sum(map(len, recorder.functions.values()))
    print(
        f"one visit passes {len(recorder.functions)} files (goal {GOAL}), {count} functions, "
        f"{recorder.switches} switches between packages"
    )
    sys.exit(len(recorder.functions) > GOAL)


if __name__ == "__main__":
    main()
