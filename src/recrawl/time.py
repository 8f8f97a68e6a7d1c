"""Time as everyone in recrawl means it: float seconds since the epoch, UTC; durations in seconds.

A clock is always an argument. This module holds the protocol and the clocks that do not look at the
machine's time; the one that does is ``recrawl.crawl.clock``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeVar

from recrawl.errors import ConfigError

if TYPE_CHECKING:
    import asyncio

MINUTE = 60.0
HOUR = 3_600.0
DAY = 86_400.0
WEEK = 604_800.0

_UNITS = {"ms": 0.001, "s": 1.0, "m": MINUTE, "min": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|min|s|m|h|d|w)")

T = TypeVar("T")


class Clock(Protocol):
    """What a driver asks of time."""

    def now(self) -> float:
        """Seconds since the epoch, UTC. Goes back only where :meth:`set_right` says so."""
        ...

    async def sleep_until(self, when: float) -> None:
        """Return once ``now() >= when``."""
        ...

    async def wait(self, running: Collection[asyncio.Task[T]], until: float) -> set[asyncio.Task[T]]:
        """Return the tasks of ``running`` that are done, at the latest when ``now() >= until``; maybe before."""
        ...

    def set_right(self) -> float:
        """Follow the machine's clock if it was set; the seconds it was set forward, or back if negative."""
        ...

    def elapsed(self) -> float:
        """Seconds that passed since some moment, whoever sets the clock: for how long something lasts."""
        ...

    @property
    def uncertain(self) -> float:
        """Seconds by which the machine's clock was set and is not followed yet; 0 if it was not."""
        ...


