"""The servers of a workspace, to be measured: ``python benchmarks/serve_ours.py travel|dashboard FOLDER``.

It prints the port it listens at, and ends when its standard input does.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from recrawl.app.workspace.workspace import open_workspace
from recrawl.crawl.clock import RealClock
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.servers import bound, serve_all


def main() -> None:
    """Serve until standard input ends."""
    what, folder = sys.argv[1:]
    place = open_workspace(Path(folder), {})
    threading.Thread(target=_until_told, daemon=True).start()
    if what == "travel":
        from recrawl.web.replay.workspace_archive import time_travel

        with (
            bound("127.0.0.1", 0) as listening,
            time_travel(place, AccessGuard(), "127.0.0.1", listening, replay=None) as travel,
        ):
            serve_all(travel.apps, said(travel.apps[0][1]), [travel.first])
        return
    from recrawl.web.dashboard.dashboard_app import FIRST_LOOKS, make_app, wired
    from recrawl.web.servers import PrefetchPaths

    dashboard = wired(place, AccessGuard(), RealClock().now)
    app = make_app(dashboard.site)
    dashboard.begin()
    with bound("127.0.0.1", 0) as listening:
        try:
            serve_all([(app, listening)], said(listening), [PrefetchPaths(app, FIRST_LOOKS)])
        finally:
            dashboard.close()


def said(listening: socket.socket) -> Callable[[], None]:
    """Report the progress to the measuring process."""
    return lambda: print(f"port {listening.getsockname()[1]}", flush=True)


def _until_told() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
