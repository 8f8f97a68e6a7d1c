r"""The Gamma belief, learned one look at a time: assumed-density filtering (algorithms §5).

λ ~ Gamma(a, b). A look after a gap τ that found no change multiplies by e^{−λτ}: exactly b ← b + τ. One that found a
change multiplies by 1 − e^{−λτ}; the product is no Gamma, so the Gamma of the same mean and variance takes its place:

    r = ln(1 + τ/b),   q_k = 1 − e^{−(a+k)r},
    E[λ] = (a/b) q₁/q₀,   E[λ²] = (a(a+1)/b²) q₂/q₀,   a ← E[λ]²/V,   b ← E[λ]/V,   V = E[λ²] − E[λ]².

Two floats a page, O(1) a look. The mean stays close to that of the exact posterior (median error 1.5 %); the
intervals are too narrow (90 % ones cover 78 to 82 %), so use it for ranking. The order of the gaps matters slightly.
"""

from __future__ import annotations

import numpy as np

from recrawl.model import BoolArray, FloatArray, GammaBelief, Histories, IntArray

_SMALLEST_R = 1e-290
"""Keeps 0/0 away when τ/b vanishes; the ratios q_k/q₀ then are the exact limits (a+k)/a."""


def fit(histories: Histories, prior: GammaBelief) -> GammaBelief:
    """The belief about each page after all its looks; ``prior`` has one row a page. Nothing is modified.

    O(gaps) work in as many numpy steps as the longest history has gaps.

    >>> from recrawl.model import Visits
    >>> h = Histories.from_visits(Visits.of([1, 1], [0.0, 10.0], verdict=[0, 2]))
    >>> after = fit(h, GammaBelief(np.array([0.5]), np.array([15.0])))
    >>> round(float(after.a[0]), 6), round(float(after.b[0]), 6)
    (1.424149, 17.992301)
    """
    if len(prior) != len(histories):
        msg = f"the prior has {len(prior)} rows, the histories have {len(histories)}"
        raise ValueError(msg)
    belief = GammaBelief(prior.a.astype(np.float64), prior.b.astype(np.float64))
    _fold(belief, np.arange(len(belief)), histories.offsets, histories.gaps, histories.changed)
    return belief


def update(belief: GammaBelief, rows: IntArray, gap: FloatArray, changed: BoolArray) -> None:
    """Fold new looks into ``belief`` **in place**: O(1) a look, however many pages there are.

    ``rows[k]`` is the row of the page that was looked at after ``gap[k]`` seconds. A row may occur several
    times; its looks are folded in the order given. The result is the same as that of :func:`fit` over all looks.
    """
    order = np.argsort(rows, kind="stable")
    sorted_rows = rows[order]
    heads = np.flatnonzero(np.diff(sorted_rows, prepend=-1))
    offsets = np.append(heads, len(rows))
    _fold(belief, sorted_rows[heads], offsets, gap[order], changed[order])


def _fold(belief: GammaBelief, rows: IntArray, offsets: IntArray, gaps: FloatArray, changed: BoolArray) -> None:
    """The k-th gaps of all pages at once, for k = 0, 1, …; pages by falling length, so the live ones lead."""
    counts = np.diff(offsets)
    by_length = np.argsort(-counts, kind="stable")
    starts, rows = offsets[:-1][by_length], rows[by_length]
    a, b = belief.a[rows], belief.b[rows]
    live = np.searchsorted(-counts[by_length], -np.arange(1, counts.max(initial=0) + 1), side="right")
    for k, n in enumerate(live.tolist()):
        where = starts[:n] + k
        a[:n], b[:n] = _look(a[:n], b[:n], gaps[where], changed[where])
    belief.a[rows], belief.b[rows] = a, b


def _look(a: FloatArray, b: FloatArray, gap: FloatArray, changed: BoolArray) -> tuple[FloatArray, FloatArray]:
    """One look at each page: the new shape and rate."""
    b_new = b + gap
    a_new = a.copy()
    hit = np.flatnonzero(changed)
    if len(hit):
        a_new[hit], b_new[hit] = _change(a[hit], b[hit], gap[hit])
    return a_new, b_new


def _change(a: FloatArray, b: FloatArray, gap: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Match mean and variance of λ after a change; moments in units of 1/b, so any unit of time gives the same."""
    r = np.maximum(np.log1p(gap / b), _SMALLEST_R)
    q0 = -np.expm1(-a * r)
    mean = a * -np.expm1(-(a + 1.0) * r) / q0
    square = a * (a + 1.0) * -np.expm1(-(a + 2.0) * r) / q0
    variance = square - mean * mean
    return mean * mean / variance, b * mean / variance
