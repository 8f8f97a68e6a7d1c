"""The display of a running crawl (a status line, or an occasional line), and its interrupts.

The first interrupt lets running requests finish, the second ends the run at once.
"""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

import typer

from recrawl.app.crawl_run import GettingReady, RunCounts, every
from recrawl.app.display import shown_time
from recrawl.crawl.control.metrics import CrawlStats
from recrawl.errors import counted
from recrawl.time import MINUTE, format_duration

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[list[int]]:
    """Within the context, the first signal calls ``stop`` and the second cancels the task; yields the received signals.

    Before and after it, a signal ends the command at once (``recrawl.cli.entry``).
    """
    loop, running = asyncio.get_running_loop(), asyncio.current_task()
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        if len(received) == 1:
            stop()
            with suppress(OSError):  # The reader of our output may be gone, such as a closed terminal.
                typer.echo("Finishing running requests. Interrupt again to stop at once.", err=True)
        elif running is not None:
            running.cancel()

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield received
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


_REFRESH = 0.5
"""Seconds between two updates on a terminal."""
_SELDOM = 5 * MINUTE
"""Seconds between two lines elsewhere."""
_TWO = 2
"""The number of samples for the rate."""
_LATE = 2.0
"""Seconds: pages that are late by less count as on time."""


@contextmanager
def getting_ready() -> Iterator[GettingReady]:
    """Show a line while the crawl starts: the first start compiles kernels, which takes seconds."""
    from rich.console import Console
    from rich.status import Status

    console = Console(stderr=True)
    if not console.is_terminal:
        yield GettingReady(lambda _doing: None, lambda: None)
        return
    with Status("Starting (the first start takes longest)", console=console) as shown:
        yield GettingReady(lambda doing: shown.update(f"Starting: {doing}"), shown.stop)


@contextmanager
def display(tally: RunCounts, until: float, stats: Callable[[], CrawlStats]) -> Iterator[Callable[[float], None]]:
    """A periodic task that shows the status of the crawl on standard error.

    On a terminal it updates one line; elsewhere it writes a new line every few minutes.
    """
    from rich.console import Console
    from rich.status import Status

    console = Console(stderr=True)
    if not console.is_terminal:

        def tell() -> None:
            now = stats()
            typer.echo(f"{shown_time(now.now)} {sentence(tally, now, until)}", err=True)

        tally.rate(stats().now)  # from which the first line counts
        yield every(_SELDOM, tell, at_once=False)
        return
    with Status("Looking up due pages", console=console) as shown:
        yield every(_REFRESH, lambda: shown.update(sentence(tally, stats(), until)))


class TerminalDisplay:
    """Shows a run on standard error."""

    def say(self, text: str) -> None:
        """Print a line."""
        typer.echo(text, err=True)

    def getting_ready(self) -> AbstractContextManager[GettingReady]:
        """See :func:`getting_ready`."""
        return getting_ready()

    def progress(
        self, tally: RunCounts, until: float, stats: Callable[[], CrawlStats]
    ) -> AbstractContextManager[Callable[[float], None]]:
        """See :func:`display`."""
        return display(tally, until, stats)


def sentence(tally: RunCounts, stats: CrawlStats, until: float) -> str:
    """The status in one line."""
    rate = tally.rate(stats.now)
    done = f"{counted(tally.visits, 'visit')}, {tally.changed:,} changed, {tally.failed:,} failed, {rate:.1f}/s"
    left = f"; {format_duration(max(until - stats.now, 0.0))} left" if math.isfinite(until) else ""
    return f"{done}; {_waiting(stats, rate)}{left}"


def _waiting(stats: CrawlStats, rate: float) -> str:
    """The number of due pages, how late they are, and when they will be done."""
    if stats.paused:
        return f"paused, {stats.due:,} due"
    if not stats.due:
        return f"next due {shown_time(stats.next_due)}"
    words = f"{stats.due:,} due"
    if stats.held:
        words += f" ({stats.held:,} on paused hosts)"
    if stats.late > _LATE:
        words += f", late by {format_duration(stats.late)}"
    if stats.left is not None and stats.left < 1:
        return f"{words}; the budget is spent, {_pace(stats.budget)}"
    ahead = stats.due - stats.held
    return f"{words}, done in {format_duration(ahead / rate)}" if rate > 0 and ahead else words


def _pace(budget: float) -> str:
    """The pace after the budget is spent.

    >>> _pace(1 / 90), _pace(0.0)
    ('one visit every 1.5 min', 'and it is 0')
    """
    return f"one visit every {format_duration(1 / budget)}" if budget > 0 else "and it is 0"
