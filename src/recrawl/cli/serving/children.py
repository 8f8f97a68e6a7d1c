"""Work that the dashboard lets other processes do: verbs of recrawl, begun, watched and ended from there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

LAST_WORDS = 2_000
"""Bytes of what a child said that are shown."""
PATIENCE = 10.0
"""Seconds that a child may take to end when it is asked to."""


def end_process(process: subprocess.Popen[Any]) -> None:
    """Wait for a process that was asked to end, and end it if it does not."""
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Child:
    """A verb of recrawl in a process of its own, which ends with the dashboard, also if that is killed."""

    def __init__(self, arguments: list[str], now: float) -> None:
        """Begin. No shell reads the arguments."""
        self.started = now
        self.stopping = False
        self._folder = TemporaryDirectory(prefix="recrawl-")
        self._out, self._err = (Path(self._folder.name) / name for name in ("out", "err"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, and no shell
                [sys.executable, "-m", "recrawl.cli.serving.tether", *arguments],
                stdin=subprocess.PIPE,  # nothing is written: its end tells the child that we are no more
                stdout=out,
                stderr=err,
                start_new_session=True,  # Ctrl-C in our terminal is for us; the child hears of it from us
            )

    @property
    def code(self) -> int | None:
        """The exit code; ``None`` while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Ask it to end once what is under way is done; asked again, to end at once."""
        self.stopping = True
        if self.code is None:
            self._process.terminate()

    def end(self) -> None:
        """See to it that it has ended, and forget what it said."""
        if self.code is None:
            self.stop()
            end_process(self._process)
        if self._process.stdin:
            self._process.stdin.close()
        self._folder.cleanup()

    def output(self) -> str:
        """All that it printed."""
        return self._out.read_text("utf-8", "replace")

    def last_words(self) -> str:
        """The end of what it said beside its output, for people."""
        with self._err.open("rb") as said:
            said.seek(max(self._err.stat().st_size - LAST_WORDS, 0))
            text = said.read().decode("utf-8", "replace")
        return "".join(sign for sign in text if sign.isprintable() or sign == "\n").strip()


def in_workspace(folder: Path, flags: Mapping[str, object]) -> list[str]:
    """Options by which a child works in the same workspace, with the same flags."""
    return [f"--workspace={folder}", *(f"--set={key}={value}" for key, value in flags.items())]
