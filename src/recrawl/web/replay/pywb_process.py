"""Full replay with pywb, in a process of its own on a port of its own."""

from __future__ import annotations

import html
import subprocess
import sys
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from recrawl.errors import RecrawlError, require
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.dashboard.child_processes import end_process
from recrawl.web.replay.pywb_server import LISTENING, PywbSettings
from recrawl.web.replay.replay_app import COLLECTION
from recrawl.web.server.run_servers import address_at

_ASSETS = ("replay-banner.css", "replay-banner.js")
_TEMPLATES = ("frame_insert.html",)
_FACTS = "@FACTS@"
"""The placeholder in the frame for the URL that its banner requests."""


class PywbReplay:
    """pywb as a subprocess. It gets all content from ``archive``, the URL of our replay server."""

    def __init__(self, archive: str, facts: str, *, host: str, port: int, guard: AccessGuard) -> None:
        """Start, and wait until it accepts requests. ``facts`` is the URL of the sharpness data for its banner.

        Raises:
            RecrawlError: it ended at once; the port may be taken.
        """
        require("pywb", "replay")
        self._folder = TemporaryDirectory(prefix="recrawl-replay-")
        folder = Path(self._folder.name)
        _lay_out(folder, facts)
        cookie = f"{guard.pass_name}={guard.proof}" if guard.token else ""
        settings = folder / "settings.json"
        settings.touch(mode=0o600)
        settings.write_text(
            PywbSettings(archive, COLLECTION, host, port, str(folder), cookie).written(), encoding="utf-8"
        )
        log = (folder / "log").open("wb")
        with log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, and no shell
                [sys.executable, "-m", "recrawl.web.replay.pywb_server", str(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                start_new_session=True,  # Ctrl-C in our terminal is for us; the child ends when we let go of its input
            )
        port_taken = self._port()
        if port_taken is None:
            said = (folder / "log").read_text("utf-8", "replace").strip().rpartition("\n")[2]
            self.close()
            raise RecrawlError(f"pywb did not start: {said}", "Give another --port, or leave out --replay.")
        self.address = f"{address_at(host, port_taken)}/{COLLECTION}/"
        """Where pages are replayed, with a slash at its end."""

    def _port(self) -> int | None:
        """The port that it says it listens at; nothing if it ends before."""
        for line in self._process.stdout or ():
            if line.startswith(LISTENING.encode()):
                return int(line.removeprefix(LISTENING.encode()))
        return None

    def close(self) -> None:
        """End it."""
        if self._process.stdin:
            self._process.stdin.close()
        end_process(self._process)
        if self._process.stdout:
            self._process.stdout.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _lay_out(folder: Path, facts: str) -> None:
    """Put our frame and its scripts where pywb finds them before its own."""
    show = resources.files("recrawl.web")
    for name, source, names in (
        ("templates", show / "templates" / "pywb", _TEMPLATES),
        ("static", show / "assets", _ASSETS),
    ):
        (folder / name).mkdir()
        for one in names:
            text = (source / one).read_text("utf-8").replace(_FACTS, html.escape(facts))
            (folder / name / one).write_text(text, encoding="utf-8")
