"""Progress of long tasks: use cases report it, a front end shows it.

The command line installs bars on standard error (:mod:`recrawl.cli.progress_bars`). From Python and in servers
nothing is shown unless the caller installs a reporter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol, Self


class ProgressBars(Protocol):
    """Bars for work of several parts. A context manager: the bars are gone when the block ends."""

    def __enter__(self) -> Self:
        """Show bars."""
        ...

    def __exit__(self, *error: object) -> None:
        """Take the bars away."""
        ...

    def add_task(self, description: str, *, total: float | None = None) -> int:
        """Add a bar; ``total`` is the amount of work, ``None`` if it is not known."""
        ...

    def advance(self, task: int, advance: float = 1) -> None:
        """Move the bar ``task`` on."""
        ...

    def update(self, task: int, *, completed: float | None = None, total: float | None = None) -> None:
        """Set how much is done, and of how much."""
        ...

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        ...

    def stop(self) -> None:
        """Take the bars away before the block ends."""
        ...


class ProgressReporter(Protocol):
    """Shows progress."""

    def bars(self) -> ProgressBars:
        """Bars for work of several parts."""
        ...

    def line(self, what: str) -> AbstractContextManager[Callable[[], None]]:
        """One line about work of unknown length, until the block ends or the yielded function is called."""
        ...


class SilentBars:
    """Bars that are not shown."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def add_task(self, description: str, *, total: float | None = None) -> int:  # noqa: ARG002 - nothing is shown
        """See :class:`ProgressBars`."""
        return 0

    def advance(self, task: int, advance: float = 1) -> None:
        """See :class:`ProgressBars`."""

    def update(self, task: int, *, completed: float | None = None, total: float | None = None) -> None:
        """See :class:`ProgressBars`."""

    def say(self, text: str) -> None:
        """See :class:`ProgressBars`."""

    def stop(self) -> None:
        """See :class:`ProgressBars`."""


class SilentReporter:
    """Shows nothing: the default."""

    def bars(self) -> ProgressBars:
        """See :class:`ProgressReporter`."""
        return SilentBars()

    def line(self, what: str) -> AbstractContextManager[Callable[[], None]]:  # noqa: ARG002 - nothing is shown
        """See :class:`ProgressReporter`."""
        return nullcontext(lambda: None)


_REPORTER: ContextVar[ProgressReporter] = ContextVar("progress_reporter", default=SilentReporter())  # noqa: B039 - it has no state


def show_progress(reporter: ProgressReporter) -> None:
    """Report progress of this thread's work to ``reporter`` from now on."""
    _REPORTER.set(reporter)


def bars() -> ProgressBars:
    """Bars for work of several parts; one with no total has no known end."""
    return _REPORTER.get().bars()


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[], None]]:
    """One bar; what it yields moves it on by one."""
    with bars() as shown:
        task = shown.add_task(what, total=total)
        yield lambda: shown.advance(task)


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """A function that takes a kind of work, how much is done and of how much; each kind has a bar of its own."""
    with bars() as shown:
        tasks: dict[str, int] = {}

        def tell(work: str, done: int, whole: int) -> None:
            if work not in tasks:
                tasks[work] = shown.add_task(work, total=whole)
            shown.update(tasks[work], completed=done, total=whole)

        yield tell


def line(what: str) -> AbstractContextManager[Callable[[], None]]:
    """One line about work of unknown length, until the block ends or the yielded function is called."""
    return _REPORTER.get().line(what)
