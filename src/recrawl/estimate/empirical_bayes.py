r"""A Gamma prior from a population of pages, and from each group of it: empirical Bayes by EM.

E-step: the belief about each page under the current prior (``gamma.fit``). M-step: the Gamma that fits those beliefs
best, i.e. whose E[λ] and E[ln λ] are their means:

    ln a − ψ(a) = ln mean(a_i/b_i) − mean(ψ(a_i) − ln b_i),   b = a / mean(a_i/b_i).

A group is shrunk towards a parent prior that counts as ``strength`` more pages (20, ALGORITHMS §5), so a group of few
pages says what its parent says and one of many outgrows it. The whole population is shrunk, by one page, towards
Gamma(½, ½/λ₀) with λ₀ its own pooled rate; with no look at all, it is one change in 30 days. So every case is defined.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from recrawl.estimate import gamma
from recrawl.model import FloatArray, GammaBelief, Histories, IntArray
from recrawl.time import DAY

UNKNOWN_RATE = 1.0 / (30.0 * DAY)
"""One change in 30 days: what is assumed of a web of which nothing was seen yet."""

_VAGUE_SHAPE = 0.5
_SHAPES = (0.05, 1e3)
"""A shape outside says more about the population than any sample can."""
_MOST_ROUNDS = 60
_SETTLED = 1e-3
_SAMPLE = 20_000
"""Pages the EM over the whole population looks at: plenty to find two numbers."""


class GroupPriors(NamedTuple):
    """One prior a group."""

    group: IntArray
    """Ids of the groups, ascending."""
    prior: GammaBelief
    """One row a group."""
    overall: GammaBelief
    """One row: for groups nobody has seen."""

    def of(self, group: IntArray) -> GammaBelief:
        """The prior of each of these groups, repeated and unknown ones included. O(n log groups)."""
        if not len(self.group):
            return self.overall.take(np.zeros(len(group), dtype=np.int64))
        place = np.minimum(np.searchsorted(self.group, group), len(self.group) - 1)
        known = self.group[place] == group
        a = np.where(known, self.prior.a[place], self.overall.a[0])
        return GammaBelief(a, np.where(known, self.prior.b[place], self.overall.b[0]))


def vague(histories: Histories) -> GammaBelief:
    """Gamma(½, ½/λ₀), one row: λ₀ is the pooled rate of all looks, or :data:`UNKNOWN_RATE` without any.

    Eq. 4 over the whole population, with half a change added so that it is never 0.
    """
    looks, changes, observed = len(histories.gaps), int(histories.changed.sum()), float(histories.gaps.sum())
    pooled = -np.log((looks - changes + 0.5) / (looks + 1.0)) * looks / observed if looks else UNKNOWN_RATE
    return GammaBelief(np.array([_VAGUE_SHAPE]), np.array([_VAGUE_SHAPE / pooled]))


def fit_prior(histories: Histories) -> GammaBelief:
    """The prior of the population, one row. At most 20,000 pages, evenly spread, are looked at: O(their gaps) a round.

    >>> nothing = Histories.concatenate([])
    >>> round(1 / float(fit_prior(nothing).mean()[0]) / DAY)
    30
    """
    seen = np.flatnonzero(histories.counts())
    if len(seen) > _SAMPLE:
        seen = seen[np.linspace(0, len(seen) - 1, _SAMPLE).astype(np.int64)]
    parent = vague(histories)
    one_group = np.zeros(len(seen), dtype=np.int64)
    return _em(histories.take(seen), one_group, 1, parent, strength=1.0)


def fit_group_priors(
    histories: Histories, group: IntArray, parent: GammaBelief | None = None, *, strength: float = 20.0
) -> GroupPriors:
    """The prior of each group; ``group[i]`` is the group of row i of the histories.

    ``parent`` is one row for all groups, or one for each group in ascending order of its id; without it the
    population's own prior. O(gaps) a round, at most 60 rounds.
    """
    overall = fit_prior(histories) if parent is None or len(parent) != 1 else parent
    ids, index = np.unique(group, return_inverse=True)
    above = overall if parent is None else parent
    seen = np.flatnonzero(histories.counts())
    prior = _em(histories.take(seen), index[seen], len(ids), above, strength=strength)
    return GroupPriors(ids.astype(np.int64), prior, overall)


def _em(histories: Histories, group: IntArray, groups: int, parent: GammaBelief, *, strength: float) -> GammaBelief:
    pages = np.bincount(group, minlength=groups)
    rows = np.zeros(groups, dtype=np.int64) if len(parent) == 1 else np.arange(groups)
    above = parent.take(rows)
    if not len(histories):
        return above
    prior = above
    for _ in range(_MOST_ROUNDS):
        belief = gamma.fit(histories, prior.take(group))
        mean = _shrunk(belief.mean(), above.mean(), group, pages, strength)
        log = _shrunk(_mean_log(belief), _mean_log(above), group, pages, strength)
        shape = np.clip(_shape(np.log(mean) - log), *_SHAPES)
        moved = np.abs(np.log(shape / prior.a)) + np.abs(np.log(mean / prior.mean()))
        prior = GammaBelief(shape, shape / mean)
        if float(moved.max()) < _SETTLED:
            break
    return prior


def _shrunk(own: FloatArray, above: FloatArray, group: IntArray, pages: IntArray, strength: float) -> FloatArray:
    """Mean over each group's pages and ``strength`` copies of its parent."""
    total = np.bincount(group, weights=own, minlength=len(pages))
    return (total + strength * above) / (pages + strength)


def _mean_log(belief: GammaBelief) -> FloatArray:
    return np.asarray(special.digamma(belief.a)) - np.log(belief.b)


def _shape(spread: FloatArray) -> FloatArray:
    """Solve ln a − ψ(a) = spread > 0: Minka's start, relative error 1.5 %, then Newton in ln a."""
    s = np.maximum(spread, 1e-9)
    a = (3.0 - s + np.sqrt((s - 3.0) ** 2 + 24.0 * s)) / (12.0 * s)
    for _ in range(4):
        error = np.log(a) - special.digamma(a) - s
        a = a * np.exp(-error / (1.0 - a * special.polygamma(1, a)))
    return np.asarray(a)
