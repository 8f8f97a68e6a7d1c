"""What a TimeMap says: mementos, further maps, and what has been found while one is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from recrawl.errors import InputError, require
from recrawl.formats import captures
from recrawl.formats.captures import Report
from recrawl.formats.dates import w3c_time

BATCH = 20_000
"""Rows of a batch."""
NAN = float("nan")
_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC).timestamp()
"""There was no web before."""
_LATEST = datetime(2101, 1, 1, tzinfo=UTC).timestamp()
TIMESTAMP = re.compile(r"\d{14}(?:\d{3})?")
"""A time as archives write it, perhaps with milliseconds."""
_IN_MEMENTO = re.compile(r"/\d{14}(?:[a-z]{2}_)?/(https?:/.*)", re.DOTALL | re.IGNORECASE)


class Memento(NamedTuple):
    """One capture, as a TimeMap lists it."""

    uri: str
    """Where the archive keeps it; may be empty where a map gives only times."""
    original: str
    """What was captured."""
    time: float
    """Seconds since the epoch."""


class MapPage(NamedTuple):
    """A further TimeMap of the same URL."""

    uri: str
    start: float = NAN
    """The first capture it lists, seconds since the epoch; NaN if unsaid."""
    end: float = NAN
    """The last one."""


@dataclass(frozen=True, slots=True)
class TimeMap:
    """One TimeMap, or one page of it."""

    mementos: tuple[Memento, ...]
    pages: tuple[MapPage, ...] = ()
    """Further maps to read; other forms of this one and itself are not among them."""
    original: str = ""
    timegate: str = ""
    self_uri: str = ""


class Findings:
    """What has been read so far, and where complaints go."""

    def __init__(self, source: str, report: Report, offset: int) -> None:
        self.original = self.timegate = self.self_uri = ""
        self._found: list[tuple[str, str, float, int]] = []
        self._pages: dict[str, MapPage] = {}
        self.source = source
        self._report = report
        self.offset = offset
        """Where the bytes begin that are read now; positions count from there."""

    def broken(self, what: str, position: int) -> None:
        """Tell what is wrong, and at which byte of the file."""
        self._report.broken(what, source=self.source, position=position)

    def memento(self, uri: str, when: object, position: int, original: str = "") -> None:
        """One capture; its time is an HTTP date, a W3C date or 14 digits."""
        time = _time(when)
        if time is None:
            self.broken(f"the datetime {when!r} of a memento is no date", self.offset + position)
        elif time < _EARLIEST:
            self._report.skip("dated before 1990")
        elif time >= _LATEST:
            self._report.skip("dated after 2100")
        else:
            self._found.append((uri, original, time, self.offset + position))

    def page(self, uri: str, start: object = None, end: object = None) -> None:
        """A further map, each once."""
        times = (_time(start), _time(end))
        self._pages.setdefault(uri, MapPage(uri, *(NAN if time is None else time for time in times)))

    def timemap(self) -> TimeMap:
        """Everything, now that the whole map is known: a map may name its original last, or not at all."""
        mementos = tuple(self.mementos())
        pages = tuple(page for page in self._pages.values() if page.uri != self.self_uri)
        return TimeMap(mementos, pages, self.original, self.timegate, self.self_uri)

    def __len__(self) -> int:
        """How many mementos wait to be taken."""
        return len(self._found)

    def rest(self, damage: InputError | None = None) -> Iterator[Memento]:
        """Take the last ones. Where reading ends with damage, what they are of may stand behind it: no error."""
        if damage is None:
            yield from self.mementos()
        else:
            with suppress(InputError):
                yield from self.mementos()

    def mementos(self) -> Iterator[Memento]:
        """Take those found so far, with what is known by now of what they are mementos of."""
        waiting, self._found = self._found, []
        for uri, given, time, position in waiting:
            original = given or self.original or _original_in(uri)
            if not original:
                self.broken("nothing says what this is a memento of", position)
            elif not (is_unicode(original) and is_unicode(uri)):  # JSON can write half a character
                self.broken("the URL of a memento is not Unicode", position)
            else:
                yield Memento(uri, original, time)


def is_unicode(text: str) -> bool:
    r"""Whether every character is one; half of a surrogate pair is not.

    >>> is_unicode("a"), is_unicode("\ud800")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _time(when: object) -> float | None:
    if isinstance(when, str):
        return w3c_time(when[:14] if TIMESTAMP.fullmatch(when) else when)
    return None


def _original_in(uri: str) -> str:
    """The URL within the URI of a memento, which most archives write behind the 14 digits."""
    found = _IN_MEMENTO.search(uri)
    return found[1] if found else ""


def to_batches(mementos: Iterable[Memento], rows: int = BATCH) -> Iterator[Any]:
    """Mementos as captures: Arrow record batches of ``captures.schema()``. A map says no more than URL and time."""
    pa = require("pyarrow", "columns")
    part: list[Memento] = []

    def full() -> Iterator[Any]:
        for memento in mementos:
            part.append(memento)
            if len(part) == rows:
                yield _batch(pa, part)
                part.clear()

    return captures.and_rest(full(), lambda _damage: [_batch(pa, part)] if part else [])


def _batch(pa: Any, part: list[Memento]) -> Any:  # noqa: ANN401 - the pyarrow module and one of its batches
    schema = captures.schema()
    given = {"url": [one.original for one in part], "time": [one.time for one in part]}
    same = {
        "kind": captures.RecordKind.RESPONSE,
        "status": captures.NO_STATUS,
        "size": captures.NO_SIZE,
        "offset": captures.NO_SIZE,
        "length": captures.NO_SIZE,
    }
    columns = [
        pa.array(given[field.name], field.type)
        if field.name in given
        else pa.repeat(pa.scalar(same.get(field.name, ""), field.type), len(part))
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
