"""The roll of workers: each says in the store, every few seconds, that it runs and how it goes.

So workers that share a store share its budget, and ``recrawl status`` can tell who is at work, on whatever machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from recrawl.store.base import Store

CALL_EVERY = 5.0
"""Seconds between two calls; less if somebody comes or leaves."""
_SILENCE = 6 * CALL_EVERY
"""Seconds after which a worker that says nothing counts as gone."""
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


class RollCall:
    """Answers for one worker, and hears the others."""

    def __init__(self, store: Store, worker: str) -> None:
        self._store = store
        self._worker = worker
        self.others: list[AtWork] = []
        """Who else was at work at the last call."""

    def call(self, me: AtWork) -> None:
        """Say how it goes, and hear who else is at work. What a worker that is long gone said is dropped."""
        self._store.set_control(_WORKER + self._worker, json.dumps(asdict(me), allow_nan=False), me.at)
        told = self._store.controls()
        self.others = self._others(told, me.at)
        for one in roll(told):
            if me.at - one.at > _FORGOTTEN:
                self._store.set_control(_WORKER + one.worker, None, me.at)

    def is_outdated(self, told: Mapping[str, str], now: float) -> bool:
        """Whether somebody came or left since the last call, by what ``store.controls()`` says."""
        return {one.worker for one in self.others} != {one.worker for one in self._others(told, now)}

    def _others(self, told: Mapping[str, str], now: float) -> list[AtWork]:
        return [one for one in roll(told) if one.worker != self._worker and is_alive(one, now)]

    def leave(self, now: float) -> None:
        """Say that this worker ends."""
        self._store.set_control(_WORKER + self._worker, None, now)


_FORGOTTEN = 86_400.0


def roll(told: Mapping[str, str]) -> list[AtWork]:
    """Everybody on the roll by what ``store.controls()`` says, those included that died."""
    return [AtWork(**json.loads(text)) for name, text in sorted(told.items()) if name.startswith(_WORKER)]


def is_alive(one: AtWork, now: float) -> bool:
    """Whether a worker said something lately."""
    return now - one.at < _SILENCE
