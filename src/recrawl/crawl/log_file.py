"""A log file that several processes write, that may be moved away under them, and that begins anew when it is large.

A line that finds no room on the disk waits in memory, and whoever wrote it is told.

A file is put aside by renaming it: whoever still writes to it finishes its line there and goes on in the new one. So no
line is lost, whoever did it, this program or another (logrotate needs no ``copytruncate``). Nothing is ever deleted.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

from recrawl.crawl.log import SaysNow
from recrawl.errors import DiskFullError
from recrawl.formats.disk import FULL
from recrawl.formats.warc_repair import is_at, lock
from recrawl.time import to_iso

_MOST_WAITING = 1 << 20
"""Bytes that wait at most while the disk is full; what comes then is dropped, call by call."""


class LogFile:
    """Appends to ``path``; beyond ``most`` bytes (0 for never) it is put aside under a name with the time."""

    def __init__(self, path: Path, clock: SaysNow, *, most: int = 0) -> None:
        self._path, self._clock, self._most = path, clock, most
        self._waiting = b""
        self._file = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(DiskFullError):
            self.flush()
        self._file.close()

    def write(self, text: str, /) -> int:
        """Add a text; it must end with the end of a line."""
        if len(self._waiting) < _MOST_WAITING:
            self._waiting += text.encode("utf-8", "backslashreplace")
        return len(text)

    def flush(self) -> None:
        """Write it down. Then look whether the file was moved away, or has to be.

        Raises:
            DiskFullError: there is no room; what was not written waits.
        """
        try:
            while self._waiting:
                self._waiting = self._waiting[self._file.write(self._waiting) :]
            self._follow()
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise DiskFullError(
                f"{self._path}: the disk is full.", "Free some space; the crawl then goes on."
            ) from error

    def _follow(self) -> None:
        """Put the file aside if it is large, and go on in the one that has its name now.

        Only who has its lock may rename it: another process that does so at the same moment would rename the new file
        in its place, to the same name. The lock ends when the file is closed.
        """
        is_large = self._most and os.fstat(self._file.fileno()).st_size >= self._most
        if is_large and lock(self._file) and is_at(self._file, self._path):
            self._path.rename(self._aside())
        if not is_at(self._file, self._path):
            fresh = self._open()
            self._file.close()
            self._file = fresh

    def _open(self) -> BinaryIO:
        return self._path.open("ab", buffering=0)

    def _aside(self) -> Path:
        """A name that nobody has: the time, and a number if that is not enough."""
        time = to_iso(self._clock.now()).replace(":", "").replace("-", "")
        free = (self._path.with_name(f"{self._path.name}.{time}{f'-{number}' if number else ''}") for number in _COUNT)
        return next(path for path in free if not path.exists())


_COUNT = range(1_000_000)
