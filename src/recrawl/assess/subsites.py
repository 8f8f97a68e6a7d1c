"""Sub-sites: parts of a site that change together and are better captured by themselves.

In a capture, pages that change compete for the short intervals between visit and revisit: there is one of each length.
Two captures have two of each. So a part gains by being captured alone if it has pages that change while the rest has
some too; a part that never changes gains nothing, since its pages take the long intervals at no loss. But what is
captured apart is no longer coherent with the rest, so a cut must be where few would look at both sides together: parts
are sections of the site (by path), joined where they change together. The gain of each is told beside the usual gain,
that of as many pages taken evenly from all rates, which is what a cut anywhere would bring.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.assess.blur import total
from recrawl.model import BoolArray, FloatArray, IntArray

TOGETHER = 0.5
"""Correlation of changes above which sections are one part."""
_COARSE = 24
_FINE = 8


@dataclass(frozen=True, slots=True)
class SubSites:
    """Parts of a site, best gain first. Coherence is the expected number of coherent pages, by weight."""

    members: tuple[IntArray, ...]
    """The sections each part is made of."""
    pages: IntArray
    alone: FloatArray
    """Expected coherence of a capture of the part alone …"""
    rest: FloatArray
    """… and of a capture of all the rest."""
    whole: float
    """Expected coherence of one capture of everything."""
    usual: FloatArray
    """Gain of as many pages spread evenly over all rates."""
    delay: float
    """Seconds between two downloads."""

    def __len__(self) -> int:
        return len(self.pages)

    def gain(self) -> FloatArray:
        """Coherent pages more, in expectation, by capturing the part and the rest one after the other."""
        return np.asarray(self.alone + self.rest - self.whole)

    def lasts(self) -> FloatArray:
        """Seconds that a capture of each part takes, visits and revisits."""
        return np.maximum(2 * self.pages - 2, 0) * self.delay


def capture_coherence(rate: FloatArray, delay: float, weight: FloatArray | None = None) -> float:
    """Expected coherent pages of a visit–revisit capture with nested intervals of 0, 2, 4, … delays.

    The hottest page has no interval at all, the next ``h`` are hopeless and take the longest, and the others follow by
    falling rate. The best ``h`` is searched coarsely, then finely, so that this is a lower bound of the best capture,
    seldom by much. O(n log n), some thirty passes.

    >>> round(capture_coherence(np.array([0.4, 0.35, 0.3, 0.25, 0.2]), 1.0), 4)
    2.282
    """
    order = np.argsort(-rate, kind="stable")
    hot = rate[order]
    heavy = None if weight is None else weight[order]
    pages = len(hot)
    if not pages:
        return 0.0

    def expected(hopeless: int) -> float:
        slot = np.arange(pages) - hopeless
        slot[0] = 0
        slot[1 : hopeless + 1] = pages - np.arange(1, hopeless + 1)
        return total(np.exp(-hot * (2.0 * delay) * slot), heavy)

    grid = np.unique(np.round(np.geomspace(1, pages, _COARSE)).astype(np.int64)) - 1
    while True:
        values = [expected(int(hopeless)) for hopeless in grid]
        best = int(np.argmax(values))
        low, high = int(grid[max(best - 1, 0)]), int(grid[min(best + 1, len(grid) - 1)])
        finer = np.unique(np.round(np.linspace(low, high, _FINE)).astype(np.int64))
        if len(finer) == high - low + 1:
            return max(*values, *(expected(int(hopeless)) for hopeless in finer))
        grid = finer


def change_together(section: IntArray, sections: int, changed: IntArray, period: IntArray) -> FloatArray:
    """How alike sections change: the correlation of the shares of their pages that change in each period.

    ``section`` is that of each page; page ``changed[i]`` changed in ``period[i]``. Periods without any change tell
    nothing. 0 for a section that never changes, or always alike. O(changes log changes + sections²·periods).

    >>> alike = change_together(np.array([0, 1, 2]), 3, np.array([0, 1, 0, 1, 2]), np.array([1, 1, 5, 5, 7]))
    >>> alike.round(2).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """
    _, column = np.unique(period, return_inverse=True)
    once = np.unique(np.stack([changed, column]), axis=1) if len(changed) else np.empty((2, 0), np.int64)
    share = np.zeros((sections, int(column.max(initial=-1)) + 1))
    np.add.at(share, (section[once[0]], once[1]), 1.0)
    share /= np.maximum(np.bincount(section, minlength=sections), 1)[:, None]
    if share.shape[1]:
        share -= share.mean(axis=1, keepdims=True)
    length = np.sqrt((share * share).sum(axis=1))
    share /= np.where(length > 0, length, 1.0)[:, None]
    return share @ share.T


def propose(  # noqa: PLR0913 - the columns of the pages, and two bounds
    section: IntArray,
    rate: FloatArray,
    delay: float,
    alike: FloatArray | None = None,
    *,
    weight: FloatArray | None = None,
    fewest: int = 5,
) -> SubSites:
    """The parts of a site, best gain first, leaving out those of fewer than ``fewest`` pages, and the whole.

    ``section`` is that of each page, from 0; sections more ``alike`` than ``TOGETHER`` are one part. A rate that is
    not known (NaN) counts as 0. O(parts · n log n).
    """
    rate = np.where(np.isnan(rate), 0.0, rate)
    sections = int(section.max(initial=-1)) + 1
    part_of = _joined(np.eye(sections, dtype=np.bool_) if alike is None else alike > TOGETHER)
    part = part_of[section]
    count = np.bincount(part, minlength=sections)
    parts = np.flatnonzero((count >= fewest) & (count < len(rate)))
    whole = capture_coherence(rate, delay, weight)
    by_heat = np.argsort(rate, kind="stable")
    apart = [_split(part == one, rate, delay, weight) for one in parts.tolist()]
    evenly = [_split(_spread(by_heat, pages), rate, delay, weight) for pages in count[parts].tolist()]
    (alone, rest), usual = np.reshape(apart, (-1, 2)).T, np.reshape(evenly, (-1, 2)).sum(axis=1) - whole
    order = np.argsort(-(alone + rest), kind="stable")
    return SubSites(
        tuple(np.flatnonzero(part_of == parts[place]) for place in order.tolist()),
        count[parts][order],
        alone[order],
        rest[order],
        whole,
        usual[order],
        delay,
    )


def _split(inside: BoolArray, rate: FloatArray, delay: float, weight: FloatArray | None) -> tuple[float, float]:
    """Expected coherence of those inside and of the others, each captured by itself."""
    alone, rest = (
        capture_coherence(rate[some], delay, None if weight is None else weight[some]) for some in (inside, ~inside)
    )
    return alone, rest


def _spread(by_heat: IntArray, count: int) -> BoolArray:
    """So many pages, evenly over all rates."""
    inside = np.zeros(len(by_heat), np.bool_)
    inside[by_heat[np.linspace(0, len(by_heat) - 1, count).round().astype(np.int64)]] = True
    return inside


def _joined(alike: BoolArray) -> IntArray:
    """The least member of the group each section belongs to, groups being what hangs together."""
    label = np.arange(len(alike))
    while True:
        least = np.where(alike, label[None, :], len(alike)).min(axis=1, initial=len(alike))
        least = np.minimum(least, label)
        if bool((least == label).all()):
            return label
        label = least
