"""What people tell crawls that run: to pause, and within which limits to work.

It is kept in the store, in the table ``control``: so it reaches every worker, on every machine, within seconds, and is
still so after a restart. A limit wins over whatever a run was started with, until it is taken back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from recrawl.detect.standards import Standards
from recrawl.errors import ConfigError
from recrawl.model import IntArray
from recrawl.schedule.politeness import PolitenessRules
from recrawl.store.base import Store

LOOK_EVERY = 2.0
"""Seconds between two looks at what was told."""
_PAUSED, _HOSTS, _LIMIT = "paused", "hosts", "limit "
"""Names of controls; that of a limit goes on with the key of the setting."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What a crawl should do, as far as it can be told otherwise while it runs."""

    budget: float
    """Visits per second, of all workers together."""
    burst: float = math.inf
    """Seconds whose budget can be saved up; infinity for a budget that is kept on average only."""
    new_share: float = 1.0
    """Share of the budget that pages never seen may take."""
    politeness: PolitenessRules = field(default_factory=PolitenessRules)
    concurrency: int = 64
    """Most requests at once."""
    standards: Standards = field(default_factory=Standards)
    """What counts as a change."""
    paused: bool = False


class Controls:
    """Looks now and then at what was told, and says what changed."""

    def __init__(self, store: Store, orders: Callable[[Mapping[str, str]], Orders]) -> None:
        """``orders`` makes orders of limits, by the keys of settings."""
        self._store = store
        self._orders = orders
        self._within = orders({})
        """By the last limits that made sense."""
        self._told: dict[str, str] | None = None
        self.everything: Mapping[str, str] = {}
        """All controls at the last look, also those that are for others: the roll of workers is one."""
        self.look_at = -math.inf
        """When to look next, seconds since the epoch."""
        self.resting: frozenset[int] = frozenset()
        """Hosts that are paused."""
        self.contradiction: ConfigError | None = None
        """Why the limits last told were not taken over, if they contradict each other or the settings."""

    def look(self, now: float) -> Orders | None:
        """The orders if anything was told since the last look, hosts paused or resumed included; else ``None``.

        Limits that make no sense change nothing (:attr:`contradiction`), and never keep a crawl from being paused.
        """
        if now < self.look_at:
            return None
        self.look_at = now + LOOK_EVERY
        self.everything = self._store.controls()
        told = {name: text for name, text in self.everything.items() if _is_ours(name)}
        if told == self._told:
            return None
        if _HOSTS in told and (self._told is None or self._told.get(_HOSTS) != told[_HOSTS]):
            hosts = self._store.hosts()
            self.resting = frozenset(hosts.id[hosts.paused].tolist())
        self._told, self.contradiction = told, None
        try:
            self._within = self._orders(limits(told))
        except ConfigError as error:
            self.contradiction = error
        return replace(self._within, paused=is_paused(told))


def is_paused(told: Mapping[str, str]) -> bool:
    """Whether the whole crawl is paused, by what ``store.controls()`` says."""
    return _PAUSED in told


def limits(told: Mapping[str, str]) -> dict[str, str]:
    """The limits in force by what ``store.controls()`` says: values, as written, by the keys of settings.

    >>> limits({"limit crawl.concurrency": "8", "paused": "1"})
    {'crawl.concurrency': '8'}
    """
    return {name.removeprefix(_LIMIT): text for name, text in told.items() if name.startswith(_LIMIT)}


def set_limit(store: Store, key: str, text: str | None, now: float) -> None:
    """Set a limit for all workers, or take it back (``None``)."""
    store.set_control(_LIMIT + key, text, now)


def set_paused(store: Store, now: float, *, paused: bool) -> None:
    """Pause the whole crawl, or let it go on."""
    store.set_control(_PAUSED, "1" if paused else None, now)


def set_hosts_paused(store: Store, hosts: IntArray, now: float, *, paused: bool) -> None:
    """Pause hosts, or let them go on. Workers give pages of paused hosts back when they hear of it."""
    (store.pause if paused else store.resume)(np.unique(hosts))
    store.set_control(_HOSTS, repr(now), now)


def _is_ours(name: str) -> bool:
    return name in {_PAUSED, _HOSTS} or name.startswith(_LIMIT)
