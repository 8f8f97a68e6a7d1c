"""Signals of change that a policy heard, and how far it trusts them: nothing until they proved true (algorithms §4).

A signal is one moment at which something outside said that a page changed: its date in a sitemap moved past the last
look, a feed has an entry for it, a sibling changed. How reliable that is differs from host to host and is learned from
the looks that followed (``estimate.signals``).
"""

from __future__ import annotations

import numpy as np

from recrawl.estimate.operational_learning import Looks
from recrawl.estimate.signals import Announced, learn
from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.schedule.columns import Columns

_EXPLAINED = 0.5
"""κn from which on a change was to be expected anyway and says nothing about those that nobody signals."""


class Signals:
    """What was heard: 16 bytes a signal, heard again or not. A fold over signals and looks; hosts are any numbers."""

    def __init__(self) -> None:
        self._heard = np.empty(0, np.complex128)
        """Row and time of each signal once, in order: complex numbers sort by their real part, then by the other."""
        self._new = Columns({"signal": np.complex128})
        """Those heard since signals were counted last, as often as they were heard."""
        self.forget()

    def forget(self) -> None:
        """What was learned, not what was heard."""
        self._hosts = np.empty(0, np.int64)
        self._weight = np.empty(0)
        self._typical = np.empty(0)
        self._told: FloatArray = np.empty(0)
        self._watched: FloatArray = np.empty(0)

    def hear(self, row: IntArray, time: FloatArray) -> None:
        """Signals about rows; one heard again counts once."""
        self._new.append(signal=row + 1j * time)

    def any(self) -> bool:
        """Whether anything was heard."""
        return len(self._heard) > 0 or len(self._new) > 0

    def trusted(self) -> bool:
        """Whether any host's signals are used."""
        return bool((self._weight > 0).any())

    def count(self, row: IntArray, start: FloatArray, end: FloatArray) -> IntArray:
        """Signals about each row in (start, end]. O(m log signals), and s log s of all s signals if some are new."""
        if len(self._new):
            self._heard = np.unique(np.concatenate([self._heard, self._new["signal"]]))
            self._new = Columns({"signal": np.complex128})
        first, last = (np.searchsorted(self._heard, row + 1j * at, side="right") for at in (start, end))
        return np.asarray(np.maximum(last - first, 0), dtype=np.int64)

    def learn(self, looks: Looks, passed: FloatArray, host: IntArray) -> None:
        """How far the signals of each host can be trusted, from all looks; ``host`` is that of each row."""
        if not self.any():
            return
        heard = self.count(looks.row, looks.start, looks.end)
        self._hosts, own = np.unique(host, return_inverse=True)
        found = learn(Announced(looks.row, passed, heard, looks.changed), own)
        self._weight = found.used()
        self._told = np.bincount(looks.row, heard, len(host)).astype(np.float64)
        self._watched = np.bincount(looks.row, looks.end - looks.start, len(host)).astype(np.float64)
        told, watched = (np.bincount(own, column, len(self._hosts)) for column in (self._told, self._watched))
        self._typical = np.divide(told + 0.5, watched, out=np.zeros(len(told)), where=watched > 0)

    def weight(self, host: IntArray) -> FloatArray:
        """κ of signals about pages of these hosts; 0 where they are not trusted."""
        return self._of_host(self._weight, host)

    def signalled_rate(self, row: IntArray, host: IntArray) -> FloatArray:
        """γ − b = γ(1 − e^{−κ}): changes of each row that are signalled, per second; a page is as its host at first."""
        typical = self._of_host(self._typical, host)
        known = row < len(self._told)
        place = np.where(known, row, 0)
        told, watched = (np.where(known, column[place], 0.0) for column in (self._told, self._watched))
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(typical > 0, (told + 1.0) / (watched + 1.0 / typical), 0.0)
        return np.asarray(-rate * np.expm1(-self.weight(host)))

    def explain(self, looks: Looks, host: IntArray) -> BoolArray:
        """Looks whose change was signalled well enough; ``host`` is that of each look."""
        if not self.trusted():
            return np.zeros(len(looks), dtype=np.bool_)
        heard = self.count(looks.row, looks.start, looks.end)
        return np.asarray(looks.changed & (self.weight(host) * heard > _EXPLAINED))

    def _of_host(self, values: FloatArray, host: IntArray) -> FloatArray:
        if not len(self._hosts):
            return np.zeros(len(host))
        place = np.minimum(np.searchsorted(self._hosts, host), len(self._hosts) - 1)
        return np.where(self._hosts[place] == host, values[place], 0.0)
