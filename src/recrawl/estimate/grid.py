r"""The grid posterior: the exact belief about λ on a grid of rates, and its filter for pages that change their ways.

Looks multiply the weight of rate λ_k: by e^{−λ_kτ} if nothing had changed after the gap τ, else by 1 − e^{−λ_kτ}; then
the weights of a page are divided by their sum (algorithms §5). Nothing is approximated but the grid.

**Jump filter.** A page's rate does not last: on average once in ``jump`` seconds it is drawn anew from the page's prior
π. So before a look after the gap τ

    p ← e^{−τ/J} p + (1 − e^{−τ/J}) π.

Old looks fade, and nothing is ever certain for ever. ``jump=None`` switches it off; then the order of the looks does
not matter. With it, a batch is the same as its looks one by one, except that of a history of more than 65,536
looks the oldest count as one period without jumps (so that the numpy path stays bounded).

**Priors.** ``prior`` has one row a page, or one row for all, or with ``of`` any rows: page i has row ``of[i]``. So the
priors of a thousand hosts serve ten million pages without a copy each.

**Resolution.** Half an octave is finer than what 100 looks can tell: a finer grid predicts no better. After 3000 looks
at a page that never jumps, the grid knows ln λ to 0.14 where 0.07 were possible.

**Tolerance.** Weights are stored in float32 between calls. A stream and its batch differ by at most 1e-5 in any
weight after 10,000 looks (measured: 2e-6), unless a rate was excluded by a factor of 1e-37 without filter.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.estimate.gaps import Looks, refuse_bad_gaps, refuse_bad_looks
from recrawl.estimate.grid_kernels import fold, pool
from recrawl.model import BoolArray, FloatArray, GridBelief, Histories, IntArray
from recrawl.model.compiled import can_compile
from recrawl.time import DAY

JUMP = 400.0 * DAY
"""Mean time between two changes of a page's rate. Costs next to nothing where rates last (algorithms §5)."""

LONGEST = 65_536
"""Looks at a page that the filter takes one by one, the latest."""

_BLOCK = 65_536


def fit(
    histories: Histories, prior: GridBelief, *, of: IntArray | None = None, jump: float | None = JUMP
) -> GridBelief:
    """The belief about each page right after its last look. O(gaps · rates), memory for the result alone.

    >>> from recrawl.model import Visits
    >>> h = Histories.from_visits(Visits.of([1, 1], [0.0, 10.0], verdict=[0, 1]))
    >>> after = fit(h, GridBelief.of([0.1, 0.2], [0.5, 0.5]), jump=None)
    >>> [round(weight, 6) for weight in after.weights[0].tolist()]  # as 1 to 1/e
    [0.731059, 0.268941]

    Raises:
        ValueError: a gap is not positive and finite, or the prior has rows for other pages.
    """
    refuse_bad_gaps(histories)
    rows = _rows_of_prior(prior, of, len(histories))
    belief = GridBelief(prior.rates, prior.weights[rows])
    starts, ends = histories.offsets[:-1], histories.offsets[1:]
    looks = Looks(np.arange(len(histories)), starts, ends, histories.gaps, histories.changed)
    if jump is None:
        pool(belief, looks)
    else:
        _fold(belief, looks, prior, rows, jump)
    return belief


def update(  # noqa: PLR0913 - a look is three columns, a prior two
    belief: GridBelief,
    rows: IntArray,
    gap: FloatArray,
    changed: BoolArray,
    prior: GridBelief | None = None,
    *,
    of: IntArray | None = None,
    jump: float | None = JUMP,
) -> None:
    """Fold new looks into ``belief`` **in place**: O(1) a look, however many pages there are.

    ``rows[k]`` is the row of the page that was looked at after ``gap[k]`` seconds. A row may occur several times; its
    looks are folded in the order given. ``prior`` and ``of`` are those of *all* pages of the belief; without
    filter they are not needed.

    Raises:
        ValueError: a gap is not positive and finite, a row is not one of the belief, or the prior does not fit.
    """
    if prior is None and jump is not None:
        raise ValueError("the jump filter needs the prior of the pages; pass it, or jump=None")
    refuse_bad_looks(rows, gap, changed, len(belief))
    looks = Looks.each(rows, gap, changed) if can_compile() else Looks.of(rows, gap, changed)
    source = belief.take(slice(1)) if prior is None else prior
    own = np.zeros_like(looks.row) if prior is None else _rows_of_prior(prior, of, len(belief))[looks.row]
    _fold(belief, looks, source, own, jump)


def at(
    belief: GridBelief, prior: GridBelief, elapsed: FloatArray, *, of: IntArray | None = None, jump: float | None = JUMP
) -> GridBelief:
    """The belief ``elapsed`` seconds after the last look: less certain, because the page may have jumped since.

    Where a page has not been looked at yet (``elapsed`` is NaN) it stays what it is.
    """
    if jump is None:
        return belief
    rows = _rows_of_prior(prior, of, len(belief))
    weights = np.empty_like(belief.weights)
    leave = -np.expm1(-np.nan_to_num(np.asarray(elapsed, dtype=np.float64)) / jump)
    for start in range(0, len(belief), _BLOCK):
        block = slice(start, start + _BLOCK)
        held = belief.weights[block]
        weights[block] = held + leave[block, None] * (prior.weights[rows[block]] - held)
    return GridBelief(belief.rates, weights)


def _rows_of_prior(prior: GridBelief, of: IntArray | None, pages: int) -> IntArray:
    """The row of the prior that belongs to each page."""
    if of is not None and len(of) == pages:
        if pages and not 0 <= int(of.min()) <= int(of.max()) < len(prior):
            raise ValueError(f"rows {int(of.min())} to {int(of.max())} of a prior of {len(prior)} rows")
        return of
    if of is None and len(prior) == pages:
        return np.arange(pages)
    if of is None and len(prior) == 1:
        return np.zeros(pages, dtype=np.int64)
    rows = len(prior) if of is None else len(of)
    raise ValueError(f"the prior has {rows} rows, but there are {pages} pages")


def _fold(belief: GridBelief, looks: Looks, prior: GridBelief, of: IntArray, jump: float | None) -> None:
    """One by one the latest looks, all at once those before them."""
    if not np.array_equal(belief.rates, prior.rates):
        raise ValueError("the belief and its prior have different rates")
    latest = np.maximum(looks.first, looks.last - LONGEST)
    long = np.flatnonzero(latest > looks.first)
    if len(long):
        early = Looks(looks.row[long], looks.first[long], latest[long], looks.gaps, looks.changed)
        pool(belief, early)
    late = looks._replace(first=latest)
    fold(belief, late, prior, of, math.inf if jump is None else jump)
