"""What a person sees while a crawl runs: one line that tells how it goes, or now and then a line in a log."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import typer

from recrawl.cli.tables import shown_time
from recrawl.crawl.pulse import Pulse
from recrawl.crawl.target import Visited
from recrawl.model import ANSWERED, Verdict
from recrawl.model.failures import NOT_ALLOWED
from recrawl.model.words import counted
from recrawl.time import MINUTE, format_duration

_REFRESH = 0.5
"""Seconds between two looks, on a terminal."""
_SELDOM = 5 * MINUTE
"""Seconds between two lines elsewhere."""
_TWO = 2
"""Moments between which there is a rate."""
_LATE = 2.0
"""Seconds: what is late by less is on time."""


@dataclass(slots=True)
class Tally:
    """What was done so far."""

    visits: int = 0
    changed: int = 0
    failed: int = 0
    out_of_reach: int = 0
    """Those of them that failed because their address is not one that we connect to."""
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, visited: Sequence[Visited]) -> None:
        """Count these visits."""
        self.visits += len(visited)
        self.changed += sum(one.visit.verdict == Verdict.CHANGED for one in visited)
        self.failed += sum(one.visit.outcome > ANSWERED for one in visited)
        self.out_of_reach += sum(one.visit.status == NOT_ALLOWED for one in visited)

    def rate(self, now: float) -> float:
        """Visits per second over the last minute, or since this was last asked if that is longer ago."""
        self._recent.append((now, self.visits))
        while len(self._recent) > _TWO and now - self._recent[1][0] >= MINUTE:
            self._recent.popleft()
        since, before = self._recent[0]
        return (self.visits - before) / (now - since) if now > since else 0.0

    def words(self) -> str:
        """For the end.

        >>> Tally(1200, 31, 2).words()
        '1,200 visits: 31 found a change, 2 failed.'
        """
        words = f"{counted(self.visits, 'visit')}: {self.changed:,} found a change, {self.failed:,} failed."
        if not self.out_of_reach:
            return words
        return f"{words}\n{self.out_of_reach:,} at addresses of private networks; fetch.allow_networks allows them."


@dataclass(frozen=True, slots=True)
class GettingReady:
    """A line that says what a start waits for."""

    tell: Callable[[str], None]
    """Say what is being done."""
    stop: Callable[[], None]
    """It is ready."""


@contextmanager
def getting_ready() -> Iterator[GettingReady]:
    """Say that there is something to wait for: at the first start kernels are compiled, which takes seconds."""
    from rich.console import Console
    from rich.status import Status

    console = Console(stderr=True)
    if not console.is_terminal:
        yield GettingReady(lambda _doing: None, lambda: None)
        return
    with Status("Getting ready (the first start takes longest)", console=console) as shown:
        yield GettingReady(lambda doing: shown.update(f"Getting ready: {doing}"), shown.stop)


@contextmanager
def display(tally: Tally, until: float, pulse: Callable[[], Pulse]) -> Iterator[Callable[[float], None]]:
    """Something to be told the time now and then, which shows how it goes.

    On a terminal that is a line that is kept current; elsewhere a new line every few minutes, on standard error.
    """
    from rich.console import Console
    from rich.status import Status

    console = Console(stderr=True)
    if not console.is_terminal:

        def tell() -> None:
            now = pulse()
            typer.echo(f"{shown_time(now.now)} {sentence(tally, now, until)}", err=True)

        tally.rate(pulse().now)  # from which the first line counts
        yield every(_SELDOM, tell, at_once=False)
        return
    with Status("Looking for what is due", console=console) as shown:
        yield every(_REFRESH, lambda: shown.update(sentence(tally, pulse(), until)))


def every(seconds: float, show: Callable[[], object], *, at_once: bool = True) -> Callable[[float], None]:
    """Something to be told the time, which shows at most so often; the first time at once or after such a while."""
    show_at = -math.inf if at_once else math.inf

    def told(now: float) -> None:
        nonlocal show_at
        if show_at == math.inf:
            show_at = now + seconds
        if now >= show_at:
            show_at = now + seconds
            show()

    return told


def together(*told: Callable[[float], None]) -> Callable[[float], None]:
    """One to be told the time instead of several."""

    def tell(now: float) -> None:
        for one in told:
            one(now)

    return tell


def sentence(tally: Tally, pulse: Pulse, until: float) -> str:
    """How it goes, in one line."""
    rate = tally.rate(pulse.now)
    done = f"{counted(tally.visits, 'visit')}, {tally.changed:,} changed, {tally.failed:,} failed, {rate:.1f}/s"
    left = f"; {format_duration(until - pulse.now)} left" if math.isfinite(until) else ""
    return f"{done}; {_waiting(pulse, rate)}{left}"


def _waiting(pulse: Pulse, rate: float) -> str:
    """What is due, how late it is, and when that will be over."""
    if pulse.paused:
        return f"paused, {pulse.due:,} due"
    if not pulse.due:
        return f"next due {shown_time(pulse.next_due)}"
    words = f"{pulse.due:,} due"
    if pulse.held:
        words += f" ({pulse.held:,} on paused hosts)"
    if pulse.late > _LATE:
        words += f", late by {format_duration(pulse.late)}"
    if pulse.left is not None and pulse.left < 1:
        return f"{words}; the budget is spent, {_pace(pulse.budget)}"
    ahead = pulse.due - pulse.held
    return f"{words}, done in {format_duration(ahead / rate)}" if rate > 0 and ahead else words


def _pace(budget: float) -> str:
    """How it goes on once the budget is spent.

    >>> _pace(1 / 90), _pace(0.0)
    ('one visit every 1.5 min', 'and it is 0')
    """
    return f"one visit every {format_duration(1 / budget)}" if budget > 0 else "and it is 0"