class VirtualClock:
    """A clock that stands still until somebody sleeps, then jumps.

    Work takes no virtual time: ``wait`` lets everything that is running finish before it moves, so a
    run on this clock is the same every time, however slow the machine.

    >>> import asyncio
    >>> clock = VirtualClock(100.0)
    >>> asyncio.run(clock.sleep_until(250.0))
    >>> clock.now()
    250.0
    """

    uncertain = 0.0
    """Nobody sets this clock."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = float(start)

    def now(self) -> float:
        """Seconds since the epoch, as last set."""
        return self._now

    def advance_to(self, when: float) -> None:
        """Jump to ``when``; a time in the past changes nothing."""
        self._now = max(self._now, when)

    def set_right(self) -> float:
        """Nobody sets this clock."""
        return 0.0

    def elapsed(self) -> float:
        """As :meth:`now`: nobody sets this clock."""
        return self._now

    async def sleep_until(self, when: float) -> None:
        """Jump to ``when``, letting other tasks run first."""
        import asyncio  # every command imports this module, few need an event loop

        await asyncio.sleep(0)
        self.advance_to(when)

    async def wait(self, running: Collection[asyncio.Task[T]], until: float) -> set[asyncio.Task[T]]:
        """Finish everything that runs; only an idle clock moves on to ``until``."""
        import asyncio

        if not running:
            await self.sleep_until(until)
            return set()
        done, _ = await asyncio.wait(running)
        return done


class AcceleratedClock:
    """Another clock, ``factor`` times as fast, beginning at ``start``.

    >>> base = VirtualClock(1_000.0)
    >>> fast = AcceleratedClock(base, factor=60.0, start=0.0)
    >>> base.advance_to(1_001.0)
    >>> fast.now()
    60.0
    """

    def __init__(self, base: Clock, factor: float, start: float) -> None:
        if not factor > 0:
            raise ConfigError(f"An acceleration of {factor} is not a positive number.", "Use for example 3600.")
        self._base = base
        self._factor = factor
        self._start = start
        self._base_start = base.now()

    def now(self) -> float:
        """Seconds since the epoch on the fast time line."""
        return self._start + (self._base.now() - self._base_start) * self._factor

    def set_right(self) -> float:
        """As the other clock; in seconds on the fast time line."""
        return self._base.set_right() * self._factor

    def elapsed(self) -> float:
        """As the other clock; in seconds on the fast time line."""
        return self._base.elapsed() * self._factor

    @property
    def uncertain(self) -> float:
        """As the other clock; in seconds on the fast time line."""
        return self._base.uncertain * self._factor

    def _on_base(self, when: float) -> float:
        return self._base_start + (when - self._start) / self._factor

    async def sleep_until(self, when: float) -> None:
        """Sleep on the base clock until the fast one reads ``when``."""
        await self._base.sleep_until(self._on_base(when))

    async def wait(self, running: Collection[asyncio.Task[T]], until: float) -> set[asyncio.Task[T]]:
        """Wait on the base clock until the fast one reads ``until`` or a task is done."""
        return await self._base.wait(running, self._on_base(until))


def parse_duration(text: str | float) -> float:
    """Seconds in a duration with units, as settings write it.

    >>> parse_duration("6h"), parse_duration("1d 12h"), parse_duration(2.5)
    (21600.0, 129600.0, 2.5)
    """
    if isinstance(text, int | float):
        return float(text)
    position, total = 0, 0.0
    while position < len(text.rstrip()):
        found = _DURATION.match(text, position)
        if found is None:
            raise ConfigError(
                f"{text!r} is not a duration.", "Write a number and a unit: 500ms, 30s, 15min, 6h, 2d, 1w, or several."
            )
        total += float(found[1]) * _UNITS[found[2]]
        position = found.end()
    if position == 0:
        raise ConfigError("An empty text is not a duration.", "Write a number and a unit, for example 6h.")
    return total


def format_duration(seconds: float) -> str:
    """A duration as people read it: two leading digits and a unit.

    >>> format_duration(90), format_duration(129_600), format_duration(float("inf"))
    ('1.5 min', '1.5 d', 'never')
    """
    if seconds != seconds:  # noqa: PLR0124 - NaN: nothing is known
        return "–"
    if seconds == float("inf"):
        return "never"
    for unit, name in ((365.25 * DAY, "y"), (DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if abs(seconds) >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"


def to_iso(when: float) -> str:
    """RFC 3339 in UTC with seconds, as logs and WARC write it.

    >>> to_iso(0.0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(64)  # what happens in one second is written down together
def iso_second(second: int) -> str:
    """A whole second in UTC as ISO 8601 writes it, without a zone.

    >>> iso_second(1_700_000_000)
    '2023-11-14T22:13:20'
    """
    return datetime.fromtimestamp(second, UTC).isoformat()[:19]


def seconds_and_millionths(when: float) -> tuple[int, int]:
    """A time as ``datetime`` rounds it: the second that has begun, and the nearest millionth of it.

    >>> seconds_and_millionths(1.75), seconds_and_millionths(-0.25), seconds_and_millionths(0.9999999)
    ((1, 750000), (-1, 750000), (1, 0))
    """
    part, second = math.modf(when)
    millionths = round(part * 1e6)
    return int(second) + millionths // 1_000_000, millionths % 1_000_000


def to_timestamp14(when: float) -> str:
    """The 14 digits of CDX (conventions X2).

    >>> to_timestamp14(1_700_000_000.0)
    '20231114221320'
    """
    return datetime.fromtimestamp(when, UTC).strftime("%Y%m%d%H%M%S")


def to_http_date(when: float) -> str:
    """An HTTP date (RFC 9110 5.6.7), independent of the locale.

    >>> to_http_date(784_111_777.0)
    'Sun, 06 Nov 1994 08:49:37 GMT'
    """
    moment = datetime.fromtimestamp(when, UTC)
    return f"{_DAYS[moment.weekday()]}, {moment.day:02} {_MONTHS[moment.month - 1]} {moment:%Y %H:%M:%S} GMT"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


FIRST_SECOND, LAST_SECOND = -62_135_596_800.0, 253_402_300_799.0
"""The years 1 to 9999 in UTC: the times that every function here can write. A date outside of them is no date."""
_LONGEST_DATE = 100
"""Characters of an HTTP date; the longest in use has about forty."""


def from_http_date(text: str) -> float | None:
    """Seconds since the epoch of an HTTP date; ``None`` if it is not one, whatever the text is.

    >>> from_http_date("Sun, 06 Nov 1994 08:49:37 GMT")
    784111777.0
    >>> from_http_date("Sun, 06 Nov 9999999999999999999999999 08:49:37 GMT") is None
    True
    """
    from email.utils import parsedate_to_datetime

    if len(text) > _LONGEST_DATE:
        return None
    try:
        return epoch_seconds(parsedate_to_datetime(text))
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ):  # the mail library promises none of them
        return None


def epoch_seconds(moment: datetime) -> float | None:
    """Seconds since the epoch of a moment, in UTC if it names no zone; ``None`` if its zone takes it out of our years.

    >>> epoch_seconds(datetime(1970, 1, 2)), epoch_seconds(datetime.fromisoformat("0001-01-01T00:00+01:00"))
    (86400.0, None)
    """
    when = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return when if FIRST_SECOND <= when < LAST_SECOND + 1 else None
