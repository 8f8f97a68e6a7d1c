"""How well priors foretell: log loss of the first looks at pages nobody has seen, calibration and coverage.

All are judged on the same looks. After each look a prior becomes a belief in the usual way, so what is judged past the
first look is prior × history.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.estimate import gamma
from recrawl.model import FloatArray, GammaBelief, Histories
from recrawl.predict.look_counts import LookCounts

LOOKS = 10
"""Looks at each page that are judged."""
_UNLIKELY = 1e-6


@dataclass(frozen=True, slots=True)
class Tallied:
    """What a prior expected of pages in all, beside what was found."""

    expected: float
    """Events by the prior: first looks that find a change, or new links."""
    found: float
    """Events that came."""
    looks: int
    """First looks, or pages on which links were counted."""
    deviation: float
    """Standard deviation of ``found`` if the prior were right."""

    @property
    def calibration(self) -> float:
        """Events that were expected for each that was found; half an event is added to both."""
        return (self.expected + 0.5) / (self.found + 0.5)

    @property
    def surprise(self) -> float:
        """By how many standard deviations more events were found than expected."""
        return (self.found - self.expected) / max(self.deviation, _UNLIKELY)


@dataclass(frozen=True, slots=True)
class Foretold(Tallied):
    """How well one prior of changes did; what is tallied are first looks."""

    first: float
    """Mean log loss of the first looks, nats."""
    ten: float
    """Mean log loss of the first ten looks, each with what those before it taught; every place counts alike."""
    alone: float
    """The same by the prior alone, whatever those before it found."""


def judge_prior(prior: GammaBelief, histories: Histories) -> Foretold:
    """Let a prior, one row a page, foretell the looks at the pages. O(looks)."""
    belief = GammaBelief(prior.a.copy(), prior.b.copy())
    start, count = histories.offsets[:-1], histories.counts()
    losses: list[float] = []
    unmoved: list[float] = []
    first: tuple[FloatArray, FloatArray] = (np.empty(0), np.empty(0))
    for place in range(LOOKS):
        rows = np.flatnonzero(count > place)
        if not len(rows):
            break
        at = start[rows] + place
        gap, changed = histories.gaps[at], histories.changed[at]
        chance, said = (np.clip(one.take(rows).p_change(gap), _UNLIKELY, 1.0 - _UNLIKELY) for one in (belief, prior))
        for loss, one in ((losses, chance), (unmoved, said)):
            loss.append(float(-np.log(np.where(changed, one, 1.0 - one)).mean()))
        if not place:
            first = chance, changed.astype(np.float64)
        gamma.update(belief, rows, gap, changed)
    expected, found = first
    return Foretold(
        expected=float(expected.sum()),
        found=int(found.sum()),
        looks=len(found),
        deviation=float(np.sqrt((expected * (1.0 - expected)).sum())),
        first=losses[0] if losses else float("nan"),
        ten=float(np.mean(losses)) if losses else float("nan"),
        alone=float(np.mean(unmoved)) if unmoved else float("nan"),
    )


def tally_counts(prior: GammaBelief, counts: LookCounts) -> Tallied:
    r"""What a prior, one row a page, expects to be counted on pages, beside what was. O(pages).

    In the time t a page of Gamma(a, b) has a negative binomial number of events, of mean m = a·t/b and variance
    m·(1 + t/b). New links come in bunches, which that law does not know; so the variance is taken from how far pages
    were off where that is more: one page with a hundred links is no sign that a model has gone wrong.

    >>> tally_counts(GammaBelief(np.full(2, 1.0), np.full(2, 10.0)), LookCounts(np.array([1.0, 2.0]), np.full(2, 10.0)))
    Tallied(expected=2.0, found=3.0, looks=2, deviation=2.0)
    """
    watched = counts.exposure > 0
    a, b, time, count = prior.a[watched], prior.b[watched], counts.exposure[watched], counts.count[watched]
    mean = a * time / b
    variance = max(float((mean * (1.0 + time / b)).sum()), float(np.square(count - mean).sum()))
    return Tallied(float(mean.sum()), float(count.sum()), len(count), float(np.sqrt(variance)))


def coverage(prior: GammaBelief, counts: LookCounts, share: float = 0.9) -> float:
    """Share of pages whose events lie within the middle ``share`` of what the prior allows in the time they had.

    Counts are whole, so the middle holds a little more than that, and so should the share of pages. NaN without pages.
    """
    from scipy import stats  # takes a second to load

    watched = counts.exposure > 0
    if not bool(watched.any()):
        return float("nan")
    a, b = prior.a[watched], prior.b[watched]
    law = stats.nbinom(a, b / (b + counts.exposure[watched]))
    low, high = law.ppf(0.5 - share / 2), law.ppf(0.5 + share / 2)
    # Looks make counts that are not whole.
    count = counts.count[watched]
    return float(((count >= np.floor(low) - 0.5) & (count <= high + 0.5)).mean())
