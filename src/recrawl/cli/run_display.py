"""What a person sees while a crawl runs: one line that tells how it goes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from recrawl.cli.tables import shown_time
from recrawl.crawl.target import Visited
from recrawl.model import ANSWERED, Verdict
from recrawl.time import MINUTE, format_duration

_REFRESH = 0.5
"""Seconds between two looks at the store."""


@dataclass(slots=True)
class Tally:
    """What was done so far."""

    visits: int = 0
    changed: int = 0
    failed: int = 0
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, visited: Sequence[Visited]) -> None:
        """Count these visits."""
        self.visits += len(visited)
        self.changed += sum(one.visit.verdict == Verdict.CHANGED for one in visited)
        self.failed += sum(one.visit.outcome > ANSWERED for one in visited)

    def rate(self, now: float) -> float:
        """Visits per second over the last minute, as far as it was asked during that time."""
        self._recent.append((now, self.visits))
        while now - self._recent[0][0] > MINUTE:
            self._recent.popleft()
        since, before = self._recent[0]
        return (self.visits - before) / (now - since) if now > since else 0.0

    def words(self) -> str:
        """For the end.

        >>> Tally(1200, 31, 2).words()
        '1,200 visits: 31 found a change, 2 failed.'
        """
        return f"{self.visits:,} visits: {self.changed:,} found a change, {self.failed:,} failed."


@contextmanager
def display(tally: Tally, until: float, next_due: Callable[[], float]) -> Iterator[Callable[[float], None]]:
    """A line on the terminal that is told the time now and then; nothing where there is no terminal."""
    from rich.console import Console
    from rich.status import Status

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _now: None
        return
    shown_at = -math.inf
    with Status("Looking for what is due", console=console) as line:

        def show(now: float) -> None:
            nonlocal shown_at
            if now - shown_at < _REFRESH:
                return
            shown_at = now
            line.update(sentence(tally, now, until, next_due()))

        yield show


def sentence(tally: Tally, now: float, until: float, next_due: float) -> str:
    """How it goes, in one line.

    >>> sentence(Tally(1200, 31, 2), 0.0, 3600.0, -60.0)
    '1,200 visits, 31 changed, 2 failed, 0.0/s; behind by 1 min; 1 h left'
    """
    late = now - next_due
    waiting = f"behind by {format_duration(late)}" if late > 1.0 else f"next due {shown_time(next_due)}"
    left = f"; {format_duration(until - now)} left" if math.isfinite(until) else ""
    done = f"{tally.visits:,} visits, {tally.changed:,} changed, {tally.failed:,} failed, {tally.rate(now):.1f}/s"
    return f"{done}; {waiting}{left}"
