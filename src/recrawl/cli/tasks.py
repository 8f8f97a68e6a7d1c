"""Many independent tasks in as many processes as there are processors, with a bar that says how far they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from recrawl.cli.waiting import bar

Result = TypeVar("Result")


def processors() -> int:
    """How many processes can work at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tasks(tasks: Sequence[Callable[[], Result]], *, what: str, jobs: int | None) -> list[Result]:
    """What comes of the tasks, in their order, under a bar that names ``what`` they are."""
    found = []
    with bar(what, len(tasks)) as advance:
        for result in results(tasks, jobs or processors()):
            found.append(result)
            advance()
    return found


def results(tasks: Sequence[Callable[[], Result]], jobs: int) -> Iterator[Result]:
    """What comes of the tasks, in their order; it does not depend on the number of jobs.

    Tasks are sent to other processes: values with ``__call__``, or ``functools.partial`` of functions of modules.
    """
    if jobs == 1 or len(tasks) <= 1:
        yield from (task() for task in tasks)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # A fresh process: a copy of this one, with the thread that draws the bar, could hang.
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(task) for task in tasks]
        try:
            yield from (future.result() for future in waiting)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
