"""Values as people and programs read them: times, shares and rates in words, tables by rows, strict JSON.

Small parts of sentences: which, and from when to when.

Values of options and commands to try next, as users write them: shared by every way into recrawl.
"""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl.app.workspace.settings import VISITS
from recrawl.errors import ConfigError
from recrawl.time import parse_duration, to_iso

if TYPE_CHECKING:
    from recrawl.model import IntArray


def listed(pages: IntArray, names: Callable[[IntArray], Sequence[str]], most: int) -> str:
    """The first ``most`` of these pages by name, and how many more there are.

    >>> import numpy as np
    >>> listed(np.array([4, 5, 6]), lambda pages: [f"/{page}" for page in pages], 2)
    '/4, /5 and 1 more'
    """
    return some_named(names(pages[:most]), len(pages))


def some_named(names: Sequence[str], count: int) -> str:
    """These names, and how many more of ``count`` there are.

    >>> some_named(["/4", "/5"], 3), some_named(["/4"], 1)
    ('/4, /5 and 1 more', '/4')
    """
    rest = count - len(names)
    return ", ".join(names) + (f" and {rest:,} more" if rest > 0 else "")


def period(start: float, end: float) -> str:
    """From when to when, in UTC, to the second; where that would be the same, as exactly as it takes.

    >>> period(0.0, 9.0), period(0.25, 0.5)
    ('1970-01-01T00:00:00Z to 1970-01-01T00:00:09Z', '1970-01-01T00:00:00.250Z to 1970-01-01T00:00:00.500Z')
    """
    texts = [to_iso(start), to_iso(end)]
    for unit in ("milliseconds", "microseconds"):
        if start == end or texts[0] != texts[1]:
            break
        texts = [
            datetime.fromtimestamp(time, UTC).isoformat(timespec=unit).replace("+00:00", "Z") for time in (start, end)
        ]
    return " to ".join(texts)


def valid_period(start: float, end: float) -> str:
    """The instants at which things were valid together: "at" one, or "from" one "to" another.

    >>> valid_period(9.0, 9.0), valid_period(0.0, 9.0)[:30]
    ('at 1970-01-01T00:00:09Z', 'from 1970-01-01T00:00:00Z to 1')
    """
    return f"at {to_iso(start)}" if start == end else f"from {period(start, end)}"


HERE = Path()
"""The present folder: the workspace of commands that name none."""


def seconds_of(option: str, text: str) -> float:
    """Seconds in the duration that an option was given.

    Raises:
        ConfigError: it is none; the option is named.

    >>> seconds_of("--window", "90d")
    7776000.0
    """
    try:
        return parse_duration(text)
    except ConfigError as error:
        raise ConfigError(f"{option}: {error.what}", error.remedy) from error


def seconds_since_epoch(option: str, text: str) -> float:
    """The time that an option was given, in seconds since the epoch.

    Raises:
        ConfigError: it is none; the option is named.

    >>> seconds_since_epoch("--observe", "1970-01-02")
    86400.0
    """
    from recrawl.formats.dates import w3c_time

    when = w3c_time(text)
    if when is None:
        raise ConfigError(f"{option}: {text!r} is not a time.", "Write it as 2026-11-15 or 2026-11-15T09:30:00Z.")
    return when


def pause_of(option: str, text: str) -> float:
    """Seconds between requests, as an option says them: 2s, 500ms; a bare number is seconds.

    Raises:
        ConfigError: it is none; the option is named.

    >>> pause_of("--delay", "10"), pause_of("--delay", "1min")
    (10.0, 60.0)
    """
    try:
        return float(text)
    except ValueError:
        return seconds_of(option, text)


def visits_of(option: str, text: str) -> float:
    """Visits a day, as an option says them: 500, 10000/day or 2/s.

    Raises:
        ConfigError: it is no such number; the option is named.

    >>> visits_of("--budget", "500/h")
    12000.0
    """
    try:
        return float(VISITS.read(text))
    except ConfigError as error:
        raise ConfigError(f"{option}: {error.what}", error.remedy) from error


def command_name() -> str:
    """How the user called us, for commands to try next: behind ``uv run`` the bare name is not on the path."""
    return "uv run recrawl" if "UV_RUN_RECURSION_DEPTH" in os.environ else "recrawl"  # noqa: TID251 - the command line


def command_in(folder: Path, command: str, *arguments: str) -> str:
    """A command to try next in a workspace, as the user can type it.

    >>> command_in(Path("my-archive"), "add", "URL").removeprefix(command_name())
    ' add -w my-archive URL'
    """
    there = [] if folder == HERE else ["-w", shlex.quote(str(folder))]
    return " ".join((command_name(), command, *there, *arguments))


def rows_of(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, object]]:
    """The same table by rows.

    >>> rows_of({"id": [1, 2], "host": ["a", "b"]})
    [{'id': 1, 'host': 'a'}, {'id': 2, 'host': 'b'}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def json_text(value: Sequence[Mapping[str, object]] | Mapping[str, object]) -> str:
    r"""The same as a text.

    >>> json_text({"a": float("nan")})
    '{\n  "a": null\n}'
    """
    return json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False)


def finite(value: object) -> object:
    """``value`` with ``None`` for every number in it that is not finite, as strict JSON and CSV need it."""
    match value:
        case Mapping():
            return {str(key): finite(entry) for key, entry in value.items()}
        case list() | tuple():
            return [finite(entry) for entry in value]
        case float():
            return value if math.isfinite(value) else None
        case _:
            return value


def shown_share(share: float) -> str:
    """A share as a percentage; a dash if it is without bound.

    >>> shown_share(0.256), shown_share(float("nan")), shown_share(float("inf"))
    ('26%', 'not known', '–')
    """
    if math.isnan(share):
        return "not known"
    return f"{share:.0%}" if math.isfinite(share) else "–"


def shown_rate(rate: float) -> str:
    """Changes a day, with three digits.

    >>> shown_rate(0.01234), shown_rate(float("nan"))
    ('0.0123', 'not known')
    """
    return "not known" if math.isnan(rate) else f"{rate:.3g}"


def shown_time(when: float, to_the: str = "minutes") -> str:
    """A time as people read it, in UTC; a dash where there is none. Total: every number has a text.

    >>> shown_time(0.0), shown_time(float("nan")), shown_time(float("inf")), shown_time(1e12)
    ('1970-01-01 00:00', '–', 'never', 'far future')
    >>> shown_time(1.5, "seconds")
    '1970-01-01 00:00:01'
    """
    if when == math.inf:
        return "never"
    if not math.isfinite(when):
        return "–"
    if not _FIRST <= when < _LAST:
        return "far future" if when > 0 else "far past"
    return datetime.fromtimestamp(when, UTC).replace(tzinfo=None).isoformat(" ", to_the)


_FIRST, _LAST = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1, 9999))
"""What a calendar date of four digits can show, in whole years."""


def shown_size(count: float) -> str:
    """Bytes as people write them.

    >>> shown_size(512), shown_size(3_400_000), shown_size(12_345_678_900)
    ('512 B', '3.4 MB', '12.3 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:  # noqa: PLR2004 - the next unit
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
