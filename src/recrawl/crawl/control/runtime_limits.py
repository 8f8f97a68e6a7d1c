"""Controls of running crawls: pause, and limits.

They are stored in the table ``control``, so they reach every worker on every machine within seconds and survive a
restart. A limit overrides the settings of a run until it is removed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.errors import ConfigError
from recrawl.model import IntArray
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.store.base import Store

READ_EVERY = 2.0
"""Seconds between two reads of the controls."""
_PAUSED, _HOSTS, _LIMIT = "paused", "hosts", "limit "
"""Names of controls; that of a limit continues with the key of the setting."""


@dataclass(frozen=True, slots=True)
class RuntimeLimits:
    """The limits that can change while a crawl runs."""

    budget: float
    """Visits per second, of all workers together."""
    burst: float = math.inf
    """Seconds whose budget can be saved up; infinity for a budget that is only kept on average."""
    discovery_share: float = 1.0
    """Share of the budget for pages never visited."""
    politeness: PolitenessRules = field(default_factory=PolitenessRules)
    concurrency: int = 64
    """Maximum concurrent requests."""
    standards: ChangeCriteria = field(default_factory=ChangeCriteria)
    """What counts as a change."""
    paused: bool = False


class LimitsWatcher:
    """Reads the controls now and then, and returns what changed."""

    def __init__(self, store: Store, orders: Callable[[Mapping[str, str]], RuntimeLimits]) -> None:
        """``orders`` makes limits from values by settings key."""
        self._store = store
        self._orders = orders
        self._within = orders({})
        """From the last consistent limits."""
        self._told: dict[str, str] | None = None
        self.everything: Mapping[str, str] = {}
        """All controls at the last read, also those for others: the worker registry is one."""
        self.read_at = -math.inf
        """When to read next, seconds since the epoch."""
        self.resting: frozenset[int] = frozenset()
        """Hosts that are paused."""
        self.contradiction: ConfigError | None = None
        """Why the last limits were not applied, if they contradict each other or the settings."""

    def changed_limits(self, now: float) -> RuntimeLimits | None:
        """The limits if any control changed since the last read, hosts paused or resumed included; else ``None``.

        Contradictory limits change nothing (:attr:`contradiction`), and never prevent a pause.
        """
        if now < self.read_at:
            return None
        self.read_at = now + READ_EVERY
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
    """Whether the whole crawl is paused, by ``store.controls()``."""
    return _PAUSED in told


def limits(told: Mapping[str, str]) -> dict[str, str]:
    """The limits in ``store.controls()``: values as written, by settings key.

    >>> limits({"limit crawl.concurrency": "8", "paused": "1"})
    {'crawl.concurrency': '8'}
    """
    return {name.removeprefix(_LIMIT): text for name, text in told.items() if name.startswith(_LIMIT)}


def set_limit(store: Store, key: str, text: str | None, now: float) -> None:
    """Set a limit for all workers, or remove it (``None``)."""
    store.set_control(_LIMIT + key, text, now)


def set_paused(store: Store, now: float, *, paused: bool) -> None:
    """Pause or resume the whole crawl."""
    store.set_control(_PAUSED, "1" if paused else None, now)


def set_hosts_paused(store: Store, hosts: IntArray, now: float, *, paused: bool) -> None:
    """Pause or resume hosts. Workers return the pages of paused hosts at their next read."""
    (store.pause if paused else store.resume)(np.unique(hosts))
    store.set_control(_HOSTS, repr(now), now)


def _is_ours(name: str) -> bool:
    return name in {_PAUSED, _HOSTS} or name.startswith(_LIMIT)
