"""Many independent tasks in as many processes as there are processors, with a bar that says how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from recrawl.cli.contest_runs import processors

Result = TypeVar("Result")


def run_tasks(tasks: Sequence[Callable[[], Result]], *, what: str, jobs: int | None) -> list[Result]:
    """What comes of the tasks, in their order; it does not depend on the number of jobs.

    Tasks are sent to other processes: ``functools.partial`` of functions of modules. The bar is on standard error, so
    that standard output stays the answer.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    found = []
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=len(tasks))
        for result in _results(tasks, jobs or processors()):
            found.append(result)
            bar.advance(task)
    return found


def _results(tasks: Sequence[Callable[[], Result]], jobs: int) -> Iterator[Result]:
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
