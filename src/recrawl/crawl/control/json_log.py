"""The event log of a crawl: one JSON object per line, with the fields of Browsertrix (conventions S4).

    {"timestamp": "2026-01-02T03:04:05.678Z", "logLevel": "info", "context": "fetch", "message": "…",
     "worker": "…", "details": {…}}

Several workers may write one file; ``worker`` names the writer. Only the worker and the command line write it; the pure
packages return values instead.

:class:`LogFile` is a file that several processes append to, that may be moved away under them, and that is rotated when
it is large. A line that does not fit on the disk waits in memory, and the writer gets an error. A file is rotated by
renaming it: a process that still writes to it finishes its line there and goes on in the new one. So no line is lost,
whether recrawl or another program rotates (logrotate needs no ``copytruncate``). Nothing is ever deleted.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal, Protocol, Self, get_args

import numpy as np

from recrawl.errors import DiskFullError
from recrawl.formats.atomic_files import FULL, is_at, lock
from recrawl.time import to_iso

Level = Literal["debug", "info", "warn", "error", "fatal"]
"""Severity of an event, as Browsertrix names it, in ascending order."""
LEVELS: tuple[Level, ...] = get_args(Level)


_encoded = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode


class LogClock(Protocol):
    """The part of a clock that a log needs."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        ...


class TextStream(Protocol):
    """The part of a text stream that a log needs."""

    def write(self, text: str, /) -> object:
        """Write text."""
        ...

    def flush(self) -> object:
        """Make written text visible to readers."""
        ...


class JsonLinesLog:
    """Writes events to a text stream, one line each, flushed at once.

    A value that JSON cannot hold is written as its text: a log line must never stop a crawl. The caller handles errors
    of the stream itself (a full disk).
    """

    def __init__(self, stream: TextStream, clock: LogClock, *, level: Level = "debug", worker: str = "") -> None:
        """Events below ``level`` are counted and not written. ``worker`` is named in each event, if given."""
        self._stream = stream
        self._clock = clock
        self._worker = {"worker": worker} if worker else {}
        self._written = frozenset(LEVELS[LEVELS.index(level) :])
        self.counts: dict[Level, int] = dict.fromkeys(LEVELS, 0)
        """Events so far, by level."""

    def write_from(self, level: Level) -> None:
        """Write events from this level on."""
        self._written = frozenset(LEVELS[LEVELS.index(level) :])

    def event(
        self, context: str, message: str, *, level: Level = "info", details: Mapping[str, object] | None = None
    ) -> None:
        """Write one event.

        Args:
            context: The component: ``fetch``, ``store``, ``schedule``.
            message: A constant sentence, so that events can be counted by it.
            level: Its severity.
            details: Variable data: the URL, the status, the reason.
        """
        self.events(context, message, [(level, details or {})])

    def events(self, context: str, message: str, said: Iterable[tuple[Level, Mapping[str, object]]]) -> None:
        """Write several events of one kind: the level and details of each."""
        now = _timestamp(self._clock.now())
        said = list(said)
        for level, _ in said:
            self.counts[level] += 1
        begins = {
            level: _encoded(
                {"timestamp": now, "logLevel": level, "context": context, "message": message, **self._worker}
            )[:-1]
            for level in {level for level, _ in said} & self._written
        }
        lines = [
            f'{begins[level]}, "details": {_encoded(_plain(details))}}}\n' for level, details in said if level in begins
        ]
        if not lines:
            return
        self._stream.write("".join(lines))
        self._stream.flush()


def _timestamp(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_DEPTH = 8
"""Nesting beyond this, cycles included, is written as text."""
_BITS = 1024
"""Integers with more bits are written as hexadecimal text: readers and Python itself refuse very long ones."""


_SHORT = 1e15
"""Numbers up to this have one notation that every reader parses alike."""
_AS_IT_IS = frozenset({str, bool, type(None)})


def _plain(value: object, depth: int = _DEPTH) -> object:  # noqa: PLR0911 - one per type
    """The closest value that JSON can hold."""
    if type(value) in _AS_IT_IS:
        return value
    if (type(value) is int or type(value) is float) and -_SHORT < value < _SHORT:
        return value
    match value:
        case str():
            return str(value)
        case int():
            return int(value) if value.bit_length() <= _BITS else hex(value)
        case float():
            return float(value) if math.isfinite(value) else str(float(value))
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case dict() | Mapping() if depth:
            return {
                key if type(key) is str else _text(key): entry if type(entry) is str else _plain(entry, depth - 1)
                for key, entry in value.items()
            }
        case list() | tuple() | set() | frozenset() if depth:
            return [_plain(entry, depth - 1) for entry in value]
        case np.ndarray() | np.generic() if depth:
            return _plain(value.tolist(), depth - 1)
        case _:
            return _text(value)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - whatever a foreign __str__ does, the line is written
        return f"<{type(value).__name__} without text: {type(error).__name__}>"


_MOST_WAITING = 1 << 20
"""Maximum bytes that wait while the disk is full; further writes are dropped whole."""


class LogFile:
    """Appends to ``path``; beyond ``most`` bytes (0 for never) it is renamed to a name with the time."""

    def __init__(self, path: Path, clock: LogClock, *, most: int = 0) -> None:
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
        """Add text; it must end with the end of a line."""
        if len(self._waiting) < _MOST_WAITING:
            self._waiting += text.encode("utf-8", "backslashreplace")
        return len(text)

    def flush(self) -> None:
        """Write buffered text. Then check whether the file was moved away, or has to be rotated.

        Raises:
            DiskFullError: the disk is full; the rest stays in memory.
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
        """Rotate the file if it is large, and go on in the one that has its name now.

        Only the holder of its lock may rename it: another process doing so at the same moment would rename the new file
        to the same name. The lock ends when the file is closed.
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
        """An unused name: the time, and a number if that is not enough."""
        time = to_iso(self._clock.now()).replace(":", "").replace("-", "")
        free = (self._path.with_name(f"{self._path.name}.{time}{f'-{number}' if number else ''}") for number in _COUNT)
        return next(path for path in free if not path.exists())


_COUNT = range(1_000_000)
