"""Whether the shared calendar is of use: by how it predicted looks before they were made, host by host.

Where pages change independently of each other, what siblings say is noise, and a clock that follows it is worse than
wall time. So each look is predicted both ways before it is learned from. The calendar is in use on a host where it
predicted better; where the looks of a host alone do not tell, where it did so on all hosts together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray

_CLEAR = 2.0
"""Standard errors from which on a host decides for itself."""
_AT_FIRST = 1.0
"""Nats in favour: on 16 real collections of 16 the calendar helped."""


class Verdict:
    """Gains by host, nats. A fold: decisions change only when they are asked to."""

    def __init__(self) -> None:
        self._sums: dict[int, FloatArray] = {}
        self._all = np.array([_AT_FIRST, 0.0])
        self._on: dict[int, bool] = {}
        self._usual = True

    def add(self, host: IntArray, gain: FloatArray) -> None:
        """Looks at pages of these hosts were predicted better by so much with the calendar. O(looks) and hosts."""
        if not len(host):
            return
        if bool((host[1:] == host[:-1]).all()):  # looks at one host are the rule, and this is much quicker
            hosts, sums = host[:1], np.array([[gain.sum(), gain @ gain]])
        else:
            hosts, own = np.unique(host, return_inverse=True)
            sums = np.stack([np.bincount(own, gain), np.bincount(own, gain * gain)], axis=1)
        for name, more in zip(hosts.tolist(), sums, strict=True):
            self._sums[name] = self._sums.get(name, np.zeros(2)) + more
        self._all = self._all + sums.sum(axis=0)

    def decide(self) -> None:
        """Draw the conclusions."""
        self._usual = bool(self._all[0] > 0)
        clear = {name: sums for name, sums in self._sums.items() if sums[0] ** 2 > _CLEAR**2 * sums[1]}
        self._on = {name: bool(sums[0] > 0) for name, sums in clear.items()}

    def on(self, hosts: Sequence[int]) -> BoolArray:
        """Whether the calendar is in use on each of these hosts."""
        return np.fromiter((self._on.get(name, self._usual) for name in hosts), np.bool_, len(hosts))
