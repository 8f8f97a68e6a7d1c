"""Full replay with pywb, in a process of its own on a port of its own."""

from __future__ import annotations

import html
import subprocess
import sys
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from recrawl.cli.serving.children import end_process
from recrawl.cli.serving.run import address_at
from recrawl.errors import RecrawlError, require
from recrawl.show.dashboard.security import Guard
from recrawl.show.timetravel.app import COLLECTION
from recrawl.show.timetravel.pywb_server import LISTENING, Settings

_ASSETS = ("replay-banner.css", "replay-banner.js")
_TEMPLATES = ("frame_insert.html",)
_FACTS = "@FACTS@"
"""Stands in the frame for where its banner asks."""


class PywbReplay:
    """pywb as a child. For all it shows it asks ``archive``, where a server of time travel answers who knows it."""

    def __init__(self, archive: str, facts: str, *, host: str, port: int, guard: Guard) -> None:
        """Begin, and wait until it takes requests. ``facts`` is where its banner asks how sharp a page is.

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
        settings.write_text(Settings(archive, COLLECTION, host, port, str(folder), cookie).written(), encoding="utf-8")
        log = (folder / "log").open("wb")
        with log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, and no shell
                [sys.executable, "-m", "recrawl.show.timetravel.pywb_server", str(settings)],
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
            raise RecrawlError(f"pywb did not begin: {said}", "Give another --port, or leave out --replay.")
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
    """Lay our frame and its scripts where pywb looks for them before it looks at its own."""
    show = resources.files("recrawl.show")
    for name, source, names in (
        ("templates", show / "templates" / "pywb", _TEMPLATES),
        ("static", show / "assets", _ASSETS),
    ):
        (folder / name).mkdir()
        for one in names:
            text = (source / one).read_text("utf-8").replace(_FACTS, html.escape(facts))
            (folder / name / one).write_text(text, encoding="utf-8")
