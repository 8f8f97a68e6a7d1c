r"""Exact change times: N changes over the time T (SHARC 6.2; git histories, feeds and other complete logs).

    λ = N/T,   with a prior: λ ~ Gamma(a + N, b + T).

The thesis counts changes in slots of Δ and divides by their number; divided by Δ it is N/T (reading 003.37).
A likelihood of this form, λ^m·e^{−λE}, is also what a trusted Last-Modified gives, so it has a type of its own here:
:class:`DatedEvidence`. It is conjugate to a Gamma belief.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.estimate.empirical_bayes import UNKNOWN_RATE
from recrawl.estimate.estimator import Evidence
from recrawl.estimate.point_evidence import sound
from recrawl.model import (
    BoolArray,
    ChangeKind,
    FloatArray,
    GammaBelief,
    Histories,
    IntArray,
    Verdict,
    Visits,
)

_VAGUE_SHAPE = 0.5


@dataclass(frozen=True, slots=True)
class DatedEvidence:
    """The log-likelihood m·ln λ − λE of each page: changes whose time is known, and time known to be free of others."""

    changes: FloatArray
    """m ≥ 0; not whole where sources are trusted in part."""
    exposure: FloatArray
    """E ≥ 0, seconds."""

    def __len__(self) -> int:
        return len(self.changes)

    def plus(self, other: DatedEvidence) -> DatedEvidence:
        """Both, if neither knows of what the other does."""
        return DatedEvidence(self.changes + other.changes, self.exposure + other.exposure)

    def fold_into_gamma(self, belief: GammaBelief) -> GammaBelief:
        """Gamma(a + m, b + E): exact.

        >>> known = DatedEvidence(np.array([2.0]), np.array([30.0]))
        >>> known.fold_into_gamma(GammaBelief(np.array([1.0]), np.array([10.0]))).mean().tolist()
        [0.075]
        """
        return GammaBelief(belief.a + self.changes, belief.b + self.exposure)


def rate(changes: npt.ArrayLike, observed: npt.ArrayLike) -> FloatArray:
    """N/T per unit of ``observed``; NaN where nothing was observed.

    >>> rate(11, 40.0).tolist()
    0.275
    """
    n, t = np.asarray(changes, dtype=np.float64), np.asarray(observed, dtype=np.float64)
    return np.asarray(np.divide(n, t, out=np.full(np.broadcast(n, t).shape, np.nan), where=t > 0))


def complete_log(histories: Histories) -> DatedEvidence:
    """N and T of each page, from histories whose looks came at the very moment of each change. O(gaps).

    Right only if every change is exact (:func:`exact_pages`), and if the log was closed by an unchanged look at its
    end: else the time after the last change is missing.
    """
    histories = sound(histories)
    return DatedEvidence(histories.changes().astype(np.float64), histories.observed())


def exact_pages(visits: Visits, page: IntArray) -> BoolArray:
    """Which of these pages (ascending ids) changed at least once, each time at a time that is known exactly. O(n)."""
    changed = visits.verdict == Verdict.CHANGED
    exact = changed & ((visits.kinds & np.uint16(ChangeKind.EXACT)) != 0)
    known = np.isin(visits.page, page)
    times_exact, times_found = (
        np.bincount(np.searchsorted(page, visits.page[rows & known]), minlength=len(page)) for rows in (exact, changed)
    )
    return np.asarray((times_exact > 0) & (times_exact == times_found))


@dataclass(frozen=True, slots=True)
class Oracle:
    """Gamma(½ + N, ½/λ₀ + T), λ₀ the pooled rate: for evidence whose histories are complete logs of changes."""

    name: str = "oracle"

    def __call__(self, evidence: Evidence) -> GammaBelief:
        """The belief about each page; Gamma(½, ½/λ₀) for pages nothing is known of."""
        known = complete_log(evidence.histories)
        observed = float(known.exposure.sum())
        pooled = (float(known.changes.sum()) + 0.5) / observed if observed > 0 else UNKNOWN_RATE
        return known.fold_into_gamma(vague(pooled, len(known)))


def vague(typical: float, pages: int) -> GammaBelief:
    """Gamma(½, ½/λ₀) for so many pages: knows the order of magnitude, and half a change outweighs it."""
    return GammaBelief(np.full(pages, _VAGUE_SHAPE), np.full(pages, _VAGUE_SHAPE / typical))
