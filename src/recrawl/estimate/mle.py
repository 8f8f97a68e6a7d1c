r"""Maximum likelihood for irregular visits (HACS eq. 5), solved for all pages at once (algorithms §6).

With U the total of the unchanged gaps and τ_k the changed ones, the maximum is the root of

    ψ(λ) = Σ_k B(λτ_k) − λU,   B(x) = x/(eˣ − 1).

ψ is convex and falling, so Newton from the left climbs to the root and never overshoots. Jensen's inequality gives the
left start λ_L = (m/S)·ln(1 + S/U), S = Σ τ_k, m their number; it is the root itself when the changed gaps are equal.
With B·eˣ = x + B the relative step −ψ/(Σ B(1 − x − B) − λU) needs no second exponential.

Special cases (reading 000.3): no gap, undefined (NaN); no change, 0; nothing but changes, eq. 4 (``bias_reduced``).
"""

from __future__ import annotations

import numpy as np

from recrawl.estimate import bias_reduced
from recrawl.model import FloatArray, Histories, IntArray
from recrawl.model.arrays import offsets_of

_TOLERANCE = 1e-13
_MOST_STEPS = 60
"""Newton needs 4 on average, 9 at most were measured (algorithms §6); this only stops a bug from looping."""
_LARGEST_X = 700.0
"""Beyond it B(x) is 0 in float64 and expm1 overflows."""


def rates(histories: Histories) -> FloatArray:
    """λ of each page, per second; NaN for a page without gaps. O(gaps · steps), 4 steps on average.

    >>> from recrawl.model import Visits
    >>> three_of_five = Visits.of(np.ones(6), np.arange(6) * 7.0, verdict=[0, 2, 2, 2, 1, 1])
    >>> rates(Histories.from_visits(three_of_five)).round(9).tolist()  # ln(2.5)/7
    [0.130898676]
    """
    looks, changes = histories.counts(), histories.changes()
    out = np.where(looks > 0, 0.0, np.nan)
    everything = (looks > 0) & (changes == looks)
    out[everything] = bias_reduced.rate(changes[everything], looks[everything], histories.observed()[everything])
    inner = np.flatnonzero((changes > 0) & (changes < looks))
    if len(inner):
        out[inner] = _interior(histories, inner)
    return out


def _interior(histories: Histories, rows: IntArray) -> FloatArray:
    """The root for pages that have both changed and unchanged gaps."""
    row_of_gap = histories.row_of_gap()
    position = np.full(len(histories), -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    row = position[row_of_gap]
    quiet = (row >= 0) & ~histories.changed
    unchanged = np.bincount(row[quiet], histories.gaps[quiet], len(rows)).astype(np.float64)
    loud = (row >= 0) & histories.changed
    return _newton(offsets_of(row[loud], len(rows)), histories.gaps[loud], unchanged)


def _newton(offsets: IntArray, gaps: FloatArray, unchanged: FloatArray) -> FloatArray:
    """Newton from the Jensen start, over the pages that still move. Every page has at least one changed gap."""
    counts = np.diff(offsets)
    total = np.add.reduceat(gaps, offsets[:-1])
    rate = counts / total * np.log1p(total / unchanged)
    moving = np.arange(len(rate))
    for _ in range(_MOST_STEPS):
        x = np.repeat(rate[moving], counts) * gaps
        bernoulli = np.where(x > _LARGEST_X, 0.0, x / np.expm1(np.minimum(x, _LARGEST_X)))
        away = rate[moving] * unchanged
        heads = offsets[:-1]
        value = np.add.reduceat(bernoulli, heads) - away
        slope = np.add.reduceat(bernoulli * (1.0 - x - bernoulli), heads) - away
        step = -value / slope
        rate[moving] *= 1.0 + step
        live = np.abs(step) > _TOLERANCE
        if not live.any():
            break
        if live.mean() < 0.7:  # noqa: PLR2004 - dropping the settled pages pays from about 30 % on
            gaps, counts, unchanged = gaps[np.repeat(live, counts)], counts[live], unchanged[live]
            offsets = np.concatenate([[0], np.cumsum(counts)])
            moving = moving[live]
    return rate
