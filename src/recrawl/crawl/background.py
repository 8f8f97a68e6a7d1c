"""Work in a thread that nobody has to wait for: the event loop goes on meanwhile, and an exit does not wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

_unfinished: set[threading.Thread] = set()
"""Threads that nobody waits for any more, or that still work."""


async def in_thread(work: Callable[[], T]) -> T:
    """What ``work`` returns, or raises. If the caller is cancelled, the thread works on and is left alone.

    Unlike those of an executor, the thread does not hold up the exit of the interpreter: see :func:`is_busy`.
    """
    loop = asyncio.get_running_loop()
    over: asyncio.Future[T] = loop.create_future()

    def tell(outcome: Callable[[], None]) -> None:
        def settle() -> None:
            if not over.done():
                outcome()

        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle)

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            caught = error
            tell(lambda: over.set_exception(caught))
        else:
            tell(lambda: over.set_result(result))
        finally:
            _unfinished.discard(threading.current_thread())

    thread = threading.Thread(target=run, daemon=True, name="recrawl-background")
    _unfinished.add(thread)
    thread.start()
    return await over


def is_busy() -> bool:
    """Whether a thread works that nobody waits for: then a process exits at once, without taking anything down."""
    return any(thread.is_alive() for thread in _unfinished)
