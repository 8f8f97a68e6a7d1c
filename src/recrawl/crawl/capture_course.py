"""The course of a site capture: what comes next, from what was found and what came of it so far. No I/O, no clock.

Rules of this file:
 1. Visits come first, in the order the strategy says; when it names no more, revisits follow in its order.
 2. A request that failed (no answer, 5xx, 429) is made once more in the same phase, after all others. If that finds new
    pages, they are visited before the phase ends. What failed twice has failed.
 3. Only what was there is seen again: a page that was refused, gone or failed is not revisited.
 4. Where a strategy lets the last visit be its own revisit, and other visits came after it because they had failed
    before, that page is seen again too, first of all: else it would not have been seen at the same time as those.
 5. Equal calls give equal answers. So a killed capture is resumed by repeating the calls that were recorded.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass

import numpy as np

from recrawl.capture import Strategy
from recrawl.capture.decision import GivesUp, Proven, ProvesBound
from recrawl.crawl.capture_order import CaptureOrder
from recrawl.errors import StoreError
from recrawl.model import FloatArray, IntArray, Outcome
from recrawl.store.site_values import SiteCapture, SiteLog

TRIES = 2
"""Requests for a page in one phase, if the first fails."""
_FAILED = (Outcome.SERVER_ERROR, Outcome.UNREACHABLE)
_THERE = (Outcome.FETCHED, Outcome.NOT_MODIFIED, Outcome.REDIRECTED)


class Phase(enum.Enum):
    """What a capture is at."""

    VISIT = "visits"
    REVISIT = "revisits"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Stop:
    """One step to make: see this page, by the order found."""

    number: int
    revisit: bool


class Course:
    """The strategy of a capture and everything it was told, asked and answered. O(1) a step beside the strategy."""

    def __init__(self, strategy: Strategy, *, revisit: bool) -> None:
        """With ``revisit`` pages are seen again, if the strategy wants that."""
        self._strategy = strategy
        self._revisit = revisit
        self._told = 0
        self._outcome: dict[int, Outcome] = {}
        self._absent = 0
        self._tries: dict[Stop, int] = {}
        self._failed: deque[Stop] = deque()
        self._to_revisit: deque[int] = deque()
        self._last_asked = -1
        self._last_made = -1
        self._next: Stop | None = None
        self._seen_again = 0
        self.steps = 0
        """Steps made."""
        self.phase = Phase.VISIT

    def found(self, rate: FloatArray, weight: FloatArray) -> None:
        """Pages were found; their numbers go on where those of the pages before ended."""
        if len(rate):
            self._strategy.discover(np.arange(self._told, self._told + len(rate)), rate, weight)
            self._told += len(rate)

    def next(self) -> Stop | None:
        """The step to make; the same until it is done. ``None`` when the capture is complete."""
        if self._next is None:
            self._next = self._choose()
        return self._next

    def done(self, outcome: Outcome) -> None:
        """The step was made, and so it ended. What it found is told before the next one is asked for."""
        stop = self._next
        if stop is None:
            msg = "no step was asked for"
            raise ValueError(msg)
        self._next = None
        self.steps += 1
        self._tries[stop] = tries = self._tries.get(stop, 0) + 1
        if outcome in _FAILED and tries < TRIES:
            self._failed.append(stop)
        elif stop.revisit:
            self._seen_again += 1
        else:
            self._outcome[stop.number] = outcome
            self._absent += outcome not in _THERE
        self._last_made = stop.number

    @property
    def pages(self) -> int:
        """Pages found."""
        return self._told

    @property
    def visited(self) -> int:
        """Pages whose visit is settled: seen, or failed for good."""
        return len(self._outcome)

    @property
    def seen_again(self) -> int:
        """Pages whose revisit is settled."""
        return self._seen_again

    @property
    def to_see_again(self) -> int:
        """Pages to revisit: those left, or, while visits go on, an estimate from the pages found."""
        if self.phase is Phase.VISIT:
            return self._told - self._absent if self._revisit else 0
        return len(self._to_revisit) + len(self._failed)

    def given_up(self) -> IntArray | None:
        """Numbers of the pages that the strategy gave up; ``None`` if it names none, or no page is seen again."""
        if self._revisit and isinstance(self._strategy, GivesUp):
            return self._strategy.given_up()
        return None

    def proven(self) -> Proven | None:
        """What the strategy can prove of its plan; ``None`` for nothing, or if no page is seen again."""
        if self._revisit and isinstance(self._strategy, ProvesBound):
            return self._strategy.proven()
        return None

    def _choose(self) -> Stop | None:
        if self.phase is Phase.VISIT:
            page = self._strategy.next_page()
            if page is not None:
                self._last_asked = page
                return Stop(page, revisit=False)
            if self._failed:
                return self._failed.popleft()
            self._to_revisit.extend(self._revisits())
            self.phase = Phase.REVISIT
        if self._to_revisit:
            return Stop(self._to_revisit.popleft(), revisit=True)
        if self._failed:
            return self._failed.popleft()
        self.phase = Phase.DONE
        return None

    def _revisits(self) -> list[int]:
        if not self._revisit:
            return []
        order: list[int] = self._strategy.revisits().tolist()
        if order and self._last_made != self._last_asked and self._last_asked not in order:
            order.insert(0, self._last_asked)
        return [page for page in order if self._outcome[page] in _THERE]


def course_of(capture: SiteCapture, log: SiteLog) -> Course:
    """The course of a capture, where its recorded steps ended. Cost and errors are those of :func:`replay`."""
    order = CaptureOrder.from_json(capture.terms)
    course = Course(order.new_strategy(capture.delay), revisit=order.revisits)
    replay(course, log)
    return course


def replay(course: Course, log: SiteLog) -> None:
    """Bring a new course to where the recorded steps ended. O(pages and steps) beside the strategy.

    Raises:
        StoreError: the strategy would have gone another way, so this is not the one that made the steps.
    """
    bounds = np.searchsorted(log.after, np.arange(len(log.steps) + 2))
    _tell(course, log, bounds, 0)
    for step in log.steps:
        stop = course.next()
        if stop != Stop(step.number, step.revisit):
            raise StoreError(
                f"Step {step.step} of this capture cannot be repeated: its strategy goes another way now.",
                "It was begun by another version of recrawl. Finish it with that one, or begin anew with --anew.",
            )
        course.done(Outcome(step.outcome))
        _tell(course, log, bounds, step.step + 1)


def _tell(course: Course, log: SiteLog, bounds: IntArray, after: int) -> None:
    some = slice(int(bounds[after]), int(bounds[after + 1]))
    course.found(log.found.rate[some], log.found.weight[some])
