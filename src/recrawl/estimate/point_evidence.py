r"""Common parts of point estimators: checked gaps, a rate for pages without gaps, and Newton's method.

:class:`PointBelief` is a belief in a single rate, without uncertainty: the result of a point estimator, or a known
rate.

Newton's method runs for all pages at once, over ragged gaps, for functions on which it cannot overshoot. If f is convex
and falls (or concave and rises), a tangent from the side where Newton starts meets zero before f does. So the iterates
move towards the root from one side only: no bracket, no safeguard. The error after a step is about the square of that
step, so a step of :data:`CONVERGED` is the last one worth taking. Pages that have settled are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.estimate.posterior.gamma_posterior import UNKNOWN_RATE
from recrawl.model import AnyArray, FloatArray, Histories, IntArray
from recrawl.model.arrays import offsets_of


def sound(histories: Histories) -> Histories:
    """The histories, if every gap is a number > 0 and finite; gaps of length 0 are dropped (reading 000.3).

    Two observations at the same instant are no evidence on a rate. A gap that is negative, infinite or no number is an
    error in the histories: ValueError, with the id of the page. O(gaps).

    >>> zero_and_five = Histories(np.array([7]), np.array([0, 2]), np.array([0.0, 5.0]), np.array([True, False]),
    ...                           np.zeros(1), np.full(1, 5.0), np.full(1, np.nan))
    >>> sound(zero_and_five).gaps.tolist()
    [5.0]
    """
    gaps = histories.gaps
    if not len(gaps) or (float(gaps.min()) > 0.0 and float(gaps.max()) < np.inf):  # NaN fails both
        return histories
    bad = np.flatnonzero(~((gaps >= 0.0) & (gaps < np.inf)))
    if len(bad):
        page = int(histories.page[histories.row_of_gap()[bad[0]]])
        msg = f"page {page} has a gap of {gaps[bad[0]]} seconds; gaps are finite and not negative"
        raise ValueError(msg)
    keep = gaps > 0.0
    offsets = offsets_of(histories.row_of_gap()[keep], len(histories))
    times = histories.first_visit, histories.last_visit, histories.last_change
    return Histories(histories.page, offsets, gaps[keep], histories.changed[keep], *times)


def pooled_rate(histories: Histories) -> float:
    """One rate for all pages together, per second: the point estimate of a page without history.

    Eq. 4 over all observations of all pages, with half a change added, so that it is neither 0 nor infinite:
    −ln((n − X + ½)/(n + 1))·n/T. Without a single observation it is one change in 30 days. O(gaps).
    """
    observations = len(histories.gaps)
    if not observations:
        return UNKNOWN_RATE
    changes, observed = int(histories.changed.sum()), float(histories.gaps.sum())
    return float(-np.log((observations - changes + 0.5) / (observations + 1.0)) * observations / observed)


def filled(rates: FloatArray, histories: Histories) -> FloatArray:
    """The rates, with the pooled rate of the histories where they are NaN."""
    unknown = np.isnan(rates)
    return np.where(unknown, pooled_rate(histories), rates) if bool(unknown.any()) else rates


@dataclass(frozen=True, slots=True)
class PointBelief:
    """λ is exactly ``rate``, per second, ≥ 0; S(t) = e^{−λt}."""

    rate: FloatArray

    def __len__(self) -> int:
        return len(self.rate)

    def mean(self) -> FloatArray:
        """The rate."""
        return self.rate

    def quantile(self, q: float) -> FloatArray:  # noqa: ARG002 - every quantile is the rate
        """The rate."""
        return self.rate

    def survival(self, t: FloatArray) -> FloatArray:
        """e^{−λt}."""
        return np.exp(-self.rate * t)

    def unchanged_time(self, t: FloatArray) -> FloatArray:
        """(1 − e^{−λt})/λ; t where λ = 0.

        >>> PointBelief(np.array([0.0, 1.0])).unchanged_time(np.array([2.0, 0.0])).tolist()
        [2.0, 0.0]
        """
        from scipy import special

        return np.asarray(t * special.exprel(-self.rate * t))

    def change_density(self, t: FloatArray) -> FloatArray:
        """λ e^{−λt}, per second."""
        return self.rate * np.exp(-self.rate * t)

    def p_change(self, t: FloatArray) -> FloatArray:
        """1 − e^{−λt}."""
        return -np.expm1(-self.rate * t)

    def expect(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """The function at the rate."""
        return function(self.rate[:, None])[:, 0]

    def take(self, rows: AnyArray | slice) -> PointBelief:
        """The belief about the pages at these positions."""
        return PointBelief(self.rate[rows])


CONVERGED = 1e-8
"""A relative step that leaves an error below that of rounding."""
_MOST_STEPS = 200
"""Four steps are usual; gaps from microseconds to decades on one page need a few tens. More is a bug."""
_WORTH_DROPPING = 0.7
"""Dropping settled pages pays from about 30 % of them on."""
_LARGEST_X = 700.0
"""Beyond it B(x) is 0 in float64 and expm1 overflows."""


class MovingPages(NamedTuple):
    """The pages that still move, with their gaps."""

    rate: FloatArray
    """λ of each page."""
    x: FloatArray
    """λτ of each gap."""
    weight: FloatArray | None
    """How often each gap counts; ``None`` for once each."""
    heads: IntArray
    """Where the gaps of each page start; no page is without gaps."""
    columns: tuple[FloatArray, ...]
    """What else the step needs to know of each page."""

    def sum(self, values: FloatArray) -> FloatArray:
        """The weighted sum over the gaps of each page."""
        return np.asarray(np.add.reduceat(values if self.weight is None else values * self.weight, self.heads))


def climb(
    start: FloatArray,
    offsets: IntArray,
    gaps: FloatArray,
    step: Callable[[MovingPages], FloatArray],
    *columns: FloatArray,
    weight: FloatArray | None = None,
) -> FloatArray:
    """From ``start``, multiply the rates by 1 + ``step`` until they settle. O(gaps) a step.

    ``columns`` hold one value a page and are passed on to ``step``, cut to the pages that still move.
    """
    out, moving, counts = start.copy(), np.arange(len(start)), np.diff(offsets)
    for _ in range(_MOST_STEPS):
        if not len(moving):
            return out
        rate = out[moving]
        heads = np.cumsum(counts) - counts
        relative = step(MovingPages(rate, np.repeat(rate, counts) * gaps, weight, heads, columns))
        out[moving] = rate * (1.0 + relative)
        live = np.abs(relative) > CONVERGED
        if not bool(live.any()):
            return out
        if float(live.mean()) < _WORTH_DROPPING:
            keep = np.repeat(live, counts)
            gaps, counts, moving = gaps[keep], counts[live], moving[live]
            weight = None if weight is None else weight[keep]
            columns = tuple(column[live] for column in columns)
    msg = f"{len(moving)} rates have not settled after {_MOST_STEPS} steps"
    raise ArithmeticError(msg)


def bernoulli(x: FloatArray) -> FloatArray:
    """B(x) = x/(eˣ − 1) for x > 0: how much a changed gap still pulls λ up; 1 at 0, falling to 0.

    >>> bernoulli(np.array([1e-20, 1000.0])).tolist()
    [1.0, 0.0]
    """
    return np.where(x > _LARGEST_X, 0.0, x / np.expm1(np.minimum(x, _LARGEST_X)))
