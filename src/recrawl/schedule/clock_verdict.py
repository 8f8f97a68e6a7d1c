"""Whether the shared calendar is of use: by how it predicted looks before they were made, cluster by cluster.

Where pages change independently of each other, what siblings say is noise, and a clock that follows it is worse than
wall time. So each look is predicted both ways before it is learned from. The calendar is in use on a cluster where it
predicted better; where the looks of a cluster alone do not tell, where it did so on its host; where those do not tell
either, where it did so on all hosts together. A host may hold clusters of both kinds: data that is published by a
clock, and pages that are edited together.
"""

from __future__ import annotations

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray

_CLEAR = 2.0
"""Standard errors from which on a cluster or a host decides for itself."""
_AT_FIRST = 1.0
"""Nats in favour: on 16 real collections of 16 the calendar helped."""


class Verdict:
    """Gains by row, nats: 16 bytes a page. A fold: decisions change only when they are asked to."""

    def __init__(self) -> None:
        self._sums = np.empty((2, 0))
        """Of the gains of each row, and of their squares: clusters are found anew, rows stay."""
        self._clusters = np.empty(0, np.bool_)
        self._hosts = np.empty(0, np.bool_)
        self._usual = True

    def add(self, row: IntArray, gain: FloatArray) -> None:
        """Looks at the pages of these rows were predicted better by so much with the calendar. O(looks)."""
        if not len(row):
            return
        more = int(row.max()) + 1 - self._sums.shape[1]
        if more > 0:
            room = np.zeros((2, more + self._sums.shape[1] // 2))
            self._sums = np.concatenate([self._sums, room], axis=1)
        np.add.at(self._sums[0], row, gain)
        np.add.at(self._sums[1], row, gain * gain)

    def decide(self, cluster: IntArray, host: IntArray) -> None:
        """Draw the conclusions for the clusters of all rows; ``host[c]`` is the host of cluster c. O(rows)."""
        rows = min(len(cluster), self._sums.shape[1])
        sums: FloatArray = np.zeros((2, len(host)))
        hosts = int(host.max(initial=-1)) + 1
        by_host: FloatArray = np.zeros((2, hosts))
        for place, part in enumerate(self._sums):
            sums[place] = np.bincount(cluster[:rows], part[:rows], len(host))
            by_host[place] = np.bincount(host, sums[place], hosts)
        self._usual = bool(_AT_FIRST + sums[0].sum() > 0)
        self._hosts = _decided(by_host, np.full(hosts, self._usual))
        self._clusters = _decided(sums, self._hosts[host])

    def on(self, host: IntArray) -> BoolArray:
        """Whether the calendar is in use on each cluster, given its host; those that came since go with their host."""
        out = np.full(len(host), self._usual)
        known = host < len(self._hosts)
        out[known] = self._hosts[host[known]]
        some = min(len(self._clusters), len(host))
        out[:some] = self._clusters[:some]
        return out


def _decided(sums: FloatArray, otherwise: BoolArray) -> BoolArray:
    """By the sign of the sum where that is clear."""
    return np.where(sums[0] ** 2 > _CLEAR**2 * sums[1], sums[0] > 0, otherwise)
