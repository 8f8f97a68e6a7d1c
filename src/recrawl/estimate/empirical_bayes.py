r"""A Gamma prior from a population of pages, and from each group of it: empirical Bayes by EM.

E-step: the belief about each page under the current prior (``gamma.fit``). M-step: the Gamma that fits those beliefs
best, i.e. whose E[λ] and E[ln λ] are their means:

    ln a − ψ(a) = ln mean(a_i/b_i) − mean(ψ(a_i) − ln b_i),   b = a / mean(a_i/b_i).

A group is shrunk towards a parent prior that counts as ``strength`` more pages, so a group of few pages says what its
parent says and one of many outgrows it. Shrunk are ln mean and spread, because groups differ by factors, not by
differences. Five pages predicted the first look at new pages well whether hosts were much alike or not at all (twenty,
which suits a grid posterior, was too many for a Gamma). The whole population is shrunk, by one page, towards
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
_ANY_RATE = (1e-200, 1e200)
"""Beyond it not even the square of a rate is a number."""
_MOST_ROUNDS = 60
_SETTLED = 1e-3
_SAMPLE = 20_000
"""Pages the EM over the whole population looks at: plenty to find two numbers."""
_GROUP_SAMPLE = 400
"""Pages it looks at in each group: at 80 times the say of the parent more would change little."""
_LOOKS = 256
"""Looks at a page that are taken into account, the latest: by then its rate is known, and a prior needs no more."""


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
    pooled = UNKNOWN_RATE
    if looks:
        with np.errstate(over="ignore"):
            pooled = float(np.clip(-np.log((looks - changes + 0.5) / (looks + 1.0)) * looks / observed, *_ANY_RATE))
    return GammaBelief(np.array([_VAGUE_SHAPE]), np.array([_VAGUE_SHAPE / pooled]))


def fit_prior(histories: Histories) -> GammaBelief:
    """The prior of the population, one row. At most 20,000 pages, evenly spread, are looked at: O(their gaps) a round.

    >>> nothing = Histories.concatenate([])
    >>> round(1 / float(fit_prior(nothing).mean()[0]) / DAY)
    30
    """
    one_group = np.zeros(len(histories), dtype=np.int64)
    sample = evenly_spread(histories, one_group, _SAMPLE)
    return _em(histories.take(sample), one_group[sample], 1, vague(histories), strength=1.0)


def fit_group_priors(
    histories: Histories, group: IntArray, parent: GammaBelief | None = None, *, strength: float = 5.0
) -> GroupPriors:
    """The prior of each group; ``group[i]`` is the group of row i of the histories.

    ``parent`` is one row for all groups, or one for each group in ascending order of its id; without it the
    population's own prior. At most 400 pages of a group, evenly spread, are looked at: O(their gaps) a round.
    """
    overall = fit_prior(histories) if parent is None or len(parent) != 1 else parent
    ids, index = np.unique(group, return_inverse=True)
    above = overall if parent is None else parent
    sample = evenly_spread(histories, index, _GROUP_SAMPLE)
    prior = _em(histories.take(sample), index[sample], len(ids), above, strength=strength)
    return GroupPriors(ids.astype(np.int64), prior, overall)


def evenly_spread(histories: Histories, group: IntArray, most: int) -> IntArray:
    """Rows that were looked at, in ascending order; of a group with more than ``most``, so many, evenly spread."""
    seen = np.flatnonzero(histories.counts())
    by_group = np.argsort(group[seen], kind="stable")
    label = group[seen][by_group]
    starts = np.flatnonzero(np.diff(label, prepend=-1))
    size = np.diff(np.append(starts, len(seen)))
    rank = np.arange(len(seen)) - np.repeat(starts, size)
    # of `size` ranks keep those where rank * most / size passes a whole number; all of them if size <= most
    share = np.minimum(most / np.repeat(size, size), 1.0)
    keep = np.floor((rank + 1) * share) > np.floor(rank * share)
    return np.asarray(np.sort(seen[by_group[keep]]))


def _em(histories: Histories, group: IntArray, groups: int, parent: GammaBelief, *, strength: float) -> GammaBelief:
    """The priors of groups 0 … groups − 1; those without pages get their parent's."""
    rows = np.zeros(groups, dtype=np.int64) if len(parent) == 1 else np.arange(groups)
    out = parent.take(rows)
    present, index, pages = np.unique(group, return_inverse=True, return_counts=True)
    if len(present):
        found = _iterate(histories.latest(_LOOKS), index, out.take(present), pages / (pages + strength))
        out.a[present], out.b[present] = found.a, found.b
    return out


def _iterate(histories: Histories, group: IntArray, above: GammaBelief, weight: FloatArray) -> GammaBelief:
    """EM over groups that all have pages, from the priors ``above`` them; ``weight`` is a group's own say."""
    pages = np.bincount(group)
    prior = above
    for _ in range(_MOST_ROUNDS):
        belief = gamma.fit(histories, prior.take(group))
        own_mean = np.log(np.bincount(group, belief.mean()) / pages)
        own_spread = own_mean - np.bincount(group, _mean_log(belief)) / pages
        mean = np.exp(weight * own_mean + (1.0 - weight) * np.log(above.mean()))
        spread = weight * own_spread + (1.0 - weight) * (np.log(above.mean()) - _mean_log(above))
        shape = np.clip(_shape(spread), *_SHAPES)
        moved = np.abs(np.log(shape / prior.a)) + np.abs(np.log(mean / prior.mean()))
        prior = GammaBelief(shape, shape / mean)
        if float(moved.max()) < _SETTLED:
            break
    return prior


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
