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

from recrawl.estimate import bias_reduced, mle_kernels
from recrawl.estimate.point_evidence import sound
from recrawl.estimate.point_newton import Moving, bernoulli, climb
from recrawl.model import FloatArray, Histories, IntArray
from recrawl.model.arrays import offsets_of, starts_of_runs
from recrawl.model.compiled import can_compile

_WORTH_COMPILING = 200_000
"""Gaps from which machine code pays even if it must be compiled first."""
_WORTH_JOINING = 0.7
"""Share of runs among the gaps below which joining equal neighbours pays."""


def rates(histories: Histories) -> FloatArray:
    """λ of each page, per second; NaN for a page without gaps. O(gaps · steps), 4 steps on average.

    Relative error below 1e-12. ValueError with the page's id for a gap that is negative or no number.

    >>> from recrawl.model import Visits
    >>> three_of_five = Visits.of(np.ones(6), np.arange(6) * 7.0, verdict=[0, 2, 2, 2, 1, 1])
    >>> rates(Histories.from_visits(three_of_five)).round(9).tolist()  # ln(2.5)/7
    [0.130898676]
    """
    histories = sound(histories)
    if len(histories.gaps) >= _WORTH_COMPILING and can_compile():
        return mle_kernels.rates(histories.offsets, histories.gaps, histories.changed)
    return rates_by_numpy(histories)


def rates_by_numpy(histories: Histories, *, compress: bool = True) -> FloatArray:
    """The same without machine code. ``compress=False`` joins no equal gaps."""
    looks, changes = histories.counts(), histories.changes()
    out = np.where(looks > 0, 0.0, np.nan)
    everything = (looks > 0) & (changes == looks)
    out[everything] = bias_reduced.rate(changes[everything], looks[everything], histories.observed()[everything])
    inner = np.flatnonzero((changes > 0) & (changes < looks))
    if len(inner):
        out[inner] = _interior(histories.take(inner), compress=compress)
    return out


def split(histories: Histories) -> tuple[IntArray, FloatArray, FloatArray]:
    """Offsets and lengths of the changed gaps, and U of each page: all that the likelihood depends on. O(gaps)."""
    row, changed = histories.row_of_gap(), histories.changed
    unchanged = np.zeros(len(histories))
    quiet = ~changed
    some = np.flatnonzero(starts_of_runs(row[quiet]))
    if len(some):  # reduceat adds in pairs, which bincount does not: a million gaps keep their digits
        unchanged[row[quiet][some]] = np.add.reduceat(histories.gaps[quiet], some)
    return offsets_of(row[changed], len(histories)), histories.gaps[changed], unchanged


def _interior(histories: Histories, *, compress: bool) -> FloatArray:
    """The root for pages that all have both changed and unchanged gaps."""
    offsets, gaps, unchanged = split(histories)
    counts, heads = np.diff(offsets), offsets[:-1]
    total = np.add.reduceat(gaps, heads)
    rate = counts / total * np.log1p(total / unchanged)
    if not compress:
        return climb(rate, offsets, gaps, _step, unchanged)
    unequal = np.minimum.reduceat(gaps, heads) < np.maximum.reduceat(gaps, heads)
    live, keep = np.flatnonzero(unequal), np.repeat(unequal, counts)
    row, gaps = np.repeat(np.arange(len(live)), counts[live]), gaps[keep]
    runs, weight = np.flatnonzero(starts_of_runs(row, gaps)), None
    if len(runs) < _WORTH_JOINING * len(gaps):
        weight = np.diff(np.append(runs, len(gaps))).astype(np.float64)
        row, gaps = row[runs], gaps[runs]
    rate[live] = climb(rate[live], offsets_of(row, len(live)), gaps, _step, unchanged[live], weight=weight)
    return rate


def _step(now: Moving) -> FloatArray:
    """Newton's relative step towards ψ = 0."""
    pull, away = bernoulli(now.x), now.rate * now.columns[0]
    return (away - now.sum(pull)) / (now.sum(pull * (1.0 - now.x - pull)) - away)
