"""Look back, look around: the few features that paper 004 finds to carry almost everything.

*Back*: the new links of the page itself in the last periods, and their mean. *Around*: the same of its related pages,
and their link change rate, weighted by likeness.

The counts end with the last period that may be known. Paper 004 takes the related pages' change rate over all periods,
the one to be foretold included (reading 004.2): pages that appear together then tell each other's future. That form is
here for reproduction only, and must be asked for with the counts of that period.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.model import FloatArray
from recrawl.predict.link_periods import change_rate, lags, mean_known
from recrawl.predict.related_pages import RelatedPages

HISTORY = 8
"""Periods that paper 004 looks back."""


@dataclass(frozen=True, slots=True)
class LookBackLookAround:
    """The LBLA features of n pages for one kind of links."""

    back: FloatArray
    """New links of the page, the latest period first. Shape (n, history)."""
    back_mean: FloatArray
    around: FloatArray
    """New links of the related pages. Shape (n, history)."""
    around_mean: FloatArray
    around_change_rate: FloatArray


def look_back_look_around(
    past: FloatArray, related: RelatedPages, *, history: int = HISTORY, literal: FloatArray | None = None
) -> LookBackLookAround:
    """The features from counts of the past, shape (n, periods), the oldest first. O(n k history).

    Args:
        past: new links in each past period; NaN where unknown.
        related: the related pages of each page.
        history: periods to look back.
        literal: counts that include the period to be foretold, for the change rate of related pages as the paper
            has it. It looks into the future: never for deployment.
    """
    back = lags(past, history)
    rates = change_rate(past if literal is None else literal)
    near = related.mean_of(np.column_stack([back, rates]))
    around, around_rate = near[:, :-1], near[:, -1]
    return LookBackLookAround(back, mean_known(back), around, mean_known(around), around_rate)
