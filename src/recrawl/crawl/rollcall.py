"""The roll of workers: each says in the store, every few seconds, that it runs and how it goes.

So workers that share a store share its budget, ``recrawl status`` can tell who is at work, on whatever machine, and
what a dead worker had leased is free again within a minute.

A worker is dead if what it says has not changed for ``SILENCE`` seconds while another worker kept looking. That is
judged by the observer's own steady time: clocks that differ or are set kill nobody, and neither does a store that is
away, since only time counts in which the observer could read.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

from recrawl.store.base import Store

CALL_EVERY = 5.0
"""Seconds between two calls; less if somebody comes or leaves."""
SILENCE = 6 * CALL_EVERY
"""Seconds after which a worker that says nothing counts as gone."""
_LONGEST_GAP = 2 * CALL_EVERY
"""Seconds between two looks that count as watched: in a longer gap the observer slept, or the store was away."""
_WORKER = "worker "


@dataclass(frozen=True, slots=True)
class AtWork:
    """One worker, as it said last."""

    worker: str
    at: float
    """When it said so, seconds since the epoch."""
    since: float
    """When it began."""
    visits: int = 0
    """Made since then."""
    underway: int = 0
    """Visits that began and are not acknowledged yet."""
    in_hand: int = 0
    """Pages leased and not asked for yet."""
    price: float | None = None
    left: float | None = None
    """Visits that the budget allows at this moment; ``None`` if it is kept on average only."""
    paused: bool = False


@dataclass(slots=True)
class _Watched:
    """What another worker said last, and for how long it has said nothing else."""

    said: str
    silent: float = 0.0
    """Seconds, watched by the observer."""


class RollCall:
    """Answers for one worker, and hears the others."""

    def __init__(self, store: Store, worker: str, elapsed: Callable[[], float] | None = None) -> None:
        """``elapsed`` tells the seconds that passed, whoever sets the clock; without it, time itself does."""
        self._store = store
        self._worker = worker
        self._elapsed = elapsed
        self._watched: dict[str, _Watched] = {}
        self._watched_at = self._said_at = -math.inf
        self._me: AtWork | None = None
        self._saying = threading.Lock()
        """Held while something is said: a thread may speak for this worker, and must not after it left."""
        self.others: list[AtWork] = []
        """Who else was at work at the last call."""
        self._silent_before = False
        """Whether that was so before a thread spoke, and the loop has not heard of it."""
        self.was_silent = False
        """Whether so much time passed before the last call that others may have taken this worker for dead."""

    def call(self, me: AtWork) -> None:
        """Say how it goes, and hear who else is at work."""
        began = self._passed(me.at)
        with self._saying:
            self._say(me)
            self.was_silent, self._silent_before = self._silent_before or self._is_late(began), False
            self._said_at = began
        self.others = self._others(self._store.controls(), me.at)

    def say_again(self, now: float) -> None:
        """Say that this worker lives if it has not said so for a while: for a thread, beside a loop that is busy."""
        with self._saying:
            began = self._passed(now)
            if self._me is not None and began - self._said_at > 2 * CALL_EVERY:
                self._say(replace(self._me, at=now))
                self._silent_before |= self._is_late(began)
                self._said_at = began

    def _is_late(self, passed: float) -> bool:
        """Whether others may have taken this worker for dead by now: half of the time is left for the way to them."""
        return math.isfinite(self._said_at) and passed - self._said_at > SILENCE / 2

    def _say(self, me: AtWork) -> None:
        self._store.set_control(_WORKER + self._worker, json.dumps(asdict(me), allow_nan=False), me.at)
        self._me = me

    def is_outdated(self, told: Mapping[str, str], now: float) -> bool:
        """Whether somebody came or left since the last call, by what ``store.controls()`` says."""
        return {one.worker for one in self.others} != {one.worker for one in self._others(told, now)}

    def free_dead(self, now: float, pause: float) -> dict[str, int]:
        """Free what workers that died had leased, and strike them from the roll; how many leases each had.

        Their hosts rest first, at least ``pause`` seconds: nobody knows when they were asked last.
        """
        dead = {name: one.said for name, one in self._watched.items() if one.silent >= SILENCE}
        freed: dict[str, int] = {}
        for worker, said in dead.items():
            leases = self._store.release_worker(worker, now, pause=pause, unless=(_WORKER + worker, said))
            del self._watched[worker]
            if leases >= 0:
                self._store.set_control(_WORKER + worker, None, now)
                freed[worker] = leases
        return freed

    def _others(self, told: Mapping[str, str], now: float) -> list[AtWork]:
        self._watch(told, now)
        dead = {name for name, one in self._watched.items() if one.silent >= SILENCE}
        others = (one for one in roll(told) if one.worker != self._worker and one.worker not in dead)
        return [one for one in others if is_alive(one, now)]

    def _watch(self, told: Mapping[str, str], now: float) -> None:
        """Take note of who said something new, and add to the silence of the others."""
        passed = self._passed(now)
        gap = min(max(passed - self._watched_at, 0.0), _LONGEST_GAP)
        self._watched_at = passed
        said = {name.removeprefix(_WORKER): text for name, text in told.items() if name.startswith(_WORKER)}
        said.pop(self._worker, None)
        for gone in self._watched.keys() - said.keys():
            del self._watched[gone]
        for name, text in said.items():
            before = self._watched.get(name)
            if before is not None and before.said == text:
                before.silent += gap
            else:
                self._watched[name] = _Watched(text)

    def _passed(self, now: float) -> float:
        return now if self._elapsed is None else self._elapsed()

    def leave(self, now: float) -> None:
        """Say that this worker ends."""
        with self._saying:
            self._me = None
            self._store.set_control(_WORKER + self._worker, None, now)


def roll(told: Mapping[str, str]) -> list[AtWork]:
    """Everybody on the roll by what ``store.controls()`` says, those included that died."""
    return [AtWork(**json.loads(text)) for name, text in sorted(told.items()) if name.startswith(_WORKER)]


def is_alive(one: AtWork, now: float) -> bool:
    """Whether a worker said something lately, by the time that it wrote down itself."""
    return now - one.at < SILENCE
