"""Progress bars and lines on standard error, so that standard output stays the answer.

They disappear when the task is done. If standard error is not a terminal, nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID


class TerminalProgress:
    """A :class:`recrawl.app.progress.ProgressReporter` that draws with rich. Imports rich on first use."""

    def bars(self) -> TerminalBars:
        """Bars with the amount done, the elapsed time and the remaining time."""
        return TerminalBars(drawn_bars())

    @contextmanager
    def line(self, what: str) -> Iterator[Callable[[], None]]:
        """One line with a spinner."""
        from rich.console import Console
        from rich.status import Status

        console = Console(stderr=True)
        if not console.is_terminal:
            yield lambda: None
            return
        with Status(what, console=console) as shown:
            yield shown.stop


class TerminalBars:
    """Bars drawn by rich, as :class:`recrawl.app.progress.ProgressBars`."""

    def __init__(self, drawn: Progress) -> None:
        self._drawn = drawn
        self._tasks: list[TaskID] = []

    def __enter__(self) -> Self:
        self._drawn.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._drawn.stop()

    def add_task(self, description: str, *, total: float | None = None) -> int:
        """Add a bar; without a total it is indeterminate."""
        self._tasks.append(self._drawn.add_task(description, total=total))
        return len(self._tasks) - 1

    def advance(self, task: int, advance: float = 1) -> None:
        """Move the bar ``task`` on."""
        self._drawn.advance(self._tasks[task], advance)

    def update(self, task: int, *, completed: float | None = None, total: float | None = None) -> None:
        """Set the amount done and the total."""
        self._drawn.update(self._tasks[task], completed=completed, total=total)

    def say(self, text: str) -> None:
        """Print a line above the bars, to standard error."""
        self._drawn.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        """Remove the bars."""
        self._drawn.stop()


def drawn_bars(*columns: ProgressColumn) -> Progress:
    """Bars with these columns, or the default ones."""
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
