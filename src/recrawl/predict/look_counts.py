"""What looks say about a rate, as so many changes in so much time: for learners that count.

A look tells that a page changed, not how often; and looks are irregular. A Gamma belief that starts from the prior of
the population, Gamma(a₀, b₀), and ends at Gamma(a, b) has learned as much as from a − a₀ changes counted in the
time b − b₀. That is what ``predict.count_prior`` is trained on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.estimate import gamma
from recrawl.estimate.empirical_bayes import fit_prior
from recrawl.model import FloatArray, Histories


@dataclass(frozen=True, slots=True)
class LookCounts:
    """For each page."""

    count: FloatArray
    """Changes, not always whole ones; none where there was no look."""
    exposure: FloatArray
    """Seconds; 0 where there was no look."""


def look_counts(histories: Histories) -> LookCounts:
    """As how many changes in how much time the looks at each page count. O(gaps) a round of empirical Bayes.

    Looks that found no change count with their whole time; those that found one count for up to a change, and for less
    than their time if the page surely changed early in it. So where nearly every look finds a change, slow pages have
    more say than fast ones, and a mean over pages of different rates comes out low: by a third if they change twice
    from look to look.
    """
    prior = fit_prior(histories)
    belief = gamma.fit(histories, prior.take(np.zeros(len(histories), np.int64)))
    return LookCounts(np.maximum(belief.a - prior.a, 0.0), np.maximum(belief.b - prior.b, 0.0))
