"""Work in a thread that nobody has to wait for: the event loop goes on meanwhile, and an exit does not wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

_unfinished: set[threading.Thread] = set()
"""Threads that still work."""


def submit(work: Callable[[], T]) -> Future[T]:
    """Begin work in a thread of its own; what comes of it.

    Unlike those of an executor, the thread does not hold up the exit of the interpreter: see :func:`is_busy`.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            outcome.set_exception(error)
        finally:
            _unfinished.discard(thread)

    outcome.set_running_or_notify_cancel()
    thread = threading.Thread(target=run, daemon=True, name="recrawl-background")
    _unfinished.add(thread)
    thread.start()
    return outcome


async def in_thread(work: Callable[[], T]) -> T:
    """What ``work`` returns, or raises. If the caller is cancelled, the thread works on and is left alone."""
    return await asyncio.wrap_future(submit(work))


def is_busy() -> bool:
    """Whether a thread still works: then a process exits at once, without taking anything down."""
    return any(thread.is_alive() for thread in list(_unfinished))
