"""Evidence on noise as columns: the store persists it, and the detector learns from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model.arrays import IntArray

WHOLE_HOST = 0
"""Stands for the page where evidence is about all pages of a host."""
NOISE_SUMS = ("near", "near_differed", "tested", "far", "far_differed")
"""Columns that are added up; the sets of pages and times are united."""
RUNS = ((9, 10, 3), (3, 4, 6), (1, 2, 9), (3, 10, 16))
"""Runs of agreements that noise hardly shows, less than once in 300 times: (a, b, n) says that a part which differed in
a/b of the confirmations before, with one more that agreed, does not agree n times in a row."""
LONGEST_RUN = 24
"""For parts that differed in fewer."""
NEAR_WINDOW, FAR_WINDOW = 24, 64
"""Confirmations and other comparisons beyond which counts are halved: what was long ago fades."""


@dataclass(frozen=True, slots=True)
class NoiseCounts:
    """How often parts of pages were compared and differed: what noise is learned from.

    One row for each host, page and part; page 0 has the evidence of all pages of the host. Sets of pages and of times
    have 62 bits, one for each member, though members may share one.
    """

    host: IntArray
    page: IntArray
    """The page, or :data:`WHOLE_HOST`."""
    part: IntArray
    """Path or template, position and kind of difference (see ``detect.noise.noise_keys``)."""
    near: IntArray
    """Confirmations: how often the part was compared between two answers moments apart."""
    near_differed: IntArray
    tested: IntArray
    """Confirmations that tested a difference: the part had just differed from the version before, or differed moments
    apart. That a part agrees on a page where it never differs says nothing about pages where it does."""
    run: IntArray
    """Tested differences that agreed since the part last differed moments apart."""
    far: IntArray
    """How often it was compared otherwise."""
    far_differed: IntArray
    near_pages: IntArray
    """Pages on which it differed moments apart."""
    agreed_pages: IntArray
    """Pages on which it was the same moments apart."""
    far_pages: IntArray
    """Pages on which it differed otherwise."""
    times: IntArray
    """Minutes in which it differed moments apart."""

    def __len__(self) -> int:
        return len(self.host)


def runs_at_end(starts: IntArray, near_differed: IntArray, run: IntArray) -> IntArray:
    """The run that groups of rows end with, which come by time: what follows the last row that differed. O(n).

    >>> runs_at_end(np.array([0, 3]), np.array([2, 1, 0, 0, 0]), np.array([4, 0, 1, 1, 1])).tolist()
    [1, 2]
    """
    ends = np.append(starts[1:], len(run)) - 1
    rows = np.arange(len(run))
    last = np.maximum(np.maximum.reduceat(np.where(near_differed > 0, rows, -1), starts), starts)
    total = np.cumsum(run)
    found: IntArray = total[ends] - total[last] + run[last]
    return found
