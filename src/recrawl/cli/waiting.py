"""What a person sees while waiting: bars, or one line, on standard error, so that standard output stays the answer.

All of it is gone when the work is done, and where standard error is no terminal nothing is written at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


def bars(*columns: ProgressColumn) -> Progress:
    """Bars for work of several parts, with these columns or the usual; one that knows no end runs to and fro."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    usual = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    return Progress(*(columns or usual), console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[], None]]:
    """One bar; what it yields moves it on by one."""
    with bars() as shown:
        task = shown.add_task(what, total=total)
        yield lambda: shown.advance(task)


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each kind of work, on standard error, from when it is first told of."""
    from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

    with bars(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()) as bar:
        tasks: dict[str, TaskID] = {}

        def tell(work: str, done: int, whole: int) -> None:
            if work not in tasks:
                tasks[work] = bar.add_task(work, total=whole)
            bar.update(tasks[work], completed=done, total=whole)

        yield tell


@contextmanager
def line(what: str) -> Iterator[Callable[[], None]]:
    """One line about work whose length nobody knows, until the block ends or what it yields is called."""
    from rich.console import Console
    from rich.status import Status

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda: None
        return
    with Status(what, console=console) as shown:
        yield shown.stop
