"""Many independent tasks in as many processes as there are processors, with a bar that says how far they are."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import parent_process
from typing import TypeVar

from recrawl.app.progress import bar

Result = TypeVar("Result")


def processors() -> int:
    """How many processes can work at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tasks(tasks: Sequence[Callable[[], Result]], *, what: str, jobs: int | None) -> list[Result]:
    """What comes of the tasks, in their order, under a bar that names ``what`` they are."""
    with bar(what, len(tasks)) as advance:
        return list(results(tasks, jobs or processors(), advance))


def results(tasks: Sequence[Callable[[], Result]], jobs: int, on_done: Callable[[], None]) -> Iterator[Result]:
    """What comes of the tasks, in their order; it does not depend on the number of jobs.

    Tasks are sent to other processes: values with ``__call__``, or ``functools.partial`` of functions of modules.
    ``on_done`` is called once a task is done, whichever it is: the first may be the one that takes longest.
    """
    if jobs == 1 or len(tasks) <= 1:
        for task in tasks:
            result = task()
            on_done()
            yield result
        return
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    def tell(future: Future[Result]) -> None:
        if not future.cancelled():
            on_done()

    others = set(active_children())
    # A fresh process: a copy of this one, with the thread that draws the bar, could hang.
    spawn = get_context("spawn")
    # The end of the block waits for the processes. Else this one could exit before them: they would stay for ever, and
    # the semaphores of the pool would be reported as leaked.
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=spawn, initializer=_end_with_parent) as pool:
        waiting = [pool.submit(task) for task in tasks]
        for future in waiting:
            future.add_done_callback(tell)
        try:
            yield from (future.result() for future in waiting)
        except BaseException:  # an interrupt too: nobody wants the rest any more
            for future in waiting:
                future.cancel()
            for child in set(active_children()) - others:
                child.terminate()
            raise


def _end_with_parent() -> None:
    """End this process when its parent does, also if that was killed: it would wait for tasks for ever."""
    parent = parent_process()
    assert parent is not None  # noqa: S101 - it was started by one

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="recrawl-parent-watch").start()
