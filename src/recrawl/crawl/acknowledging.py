"""Acknowledging visits: each waits a moment for others, then all of them are recorded at once.

A group is one wait for the archive file and one transaction in the store, whatever its size. What waits may be left
to a thread: the crawl goes on meanwhile, and gathers the next group. What takes the processor is not: two threads that
want the interpreter wake each other at every step, which costs more than to write. One group is written at a time, so
that the order of writes is the same; and no more visits gather than one group holds, so that what a kill can cost
stays bounded.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np

from recrawl.crawl.announcements import Announcements
from recrawl.crawl.faults import Faults, waits_for
from recrawl.crawl.hands import Hands
from recrawl.crawl.line import Line
from recrawl.crawl.log import JsonLinesLog, Level
from recrawl.crawl.recorder import Group, Recorder
from recrawl.crawl.target import Visited
from recrawl.model import ANSWERED, Outcome, Verdict, Visits
from recrawl.schedule.politeness import Politeness

LEASE_LOST = "visit kept with no word on change, its lease was lost"
_HEAVY = 32 * 1024 * 1024
"""Bytes of answers that are not kept waiting."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """A group, and what it waits for."""

    group: Group
    waiting: Future[object]
    over: asyncio.Task[None]
    """Ends when that does."""
    recorded: bool
    """Whether the store has it by then, or only the archive."""


class Acknowledging:
    """Visits that were made and are not acknowledged yet. If that fails they stay, and it can be tried again."""

    def __init__(  # noqa: PLR0913 - who is told, and how long visits wait
        self,
        recorder: Recorder,
        *,
        politeness: Politeness,
        hands: Hands,
        line: Line,
        announcements: Announcements,
        log: JsonLinesLog,
        faults: Faults,
        on_visits: Callable[[Sequence[Visited]], None],
        most: int,
        linger: float,
        aside: Executor | None = None,
    ) -> None:
        """A visit waits for ``linger`` seconds, or until ``most`` do.

        ``aside`` waits for the disk while the crawl goes on; without it the crawl does.
        """
        self._recorder = recorder
        self._politeness = politeness
        self._hands = hands
        self._line = line
        self._announcements = announcements
        self._log = log
        self._faults = faults
        self._on_visits = on_visits
        self._most = most
        self._linger = linger
        self._aside = aside
        self._waiting: list[Visited] = []
        """In the order in which they are recorded."""
        self._host_ready: list[float] = []
        """When the host of each of them may be asked again."""
        self._weight = 0
        """Bytes of the answers among them."""
        self._due = math.inf
        self._written: _Wait | None = None
        """The group that is written."""

    def __len__(self) -> int:
        """Visits that are not acknowledged yet."""
        return len(self._waiting) + (len(self._written.group.batch) if self._written else 0)

    @property
    def made(self) -> Sequence[Visited]:
        """Visits that the store has not heard of yet: those leases are still ours."""
        if self._written is None or self._written.recorded:
            return self._waiting
        return [*self._written.group.batch, *self._waiting]

    @property
    def underway(self) -> Visits:
        """Visits of the group that is written: the agenda was told of them, the store may not have them yet."""
        return Visits.empty() if self._written is None else self._written.group.visits

    @property
    def due(self) -> float:
        """When those that wait have waited long enough, seconds since the epoch; infinity if none can be written."""
        return self._due if self._written is None else math.inf

    @property
    def writing(self) -> asyncio.Task[None] | None:
        """What ends when the group that is written can go on, or is acknowledged."""
        return self._written.over if self._written else None

    def is_due(self, now: float) -> bool:
        """Whether they have waited long enough, or are enough."""
        return len(self._waiting) >= self._most or now >= self.due

    def add(self, visited: Visited, now: float) -> None:
        """Let a visit wait to be recorded together with others, and before it the first look, if it was the second."""
        if not self._waiting:
            self._due, self._weight = now + self._linger, 0
        free_at = self._politeness.free_at(visited.target.host)
        for look in (visited.first, visited) if visited.first else (visited,):
            self._waiting.append(look)
            self._host_ready.append(free_at if math.isfinite(free_at) else now)  # it may be asked again already
            self._weight += len(look.capture.raw_body) if look.capture else 0
        if self._weight >= _HEAVY:
            self._due = now

    def begin(self, now: float) -> None:
        """Acknowledge those that wait, in one batch: now, or aside.

        If others are still being written, it is these that the crawl waits for: more is not to gather.
        """
        if self._aside is None or not self._waiting:
            self.record(now)
            return
        if self._written is not None:
            self._end(now)
            return
        group = self._recorder.prepare(self._waiting, now, np.array(self._host_ready))
        if group.batch:
            self._wait_aside(group, partial(self._recorder.settle, group), recorded=False)
        self._take_out(group, now)

    def _take_out(self, group: Group, now: float) -> None:
        """Those of a group wait no more; if others are left, they have waited long enough."""
        del self._waiting[: group.covers], self._host_ready[: group.covers]
        self._due = now if self._waiting else math.inf

    def _wait_aside(self, group: Group, wait: Callable[[], object], *, recorded: bool) -> None:
        assert self._aside is not None  # noqa: S101 - nothing is begun without it
        waiting = self._aside.submit(wait)
        self._written = _Wait(group, waiting, asyncio.create_task(_over(waiting)), recorded)

    def end(self, now: float) -> None:
        """Go on with what is written, if it need not wait any more; take note if it is acknowledged by now.

        Raises:
            StoreError: it could not be written, and waits again, before all others.
        """
        if self._written is not None and self._written.waiting.done():
            self._go_on(self._written, now, aside=True)

    def _go_on(self, written: _Wait, now: float, *, aside: bool) -> None:
        """What a group waits for is over: it is acknowledged now, or ``aside``, or has failed and waits again."""
        group, self._written = written.group, None
        try:
            written.waiting.result()
            if not written.recorded:
                commit = self._recorder.acknowledge(group)
                if aside:
                    self._wait_aside(group, commit, recorded=True)
                    return
                commit()
        except BaseException as error:  # noqa: BLE001 - what is no fault is raised again
            self._put_back(group, error, now)
            return
        self._acknowledged(group, now)

    def _put_back(self, group: Group, error: BaseException, now: float) -> None:
        """Let visits wait again that could not be recorded, before all others; those that broke our code as failed.

        Raises:
            StoreError: the disk is full, or the store away.
        """
        batch, ready = list(group.batch), group.host_ready.tolist()
        trouble = waits_for(error)
        if isinstance(error, Exception) and trouble is None:
            batch = self._recorder.not_recorded(group, error, now)
        self._waiting[:0], self._host_ready[:0] = batch, ready[: len(batch)]
        self._due = now if self._waiting else math.inf
        if trouble is not None:
            raise trouble from (None if trouble is error else error)
        if not isinstance(error, Exception):
            raise error

    def record(self, now: float) -> None:
        """Acknowledge all visits, and return when that is done."""
        self._end(now)
        while self._waiting:
            group = self._recorder.prepare(self._waiting, now, np.array(self._host_ready))
            self._take_out(group, now)
            if not group.batch:
                continue
            try:
                self._recorder.settle(group)
                self._recorder.acknowledge(group)()
            except BaseException as error:  # noqa: BLE001 - as above
                self._put_back(group, error, now)
            else:
                self._acknowledged(group, now)
        self._hands.look_again()

    def _end(self, now: float) -> None:
        """Wait for what is written."""
        if self._written is not None:
            self._go_on(self._written, now, aside=False)

    def _acknowledged(self, group: Group, now: float) -> None:
        """Tell everybody, also if somebody has no room to note it; the leases ended, so there may be pages for us.

        Who fails to take note harms nobody else, and one visit that cannot be told of no other.
        """
        self._hands.look_again()
        with ExitStack() as told:
            told.callback(self._each, lambda some: self._line.join(self._announcements.visited(some, now)), group)
            told.callback(self._each, self._note, group)
            told.callback(self._tell, group)
            told.callback(self._finish, group)

    def _finish(self, group: Group) -> None:
        lost = self._recorder.finish(group)
        if lost:
            with self._faults.contained():
                self._log.events("fetch", LEASE_LOST, [("warn", {"url": url}) for url in lost])

    def _note(self, batch: Sequence[Visited]) -> None:
        self._log.events("fetch", "visited", [_told(one) for one in batch])

    def _tell(self, group: Group) -> None:
        with self._faults.contained():
            self._on_visits(group.batch)

    def _each(self, work: Callable[[Sequence[Visited]], object], group: Group) -> None:
        self._faults.each(work, group.batch, lambda visited: visited.target.url)

    def give_up(self) -> None:
        """Forget those that are not acknowledged: they will be made again."""
        if self._written is not None:
            wait([self._written.waiting])
            self._written = None
        self._begin_anew()
        self._recorder.give_up()

    def _begin_anew(self) -> None:
        self._waiting, self._host_ready, self._due = [], [], math.inf


async def _over(writing: Future[object]) -> None:
    """End when it does, whatever comes of it."""
    waiting = asyncio.wrap_future(writing)
    await asyncio.wait([waiting])
    waiting.exception()  # whoever goes on with the group meets it; here it is only not to be reported as forgotten


_OUTCOMES = {outcome: outcome.name.lower() for outcome in Outcome}
_VERDICTS = {verdict: verdict.name.lower() for verdict in Verdict}


def _told(visited: Visited) -> tuple[Level, dict[str, object]]:
    """A visit as the log tells it."""
    visit = visited.visit
    details: dict[str, object] = {
        "url": visited.target.url,
        "outcome": _OUTCOMES[visit.outcome],
        "verdict": _VERDICTS[visit.verdict],
        "magnitude": round(visit.magnitude, 3),
        "status": visit.status,
        "size": visit.size,
    }
    if reason := visited.reason or (visited.capture.error if visited.capture is not None else ""):
        details["reason"] = reason
    return "info" if visit.outcome <= ANSWERED else "warn", details
