"""Interrupts of long work: the first one finishes what is under way, the second drops it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import typer

FINISH_WITHIN = 4.0
"""Seconds that requests under way have to end when a command does: whoever stops it waits no longer than five."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[list[int]]:
    """Within it, a first signal calls ``stop`` and a second one cancels the task; yields the signals received.

    Before and after it, a signal ends the command at once (``recrawl.cli.start``).
    """
    loop, running = asyncio.get_running_loop(), asyncio.current_task()
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        if len(received) == 1:
            stop()
            with suppress(OSError):  # whoever read what we say may be gone, as a terminal that was closed
                typer.echo("Finishing what is under way; once more to stop at once.", err=True)
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
