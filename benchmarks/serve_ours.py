"""The servers of a workspace, to be measured: ``python benchmarks/serve_ours.py travel|dashboard FOLDER``.

It prints the port it listens at, and ends when its standard input does.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from recrawl.cli.serve_run import bound, serve_all
from recrawl.cli.workspace import open_workspace
from recrawl.crawl.clock import RealClock
from recrawl.show.dashboard.security import Guard


def main() -> None:
    """Serve until standard input ends."""
    what, folder = sys.argv[1:]
    place = open_workspace(Path(folder), {})
    close: Callable[[], None] = lambda: None  # noqa: E731 - what there is to end besides
    if what == "travel":
        from recrawl.cli.serve_archive import archive_of
        from recrawl.show.dashboard.stores import Stores
        from recrawl.show.timetravel.app import time_travel_app

        app = time_travel_app(archive_of(place, Stores(place.open_store).one, RealClock()))
    else:
        from recrawl.cli.serve_wiring import wired
        from recrawl.show.dashboard.app import make_app

        dashboard = wired(place, Guard(), RealClock().now)
        app, close = make_app(dashboard.site), dashboard.close
    with bound("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        threading.Thread(target=_until_told, daemon=True).start()
        try:
            serve_all([(app, listening)], lambda: print(f"port {port}", flush=True))
        finally:
            close()


def _until_told() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
