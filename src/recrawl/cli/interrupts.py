"""Interrupts of long tasks: the first lets running requests finish, the second drops them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import typer

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
