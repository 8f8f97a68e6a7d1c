"""Ratios over pages, and how sure they are: time fresh over time watched, changes found over changes.

Pages that are edited together are no independent evidence, so whole groups of pages are resampled. The numerators of
two methods over the same denominators subtract, and so the interval of a difference is that of paired values.
"""

from __future__ import annotations

import numpy as np

from recrawl.assess.scores import Interval
from recrawl.model import AnyArray, FloatArray

_DRAWS = 4_000_000
"""Group draws held at a time."""


def ratio_with_interval(  # noqa: PLR0913 - the two columns, and how they are resampled
    numerator: FloatArray,
    denominator: FloatArray,
    groups: AnyArray,
    rng: np.random.Generator,
    *,
    repeats: int = 1_000,
    level: float = 0.95,
) -> Interval:
    """Σ numerator / Σ denominator with a bootstrap interval; ``groups[i]`` names the group of page i.

    NaN throughout where the denominators add up to 0; with one group the interval is the ratio. Groups with neither
    numerator nor denominator are left out, and so are draws of groups that have no denominator at all: nothing can be
    said of them. O(n log n + repeats · groups).

    >>> ratio_with_interval(np.ones(4), np.full(4, 2.0), np.arange(4), np.random.default_rng(1))
    Interval(mean=0.5, low=0.5, high=0.5)
    """
    whole = float(denominator.sum())
    if not whole > 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    _, index = np.unique(groups, return_inverse=True)
    above, below = (np.asarray(np.bincount(index, part), dtype=np.float64) for part in (numerator, denominator))
    some = (below > 0) | (above != 0)
    above, below = above[some], below[some]
    drawn = np.concatenate(
        [
            _ratios(above, below, rng.integers(0, len(below), (count, len(below))))
            for count in _blocks(repeats, len(below))
        ]
    )
    low, high = np.quantile(drawn[np.isfinite(drawn)], [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Interval(float(numerator.sum()) / whole, float(low), float(high))


def _ratios(above: FloatArray, below: FloatArray, drawn: AnyArray) -> FloatArray:
    with np.errstate(divide="ignore"):  # a draw without any denominator
        return np.asarray(above[drawn].sum(axis=1) / below[drawn].sum(axis=1))


def _blocks(repeats: int, groups: int) -> list[int]:
    """How many repeats are drawn at a time, so that memory stays bounded."""
    most = max(1, _DRAWS // groups)
    return [min(most, repeats - start) for start in range(0, repeats, most)]
