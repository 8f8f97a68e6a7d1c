"""Acknowledging visits: each waits a moment for others, then all of them are recorded at once.

A group is one wait for the archive file and one transaction in the store, whatever its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from recrawl.crawl.announcements import Announcements
from recrawl.crawl.hands import Hands
from recrawl.crawl.line import Line
from recrawl.crawl.log import JsonLinesLog, Level
from recrawl.crawl.recorder import Recorder
from recrawl.crawl.target import Visited
from recrawl.model import ANSWERED
from recrawl.schedule.politeness import Politeness

_HEAVY = 32 * 1024 * 1024
"""Bytes of answers that are not kept waiting."""


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
        on_visits: Callable[[Sequence[Visited]], None],
        most: int,
        linger: float,
    ) -> None:
        """A visit waits for ``linger`` seconds, or until ``most`` do."""
        self._recorder = recorder
        self._politeness = politeness
        self._hands = hands
        self._line = line
        self._announcements = announcements
        self._log = log
        self._on_visits = on_visits
        self._most = most
        self._linger = linger
        self.waiting: list[Visited] = []
        """In the order in which they are recorded."""
        self._host_ready: list[float] = []
        """When the host of each of them may be asked again."""
        self._weight = 0
        """Bytes of the answers among them."""
        self.due = math.inf
        """When they have waited long enough, seconds since the epoch; infinity if none waits."""

    def is_due(self, now: float) -> bool:
        """Whether they have waited long enough, or are enough."""
        return len(self.waiting) >= self._most or now >= self.due

    def add(self, visited: Visited, now: float) -> None:
        """Let a visit wait to be recorded together with others, and before it the first look, if it was the second."""
        if not self.waiting:
            self.due, self._weight = now + self._linger, 0
        free_at = self._politeness.free_at(visited.target.host)
        for look in (visited.first, visited) if visited.first else (visited,):
            self.waiting.append(look)
            self._host_ready.append(free_at if math.isfinite(free_at) else now)  # it may be asked again already
            self._weight += len(look.capture.raw_body) if look.capture else 0
        if self._weight >= _HEAVY:
            self.due = now

    def record(self, now: float) -> None:
        """Acknowledge all that wait, in one batch; their leases end, so there may be pages for us."""
        visited, ready = self.waiting, np.array(self._host_ready)
        self._recorder.record(visited, now, ready)
        self._begin_anew()
        self._hands.look_again()
        if not visited:
            return
        self._on_visits(visited)
        self._log.events("fetch", "visited", [_told(one) for one in visited])
        self._line.join(self._announcements.visited(visited, now))

    def give_up(self) -> None:
        """Forget those that wait: they were not acknowledged, and will be made again."""
        self._begin_anew()
        self._recorder.give_up()

    def _begin_anew(self) -> None:
        self.waiting, self._host_ready, self.due = [], [], math.inf


def _told(visited: Visited) -> tuple[Level, dict[str, object]]:
    """A visit as the log tells it."""
    visit = visited.visit
    details: dict[str, object] = {
        "url": visited.target.url,
        "outcome": visit.outcome.name.lower(),
        "verdict": visit.verdict.name.lower(),
        "magnitude": round(visit.magnitude, 3),
        "status": visit.status,
        "size": visit.size,
    }
    if visited.capture is not None and visited.capture.error:
        details["reason"] = visited.capture.error
    return "info" if visit.outcome <= ANSWERED else "warn", details
