"""The log of a crawl: one JSON object a line, the fields of Browsertrix (conventions S4).

    {"timestamp": "2026-01-02T03:04:05.678Z", "logLevel": "info", "context": "fetch", "message": "…", "worker": "…",
     "details": {…}}

Several workers may write one file: ``worker`` says which of them speaks.
Only the driver and the command line write it; rooms that think return values instead.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal, Protocol, get_args

import numpy as np

Level = Literal["debug", "info", "warn", "error", "fatal"]
"""How much an event matters, in Browsertrix's words, from the least to the most."""
LEVELS: tuple[Level, ...] = get_args(Level)


_encoded = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode


class SaysNow(Protocol):
    """As much of a clock as a log needs."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        ...


class Stream(Protocol):
    """As much of a text stream as a log needs."""

    def write(self, text: str, /) -> object:
        """Take some text."""
        ...

    def flush(self) -> object:
        """Let everybody see what was taken."""
        ...


class JsonLinesLog:
    """Writes events to a text stream, each as one line that is flushed at once.

    A value that JSON cannot hold is written as its text: a log line must never be the reason a crawl stops. Errors
    of the stream itself (a full disk) are the caller's.
    """

    def __init__(self, stream: Stream, clock: SaysNow, *, level: Level = "debug", worker: str = "") -> None:
        """Events that matter less than ``level`` are counted and not written. ``worker`` is named in each, if given."""
        self._stream = stream
        self._clock = clock
        self._worker = {"worker": worker} if worker else {}
        self._written = frozenset(LEVELS[LEVELS.index(level) :])
        self.counts: dict[Level, int] = dict.fromkeys(LEVELS, 0)
        """Events so far, by level."""

    def event(
        self, context: str, message: str, *, level: Level = "info", details: Mapping[str, object] | None = None
    ) -> None:
        """Write one event.

        Args:
            context: The stage that speaks: ``fetch``, ``store``, ``schedule``.
            message: A constant sentence, so that events can be counted by it.
            level: How much it matters.
            details: What varies: the URL, the status, the reason.
        """
        self.events(context, message, [(level, details or {})])

    def events(self, context: str, message: str, said: Iterable[tuple[Level, Mapping[str, object]]]) -> None:
        """Write several events of one kind that became known together: how much each matters, and its details."""
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
"""Whole numbers beyond this are written as hexadecimal text: readers and Python itself refuse very long ones."""


_SHORT = 1e15
"""Numbers up to this are what they are to every reader."""
_AS_IT_IS = frozenset({str, bool, type(None)})


def _plain(value: object, depth: int = _DEPTH) -> object:  # noqa: PLR0911 - one a type
    """The nearest thing JSON can hold."""
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
