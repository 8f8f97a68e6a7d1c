r"""Newton's method for all pages at once, over ragged gaps, for functions on which it cannot overshoot.

If f is convex and falls (or concave and rises), a tangent from the side where Newton starts meets zero before f does.
So the iterates move towards the root from one side only: no bracket, no safeguard. The error after a step is about the
square of that step, so a step of :data:`SETTLED` is the last one worth taking. Pages that have settled are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recrawl.model import FloatArray, IntArray

SETTLED = 1e-8
"""A relative step that leaves an error below that of rounding."""
_MOST_STEPS = 200
"""Four steps are usual; gaps from microseconds to decades on one page need a few tens. More is a bug."""
_WORTH_DROPPING = 0.7
"""Dropping settled pages pays from about 30 % of them on."""
_LARGEST_X = 700.0
"""Beyond it B(x) is 0 in float64 and expm1 overflows."""


class Moving(NamedTuple):
    """The pages that still move, with their gaps."""

    rate: FloatArray
    """λ of each page."""
    x: FloatArray
    """λτ of each gap."""
    weight: FloatArray | None
    """How often each gap counts; ``None`` for once each."""
    heads: IntArray
    """Where the gaps of each page begin; no page is without gaps."""
    columns: tuple[FloatArray, ...]
    """What else the step needs to know of each page."""

    def sum(self, values: FloatArray) -> FloatArray:
        """The weighted sum over the gaps of each page."""
        return np.asarray(np.add.reduceat(values if self.weight is None else values * self.weight, self.heads))


def climb(
    start: FloatArray,
    offsets: IntArray,
    gaps: FloatArray,
    step: Callable[[Moving], FloatArray],
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
        relative = step(Moving(rate, np.repeat(rate, counts) * gaps, weight, heads, columns))
        out[moving] = rate * (1.0 + relative)
        live = np.abs(relative) > SETTLED
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
