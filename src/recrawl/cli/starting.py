"""The start of a run: it waits for a store that is away and for a clock that was never set, and follows the time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from recrawl.crawl.clock import RealClock
from recrawl.crawl.faults import Faults
from recrawl.crawl.hands import GRACE
from recrawl.crawl.live import LOG
from recrawl.crawl.log import LEVELS, JsonLinesLog
from recrawl.crawl.log_file import LogFile
from recrawl.crawl.rollcall import roll
from recrawl.crawl.setback import Setback
from recrawl.crawl.store_time import APART, StoreTime, follow_store
from recrawl.errors import DiskFullError, StoreError
from recrawl.model.words import counted
from recrawl.time import format_duration, to_iso

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.store.ahead import FoundAhead
    from recrawl.store.base import Store

_LOOK_EVERY = 1.0
"""Seconds between two looks at a clock that was never set."""


class _SeldomLog:
    """A log that is opened for each line: most starts write none."""

    def __init__(self, path: Path, clock: RealClock) -> None:
        self._path = path
        self._clock = clock
        self._text = ""

    def write(self, text: str, /) -> None:
        """Take some text."""
        self._text += text

    def flush(self) -> None:
        """Write it down if there is room."""
        text, self._text = self._text, ""
        with suppress(OSError, DiskFullError), LogFile(self._path, self._clock) as file:
            file.write(text)


class Start:
    """What a run waits for before its first visit, and how much of its term is left when it begins again."""

    def __init__(self, place: Workspace, clock: RealClock, seconds: float, until: float, worker: str = "") -> None:
        """The run lasts so many ``seconds``, without the time to get ready, and no longer than ``until``."""
        settings = place.configuration.settings.crawl
        self._clock = clock
        self._seconds = seconds
        self._until = until
        stream = _SeldomLog(place.folder / LOG, clock)
        self._log = JsonLinesLog(stream, clock, level=LEVELS[LEVELS.index(settings.log_level)], worker=worker)
        self._setback = Setback(self._log, Faults(self._log))
        self._waits_since: float | None = None
        self._runs_since: float | None = None
        self._time: StoreTime | None = None
        self._said = ""
        self._misdated = 0
        """Visits that were marked since the run began."""

    def left(self) -> float:
        """Seconds of the term that are left: time counts from the first visit on, whoever sets the clock."""
        return self._seconds - (0.0 if self._runs_since is None else self._clock.elapsed() - self._runs_since)

    def over(self) -> None:
        """The run begins."""
        self._setback.over(self._clock.now())
        self._waits_since = None
        self._said = ""
        if self._runs_since is None:
            self._runs_since = self._clock.elapsed()

    async def wait(self, fault: StoreError) -> None:
        """Wait for a store that is away before the run has begun; the longer the oftener that failed.

        Raises:
            StoreError: the term is over, or waiting does not help.
        """
        now = self._clock.now()
        again = self._setback.met(fault, now) - now
        if self._said != str(fault):
            self._said = str(fault)
            typer.echo(f"Waiting for the store: {fault}", err=True)
        await self._pause(again, fault)

    async def with_the_right_time(self, store: Store) -> None:
        """Follow the clock of the store, if it has one, and wait for a clock that was never set.

        Where the clock was set while other workers run, each of them is given time to find that out.
        """
        self._time, ahead = follow_store(self._clock, store)
        if abs(ahead) > APART:
            self._tell_apart(ahead)
        while not self._clock.is_set:
            shown = f"The clock reads {to_iso(self._clock.now())}: waiting until it is set."
            if self._said != shown[:20]:
                self._said = shown[:20]
                typer.echo(shown, err=True)
            await self._pause(_LOOK_EVERY, StoreError(shown, "Set the clock of this machine."))
            self.look_at_the_time()
            self._clock.set_right()
        if self._runs_since is not None and roll(store.controls()):
            await asyncio.sleep(GRACE)

    def look_at_the_time(self) -> None:
        """Look at the clock of the store again, if it has one."""
        if self._time is not None:
            self._time.measure()

    def tell_ahead(self, found: FoundAhead) -> None:
        """Say what lay ahead of the clock, and what became of it."""
        self._misdated += found.misdated - found.restored
        if found.visits:
            visits, far = counted(found.visits, "visit"), format_duration(found.seconds)
            typer.echo(
                f"{visits} recorded ahead of the clock, by up to {far}: {found.misdated:,} of them marked as misdated. "
                "Hosts and due times were set right.",
                err=True,
            )
        if found.restored:
            typer.echo(f"{counted(found.restored, 'visit')} taken for misdated before stand again.", err=True)

    def words(self) -> str:
        """For the end of a run: another line, if there is anything to say."""
        if self._misdated <= 0:
            return ""
        return f"\nThe clock was wrong: {counted(self._misdated, 'visit')} misdated. recrawl list misdated names them."

    def _tell_apart(self, ahead: float) -> None:
        where = "ahead of" if ahead > 0 else "behind"
        far = format_duration(abs(ahead))
        typer.echo(f"The clock of this machine is {far} {where} that of the store, which counts.", err=True)
        self._log.event("schedule", "the clocks of machine and store differ", level="warn", details={"seconds": ahead})

    async def _pause(self, seconds: float, why: StoreError) -> None:
        """Sleep, but not beyond the end of the term, which is an error."""
        elapsed = self._clock.elapsed()
        self._waits_since = elapsed if self._waits_since is None else self._waits_since
        left = min(self.left() - (elapsed - self._waits_since), self._until - self._clock.now())
        if left <= 0:
            raise why
        await asyncio.sleep(min(seconds, left))
